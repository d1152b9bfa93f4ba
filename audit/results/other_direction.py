"""The event of the other direction, where an audit tests both directions together."""

from __future__ import annotations

from dataclasses import dataclass

from ..events.events import Event
from ..inference.counts import Counts
from ..inference.guess_test import Guesses


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDirection:
    """The event that is likelier on the other dataset, and the guesses that it makes together with the first event.

    An output in the result's event is guessed to be from the dataset on which that event is likelier, an output in this
    event from the other one.

    Attributes
    ----------
    event : Event
        Without outputs of the result's event.
    counts : Counts
        Hits of this event and runs on each dataset.
    guesses : Guesses
        Right and wrong guesses in as many runs as coins said, which are tested.
    """

    event: Event
    counts: Counts
    guesses: Guesses
