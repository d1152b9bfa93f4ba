"""Base classes of mechanisms with a known bug, and queries whose answers move by more than their stated sensitivity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, PureDP
from ...audit.extras import require
from ..distributions.divergences import NamedByParameters, ReferenceMechanism, RunsAs
from ..noise_samplers import Floats
from ..queries import Query, identity, real_answer

__all__ = ["Variant", "Flaw"]

# Base classes of mechanisms with a known bug.


class Flaw(ABC):
    """A mechanism with a known bug, the claim that it breaks and the strongest claim known to hold.

    A `Variant` is a flaw that runs as another mechanism and has the distribution of that mechanism; any other flaw has
    its own sampler. Real outputs lie on a grid, as those of reference mechanisms do, so an audit that refutes a flaw
    has found the bug and not the low bits, unless the bug is in the low bits. Datasets are checked, parameters are not.

    The docstring of a flaw describes the bug for the catalogue too: the first line states the cause and the true
    guarantee, and a paragraph that begins "In practice," says how the bug arises.
    """

    __slots__ = ()
    epsilon: float

    @property
    def claim(self) -> Claim:
        """Claim that the mechanism breaks: ε-DP unless the flaw states another."""
        return PureDP(self.epsilon)

    @property
    def truth(self) -> Claim | None:
        """Strongest claim of the same kind that is known to hold; None if no finite one holds."""
        return None

    @abstractmethod
    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs: shape (size,) for numbers, (size, k) for rows of k numbers, or a list."""


@dataclass(frozen=True, slots=True)
class PureFlaw(Flaw):
    """A flaw with an `epsilon`, by default that of its claim."""

    epsilon: float


@dataclass(frozen=True, slots=True)
class Variant(NamedByParameters, RunsAs, PureFlaw):
    """A flaw with an `epsilon` that runs as another mechanism.

    A variant is a row: its parameters, `runs_as`, and `truth` where that is not the claim of `runs_as`. Where `runs_as`
    has another parameter and no other claim is at hand, the catalogue needs no variant, but that mechanism alone.
    """

    @property
    @abstractmethod
    def runs_as(self) -> ReferenceMechanism:
        """Mechanism that is in fact run, which gives the variant its distribution and its sampler."""

    @property
    def truth(self) -> Claim | None:
        """Strongest claim known to hold: that of `runs_as` unless the variant states another."""
        return self.runs_as.claim


# Queries whose answers move by more than their stated sensitivity: sums that wrap or round, and unclipped values.
#
# Each is a query for a sound mechanism whose `sensitivity` is that of the query without the bug.
#
# Source: Casacuberta, Shoemate, Vadhan & Wagaman (2022), Widespread underestimation of sensitivity in differentially
# private libraries and how to fix it (sums that wrap or round).


def total(rows: npt.ArrayLike) -> float:
    """Sum of the unclipped rows."""
    return float(np.sum(np.asarray(rows, dtype=np.float64)))


@dataclass(frozen=True, slots=True)
class ClippedTotal:
    """Sum of the rows, each clipped to [low, high]."""

    low: float
    high: float

    def __call__(self, rows: npt.ArrayLike) -> float:
        return float(np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high).sum())


@dataclass(frozen=True, slots=True)
class WrappingTotal:
    """Sum of whole rows in signed integers of `bits` bits; a row of 1 moves it by nearly 2^bits where it wraps."""

    bits: int = 8

    def __call__(self, rows: npt.ArrayLike) -> int:
        exact, half = int(np.asarray(rows).sum(dtype=np.int64)), 1 << (self.bits - 1)
        return (exact + half) % (2 * half) - half


def half_precision_total(rows: npt.ArrayLike) -> float:
    """Sum of the rows in half precision, one after the other.

    Every partial sum is rounded to 11 bits, with an error that depends on its size. So a row, or the order of the rows,
    decides how all later rows are rounded, and the sum moves by far more than the row.
    """
    partial = np.float16(0.0)
    for row in np.asarray(rows, dtype=np.float16):
        partial = np.float16(partial + row)
    return float(partial)


@dataclass(frozen=True, slots=True)
class RoundedAnswer:
    """Answer rounded to a whole number: an answer that moves by less than 1 may now move by 1."""

    query: Query = identity

    def __call__(self, dataset: Any) -> int:
        return round(real_answer(self.query, dataset))


def column_totals(rows: npt.ArrayLike) -> Floats:
    """Sums of the columns of a table of numbers with one row or more."""
    return np.asarray(np.asarray(rows, dtype=np.float64).sum(axis=0))


@dataclass(frozen=True, slots=True)
class ClippedColumnTotals:
    """Sums of the columns, with every entry clipped to [0, 1]."""

    def __call__(self, rows: npt.ArrayLike) -> Floats:
        return column_totals(np.clip(np.asarray(rows, dtype=np.float64), 0.0, 1.0))


def standardised(scores: npt.ArrayLike) -> Floats:
    """Scores less their mean, divided by their standard deviation; all 0 if the scores are equal."""
    values = np.asarray(scores, dtype=np.float64)
    deviation = values.std()
    return np.asarray((values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values))


def n_triangles(graph: Any) -> int:
    """Number of triangles of a graph: an added edge closes one for each common neighbour of its ends."""
    require("graphs", "the number of triangles needs", "networkx")
    from networkx import triangles

    corners: Any = triangles(graph)  # per node
    return int(sum(corners.values())) // 3


def squared_rows(rows: Any) -> int:
    """The squared number of rows, which moves by 1 at the empty dataset and by 2n + 1 at n rows."""
    return len(rows) ** 2


@dataclass(frozen=True, slots=True)
class CountsOfClosedIntervals:
    """Number of rows in each interval between ascending edges, both of which belong to it: a row may be in two."""

    edges: tuple[float, ...]

    def __call__(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        values, edges = np.asarray(rows, dtype=np.float64)[:, None], np.asarray(self.edges)
        return np.asarray(((values >= edges[:-1]) & (values <= edges[1:])).sum(axis=0), dtype=np.int64)


def prefix_counts(bins: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Number of rows up to and including each bin: an added row raises the counts of its bin and of all later ones."""
    return np.cumsum(np.asarray(bins, dtype=np.int64))


def interval_tree(counts: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Counts of 2^m leaves, of their pairs, fours, … up to the total: an added row raises one count per level."""
    level = np.asarray(counts, dtype=np.int64)
    levels = [level]
    while len(level) > 1:
        level = level.reshape(-1, 2).sum(axis=1)
        levels.append(level)
    return np.concatenate(levels)


@dataclass(frozen=True, slots=True)
class CountsOverTheRange:
    """Number of rows in each of k equal parts of the rows' range, which a row beyond the others moves."""

    k: int

    def __call__(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return np.asarray(np.histogram(np.asarray(rows, dtype=np.float64), bins=self.k)[0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CountsBetween:
    """Number of rows in each of k equal parts of [low, high]; rows outside count in the nearest part."""

    k: int
    low: float
    high: float

    def __call__(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        inside = np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high)
        return np.asarray(np.histogram(inside, self.k, (self.low, self.high))[0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class GradientSum:
    """Sum of the rows as vectors, each "example" clipped to a Euclidean norm, or each "coordinate" to ±norm.

    Per "mean", it is the mean of the rows, clipped once.
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
