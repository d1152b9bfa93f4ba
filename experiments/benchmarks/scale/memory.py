"""Memory of audits with up to 10⁹ runs, apart, as the measured processes import it: it does not grow with them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.errors import OptionError
from ....audit.procedures.check import check
from ....mechanisms import LaplaceMechanism, RandomisedResponse
from ..core.bench_json import Figures, Value, at_most, columns, timed
from ..core.page import Bench, Effort, Task, once

_WORKERS = 2
_MOST_MIB = 400.0  # for each worker
_POLLED = 0.02  # seconds between two measurements of the processes


def _vectors(dataset: float, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.laplace(scale=10.0, size=(size, 10))


def one_at_a_time(dataset: float, rng: np.random.Generator) -> float:
    """Laplace noise that is drawn in Python, one output in a call."""
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
    "one at a time, in processes": _Subject(one_at_a_time, (10**5, 10**7)),
}
_QUICK = {"laplace": 10**5}


def audit(name: str, runs: int) -> None:
    """Run the audit whose memory is measured, in a separate process."""
    subject = _SUBJECTS[name]
    check(
        subject.mechanism,
        subject.x,
        subject.y,
        claim=PureDP(1.0),
        runs=runs,
        jobs=_WORKERS,
        alpha=1e-6,  # so that a true claim is hardly ever refuted early
        **dict(subject.options),
    )


def peak_memory(command: list[str]) -> float:
    """Return the peak resident memory of a process and its children in MiB; shared memory counts for each process.

    Raises
    ------
    OptionError
        If psutil is missing.
    """
    try:
        import psutil
    except ImportError as error:
        raise OptionError("psutil, which measures memory, is not installed; pip install psutil.") from error
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            now = 0
            try:
                for each in [root, *root.children(recursive=True)]:
                    now += each.memory_info().rss
            except psutil.NoSuchProcess:  # a process ended between two lines
                continue
            most = max(most, now)
            time.sleep(_POLLED)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return most / 2**20


def _memory_cells(effort: Effort, name: str, runs: int) -> Figures:
    code = f"from dpaudit.experiments.benchmarks.scale.memory import audit; audit({name!r}, {runs})"
    peak, seconds = timed(peak_memory, [sys.executable, "-c", code])
    each = peak / _WORKERS
    cells: dict[str, Value] = {"name": name, "runs": runs, "seconds": seconds, "peak": peak, "each": each}
    return cells, [at_most("MiB for each worker", each, _MOST_MIB)]


def _tasks(effort: Effort) -> Iterator[Task]:
    for name, subject in _SUBJECTS.items():
        for runs in effort.either((_QUICK[name],) if name in _QUICK else (), subject.runs):
            if effort.wants(name):
                yield once(f"{name}, {runs}", _memory_cells, effort, name, runs)


MEMORY = Bench(
    name="memory",
    title="Memory",
    method=(
        f"Audits of true claims with {_WORKERS} workers, each in a separate process. Peak of the summed resident "
        "memory of the process and its children, which includes Python and its libraries and counts shared memory for "
        "each process; and the peak over the number of workers. Threads share one process."
    ),
    columns=columns(
        "mechanism = name | runs on each dataset = runs :,d | seconds :.1f | peak MiB = peak :.0f | "
        "MiB for each worker = each :.0f"
    ),
    names=tuple(_SUBJECTS),
    tasks=_tasks,
)
