"""How long the pilot is, and how many runs each batch of a sequential audit has.

The pilot is a share of the planned runs. Batches follow from the runs so far, the clock and the store.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..clock import now
from .block_plan import Memory

# The split of the runs into pilot and main runs.

# One run in twenty chooses the event, which costs 2.6% of the gap between bound and truth. A quarter does where the
# output has several columns, whose scores have to be learned, and where a twentieth promises no bound.
_SHARE, _GROWN_SHARE = 20, 4
LEAST_PILOT, _MOST_PILOT = 2_000, 250_000  # docs/decisions/0004-portfolio-constants.md
FEW_COUNTS = 50
"""Counts of an event on one dataset with which it barely promises a bound; their relative error is a seventh."""


def with_pilot(main: int, q: float = 0.5) -> int:
    """Return the fewest runs of an audit with `main` main runs, if the event has probability `q` or more."""
    sizes = [2 * main, main + LEAST_PILOT, main + _MOST_PILOT]
    sizes += [-(-main * share // (share - 1)) for share in (_SHARE, _GROWN_SHARE)]
    return min(runs for runs in sizes if main_runs(runs, q) >= main)


def pilot_runs(runs: int) -> int:
    """Return the number of an audit's runs that choose the event of one number, if it is not rare."""
    return min(max(runs // _SHARE, LEAST_PILOT), _MOST_PILOT, runs // 2)


def grown_pilot_runs(runs: int) -> int:
    """Return the number of an audit's runs that choose the event of several columns, or a rare one."""
    return max(pilot_runs(runs), min(runs // _GROWN_SHARE, _MOST_PILOT))


def main_runs(runs: int, q: float) -> int:
    """Return the number of an audit's main runs if the best event has probability `q` where it is rarer."""
    size = pilot_runs(runs)
    return runs - (grown_pilot_runs(runs) if q * size < FEW_COUNTS else size)


# The batches of a sequential audit. Each adds six percent to the total, so that an audit stops soon after the evidence
# is in.
#
# The store keeps the size of a batch before the batch is drawn. A resumed audit completes an interrupted batch at its
# original size and sizes later batches from the total then reached. No run is redrawn after its interim analysis.

FIRST = 32
"""Runs on each dataset in the first batch, which only trains the event unless a search did.

It is drawn in two blocks of 16, the fewest in which the health checks see that a call draws its noise once.
"""

LEAST = 8  # fewest runs of a later batch, unless fewer of the requested runs are left

_GROWTH = 1.06  # growth of the total from one interim analysis to the next
_UNIT = 1e-15  # seconds; a store keeps integers


def next_size(total: int, runs: int) -> int:
    """Return the size of the batch after `total` runs: 32, then 6% of the total but at least 8, or the rest."""
    return min(FIRST if total == 0 else max(int((_GROWTH - 1) * total), LEAST), runs - total)


def batch_sizes(runs: int) -> list[int]:
    """Return the size of each batch of an audit with `runs` runs that does not refute."""
    sizes, total = [], 0
    while total < runs:
        sizes.append(next_size(total, runs))
        total += sizes[-1]
    return sizes


def are_of_one_session(totals: Sequence[int]) -> bool:
    """Whether an uninterrupted audit has its interim analyses at these totals; a resumed audit may have others.

    >>> are_of_one_session([32, 40, 48, 51])
    True
    >>> are_of_one_session([32, 40, 56])
    False
    """
    return list(totals) == [int(total) for total in np.cumsum(batch_sizes(totals[-1]))]


def late_batches(runs: int, learned: float = 0.0) -> list[int]:
    """Sizes of the batches that count for power: after the first twentieth of the runs and after `learned` runs."""
    totals = np.cumsum(batch_sizes(runs))
    sizes = zip(batch_sizes(runs), totals, strict=True)
    return [size for size, total in sizes if total > runs / _SHARE and total - size >= learned]


@dataclass(frozen=True, slots=True)
class Clock:
    """Time limit of an audit, and its pace."""

    until: float | None  # deadline, on the clock of `clock.now`
    paces: tuple[float, ...] = ()  # seconds per run (on both datasets) of the last two batches, the latest last

    @property
    def pace(self) -> float:
        """Seconds per run of the latest batch; 0 if unknown."""
        return self.paces[-1] if self.paces else 0.0

    def after(self, seconds: float, size: int) -> Clock:
        """Return the clock after a batch of `size` runs that took `seconds`."""
        return replace(self, paces=(*self.paces[-1:], seconds / size))

    def runs_left(self) -> int:
        """Runs that fit in the time left at the faster known pace; the slower batch may have started workers."""
        if self.until is None:
            return sys.maxsize
        left = self.until - now()
        return int(min(left / max(min(self.paces, default=0.0), 1e-12), sys.maxsize))


@dataclass(frozen=True, slots=True)
class Begun:
    """A batch that was begun: its size, and the paces known then."""

    size: int
    paces: tuple[float, ...]


def keep_begun(memory: Memory | None, number: int, size: int, clock: Clock) -> None:
    """Keep the size of a batch; call it before the batch is drawn."""
    if memory is not None:
        memory.keep(_key(number), [size, *(round(pace / _UNIT) for pace in clock.paces)])


def recall_begun(memory: Memory | None, number: int) -> Begun | None:
    """Return batch `number` (from 0) if it was begun before."""
    kept = None if memory is None else memory.recall(_key(number))
    if kept is None:
        return None
    return Begun(kept[0], tuple(pace * _UNIT for pace in kept[1:]))


def _key(number: int) -> str:
    return f"size of batch {number}"
