"""Experiments run into a suite of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...audit.records.json_codec import save
from ...audit.records.suite import Entry, Suite, Topic
from ...audit.store.sqlite_store import Store
from ..cases.experiment import Case, Experiment


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    alpha: float,
    seed: int,
    runs: int | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    watch: Callable[[Case, int], Callable[[int], None]] | None = None,
    environment: dict[str, Any] | None = None,
    store: Store | None = None,
) -> Suite:
    """Run every case; with `out`, ``results.json`` there holds the finished cases at any time.

    Parameters
    ----------
    alpha : float
        Allowed error probability of each case; for the suite it is at most this times the number of cases.
    runs : int, optional
        Runs on each dataset for every case; by default the number in each case.
    watch : callable, optional
        Function called with each case and its runs before the case runs; returns its progress callback.
    store : Store, optional
        Store of finished draws, which are not drawn again.
    """
    started = time.perf_counter()
    entries: list[Entry] = []
    topics = tuple(Topic(id=each.id, statement=each.statement, source=each.source) for each in experiments)
    title = _title([each.id for each in experiments])
    suite = Suite(title=title, entries=(), topics=topics)
    for experiment in experiments:
        for case in experiment.cases:
            size = case.runs if runs is None else runs
            watched = None if watch is None else watch(case, size)
            result = case.run(runs=size, alpha=alpha, seed=seed, jobs=jobs, progress=watched, store=store)
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
                topics=topics,
                environment={**(environment or {}), "seconds": round(time.perf_counter() - started, 3)},
            )
            if out is not None:
                save(suite, out / "results.json")
    return suite


def _title(ids: Sequence[str]) -> str:
    if list(ids) == ["reference"]:
        return "Reference suite"
    shown = ", ".join(ids[:8])
    return f"Experiment{'s' * (len(ids) != 1)} {shown}" + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
