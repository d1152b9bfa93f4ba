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

from ..events.events_apart import Apart, count_both, set_apart
from ..inference.guess_test import coins_for
from .choice import Choice, chosen, directed_shares, value_of
from .event_criterion import Criterion
from .event_value import Best, leading
from .pilot_split import PilotSplit

_LEAD = 2.0  # standard errors of the pilot by which one direction must lead to be tested alone


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
    tried = [_together(first, second, split) for first, second in pairs]
    first, second = max(tried, key=lambda pair: _value(pair[0], pair[1], criterion, caution))
    value, less = (_value(first, second, criterion, errors) for errors in (0.0, 1.0))
    alone = value_of(chosen(best), replace(criterion, is_one_way=True), 0.0)
    return replace(first, opposite=second) if value + _LEAD * (value - less) > alone else None


def _as_likely(best: Best, other: Best) -> Best:
    """The event of a family that is about as likely as another event, each on the dataset on which it is unlikely."""
    family = best.family
    hits = family.hits_y if best.direction == "x" else family.hits_x
    unlikely = (hits if best.is_inside else family.runs - hits) / family.runs
    wanted = other.hits[other.direction == "x"] / other.family.runs
    return replace(best, index=int(np.argmin(np.abs(unlikely - wanted))))


def _together(best: Best, other: Best, split: PilotSplit) -> tuple[Choice, Choice]:
    """Both events without the outputs that they share, which are counted again if there may be any."""
    first, second = chosen(best), chosen(other)
    events = set_apart(first.event, second.event)
    if not isinstance(events[0], Apart):
        return first, second
    held = split.held_runs
    (first_x, second_x), (first_y, second_y) = (count_both(*events, side) for side in (split.held_x, split.held_y))
    return (
        Choice(events[0], first.likelier_on, first_x, first_y, held),
        Choice(events[1], second.likelier_on, second_x, second_y, held),
    )


def _value(first: Choice, second: Choice, criterion: Criterion, caution: float) -> float:
    """The criterion for guesses by both events."""
    held = min(first.pilot_runs, second.pilot_runs)
    right, wrong = (held * sum(shares) for shares in zip(*map(directed_shares, (first, second)), strict=True))
    return criterion.value_of_guesses(right, wrong, held, caution)
