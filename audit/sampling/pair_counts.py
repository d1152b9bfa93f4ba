"""Counts of pairs of runs, one on each dataset, for the bets of a sequential audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..events.events import Event, Mask
from ..events.outputs import Outputs
from ..inference.betting_test import JointCounts, PairedGuesses
from ..inference.counts import Counts

Events = tuple[Event | None, Event | None]

_FATES, _GUESSES = (tuple(each.name for each in fields(kind)) for kind in (JointCounts, PairedGuesses))
PAIR_NUMBERS = 2 * len(_FATES) + len(_GUESSES) + 4
"""Numbers in the counts of pairs."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Counts of pairs of runs, one on each dataset.

    Attributes
    ----------
    first, second : JointCounts
        For the event likelier on x, and for the event likelier on y.
    both : PairedGuesses
        For both events together.
    rare : tuple of Counts
        Hits of two events that exclude each other, seen on one dataset only, the one likelier on x first.
    """

    first: JointCounts
    second: JointCounts
    both: PairedGuesses
    rare: tuple[Counts, Counts]

    @classmethod
    def of(cls, events: Events, rare: Events, x: Outputs, y: Outputs) -> PairCounts:
        """Count the pairs of outputs by which of them are in the events; None is never hit."""
        return cls.from_numbers(pair_numbers(events, rare, x, y))

    @classmethod
    def from_numbers(cls, numbers: Sequence[int]) -> PairCounts:
        """Return the counts for the `pair_numbers` of a block, or for the sums of those of several blocks."""
        first, second = (JointCounts(**dict(zip(_FATES, part, strict=True))) for part in (numbers[:4], numbers[4:8]))
        both = PairedGuesses(**dict(zip(_GUESSES, numbers[8:14], strict=True)))
        runs = first.runs
        on_x, on_y = (Counts(hits_x=x, runs_x=runs, hits_y=y, runs_y=runs) for x, y in (numbers[14:16], numbers[16:18]))
        return cls(first, second, both, (on_x, on_y))


def pair_numbers(events: Events, rare: Events, x: Outputs, y: Outputs) -> tuple[int, ...]:
    """Return the counts of pairs of outputs as numbers, in the order of the attributes of `PairCounts`."""
    x_first, x_second = _masks(events, x)
    y_first, y_second = _masks(events, y)
    first, second = _fates(x_first, y_first), _fates(y_second, x_second)
    guesses = _guesses(*_apart(x_first, x_second), *_apart(y_second, y_first), runs=len(x))
    return *first, *second, *guesses, *_rare_hits(rare, x, y)


def _masks(events: Events, outputs: Outputs) -> tuple[Mask, Mask]:
    first, second = (
        np.zeros(len(outputs), dtype=np.bool_) if event is None else event.contains(outputs) for event in events
    )
    return first, second


def _times(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _apart(first: Mask, second: Mask) -> tuple[Mask, Mask]:
    """Return each of two events without what they share, which is usually nothing."""
    shared = first & second
    return (first & ~shared, second & ~shared) if shared.any() else (first, second)


def _fates(on_p: Mask, on_q: Mask) -> tuple[int, ...]:
    both, hits_p, hits_q = _times(on_p & on_q), _times(on_p), _times(on_q)
    return both, hits_p - both, hits_q - both, len(on_p) - hits_p - hits_q + both


def _guesses(right_x: Mask, wrong_x: Mask, right_y: Mask, wrong_y: Mask, *, runs: int) -> tuple[int, ...]:
    both_right, both_wrong = _times(right_x & right_y), _times(wrong_x & wrong_y)
    one_each = _times(right_x & wrong_y) + _times(wrong_x & right_y)
    one_right = _times(right_x) + _times(right_y) - 2 * both_right - one_each
    one_wrong = _times(wrong_x) + _times(wrong_y) - 2 * both_wrong - one_each
    unguessed = runs - both_right - one_each - one_right - both_wrong - one_wrong
    return both_right, one_each, one_right, both_wrong, one_wrong, unguessed


def _rare_hits(rare: Events, x: Outputs, y: Outputs) -> tuple[int, ...]:
    """Hits on x and on y of each of two events alone."""
    if rare == (None, None):
        return 0, 0, 0, 0
    on_x, on_y = (_apart(*_masks(rare, outputs)) for outputs in (x, y))
    return tuple(_times(side[event]) for event in (0, 1) for side in (on_x, on_y))
