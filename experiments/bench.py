"""The benchmark of cost: an audit beside drawing its noise alone."""

from __future__ import annotations

import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import joblib
import numpy as np
import scipy

from ..audit.check import check
from ..audit.claims import PureDP
from ..audit.mechanism import as_sampler
from ..audit.sampling import Plan, plan_blocks
from ..mechanisms import LaplaceMechanism


@dataclass(frozen=True, slots=True)
class Table:
    """A table with the sentence that says how it was measured; `str` is Markdown."""

    title: str
    method: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [f"# {self.title}", "", self.method, "", _row(self.header), _row(["---"] * len(self.header))]
        return "\n".join([*lines, *map(_row, self.rows)]) + "\n"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def cost(runs: int, jobs: int, repeat: int) -> Table:
    """Seconds of a Laplace audit against drawing the same noise with the same sampler and workers, taken in turns."""
    mechanism = LaplaceMechanism(1.0)
    plan = plan_blocks(as_sampler(mechanism), 0.0, 1.0, 1, jobs)
    timed: dict[str, Callable[[], None]] = {
        "audit": lambda: _audit(mechanism, runs, jobs),
        "same sampler, drawing alone": lambda: _spread(_draw, plan, runs, jobs),
        "Generator.laplace, drawing alone": lambda: _spread(_draw_laplace, plan, runs, jobs),
    }
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeat):
        for name, work in timed.items():
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
    rows = []
    for name, taken in seconds.items():
        ratios = [audit / other for audit, other in zip(seconds["audit"], taken, strict=True)]
        rows.append((name, f"{statistics.median(taken):.3f}", _spread_of(taken), f"{statistics.median(ratios):.2f}"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)
    method = (
        f"Laplace, epsilon 1, {runs:,} runs on each of two datasets, {jobs} workers (threads), median of {repeat} "
        f"rounds in which the three take turns. Peak memory of the one process: {memory:.0f} MiB. {machine()}"
    )
    return Table(
        "The cost of an audit beside the noise it draws",
        method,
        ("what", "median seconds", "least to most", "audit over this"),
        tuple(rows),
    )


def _audit(mechanism: LaplaceMechanism, runs: int, jobs: int) -> None:
    check(mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, jobs=jobs)


def _spread(work: Callable[[Plan, range], None], plan: Plan, runs: int, jobs: int) -> None:
    joblib.Parallel(n_jobs=jobs, prefer="threads")(
        joblib.delayed(work)(plan, blocks) for blocks in _tasks(2 * runs // plan.block)
    )


def _tasks(blocks: int) -> Iterator[range]:
    step = max(1, blocks // 256)
    return (range(first, min(first + step, blocks)) for first in range(0, blocks, step))


def _draw(plan: Plan, blocks: range) -> None:
    for number in blocks:
        plan.draw("main", "x", number, plan.block)


def _draw_laplace(plan: Plan, blocks: range) -> None:
    for number in blocks:
        np.random.default_rng([plan.seed, number]).laplace(size=plan.block)


def _spread_of(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def machine() -> str:
    """The sentence that says where something was measured."""
    return (
        f"Machine: {joblib.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}."
    )
