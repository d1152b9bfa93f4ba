"""Cases to audit, and running them into a suite of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..audit.adjacency import Adjacency
from ..audit.check import check
from ..audit.claims import Claim
from ..audit.errors import UnknownNameError
from ..audit.records import Entry, Suite, save
from ..audit.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mechanism on a pair of datasets, with what the audit has to say.

    Attributes
    ----------
    name : str
        As on the command line.
    mechanism, x, y : Any
    claim : Claim
        What the mechanism claims at distance 1.
    adjacency : Adjacency
    expected : Verdict
    exact : float
        Exact strength on this pair, from the mechanism's law; infinite where no finite one holds.
    note : str
        What the case shows.
    """

    name: str
    mechanism: Any
    x: Any
    y: Any
    claim: Claim
    adjacency: Adjacency
    expected: Verdict
    exact: float
    note: str


def select(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    """The cases with these names, in the order of the suite; all of them where no name is given."""
    known = {case.name for case in cases}
    for name in names:
        if name not in known:
            raise UnknownNameError(f"{name!r} is no experiment; `dpaudit list` shows their names.", name=name)
    return [case for case in cases if not names or case.name in names]


def run_cases(
    cases: Sequence[Case],
    *,
    runs: int,
    alpha: float,
    seed: int,
    jobs: int | None = None,
    out: Path | None = None,
    watch: Callable[[Case], Callable[[int], None]] | None = None,
    environment: dict[str, Any] | None = None,
) -> Suite:
    """Audits every case; with `out`, ``results.json`` there holds all that is finished at any time.

    Parameters
    ----------
    alpha : float
        Allowed false-alarm probability of each audit; of the suite it is at most this times the number of cases.
    watch : callable, optional
        Called with each case before it runs; returns the progress callback for it.
    """
    started = time.perf_counter()
    entries: list[Entry] = []
    suite = Suite(title="Reference mechanisms and their faulty twins", entries=())
    for case in cases:
        result = check(
            case.mechanism,
            case.x,
            case.y,
            claim=case.claim,
            adjacency=case.adjacency,
            runs=runs,
            alpha=alpha,
            seed=seed,
            jobs=jobs,
            progress=None if watch is None else watch(case),
        )
        entries.append(Entry(name=case.name, result=result, expected=case.expected, exact=case.exact, note=case.note))
        suite = Suite(
            title=suite.title,
            entries=tuple(entries),
            environment={**(environment or {}), "seconds": round(time.perf_counter() - started, 3)},
        )
        if out is not None:
            save(suite, out / "results.json")
    return suite
