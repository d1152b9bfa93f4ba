"""Results of statements about probabilities, with exact Clopper-Pearson limits."""

from __future__ import annotations

import math

from ...audit.inference.binomial_tails import probability_limits
from ...audit.results.statement_result import Point, StatementResult


def proportion(
    hits: int,
    trials: int,
    alpha: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    unit: float = 1.0,
    at: str = "",
) -> Point:
    """Return `unit` times the share of hits with its limits; `low` and `high` are the stated range."""
    lower, upper = probability_limits(hits, trials, alpha=alpha)
    estimate = unit * hits / max(trials, 1)
    return Point(at=at, estimate=estimate, lower=unit * lower, upper=unit * upper, low=low, high=high)


def proportion_result(
    statement: str,
    quantity: str,
    stated: tuple[float, float],
    hits: int,
    *,
    runs: int,
    alpha: float,
    seed: int,
    largest_width: float,
    trials: int | None = None,
    method: str = "exact limits of a probability (Clopper-Pearson)",
) -> StatementResult:
    """Return the result for one probability, whose trials are the runs unless `trials` is given."""
    point = proportion(hits, runs if trials is None else trials, alpha, low=stated[0], high=stated[1])
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
