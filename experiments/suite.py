"""Running experiments into a suite of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..audit.records import Entry, Suite, save
from .experiment import Case, Experiment


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    alpha: float,
    seed: int,
    title: str = "Mechanisms, right and wrong",
    runs: int | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    watch: Callable[[Case, int], Callable[[int], None]] | None = None,
    environment: dict[str, Any] | None = None,
) -> Suite:
    """Runs every case; with `out`, ``results.json`` there holds all that is finished at any time.

    Parameters
    ----------
    alpha : float
        Allowed false-alarm probability of each case; of the suite it is at most this times the number of cases.
    runs : int, optional
        On each dataset, for every case; by default the number that each case names.
    watch : callable, optional
        Called with each case and its runs before it runs; returns the progress callback for it.
    """
    started = time.perf_counter()
    entries: list[Entry] = []
    suite = Suite(title=title, entries=())
    for experiment in experiments:
        for case in experiment.cases:
            size = case.runs if runs is None else runs
            watched = None if watch is None else watch(case, size)
            result = case.run(runs=size, alpha=alpha, seed=seed, jobs=jobs, progress=watched)
            entries.append(
                Entry(
                    name=case.name,
                    experiment=experiment.id,
                    result=result,
                    expected=case.expected,
                    exact=case.exact,
                    note=case.note,
                )
            )
            suite = Suite(
                title=title,
                entries=tuple(entries),
                environment={**(environment or {}), "seconds": round(time.perf_counter() - started, 3)},
            )
            if out is not None:
                save(suite, out / "results.json")
    return suite
