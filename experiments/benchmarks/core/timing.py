"""Seconds of calls, of works timed in turns, and of drawing noise alone, the yardstick of audits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import joblib

from ....audit.sampling.block_plan import Plan

_TASKS = 256

Drawing = Callable[[Plan, range], None]
T = TypeVar("T")


def timed(work: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """Return the result of a call and its seconds."""
    started = time.perf_counter()
    result = work(*arguments, **options)
    return result, time.perf_counter() - started


def in_turns(works: dict[str, Callable[[], Any]], rounds: int, *, warm_up: int = 1) -> dict[str, list[float]]:
    """Return the seconds of each work in each round; every round runs all works, and warm-up rounds are not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warm_up + rounds):
        for name, work in works.items():
            taken = timed(work)[1]
            if turn >= warm_up:
                seconds[name].append(taken)
    return seconds


def median_ratio(above: list[float], below: list[float]) -> float:
    """Return the median over rounds of the ratio of two works."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


def draw_blocks(plan: Plan, blocks: range) -> None:
    """Draw blocks with the sampler of the plan and discard them."""
    for number in blocks:
        plan.draw("main", "x" if number % 2 else "y", number, plan.block)


def draw_alone(
    plan: Plan,
    runs: int,
    jobs: int,
    prefer: Literal["threads", "processes"] = "threads",
    draw: Drawing = draw_blocks,
) -> None:
    """Draw as many outputs as an audit of `runs` runs, with `jobs` workers."""
    blocks = 2 * runs // plan.block
    step = max(1, blocks // _TASKS)
    parts = (range(first, min(first + step, blocks)) for first in range(0, blocks, step))
    joblib.Parallel(n_jobs=jobs, prefer=prefer)(joblib.delayed(draw)(plan, part) for part in parts)
