"""The value of an event: the expected excess of its lower bound over the claim, minus the noise of the pilot.

The asymptotic ellipse of the test stands in for the test: on the arcsine scale a standard error is 1/(2√n), p is turned
back by its share of the error, and q forward by the rest. For guesses in both directions the two shares are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..claims.claim import Array, Claim
from ..inference.direction import Direction
from ..inference.guess_test import coins_for
from .event_families import Family

CAUTION = 4.0
"""Standard errors subtracted from the pilot's frequencies, because the best of many noisy events looks better than it
is. For Laplace noise, where all half-lines in the tail have the same ratio and only the largest is wanted, the gap is
1.9 times the oracle's (median) with 1.5 and 1.12 times with 4."""

# Shares of the caution for the single event that a fitted curve proposes: more for an event far in a tail, with less
# than a thousandth of the runs on either dataset, whose step may be noise.
_FITTED_SHARE, _FITTED_TAIL_SHARE, _TAIL = 0.25, 0.6, 0.001
_ABOVE_HALF = 2.0  # standard errors by which the mean probability of the second of two events may exceed a half
_SPARE = 0.02  # share of the gap between bound and ratio given away to keep an event well inside a plateau
# There are only a dozen learned scores, each with a single slope, so the best looks only slightly better than it is.
_LEARNED_CAUTION, _CURVE_CAUTION = 3.0, 1.0
_MANY = 500  # events of which only the promising ones are looked at closely, since for fewer that takes longer
DIRECTIONS: tuple[Direction, ...] = ("x", "y")
_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]
_QUARTER = np.sin(_ANGLES), np.cos(_ANGLES)  # of the ellipse
_DIAGONAL = np.sin(_ANGLES[4:5]), np.cos(_ANGLES[4:5])


@dataclass(frozen=True, slots=True)
class Best:
    """The best event of some families in one direction.

    Attributes
    ----------
    value : float
        Expected excess of its bound over the claim, minus the noise of the pilot.
    family : Family
    is_inside : bool
        Whether the event is {score ≥ t} and not its complement.
    direction : {"x", "y"}
    index : int
        Its place in the family.
    caution : float
        Standard errors of the pilot's frequencies that were subtracted.
    """

    value: float
    family: Family[Any]
    is_inside: bool
    direction: Direction
    index: int
    caution: float

    @property
    def hits(self) -> tuple[int, int]:
        """Pilot hits on x and on y."""
        hits_x, hits_y = int(self.family.hits_x[self.index]), int(self.family.hits_y[self.index])
        return (hits_x, hits_y) if self.is_inside else (self.family.runs - hits_x, self.family.runs - hits_y)


def normal_quantile(alpha: float) -> float:
    """Standard errors by which an event must clear the claim in a test at level alpha; at least 0."""
    return max(float(-ndtri(alpha)), 0.0)


def best_event(
    families: Sequence[Family[Any]], criterion: Criterion, directions: Sequence[Direction] = DIRECTIONS
) -> Best | None:
    """The best event in any of the directions; None if every event is useless."""
    return leading(best_each_way(families, criterion, directions))


def leading(found: Sequence[Best | None]) -> Best | None:
    """The event with the largest value; the first of equals."""
    return max((each for each in found if each is not None), key=lambda best: best.value, default=None)


def best_each_way(
    families: Sequence[Family[Any]], criterion: Criterion, directions: Sequence[Direction] = DIRECTIONS
) -> list[Best | None]:
    """The best event for each of the directions."""
    found: dict[Direction, Best | None] = dict.fromkeys(directions)
    for family in families:
        for is_inside in (True, False):
            for direction in directions:
                best, (new, doubt) = found[direction], _best_of(family, criterion, is_inside, direction)
                # Families are ordered from simple to complex: the first stays unless a later one is clearly better.
                margin = family.margin * criterion.claim.strength
                if best is not None and best.family is not family:
                    margin = max(margin, doubt)
                if new.value > (-math.inf if best is None else best.value + margin):
                    found[direction] = new
    return list(found.values())


def with_the_larger(
    found: list[Best | None], families: Sequence[Family[Any]], criterion: Criterion
) -> list[Best | None]:
    """Fill a direction without an event by an event whose probability is a half within the error of the pilot.

    In randomised response, an event and its complement have together the mean probability of a half, so in every pilot
    one of them is the larger. `found` has an event for x and one for y.
    """
    if (found[0] is None) == (found[1] is None):
        return found
    relaxed = replace(criterion, spare=_ABOVE_HALF)
    return [
        best or best_each_way(families, relaxed, (direction,))[0]
        for best, direction in zip(found, DIRECTIONS, strict=True)
    ]


def _best_of(family: Family[Any], criterion: Criterion, inside: bool, direction: Direction) -> tuple[Best, float]:
    """The best event of a family, and the standard error of the value for a learned score."""

    hits = family.hits_x, family.hits_y
    values = partial(criterion.values, held=family.runs, inside=inside, direction=direction)
    largest = partial(criterion.largest, held=family.runs, inside=inside, direction=direction)

    def counted_at(index: int, caution: float) -> float:
        hits_x, hits_y = (side[index : index + 1] for side in hits)
        return float(values(hits_x, hits_y, caution=caution)[0])

    def found(index: int, value: float, caution: float) -> Best:
        return Best(value, family, inside, direction, index, caution)

    if family.is_learned:
        caution = _LEARNED_CAUTION if family.fitted else max(criterion.caution, _LEARNED_CAUTION)
        most, value = largest(*hits, caution=caution)
        doubt = value - counted_at(most, caution + 1.0) if value > -math.inf else 0.0
        if family.fitted is None:
            return found(most, value, caution), doubt
        # The curve tells where the best event lies; its value has to show in the counts, there or elsewhere.
        index, expected = largest(*family.fitted, caution=_CURVE_CAUTION)
        return found(index, min(value, expected), caution), doubt
    if family.fitted is None:
        return found(*largest(*hits), criterion.caution), 0.0
    # A fitted curve proposes its event without the noise of the counts.
    certain = replace(criterion, z=0.0, caution=0.0).values(*family.fitted, family.runs, inside, direction)
    index = _well_inside(values(*family.fitted, caution=0.0), certain, -1 if inside else 1)
    most_hits = max(float(side[index]) if inside else family.runs - float(side[index]) for side in hits)
    share = _FITTED_SHARE if most_hits > _TAIL * family.runs else _FITTED_TAIL_SHARE
    caution = share * criterion.caution
    return found(index, counted_at(index, caution), caution), 0.0


def _well_inside(values: Array, certain: Array, inward: int) -> int:
    """A slightly smaller event than the best one with nearly the same value; `inward` is the step in the index.

    The end of a plateau of the ratio is not known exactly. An event that reaches beyond the plateau loses more than one
    that ends before it: the bound falls with the ratio, but only with the square root of the event's probability.
    """
    best = int(np.argmax(values))
    if values[best] == -math.inf:
        return best
    least = values[best] - _SPARE * (certain[best] - values[best])
    while 0 <= best + inward < len(values) and values[best + inward] >= least:
        best += inward
    return best


@dataclass(frozen=True, slots=True)
class Criterion:
    """Approximate excess of an event's lower bound over the claim, minus the noise of the pilot."""

    claim: Claim
    runs: int
    z: float
    caution: float
    least_share: float = 0.0  # of the pilot runs that must lie inside the event, and outside
    is_one_way: bool = False  # whether the direction is given, not chosen with the event
    is_small: bool = False  # whether events of probability above a half, on average over x and y, are useless
    spare: float = 0.0  # standard errors by which that mean may exceed a half

    def values(
        self, hits_x: Array, hits_y: Array, held: int, inside: bool, direction: Direction, caution: float | None = None
    ) -> Array:
        """The criterion for events with these hits in `held` runs, or for their complements; −∞ for useless events.

        `caution` overrides the criterion's own.
        """
        hits_p, hits_q = _directed(hits_x, hits_y, held, inside, direction)
        values = np.full(len(hits_p), -math.inf)
        useful = np.flatnonzero(~self._are_useless(hits_p, hits_q, held))
        values[useful] = self._excess(hits_p[useful], hits_q[useful], held, direction, caution)
        return values

    def largest(
        self, hits_x: Array, hits_y: Array, held: int, inside: bool, direction: Direction, caution: float | None = None
    ) -> tuple[int, float]:
        """The first of the events with the largest value, and the value; (0, −∞) if all are useless.

        An event's value is the least over the ellipse, so one point of the ellipse gives an upper bound. Of many
        events, only those whose bound reaches the value of one event are looked at closely.
        """
        hits_p, hits_q = _directed(hits_x, hits_y, held, inside, direction)
        near = np.flatnonzero(~self._are_useless(hits_p, hits_q, held))
        if len(near) >= _MANY:
            bounds = self._excess(hits_p[near], hits_q[near], held, direction, caution, _DIAGONAL)
            first = near[np.argmax(bounds)][None]
            near = near[bounds >= self._excess(hits_p[first], hits_q[first], held, direction, caution)]
        if len(near) == 0:
            return 0, -math.inf
        values = self._excess(hits_p[near], hits_q[near], held, direction, caution)
        most = int(np.argmax(values))
        return (int(near[most]), float(values[most])) if values[most] > -math.inf else (0, -math.inf)

    def _excess(
        self,
        hits_p: Array,
        hits_q: Array,
        held: int,
        direction: Direction,
        caution: float | None,
        angles: tuple[Array, Array] = _QUARTER,
    ) -> Array:
        """The least excess over the claim on the ellipse at these angles, given by their sines and cosines."""
        size = self._size(self.runs, held, self.caution if caution is None else caution)
        sines, cosines = angles if size > 0.0 else (angles[0][:1], angles[1][:1])
        p, p_rest = _turned(hits_p, held, -size * sines)
        q, q_rest = _turned(hits_q, held, size * cosines)
        claim = self.claim if direction == "x" else self.claim.reversed()
        found = claim.rough_strength_of(p, q, p_rest, q_rest).min(axis=0)
        return np.where(np.isnan(found), -math.inf, found - claim.strength)

    def _are_useless(self, hits_p: Array, hits_q: Array, held: int) -> npt.NDArray[np.bool_]:
        # An event is equivalent to its complement in the other direction; keep the one with the larger ratio.
        # An event that always occurs on one side cannot be likelier on the other.
        useless: npt.NDArray[np.bool_] = hits_q == held
        if self.least_share > 0.0:
            useless |= np.minimum(np.minimum(hits_p, held - hits_p), np.minimum(hits_q, held - hits_q)) < (
                self.least_share * held
            )
        spare = self.spare * np.sqrt((hits_p * (held - hits_p) + hits_q * (held - hits_q)) / held)
        if self.is_small:
            useless |= hits_p + hits_q > held + spare
        if not self.is_one_way:
            more = hits_p * (held - hits_p) - hits_q * (held - hits_q)
            useless |= more < -spare * np.abs(hits_p - hits_q)
        return useless

    def value_of_guesses(self, right: float, wrong: float, held: int, caution: float) -> float:
        """The criterion for guesses in both directions, of which these are right and wrong in 2·held runs."""
        runs = 2 * held
        c, w = right / runs, wrong / runs
        # 1 where every output is guessed: then one more right guess is one wrong guess less.
        correlation = 1.0 if right + wrong >= runs else math.sqrt(c * w / ((1.0 - c) * (1.0 - w)))
        widest = math.acos(min(correlation, 1.0))
        turn = np.linspace(-0.5, 0.5, 9) * widest
        size = self._size(coins_for(self.runs), runs, caution)
        p, p_rest = _turned(np.full(9, right), runs, -size * np.cos(turn - 0.5 * widest))
        q, q_rest = _turned(np.full(9, wrong), runs, size * np.cos(turn + 0.5 * widest))
        found = self.claim.rough_strength_of(p, q, p_rest, q_rest).min()
        return -math.inf if math.isnan(found) else float(found) - self.claim.strength

    def _size(self, runs: int, held: int, caution: float) -> float:
        return 0.5 * (self.z / math.sqrt(runs) + caution / math.sqrt(held))


def _directed(hits_x: Array, hits_y: Array, held: int, inside: bool, direction: Direction) -> tuple[Array, Array]:
    """Hits on the likelier side and on the other, of events or of their complements."""
    hits_p, hits_q = (hits_x, hits_y) if direction == "x" else (hits_y, hits_x)
    return (hits_p, hits_q) if inside else (held - hits_p, held - hits_q)


def _turned(hits: Array, held: int, angle: Array) -> tuple[Array, Array]:
    """Frequency of `hits` in `held` runs and its complement, moved by an angle on the arcsine scale."""
    share = (hits + 0.375) / (held + 0.75)
    sine, cosine = np.sqrt(share), np.sqrt(1.0 - share)
    turn_sine, turn_cosine = np.sin(angle), np.cos(angle)
    moved = np.maximum(sine * turn_cosine + cosine * turn_sine, 0.0)
    rest = np.maximum(cosine * turn_cosine - sine * turn_sine, 0.0)
    # Beyond 0 or π/2 one of the two is 0 and the other is 1.
    return np.where(rest > 0.0, moved**2, 1.0), np.where(moved > 0.0, rest**2, 1.0)
