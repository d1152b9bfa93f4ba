"""Batches of a sequential audit: how many runs each has, by the runs before it, the clock and the store.

They grow by fifths of the total, so that an audit can stop soon after the evidence is in. The last batch of an audit
without a time limit is a quarter of its runs: all that was won is staked on it, and more can be won with more runs. An
audit with a time limit is open: nobody knows beforehand which batch will be its last.

The size of a batch is kept before anything of the batch is drawn. A resumed audit completes a batch that was begun with
the size that it was begun with, and sizes later batches by the total then reached. So no run whose look was seen is
drawn again.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import StoreError
from .block_plan import Memory

FIRST = 32
"""Runs on each dataset of the first batch, which is only learned from."""

LEAST = FIRST // 2
"""Runs of a later batch, unless fewer are left of those asked for."""

_GROWTH = 1.2  # of the total from look to look
_LAST = 4  # one in so many runs is of the last batch
_UNIT = 1e-15  # seconds: a store keeps whole numbers


def next_size(total: int, runs: int, *, is_open: bool = False) -> int:
    """Runs of the batch after `total` runs of at most `runs`: 32, then a fifth of all before, and at last a quarter.

    In an open audit the last batch is a fifth like the others, or what is left. Not positive where nothing is.
    """
    before_last = runs if is_open or total == 0 else runs - runs // _LAST
    if total > before_last - LEAST and total > 0:
        return runs - total
    return min(FIRST if total == 0 else max(int((_GROWTH - 1) * total), LEAST), before_last - total)


def batch_sizes(runs: int) -> list[int]:
    """Runs of each batch of an audit of `runs` that is not refuted; not of an open one.

    Examples
    --------
    >>> batch_sizes(100)
    [32, 16, 16, 36]
    """
    sizes, total = [], 0
    while total < runs:
        sizes.append(next_size(total, runs))
        total += sizes[-1]
    return sizes


def are_of_one_session(totals: Sequence[int], *, is_closed: bool) -> bool:
    """Whether an audit made in one session has its looks at these totals; one that was resumed may have others.

    Examples
    --------
    >>> are_of_one_session([32, 48, 64, 100], is_closed=True)
    True
    >>> are_of_one_session([32, 40, 56], is_closed=False)
    False
    """
    runs = totals[-1]
    if is_closed:
        return list(totals) == [int(total) for total in np.cumsum(batch_sizes(runs))]
    pairs = zip((0, *totals), totals, strict=False)
    return all(total == before + next_size(before, runs, is_open=True) for before, total in pairs)


def late_batches(runs: int, learned: float = 0.0) -> list[int]:
    """Batches that count for the power: all but those in the first twentieth, or before the event was `learned`."""
    totals = np.cumsum(batch_sizes(runs))
    sizes = zip(batch_sizes(runs), totals, strict=True)
    return [size for size, total in sizes if total > runs / 20 and total - size >= learned]


@dataclass(frozen=True, slots=True)
class Clock:
    """The time allowed, and how long runs take.

    Attributes
    ----------
    until : float, optional
        End of the time allowed, by `time.perf_counter`.
    paces : tuple of float
        Seconds a run on both datasets of the last two batches, the latest one last.
    """

    until: float | None
    paces: tuple[float, ...] = ()

    @property
    def pace(self) -> float:
        """Seconds a run of the latest batch; 0 where none is known."""
        return self.paces[-1] if self.paces else 0.0

    def after(self, seconds: float, size: int) -> Clock:
        """The clock after a batch."""
        return replace(self, paces=(*self.paces[-1:], seconds / size))

    def runs_left(self) -> int:
        """Runs that the time allows at the best of the known paces: a slower one may have started workers."""
        if self.until is None:
            return sys.maxsize
        left = self.until - time.perf_counter()
        return int(min(left / max(min(self.paces, default=0.0), 1e-12), sys.maxsize))


@dataclass(frozen=True, slots=True)
class Begun:
    """A batch that was begun, whether it was to be the last one, and the paces that were known then."""

    size: int
    is_last: bool
    paces: tuple[float, ...]


def keep_begun(memory: Memory | None, number: int, size: int, clock: Clock, *, is_last: bool) -> None:
    """Keeps the size of a batch; to be called before anything of the batch is drawn."""
    if memory is not None:
        memory.keep(_key(number), [size, int(is_last), *(round(pace / _UNIT) for pace in clock.paces)])


def recall_begun(memory: Memory | None, number: int, total: int) -> Begun | None:
    """The batch of this number, counted from 0 and coming after `total` runs, if it was begun before.

    Raises
    ------
    StoreError
        If what is kept cannot be a size with paces.
    """
    kept = None if memory is None else memory.recall(_key(number))
    if kept is None:
        return None
    if not _is_begun(kept, max(next_size(total, sys.maxsize, is_open=True), total // (_LAST - 1) + 2 * LEAST)):
        raise StoreError(f"the store is damaged: what it has as the {_key(number)} cannot be; delete it.")
    return Begun(kept[0], bool(kept[1]), tuple(pace * _UNIT for pace in kept[2:]))


def _is_begun(kept: Any, most: int) -> bool:
    return (
        isinstance(kept, list)
        and 2 <= len(kept) <= 4
        and all(type(each) is int and 0 <= each < 1 << 80 for each in kept)
        and 0 < kept[0] <= most
        and kept[1] <= 1
    )


def _key(number: int) -> str:
    return f"size of batch {number}"
