"""Bugs of the catalogue on pairs that the search finds, and false alarms on their correct twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....audit.results.audit_result import Verdict
from ....audit.search.find_worst_pair import find_worst_pair
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ..core.bench_json import Figures, at_least, at_most, columns
from ..core.effort import Bench, Effort, Task, once, seeds_of, spread
from ..core.timing import timed

ALPHA = 1e-6
_SEEDS, _QUICK_SEEDS = 5, 1
_RUNS, _QUICK_RUNS = 200_000, 20_000
_QUICK = ("scale-epsilon",)


def _searchable() -> list[tuple[int, Fault]]:
    return [(place, fault) for place, fault in enumerate(entries()) if fault.domain is not None]


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, fault in _searchable():
        if effort.wants(fault.name) and (not effort.is_quick or fault.name in _QUICK):
            yield once(fault.name, _cells, place, fault, effort)


def _cells(place: int, fault: Fault, effort: Effort) -> Figures:
    runs, n_seeds = effort.either((_QUICK_RUNS, _QUICK_SEEDS), (max(_RUNS, fault.runs), _SEEDS))
    seeds = seeds_of(31, place, 0, n_seeds)

    def searched(which: str) -> list[tuple[bool, float]]:
        return list(spread(_search, [(place, which, runs, seed) for seed in seeds], effort.jobs))

    found, seconds = timed(searched, "mechanism")
    twins = [] if fault.correct is None else searched("correct")
    caught, alarms = (sum(is_refuted for is_refuted, _ in side) for side in (found, twins))
    return {
        "fault": fault.name,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "runs": runs,
        "caught": caught / n_seeds,
        "bound": float(np.median([bound for _, bound in found])),
        "alarms": alarms if fault.correct is not None else None,
        "seconds": seconds / n_seeds,
    }, [
        at_least("detection rate", caught / n_seeds, 1),
        at_most("false alarms on the correct twin", alarms, 0),
    ]


def _search(place: int, which: str, runs: int, seed: int) -> tuple[bool, float]:
    """Return whether the audit of the found pair refutes the claim, and its bound."""
    fault = entries()[place]
    mechanism: Any = getattr(fault, which)
    found = find_worst_pair(
        mechanism,
        fault.domain,
        claim=fault.claim,
        adjacency=fault.adjacency,
        runs=runs,
        alpha=ALPHA,
        seed=seed,
        bits=fault.bits,
        jobs=1,
    )
    return found.verdict is Verdict.REFUTED, found.audit.bound


SEARCHED = Bench(
    name="catalogue-searched",
    title="Catalogue of bugs, pairs searched",
    method=(
        f"Searches and audits with {_SEEDS} seeds at alpha {ALPHA:g}, for the entries whose catalogue states where "
        "datasets may lie, with 2·10⁵ runs on each dataset of the found pair or more where the entry needs more, and "
        "the search's default number of runs. Exact strength: on the pair of the catalogue. Searches of the correct "
        "twins as often. Seconds of one search and audit of the bug."
    ),
    columns=columns(
        "fault | claim | exact strength = exact :.4g | runs on each dataset = runs :,d | detection rate = caught :.0% "
        "| median lower bound = bound :.4g | false alarms on the correct twin = alarms | seconds :.1f"
    ),
    names=tuple(fault.name for _, fault in _searchable()),
    tasks=_tasks,
)
