"""Counts and marks of the blocks on one dataset, kept after their outputs are discarded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ..events.events import Event, count_both
from ..events.outputs import Outputs
from ..events.partitions import Labels, Partition
from ..inference.counts import Counts
from .stretch_hashes import MARKS

Events = tuple[Event | None, Event | None]
Marks = np.ndarray[tuple[int, int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Hits, sizes and marks of the blocks on one dataset.

    The shapes are (blocks,), but (blocks, 4) for `stretches` and (cells,) for `cells`. `fingerprints` are hashes of the
    first outputs of each block, `orders` are hashes of their order, and `stretches` are the smallest hashes of
    stretches, 0 for none; the last two are empty if not recorded. `cells` counts the outputs of all blocks in each cell
    of every partition, one after the other; `raised` counts exceptions by type; `opposite` is the number of hits of the
    event of the other direction in all blocks.
    """

    hits: np.ndarray[tuple[int], np.dtype[np.int64]]
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
    fingerprints: np.ndarray[tuple[int], np.dtype[np.uint64]]
    cells: Labels = field(default_factory=lambda: np.zeros(0, np.int64))
    orders: np.ndarray[tuple[int], np.dtype[np.uint64]] = field(default_factory=lambda: np.zeros(0, np.uint64))
    stretches: Marks = field(default_factory=lambda: np.zeros((0, MARKS), np.uint64))
    raised: Counter[str] = field(default_factory=Counter)
    opposite: int = 0

    @classmethod
    def of(
        cls, hits: Labels, sizes: Labels, marks: Marks, cells: Labels, raised: Counter[str], opposite: int = 0
    ) -> BlockCounts:
        """Return the counts for `marks` of shape (blocks, 6)."""
        return cls(hits, sizes, marks[:, 0], cells, marks[:, 1], marks[:, 2:], raised, opposite)

    def followed_by(self, other: BlockCounts) -> BlockCounts:
        """Return these blocks followed by the blocks of `other`."""
        return BlockCounts(
            np.concatenate([self.hits, other.hits]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.fingerprints, other.fingerprints]),
            self.cells + other.cells,
            np.concatenate([self.orders, other.orders]),
            np.concatenate([self.stretches, other.stretches]),
            self.raised + other.raised,
            self.opposite + other.opposite,
        )


def no_blocks() -> BlockCounts:
    """Return the counts of zero blocks."""
    return BlockCounts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True)
class FinalCounts:
    """What the final test of a sequential audit counts: hits of its events, and outputs in the cells of a partition.

    There are `runs` runs on each dataset; the arrays have the shapes (2 datasets, 2 events) and (2 datasets, cells), x
    first.
    """

    runs: int
    hits: Labels
    cells: Labels

    @classmethod
    def of(cls, events: Events, partition: Partition | None, x: Outputs, y: Outputs) -> FinalCounts:
        """Count these outputs; there are no hits of an event that is None."""
        hits = np.array([hits_of(events, side) for side in (x, y)], dtype=np.int64)
        empty = np.zeros(0, np.int64)
        return cls(len(x), hits, np.stack([empty if partition is None else partition.count(side) for side in (x, y)]))

    def followed_by(self, other: FinalCounts) -> FinalCounts:
        """Return the counts of both."""
        return FinalCounts(self.runs + other.runs, self.hits + other.hits, self.cells + other.cells)

    @property
    def counts(self) -> Counts:
        """Counts of the first event."""
        return self._counts(0)

    @property
    def opposite(self) -> Counts:
        """Counts of the second event."""
        return self._counts(1)

    def _counts(self, event: int) -> Counts:
        hits_x, hits_y = self.hits[:, event].tolist()
        return Counts(hits_x=hits_x, runs_x=self.runs, hits_y=hits_y, runs_y=self.runs)


def hits_of(events: Events, outputs: Outputs) -> tuple[int, int]:
    """Return the hits of each of two events; none of an event that is None."""
    first, second = events
    if first is not None and second is not None:
        return count_both(first, second, outputs)
    return 0 if first is None else first.count(outputs), 0 if second is None else second.count(outputs)


def total_counts(x: BlockCounts, y: BlockCounts) -> Counts:
    """Return hits and runs of all blocks on x and on y."""
    return Counts(
        hits_x=int(x.hits.sum()), runs_x=int(x.sizes.sum()), hits_y=int(y.hits.sum()), runs_y=int(y.sizes.sum())
    )


def opposite_counts(x: BlockCounts, y: BlockCounts) -> Counts:
    """Return hits and runs of all blocks on x and on y for the event of the other direction."""
    return Counts(hits_x=x.opposite, runs_x=int(x.sizes.sum()), hits_y=y.opposite, runs_y=int(y.sizes.sum()))
