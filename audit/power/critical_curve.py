"""The fewest hits on x that the exact test refutes, for all likely numbers of hits on y at once.

The regions of the test form a chain {X ≥ c_s(Y)}. Counts are refuted if the probability of their region is at most
alpha at every point of the boundary that is plausible given y. The probability does not depend on the counts, so every
region is evaluated once for all y. A search along the chain finds, for every y, the last region that is not refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..claims.claim import Claim
from ..inference.binomial_tails import Array, limits
from ..inference.boundary_test import CELL, GAMMA, arcsine_angle, hits_needed
from .region_probabilities import RegionProbabilities, rates
from .tabulated_claim import rise, tabulated

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


def likely_hits(m: int, q: float) -> tuple[float, float]:
    """Return the least and the largest number of hits on y for which the curve is accurate."""
    reach = _LIKELY * math.sqrt(m * q * (1.0 - q)) + 2.0
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
