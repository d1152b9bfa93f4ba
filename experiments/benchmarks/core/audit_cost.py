"""Cost of an audit relative to drawing its noise alone."""

from __future__ import annotations

import platform
import resource
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np
import scipy

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ....audit.sampling.block_plan import Plan
from ....audit.sampling.draw import plan_blocks
from ....audit.sampling.sampler import as_sampler
from ....mechanisms import LaplaceMechanism
from .timing import draw_alone, in_turns, median_ratio


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a description of its method; `str` returns Markdown."""

    title: str
    method: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [f"# {self.title}", "", self.method, "", _row(self.header), _row(["---"] * len(self.header))]
        return "\n".join([*lines, *map(_row, self.rows)]) + "\n"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    # Two brackets in a row would be a link.
    return "| " + " | ".join(cell.replace("|", "\\|").replace("][", "]\\[") for cell in cells) + " |"


def cost(runs: int, jobs: int, repeat: int) -> Table:
    """Return the seconds of a Laplace audit and of drawing the same noise with the same workers, timed in turns."""
    mechanism = LaplaceMechanism(1.0)
    plan = plan_blocks(as_sampler(mechanism), 0.0, 1.0, 1, jobs)
    works: dict[str, Callable[[], Any]] = {
        "audit": partial(check, mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, jobs=jobs),
        "drawing alone, same sampler": partial(draw_alone, plan, runs, jobs),
        "drawing alone, Generator.laplace": partial(draw_alone, plan, runs, jobs, draw=_draw_laplace),
    }
    seconds = in_turns(works, repeat)
    rows = []
    for name, taken in seconds.items():
        ratio = median_ratio(seconds["audit"], taken)
        rows.append((name, f"{statistics.median(taken):.3f}", _spread_of(taken), f"{ratio:.2f}"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)
    method = (
        f"Laplace noise, ε = 1, {runs:,} runs on each of two datasets, {jobs} worker threads. Medians of {repeat} "
        "rounds after a warm-up round; each round times the three rows in turn. Ratio: seconds of the audit over those "
        f"of the row. Peak memory of the process: {memory:.0f} MiB. {machine()}"
    )
    return Table(
        "Cost of an audit relative to drawing its noise",
        method,
        ("work", "median seconds", "range of seconds", "ratio"),
        tuple(rows),
    )


def _draw_laplace(plan: Plan, blocks: range) -> None:
    for number in blocks:
        np.random.default_rng([plan.seed, number]).laplace(size=plan.block)


def _spread_of(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def machine() -> str:
    """Return a sentence that describes this machine."""
    return (
        f"Machine: {joblib.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}."
    )
