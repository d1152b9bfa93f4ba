"""The criterion of an event: the expected excess of its lower bound over the claim, minus the noise of the pilot.

The asymptotic ellipse of the test stands in for the test: on the arcsine scale a standard error is 1/(2√n), p is turned
back by its share of the error, and q forward by the rest. For guesses in both directions the two shares are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..claims.claim import Array, Claim
from ..inference.boundary_test import Direction
from ..inference.guess_test import coins_for

Places = npt.NDArray[np.int64]

_MANY = 200  # events of which only the promising ones are looked at closely, since for fewer that takes longer
_AT_ONCE = (
    1 << 15
)  # most events of several families that are looked at together, so that their arrays stay in the cache
_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]
_QUARTER = np.sin(_ANGLES), np.cos(_ANGLES)  # of the ellipse
_DIAGONAL = np.sin(_ANGLES[4:5]), np.cos(_ANGLES[4:5])


class Events(NamedTuple):
    """Nested events or their complements, by their hits in `held` runs, tested in one direction.

    `caution` is the number of standard errors of the pilot's frequencies that are subtracted.
    """

    hits_x: Array
    hits_y: Array
    held: int
    is_inside: bool
    direction: Direction
    caution: float


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

    def values_of_each(self, families: Sequence[Events]) -> list[Array]:
        """The criterion for all events of each family; −∞ for useless events."""
        found = [np.empty(0)] * len(families)
        for group in self._alike(families):
            pooled = _Pooled.of(families, group)
            values = np.full(len(pooled.hits_p), -math.inf)
            useful = np.flatnonzero(~self._are_useless(pooled.hits_p, pooled.hits_q, pooled.like.held))
            values[useful] = self._excess(pooled.at(useful))
            ends = np.cumsum([len(families[place].hits_x) for place in group])
            for place, own in zip(group, np.split(values, ends[:-1]), strict=True):
                found[place] = own
        return found

    def largest_of_each(self, families: Sequence[Events]) -> list[tuple[int, float]]:
        """The first event of each family with the largest value, and the value; (0, −∞) if all are useless.

        An event's value is the least over the ellipse, so one point of the ellipse gives an upper bound. Of many
        events, only those whose bound reaches the value of one event of their family are looked at closely.
        """
        found = [(0, -math.inf)] * len(families)
        for group in self._alike(families):
            pooled = _Pooled.of(families, group)
            near = pooled.at(np.flatnonzero(~self._are_useless(pooled.hits_p, pooled.hits_q, pooled.like.held)))
            if len(near.owner) >= _MANY:
                bounds = self._excess(near, _DIAGONAL)
                starts, lengths = near.families()
                reached = self._excess(near.at(_first_largest(bounds, starts, lengths)))
                near = near.at(np.flatnonzero(bounds >= np.repeat(reached, lengths)))
            if len(near.owner) == 0:
                continue
            values = self._excess(near)
            for most in _first_largest(values, *near.families()).tolist():
                if values[most] > -math.inf:
                    found[group[near.owner[most]]] = int(near.index[most]), float(values[most])
        return found

    def _alike(self, families: Sequence[Events]) -> list[list[int]]:
        """Places of families that can be looked at together, of at most some ten thousand events."""
        is_same = self.claim.reversed() is self.claim
        groups: list[list[int]] = []
        last: dict[tuple[int, float, Direction | None], tuple[list[int], int]] = {}
        for place, family in enumerate(families):
            key = family.held, family.caution, None if is_same else family.direction
            group, size = last.get(key, ([], _AT_ONCE))
            if size + len(family.hits_x) > _AT_ONCE:
                group, size = [], 0
                groups.append(group)
            group.append(place)
            last[key] = group, size + len(family.hits_x)
        return groups

    def _excess(self, pooled: _Pooled, angles: tuple[Array, Array] = _QUARTER) -> Array:
        """The least excess over the claim on the ellipse at these angles, given by their sines and cosines."""
        held = pooled.like.held
        size = self._size(self.runs, held, pooled.like.caution)
        sines, cosines = angles if size > 0.0 else (angles[0][:1], angles[1][:1])
        p, p_rest = _turned(pooled.hits_p, held, -size * sines)
        q, q_rest = _turned(pooled.hits_q, held, size * cosines)
        claim = self.claim if pooled.like.direction == "x" else self.claim.reversed()
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


@dataclass(frozen=True, slots=True)
class _Pooled:
    """Events of several families in one array, with the number of their family and their place in it."""

    like: Events  # one of the families, which agree in all but hits, complement and, for most claims, direction
    hits_p: Array  # on the likelier side
    hits_q: Array
    owner: Places
    index: Places

    @classmethod
    def of(cls, families: Sequence[Events], group: Sequence[int]) -> _Pooled:
        own = [families[place] for place in group]
        sides = [_directed(family) for family in own]
        lengths = [len(family.hits_x) for family in own]
        return cls(
            own[0],
            np.concatenate([p for p, _ in sides]),
            np.concatenate([q for _, q in sides]),
            np.repeat(np.arange(len(own)), lengths),
            np.concatenate([np.arange(length) for length in lengths]),
        )

    def at(self, chosen: Places) -> _Pooled:
        """The chosen events."""
        own = self.owner[chosen], self.index[chosen]
        return _Pooled(self.like, self.hits_p[chosen], self.hits_q[chosen], *own)

    def families(self) -> tuple[Places, Places]:
        """Where the events of each family begin, and how many there are."""
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        return starts, np.diff(starts, append=len(self.owner))


def _first_largest(values: Array, starts: Places, lengths: Places) -> Places:
    """Place of the first largest value of each family."""
    if len(starts) == 0:
        return starts
    largest = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, starts), lengths))
    return largest[np.searchsorted(largest, starts)]


def _directed(events: Events) -> tuple[Array, Array]:
    """Hits on the likelier side and on the other, of events or of their complements."""
    hits_p, hits_q = (events.hits_x, events.hits_y)[:: 1 if events.direction == "x" else -1]
    return (hits_p, hits_q) if events.is_inside else (events.held - hits_p, events.held - hits_q)


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
