"""Events by remainders of whole numbers and by fractional parts, which say nothing of how large a number is.

An integer that hardly ever recurs shows a leak of its parity neither in a table nor in an interval. A remainder is
tried where the first half of the pilot shows a difference, and is counted on the other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.scores import Remainder, Score
from .number_families import Family, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_DIVISORS = (2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16)
_FRACTIONS = 20  # cells for fractional parts
_LARGEST = 2.0**53  # beyond it doubles are even
_CLEAR = 4.0  # standard errors; the largest of 116 differences that are noise exceeds it in 1 pilot of 140
_FEW = 512  # different numbers in the first runs that a table and intervals tell apart
_LOOKED_AT = 2_000
_HARDLY_RECUR = 0.9  # share of different fractional parts in the first runs of noise without a grid


def remainder_families(score: Score, values: PilotSplit) -> Iterator[Family[Any]]:
    """Events by the clearest remainder of a score; none if its values are few or show no difference.

    Parameters
    ----------
    score : Score
    values : PilotSplit
        The score on the pilot outputs, shape (runs,).
    """
    x, y = (side[np.isfinite(side)].astype(np.float64) for side in (values.learn_x, values.learn_y))
    first = x[:_LOOKED_AT]
    if min(len(x), len(y)) == 0 or len(np.unique(first)) <= min(_FEW, len(first) // 2):
        return
    if (first == np.rint(first)).all():
        divisors: tuple[int, ...] = _DIVISORS
    elif len(np.unique(np.mod(first, 1.0))) > _HARDLY_RECUR * len(first):
        divisors = (1,)
    else:  # noise on a grid, which `low_bits` looks at
        return
    if max(np.abs(x).max(), np.abs(y).max()) > _LARGEST:
        return
    found = [(_distance(x, y, divisor), divisor) for divisor in divisors]
    distance, divisor = max(found, key=lambda each: each[0])
    if distance >= _CLEAR:
        remainder = Remainder(score, divisor)
        held = PilotSplit.in_half(*(remainder.of_values(side) for side in (values.held_x, values.held_y)))
        yield from value_families(remainder, held, fit=True)


def _distance(x: Array, y: Array, divisor: int) -> float:
    """Largest difference of the counts of a remainder, in standard errors."""
    cells = _FRACTIONS if divisor == 1 else divisor
    hits_x, hits_y = (
        np.bincount((np.mod(side, divisor) * (cells / divisor)).astype(np.int64) % cells, minlength=cells) / len(side)
        for side in (x, y)
    )
    error = np.sqrt(hits_x * (1.0 - hits_x) / len(x) + hits_y * (1.0 - hits_y) / len(y) + 1.0 / (len(x) * len(y)))
    return float((np.abs(hits_x - hits_y) / error).max())
