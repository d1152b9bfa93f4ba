"""An excess that the pilot shows by many standard errors although it is small: in a stretch of values, or elsewhere.

The expected bound prefers events with a large ratio, and of a small excess it sees little more than of a chance find.
What is rare by chance is an excess of many standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..claims.claim import Claim
from ..families.event_families import Family
from ..families.stretches import stretch_families
from ..inference.supporting_lines import Line, supporting_line
from .event_criterion import Criterion
from .event_value import DIRECTIONS, Best, best_event, leading

_NEITHER_RARE_NOR_COMMON = 0.05
_CLEAR = (3.0, 3.3, 3.6, 4.0, 4.4, 4.8, 5.3, 5.8, 6.4, 7.0, 8.0)
"""Standard errors of an excess."""


def stretches_for(families: Sequence[Family[Any]], claim: Claim) -> list[Family[Any]]:
    """The stretches that differ most between the datasets, and those that exceed the claim most, in both directions."""
    lines = [
        (direction, line)
        for direction, directed in zip(DIRECTIONS, (claim, claim.reversed()), strict=True)
        for line in (Line(1.0, 0.0), supporting_line(directed, _NEITHER_RARE_NOR_COMMON))
    ]
    return list(stretch_families(families, lines))


def or_stretch(found: list[Best | None], stretches: Sequence[Family[Any]], criterion: Criterion) -> list[Best | None]:
    """The best event for each direction, with a stretch in place of the leading one if it is clearly better.

    One standard error more is subtracted from a stretch, and it has to show something. Only one of the two events is a
    stretch: the best of thousands in the other direction is, as a rule, a chance find, and guesses by both events would
    be worse for it.
    """
    best = leading(found)
    stretch = best_event(stretches, replace(criterion, caution=criterion.caution + 1.0))
    least = 0.0 if best is None else max(best.value, -criterion.claim.strength)
    if stretch is None or stretch.value <= least:
        return found
    if len(found) != len(DIRECTIONS):
        return [stretch]
    return [stretch if way == stretch.direction else own for way, own in zip(DIRECTIONS, found, strict=True)]


def clearest(families: Sequence[Family[Any]], criterion: Criterion) -> Best | None:
    """The event that exceeds the claim by the most standard errors of the pilot; None if these are fewer than three.

    The event's caution is a number of standard errors that it reaches. The same are subtracted from all events, so
    those that a fitted curve proposes are left out.
    """
    counted = [replace(family, is_learned=False) for family in families if family.fitted is None]
    found = None
    for caution in _CLEAR:
        event = best_event(counted, replace(criterion, z=0.0, caution=caution))
        if event is None or event.value <= 0.0:
            break
        found = event
    return found
