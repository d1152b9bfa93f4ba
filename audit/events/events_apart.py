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


def set_apart(first: Event, second: Event) -> tuple[Event, Event]:
    """Return both events without the outputs that they share.

    Examples
    --------
    >>> import math
    >>> low, high = Intervals(((-math.inf, 0.0),)), Intervals(((0.0, math.inf),))
    >>> str(set_apart(low, high)[0]), set_apart(low, Intervals(((1.0, math.inf),)))[0] == low
    ('output ≤ 0, but not output ≥ 0', True)
    """
    return (first, second) if _exclude_each_other(first, second) else (Apart(first, second), Apart(second, first))


def count_both(first: Event, second: Event, outputs: Outputs) -> tuple[int, int]:
    """Return the number of outputs in each of two events, reading a score that they share once."""
    if isinstance(first, Scored) and isinstance(second, Scored) and first.score == second.score:
        values = first.score.values(outputs)
        return first.event.count(values), second.event.count(values)
    if isinstance(first, Apart) and second == Apart(first.other, first.event):
        in_first, in_second = first.event.contains(outputs), second.event.contains(outputs)
        return int(np.count_nonzero(in_first & ~in_second)), int(np.count_nonzero(in_second & ~in_first))
    return first.count(outputs), second.count(outputs)


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
