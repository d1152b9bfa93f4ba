"""The best event of families of events in each direction, by the criterion, with more or less caution by family."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ..claims.claim import Array
from ..families.event_families import Family
from ..inference.boundary_test import Direction
from .event_criterion import Criterion, Events

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
DIRECTIONS: tuple[Direction, ...] = ("x", "y")


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
    return best_by_caution(families, criterion, [criterion.caution], directions)[0]


def best_by_caution(
    families: Sequence[Family[Any]],
    criterion: Criterion,
    cautions: Sequence[float],
    directions: Sequence[Direction] = DIRECTIONS,
) -> list[list[Best | None]]:
    """For each of these cautions, in place of the criterion's, the best event for each of the directions.

    What does not depend on the caution is computed once.
    """
    sides = [
        _Side(family, is_inside, direction)
        for family in families
        for is_inside in (True, False)
        for direction in directions
    ]
    return [_leaders(own, criterion, directions) for own in _best_of_each(sides, criterion, cautions)]


def best_places(
    families: Sequence[Family[Any]], criterion: Criterion, cautions: Sequence[float], *, fitted: bool
) -> list[list[Best]]:
    """For each caution the best event of each side of the families, by its counts or by the fitted curve.

    The value of an event that a curve proposes is at most that of its counts.
    """
    sides = [
        _Side(family, is_inside, direction)
        for family in families
        if not fitted or family.fitted is not None
        for is_inside in (True, False)
        for direction in DIRECTIONS
    ]
    found = []
    for caution in cautions:
        own = [side.fitted(caution) if fitted else side.counted(caution) for side in sides]
        largest = criterion.largest_of_each(own)
        counted = criterion.values_of_each(
            [side.counted(0.0, _only(index)) for side, (index, _) in zip(sides, largest, strict=True)]
        )
        found.append(
            [
                side.best(index, min(value, float(least[0])), caution)
                for side, (index, value), least in zip(sides, largest, counted, strict=True)
            ]
        )
    return found


def _leaders(
    best_of_each: Sequence[tuple[Best, float]], criterion: Criterion, directions: Sequence[Direction]
) -> list[Best | None]:
    """The best event for each of the directions, of the best of each side and the standard errors of their values."""
    found: dict[Direction, Best | None] = dict.fromkeys(directions)
    for new, doubt in best_of_each:
        best = found[new.direction]
        # Families are ordered from simple to complex: the first stays unless a later one is clearly better.
        margin = new.family.margin * criterion.claim.strength
        if best is not None and best.family is not new.family:
            margin = max(margin, doubt)
        if new.value > (-math.inf if best is None else best.value + margin):
            found[new.direction] = new
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


class _Side(NamedTuple):
    """The events of a family or their complements, in one direction."""

    family: Family[Any]
    is_inside: bool
    direction: Direction

    def counted(self, caution: float, at: slice = slice(None)) -> Events:
        """The events by their hits."""
        hits_x, hits_y = self.family.hits_x[at], self.family.hits_y[at]
        return Events(hits_x, hits_y, self.family.runs, self.is_inside, self.direction, caution)

    def fitted(self, caution: float) -> Events:
        """The events by the hits that a fitted curve expects."""
        assert self.family.fitted is not None
        return Events(*self.family.fitted, self.family.runs, self.is_inside, self.direction, caution)

    def best(self, index: int, value: float, caution: float) -> Best:
        return Best(value, self.family, self.is_inside, self.direction, index, caution)


def _best_of_each(
    sides: Sequence[_Side], criterion: Criterion, cautions: Sequence[float]
) -> list[list[tuple[Best, float]]]:
    """With each caution, the best event of each side and, for a learned score, the standard error of its value."""
    is_curve = [side.family.fitted is not None and not side.family.is_learned for side in sides]
    curves = [side for side, is_one in zip(sides, is_curve, strict=True) if is_one]
    others = [side for side, is_one in zip(sides, is_curve, strict=True) if not is_one]
    found = []
    for of_curves, of_others in zip(
        _of_curves(curves, criterion, cautions), _of_counts(others, criterion, cautions), strict=True
    ):
        next_curve, next_other = iter(of_curves), iter(of_others)
        found.append([(next(next_curve), 0.0) if is_one else next(next_other) for is_one in is_curve])
    return found


def _of_counts(
    sides: Sequence[_Side], criterion: Criterion, cautions: Sequence[float]
) -> list[list[tuple[Best, float]]]:
    """With each caution, the best event of each side by its counts, and the standard error of a learned score's."""
    wanted = [[(place, _own_caution(side.family, caution)) for place, side in enumerate(sides)] for caution in cautions]
    distinct = list(dict.fromkeys(itertools.chain(*wanted)))
    found = _counted([(sides[place], own) for place, own in distinct], criterion)
    best = dict(zip(distinct, found, strict=True))
    return [[best[each] for each in row] for row in wanted]


def _counted(sides: Sequence[tuple[_Side, float]], criterion: Criterion) -> list[tuple[Best, float]]:
    """The best event of each side with its own caution, and the standard error of its value for a learned score."""
    largest = criterion.largest_of_each([side.counted(caution) for side, caution in sides])
    found = [
        (side.best(index, value, caution), 0.0) for (side, caution), (index, value) in zip(sides, largest, strict=True)
    ]
    learned = [
        place for place, (side, _) in enumerate(sides) if side.family.is_learned and largest[place][1] > -math.inf
    ]
    doubted = criterion.values_of_each(
        [sides[place][0].counted(sides[place][1] + 1.0, _only(largest[place][0])) for place in learned]
    )
    for place, less in zip(learned, doubted, strict=True):
        best = found[place][0]
        found[place] = best, best.value - float(less[0])
    # The curve tells where the best event lies; its value has to show in the counts, there or elsewhere.
    fitted = [place for place, (side, _) in enumerate(sides) if side.family.fitted is not None]
    expected = criterion.largest_of_each([sides[place][0].fitted(_CURVE_CAUTION) for place in fitted])
    for place, (index, most) in zip(fitted, expected, strict=True):
        best, doubt = found[place]
        found[place] = replace(best, index=index, value=min(best.value, most)), doubt
    return found


def _own_caution(family: Family[Any], caution: float) -> float:
    if not family.is_learned:
        return caution
    return _LEARNED_CAUTION if family.fitted else max(caution, _LEARNED_CAUTION)


def _of_curves(sides: Sequence[_Side], criterion: Criterion, cautions: Sequence[float]) -> list[list[Best]]:
    """With each caution, the event that each fitted curve proposes without the noise of the counts.

    It has the value that the counts give it.
    """
    proposed = [side.fitted(0.0) for side in sides]
    curves = len({id(side.family) for side in sides})
    certain = replace(criterion, z=0.0).values_of_each(proposed)
    indices, shares = [], []
    for side, values, sure in zip(sides, criterion.values_of_each(proposed), certain, strict=True):
        family = side.family
        index = _well_inside(values, sure, -1 if side.is_inside else 1)
        hits = max(
            float(part[index]) if side.is_inside else family.runs - float(part[index])
            for part in (family.hits_x, family.hits_y)
        )
        indices.append(index)
        share = _FITTED_SHARE if hits > _TAIL * family.runs else _FITTED_TAIL_SHARE
        shares.append((share, 1.0 + (curves - 1) * max(math.log(family.runs / max(hits, 1.0)), 1.0)))
    found = []
    for caution in cautions:
        own = [
            (side, index, _of_many(share * caution, looks))
            for side, index, (share, looks) in zip(sides, indices, shares, strict=True)
        ]
        counted = criterion.values_of_each([side.counted(part, _only(index)) for side, index, part in own])
        found.append(
            [side.best(index, float(value[0]), part) for (side, index, part), value in zip(own, counted, strict=True)]
        )
    return found


def _of_many(caution: float, looks: float) -> float:
    """Standard errors that the largest of so many errors exceeds as rarely as a single one exceeds `caution`.

    By the union bound. A further curve adds log(1/p) errors for its half-lines down to probability p: those of two
    half-lines are correlated by the root of the ratio of their probabilities.
    """
    return -float(ndtri(ndtr(-caution) / looks))


def _only(index: int) -> slice:
    return slice(index, index + 1)


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
