"""The criterion of an event: the expected excess of its lower bound over the claim, minus the noise of the pilot.

The asymptotic ellipse of the test stands in for the test: on the arcsine scale a standard error is 1/(2√n), p is turned
back by its share of the error, and q forward by the rest. For guesses in both directions the two shares are correlated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..claims.claim import Array, Claim
from ..inference.boundary_test import Direction
from ..inference.guess_test import coins_for

_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]
_ROUNDED = 9  # digits, so that equal values compare equal on every machine
_SINES, _COSINES = np.sin(_ANGLES), np.cos(_ANGLES)  # of the quarter of the ellipse


class Events(NamedTuple):
    """Events by their hits in `held` runs on each dataset, tested in one direction.

    `caution` is the number of standard errors of the pilot's frequencies that are subtracted.
    """

    hits_x: Array
    hits_y: Array
    held: int
    direction: Direction
    caution: float


@dataclass(frozen=True, slots=True)
class Criterion:
    """Approximate excess of an event's lower bound over the claim, minus the noise of the pilot."""

    claim: Claim
    runs: int
    z: float
    least_share: float = 0.0  # of the pilot runs that must lie inside the event, and outside
    is_one_way: bool = False  # whether the direction is given, not chosen with the event
    is_small: bool = False  # whether events of probability above a half, on average over x and y, are useless
    spare: float = 0.0  # standard errors by which that mean may exceed a half

    def values(self, events: Events) -> Array:
        """The criterion for each event; −∞ for useless events."""
        hits_p, hits_q = (events.hits_x, events.hits_y)[:: 1 if events.direction == "x" else -1]
        values = np.full(len(hits_p), -math.inf)
        useful = np.flatnonzero(~self._are_useless(hits_p, hits_q, events.held))
        size = self._size(self.runs, events.held, events.caution)
        p, p_rest = _turned(hits_p[useful], events.held, -size * _SINES)
        q, q_rest = _turned(hits_q[useful], events.held, size * _COSINES)
        claim = self.claim if events.direction == "x" else self.claim.reversed()
        found = claim.rough_strength_of(p, q, p_rest, q_rest).min(axis=0)
        values[useful] = np.where(np.isnan(found), -math.inf, found - claim.strength).round(_ROUNDED)
        return values

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
        return -math.inf if math.isnan(found) else round(float(found) - self.claim.strength, _ROUNDED)

    def _size(self, runs: int, held: int, caution: float) -> float:
        return 0.5 * (self.z / math.sqrt(runs) + caution / math.sqrt(held))


def _turned(hits: Array, held: int, angle: Array) -> tuple[Array, Array]:
    """Frequency of `hits` in `held` runs and its complement, moved by an angle on the arcsine scale."""
    share = (hits + 0.375) / (held + 0.75)
    sine, cosine = np.sqrt(share), np.sqrt(1.0 - share)
    turn_sine, turn_cosine = np.sin(angle), np.cos(angle)
    moved, rest = sine * turn_cosine, cosine * turn_cosine
    moved += cosine * turn_sine
    rest -= sine * turn_sine
    np.maximum(moved, 0.0, out=moved)
    np.maximum(rest, 0.0, out=rest)
    # Beyond 0 or π/2 one of the two is 0 and the other is 1.
    is_certain, is_impossible = rest == 0.0, moved == 0.0
    for turned, is_one in ((moved, is_certain), (rest, is_impossible)):
        np.square(turned, out=turned)
        np.copyto(turned, 1.0, where=is_one)
    return moved, rest
