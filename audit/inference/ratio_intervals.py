"""Two-sided intervals for the log ratios ln(p/q) of many outcomes, and for their maximum, from counts.

An outcome has independent counts X ~ Bin(n, p) on x and Y ~ Bin(m, q) on y. The lower limit for ln(p/q) is the least
ln(p/q) over all pairs (p, q) that the following test does not refute:

1. *Two roots.* Under (p, q), U(p) = −Φ⁻¹(Pr_p[X ≥ counts]) and V(q) = −Φ⁻¹(Pr_q[Y ≤ counts]) are independent and at
   most standard normal in the stochastic order; so is U cos t + V sin t for a t in [0, π/2] that depends only on (p,
   q). A pair is refuted where this sum reaches the normal quantile of the level. The best t has tan² t = (n/m) ×
   odds(p)/odds(q), so t is constant on sectors between curves of constant odds ratio.
2. *A box.* A share of the level is spent on refuting every p and every q outside exact limits for each (after Berger &
   Boos 1994). Without the box the test is weak far from the counts, where U and V nearly cancel. If every run on y is
   a count, V is −∞ and the test consists of the box alone.
3. *Between grid points.* U is concave in ln p, and V convex in ln q. So U is above its chords, and V above the chord of
   one cell extended into the next. With these bounds in place of U and V, the refuted ln p in one cell and sector is a
   concave function of ln q, and its least distance from ln q is at an end of the cell.

The cost does not grow with the runs. Compared with normal_quantile × sd, the limit is further from the estimate by
about 1% from 10⁴ counts on, 3% at 10³, 8% at 100 and 27% at 10, where exact limits for a probability are as far out.

Proof: docs/proofs/ratios.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import OptionError
from .binomial_tails import Array, limits
from .event_test import check_alpha

Direction = Literal["x", "y", "both"]

_SPENT = 0.002  # share of the level for each side of the box; at levels below .05 the quantile grows by .3% or less
_SECTORS = 157  # of .01 radians: a mismatch of .005 over the box's four standard errors costs .02 standard errors
_CELLS = 16  # of ln q and of ln p, half a standard error wide; the error of the chords is of second order
_SAFETY = 1e-8  # subtracted from U and V; exceeds the error of the beta function and of ndtri


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatioIntervals:
    """Simultaneous limits for ln(p_i/q_i) of all outcomes."""

    # In nats. The lower limit is −inf without counts on x, the upper limit is inf without counts on y, and the
    # observed ratio is NaN without counts on both; shape (K,).
    lower: Array
    observed: Array
    upper: Array
    alpha: float  # probability that any of the 2K limits is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumInterval:
    """Limits for the largest log ratio of a family of outcomes, in nats; alpha bounds the probability of an error."""

    lower: float
    observed: float
    upper: float
    direction: Direction
    alpha: float


def ratio_intervals(
    count_x: npt.ArrayLike, runs_x: int, count_y: npt.ArrayLike, runs_y: int, *, alpha: float = 0.05
) -> RatioIntervals:
    """Return simultaneous intervals that contain all ln(p_i/q_i) with probability 1 − alpha or more.

    Each of the 2K limits has level alpha/(2K), which is valid for any dependence between the counts of outcomes.
    Impossible counts, or an alpha outside its range, raise an `OptionError`.

    Parameters
    ----------
    count_x : array_like, shape (K,)
        Runs with each outcome on x. The outcomes (or events, which may overlap) are chosen without looking at the
        counts.
    runs_x : int
        Independent runs on x, 1 or more.
    count_y, runs_y : array_like and int
        The same on y.
    alpha : float
        In (0, 1).

    Returns
    -------
    RatioIntervals
        Limits `lower` and `upper`, and `observed` log ratios, in nats.

    See Also
    --------
    confidence_band : Limits for unions of cells.
    results.BinCounts.ratios : The same for the cells of an audit.

    References
    ----------
    Clopper & Pearson (1934) for the limits of one probability; Berger & Boos (1994), P values maximized over a
    confidence set for the nuisance parameter; van Zwet (1964), Convex transformations of random variables.

    Examples
    --------
    >>> found = ratio_intervals([7_500, 2_500], 10_000, [2_500, 7_500], 10_000, alpha=0.05)
    >>> found.lower.round(2).tolist(), found.upper.round(2).tolist()
    ([1.06, -1.14], [1.14, -1.06])
    """
    x, y = _checked(count_x, runs_x, count_y, runs_y)
    each = check_alpha(alpha) / (2 * len(x))
    return RatioIntervals(
        lower=_lower(x, runs_x, y, runs_y, each),
        observed=_observed(x, runs_x, y, runs_y),
        upper=-_lower(y, runs_y, x, runs_x, each),
        alpha=float(alpha),
    )


def maximum_interval(
    count_x: npt.ArrayLike,
    runs_x: int,
    count_y: npt.ArrayLike,
    runs_y: int,
    *,
    alpha: float,
    direction: Direction = "both",
) -> MaximumInterval:
    """Return an interval that contains the largest log ratio over the outcomes with probability 1 − alpha or more.

    The lower end is the largest lower limit, each at level alpha/2 divided by their number. The upper end is the
    largest upper limit, each at level alpha/2, because it is below the truth only if the limit of the one outcome that
    attains the maximum is.

    If the outcomes are all outputs of a discrete mechanism, the maximum is its worst-case log-likelihood ratio on the
    pair. If they are continuous or not all listed, the lower end still holds for the mechanism, but the upper end holds
    for the listed events only, for any number of runs (Gilbert & McMillan 2018). It is infinite if an outcome has no
    counts on the side of the denominator, so leave out outcomes of probability 0 on both sides, which have no ratio.

    Arguments are those of `ratio_intervals`, and the direction: "x" for ln(p/q), "y" for ln(q/p), "both" for the
    largest absolute value over outcomes.

    References
    ----------
    Gilbert & McMillan (2018), Property testing for differential privacy.

    Examples
    --------
    >>> found = maximum_interval([7_500, 2_500], 10_000, [2_500, 7_500], 10_000, alpha=0.05)
    >>> round(found.lower, 2), round(found.observed, 2), round(found.upper, 2)
    (1.05, 1.1, 1.14)
    """
    x, y = _checked(count_x, runs_x, count_y, runs_y)
    if direction not in ("x", "y", "both"):
        raise OptionError(f"direction={direction!r} is unknown; use 'x', 'y' or 'both'.", direction=direction)
    half = check_alpha(alpha) / 2
    ways = [(x, runs_x, y, runs_y)] * (direction != "y") + [(y, runs_y, x, runs_x)] * (direction != "x")
    least = 0.0 if direction == "both" else -math.inf  # least absolute value
    observed = np.concatenate([_observed(*way) for way in ways])
    return MaximumInterval(
        lower=max(least, *(float(_lower(*way, half / (len(ways) * len(x))).max()) for way in ways)),
        observed=float(np.max(observed, where=~np.isnan(observed), initial=least)),
        upper=max(least, *(float(-_lower(b, n_b, a, n_a, half).min()) for a, n_a, b, n_b in ways)),
        direction=direction,
        alpha=float(alpha),
    )


def ratio_lower(count_x: npt.ArrayLike, runs_x: int, count_y: npt.ArrayLike, runs_y: int, *, alpha: float) -> Array:
    """Return lower limits for all ln(p_i/q_i), shape (K,), each above the truth with probability at most `alpha`."""
    x, y = _checked(count_x, runs_x, count_y, runs_y)
    return _lower(x, runs_x, y, runs_y, check_alpha(alpha))


def _lower(x: Array, runs_x: int, y: Array, runs_y: int, level: float) -> Array:
    """Return lower limits for the log ratios, each wrong with probability at most `level`; equal pairs share one."""
    pairs, place = np.unique(np.stack([x, y]), axis=1, return_inverse=True)
    box_x = _log_limits(pairs[0], runs_x, level * _SPENT)
    box_y = _log_limits(pairs[1], runs_y, level * _SPENT)
    z = -float(scipy.special.ndtri(level * (1 - 4 * _SPENT)))
    found = [
        _one_lower(_Side(hx, runs_x, *bx), _Side(hy, runs_y, *by), z)
        for hx, hy, bx, by in zip(*pairs.tolist(), box_x, box_y, strict=True)
    ]
    return np.array(found)[place.ravel()]


@dataclass(frozen=True, slots=True)
class _Side:
    counts: float
    runs: int
    low: float  # limits of the logarithm of the probability
    high: float


def _log_limits(counts: Array, runs: int, alpha: float) -> list[tuple[float, float]]:
    """Return (lower, upper) limits for ln p of each count; the upper limit is computed from 1 − p where p is large."""
    with np.errstate(divide="ignore"):
        low, high = np.log(limits(counts, runs, alpha=alpha))
    is_large = high > -0.7
    high[is_large] = np.log1p(-limits(runs - counts[is_large], runs, alpha=alpha)[0])
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _one_lower(x: _Side, y: _Side, z: float) -> float:
    if x.counts == 0:
        return -math.inf
    # No limit exceeds the estimate: the grid has log p up to log q + top, and log q from where that enters the box.
    top = math.log(x.counts / x.runs) - math.log(max(y.counts, 0.5) / y.runs)
    first, last = max(y.low, x.low - top), y.high
    step = (last - first) / _CELLS
    log_q = np.minimum(first + step * np.arange(-1, _CELLS + 1), last)
    q, q_rest = np.exp(log_q), -np.expm1(log_q)
    left, right = log_q[1:-1], log_q[2:]
    # V at the left end of each cell, and the rise in the cell of the line through the preceding node.
    v = np.maximum(_root(y.runs - y.counts, y.runs, q_rest, q), -1e6)  # no U offsets −1e6
    v, rise = v[1:-1], np.where(v[:-2] > -30.0, v[1:-1] - v[:-2], 0.0) + 1e-300  # 1e-300 avoids 0/0
    # U at the nodes, and at the last p of the box.
    is_open = x.counts == x.runs  # the box then contains every p up to 1
    log_p = np.linspace(x.low, min(x.high, last + top, -1e-9 / x.runs if is_open else 0.0), _CELLS + 1)
    u = _root(x.counts, x.runs, np.exp(log_p), -np.expm1(log_p))
    u_last = -math.inf if is_open else float(u[-1])

    # t is the middle of each sector; the first and the last sector use one root alone.
    most = _angle(log_p[-1], log_q[1], x.runs / y.runs)
    sector = np.arange(_angle(log_p[0], last, x.runs / y.runs), most + 1)
    is_first, is_last = (sector == 0)[:, None], (sector == _SECTORS - 1)[:, None]
    angle = (sector[:, None] + 0.5) * (math.pi / 2 / _SECTORS)
    sin, cos = np.where(is_first, 0.0, np.sin(angle)), np.where(is_last, 0.0, np.cos(angle))
    edge = np.append(sector, most + 1) * (math.pi / 2 / _SECTORS)
    inverse_odds_ratio = x.runs / y.runs / np.tan(np.maximum(edge, 1e-100)) ** 2
    ratio = -np.log(q[1:] + q_rest[1:] * inverse_odds_ratio[:, None])  # ln(p/q) on the edges, at the ends of cells
    least, largest = np.minimum(ratio[:-1, :-1], ratio[:-1, 1:]), np.maximum(ratio[1:, :-1], ratio[1:, 1:])

    # In each cell of ln q and each sector, only p outside the box are refuted below `start`, and all p from `end` on.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        needed_first = np.where(is_last, z, (z - cos * u[0]) / sin)
        needed_last = np.where(is_last, z, (z - cos * u_last) / sin)
        start = np.clip(left + step * (needed_first - v) / rise, left, right)
        end = np.clip(left + step * (needed_last - v) / rise, left, right)

    def refuted_log_p(at: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(is_last, np.inf, (z - sin * (v + rise * (at - left) / step)) / cos)
        return np.interp(needed, u[::-1], log_p[::-1])

    at_start = refuted_log_p(start)
    distance = np.minimum(at_start - start, refuted_log_p(end) - end)
    is_refuted = (end <= left) | (distance >= largest) | (at_start >= right + ratio[1:, 1:])
    return min(top, float(np.where(is_refuted, np.inf, np.maximum(distance, least)).min()))


def _angle(log_p: float, log_q: float, runs_ratio: float) -> int:
    """Return the sector of (p, q)."""
    odds_p, odds_q = -math.expm1(log_p) / math.exp(log_p), -math.expm1(log_q) / math.exp(log_q)
    return min(
        int(math.atan2(math.sqrt(runs_ratio * odds_q), math.sqrt(odds_p)) * _SECTORS * 2 / math.pi), _SECTORS - 1
    )


def _root(counts: float, runs: int, p: Array, p_rest: Array) -> Array:
    """Return −Φ⁻¹(Pr[Bin(runs, p) ≥ counts]) minus a safety margin, for monotone p."""
    if counts == 0:
        return np.full(p.shape, -np.inf)
    rest = runs - counts + 1
    # Use the smaller of p and 1 − p, and the smaller tail.
    if max(p[0], p[-1]) < 0.5:
        tail = scipy.special.betainc(counts, rest, p)
        is_tail = tail < 0.5
        tail[~is_tail] = scipy.special.betaincc(counts, rest, p[~is_tail])
    else:
        tail = scipy.special.betaincc(rest, counts, p_rest)
        is_tail = tail < 0.5
        tail[~is_tail] = scipy.special.betainc(rest, counts, p_rest[~is_tail])
    root = scipy.special.ndtri(tail)
    return np.where(is_tail, -root, root) - _SAFETY


def _checked(count_x: npt.ArrayLike, runs_x: int, count_y: npt.ArrayLike, runs_y: int) -> tuple[Array, Array]:
    x, y = np.asarray(count_x, dtype=np.float64), np.asarray(count_y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise OptionError(
            f"count_x of shape {x.shape} and count_y of shape {y.shape} do not match; use one count on each side for "
            "each of one or more outcomes.",
            shape_x=x.shape,
            shape_y=y.shape,
        )
    for side, counts, runs in (("x", x, runs_x), ("y", y, runs_y)):
        if not (runs >= 1 and float(runs).is_integer()):
            raise OptionError(f"runs_{side}={runs!r} is not a number of runs; use a whole number >= 1.", runs=runs)
        wrong = ~((counts >= 0) & (counts <= runs) & (counts == np.floor(counts)))  # NaN is wrong
        if wrong.any():
            worst = counts[wrong][0]
            raise OptionError(
                f"count_{side} holds {worst:g} for runs_{side}={runs}; use whole numbers from 0 to the runs.",
                counts=worst,
            )
    return x, y


def _observed(x: Array, runs_x: int, y: Array, runs_y: int) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(x / runs_x) - np.log(y / runs_y))
