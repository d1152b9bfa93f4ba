"""Power of the exact tests of one event and of guesses: the minimum detectable excess, and the runs that it needs.

The power is summed over both counts, given the smallest count on x that the exact test refutes, for all likely numbers
of counts on y at once (`critical_curve`). The regions of the test form a chain {X ≥ c_s(Y)}, and their probabilities do
not depend on the counts, so every region is evaluated once for all y.

The power is stated for an alternative: an event of a mechanism that exceeds its claim, which bets are judged by too.
The events of a mechanism of privacy parameter s lie below the boundary B_s; if s is tight, some events come near it.
There are two kinds of alternative:

- *On the boundary*: the event has probability q on y and B_s(q) on x. Laplace noise, randomised response and the
  exponential mechanism have such events for pure claims, and Gaussian noise has such events for μ-GDP.
- *Gaussian noise* that attains s (`Claim.gaussian_mu`), p = Φ(Φ⁻¹(q) + μ). For (ε, δ) it touches the boundary at one
  probability only, which is too small for few runs; for Rényi divergences it touches the boundary nowhere. Its best
  event is the event that clears the claim by the most standard errors.

References
----------
Dong, Roth & Su (2022), Gaussian differential privacy, Section 2.3 (the trade-off function of Gaussian noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from ..claims.claim import Claim
from ..errors import OptionError
from ..inference.betting_test import BETS, WEIGHTS, best_line, log_mean
from ..inference.binomial_tails import Array, limits, upper_tail
from ..inference.event_test import (
    CELL,
    GAMMA,
    REACH,
    arcsine_angle,
    check_alpha,
    columns_between,
    counts_needed,
    largest_parameter,
    mass_below,
    rates,
    root_from_below,
)
from ..inference.guess_test import Guesses
from ..options import MOST_RUNS

_LEAST = 1e-15  # probability below which no audit observes an event


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise that attains the privacy parameter, with the event that a pilot would choose."""

    share: float = 1.0  # in (0, 1]: the event is the rarest with at least this share of the best event's clearance


@dataclass(frozen=True, slots=True)
class AsLikely:
    """An event on the boundary of the stronger claim that resembles an observed event.

    If the event is rare on both sides, p is kept and q falls as the excess grows, so smaller counts show the excess. If
    its complement is rare, or the stronger claim allows more than half of p at q = 0, as δ does, q is kept and p grows:
    no q shows an excess over such a δ at that p.
    """

    p: float  # observed probability of the event on x, in (0, 1)
    q: float  # the same on y


Alternative: TypeAlias = float | AsLikely | GaussianNoise
"""An event on the boundary of the stronger claim (by its probability on y, or like an observed event), or noise."""


@dataclass(frozen=True, slots=True)
class AlternativeEvent:
    """Probabilities of an event under an alternative, and its clearance of the claim."""

    q: float  # on y
    p: float  # on x
    p_rest: float  # 1 − p
    clearance: float  # distance of p above the claim's boundary at q, in standard errors of one run on each dataset


def event_of(claim: Claim, excess: float, alternative: Alternative) -> AlternativeEvent:
    """Return the event that an audit tests if the privacy parameter is `excess` above the claim."""
    return events_of(claim, alternative)(excess)


def events_of(claim: Claim, alternative: Alternative) -> Callable[[float], AlternativeEvent]:
    """Return `event_of` as a function of the excess; it computes once what does not depend on the excess."""
    q, clearance = _rates(), None
    if isinstance(alternative, GaussianNoise):  # its event is chosen among all rates
        clearance = _clearance_at(claim, q)

    def event(excess: float) -> AlternativeEvent:
        rate = q if isinstance(alternative, GaussianNoise) else _rate_of(claim, excess, alternative)
        p, rest = power_at(claim, excess, rate, alternative)
        clear = (clearance or _clearance_at(claim, rate))(p, rest)
        at = int(np.argmax(clear))
        if isinstance(alternative, GaussianNoise):
            at = int(np.argmax(clear >= alternative.share * clear[at])) if clear[at] > 0.0 else at
        return AlternativeEvent(float(rate[at]), float(p[at]), float(rest[at]), float(clear[at]))

    return event


def best_q(claim: Claim, *, excess: float) -> float:
    """Return the probability on y at which detecting an excess takes the fewest runs, by the normal approximation.

    For planning before any run: up to a few percent, no event of any mechanism needs fewer. For (ε, δ) the best event
    is the corner of the stronger claim, which only randomised response reaches.
    """
    stronger = claim.with_parameter(claim.parameter + excess)
    corner = largest_parameter(lambda q: float(stronger.max_power(q)[0]) <= 1.0 - q, 1.0)  # of (ε, δ), often the best
    q = np.concatenate([[corner] * (corner > 0.0), _rates()])
    return float(q[int(np.argmax(_clearance_at(claim, q)(*power_at(claim, excess, q, 0.5))))])


def _rate_of(claim: Claim, excess: float, alternative: float | AsLikely) -> Array:
    if isinstance(alternative, float):
        return np.array([alternative])
    p, q, stronger = alternative.p, alternative.q, claim.with_parameter(claim.parameter + excess)
    if p + q > 1.0 or 2.0 * float(stronger.max_power(0.0)[0]) > p:
        return np.array([q])
    # q solves 1 − q = B(1 − p), the mirror image of the boundary.
    return np.maximum(stronger.max_power(np.array([1.0 - p]), np.array([p]))[1], _LEAST)


def _rates() -> Array:
    """Return a grid of probabilities that is dense near 0 and near 1."""
    rare = np.geomspace(1e-12, 0.02, 250)
    return np.concatenate([rare, np.linspace(0.02, 0.98, 500), 1.0 - rare[:100:-1]])


def power_at(claim: Claim, excess: float, q: Array, alternative: Alternative) -> tuple[Array, Array]:
    """Return Pr[M(x) ∈ S] and its complement, for events of probabilities `q` on y and parameter `excess` above."""
    stronger = claim.with_parameter(claim.parameter + excess)
    if not isinstance(alternative, GaussianNoise):
        return stronger.max_power(q)
    mu = stronger.gaussian_mu
    if mu is None:
        raise OptionError(f"{claim} does not define a Gaussian noise to plan with; use the probability of an event.")
    z = scipy.special.ndtri(q) + mu
    return scipy.special.ndtr(z), scipy.special.ndtr(-z)


def _clearance_at(claim: Claim, q: Array) -> Callable[[Array, Array], Array]:
    """Return a function of p and 1 − p: the distance of p above the boundary at q, in standard errors of one run."""
    q_rest = 1.0 - q
    at, at_rest = claim.max_power(q, q_rest)
    near = 1e-6 * q * q_rest
    slope = (claim.max_power(q + near)[0] - claim.max_power(q - near)[0]) / (2.0 * near)
    spread = np.sqrt(at * at_rest + slope**2 * q * q_rest)

    def clearance(p: Array, p_rest: Array) -> Array:
        rise = np.where(p < 0.5, p - at, at_rest - p_rest)
        return np.where(spread > 0, rise / np.maximum(spread, 1e-300), 0.0)

    return clearance


# Power of bets on a known event, by simulation, and the smallest excess that they find.

SizesFor: TypeAlias = Callable[[AlternativeEvent], Sequence[int]]
_REPETITIONS = 400  # simulated audits: an error of 3% of the excess where measured


def found_share(
    claim: Claim,
    excess: float,
    sizes: Sequence[int] | SizesFor,
    q: Alternative,
    *,
    alpha: float,
    until: float = 1.0,
) -> float:
    """Return the share of simulated audits that refute the claim; it is within .025 of the true power.

    The event is that of the alternative `q`, and `sizes` are the runs in each batch. The wealth of the other accounts
    is taken as lost. The simulation ends as soon as the share `until` is reached.
    """
    rng, event = np.random.default_rng(0), event_of(claim, excess, q)
    p, rate = event.p, event.q
    batches = sizes(event) if callable(sizes) else sizes
    if not batches:
        return 0.0
    line = best_line(claim, p, rate, float(sum(batches)))
    bets = BETS / (line.slope + line.intercept)
    gains = np.array([np.log1p(bets * (value - line.intercept)) for value in (1.0 - line.slope, 1.0, -line.slope, 0.0)])
    log_wealth = np.zeros((_REPETITIONS, len(bets)))
    found = np.zeros(_REPETITIONS, dtype=np.bool_)
    enough = -math.log(alpha)
    for size in batches:
        count_q = rng.binomial(size, rate, _REPETITIONS)
        both = rng.binomial(count_q, p)
        only_p = rng.binomial(size - count_q, p)
        joint = np.stack([both, only_p, count_q - both, size - count_q - only_p], axis=1)
        log_wealth += joint @ gains
        # The largest term bounds the average, so few averages are computed.
        near = np.flatnonzero(~found & (log_wealth >= enough).any(axis=1))
        if len(near):
            found[near] = log_mean(log_wealth[near]) + math.log(WEIGHTS[4][0]) >= enough
            if found.mean() >= until:  # audits that have refuted stay so
                break
    return float(found.mean())


def sequential_excess(
    claim: Claim, sizes: Sequence[int] | SizesFor, q: Alternative, *, alpha: float, power: float
) -> float:
    """Return the smallest excess found with probability `power` (see `found_share`), within 1%; infinite if none is."""
    check_alpha(alpha)
    _check_probabilities(q=q, power=power)
    rate = q if isinstance(q, float) else 0.1
    runs = 10_000 if callable(sizes) else sum(sizes)
    limit = claim.max_parameter - claim.parameter
    excess = largest_parameter(
        lambda excess: found_share(claim, excess, sizes, q, alpha=alpha, until=power) < power,
        limit,
        tolerance=1e-2,
        start=4.0 / math.sqrt(runs * rate * (1.0 - rate)),  # about the size of the answer
    )
    return math.inf if excess >= 0.99 * limit else excess


# Probabilities of regions {X ≥ c(Y)} along a claim's boundary, nearly as the exact test bounds them, but faster: points
# are further apart, except where the boundary bends, and blocks are wider; the test's own roundings become shifts of p,
# q and y. Few numbers of counts are summed one by one, as in the test.

_COUNTED = 400  # numbers of counts on y that are summed one by one; variance of x below which all tails are summed
_SPACING = 0.25  # standard errors of q between points, and width of a block of y at most
_FINE_SPACING = 2.0 * CELL  # standard errors of q between points for single y
_BEND, _PARTS = 0.02, 8  # relative change of the slope at which a spacing is divided, and the number of parts
_BLOCK_OF_X = 0.5  # width of a block of y, at most, in standard errors of x
_NORMAL_FROM = 100.0  # variance of counts below which their tails are summed


@dataclass(frozen=True, slots=True)
class RegionProbabilities:
    """The distributions of the counts at points of the boundary."""

    angle: Array  # arcsin √q, shape (points,)
    y: Array  # count on y that stands for each block, shape (blocks,); not always whole
    n: int
    p: Array
    p_rest: Array
    columns: npt.NDArray[np.int64]  # blocks that are summed at each point, shape (points, width)
    mass: Array  # their probabilities, shape (points, width)
    before: Array  # probability of all y before the first of them, shape (points,)
    first: Array  # counts on x at which the tables begin, shape (points,)
    table: Array | None  # tails of x, shape (points, counts)

    @classmethod
    def of(cls, claim: Claim, n: int, m: int, low: float, high: float) -> RegionProbabilities:
        """Prepare the boundary of a claim between two angles of q."""
        unit = 0.5 / math.sqrt(m)
        half = 0.5 * CELL * unit
        low, high = low + half, max(high - half, low + 3.0 * half)
        angle, starts = _points_and_blocks(claim, n, m, low, high)
        p, p_rest = claim.max_power(*rates(angle + half))
        q, q_rest = rates(angle - half)
        near = REACH * 0.5 / math.sqrt(m)
        columns = columns_between(starts, m * rates(angle - near)[0], m * rates(angle + near)[0])
        y = np.append(0.5 * (starts[:-1] + (starts[1:] - 1.0)), starts[-1])
        y -= 0.5 * np.maximum(CELL * np.sqrt(y * (m - y) / m) - 1.0, 0.0)  # the test's blocks count as their first y
        below = mass_below(starts, columns, m, q_rest, q, _tail)
        first, table, variance = np.zeros(0), None, n * p * p_rest
        if variance.max() < _COUNTED:
            reach = np.ceil(7.5 * np.sqrt(variance) + 30.0)
            first = np.floor(n * p) - reach
            counts = np.arange(min(2 * reach.max(), n + 1 - first.min()) + 1.0)
            table = upper_tail(first[:, None] + counts, n, p, p_rest)
        return cls(angle, y, n, p, p_rest, columns, np.diff(below, axis=1), below[:, 0], first, table)

    def at(self, critical: Array) -> Array:
        """Return Pr[X ≥ c(Y)] at all points, shape (regions, points), for c of shape (regions, blocks)."""
        return np.stack(
            [self.before + np.einsum("pk,pk->p", self._tails(c[self.columns]), self.mass) for c in critical]
        )

    def _tails(self, critical: Array) -> Array:
        if self.table is None:
            return _tail(critical, self.n, self.p, self.p_rest)
        width = self.table.shape[1]
        at = np.clip(critical - self.first[:, None], 0, width - 1).astype(np.int64)
        at += (np.arange(len(at)) * width)[:, None]
        return self.table.ravel()[at]


def _points_and_blocks(claim: Claim, n: int, m: int, low: float, high: float) -> tuple[Array, Array]:
    """Return angles of q and the first y of each block."""
    unit = 0.5 / math.sqrt(m)
    rise = np.diff(arcsine_angle(*claim.max_power(*rates([low, high]))))[0] / (high - low)
    error_x = 1.0 / max(float(rise) * math.sqrt(n / m), 1e-9)  # in standard errors of y
    fewest, most = (m * rates([low - REACH * unit, high + REACH * unit])[0]).tolist()
    if most - fewest > _COUNTED:
        block = min(_SPACING, max(_BLOCK_OF_X * error_x, CELL)) * unit
        starts = np.floor(m * rates(np.arange(low - REACH * unit, high + REACH * unit, block))[0])
        return _points(claim, low, high, _SPACING * unit), np.unique(starts)
    q, q_rest = rates(0.5 * (low + high))
    is_jagged = error_x * math.sqrt(m * float(q * q_rest)) < 1.0  # x shows every single y
    spacing = min(_FINE_SPACING, max(0.3 * error_x, CELL)) if is_jagged else _FINE_SPACING
    return _even(low, high, spacing * unit), np.arange(math.floor(fewest), math.ceil(most) + 1.0)


def _points(claim: Claim, low: float, high: float, spacing: float) -> Array:
    """Return angles of q that are closer together where the boundary bends, because probabilities peak there."""
    angle = _even(low, high, spacing)
    slope = np.diff(arcsine_angle(*claim.max_power(*rates(angle)))) / np.diff(angle)
    bends = np.abs(np.diff(slope)) > _BEND * np.maximum(1.0, np.abs(slope[1:]))
    is_bent = np.append(bends, False) | np.append(False, bends)
    finer = angle[:-1][is_bent][:, None] + np.diff(angle)[is_bent][:, None] * np.arange(_PARTS) / _PARTS
    return np.unique(np.concatenate([angle, finer.ravel()]))


def _even(low: float, high: float, spacing: float) -> Array:
    return np.linspace(low, high, max(4, math.ceil((high - low) / spacing) + 1))


def _tail(counts: Array, runs: int, p: Array, p_rest: Array) -> Array:
    """Return Pr[Bin(runs, p) ≥ counts], with a continuity correction where it is the normal bound."""
    correction = 0.5 * (runs * p * p_rest >= _NORMAL_FROM)[:, None]
    return upper_tail(counts + correction, runs, p, p_rest, normal_from=_NORMAL_FROM)


def rise(claim: Claim, q: float, low: float, high: float) -> float:
    """Return about how much the privacy parameter rises if the angle of p at q does so from `low` to `high`."""
    p, p_rest = (np.square(turn([low, high])) for turn in (np.sin, np.cos))
    parameter = claim.rough_parameter_of(p, np.full(2, q), p_rest, np.full(2, 1.0 - q))
    return float(parameter[1] - max(parameter[0], 0.0))


_LIKELY = 4.5  # standard deviations of Y in which the curve is computed; further out, the nearest limits for q are used
_START = np.array([-0.2, 0.0, 0.2])  # first places on the chain
_AT_ONCE, _PASSES = 4, 30  # places that are tried together, and how often
_NARROW = 0.001  # distance of two places between which there are almost no regions
_NEAR = 0.01  # normal quantile of a p-value minus that of alpha that counts cost at most, where they are many


def critical_curve(claim: Claim, n: int, m: int, q: float, alpha: float, y: Array) -> Array:
    """Return the smallest refuted count on x for each likely count `y`, increasing, at rate q; n + 1 for none.

    Counts are refuted if the probability of their region is at most alpha at every point of the boundary that is
    plausible given y. A search along the chain finds, for every y, the last region that is not refuted.
    """
    step, tuned_z = _step_of_chain(claim, n, m, q), max(float(-scipy.special.ndtri(alpha)), 0.5)
    some, number = np.unique(np.clip(y, *likely_counts(m, q)), return_inverse=True)
    low, high = (arcsine_angle(limit, 1.0 - limit) for limit in limits(some, m, alpha=GAMMA / 2))
    boundary = RegionProbabilities.of(claim, n, m, float(low[0]), float(high[-1]))
    half = 0.499 * CELL * 0.5 / math.sqrt(m)
    first = np.minimum(np.searchsorted(boundary.angle, low + half), len(boundary.angle) - 1)
    last = np.maximum(np.searchsorted(boundary.angle, high - half), first + 1)
    plausible = np.stack([first, last], axis=1).ravel()
    everywhere = np.concatenate([boundary.y, y])

    def needed_at(place: float) -> Array:
        """Return c before rounding up, for the region at this place of the chain; at 0 it is that of the parameter."""
        parameter, z = claim.parameter + place * step, tuned_z
        if parameter < 0.0:
            parameter, z = 0.0, max(z + parameter / step, 0.0)
        member = claim.with_parameter(min(parameter, claim.max_parameter * (1.0 - 1e-12)))
        return counts_needed(everywhere, n, m, member, z)

    places, needed, excess, new = np.empty(0), np.empty((0, len(y))), np.empty((0, len(y))), _START
    for _ in range(_PASSES):
        found = np.stack([needed_at(float(place)) for place in new])
        probability = boundary.at(np.ceil(found[:, : len(boundary.y)]))
        largest = np.maximum.reduceat(np.pad(probability, ((0, 0), (0, 1))), plausible, axis=1)[:, ::2]
        over = scipy.special.ndtri(np.clip(GAMMA + largest, 0.0, 1.0 - 1e-12)) - float(scipy.special.ndtri(alpha))
        places, order = np.unique(np.concatenate([places, new]), return_index=True)
        needed = np.concatenate([needed, found[:, len(boundary.y) :]])[order]
        excess = np.concatenate([excess, over[:, number]])[order]
        bracket = _Bracket.of(places, needed, excess)
        new = np.setdiff1d(bracket.next_place()[~bracket.is_found(n)], places)
        if len(new) > _AT_ONCE:
            new = new[np.round((np.arange(_AT_ONCE) + 0.5) / _AT_ONCE * (len(new) - 1)).astype(int)]
        if not len(new):
            break
    allowed = np.floor(n * claim.max_power(y / m, (m - y) / m)[0] * (1.0 + 1e-12))  # never refuted
    return np.maximum(bracket.critical(n), allowed + 1.0)


def likely_counts(m: int, q: float, deviations: float = _LIKELY, more: float = 2.0) -> tuple[float, float]:
    """Return the least and the largest likely count on y; by default those for which the curve is accurate."""
    reach = deviations * math.sqrt(m * q * (1.0 - q)) + more
    return max(float(math.floor(m * q - reach)), 0.0), min(float(math.ceil(m * q + reach)), float(m))


def _step_of_chain(claim: Claim, n: int, m: int, q: float) -> float:
    """Return by how much the parameter differs between regions that are about a standard error apart."""
    unit, middle = 0.5 / math.sqrt(m), math.asin(math.sqrt(q))
    at = np.clip([middle - unit, middle, middle + unit], 0.0, math.pi / 2)
    power = arcsine_angle(*claim.max_power(*rates(at)))
    error_x, error_y = 0.5 / math.sqrt(n), float(power[2] - power[0]) / float(at[2] - at[0]) * unit
    above = min(float(power[1]) + math.hypot(error_x, error_y), 0.5 * math.pi - 1e-9)
    return min(max(rise(claim, q, float(power[1]), above), 1e-9), 2.0, 0.25 * (claim.max_parameter - claim.parameter))


@dataclass(frozen=True, slots=True)
class _Bracket:
    """For every y, the last place known not to be refuted and the first place known to be; all of shape (y,)."""

    has_low: npt.NDArray[np.bool_]
    has_high: npt.NDArray[np.bool_]
    low: Array
    high: Array
    excess_low: Array
    excess_high: Array
    needed_low: Array
    needed_high: Array

    @classmethod
    def of(cls, places: Array, needed: Array, excess: Array) -> _Bracket:
        is_refuted = excess <= 0.0
        at = np.where(is_refuted.any(axis=0), is_refuted.argmax(axis=0), len(places))
        low, high = (np.maximum(at - 1, 0), np.minimum(at, len(places) - 1))
        y = np.arange(len(at))
        ends = (places[low], places[high], excess[low, y], excess[high, y], needed[low, y], needed[high, y])
        return cls(at > 0, at < len(places), *ends)

    def next_place(self) -> Array:
        """Return the place to try next."""
        share = np.clip(self._share, 0.1, 0.9)
        above = self.high + np.clip(1.1 * self.excess_low, 0.2, 4.0)
        below = self.low + np.clip(1.1 * self.excess_high, -4.0, -0.2)
        between = self.low + share * (self.high - self.low)
        return np.where(self.has_low, np.where(self.has_high, between, above), below)

    def is_found(self, n: int) -> npt.NDArray[np.bool_]:
        """Return whether the critical count is known."""
        is_near = np.minimum(np.abs(self.excess_low), np.abs(self.excess_high)) < _NEAR
        is_found = (self.high - self.low < _NARROW) | (self._steps == 0.0)
        is_found |= is_near & (self._steps > 1.0) & (self.needed_high <= n)
        return np.where(self.has_low, np.where(self.has_high, is_found, self.needed_low > n), self.needed_high <= 0)

    def critical(self, n: int) -> Array:
        """Return the critical count."""
        between = self.needed_low + self._share * (self.needed_high - self.needed_low)
        found = np.where(self.has_low & (self._steps > 1.0), between, self.needed_high)
        return np.where(self.has_high, np.minimum(np.ceil(found), n + 1.0), n + 1.0)

    @property
    def _steps(self) -> Array:
        return np.asarray(np.ceil(self.needed_high) - np.ceil(self.needed_low))

    @property
    def _share(self) -> Array:
        """The place at which the p-value is alpha if its normal quantile is linear, as a share of the bracket."""
        fall = self.excess_low - self.excess_high
        return np.where(self.has_low & self.has_high, self.excess_low / np.where(fall > 0.0, fall, 1.0), 0.0)


# Power and detectable excess.

# Alternating rounds for event and excess, which start from the normal approximation and stop if it is near enough.
_ROUNDS, _NEAR_ENOUGH, _LARGEST = 4, 0.1, 1e3
_SIZE = 64.0  # makes the first step of a search proportional to the surplus
_NEARNESS = 1e-4  # relative accuracy of a detectable excess
_MOST_PLANNED = 100 * MOST_RUNS  # a plan may say how far an audit is out of reach
_BLOCKS = 500  # of counts on y within six standard deviations of the mean: each is a fortieth of one wide
_KNOWN = 3.0  # standard deviations of Y in which a curve is reused for another rate


def power_of_test(claim: Claim, runs_x: int, runs_y: int, q: Alternative, excess: float, *, alpha: float) -> float:
    """Return the probability that the exact test refutes the claim if the privacy parameter is `excess` above it.

    The event is that of the alternative `q`. The result is within .02 of the true power, and within .01 at power .95.
    It is off by up to .05 for some hundred runs with a boundary that has no closed form, and by up to .15 for many
    times more runs on one dataset than on the other.
    """
    check_alpha(alpha)
    _check_probabilities(q=q)
    if not excess >= 0.0:
        raise OptionError(f"excess={excess!r} is below the claim; use 0 or more.", excess=excess)
    at = event_of(claim, excess, q)
    return _Power.of(claim, runs_x, runs_y, at.q, alpha).at(np.array([at.p]), np.array([at.p_rest]))


def detectable_excess(
    claim: Claim, runs_x: int, runs_y: int, q: Alternative, *, alpha: float, power: float = 0.95
) -> float:
    """Return the smallest excess of the claim's privacy parameter that the exact test finds with probability `power`.

    The result is in the units of the claim's privacy parameter, and infinite if no excess is found with that power.

    Parameters
    ----------
    claim : Claim
        The claim tested.
    runs_x, runs_y : int
        Runs on each dataset.
    q : float, AsLikely or GaussianNoise
        The event: its probability on y, in (0, 1), for example estimated from pilot runs, with the largest probability
        on x that the stronger claim allows; or an observed event; or, for claims with a `gaussian_mu`, the best event
        of Gaussian noise.
    alpha, power : float
        Error probability and power of the test, both in (0, 1).

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 0.01 < detectable_excess(PureDP(1.0), 100_000, 100_000, 0.18, alpha=0.05) < 0.03
    True
    """
    check_alpha(alpha)
    _check_probabilities(q=q, power=power)
    limit = claim.max_parameter - claim.parameter
    aim = max(float(scipy.special.ndtri(power) - scipy.special.ndtri(alpha)), 0.2) / math.sqrt(min(runs_x, runs_y))
    events, guess, found = events_of(claim, q), 0.0, None
    if not isinstance(q, float):
        guess = root_from_below(lambda excess: events(excess).clearance / aim - 1.0, limit, 1.0, _SIZE, nearness=1e-3)
    for _ in range(_ROUNDS):  # the event depends on the excess, and the excess on the event
        rate = events(min(guess, 0.999 * limit, _LARGEST)).q
        if found is None or not found.covers(rate):
            found = _Power.of(claim, runs_x, runs_y, rate, alpha)
        excess = _excess_found(claim, found.at_rate(rate), rate, q, power, guess)
        if isinstance(q, float) or excess == math.inf or abs(excess - guess) < _NEAR_ENOUGH * guess:
            break
        guess = excess
    return max(excess, 1e-12)  # for a power of alpha or less, every excess suffices


def _excess_found(claim: Claim, found: _Power, rate: float, q: Alternative, power: float, guess: float) -> float:
    """Return the smallest excess found with this power, for an event of fixed probability `rate` on y."""
    limit, target = claim.max_parameter - claim.parameter, float(scipy.special.ndtri(power))

    def surplus(excess: float) -> float:
        """Return the normal quantile of the power minus the requested one; it is nearly linear in the excess."""
        reached = np.clip(found.at(*power_at(claim, excess, np.array([rate]), q)), 1e-15, 1.0 - 1e-15)
        return float(scipy.special.ndtri(reached)) - target

    excess = root_from_below(surplus, limit, min(guess or 1.0, _LARGEST), _SIZE, nearness=_NEARNESS)
    return math.inf if excess >= 0.999 * limit else excess


def runs_needed(claim: Claim, q: Alternative, *, excess: float, power: float = 0.95, alpha: float) -> int:
    """Return the fewest runs on each dataset with which the exact test finds an excess with probability `power`.

    The result has a relative accuracy of 1%, apart from the error of `power_of_test`. With small counts slightly more
    runs may have less power.

    Parameters
    ----------
    claim, q, alpha, power
        As in `detectable_excess`; the runs of the pilot are additional.
    excess : float
        The excess to detect, in the units of the claim's privacy parameter.

    Raises
    ------
    OptionError
        If more than 10¹² runs are needed, or the claim's family has no member with this excess.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 1.4e5 < runs_needed(PureDP(1.0), 0.18, excess=0.02, alpha=0.05) < 1.8e5
    True
    """
    check_alpha(alpha)
    _check_probabilities(q=q, power=power)
    if not 0.0 < excess < claim.max_parameter - claim.parameter:
        raise OptionError(
            f"excess={excess!r} is not a possible excess over {claim}; use a number above 0 and below "
            f"{claim.max_parameter - claim.parameter:g}.",
            excess=excess,
        )
    z = float(-scipy.special.ndtri(alpha))
    aim = max(float(scipy.special.ndtri(power)) + z, 0.2)
    low, high, further = 0.0, math.inf, 0.003
    event = event_of(claim, excess, q)
    at = (aim / max(event.clearance, 1e-9)) ** 2
    while high > max(low + 1.0, 1.01 * low):
        at = float(round(min(max(at, low + 1.0), high - 1.0, _MOST_PLANNED)))
        power_on_y = _Power.of(claim, int(at), int(at), event.q, alpha)
        reached = power_on_y.at(np.array([event.p]), np.array([event.p_rest]))
        # The normal quantile of the power grows like the root of the runs; step slightly beyond the predicted number.
        seen = float(scipy.special.ndtri(min(max(reached, 1e-9), 1 - 1e-9))) + z
        gain = min(max(aim / max(seen, 0.2 * aim), 0.5), 2.0) ** 2
        if reached >= power:
            high, at = at, at * min(gain, 1.0) / (1.0 + further)
        elif at < _MOST_PLANNED:
            low, at = at, at * max(gain, 1.0) * (1.0 + further)
        else:
            raise OptionError(
                f"excess={excess:g} needs more than {_MOST_PLANNED:,} runs on each dataset with an event of "
                f"probability {event.q:.3g}; use a larger excess.",
                excess=excess,
            )
        further *= 2.0
        if low > 0.0 and high < math.inf:
            share = (high / low) ** 0.1
            at = min(max(at, low * share), high / share)
    return int(high)


@dataclass(frozen=True, slots=True)
class _Power:
    """Critical numbers of counts on x for blocks of counts on y, and the probabilities of the blocks."""

    runs_x: int
    runs_y: int
    ends: Array
    critical: Array
    mass: Array
    known: tuple[float, float]  # counts on y between which the critical numbers are accurate

    @classmethod
    def of(cls, claim: Claim, runs_x: int, runs_y: int, q: float, alpha: float) -> _Power:
        ends = np.unique(np.round(np.linspace(*likely_counts(runs_y, q, 6.0, 20.0), _BLOCKS)))
        middle = np.floor(0.5 * (ends + np.append(ends[0], ends[:-1] + 1.0)))
        critical = critical_curve(claim, runs_x, runs_y, q, alpha, middle)
        return cls(runs_x, runs_y, ends, critical, _mass(ends, runs_y, q), likely_counts(runs_y, q))

    def covers(self, q: float) -> bool:
        """Return whether the likely counts on y at another rate are among those at which the curve was computed."""
        low, high = likely_counts(self.runs_y, q, _KNOWN, 0.0)
        return self.known[0] <= low and high <= self.known[1]

    def at_rate(self, q: float) -> _Power:
        """Return the power for another rate on y."""
        return replace(self, mass=_mass(self.ends, self.runs_y, q))

    def at(self, p: Array, p_rest: Array) -> float:
        """Return the power if the event has this probability on x, of shape (1,)."""
        found = upper_tail(self.critical[None], self.runs_x, p, p_rest)[0]
        return float(min((found * self.mass).sum(), 1.0))


def _mass(ends: Array, runs: int, q: float) -> Array:
    at_most = upper_tail((runs - ends)[None], runs, np.array([1.0 - q]), np.array([q]))[0]
    return np.diff(at_most, prepend=0.0)


def _check_probabilities(**given: Alternative) -> None:
    for name, value in given.items():
        if not isinstance(value, (AsLikely, GaussianNoise)) and not 0.0 < value < 1.0:
            raise OptionError(f"{name}={value!r} is not inside (0, 1); use 0 < {name} < 1.", **{name: value})


def guess_excess(claim: Claim, guesses: Guesses, *, alpha: float, power: float) -> float:
    """Return the smallest excess of a claim with a `log_ratio` that the test finds with probability `power`.

    The alternative keeps the frequency of correct guesses, and those of wrong ones fall as the excess grows; the number
    of guesses is taken as its mean. Infinite if no excess is found with that power.
    """
    each, unit = claim.log_ratio, claim.with_parameter(1.0).log_ratio
    if each is None or unit is None:
        raise OptionError(f"{claim} is not a limit on the log likelihood ratio alone.", claim=claim)
    right = guesses.correct + 0.5
    usual = 1.0 / (1.0 + math.exp(-each))

    def is_missed(excess: float) -> bool:
        likelier = 1.0 / (1.0 + math.exp(-(each + excess * unit)))
        made = round(right / likelier)
        return _more(_exceeded(alpha, made, usual), made, likelier) < power

    found = largest_parameter(is_missed, 700.0 / unit, tolerance=1e-4)
    return math.inf if found >= 0.99 * 700.0 / unit else max(found, 1e-12)


def _more(counts: int, runs: int, p: float) -> float:
    """Return the probability of more than this many counts."""
    return float(scipy.special.betainc(counts + 1.0, runs - counts, p)) if counts < runs else 0.0


def _exceeded(alpha: float, runs: int, p: float) -> int:
    """Return the smallest count that is exceeded with probability ≤ `alpha`; scipy.stats takes long to import."""
    low, high = -1, runs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _more(middle, runs, p) <= alpha else (middle, high)
    return high


def equivalent_runs(claim: Claim, guesses: Guesses) -> int:
    """Return with how many independent runs on each dataset counts would show as small an excess as the guesses.

    Correct and incorrect guesses exclude each other, which adds to the variance of the distance from the boundary.
    """
    w = (guesses.incorrect + 0.5) / (guesses.runs + 1.0)
    near = 1e-3 * min(w, 1.0 - w)
    power, _ = claim.max_power(np.array([w - near, w, w + near]))
    c, slope = min(float(power[1]), 1.0 - w), float(power[2] - power[0]) / (2.0 * near)
    apart = c * (1.0 - c) + slope**2 * w * (1.0 - w)
    return max(1, int(guesses.runs * apart / (apart + 2.0 * slope * c * w)))
