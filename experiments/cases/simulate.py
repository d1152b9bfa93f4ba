"""Blocks of a mechanism's outputs, for statements that need more than the counts of one event."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.errors import OptionError
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import probability_limits
from ...audit.results.statement_result import Point, StatementResult
from ...audit.sampling.sampler import as_sampler

_BLOCK = 1 << 17


def blocks(mechanism: Any, dataset: Any, runs: int, *, seed: int, stream: int) -> Iterator[Outputs]:
    """Yield blocks with `runs` independent outputs in total; different streams are independent."""
    if runs < 1:
        raise OptionError(f"runs={runs!r} is not a number of runs; use 1 or more.", runs=runs)
    sampler = as_sampler(mechanism, None)
    for number, first in enumerate(range(0, runs, _BLOCK)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, number)))
        yield sampler.draw(dataset, min(_BLOCK, runs - first), rng)


def outcome_counts(
    mechanism: Any, dataset: Any, n_outcomes: int, runs: int, *, seed: int, stream: int = 0
) -> npt.NDArray[np.int64]:
    """Return how often each of the outcomes 0 … n_outcomes − 1 occurred, shape (n_outcomes,)."""
    total = np.zeros(n_outcomes, dtype=np.int64)
    for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=stream):
        total += np.bincount(np.asarray(outputs, dtype=np.int64), minlength=n_outcomes)
    return total


def event_counts(
    mechanism: Any,
    dataset: Any,
    events: Callable[[Outputs], npt.NDArray[np.bool_]],
    runs: int,
    *,
    seed: int,
    stream: int = 0,
) -> npt.NDArray[np.int64]:
    """Return the counts of each event; `events` maps a block to booleans, shape (block,) or (block, n_events)."""
    total: Any = 0
    for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=stream):
        total = total + events(outputs).sum(axis=0, dtype=np.int64)
    return np.atleast_1d(np.asarray(total, dtype=np.int64))


# Results of statements about probabilities, with exact Clopper-Pearson limits.


def proportion(
    counts: int,
    trials: int,
    alpha: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    unit: float = 1.0,
    at: str = "",
) -> Point:
    """Return `unit` times the share of counts with its limits; `low` and `high` are the stated range."""
    lower, upper = probability_limits(counts, trials, alpha=alpha)
    estimate = unit * counts / max(trials, 1)
    return Point(at=at, estimate=estimate, lower=unit * lower, upper=unit * upper, low=low, high=high)


def proportion_result(
    statement: str,
    quantity: str,
    stated: tuple[float, float],
    counts: int,
    *,
    runs: int,
    alpha: float,
    seed: int,
    largest_width: float,
    trials: int | None = None,
    method: str = "exact limits of a probability (Clopper-Pearson)",
) -> StatementResult:
    """Return the result for one probability, whose trials are the runs unless `trials` is given."""
    point = proportion(counts, runs if trials is None else trials, alpha, low=stated[0], high=stated[1])
    return StatementResult(
        statement=statement,
        quantity=quantity,
        points=(point,),
        alpha=alpha,
        method=method,
        runs=runs,
        seed=seed,
        largest_width=largest_width,
    )
