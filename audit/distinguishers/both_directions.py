"""The choice between a test of one direction and a test of both.

Each direction has its best event. A boundary that is curved wants two events that are equally likely on the datasets on
which they are unlikely, since the mean of the boundary at two probabilities is below the boundary at their mean. So
beside the two best events each is tried with an event of the other's family that is as likely.

Proof: docs/proofs/guesses.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..events.events import Apart, Event, Mask, Scored, ways_apart
from ..events.outputs import Outputs
from ..events.scores import Score
from ..families.pilot_split import PilotSplit
from ..inference.guess_test import coins_for
from .choice import Choice, chosen, directed_shares, value_of
from .event_criterion import Criterion
from .event_value import Best, leading

_LEAD = 2.0  # standard errors of the pilot by which one direction must lead to be tested alone
# Hits of both events on both datasets: with fewer, the pair is within two standard errors of any event. It does not
# take the place of an event that shows an excess although errors are subtracted, if it shows none.
_FEW_HITS = 50


def choose_together(found: Sequence[Best | None], criterion: Criterion, split: PilotSplit) -> Choice | None:
    """The best event with one of the other direction, unless the best one alone is expected to give a larger bound.

    The pilot is too small to show which test has the slightly larger bound. So one direction alone is tested only if it
    leads clearly, and otherwise has a share of alpha beside the test of both.
    """
    best = leading(found)
    other = next((each for each in found if each is not None and each is not best), None)
    if best is None or other is None or not coins_for(criterion.runs):
        return None
    pairs = ((best, other), (best, _as_likely(other, best)), (_as_likely(best, other), other))
    caution = 0.5 * (best.caution + other.caution)
    masks = _Masks(split)
    tried = [way for first, second in pairs for way in _together(first, second, masks)]
    if not tried:
        return None
    first, second = max(tried, key=lambda pair: value_together(pair[0], pair[1], criterion, caution))
    hits = sum(each.pilot_hits_x + each.pilot_hits_y for each in (first, second))
    if hits < _FEW_HITS and best.value > 0.0 >= value_together(first, second, criterion, caution):
        return None
    value, less = (value_together(first, second, criterion, errors) for errors in (0.0, 1.0))
    alone = value_of(chosen(best), replace(criterion, is_one_way=True), 0.0)
    return replace(first, opposite=second) if value + _LEAD * (value - less) > alone else None


def _as_likely(best: Best, other: Best) -> Best:
    """The event of a family that is about as likely as another event, each on the dataset on which it is unlikely."""
    family = best.family
    hits = family.hits_y if best.direction == "x" else family.hits_x
    unlikely = (hits if best.is_inside else family.runs - hits) / family.runs
    wanted = other.hits[other.direction == "x"] / other.family.runs
    return replace(best, index=int(np.argmin(np.abs(unlikely - wanted))))


def _together(best: Best, against: Best, masks: _Masks) -> list[tuple[Choice, Choice]]:
    """The ways to make both events exclude each other; if they overlap, counted again, and without empty events."""
    first, second = chosen(best), chosen(against)
    ways = ways_apart(first.event, second.event)
    if len(ways) == 1:
        return [(first, second)]
    in_first, in_second = masks.of(first.event), masks.of(second.event)
    shared = [int(np.count_nonzero(one & other)) for one, other in zip(in_first, in_second, strict=True)]

    def choice(event: Event, whole: Choice, inside: Sequence[Mask]) -> Choice:
        less = shared if isinstance(event, Apart) else [0, 0]
        on_x, on_y = (int(np.count_nonzero(mask)) - cut for mask, cut in zip(inside, less, strict=True))
        return Choice(event, whole.likelier_on, on_x, on_y, masks.split.held_runs)

    tried = [(choice(one, first, in_first), choice(other, second, in_second)) for one, other in ways]
    return [way for way in tried if all(each.pilot_hits_x + each.pilot_hits_y > 0 for each in way)]


class _Masks:
    """Which held-out runs are in an event; the values of a score are read once."""

    def __init__(self, split: PilotSplit) -> None:
        self.split = split
        self._values: dict[Score, list[Outputs]] = {}

    def of(self, event: Event) -> list[Mask]:
        sides = [self.split.held_x, self.split.held_y]
        if not isinstance(event, Scored):
            return [event.contains(side) for side in sides]
        if event.score not in self._values:
            self._values[event.score] = [event.score.values(side) for side in sides]
        return [event.event.contains(values) for values in self._values[event.score]]


def value_together(first: Choice, second: Choice, criterion: Criterion, caution: float) -> float:
    """The criterion for guesses by both events."""
    held = min(first.pilot_runs, second.pilot_runs)
    right, wrong = (held * sum(shares) for shares in zip(*map(directed_shares, (first, second)), strict=True))
    return criterion.value_of_guesses(right, wrong, held, caution)
