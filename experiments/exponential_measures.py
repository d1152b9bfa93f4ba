"""What is measured of selection mechanisms: the two halves of the loss, the slope, tails and single probabilities."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logit, logsumexp

from ..audit.errors import DatasetError
from ..audit.inference.binomial import clopper_pearson
from ..audit.inference.simultaneous import ratio_intervals
from ..audit.statements import Point, StatementResult
from .simulate import event_hits, outcome_counts


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
    """The slope of the log-probabilities in the utility against the stated one: fitted to all, and of single pairs.

    The first point is the fit by maximum likelihood, with half of alpha. Counts of a multinomial law with
    log-probabilities a + b u(r) are fitted as independent Poisson counts with that log mean: the likelihood in b is
    the same. Its interval holds the slopes b with n·KL(b̂ ‖ b) ≤ ln(2/alpha), KL the divergence of one run's law: by
    Chernoff's bound for an exponential family it misses with probability alpha at most, however few the runs.

    The other points, in the order of the candidates, are ln(p/p_best)/(u − u_best) of each candidate below the best:
    of the runs that chose either of the two, those with the candidate are binomial, so these limits are exact.

    References
    ----------
    Baker (1994), The multinomial-Poisson transformation. Boucheron, Lugosi & Massart (2013), Concentration
    inequalities, Section 2.2 (Chernoff's bound).
    """
    u = np.asarray(utilities, dtype=np.float64)
    counts = outcome_counts(mechanism, utilities, len(u), runs, seed=seed)
    points = [Point(at="the fit", **_fit(u, counts, alpha / 2), low=slope, high=slope)]
    best, below = int(u.argmax()), np.flatnonzero(u < u.max())
    for place in below:
        step = float(u[place] - u[best])
        hits, either = int(counts[place]), int(counts[place] + counts[best])
        values = (hits / max(either, 1), *_limits(hits, either, alpha / (2 * len(below))))
        estimate, upper, lower = (float(logit(value)) / step for value in values)
        at = f"utilities {u[place]:g} and {u[best]:g}"
        points.append(Point(at=at, estimate=estimate, lower=lower, upper=upper, low=slope, high=slope))
    return StatementResult(
        statement="The log-probability of a candidate grows with its utility at the stated rate.",
        quantity="slope",
        points=tuple(points),
        alpha=alpha,
        method="Poisson regression with log link (statsmodels), interval by Chernoff's bound on the likelihood ratio; "
        "exact limits of pairs' log odds",
        runs=runs,
        seed=seed,
        largest_width=slope,
    )


def _fit(u: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], alpha: float) -> dict[str, float]:
    """The slope in u of the log of the counts' means, with its interval, as fields of a point."""
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    seen = u[counts > 0]
    if seen.min() == seen.max() and seen[0] in (u.min(), u.max()):  # the likelihood grows without end
        return {"estimate": math.copysign(math.inf, seen[0] - u.mean()), "lower": -math.inf, "upper": math.inf}
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # With two candidates the fitted means are the counts, and nothing is left for a dispersion, which is not used.
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        fit = sm.GLM(counts, sm.add_constant(u - u.mean()), family=sm.families.Poisson()).fit(tol=1e-12)
    runs, mean, slope = float(counts.sum()), float(counts @ u / counts.sum()), float(fit.params[1])

    def beyond(other: float) -> float:
        """n·KL(slope ‖ other) less what the interval allows."""
        gap = (slope - other) * mean - float(logsumexp(slope * u)) + float(logsumexp(other * u))
        return runs * gap - math.log(2 / alpha)

    ends = []
    for side in (-1.0, 1.0):
        step = side / math.sqrt(runs)
        while beyond(slope + step) < 0:
            step *= 2
        ends.append(float(brentq(beyond, slope, slope + step)))
    return {"estimate": slope, "lower": ends[0], "upper": ends[1]}


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
        lower, upper = _limits(hits, runs, alpha / len(ts))
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
    lower, upper = _limits(hits, runs, alpha)
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
    lower, upper = _limits(hits, either, alpha)
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


def _limits(hits: int, runs: int, alpha: float) -> tuple[float, float]:
    """Two-sided limits of a probability; of none at all, 0 and 1."""
    if runs == 0:
        return 0.0, 1.0
    (lower, _), (upper, _) = clopper_pearson(hits, runs, alpha=alpha)
    return lower, upper
