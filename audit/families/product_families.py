"""Events by products of two columns, for pairs of columns that say nothing alone.

If the signs of two columns agree more often on x than on y, no sum over columns shows it, and trees have to find the
pair by luck: neither column improves a tree before the other one does. All pairs are compared by a matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import Columns, Products
from .learned_scores import chosen_columns
from .number_families import Family
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_MOST_COLUMNS = 64
_RUNS = 50_000  # most runs on each dataset
_REACH = 3.0  # deviations from the median at which a column is clipped, so that no tail outweighs the rest
_CLEAR = 5.0  # standard errors; of 4,032 differences that are noise, the largest is 3.7 on average
_SINGLE, _TOGETHER = 3, 12  # products with half-lines of their own, and those of a sum


def product_families(columns: Columns, read: PilotSplit) -> Iterator[Family[Any]]:
    """Events by products of two columns, for the pairs whose mean product clearly differs in the first half.

    Parameters
    ----------
    columns : Columns
    read : PilotSplit
        Columns of the pilot outputs, shape (columns, runs).
    """
    if not 2 <= len(read.learn_x) <= _MOST_COLUMNS:
        return
    factors = _clear_pairs(read.learn_x[:, :_RUNS], read.learn_y[:, :_RUNS])[:_TOGETHER]
    if not factors:
        return
    products = Products(columns, tuple(factors))
    with np.errstate(invalid="ignore", over="ignore"):
        values = read.map(lambda part: np.array([(part[a] - at) * (part[b] - bt) for a, at, b, bt in factors]))
    yield from chosen_columns(products, values, single=_SINGLE)


def _clear_pairs(x: Array, y: Array) -> list[tuple[int, float, int, float]]:
    """Pairs of columns with a clear difference, the clearest first: a column, its centre, another one, its centre."""
    centres, spreads = np.zeros(len(x)), np.ones(len(x))
    for place, both in enumerate(zip(x, y, strict=True)):
        pooled = np.concatenate(both)
        pooled = pooled[np.isfinite(pooled)]
        if len(pooled):
            centres[place] = np.median(pooled)
            spreads[place] = np.mean(np.abs(pooled - centres[place])) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = [(side - centres[:, None]) / spreads[:, None] for side in (x, y)]
    scaled = [np.clip(np.where(np.isnan(side), 0.0, side), -_REACH, _REACH) for side in scaled]
    distance = np.maximum(_distances(*scaled), _distances(*map(np.sign, scaled)))
    order = np.argsort(-distance, axis=None, kind="stable")[:_TOGETHER]
    pairs = [divmod(int(place), len(x)) for place in order if distance.flat[place] >= _CLEAR]
    return [(a, float(centres[a]), b, float(centres[b])) for a, b in pairs]


def _distances(x: Array, y: Array) -> Array:
    """Difference of the mean products of each pair of columns, beyond what the columns' own means explain.

    In standard errors, shape (columns, columns); 0 on the diagonal and below.
    """
    parts = [_products(side) for side in (x, y)]
    error = np.sqrt(sum(variance for _, variance in parts))
    apart = np.abs(parts[0][0] - parts[1][0])
    return np.triu(np.where(error > 0.0, apart / np.where(error > 0.0, error, 1.0), 0.0), 1)


def _products(values: Array) -> tuple[Array, Array]:
    """Covariance of each pair of columns, and its variance, each of shape (columns, columns)."""
    runs = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    squares = centred**2
    covariance = centred @ centred.T / runs
    return covariance, np.maximum(squares @ squares.T / runs - covariance**2, 0.0) / runs
