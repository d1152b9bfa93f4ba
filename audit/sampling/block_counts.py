"""What is kept of the blocks of one side once their outputs are gone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ..events.partitions import Labels
from .stretch_hashes import MARKS

Marks = np.ndarray[tuple[int, int], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """What is kept of the blocks of one side: hits and fingerprints of each.

    Attributes
    ----------
    hits : ndarray of int, shape (blocks,)
    sizes : ndarray of int, shape (blocks,)
    fingerprints : ndarray of uint64, shape (blocks,)
        Hash of the first outputs of each block.
    cells : ndarray of int, shape (cells,)
        Outputs in each cell of a partition, all blocks together; empty where there is none.
    orders : ndarray of uint64, shape (blocks,)
        Hash of the order of these first outputs; empty where none was taken.
    stretches : ndarray of uint64, shape (blocks, 4)
        Least hashes of stretches of each block, 0 for none; empty where none was taken.
    raised : Counter
        Exceptions by type.
    """

    hits: np.ndarray[tuple[int], np.dtype[np.int64]]
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
    fingerprints: np.ndarray[tuple[int], np.dtype[np.uint64]]
    cells: Labels = field(default_factory=lambda: np.zeros(0, np.int64))
    orders: np.ndarray[tuple[int], np.dtype[np.uint64]] = field(default_factory=lambda: np.zeros(0, np.uint64))
    stretches: Marks = field(default_factory=lambda: np.zeros((0, MARKS), np.uint64))
    raised: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, hits: Labels, sizes: Labels, marks: Marks, cells: Labels, raised: Counter[str]) -> BlockCounts:
        """Counts with the marks of each block, shape (blocks, 6)."""
        return cls(hits, sizes, marks[:, 0], cells, marks[:, 1], marks[:, 2:], raised)

    def followed_by(self, other: BlockCounts) -> BlockCounts:
        """The blocks of both."""
        return BlockCounts(
            np.concatenate([self.hits, other.hits]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.fingerprints, other.fingerprints]),
            self.cells + other.cells,
            np.concatenate([self.orders, other.orders]),
            np.concatenate([self.stretches, other.stretches]),
            self.raised + other.raised,
        )


def no_blocks() -> BlockCounts:
    """What there is before the first block."""
    return BlockCounts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))
