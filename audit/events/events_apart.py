"""Two events that exclude each other: guesses of either dataset cannot be made from one output."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .events import Event, Intervals, Mask, Outcomes, Scored
from .outputs import Outputs, outcome_key


@dataclass(frozen=True, slots=True)
class Apart(Event):
    """Outputs in an event that are not in another one."""

    event: Event
    other: Event

    def contains(self, outputs: Outputs) -> Mask:
        return self.event.contains(outputs) & ~self.other.contains(outputs)

    def __str__(self) -> str:
        return f"{self.event}, but not {self.other}"


def ways_apart(first: Event, second: Event) -> list[tuple[Event, Event]]:
    """Return the ways to make two events exclude each other: what they share goes to the first, the second, or neither.

    Events that share nothing are left as they are.

    Examples
    --------
    >>> import math
    >>> low, high = Intervals(((-math.inf, 0.0),)), Intervals(((0.0, math.inf),))
    >>> [str(event) for event in ways_apart(low, high)[0]]
    ['output ≤ 0', 'output ≥ 0, but not output ≤ 0']
    >>> ways_apart(low, Intervals(((1.0, math.inf),)))[0][0] == low
    True
    """
    if _exclude_each_other(first, second):
        return [(first, second)]
    less = Apart(first, second), Apart(second, first)
    return [(first, less[1]), (less[0], second), less]


def count_both(first: Event, second: Event, outputs: Outputs) -> tuple[int, int]:
    """Return the number of outputs in each of two events, reading what they share once."""
    if isinstance(first, Scored) and isinstance(second, Scored) and first.score == second.score:
        values = first.score.values(outputs)
        return first.event.count(values), second.event.count(values)
    whole = _whole(first), _whole(second)
    if (first, second) == whole or (first, second) not in ways_apart(*whole):
        return first.count(outputs), second.count(outputs)
    masks = [event.contains(outputs) for event in whole]
    shared = int(np.count_nonzero(masks[0] & masks[1]))
    hits = [int(np.count_nonzero(mask)) for mask in masks]
    return hits[0] - shared * isinstance(first, Apart), hits[1] - shared * isinstance(second, Apart)


def _whole(event: Event) -> Event:
    """Return the event from which another one was taken."""
    return event.event if isinstance(event, Apart) else event


def _exclude_each_other(first: Event, second: Event) -> bool:
    """Whether no output can lie in both events, as far as their form tells."""
    match first, second:
        case Scored(), Scored():
            return first.score == second.score and _exclude_each_other(first.event, second.event)
        case Intervals(), Intervals():
            ordered = sorted([*first.intervals, *second.intervals])
            are_disjoint = all(before[1] < after[0] for before, after in pairwise(ordered))
            return are_disjoint and not (first.others and second.others)
        case (Outcomes(values, False), Intervals() as ranges) | (Intervals() as ranges, Outcomes(values, False)):
            return not ranges.contains(np.fromiter(values, dtype=object, count=len(values))).any()
        case Outcomes(), Outcomes():
            listed, other = ({outcome_key(value) for value in event.values} for event in (first, second))
            if first.others or second.others:
                return first.others != second.others and (other <= listed if first.others else listed <= other)
            return not listed & other
    return False
