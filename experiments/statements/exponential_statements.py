"""Statements about selection mechanisms: the two halves of the loss, the slope, tails and single probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...audit.distribution_checks.check_slope import METHOD, slope_points
from ...audit.errors import DatasetError
from ...audit.inference.ratio_intervals import ratio_intervals
from ...audit.results.statement_result import Point, StatementResult
from ..cases.simulate import event_hits, outcome_counts, proportion, proportion_result


def loss_halves(
    mechanism: Any, x: Sequence[float], y: Sequence[float], half: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the normaliser and the numerators each contribute at most `half` to the privacy loss.

    The loss ln p_x/p_y of a candidate with the same utility on both datasets is the contribution of the normaliser;
    the difference between the loss of another candidate and it is the contribution of that numerator. Candidates with
    the same change of utility are counted as one: a mean of ratios within a bound is within the bound.

    Raises
    ------
    DatasetError
        If every utility changes.
    """
    moves, group = np.unique(np.subtract(y, x), return_inverse=True)
    still = moves == 0
    if not still.any():
        raise DatasetError("every utility changes, so no loss isolates the normaliser; keep one candidate in place.")
    counts = [outcome_counts(mechanism, data, len(x), runs, seed=seed, stream=i) for i, data in enumerate((x, y))]
    hits = [np.bincount(group, weights=each).astype(np.int64) for each in counts]
    found = ratio_intervals(hits[0], runs, hits[1], runs, alpha=alpha)
    estimate, lower, upper = (float(ends[still][0]) for ends in (found.observed, found.lower, found.upper))
    points = [Point(at="the normaliser", estimate=estimate, lower=lower, upper=upper, low=-half, high=half)]
    points += [
        Point(at=f"numerators of utilities that change by {move:+g}", estimate=float(observed) - estimate,
            lower=float(low) - upper, upper=float(high) - lower, low=-half, high=half)
        for move, observed, low, high in zip(moves, found.observed, found.lower, found.upper, strict=True)
        if move
    ]  # fmt: skip
    return StatementResult(
        statement=f"The numerator and the normaliser each contribute at most {half:g} to the privacy loss.",
        quantity="part of the loss",
        points=tuple(points),
        alpha=alpha,
        method="simultaneous intervals for the log ratios of groups of candidates, and differences of their ends",
        runs=runs,
        seed=seed,
        largest_width=half,
    )


def fitted_slope(
    mechanism: Any, utilities: Sequence[float], slope: float, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check the slope of the log-probabilities in the utility, see `slope_points`."""
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    return StatementResult(
        statement="The log-probability of a candidate is linear in its utility with the stated slope.",
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
    """Check that Pr[u(output) ≤ OPT − (2Δ/ε)(ln(|R|/n_best) + t)] is at most e^{−t} for each t, at Δ = 1.

    This is Theorem 3.11 if `n_best` is the number of best candidates, and its corollary if `n_best` is 1.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem 3.11 and Corollary 3.12.
    """
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    points = []
    for t in ts:
        edge = u.max() - 2.0 / epsilon * (math.log(len(u) / n_best) + t)
        hits, each = int(counts[u <= edge].sum()), alpha / len(ts)
        points.append(proportion(hits, runs, each, high=1.0, unit=math.exp(t), at=f"t = {t:g}"))
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
    """Check that the probability of one candidate lies in [low, high]."""
    hits = int(event_hits(mechanism, dataset, lambda outputs: np.asarray(outputs) == candidate, runs, seed=seed)[0])
    statement = f"The probability of candidate {candidate} is the stated one."
    settings: dict[str, Any] = {"runs": runs, "alpha": alpha, "seed": seed, "largest_width": 0.02}
    return proportion_result(statement, "probability", (low, high), hits, **settings)


def more_often(
    mechanism: Any, dataset: Any, often: Any, seldom: Any, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the output `often` has a share of at least ½ of the runs that give `often` or `seldom`."""
    pair = np.array([often, seldom])
    found = event_hits(mechanism, dataset, lambda outputs: np.equal.outer(outputs, pair), runs, seed=seed)
    return proportion_result(
        f"{often} is drawn at least as often as {seldom}.",
        "share",
        (0.5, 1.0),
        int(found[0]),
        runs=runs,
        alpha=alpha,
        seed=seed,
        largest_width=0.2,
        trials=int(found.sum()),
        method="exact limits of a probability (Clopper-Pearson), given the runs with either output",
    )
