"""What choosing an event and counting cost, over drawing the same outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.procedures.check import check
from ....audit.sampling.draw import count_hits, plan_blocks
from ....audit.sampling.sampler import as_sampler
from ....mechanisms import LaplaceMechanism
from ...published.noisy_answers import NoisyAnswers
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once

_RUNS, _QUICK_RUNS = 10_000_000, 200_000
_ROUNDS, _QUICK_ROUNDS = 5, 1
_JOBS = 2


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    mechanism: Any
    x: Any
    y: Any
    limit: float  # of the time of the audit over that of drawing alone


def _cases() -> list[_Case]:
    flat = [0.0] * 10
    return [
        _Case("one number", LaplaceMechanism(1.0), 0.0, 1.0, 1.5),
        _Case("vector of 10", NoisyAnswers(PureDP(1.0), 1.0), flat, [1.0, *flat[1:]], 3.0),
    ]


def _tasks(effort: Effort) -> Iterator[Task]:
    for case in _cases():
        if effort.wants(case.name):
            yield once(case.name, _cells, case, effort)


def _cells(case: _Case, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    runs = effort.either(_QUICK_RUNS, _RUNS)
    plan = plan_blocks(as_sampler(case.mechanism, None), case.x, case.y, 0, _JOBS)

    def draw() -> Any:
        return count_hits(plan, None, None, runs)

    def audit() -> Any:
        return check(case.mechanism, case.x, case.y, claim=PureDP(1.0), runs=runs, jobs=_JOBS)

    spent = np.array([[_seconds(work) for work in (draw, audit)] for _ in range(effort.either(_QUICK_ROUNDS, _ROUNDS))])
    ratio = float(np.median(spent[:, 1] / spent[:, 0]))
    cells: dict[str, Value] = {
        "output": case.name,
        "runs": runs,
        "drawing": float(np.median(spent[:, 0])),
        "audit": float(np.median(spent[:, 1])),
        "ratio": ratio,
    }
    return cells, [] if effort.is_quick else [Target(what="ratio", value=ratio, sense="<=", limit=case.limit)]


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


COST = Bench(
    name="cost",
    title="What looking costs",
    method=(
        "Seconds of a whole audit (pilot, choice, drawing, counting, test, look at the bits) and of drawing alone, "
        f"with {_JOBS} workers; medians of {_ROUNDS} rounds in which both take turns, and the median of their ratios."
    ),
    columns=(
        Column("output", "output"),
        Column("runs on each dataset", "runs", ",d"),
        Column("drawing", "drawing", ".3f"),
        Column("audit", "audit", ".3f"),
        Column("ratio", "ratio", ".2f"),
    ),
    names=tuple(case.name for case in _cases()),
    tasks=_tasks,
)
