"""Answers that move by more than they are said to: sums that wrap or round, and values that are not clipped.

Each is a query for a sound mechanism, whose `sensitivity` is what it would be without the bug.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..noise_samplers import Floats
from ..queries import Query, identity, real_answer


def total(rows: npt.ArrayLike) -> float:
    """The sum of the rows, as they are."""
    return float(np.sum(np.asarray(rows, dtype=np.float64)))


@dataclass(frozen=True, slots=True)
class ClippedTotal:
    """The sum of the rows, each clipped to [low, high]."""

    low: float
    high: float

    def __call__(self, rows: npt.ArrayLike) -> float:
        return float(np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high).sum())


@dataclass(frozen=True, slots=True)
class WrappingTotal:
    """The sum of whole rows in signed integers of so many bits, which begins again at the other end.

    A row of 1 takes 2^(bits − 1) − 1 to −2^(bits − 1): the sensitivity is not the rows' bound but nearly 2^bits.

    References
    ----------
    Casacuberta, Shoemate, Vadhan & Wagaman (2022), Widespread underestimation of sensitivity in differentially private
    libraries and how to fix it.
    """

    bits: int = 8

    def __call__(self, rows: npt.ArrayLike) -> int:
        exact, half = int(np.asarray(rows).sum(dtype=np.int64)), 1 << (self.bits - 1)
        return (exact + half) % (2 * half) - half


def half_precision_total(rows: npt.ArrayLike) -> float:
    """The sum of the rows in half precision, one after the other.

    Every partial sum is rounded to 11 bits, by an error that depends on how large it is. So a row, or the order of the
    rows, decides how all later rows are rounded, and the sum moves by far more than the row does.

    References
    ----------
    Casacuberta, Shoemate, Vadhan & Wagaman (2022), Widespread underestimation of sensitivity in differentially private
    libraries and how to fix it.
    """
    partial = np.float16(0.0)
    for row in np.asarray(rows, dtype=np.float16):
        partial = np.float16(partial + row)
    return float(partial)


@dataclass(frozen=True, slots=True)
class RoundedAnswer:
    """An answer rounded to a whole number: one that moves by less than 1 may now move by 1."""

    query: Query = identity

    def __call__(self, dataset: Any) -> int:
        return round(real_answer(self.query, dataset))


def column_totals(rows: npt.ArrayLike) -> Floats:
    """The sums of the columns of a table of numbers, one row or more."""
    return np.asarray(np.asarray(rows, dtype=np.float64).sum(axis=0))


@dataclass(frozen=True, slots=True)
class ClippedColumnTotals:
    """The sums of the columns, every entry clipped to [0, 1]."""

    def __call__(self, rows: npt.ArrayLike) -> Floats:
        return column_totals(np.clip(np.asarray(rows, dtype=np.float64), 0.0, 1.0))


def standardised(scores: npt.ArrayLike) -> Floats:
    """Scores less their mean, by their standard deviation; all 0 where they do not differ."""
    values = np.asarray(scores, dtype=np.float64)
    deviation = values.std()
    return np.asarray((values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values))


def n_triangles(graph: Any) -> int:
    """The number of triangles of a graph: an edge more closes as many as its ends have common neighbours."""
    from networkx import triangles

    corners: Any = triangles(graph)  # of each node, as no single one is asked for
    return int(sum(corners.values())) // 3


def prefix_counts(bins: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """How many rows are in a bin up to each one: a row more raises all from its own on."""
    return np.cumsum(np.asarray(bins, dtype=np.int64))


def interval_tree(counts: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The counts of 2^m leaves, of their pairs, fours, … up to the total: a row more raises one count a level."""
    level = np.asarray(counts, dtype=np.int64)
    levels = [level]
    while len(level) > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)


@dataclass(frozen=True, slots=True)
class CountsOverTheRange:
    """How many rows are in each of k equal parts of the range that the rows themselves span.

    One row beyond the others moves the edges, and with them the rows of every part.
    """

    k: int

    def __call__(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.asarray(np.histogram(np.asarray(rows, dtype=np.float64), bins=self.k)[0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CountsBetween:
    """How many rows are in each of k equal parts of [low, high], rows beyond counting in the last part there."""

    k: int
    low: float
    high: float

    def __call__(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        inside = np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high)
        return np.asarray(np.histogram(inside, self.k, (self.low, self.high))[0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class GradientSum:
    """The sum of the rows as vectors, clipped to a norm: each of them, their mean, or coordinate by coordinate.

    Parameters
    ----------
    norm : float
        The Euclidean norm, or for "coordinate" the largest size of a coordinate.
    per : {"example", "mean", "coordinate"}
        "mean" clips the mean of the rows once, and gives that.
    """

    norm: float
    per: str = "example"

    def __call__(self, rows: npt.ArrayLike) -> Floats:
        gradients = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        if self.per == "coordinate":
            return np.asarray(np.clip(gradients, -self.norm, self.norm).sum(axis=0))
        if self.per == "mean":
            gradients = gradients.mean(axis=0, keepdims=True)
        sizes = np.linalg.norm(gradients, axis=1, keepdims=True)
        return np.asarray((gradients / np.maximum(sizes / self.norm, 1.0)).sum(axis=0))
