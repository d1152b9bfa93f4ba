"""Events by the parity of how many of three or more columns lie above their centres.

If x and y differ only in such a parity, every smaller set of columns has the same law on both datasets, so neither sums
nor trees find it step by step. Up to eighteen columns all sets are compared at once, by a Walsh–Hadamard transform of
the counts of patterns; with more columns all sets of three, by matrix products, and the set of all columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import Columns, Parities, leave_out
from .learned_scores import chosen_columns
from .number_families import Family
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]
_Sets = list[tuple[int, ...]]
_Moments = tuple[Array, Array]

_MOST_COLUMNS = 64
_ALL_SETS = 18  # most columns of which all sets are compared
_RUNS, _OPERATIONS = 50_000, 1e9  # most runs on each dataset, and most products of triples
_CLEAR = 1.5  # standard errors beyond √(2 ln k), which the largest of k differences that are noise hardly exceeds
_SEARCHED = 1_000  # most clear sets, of which those of one or two columns are left out
_SINGLE, _TOGETHER = 3, 12  # parities with half-lines of their own, and those of a sum


def parity_families(columns: Columns, read: PilotSplit) -> Iterator[Family[Any]]:
    """Events by parities of three or more columns, for sets that clearly differ in the first half.

    Parameters
    ----------
    columns : Columns
    read : PilotSplit
        Columns of the pilot outputs, shape (columns, runs).
    """
    width = len(read.learn_x)
    if not 3 <= width <= _MOST_COLUMNS or read.learn_x.size == 0:
        return
    centres = np.array([_centre(np.concatenate(both)) for both in zip(read.learn_x, read.learn_y, strict=True)])
    with np.errstate(invalid="ignore"):
        sets = _clear_sets(*(side[:, :_RUNS] >= centres[:, None] for side in (read.learn_x, read.learn_y)))
    if not sets:
        return
    parities = Parities(columns, tuple(tuple((place, float(centres[place])) for place in places) for places in sets))
    yield from chosen_columns(parities, read.map(parities.of_columns), single=_SINGLE)


def _centre(values: Array) -> float:
    """The roundest number that may be the median, or the mean if no value is smaller; NaN if all values are equal."""
    values = np.sort(values[np.isfinite(values)])
    if len(values) == 0 or values[0] == values[-1]:
        return math.nan
    half, error = len(values) / 2, math.sqrt(len(values)) / 2  # of the number of values below the median
    low, high = (float(values[int(half + side * error)]) for side in (-1, 1))
    centre = 0.0 if low <= 0.0 <= high else low / 2 + high / 2
    for digits in range(1, 17):
        rounder = float(f"{centre:.{digits}g}")
        if low <= rounder <= high:
            centre = rounder
            break
    return centre if values[0] < centre else float(np.mean(values / 2) * 2)


def _clear_sets(x: Bits, y: Bits) -> _Sets:
    """Sets of three or more columns with a clear difference between x and y, the clearest first."""
    width = len(x)
    if width <= _ALL_SETS:
        distance, count = _distances(_of_all_sets(x), _of_all_sets(y), x.shape[1], y.shape[1]), 2**width
    else:
        leave_out("parities", f"of {width} columns, parities of three and of all were examined, but no others")
        runs = min(x.shape[1], y.shape[1], int(_OPERATIONS / width**3))
        triples = _distances(_of_triples(x[:, :runs]), _of_triples(y[:, :runs]), runs, runs)
        whole = _distances(_of_whole(x), _of_whole(y), x.shape[1], y.shape[1])
        distance, count = np.append(triples.ravel(), whole), math.comb(width, 3) + 1
    order = np.argsort(-distance, kind="stable")[:_SEARCHED]
    clear = order[distance[order] >= _CLEAR + math.sqrt(2.0 * math.log(count))].tolist()
    found = (members for place in clear if len(members := _members(place, width)) >= 3)
    return list(itertools.islice(found, _TOGETHER))


def _members(place: int, width: int) -> tuple[int, ...]:
    """The columns of the set at this place of the distances."""
    if width <= _ALL_SETS:
        return tuple(column for column in range(width) if place >> column & 1)
    if place == width**3:
        return tuple(range(width))
    return place // width**2, place // width % width, place % width


def _distances(x: _Moments, y: _Moments, runs_x: int, runs_y: int) -> Array:
    """Difference of the means, in standard errors, for means and mean squares of any shape."""
    (mean_x, square_x), (mean_y, square_y) = x, y
    variance = (square_x - mean_x**2) / runs_x + (square_y - mean_y**2) / runs_y
    return np.abs(mean_x - mean_y) / np.sqrt(np.maximum(variance, 1.0 / (runs_x * runs_y)))


def _of_all_sets(bits: Bits) -> _Moments:
    """Mean and mean square of ∏ (±1 − mean) over the columns of each set, shape (2^columns,); bit i is column i.

    Less the mean, so that a set shows only what smaller ones do not.
    """
    width, runs = bits.shape
    patterns = (bits * (1 << np.arange(width))[:, None]).sum(axis=0)
    shares = np.bincount(patterns, minlength=1 << width) / runs
    means = 2.0 * bits.mean(axis=1) - 1.0
    moments = []
    for power in (1, 2):
        table = shares.copy()
        for column, mean in enumerate(means.tolist()):
            low, high = np.moveaxis(table.reshape(-1, 2, 1 << column), 1, 0)
            table = np.stack([low + high, (-1.0 - mean) ** power * low + (1.0 - mean) ** power * high], axis=1).ravel()
        moments.append(table)
    return moments[0], moments[1]


def _of_triples(bits: Bits) -> _Moments:
    """The same for each set of three columns a < b < c, shape (columns, columns, columns); 0 elsewhere."""
    width, runs = bits.shape
    moments = []
    for values in (signs := _signs(bits), signs**2):
        table = np.zeros((width,) * 3)
        for a in range(width - 2):
            pairs = values[a] * values[a + 1 :]
            table[a, a + 1 :] = pairs @ values.T / runs
        first, second, third = np.indices(table.shape, sparse=True)
        moments.append(np.where((first < second) & (second < third), table, 0.0))
    return moments[0], moments[1]


def _of_whole(bits: Bits) -> _Moments:
    """The same for the set of all columns."""
    product = _signs(bits).prod(axis=0, dtype=np.float64)
    return np.array([product.mean()]), np.array([(product**2).mean()])


def _signs(bits: Bits) -> npt.NDArray[np.float32]:
    """±1 less its mean, shape (columns, runs)."""
    signs = np.where(bits, np.float32(1.0), np.float32(-1.0))
    signs -= signs.mean(axis=1, keepdims=True)
    return signs
