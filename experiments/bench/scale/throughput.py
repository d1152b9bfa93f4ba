"""Speed: audits beside drawing their noise alone, two workers beside one, and the reference suite at 10⁸ runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from ....audit.sampling.block_plan import Plan
from ....audit.sampling.draw import plan_blocks
from ....audit.sampling.sampler import as_sampler
from ...cases.experiment import AuditCase
from ...suite.reference_mechanisms import reference_cases
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once
from ..core.timing import draw_alone, in_turns, median_ratio

_SUITE_RUNS, _QUICK_RUNS = 10**8, 10**5
_WORKERS = 2
_ALPHA = 1e-5

_LEAST_SHARE, _HELD = 0.7, ("laplace", "geometric", "gaussian-analytic", "randomised-response")
_LEAST_SCALING = 1.8
_ROUNDS = 5


@cache
def _cases() -> dict[str, AuditCase]:
    return {case.name: case for case in reference_cases()}


def _suite(effort: Effort, name: str) -> tuple[dict[str, Value], list[Target]]:
    case, runs = _cases()[name], effort.either(_QUICK_RUNS, _SUITE_RUNS)
    started = time.perf_counter()
    result = case.run(runs=runs, alpha=_ALPHA, seed=0, jobs=_WORKERS, progress=None)
    seconds = time.perf_counter() - started
    cells: dict[str, Value] = {
        "name": name,
        "claim": case.claimed,
        "runs": result.runs,
        "verdict": result.verdict.value,
        "bound": result.bound,
        "exact": case.exact,
        "seconds": seconds,
        "rate": 2 * result.runs / seconds / 1e6,
    }
    targets = [Target(what="as expected", value=float(result.verdict == case.expected), sense=">=", limit=1.0)]
    if case.exact is not None:
        targets.append(Target(what="bound", value=result.bound, sense="<=", limit=case.exact))
    return cells, [] if effort.is_quick else targets


def _suite_tasks(effort: Effort) -> Iterator[Task]:
    for name in effort.either(_HELD[:1], tuple(_cases())):
        if effort.wants(name):
            yield once(name, _suite, effort, name)


SUITE = Bench(
    name="suite",
    title=f"The reference suite at {_SUITE_RUNS:,} runs on each dataset",
    method=(
        f"`dpaudit run --runs {_SUITE_RUNS}`, case by case: alpha {_ALPHA:g}, {_WORKERS} workers, one audit each; "
        "three of them count cells of outputs besides. Executions on both datasets together, in millions a second, the "
        "choice of the event and the test included."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("claim", "claim"),
        Column("runs", "runs", ",d"),
        Column("verdict", "verdict"),
        Column("bound", "bound", ".5g"),
        Column("exact", "exact", ".5g"),
        Column("seconds", "seconds", ".1f"),
        Column("10⁶ executions a second", "rate", ".1f"),
    ),
    names=tuple(_cases()),
    tasks=_suite_tasks,
)


def _plan(case: AuditCase) -> Plan:
    return plan_blocks(as_sampler(case.mechanism), case.x, case.y, 1, _WORKERS)


def _throughput(effort: Effort, name: str) -> tuple[dict[str, Value], list[Target]]:
    case = replace(_cases()[name], cells=0)
    runs = effort.either(_QUICK_RUNS, 10**8 if name in _HELD else 2 * 10**7)
    plan = _plan(case)
    works: dict[str, Callable[[], Any]] = {
        "audit": partial(case.run, runs=runs, alpha=_ALPHA, seed=0, jobs=_WORKERS, progress=None),
        "alone": partial(draw_alone, plan, runs, _WORKERS),
    }
    seconds = in_turns(works, effort.either(1, _ROUNDS))
    share = median_ratio(seconds["alone"], seconds["audit"])
    cells: dict[str, Value] = {
        "name": name,
        "runs": runs,
        "audit": 2 * runs / statistics.median(seconds["audit"]) / 1e6,
        "alone": 2 * runs / statistics.median(seconds["alone"]) / 1e6,
        "share": share,
    }
    if effort.is_quick or name not in _HELD:
        return cells, []
    return cells, [Target(what="share", value=share, sense=">=", limit=_LEAST_SHARE)]


def _throughput_tasks(effort: Effort) -> Iterator[Task]:
    for name, case in _cases().items():
        if effort.wants(name) and case.expected.name == "NOT_REFUTED" and (not effort.is_quick or name in _HELD[:1]):
            yield once(name, _throughput, effort, name)


THROUGHPUT = Bench(
    name="throughput",
    title="Audits beside drawing alone",
    method=(
        "Whole audits, choice of the event and test included, without cells, and drawing as many outputs by the same "
        f"sampler with the same {_WORKERS} workers and nothing else; in turns, medians of {_ROUNDS} rounds; share is "
        "the median of the rounds' own ratios."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("runs on each dataset", "runs", ",d"),
        Column("audit, 10⁶ executions a second", "audit", ".1f"),
        Column("drawing alone", "alone", ".1f"),
        Column("share", "share", ".2f"),
    ),
    names=tuple(name for name, case in _cases().items() if case.expected.name == "NOT_REFUTED"),
    tasks=_throughput_tasks,
)


def _single(dataset: float, rng: np.random.Generator) -> float:
    return dataset + rng.laplace()


def _looped() -> AuditCase:
    case = _cases()["laplace"]
    return AuditCase(
        name="one at a time, in processes",
        mechanism=_single,
        x=0.0,
        y=1.0,
        claim=case.claim,
        adjacency=_cases()["gaussian-analytic"].adjacency,
        expected=case.expected,
    )


_SCALED = {
    "laplace": 6 * 10**8,
    "gaussian-analytic": 6 * 10**8,
    "exponential": 3 * 10**8,
    "one at a time, in processes": 3 * 10**6,
}
_SCALING_ROUNDS = 3


def _scaling(effort: Effort, name: str) -> tuple[dict[str, Value], list[Target]]:
    case = _looped() if name not in _cases() else replace(_cases()[name], cells=0)
    runs, plan = effort.either(_QUICK_RUNS // 10, _SCALED[name]), _plan(case)
    works: dict[str, Callable[[], Any]] = {}
    for jobs in (1, 2):
        works[f"audit {jobs}"] = partial(case.run, runs=runs, alpha=_ALPHA, seed=0, jobs=jobs, progress=None)
        works[f"alone {jobs}"] = partial(draw_alone, plan, runs, jobs, "processes")
    seconds = in_turns(works, effort.either(1, _SCALING_ROUNDS))
    gain = median_ratio(seconds["audit 1"], seconds["audit 2"])
    cells: dict[str, Value] = {
        "name": name,
        "runs": runs,
        "one": statistics.median(seconds["audit 1"]),
        "two": statistics.median(seconds["audit 2"]),
        "gain": gain,
        "alone": median_ratio(seconds["alone 1"], seconds["alone 2"]),
    }
    if effort.is_quick:
        return cells, []
    return cells, [Target(what="times as fast", value=gain, sense=">=", limit=_LEAST_SCALING)]


def _scaling_tasks(effort: Effort) -> Iterator[Task]:
    for name in effort.either(("laplace",), tuple(_SCALED)):
        if effort.wants(name):
            yield once(name, _scaling, effort, name)


SCALING = Bench(
    name="scaling",
    title="Two workers beside one",
    method=(
        f"Seconds of whole audits with one worker and with two, in turns, medians of {_SCALING_ROUNDS} rounds, and the "
        "median of the rounds' ratios; the same ratio for drawing alone in processes, which is what the machine gives. "
        "Audits as long as these use processes; short ones of block samplers threads, which gain little."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("runs on each dataset", "runs", ",d"),
        Column("seconds with one", "one", ".2f"),
        Column("with two", "two", ".2f"),
        Column("times as fast", "gain", ".2f"),
        Column("drawing alone", "alone", ".2f"),
    ),
    names=tuple(_SCALED),
    tasks=_scaling_tasks,
)
