"""The fewest hits on x that the exact test refutes, for all likely numbers of hits on y at once.

The regions of the test form a chain {X ≥ c_s(Y)}. Counts are refuted if the probability of their region is at most
alpha at every point of the boundary that is plausible given y. The probability does not depend on the counts, so every
region is evaluated once for all y. A search along the chain finds, for every y, the last region that is not refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..claims.claim import Claim, ParametricClaim
from ..inference.binomial_tails import Array, limits, upper_tail
from ..inference.boundary_test import CELL, GAMMA, REACH, arcsine_angle, hits_needed, table_angles

# Probabilities of regions {X ≥ c(Y)} along a claim's boundary, nearly as the exact test bounds them, but faster.
#
# The test takes the larger p and the smaller q of narrow cells of q, and the least c of blocks of y. Here the points
# of the boundary are further apart, except where it bends, and the blocks are wider; the test's own roundings become
# shifts of p, q and y. Few numbers of hits are summed one by one, as in the test.

_COUNTED = 400  # numbers of hits on y that are summed one by one
_SPACING, _FINE_SPACING = 0.25, 0.06  # standard errors of q between points, for blocks of y and for single y
_BEND, _PARTS = 0.02, 8  # relative change of the slope at which a spacing is divided, and the number of parts
_BLOCK, _BLOCK_OF_X = 0.25, 0.5  # width of a block of y, at most, in standard errors of y and of x
_SUMMED, _NORMAL_FROM = 400.0, 100.0  # variance of x below which all tails are summed, and of hits below which some are


@dataclass(frozen=True, slots=True)
class RegionProbabilities:
    """The laws of the hits at points of the boundary.

    Attributes
    ----------
    angle : ndarray, shape (points,)
        arcsin √q of the points.
    y : ndarray, shape (blocks,)
        Number of hits on y that stands for each block; not always whole.
    """

    angle: Array
    y: Array
    n: int
    p: Array
    p_rest: Array
    columns: npt.NDArray[np.int64]  # blocks that are summed at each point, shape (points, width)
    mass: Array  # their probabilities, shape (points, width)
    before: Array  # probability of all y before the first of them, shape (points,)
    first: Array  # hits on x at which the tables begin, shape (points,)
    table: Array | None  # tails of x, shape (points, hits)

    @classmethod
    def of(cls, claim: Claim, rough: Claim, n: int, m: int, low: float, high: float) -> RegionProbabilities:
        """Prepare the boundary of `claim` between two angles of q; `rough` is nearly the same claim, and cheap."""
        unit = 0.5 / math.sqrt(m)
        half = 0.5 * CELL * unit
        low, high = low + half, max(high - half, low + 3.0 * half)
        angle, starts = _points_and_blocks(rough, n, m, low, high)
        p, p_rest = claim.max_power(*rates(angle + half))
        q, q_rest = rates(angle - half)
        columns = _blocks_near(angle, starts, m)
        ends = np.append(starts[1:] - 1.0, float(m))
        y = np.append(0.5 * (starts + ends)[:-1], starts[-1])
        y -= 0.5 * np.maximum(CELL * np.sqrt(y * (m - y) / m) - 1.0, 0.0)  # the test's blocks count as their first y
        through = np.concatenate([starts[columns[:, :1]] - 1.0, ends[columns]], axis=1)
        below = _tail(m - through, m, q_rest, q)
        below[:, 0] = np.where(through[:, 0] < 0, 0.0, below[:, 0])
        first, table, variance = np.zeros(0), None, n * p * p_rest
        if variance.max() < _SUMMED:
            reach = np.ceil(7.5 * np.sqrt(variance) + 30.0)
            first = np.floor(n * p) - reach
            hits = np.arange(min(2 * reach.max(), n + 1 - first.min()) + 1.0)
            table = upper_tail(first[:, None] + hits, n, p, p_rest)
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


def rates(angle: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the probability at an angle on the arcsine scale, and its complement."""
    inside = np.clip(angle, 0.0, math.pi / 2)
    return np.asarray(np.sin(inside) ** 2), np.asarray(np.cos(inside) ** 2)


def _points_and_blocks(claim: Claim, n: int, m: int, low: float, high: float) -> tuple[Array, Array]:
    """Return angles of q and the first y of each block."""
    unit = 0.5 / math.sqrt(m)
    rise = np.diff(arcsine_angle(*claim.max_power(*rates([low, high]))))[0] / (high - low)
    error_x = 1.0 / max(float(rise) * math.sqrt(n / m), 1e-9)  # in standard errors of y
    fewest, most = (m * rates([low - REACH * unit, high + REACH * unit])[0]).tolist()
    if most - fewest > _COUNTED:
        block = min(_BLOCK, max(_BLOCK_OF_X * error_x, CELL)) * unit
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


def _blocks_near(angle: Array, starts: Array, m: int) -> npt.NDArray[np.int64]:
    reach = REACH * 0.5 / math.sqrt(m)
    from_block = np.maximum(np.searchsorted(starts, m * rates(angle - reach)[0], side="right") - 1, 0)
    to_block = np.searchsorted(starts, m * rates(angle + reach)[0], side="right")
    width = int((to_block - from_block).max()) + 1
    return np.minimum(from_block[:, None] + np.arange(width), len(starts) - 1)


def _tail(hits: Array, runs: int, p: Array, p_rest: Array) -> Array:
    """Return Pr[Bin(runs, p) ≥ hits], with a continuity correction where it is the normal bound."""
    correction = 0.5 * (runs * p * p_rest >= _NORMAL_FROM)[:, None]
    return upper_tail(hits + correction, runs, p, p_rest, normal_from=_NORMAL_FROM)


_ERRORS = 24.0  # standard errors around q that a power needs


# A family of claims near one probability, read from tables: as cheap as a boundary with a closed form.
#
# Counts near that probability are planned with the tables and tested with the claim.


@dataclass(frozen=True, slots=True, eq=False)
class _Tabulated(ParametricClaim):
    """A claim's family near one q, on the arcsine scale: linear between grid points and between tabulated members."""

    claim: Claim
    angle: Array
    step: float  # of the strength between tabulated members
    own: float
    powers: dict[int, Array] = field(default_factory=dict)  # filled on demand; shared by the family

    strength_name, _strength_field = "strength", "own"
    has_closed_form = True  # the tables are as cheap as a formula

    @property
    def max_strength(self) -> float:
        return self.claim.max_strength

    def _member(self, number: int) -> Array:
        if number not in self.powers:
            strength = max(self.claim.strength + number * self.step, 0.0)
            member = self.claim.with_strength(min(strength, self.claim.max_strength * (1.0 - 1e-12)))
            self.powers[number] = arcsine_angle(*member.max_power(np.sin(self.angle) ** 2, np.cos(self.angle) ** 2))
        return self.powers[number]

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        place = (self.own - self.claim.strength) / self.step
        below = math.floor(place)
        table = self._member(below)
        if place > below:
            low = max(self.claim.strength + below * self.step, 0.0)
            high = min(self.claim.strength + (below + 1) * self.step, self.claim.max_strength)
            table = table + (self.own - low) / (high - low) * (self._member(below + 1) - table)
        found = np.interp(arcsine_angle(q, q_complement), self.angle, table)
        return np.sin(found) ** 2, np.cos(found) ** 2

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return self.claim.rough_strength_of(p, q, p_complement, q_complement)


def tabulated(claim: Claim, n: int, m: int, q: float) -> Claim:
    """Return the claim with a boundary that is cheap near `q`; a claim with a closed form is returned as it is."""
    if claim.has_closed_form:
        return claim
    middle, unit = math.asin(math.sqrt(q)), 0.5 / math.sqrt(m)
    angle = table_angles(max(middle - _ERRORS * unit, 0.0), min(middle + _ERRORS * unit, math.pi / 2), m)
    power = float(arcsine_angle(*claim.max_power(q, 1.0 - q)))
    above = min(power + 0.5 / math.sqrt(n), 0.5 * math.pi - 1e-9)  # a standard error of x
    step = min(max(rise(claim, q, power, above), 1e-6), 1.0, 0.5 * (claim.max_strength - claim.strength))
    return _Tabulated(claim, angle, step, claim.strength)


def rise(claim: Claim, q: float, low: float, high: float) -> float:
    """Return about how much the strength rises if the angle of p at q does so from `low` to `high`."""
    p, p_rest = (np.square(turn([low, high])) for turn in (np.sin, np.cos))
    strength = claim.rough_strength_of(p, np.full(2, q), p_rest, np.full(2, 1.0 - q))
    return float(strength[1] - max(strength[0], 0.0))


_LIKELY = 4.5  # standard deviations of Y in which the curve is computed; further out, the nearest limits for q are used
_LIMITS = 80  # numbers of hits on y up to which limits for q are not interpolated
_START = np.array([-0.2, 0.0, 0.2])  # first places on the chain
_AT_ONCE, _PASSES = 4, 30

# Brackets of places that suffice. Where regions are many, the probability is a smooth function of the place.
_WIDE, _NARROW, _LESS_NARROW = 0.21, 0.001, 0.003
_CLOSE = 0.1  # width of a bracket in which regions are tried one by one
_MARGIN = 0.005  # distance from the next region, as a share of such a bracket
_NEAR = 0.004  # normal quantile of the p-value minus that of alpha, where a hit more or less does not matter
_MANY_HITS, _SOME_HITS, _FEW_HITS, _MANY_REGIONS = 50.0, 25.0, 3.0, 60.0


def critical_curve(claim: Claim, n: int, m: int, q: float, alpha: float, y: Array) -> Array:
    """Return the fewest hits on x that are refuted, for increasing numbers `y` of hits on y that are likely at rate q.

    The result is n + 1 where no number is refuted.
    """
    rough = tabulated(claim, n, m, q)
    chain = _Chain.of(rough, n, m, q, alpha)
    wide, near = chain.accuracy(math.sqrt(m * q * (1.0 - q)))
    some, number = np.unique(np.clip(y, *likely_hits(m, q)), return_inverse=True)
    low, high = _limits(some, m)
    boundary = RegionProbabilities.of(claim, rough, n, m, float(low[0]), float(high[-1]))
    half = 0.499 * CELL * 0.5 / math.sqrt(m)
    first = np.minimum(np.searchsorted(boundary.angle, low + half), len(boundary.angle) - 1)
    last = np.maximum(np.searchsorted(boundary.angle, high - half), first + 1)
    plausible = np.stack([first, last], axis=1).ravel()
    everywhere = np.concatenate([boundary.y, y])

    places, needed, excess, new = np.empty(0), np.empty((0, len(y))), np.empty((0, len(y))), _START
    for _ in range(_PASSES):
        found = np.stack([chain.needed(float(place), everywhere) for place in new])
        probability = boundary.at(np.ceil(found[:, : len(boundary.y)]))
        largest = np.maximum.reduceat(np.pad(probability, ((0, 0), (0, 1))), plausible, axis=1)[:, ::2]
        over = ndtri(np.clip(GAMMA + largest, 0.0, 1.0 - 1e-12)) - float(ndtri(alpha))
        places, order = np.unique(np.concatenate([places, new]), return_index=True)
        needed = np.concatenate([needed, found[:, len(boundary.y) :]])[order]
        excess = np.concatenate([excess, over[:, number]])[order]
        bracket = _Bracket.of(places, needed, excess)
        wanted = np.unique(np.round(bracket.next_place()[~bracket.is_found(n, wide, near)], 5))
        if wide == _WIDE:
            wanted = np.round(np.concatenate([wanted - 0.1, wanted + 0.1]), 1)
        new = np.setdiff1d(wanted, places)
        if len(new) > _AT_ONCE:
            new = new[np.round((np.arange(_AT_ONCE) + 0.5) / _AT_ONCE * (len(new) - 1)).astype(int)]
        if not len(new):
            break
    allowed = np.floor(n * rough.max_power(y / m, (m - y) / m)[0] * (1.0 + 1e-12))  # never refuted
    return np.maximum(bracket.critical(n), allowed + 1.0)


def likely_hits(m: int, q: float, deviations: float = _LIKELY, more: float = 2.0) -> tuple[float, float]:
    """Return the least and the largest likely number of hits on y; by default those for which the curve is accurate."""
    reach = deviations * math.sqrt(m * q * (1.0 - q)) + more
    return max(float(math.floor(m * q - reach)), 0.0), min(float(math.ceil(m * q + reach)), float(m))


def _limits(y: Array, m: int) -> tuple[Array, Array]:
    """Return the angles of the test's confidence limits for q; interpolated between some of many y."""
    some = y if len(y) <= _LIMITS else y[np.round(np.linspace(0, len(y) - 1, _LIMITS // 4)).astype(int)]
    low, high = (arcsine_angle(limit, 1.0 - limit) for limit in limits(some, m, alpha=GAMMA / 2))
    return np.interp(y, some, low), np.interp(y, some, high)


@dataclass(frozen=True, slots=True)
class _Chain:
    """The chain of the test's regions. Places whose distance is 1 are about a standard error apart."""

    claim: Claim
    n: int
    m: int
    z: float
    step: float  # of the strength
    error_x: float  # hits on x in a standard error of x
    error_y: float  # and in a standard error of y

    @classmethod
    def of(cls, claim: Claim, n: int, m: int, q: float, alpha: float) -> _Chain:
        unit, middle = 0.5 / math.sqrt(m), math.asin(math.sqrt(q))
        at = np.clip([middle - unit, middle, middle + unit], 0.0, math.pi / 2)
        power = arcsine_angle(*claim.max_power(*rates(at)))
        error_x, error_y = 0.5 / math.sqrt(n), float(power[2] - power[0]) / float(at[2] - at[0]) * unit
        above = min(float(power[1]) + math.hypot(error_x, error_y), 0.5 * math.pi - 1e-9)
        step = min(max(rise(claim, q, float(power[1]), above), 1e-9), 2.0, 0.25 * (claim.max_strength - claim.strength))
        hits = n * math.sin(2.0 * above)
        return cls(claim, n, m, max(float(-ndtri(alpha)), 0.5), step, hits * error_x, hits * error_y)

    def needed(self, place: float, y: Array) -> Array:
        """Return c(y) before rounding up, for the region at this place; at 0 it is that of the claim's strength."""
        strength, z = self.claim.strength + place * self.step, self.z
        if strength < 0.0:
            strength, z = 0.0, max(z + strength / self.step, 0.0)
        member = self.claim.with_strength(min(strength, self.claim.max_strength * (1.0 - 1e-12)))
        return hits_needed(y, self.n, self.m, member, z)

    def accuracy(self, deviation: float) -> tuple[float, float]:
        """Return the width of a bracket, and the nearness to alpha of one of its ends, that suffice."""
        spread = math.hypot(self.error_x, self.error_y)
        are_many = self.error_y >= _FEW_HITS and deviation * spread >= _MANY_REGIONS
        if deviation >= _FEW_HITS and (are_many or self.error_x >= _MANY_HITS):
            return _WIDE, 0.0
        return (_NARROW, 0.0) if spread < _SOME_HITS else (_LESS_NARROW, _NEAR)


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
        share = np.where(self._is_close, np.clip(self._next - _MARGIN, _MARGIN, 1.0), np.clip(self._share, 0.1, 0.9))
        above = self.high + np.clip(1.1 * self.excess_low, 0.2, 4.0)
        below = self.low + np.clip(1.1 * self.excess_high, -4.0, -0.2)
        between = self.low + share * (self.high - self.low)
        return np.where(self.has_low, np.where(self.has_high, between, above), below)

    def is_found(self, n: int, wide: float, near: float) -> npt.NDArray[np.bool_]:
        """Return whether the critical number of hits is known."""
        is_possible = self.needed_high <= n
        is_found = self.high - self.low < np.where(is_possible, wide, _NARROW)
        is_found |= is_possible & (np.minimum(np.abs(self.excess_low), np.abs(self.excess_high)) < near)
        is_found |= self._steps == 0.0
        is_found |= self._is_close & (self._next < 2.0 * _MARGIN)
        return np.where(self.has_low, np.where(self.has_high, is_found, self.needed_low > n), self.needed_high <= 0)

    def critical(self, n: int) -> Array:
        """Return the critical number of hits."""
        between = self.needed_low + self._share * (self.needed_high - self.needed_low)
        found = np.where(self.has_low & ~self._is_close, between, self.needed_high)
        return np.where(self.has_high, np.minimum(np.ceil(found), n + 1.0), n + 1.0)

    @property
    def _steps(self) -> Array:
        """The difference of the critical numbers of hits at the two ends."""
        return np.asarray(np.ceil(self.needed_high) - np.ceil(self.needed_low))

    @property
    def _is_close(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.high - self.low < _CLOSE) & (self._steps <= 1.0))

    @property
    def _next(self) -> Array:
        """The place from which a further hit is needed, as a share of the bracket."""
        more = np.ceil(self.needed_low) - self.needed_low
        return np.asarray(more / np.maximum(self.needed_high - self.needed_low, 1e-12))

    @property
    def _share(self) -> Array:
        """The place at which the p-value is alpha if its normal quantile is linear, as a share of the bracket."""
        fall = self.excess_low - self.excess_high
        return np.where(self.has_low & self.has_high, self.excess_low / np.where(fall > 0.0, fall, 1.0), 0.0)
