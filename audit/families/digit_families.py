"""Events by how a number is written: remainders, decimals, zeros at the end, last digits.

These properties do not depend on the size of a number. An integer that hardly ever recurs shows a leak of its parity
neither in a table nor in an interval, and a number that is rounded on one dataset only shows no rounding there. Such a
score is tried where the first half of the pilot shows a difference, and is counted on the other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import EXACT, exceeds_a_double
from ..events.outputs import Outputs
from ..events.scores import (
    MANY_DECIMALS,
    MOST_ZEROS,
    Decimals,
    LastDigits,
    Number,
    OfScore,
    Remainder,
    Score,
    TrailingZeros,
    Units,
)
from .number_families import Family, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_DIVISORS = (2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16)
_FRACTIONS = 20  # cells for fractional parts
_CLEAR = 4.0  # standard errors; the largest of 111 differences that are noise exceeds it in 1 pilot of 140
_FEW = 512  # different numbers in the first runs that a table and intervals tell apart
_LOOKED_AT, _FOR_DECIMALS = 2_000, 5_000
_FEW_ON_GRID = 3  # numbers with fewer decimals among the first from which it is looked at
_HARDLY_RECUR = 0.9  # share of different fractional parts in the first runs of noise without a grid


def remainder_families(score: Score, values: PilotSplit) -> Iterator[Family[Any]]:
    """Events by the clearest remainder of a score, or by its decimals; none if values are few or show no difference.

    Parameters
    ----------
    score : Score
    values : PilotSplit
        The score on the pilot outputs, shape (runs,).
    """
    x, y = (side[np.isfinite(side)].astype(np.float64) for side in (values.learn_x, values.learn_y))
    if min(len(x), len(y)) == 0:
        return
    yield from _decimal_families(score, values, x, y)
    first = x[:_LOOKED_AT]
    if len(np.unique(first)) <= min(_FEW, len(first) // 2):
        return
    if all((side == np.rint(side)).all() for side in (first, y[:_LOOKED_AT])):
        yield from _whole_families(score, values, x, y)
    elif len(np.unique(np.mod(first, 1.0))) > _HARDLY_RECUR * len(first):
        yield from _clearest(score, values, x, y, (1,))
    elif (decimals := _decimals_of_all(first)) is not None:
        units = Units(score, decimals)
        yield from _clearest(units, values.map(units.of_values), units.of_values(x), units.of_values(y), _DIVISORS)
    # What is left is noise on a binary grid, which `low_bits` looks at.


def last_digit_families(outputs: PilotSplit, coordinate: int | None = None) -> Iterator[Family[Any]]:
    """Events by the last digits of numbers, if doubles do not hold some of them; not for doubles, which have low bits.

    Parameters
    ----------
    outputs : PilotSplit
        Pilot outputs: arrays of numbers, or of vectors.
    coordinate : int, optional
        The coordinate of vectors that is looked at.
    """
    if any(_exceed_doubles(part, coordinate) for part in (outputs.learn_x, outputs.learn_y)):
        last = LastDigits(coordinate)
        values = outputs.map(last.values)
        yield from value_families(last, values, fit=True)
        yield from remainder_families(last, values)


def _exceed_doubles(outputs: Outputs, coordinate: int | None) -> bool:
    if outputs.dtype.kind in "iu":
        part = outputs if coordinate is None else outputs[:, coordinate]
        return len(part) > 0 and max(-int(part.min()), int(part.max())) > EXACT
    if outputs.dtype != object or coordinate is None:
        return False
    return any(exceeds_a_double(vector[coordinate]) for vector in outputs)


def _whole_families(score: Score, values: PilotSplit, x: Array, y: Array) -> Iterator[Family[Any]]:
    """Events by remainders of whole numbers and by their zeros at the end."""
    if max(np.abs(x).max(), np.abs(y).max()) > EXACT:
        return
    zeros = TrailingZeros(score)
    on_x, on_y = (np.nan_to_num(zeros.of_values(side), nan=0.0).astype(np.int64) for side in (x, y))
    if _difference(on_x, on_y, MOST_ZEROS + 1) >= _CLEAR:
        yield from _held(zeros, values)
    yield from _clearest(score, values, x, y, _DIVISORS)


def _clearest(score: Score, values: PilotSplit, x: Array, y: Array, divisors: tuple[int, ...]) -> Iterator[Family[Any]]:
    """Events by the remainder in which `x` and `y`, the finite values of the learned outputs, differ most clearly."""
    found = [(_distance(x, y, divisor), divisor) for divisor in divisors]
    distance, divisor = max(found, key=lambda each: each[0])
    if distance >= _CLEAR:
        yield from _held(Remainder(score, divisor), values)


def _decimals_of_all(numbers: Array) -> int | None:
    """The number of decimals that all numbers are written with; None if some have more than nine."""
    most = Decimals(Number()).of_values(numbers).max()
    return int(most) if most < MANY_DECIMALS else None


def _decimal_families(score: Score, values: PilotSplit, x: Array, y: Array) -> Iterator[Family[Any]]:
    """Events by the decimals of a score, if some of the learned outputs have few and the datasets differ in them."""
    decimals = Decimals(score)
    on_grid = [np.count_nonzero(decimals.of_values(side[:_FOR_DECIMALS]) < MANY_DECIMALS) for side in (x, y)]
    if max(on_grid) < _FEW_ON_GRID:
        return
    on_x, on_y = (decimals.of_values(side).astype(np.int64) for side in (x, y))
    if _difference(on_x, on_y, MANY_DECIMALS + 1) >= _CLEAR:
        yield from _held(decimals, values)


def _held(score: OfScore, values: PilotSplit) -> Iterator[Family[Any]]:
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
