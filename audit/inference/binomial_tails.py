"""Upper bounds on binomial tails for matrices of counts, and exact limits for a probability.

Every tail is rounded upward. For a small variance it is the sum of its terms; for a larger variance it is the normal
bound of Zubkov & Serov (2013), A complete proof of universal inequalities for the distribution function of the
binomial distribution, Theorem 1, which is off by less than one count: .01 standard errors at the default switch.

Proof: docs/proofs/binomial.md
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy
from numpy.lib.stride_tricks import sliding_window_view

Array = npt.NDArray[np.float64]

NORMAL_FROM = 1e4
"""Variance from which the normal bound is used."""

# Standard deviations summed on each side, and what this omits at most, with 30 counts more (Bernstein).
_REACH, _REST = 7.5, 1e-12
FAR, BEYOND = 9.0, 40.0
"""A count is further from its mean than so many standard deviations and counts with probability < 1e-17 (Bernstein)."""
CACHED = 1 << 15
"""Numbers of an array in one step, which fit into a processor's cache: four times as fast as a single step."""
ROUNDING = 1e-9
"""Relative; exceeds the rounding errors of sums and of ndtr (below 1e-11), and those of the inverse beta functions.

So two numbers that differ by less count as equal.
"""


def upper_tail(counts: Array, runs: int, p: Array, p_complement: Array, *, normal_from: float = NORMAL_FROM) -> Array:
    """Return upper bounds on Pr[Bin(runs, p) ≥ counts] in [0, 1], shape (rows, columns), nonincreasing in `counts`.

    Counts are whole numbers, also below 0 or above `runs`; each row has a probability and its complement. From the
    variance `normal_from` on, the normal bound replaces the slower sum.
    """
    bound = np.empty(counts.shape)
    small = runs * p * p_complement < normal_from
    for which, tail in ((np.flatnonzero(small), _summed_tail), (np.flatnonzero(~small), _normal_tail)):
        for some in row_slices(len(which), counts.shape[1]):
            rows = which[some]
            bound[rows] = tail(counts[rows], runs, p[rows], p_complement[rows])
    bound *= 1.0 + ROUNDING
    np.minimum(bound, 1.0, out=bound)
    bound[counts <= 0] = 1.0
    bound[counts > runs] = 0.0
    return bound


def row_slices(rows: int, columns: int) -> list[slice]:
    """Return slices of the rows of a large matrix, each small enough for a processor's cache."""
    at_once = max(1, CACHED // max(columns, 1))
    return [slice(start, start + at_once) for start in range(0, rows, at_once)]


def varied_upper_tail(
    counts: Array, runs: Array, p: Array, p_complement: Array, is_small: npt.NDArray[np.bool_]
) -> Array:
    """Return `upper_tail` for runs that differ between the columns: counts nondecreasing, runs nonincreasing in a row.

    In rows that `is_small` names, the incomplete beta function replaces the normal bound, which is off by less than one
    count, where it is neither 0 nor 1.
    """
    bound = _normal_tail(counts, runs, p, p_complement)
    bound *= 1.0 + ROUNDING
    is_near = is_small[:, None] & (bound > _REST) & (bound < 1.0 - _REST) & (counts > 0.0) & (counts <= runs)
    near_p = np.broadcast_to(p[:, None], counts.shape)[is_near]
    exact = scipy.special.betainc(counts[is_near], runs[is_near] - counts[is_near] + 1.0, near_p)
    bound[is_near] = np.minimum(bound[is_near], exact * (1.0 + ROUNDING))
    np.minimum(bound, 1.0, out=bound)
    bound[counts <= 0] = 1.0
    bound[counts > runs] = 0.0
    return bound


def _normal_tail(counts: Array, runs: int | Array, p: Array, p_complement: Array) -> Array:
    mean, rest = (np.maximum(runs * side[:, None], 1e-30) for side in (p, p_complement))  # not divided by 0
    away = np.clip(counts - 1.0 - mean, -mean, rest)  # counts − 1 is the k of the theorem
    divergence, other = _entropy_gain(away / mean), _entropy_gain(-away / rest)
    divergence *= mean
    other *= rest
    divergence += other
    z = np.sqrt(2.0 * np.maximum(divergence, 0.0, out=divergence), out=divergence)
    tail: Array = scipy.special.ndtr(np.copysign(z, -away, out=z), out=z)
    return tail


def _entropy_gain(u: Array) -> Array:
    """Return (1 + u) log(1 + u) − u, with its limit 1 at u = −1."""
    at_limit = u <= -1.0 if u.min() <= -1.0 else None
    gain: Array = np.log1p(u if at_limit is None else np.where(at_limit, 0.0, u))
    gain *= 1.0 + u
    gain -= u
    return gain if at_limit is None else np.where(at_limit, 1.0, gain)


def _summed_tail(counts: Array, runs: int, p: Array, p_complement: Array) -> Array:
    mean, deviation = runs * p, np.sqrt(runs * p * p_complement)
    reach = np.ceil(_REACH * deviation + 30.0)
    first = np.clip(np.floor(mean) - reach, 0.0, runs)
    width = int(min(2 * reach.max() + 2, runs + 1))
    first = np.minimum(first, runs + 1 - width)  # every row then has `width` outcomes within 0..runs
    at_mean = np.floor(mean) - first
    # log C(runs, k) relative to its value at the mean: sums of log((runs − j)/(j + 1)).
    base = first.min()
    span = np.arange(base, first.max() + width - 1)
    if len(span) <= 4 * counts.size + 10**6:
        log_choose = np.concatenate([[0.0], np.cumsum(np.log((runs - span) / (span + 1.0)))])
        log_weight = sliding_window_view(log_choose, width)[(first - base).astype(np.int64)]
    else:  # the rows are far apart, so each gets its own table
        k = first[:, None] + np.arange(width - 1)
        log_weight = np.concatenate([np.zeros((len(p), 1)), np.cumsum(np.log((runs - k) / (k + 1.0)), axis=1)], axis=1)
    log_weight -= np.take_along_axis(log_weight, at_mean.astype(np.int64)[:, None], axis=1)
    tiny = np.finfo(float).tiny
    logit = np.log(np.maximum(p, tiny)) - np.log(np.maximum(p_complement, tiny))
    log_weight += (np.arange(width) - at_mean[:, None]) * logit[:, None]
    weight = np.exp(log_weight, out=log_weight)  # 1 at the mean's floor, and the next is below 1e17: no overflow
    from_above = np.zeros((len(p), width + 1))
    np.cumsum(weight[:, ::-1], axis=1, out=from_above[:, 1:])
    outcomes = np.clip(first[:, None] + width - counts, 0, width).astype(np.int64)  # at or above the counts
    outcomes += (np.arange(len(p)) * (width + 1))[:, None]
    found: Array = from_above.ravel()[outcomes]
    # Dividing by the summed mass instead of 1 can only enlarge the tail.
    found /= from_above[:, -1:]
    found += _REST
    return found


def clopper_pearson(counts: int, runs: int, *, alpha: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return exact two-sided limits for a probability: (lower, 1 − lower), (upper, 1 − upper).

    Each limit is wrong with probability at most alpha/2 for every true probability (Clopper & Pearson 1934).
    """
    hit, miss = np.array([float(counts)]), np.array([float(runs - counts)])
    low, high = _lower_limit(hit, runs, alpha / 2), _upper_limit(hit, runs, alpha / 2)
    low_rest, high_rest = _upper_limit(miss, runs, alpha / 2), _lower_limit(miss, runs, alpha / 2)
    return (float(low[0]), float(low_rest[0])), (float(high[0]), float(high_rest[0]))


def probability_limits(counts: int, runs: int, *, alpha: float) -> tuple[float, float]:
    """Return the two `clopper_pearson` limits without their complements; without runs, 0 and 1."""
    if runs == 0:
        return 0.0, 1.0
    (lower, _), (upper, _) = clopper_pearson(counts, runs, alpha=alpha)
    return lower, min(upper, 1.0)


def limits(counts: Array, runs: float, *, alpha: float) -> tuple[Array, Array]:
    """Return Clopper-Pearson lower and upper limits, each wrong with probability at most `alpha`.

    `counts` and the limits have shape (K,). A limit above ½ is one minus that for the misses, which is more accurate.
    """
    low, high = _lower_limit(counts, runs, alpha), _upper_limit(counts, runs, alpha)
    above = low > 0.5
    low[above] = np.nextafter(1.0 - _upper_limit(runs - counts[above], runs, alpha), 0.0)
    above = high > 0.5
    high[above] = np.minimum(np.nextafter(1.0 - _lower_limit(runs - counts[above], runs, alpha), 2.0), 1.0)
    return low, high


# SciPy's inverse (1.17) is far off, and on the wrong side, if a shape is exactly 1000 and the runs are 3·10⁸ or more;
# its tails are accurate. If the tail at a limit is too large, the wider limit for one count less, or more, replaces it.
# Up to SciPy 1.16 the inverse can be NaN from 10¹² runs on; there Hoeffding's limit, which is wider, replaces it.


def _hoeffding(runs: float, alpha: float) -> float:
    """Distance from the frequency that is exceeded on one side with probability at most `alpha`."""
    return math.sqrt(-math.log(alpha) / (2 * runs))


def _lower_limit(counts: Array, runs: float, alpha: float) -> Array:
    k = np.maximum(counts, 1.0)
    limit = scipy.special.betaincinv(k, runs - k + 1, alpha)
    is_wrong = scipy.special.betainc(k, runs - k + 1, limit) > alpha * (1 + 1e-6)
    limit = np.where(is_wrong, scipy.special.betaincinv(np.maximum(k - 1, 1.0), runs - k + 2, alpha), limit)
    limit = np.where(np.isnan(limit), np.maximum(k / runs - _hoeffding(runs, alpha), 0.0), limit)
    return np.where(counts > 0, limit * (1 - ROUNDING), 0.0)


def _upper_limit(counts: Array, runs: float, alpha: float) -> Array:
    k = np.minimum(counts, runs - 1)
    limit = scipy.special.betainccinv(k + 1, runs - k, alpha)
    is_wrong = scipy.special.betaincc(k + 1, runs - k, limit) > alpha * (1 + 1e-6)
    limit = np.where(is_wrong, scipy.special.betainccinv(k + 2, np.maximum(runs - k - 1, 1.0), alpha), limit)
    limit = np.where(np.isnan(limit), k / runs + _hoeffding(runs, alpha), limit)
    return np.where(counts < runs, np.minimum(limit * (1 + ROUNDING), 1.0), 1.0)
