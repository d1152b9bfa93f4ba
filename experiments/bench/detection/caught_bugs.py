"""The catalogue of bugs: the share that audits find, how soon, and whether any alarm is raised where all is right."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult, Verdict
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once, seeds_of, spread

ALPHA = 1e-6
_SEEDS, _QUICK_SEEDS = 20, 1
_RUNS = 1_000_000
_QUICK_EVERY = 100  # in a quick run one fault in so many
_QUICK_RUNS = 50_000


@functools.cache
def _faults() -> list[Fault]:
    """Once a process: the exact strengths take a moment."""
    return entries()


def _tasks(effort: Effort) -> Iterator[Task]:
    wanted = [(place, fault) for place, fault in enumerate(_faults()) if effort.wants(fault.name)]
    if effort.is_quick:
        wanted = [(place, fault) for place, fault in wanted if fault.runs <= _QUICK_RUNS][::_QUICK_EVERY]
    for place, fault in wanted:
        yield once(fault.name, _cells, place, fault, effort)


def _cells(place: int, fault: Fault, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    runs, n_seeds = effort.either((fault.runs, _QUICK_SEEDS), (max(_RUNS, fault.runs), _SEEDS))
    seeds = seeds_of(13, place, 0, n_seeds)
    started = time.perf_counter()
    found = list(spread(_audit, [(place, "mechanism", runs, False, seed) for seed in seeds], effort.jobs))
    sequential = list(spread(_audit, [(place, "mechanism", runs, True, seed) for seed in seeds], effort.jobs))
    alarms = 0
    if fault.correct is not None:
        right = spread(_audit, [(place, "correct", runs, False, seed) for seed in seeds], effort.jobs)
        alarms = sum(result[0] is Verdict.REFUTED for result in right)
    caught = sum(result[0] is Verdict.REFUTED for result in found)
    early = [result[1] for result in sequential if result[0] is Verdict.REFUTED]
    cells: dict[str, Value] = {
        "fault": fault.name,
        "family": fault.family,
        "cause": fault.cause,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "seeds": n_seeds,
        "caught": caught / n_seeds,
        "bound": float(np.median([result[2] for result in found])),
        "sequential": len(early) / n_seeds,
        "median": float(np.median(early)) if early else None,
        "alarms": alarms if fault.correct is not None else None,
        "seconds": time.perf_counter() - started,
    }
    return cells, [
        Target(what="share caught", value=caught / n_seeds, sense=">=", limit=1.0),
        Target(what="share caught sequentially", value=len(early) / n_seeds, sense=">=", limit=1.0),
        Target(what="alarms on the correct twin", value=float(alarms), sense="<=", limit=0.0),
    ]


def _audit(place: int, which: str, runs: int, sequential: bool, seed: int) -> tuple[Verdict, int, float]:
    """One audit of a fault or of its correct twin: verdict, runs taken, bound."""
    fault = _faults()[place]
    mechanism: Any = getattr(fault, which)
    result: AuditResult = check(
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
    title="The catalogue of bugs",
    method=(
        f"Each at 10⁶ runs on each dataset of its pair (or as many as its entry asks for), with {_SEEDS} seeds, "
        "at alpha 1e-6: the share refuted, and by sequential audits of at most as many runs, with the median number of "
        "runs until then; alarms on the correct twin in as many audits of fixed size."
    ),
    columns=(
        Column("fault", "fault"),
        Column("family", "family"),
        Column("cause", "cause"),
        Column("claim", "claim"),
        Column("exact", "exact", ".4g"),
        Column("caught", "caught", ".0%"),
        Column("median bound", "bound", ".4g"),
        Column("caught sequentially", "sequential", ".0%"),
        Column("median runs", "median", ",.0f"),
        Column("alarms on the correct twin", "alarms"),
        Column("seconds", "seconds", ".0f"),
    ),
    names=tuple(fault.name for fault in _faults()),
    tasks=_tasks,
)
