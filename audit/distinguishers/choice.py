"""The event chosen on the pilot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..events.events import Event
from ..events.outputs import Outputs
from ..inference.boundary_test import Counts, Direction
from .event_criterion import Criterion, Events
from .event_value import Best


@dataclass(frozen=True, slots=True)
class Choice:
    """The event to test and its direction, with the pilot counts that it was chosen on.

    `shows_nothing` says that not even this event showed a difference between x and y. `opposite` is the event of the
    other direction, where both are to be tested together; the two exclude each other. `bold` is an event that the
    cautious choice passed over, because few pilot runs show it or its excess is small; it is tested too, on a small
    share of alpha. `contenders` are events that fresh runs may show to be better.
    """

    event: Event
    likelier_on: Direction
    pilot_hits_x: int
    pilot_hits_y: int
    pilot_runs: int
    shows_nothing: bool = False
    opposite: Choice | None = None
    bold: Choice | None = None
    contenders: tuple[Choice, ...] = ()

    @property
    def others(self) -> tuple[Choice, ...]:
        """The other events to count in the main runs: the opposite one, and the bold one."""
        return tuple(each for each in (self.opposite, self.bold) if each is not None)

    @property
    def pilot_counts(self) -> Counts:
        """Hits in the runs on which the event was chosen but not learned; of an interval, in those that found it."""
        return Counts(
            hits_x=self.pilot_hits_x, runs_x=self.pilot_runs, hits_y=self.pilot_hits_y, runs_y=self.pilot_runs
        )

    def with_hits(self, hits_x: int, hits_y: int, runs: int) -> Choice:
        """The same event with these hits in other runs."""
        return replace(self, pilot_hits_x=hits_x, pilot_hits_y=hits_y, pilot_runs=runs)

    def counted_on(self, x: Outputs, y: Outputs) -> Choice:
        """The same events, with their hits in these independent outputs, equally many on x and on y."""
        opposite, bold = (each and each.counted_on(x, y) for each in (self.opposite, self.bold))
        hits_x, hits_y = self.event.count(x), self.event.count(y)
        return replace(self.with_hits(hits_x, hits_y, len(x)), opposite=opposite, bold=bold)


def chosen(best: Best) -> Choice:
    """The event itself, with its pilot counts."""
    return Choice(best.family.build(best.index, best.is_inside), best.direction, *best.hits, best.family.runs)


def value_of(choice: Choice, criterion: Criterion, caution: float) -> float:
    """The criterion for a chosen event."""
    hits_x, hits_y = (np.array([float(hits)]) for hits in (choice.pilot_hits_x, choice.pilot_hits_y))
    events = Events(hits_x, hits_y, choice.pilot_runs, True, choice.likelier_on, caution)
    return float(criterion.values_of_each([events])[0][0])


def directed_shares(choice: Choice) -> tuple[float, float]:
    """Frequencies of an event in the pilot, that of the likelier dataset first."""
    shares = choice.pilot_hits_x / choice.pilot_runs, choice.pilot_hits_y / choice.pilot_runs
    return shares if choice.likelier_on == "x" else shares[::-1]
