"""Counts and marks of the blocks on one dataset, kept after their outputs are discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..events.events import Event, Scored
from ..events.events_apart import count_both
from ..events.outputs import Outputs
from ..events.partitions import Counted, Labels, Partition
from ..inference.counts import Counts
from .stretch_hashes import MARKS

Marks = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
Hits = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Hits, sizes and marks of the blocks on one dataset.

    The shapes are (blocks,), but (blocks, 4) for `stretches` and (cells,) for `cells`. `fingerprints` are hashes of the
    first outputs of each block, `orders` are hashes of their order, and `stretches` are the smallest hashes of
    stretches, 0 for none; the last two are empty if not recorded. `cells` counts the outputs of all blocks in each cell
    of every partition, one after the other; `raised` counts exceptions by type; `others` are the hits of other events,
    shape (events, blocks).
    """

    hits: np.ndarray[tuple[int], np.dtype[np.int64]]
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
    fingerprints: np.ndarray[tuple[int], np.dtype[np.uint64]]
    cells: Labels = field(default_factory=lambda: np.zeros(0, np.int64))
    orders: np.ndarray[tuple[int], np.dtype[np.uint64]] = field(default_factory=lambda: np.zeros(0, np.uint64))
    stretches: Marks = field(default_factory=lambda: np.zeros((0, MARKS), np.uint64))
    raised: Counter[str] = field(default_factory=Counter)
    others: Hits = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    @classmethod
    def of(
        cls,
        hits: Labels,
        sizes: Labels,
        marks: Marks,
        cells: Labels,
        raised: Counter[str],
        others: Hits | None = None,
    ) -> BlockCounts:
        """Return the counts for `marks` of shape (blocks, 6)."""
        more = np.zeros((0, len(sizes)), np.int64) if others is None else others
        return cls(hits, sizes, marks[:, 0], cells, marks[:, 1], marks[:, 2:], raised, more)

    @property
    def contents(self) -> bytes:
        """All counts that tests see, and hashes of the first outputs of each block, for the coins of these tests."""
        return b"".join(part.tobytes() for part in (self.hits, self.others, self.cells, self.fingerprints))

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
            np.concatenate([self.others, other.others], axis=1) if len(self.others) else other.others,
        )


def no_blocks() -> BlockCounts:
    """Return the counts of zero blocks."""
    return BlockCounts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True)
class FinalCounts:
    """What a sequential audit counts apart from pairs: hits of events, outputs in cells and in plain events.

    There are `runs` runs on each dataset; the arrays have the shapes (2 datasets, events) and (2 datasets, cells), x
    first. The cells of several partitions follow one another.
    """

    runs: int
    hits: Labels
    cells: Labels

    @classmethod
    def of(cls, events: Sequence[Event], partitions: Sequence[Counted], x: Outputs, y: Outputs) -> FinalCounts:
        """Count these outputs."""
        hits = np.array([hits_of(events, side) for side in (x, y)], dtype=np.int64)
        empty = np.zeros(0, np.int64)
        return cls(len(x), hits, np.stack([np.concatenate([empty, *(e.count(s) for e in partitions)]) for s in (x, y)]))

    def without(self, partition: Partition | None) -> FinalCounts:
        """Return the counts without those in a partition, the last one."""
        return self if partition is None else replace(self, cells=self.cells[:, : -partition.n_cells])

    def last(self, partition: Partition | None) -> tuple[Labels, Labels]:
        """Return the counts on x and on y in a partition, the last one."""
        on_x, on_y = self.cells[:, :0] if partition is None else self.cells[:, -partition.n_cells :]
        return on_x, on_y

    def followed_by(self, other: FinalCounts) -> FinalCounts:
        """Return the counts of both."""
        return FinalCounts(self.runs + other.runs, self.hits + other.hits, self.cells + other.cells)

    @property
    def contents(self) -> bytes:
        """All counts, for the coins of their tests."""
        return self.hits.tobytes() + self.cells.tobytes()

    @property
    def counts(self) -> tuple[Counts, ...]:
        """Counts of each event."""
        return tuple(
            Counts(hits_x=hits_x, runs_x=self.runs, hits_y=hits_y, runs_y=self.runs)
            for hits_x, hits_y in self.hits.T.tolist()
        )


def hits_of(events: Sequence[Event], outputs: Outputs) -> list[int]:
    """Return the hits of each event; a score that events share is read once for all of them."""
    if len(events) < 2:
        return [event.count(outputs) for event in events]
    scores = Counter(event.score for event in events if isinstance(event, Scored))
    shared = {score: score.values(outputs) for score, times in scores.items() if times > 1}
    if not shared:
        first, second, *others = events
        return [*count_both(first, second, outputs), *(event.count(outputs) for event in others)]
    return [
        event.event.count(shared[event.score])
        if isinstance(event, Scored) and event.score in shared
        else event.count(outputs)
        for event in events
    ]


def total_counts(x: BlockCounts, y: BlockCounts) -> Counts:
    """Return hits and runs of all blocks on x and on y."""
    return Counts(
        hits_x=int(x.hits.sum()), runs_x=int(x.sizes.sum()), hits_y=int(y.hits.sum()), runs_y=int(y.sizes.sum())
    )


def counts_of_others(x: BlockCounts, y: BlockCounts) -> tuple[Counts, ...]:
    """Return hits and runs of all blocks on x and on y for each of the other events."""
    runs_x, runs_y = int(x.sizes.sum()), int(y.sizes.sum())
    return tuple(
        Counts(hits_x=hits_x, runs_x=runs_x, hits_y=hits_y, runs_y=runs_y)
        for hits_x, hits_y in zip(x.others.sum(axis=1).tolist(), y.others.sum(axis=1).tolist(), strict=True)
    )
