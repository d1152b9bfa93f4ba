"""Memory of audits of up to a thousand million runs: it does not grow with their number."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.errors import OptionError
from ....audit.procedures.check import check
from ....mechanisms import LaplaceMechanism, RandomisedResponse
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once

_WORKERS = 2
_MOST_MIB = 400.0  # of each worker
_POLLED = 0.02  # seconds between two looks at the processes


def _vectors(dataset: float, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.laplace(scale=10.0, size=(size, 10))


def _single(dataset: float, rng: np.random.Generator) -> float:
    return dataset + rng.laplace()


@dataclass(frozen=True, slots=True)
class _Subject:
    mechanism: Callable[..., Any] | Any
    runs: tuple[int, ...]
    x: Any = 0.0
    y: Any = 1.0
    options: tuple[tuple[str, Any], ...] = ()


_SUBJECTS = {
    "laplace": _Subject(LaplaceMechanism(1.0), (10**7, 10**9)),
    "laplace, sequential": _Subject(LaplaceMechanism(1.0), (10**7, 10**9), options=(("sequential", True),)),
    "laplace, 32 cells": _Subject(LaplaceMechanism(1.0), (10**7, 10**9), options=(("cells", 32),)),
    "randomised response": _Subject(RandomisedResponse(1.0), (10**7, 10**9), 0, 1),
    "vectors of 10": _Subject(_vectors, (10**6, 10**8)),
    "one at a time, in processes": _Subject(_single, (10**5, 10**7)),
}
_QUICK = {"laplace": 10**5}


def audit(name: str, runs: int) -> None:
    """The audit whose memory is taken, for a process of its own."""
    subject = _SUBJECTS[name]
    check(
        subject.mechanism,
        subject.x,
        subject.y,
        claim=PureDP(1.0),
        runs=runs,
        jobs=_WORKERS,
        alpha=1e-6,  # a true claim should be audited to the end
        **dict(subject.options),
    )


def peak_memory(command: list[str]) -> float:
    """Largest sum of the resident memory of a process and all that it started, in MiB.

    What several processes share is counted for each.

    Raises
    ------
    OptionError
        Without psutil.
    """
    try:
        import psutil
    except ImportError as error:
        raise OptionError("memory is taken by psutil; pip install psutil, or dpaudit[test].") from error
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            now = 0
            try:
                for each in [root, *root.children(recursive=True)]:
                    now += each.memory_info().rss
            except psutil.NoSuchProcess:  # ended between two lines
                continue
            most = max(most, now)
            time.sleep(_POLLED)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return most / 2**20


def _cells(effort: Effort, name: str, runs: int) -> tuple[dict[str, Value], list[Target]]:
    code = f"from dpaudit.experiments.bench.scale.memory import audit; audit({name!r}, {runs})"
    started = time.perf_counter()
    peak = peak_memory([sys.executable, "-c", code])
    cells: dict[str, Value] = {
        "name": name,
        "runs": runs,
        "seconds": time.perf_counter() - started,
        "peak": peak,
        "each": peak / _WORKERS,
    }
    return cells, [Target(what="MiB a worker", value=peak / _WORKERS, sense="<=", limit=_MOST_MIB)]


def _tasks(effort: Effort) -> Iterator[Task]:
    for name, subject in _SUBJECTS.items():
        for runs in effort.either((_QUICK[name],) if name in _QUICK else (), subject.runs):
            if effort.wants(name):
                yield once(f"{name}, {runs}", _cells, effort, name, runs)


MEMORY = Bench(
    name="memory",
    title="Memory",
    method=(
        f"Audits of true claims with {_WORKERS} workers, each in a process of its own: the largest sum of the resident "
        "memory of that process and of those it started, Python and its libraries included, what they share counted "
        "for each; and that over the number of workers. Threads work within one process."
    ),
    columns=(
        Column("mechanism", "name"),
        Column("runs on each dataset", "runs", ",d"),
        Column("seconds", "seconds", ".1f"),
        Column("MiB", "peak", ".0f"),
        Column("MiB a worker", "each", ".0f"),
    ),
    names=tuple(_SUBJECTS),
    tasks=_tasks,
)
