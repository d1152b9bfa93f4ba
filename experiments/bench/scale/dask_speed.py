"""Audits on a dask cluster: equality of the counts, bytes sent, cost of a task, and a simulation of many workers."""

from __future__ import annotations

import heapq
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.events.events import Intervals
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....audit.sampling.block_plan import SIDES, Plan
from ....audit.sampling.draw import count_hits, parts, plan_blocks
from ....audit.sampling.object_identity import versions
from ....audit.sampling.pickling import pack
from ....audit.sampling.sampler import as_sampler
from ....audit.sampling.tasks import CountBlocks
from ....mechanisms import LaplaceMechanism
from ..core.bench_json import Figures, Value, at_most, columns
from ..core.effort import Bench, Effort, Task, once, one_row_each
from ..core.timing import in_turns, timed
from .local_dask_cluster import local_cluster
from .memory import one_at_a_time

_WORKERS, _ROUNDS = 2, 3
_EVENT = Intervals(((0.0, float("inf")),))


# Mechanism, runs on each dataset, and runs of the quick form.
_AUDITED: dict[str, tuple[Any, int, int]] = {
    "laplace": (LaplaceMechanism(1.0), 10**8, 10**5),
    "one at a time": (one_at_a_time, 10**6, 10**4),
}
_MODES: dict[str, dict[str, Any]] = {"fixed size": {}, "sequential": {"sequential": True}}


def _backends(effort: Effort, name: str, mode: str) -> Figures:
    mechanism, runs, quick = _AUDITED[name]
    runs = effort.either(quick, runs)

    def audit(jobs: int | None) -> AuditResult:
        return check(
            mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, alpha=1e-6, seed=1, bits=False, jobs=jobs, **_MODES[mode]
        )

    results = []

    def under(backend: str) -> None:
        with joblib.parallel_config(backend, n_jobs=_WORKERS):
            results.append(audit(None))

    works: dict[str, Callable[[], Any]] = {name: partial(under, name) for name in ("threading", "loky", "dask")}
    works["alone"] = lambda: results.append(audit(1))
    with tempfile.TemporaryDirectory() as folder, local_cluster(Path(folder), _WORKERS):
        seconds = in_turns(works, effort.either(1, _ROUNDS), warm_up=effort.either(0, 1))
    first = results[0]
    different = sum((one.counts, one.event, one.bound) != (first.counts, first.event, first.bound) for one in results)
    medians = {backend: statistics.median(taken) for backend, taken in seconds.items()}
    cells: dict[str, Value] = {"name": name, "mode": mode, "runs": runs, "different": different, **medians}
    return cells, [at_most("different results", different, 0)]


def _backend_tasks(effort: Effort) -> Iterator[Task]:
    for name in _AUDITED:
        for mode in effort.either(tuple(_MODES)[:1], tuple(_MODES)):
            if effort.wants(name) and (not effort.is_quick or name == "one at a time"):
                yield once(f"{name}, {mode}", _backends, effort, name, mode)


BACKENDS = Bench(
    name="backends",
    title="Threads, processes and a cluster",
    method=(
        f"The same audit on every backend of joblib, timed in turn; medians of {_ROUNDS} rounds after a warm-up round: "
        f"{_WORKERS} threads, {_WORKERS} loky processes, a dask cluster of a scheduler and {_WORKERS} worker processes "
        "on this machine, and one worker. Different results: audits whose counts, event or bound differ from those of "
        "the first audit."
    ),
    columns=columns(
        "mechanism = name | audit = mode | runs on each dataset = runs :,d | seconds with one worker = alone :.2f | "
        "seconds with threads = threading :.2f | seconds with loky = loky :.2f | seconds with dask = dask :.2f | "
        "different results = different"
    ),
    names=tuple(_AUDITED),
    tasks=_backend_tasks,
)


def _nothing(dataset: float, size: int, rng: np.random.Generator) -> Any:
    return np.zeros(size)


def _planned(mechanism: Any, jobs: int | None) -> Plan:
    return plan_blocks(as_sampler(mechanism), 0.0, 1.0, 1, jobs)


@cache
def _overhead(is_quick: bool) -> tuple[float, float, int]:
    """Return the seconds that a task costs client and scheduler, those of a phase of two tasks, and the tasks timed.

    The tasks draw a few zeros; the time of drawing is measured in this process and subtracted.
    """
    blocks = 32 if is_quick else 1 << 15
    plan = Plan(as_sampler(_nothing), 0.0, 1.0, 1, 1, None)

    def seconds(count: int) -> float:
        return timed(count_hits, plan, _EVENT, None, count)[1]  # blocks of one run

    with joblib.parallel_config("sequential"):
        alone = min(seconds(blocks) for _ in range(_ROUNDS))
    with (
        tempfile.TemporaryDirectory() as folder,
        local_cluster(Path(folder), _WORKERS),
        joblib.parallel_config("dask"),
    ):
        seconds(16)
        many = statistics.median(seconds(blocks) for _ in range(1 if is_quick else _ROUNDS))
        lone = statistics.median(seconds(1) for _ in range(3 if is_quick else 15))
    return max(many - alone / _WORKERS, 0.0) / tasks_of(blocks), lone, tasks_of(blocks)


def tasks_of(blocks: int) -> int:
    """Return the number of tasks of a main phase with `blocks` blocks on each side."""
    return 2 * sum(1 for _ in parts([1] * blocks, 2 * blocks))


def _tasks_for(plan: Plan, blocks: int) -> list[CountBlocks]:
    """Return the tasks of a main phase with `blocks` blocks on each side."""
    sizes = [plan.block] * blocks
    return [
        CountBlocks(_EVENT, (), None, side, first, part) for first, part in parts(sizes, 2 * blocks) for side in SIDES
    ]


def _bytes_sent(plan: Plan, tasks: list[CountBlocks], mechanism: Any) -> int:
    """Return the bytes of the data that all tasks share."""
    return len(pack((plan, tasks, versions()), [mechanism], "", is_far=True).content)


def _sent(effort: Effort, place: int, name: str) -> Figures:
    mechanism, runs, _ = _AUDITED[name]
    plan = _planned(mechanism, 1)
    tasks = _tasks_for(plan, -(-runs // plan.block))
    counted, seconds = timed(tasks[0], plan)
    cost, lone, tasks_timed = _overhead(effort.is_quick)
    return {
        "name": name,
        "runs": runs,
        "tasks": len(tasks),
        "task_seconds": seconds,
        "once": _bytes_sent(plan, tasks, mechanism),
        "result": len(pack((0, counted), [], name).content),
        "cost_ms": 1e3 * cost,
        "lone_ms": 1e3 * lone,
        "timed": tasks_timed,
    }, []


SENT = Bench(
    name="sent",
    title="Bytes sent and cost of a task",
    method=(
        "Main phase of an audit: number of tasks and seconds of the first task in this process; bytes of mechanism, "
        "datasets and tasks, which are sent to the cluster once and from worker to worker; bytes of one pickled result "
        "(a task itself is a number and the names of its data). Cost of a task: seconds of client and scheduler for "
        "each of thousands of tasks that draw a few zeros, with two workers on this machine, less the time of drawing; "
        "median of three. Smallest phase: two such tasks, from start to end, median of 15."
    ),
    columns=columns(
        "mechanism = name | runs on each dataset = runs :,d | tasks :,d | seconds of a task = task_seconds :.4f | "
        "bytes sent once = once :,d | bytes of a result = result :,d | timed tasks = timed :,d | "
        "cost of a task, ms = cost_ms :.2f | smallest phase, ms = lone_ms :.0f"
    ),
    names=tuple(_AUDITED),
    tasks=one_row_each(_AUDITED, _sent),
)


def efficiency(tasks: int, workers: int, *, seconds: float, cost: float, start: float, spread: float = 0.1) -> float:
    """Return the share of the workers' time that is work, by simulation; 1 if no worker ever waits.

    The scheduler assigns tasks one after the other, each in `cost` seconds, to the first free worker. The first task of
    a worker starts `start` seconds later.

    Parameters
    ----------
    tasks, workers : int
    seconds : float
        Mean duration of a task; they are normal with standard deviation `spread` times the mean, from a fixed seed.

    Examples
    --------
    >>> efficiency(1000, 10, seconds=1.0, cost=0.0, start=0.0, spread=0.0)
    1.0
    >>> round(efficiency(1000, 1000, seconds=1.0, cost=0.001, start=0.0, spread=0.0), 2)
    0.5
    """
    lengths = seconds * np.maximum(1.0 + spread * np.random.default_rng(0).normal(size=tasks), 0.0)
    free = [start] * workers
    handed = 0.0
    for length in lengths:
        handed = max(handed + cost, free[0])
        heapq.heapreplace(free, handed + float(length))
    return float(lengths.sum() / (workers * max(free)))


_SPREADS = (10, 100, 1000)
_EXPECTED = {"laplace": (10**9, 10**10, 10**11), "one at a time": (10**6, 10**7, 10**9)}
_BYTES_A_SECOND = 125e6  # network of the scheduler, 1 Gbit/s


def _expected(effort: Effort, name: str, runs: int) -> Figures:
    mechanism = _AUDITED[name][0]
    plan = _planned(mechanism, 1)
    tasks = _tasks_for(plan, -(-runs // plan.block))
    sizes = (plan.block,) * effort.either(1, 8)
    block_seconds = timed(CountBlocks(_EVENT, (), None, "x", 0, sizes), plan)[1] / len(sizes)
    cost, lone, _ = _overhead(effort.is_quick)
    content, work = _bytes_sent(plan, tasks, mechanism), block_seconds * sum(len(task.sizes) for task in tasks)
    cells: dict[str, Value] = {"name": name, "runs": runs, "tasks": len(tasks), "work": work, "once": content}
    for workers in _SPREADS:
        start = lone + workers * content / _BYTES_A_SECOND
        share = efficiency(len(tasks), workers, seconds=work / len(tasks), cost=cost, start=start)
        cells |= {f"share {workers}": share, f"seconds {workers}": work / (workers * share)}
    return cells, []


def _expected_tasks(effort: Effort) -> Iterator[Task]:
    for name, sizes in _EXPECTED.items():
        for runs in sizes[:1] if effort.is_quick else sizes:
            if effort.wants(name):
                yield once(f"{name}, {runs}", _expected, effort, name, runs)


EXPECTED = Bench(
    name="expected",
    title="Simulated efficiency of a cluster",
    method=(
        "Main phase of an audit of fixed size, simulated with the measured costs above. The scheduler assigns tasks "
        "one after the other to the first free worker; all workers first fetch the shared data one after the other "
        "over 1 Gbit/s; durations of tasks differ by 10%. Efficiency: seconds of work over workers times seconds of "
        "the phase."
    ),
    columns=(
        *columns(
            "mechanism = name | runs on each dataset = runs :,d | tasks :,d | seconds of work = work :,.0f | "
            "bytes sent once = once :,d"
        ),
        *(
            column
            for workers in _SPREADS
            for column in columns(
                f"efficiency with {workers:,} workers = share {workers} :.2f | "
                f"seconds with {workers:,} workers = seconds {workers} :,.1f"
            )
        ),
    ),
    names=tuple(_EXPECTED),
    tasks=_expected_tasks,
)
