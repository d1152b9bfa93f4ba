"""What is measured of selection mechanisms: the two halves of the loss, the slope, tails and single probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...audit.distribution_checks.check_slope import METHOD, slope_points
from ...audit.errors import DatasetError
from ...audit.inference.binomial_tails import probability_limits
from ...audit.inference.ratio_intervals import ratio_intervals
from ...audit.results.statement_result import Point, StatementResult
from ..cases.simulate import event_hits, outcome_counts


def loss_halves(
    mechanism: Any, x: Sequence[float], y: Sequence[float], half: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """The normaliser's part of the privacy loss and the candidates' own parts, the numerators', each against `half`.

    The loss ln p_x/p_y of the candidates whose utility is the same on both datasets is the normaliser's part alone;
    what the loss of others has beyond it is their own. Candidates that move alike are counted as one: a mean of ratios
    within a bound is within it.

    Raises
    ------
    DatasetError
        For datasets on which every utility moves.
    """
    moves, group = np.unique(np.subtract(y, x), return_inverse=True)
    still = moves == 0
    if not still.any():
        raise DatasetError("every utility moves, so no loss is the normaliser's alone; keep one candidate in place.")
    counts = [outcome_counts(mechanism, data, len(x), runs, seed=seed, stream=i) for i, data in enumerate((x, y))]
    hits = [np.bincount(group, weights=each).astype(np.int64) for each in counts]
    found = ratio_intervals(hits[0], runs, hits[1], runs, alpha=alpha)
    estimate, lower, upper = (float(ends[still][0]) for ends in (found.observed, found.lower, found.upper))
    points = [Point(at="the normaliser", estimate=estimate, lower=lower, upper=upper, low=-half, high=half)]
    points += [
        Point(
            at=f"numerators of utilities that move by {move:+g}",
            estimate=float(observed) - estimate,
            lower=float(low) - upper,
            upper=float(high) - lower,
            low=-half,
            high=half,
        )
        for move, observed, low, high in zip(moves, found.observed, found.lower, found.upper, strict=True)
        if move
    ]
    return StatementResult(
        statement=f"The numerator and the normaliser each lose at most {half:g}.",
        quantity="part of the loss",
        points=tuple(points),
        alpha=alpha,
        method="simultaneous intervals for the log ratios of candidates that move alike, and differences of their ends",
        runs=runs,
        seed=seed,
        largest_width=half,
    )


def fitted_slope(
    mechanism: Any, utilities: Sequence[float], slope: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """The slope of the log-probabilities in the utility against the stated one, see `slope_points`."""
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    return StatementResult(
        statement="The log-probability of a candidate grows with its utility at the stated rate.",
        quantity="slope",
        points=tuple(slope_points(u, counts, slope, alpha)),
        alpha=alpha,
        method=METHOD,
        runs=runs,
        seed=seed,
        largest_width=slope,
    )


def utility_tail(
    mechanism: Any,
    utilities: Sequence[float],
    epsilon: float,
    ts: Sequence[float],
    n_best: int,
    *,
    runs: int,
    alpha: float,
    seed: int,
) -> StatementResult:
    """Pr[u(output) ≤ OPT − (2Δ/ε)(ln(|R|/n_best) + t)] over e^{−t}, which is said to be at most 1, for each t; Δ = 1.

    With `n_best` the number of best candidates it is Theorem 3.11, with 1 its corollary.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem 3.11 and Corollary 3.12.
    """
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    points = []
    for t in ts:
        edge = u.max() - 2.0 / epsilon * (math.log(len(u) / n_best) + t)
        hits = int(counts[u <= edge].sum())
        lower, upper = probability_limits(hits, runs, alpha=alpha / len(ts))
        scale = math.exp(-t)
        points.append(
            Point(at=f"t = {t:g}", estimate=hits / runs / scale, lower=lower / scale, upper=upper / scale, high=1.0)
        )
    return StatementResult(
        statement="A utility (2/epsilon)(ln(|R|/|R_OPT|) + t) below the best has probability at most e^-t.",
        quantity="probability over e^-t",
        points=tuple(points),
        alpha=alpha,
        method="exact limits of each probability (Clopper-Pearson), alpha shared equally",
        runs=runs,
        seed=seed,
        largest_width=0.5,
    )


def candidate_probability(
    mechanism: Any, dataset: Any, candidate: Any, low: float, high: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """The probability of one candidate, an output of the mechanism, against the least and the largest stated of it."""
    hits = int(event_hits(mechanism, dataset, lambda outputs: np.asarray(outputs) == candidate, runs, seed=seed)[0])
    lower, upper = probability_limits(hits, runs, alpha=alpha)
    return StatementResult(
        statement=f"Candidate {candidate} is chosen with the stated probability.",
        quantity="probability",
        points=(Point(estimate=hits / runs, lower=lower, upper=upper, low=low, high=high),),
        alpha=alpha,
        method="exact limits of a probability (Clopper-Pearson)",
        runs=runs,
        seed=seed,
        largest_width=0.02,
    )


def more_often(
    mechanism: Any, dataset: Any, often: Any, seldom: Any, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """That one output comes at least as often as another: its share of the runs that gave either is ½ or more."""
    pair = np.array([often, seldom])
    found = event_hits(mechanism, dataset, lambda outputs: np.equal.outer(outputs, pair), runs, seed=seed)
    hits, either = int(found[0]), int(found.sum())
    lower, upper = probability_limits(hits, either, alpha=alpha)
    return StatementResult(
        statement=f"{often} is drawn at least as often as {seldom}.",
        quantity="share",
        points=(Point(estimate=hits / max(either, 1), lower=lower, upper=upper, low=0.5, high=1.0),),
        alpha=alpha,
        method="exact limits of a probability (Clopper-Pearson), given the runs that gave either",
        runs=runs,
        seed=seed,
        largest_width=0.2,
    )
