"""Works timed against each other, in turns, and drawing noise alone, which audits are timed against."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Literal

import joblib

from ....audit.sampling.block_plan import Plan

_TASKS = 256

Drawing = Callable[[Plan, range], None]


def in_turns(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each work in each round, in which all take turns, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if turn > 0:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def median_ratio(above: list[float], below: list[float]) -> float:
    """The median of the ratios in each round."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


def draw_blocks(plan: Plan, blocks: range) -> None:
    """Blocks of a plan's own sampler, which are thrown away."""
    for number in blocks:
        plan.draw("main", "x" if number % 2 else "y", number, plan.block)


def draw_alone(
    plan: Plan,
    runs: int,
    jobs: int,
    prefer: Literal["threads", "processes"] = "threads",
    draw: Drawing = draw_blocks,
) -> None:
    """As many outputs as an audit of so many runs takes, with as many workers."""
    blocks = 2 * runs // plan.block
    step = max(1, blocks // _TASKS)
    parts = (range(first, min(first + step, blocks)) for first in range(0, blocks, step))
    joblib.Parallel(n_jobs=jobs, prefer=prefer)(joblib.delayed(draw)(plan, part) for part in parts)
