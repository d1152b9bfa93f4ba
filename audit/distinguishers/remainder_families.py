"""Events by remainders of whole numbers, fractional parts and decimals, which say nothing of how large a number is.

An integer that hardly ever recurs shows a leak of its parity neither in a table nor in an interval, and a number that
is rounded on one dataset only shows no rounding there. Such a score is tried where the first half of the pilot shows a
difference, and is counted on the other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.scores import MANY_DECIMALS, Decimals, Remainder, Score
from .number_families import Family, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_DIVISORS = (2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16)
_FRACTIONS = 20  # cells for fractional parts
_LARGEST = 2.0**53  # beyond it doubles are even
_CLEAR = 4.0  # standard errors; the largest of 116 differences that are noise exceeds it in 1 pilot of 140
_FEW = 512  # different numbers in the first runs that a table and intervals tell apart
_LOOKED_AT, _FOR_DECIMALS = 2_000, 5_000
_FEW_ON_GRID = 3  # numbers with fewer decimals among the first from which it is looked at
_HARDLY_RECUR = 0.9  # share of different fractional parts in the first runs of noise without a grid


def remainder_families(score: Score, values: PilotSplit) -> Iterator[Family[Any]]:
    """Events by the clearest remainder of a score or by its decimals; none if values are few or show no difference.

    Parameters
    ----------
    score : Score
    values : PilotSplit
        The score on the pilot outputs, shape (runs,).
    """
    x, y = (side[np.isfinite(side)].astype(np.float64) for side in (values.learn_x, values.learn_y))
    yield from _decimal_families(score, values, x, y)
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
        yield from _held(Remainder(score, divisor), values)


def _decimal_families(score: Score, values: PilotSplit, x: Array, y: Array) -> Iterator[Family[Any]]:
    """Events by the decimals of a score, if some of the learned outputs have few and the datasets differ in them."""
    decimals = Decimals(score)
    on_grid = [np.count_nonzero(decimals.of_values(side[:_FOR_DECIMALS]) < MANY_DECIMALS) for side in (x, y)]
    if min(len(x), len(y)) == 0 or max(on_grid) < _FEW_ON_GRID:
        return
    on_x, on_y = (decimals.of_values(side).astype(np.int64) for side in (x, y))
    if _difference(on_x, on_y, MANY_DECIMALS + 1) >= _CLEAR:
        yield from _held(decimals, values)


def _held(score: Remainder | Decimals, values: PilotSplit) -> Iterator[Family[Any]]:
    """Events by the score on the half of the pilot that was held out."""
    held = PilotSplit.in_half(*(score.of_values(side) for side in (values.held_x, values.held_y)))
    yield from value_families(score, held, fit=True)


def _distance(x: Array, y: Array, divisor: int) -> float:
    """Largest difference of the counts of a remainder, in standard errors."""
    cells = _FRACTIONS if divisor == 1 else divisor
    on_x, on_y = ((np.mod(side, divisor) * (cells / divisor)).astype(np.int64) % cells for side in (x, y))
    return _difference(on_x, on_y, cells)


def _difference(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64], cells: int) -> float:
    """Largest difference of the shares in a cell, in standard errors."""
    hits_x, hits_y = (np.bincount(side, minlength=cells) / len(side) for side in (x, y))
    error = np.sqrt(hits_x * (1.0 - hits_x) / len(x) + hits_y * (1.0 - hits_y) / len(y) + 1.0 / (len(x) * len(y)))
    return float((np.abs(hits_x - hits_y) / error).max())
