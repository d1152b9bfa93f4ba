"""Detection rate and runs to a refutation for every bug of the catalogue, and false alarms on the correct twins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ..core.bench_json import Figures, at_least, at_most, columns
from ..core.effort import Bench, Effort, Task, once, seeds_of, spread

ALPHA = 1e-6
_SEEDS, _QUICK_SEEDS = 20, 1
_RUNS = 1_000_000
_QUICK_EVERY = 200  # the quick form audits every two-hundredth fault
_QUICK_RUNS = 50_000


def _tasks(effort: Effort) -> Iterator[Task]:
    wanted = [(place, fault) for place, fault in enumerate(entries()) if effort.wants(fault.name)]
    if effort.is_quick:
        wanted = [(place, fault) for place, fault in wanted if fault.runs <= _QUICK_RUNS][::_QUICK_EVERY]
    for place, fault in wanted:
        yield once(fault.name, _cells, place, fault, effort)


def _cells(place: int, fault: Fault, effort: Effort) -> Figures:
    runs, n_seeds = effort.either((fault.runs, _QUICK_SEEDS), (max(_RUNS, fault.runs), _SEEDS))
    seeds = seeds_of(13, place, 0, n_seeds)
    started = time.perf_counter()

    def audited(which: str, *, sequential: bool) -> list[tuple[Verdict, int, float]]:
        return list(spread(_audit, [(place, which, runs, sequential, seed) for seed in seeds], effort.jobs))

    found, early = audited("mechanism", sequential=False), audited("mechanism", sequential=True)
    twins = [] if fault.correct is None else audited("correct", sequential=False)
    caught, alarms = (sum(verdict is Verdict.REFUTED for verdict, _, _ in side) for side in (found, twins))
    taken = [runs for verdict, runs, _ in early if verdict is Verdict.REFUTED]
    return {
        "fault": fault.name,
        "family": fault.family,
        "cause": fault.cause,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "seeds": n_seeds,
        "caught": caught / n_seeds,
        "bound": float(np.median([bound for _, _, bound in found])),
        "sequential": len(taken) / n_seeds,
        "median": float(np.median(taken)) if taken else None,
        "alarms": alarms if fault.correct is not None else None,
        "seconds": time.perf_counter() - started,
    }, [
        at_least("detection rate", caught / n_seeds, 1),
        at_least("sequential detection rate", len(taken) / n_seeds, 1),
        at_most("false alarms on the correct twin", alarms, 0),
    ]


def _audit(place: int, which: str, runs: int, sequential: bool, seed: int) -> tuple[Verdict, int, float]:
    """Return the verdict, the runs and the bound of one audit of a fault or of its correct twin."""
    fault = entries()[place]
    mechanism: Any = getattr(fault, which)
    result = check(
        mechanism,
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        distance=fault.distance,
        runs=runs,
        alpha=ALPHA,
        seed=seed,
        sequential=sequential,
        bits=fault.bits,
        jobs=1,
    )
    return result.verdict, result.runs, result.bound


CATALOGUE = Bench(
    name="catalogue",
    title="Catalogue of bugs",
    method=(
        f"Audits with {_SEEDS} seeds at alpha {ALPHA:g}, with 10⁶ runs on each dataset of the pair or more where the "
        "entry needs more. Sequential audits have the same number of runs at most; their median is over the refuted "
        "audits. The correct twin is audited as often, at fixed size."
    ),
    columns=columns(
        "fault | family | cause | claim | exact strength = exact :.4g | detection rate = caught :.0% | "
        "median lower bound = bound :.4g | sequential detection rate = sequential :.0% | "
        "median runs to refutation = median :,.0f | false alarms on the correct twin = alarms | seconds :.0f"
    ),
    names=tuple(fault.name for fault in entries()),
    tasks=_tasks,
)
