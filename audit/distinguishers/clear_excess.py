"""Small excesses that the pilot shows by many standard errors.

The expected bound favours large ratios, so a chance find of a few hits can outrank a small excess over many hits.
Standard errors rank them correctly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..claims.claim import Claim
from ..families.event_families import Family
from ..families.interval_families import interval_families
from ..inference.betting_test import Line, supporting_line
from .event_criterion import Criterion
from .event_value import DIRECTIONS, Best, best_event, leading

_TOUCHED = 0.05  # probability at which a line touches the claim's boundary
# Standard errors of an excess, in steps of a tenth. Of correct noise, four are reached in an eighth of the pilots, and
# three nearly always by one of so many intervals. Beyond eight, a larger ratio is as good.
_CLEAR = (4.0, 4.5, 5.0, 5.5, 6.0, 6.6, 7.3, 8.0)


def intervals_for(families: Sequence[Family[Any]], claim: Claim) -> list[Family[Any]]:
    """The intervals that differ most between the datasets, and those that exceed the claim most, in both directions."""
    lines = [
        (direction, line)
        for direction, directed in zip(DIRECTIONS, (claim, claim.reversed()), strict=True)
        for line in (Line(1.0, 0.0), supporting_line(directed, _TOUCHED))
    ]
    return list(interval_families(families, lines))


def or_interval(found: list[Best | None], intervals: Sequence[Family[Any]], criterion: Criterion) -> list[Best | None]:
    """The best event for x and for y, or an interval in its direction if it is better than both.

    One more standard error is subtracted from the interval, and it has to show something. The other direction keeps its
    event: a second interval is usually a chance find, and would dilute the guesses by both.
    """
    best, interval = leading(found), best_event(intervals, replace(criterion, caution=criterion.caution + 1.0))
    least = max(-criterion.claim.strength, -math.inf if best is None else best.value)
    if interval is None or interval.value <= least:
        return found
    return [interval if way == interval.direction else own for way, own in zip(DIRECTIONS, found, strict=True)]


def clearest(families: Sequence[Family[Any]], criterion: Criterion) -> Best | None:
    """The event that exceeds the claim by the most standard errors of the pilot; None if these are fewer than four.

    The event's caution is a number of standard errors that it reaches. Events of fitted curves are left out, as only a
    share of the caution is subtracted from them.
    """
    counted = [replace(family, is_learned=False) for family in families if family.fitted is None]
    found = None
    for caution in _CLEAR:
        event = best_event(counted, replace(criterion, z=0.0, caution=caution))
        if event is None or event.value <= 0.0:
            break
        found = event
    return found
