"""A dask cluster: the same counts, what is sent, what a task costs, and what that means for a thousand workers."""

from __future__ import annotations

import heapq
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.events.events import Intervals
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....audit.sampling.block_plan import SIDES, Plan
from ....audit.sampling.draw import count_hits, parts, plan_blocks
from ....audit.sampling.pickling import pack
from ....audit.sampling.provenance import versions
from ....audit.sampling.sampler import as_sampler
from ....audit.sampling.tasks import CountBlocks
from ....mechanisms import LaplaceMechanism
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once
from .local_dask_cluster import local_cluster

_WORKERS, _ROUNDS = 2, 3
_EVENT = Intervals(((0.0, float("inf")),))


def _single(dataset: float, rng: np.random.Generator) -> float:
    return dataset + rng.laplace()


# Mechanism, runs on each dataset, and runs of the quick form.
_AUDITED: dict[str, tuple[Any, int, int]] = {
    "laplace": (LaplaceMechanism(1.0), 10**8, 10**5),
    "one at a time": (_single, 10**6, 10**4),
}
_MODES: dict[str, dict[str, Any]] = {"fixed size": {}, "sequential": {"sequential": True}}


def _backends(effort: Effort, name: str, mode: str) -> tuple[dict[str, Value], list[Target]]:
    mechanism, runs, quick = _AUDITED[name]
    runs = effort.either(quick, runs)

    def audit(jobs: int | None) -> AuditResult:
        return check(
            mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, alpha=1e-6, seed=1, bits=False, jobs=jobs, **_MODES[mode]
        )

    def under(backend: str) -> Callable[[], AuditResult]:
        def work() -> AuditResult:
            with joblib.parallel_config(backend, n_jobs=_WORKERS):
                return audit(None)

        return work

    works = {backend: under(backend) for backend in ("threading", "loky", "dask")} | {"alone": lambda: audit(1)}
    seconds: dict[str, list[float]] = {backend: [] for backend in works}
    results = []
    with tempfile.TemporaryDirectory() as folder, local_cluster(Path(folder), _WORKERS):
        for turn in range(effort.either(1, _ROUNDS + 1)):
            for backend, work in works.items():
                started = time.perf_counter()
                results.append(work())
                if turn > 0 or effort.is_quick:
                    seconds[backend].append(time.perf_counter() - started)
    different = sum(
        (one.counts, one.event, one.bound) != (results[0].counts, results[0].event, results[0].bound) for one in results
    )
    medians: dict[str, Value] = {backend: statistics.median(taken) for backend, taken in seconds.items()}
    cells = {"name": name, "mode": mode, "runs": runs, "different": different} | medians
    return cells, [Target(what="different", value=float(different), sense="<=", limit=0.0)]


def _backend_tasks(effort: Effort) -> Iterator[Task]:
    for name in _AUDITED:
        for mode in effort.either(tuple(_MODES)[:1], tuple(_MODES)):
            if effort.wants(name) and (not effort.is_quick or name == "one at a time"):
                yield once(f"{name}, {mode}", _backends, effort, name, mode)


BACKENDS = Bench(
    name="backends",
    title="Threads, processes and a cluster",
    method=(
        f"The same audit on every backend of joblib, in turns after a round to warm up, medians of {_ROUNDS} rounds: "
        f"{_WORKERS} threads, {_WORKERS} processes of loky's, a dask cluster of a scheduler and {_WORKERS} worker "
        "processes on this machine, and one worker. Different: audits whose counts, event or bound are not the first's."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("audit", "mode"),
        Column("runs on each dataset", "runs", ",d"),
        Column("seconds, alone", "alone", ".2f"),
        Column("threads", "threading", ".2f"),
        Column("loky", "loky", ".2f"),
        Column("dask", "dask", ".2f"),
        Column("different", "different"),
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
    """Seconds that a task costs the client and the scheduler, seconds of a phase of two, and tasks timed.

    Of tasks that draw a few zeros: what they take by themselves is told by how long they take here, and subtracted.
    """
    blocks = 32 if is_quick else 1 << 15
    plan = Plan(as_sampler(_nothing), 0.0, 1.0, 1, 1, None)

    def seconds(count: int) -> float:
        started = time.perf_counter()
        count_hits(plan, _EVENT, None, count)  # blocks of one run
        return time.perf_counter() - started

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
    """Tasks into which a main phase of so many blocks on each side is cut."""
    return 2 * sum(1 for _ in parts([1] * blocks, 2 * blocks))


def _tasks_for(plan: Plan, blocks: int) -> list[CountBlocks]:
    """The tasks of a main phase of so many blocks on each side."""
    sizes = [plan.block] * blocks
    return [
        CountBlocks(_EVENT, None, None, side, first, part) for first, part in parts(sizes, 2 * blocks) for side in SIDES
    ]


def _bytes_sent(plan: Plan, tasks: list[CountBlocks], mechanism: Any) -> int:
    """Of what all tasks share."""
    return len(pack((plan, tasks, versions()), [mechanism], "", is_far=True).content)


def _sent(effort: Effort, name: str) -> tuple[dict[str, Value], list[Target]]:
    mechanism, runs, _ = _AUDITED[name]
    plan = _planned(mechanism, 1)
    tasks = _tasks_for(plan, -(-runs // plan.block))
    started = time.perf_counter()
    counted = tasks[0](plan)
    seconds = time.perf_counter() - started
    cost, lone, timed = _overhead(effort.is_quick)
    cells: dict[str, Value] = {
        "name": name,
        "runs": runs,
        "tasks": len(tasks),
        "task_seconds": seconds,
        "once": _bytes_sent(plan, tasks, mechanism),
        "result": len(pack((0, counted), [], name).content),
        "cost_ms": 1e3 * cost,
        "lone_ms": 1e3 * lone,
        "timed": timed,
    }
    return cells, []


def _sent_tasks(effort: Effort) -> Iterator[Task]:
    for name in _AUDITED:
        if effort.wants(name):
            yield once(name, _sent, effort, name)


SENT = Bench(
    name="sent",
    title="What is sent, and what a task costs",
    method=(
        "Of the main phase: the tasks that it is cut into and the seconds of the first of them here; bytes of "
        "mechanism, datasets and tasks, which go to the cluster once and from worker to worker; bytes of one result, "
        "pickled (a task itself is a number and the names of what it needs). Cost: seconds of client and scheduler for "
        "each of thousands of tasks that draw a few zeros, with two workers on this machine, less what the drawing "
        "takes; median of three. Lone: a phase of two such tasks, from its start to its end, median of 15."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("runs on each dataset", "runs", ",d"),
        Column("tasks", "tasks", ",d"),
        Column("seconds of a task", "task_seconds", ".4f"),
        Column("bytes sent once", "once", ",d"),
        Column("bytes of a result", "result", ",d"),
        Column("tasks timed", "timed", ",d"),
        Column("cost of a task, ms", "cost_ms", ".2f"),
        Column("lone phase, ms", "lone_ms", ".0f"),
    ),
    names=tuple(_AUDITED),
    tasks=_sent_tasks,
)


def efficiency(tasks: int, workers: int, *, seconds: float, cost: float, start: float, spread: float = 0.1) -> float:
    """Share of the workers' time that is work, by simulation: 1 if none ever waits.

    The scheduler hands out a task in `cost` seconds, one after the other, to the worker that is free first; a worker's
    first task comes after `start` more seconds.

    Parameters
    ----------
    tasks, workers : int
    seconds : float
        Of a task, on average; they differ by `spread` of it (standard deviation, normal, seeded).

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
_BYTES_A_SECOND = 125e6  # of the scheduler's network, 1 Gbit/s


def _expected(effort: Effort, name: str, runs: int) -> tuple[dict[str, Value], list[Target]]:
    mechanism = _AUDITED[name][0]
    plan = _planned(mechanism, 1)
    tasks = _tasks_for(plan, -(-runs // plan.block))
    sizes = (plan.block,) * effort.either(1, 8)
    started = time.perf_counter()
    CountBlocks(_EVENT, None, None, "x", 0, sizes)(plan)
    block_seconds = (time.perf_counter() - started) / len(sizes)
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
    title="What to expect of a cluster",
    method=(
        "A simulation with the costs measured above: tasks are handed out one after the other, each to the worker that "
        "is free first; all workers first fetch what is sent once, one after the other over 1 Gbit/s; tasks differ by "
        "10%. Of the main phase of an audit of fixed size; efficiency is work over workers times time."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("runs on each dataset", "runs", ",d"),
        Column("tasks", "tasks", ",d"),
        Column("seconds of work", "work", ",.0f"),
        Column("bytes sent once", "once", ",d"),
        *(
            column
            for workers in _SPREADS
            for column in (
                Column(f"efficiency, {workers:,} workers", f"share {workers}", ".2f"),
                Column("seconds", f"seconds {workers}", ",.1f"),
            )
        ),
    ),
    names=tuple(_EXPECTED),
    tasks=_expected_tasks,
)
