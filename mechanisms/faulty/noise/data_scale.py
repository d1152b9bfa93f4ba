"""Noise, and grids, of a size that the data decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.errors import DatasetError
from ...laws.laws import LaplaceLaw
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats, grid_step, round_to_grid, standard_laplace
from ...queries import Query, real_answer
from ..flaw import Flaw


@dataclass(frozen=True, slots=True)
class ScaleFromTheData(Flaw):
    """An answer plus Laplace noise for a sensitivity that is read off the dataset: no finite epsilon.

    The tails of two Laplace laws of different scale are farther apart the farther out; with a sensitivity of 0 there is
    no noise at all. Which cause it is, is a matter of the two queries: the range of the values as the sensitivity of
    their sum, the exact number of rows under a mean, the local sensitivity of a median, the largest degree of a graph.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    query : callable
        From the dataset to the answer.
    sensitivity : callable
        From the dataset to a number from 0, which is taken for the answer's sensitivity.

    References
    ----------
    Nissim, Raskhodnikova & Smith (2007), Smooth sensitivity and sampling in private data analysis: why the local
    sensitivity may not decide the noise.
    """

    epsilon: float
    query: Query = field(repr=False)
    sensitivity: Callable[[Any], float] = field(repr=False)

    def law(self, dataset: Any) -> LaplaceLaw:
        """The output's law before the rounding to the grid; refuses a sensitivity of 0."""
        return LaplaceLaw(real_answer(self.query, dataset), real_answer(self.sensitivity, dataset) / self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,), on one grid for all scales."""
        noise = standard_laplace(size, rng) * (real_answer(self.sensitivity, dataset) / self.epsilon)
        return round_to_grid(noise, 1.0 / self.epsilon, real_answer(self.query, dataset))


@dataclass(frozen=True, slots=True)
class FlooredScaleMean(Flaw):
    """Sum by noisy count, with noise for a mean of so many rows, at least 1e-12: no finite epsilon.

    In practice a generator refuses a negative scale, and a clamp keeps it from complaining. When the noisy count is
    negative the noise is nothing, and one row of 0 gives 0 exactly. With `least_count` the count is clamped instead, to
    1 or more, and epsilon-DP holds for rows in [0, 1] added or removed: noisy sum by noisy count.
    """

    epsilon: float
    least_count: float | None = None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        rows = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
        each = 2.0 / self.epsilon
        count = len(rows) + each * standard_laplace(size, rng)
        if self.least_count is not None:
            count = np.maximum(count, self.least_count)
        outputs = rows.sum() / count + np.maximum(each / count, 1e-12) * standard_laplace(size, rng)
        step = grid_step(each)
        return np.asarray(np.round(outputs / step) * step + 0.0)  # −0 is 0


@dataclass(frozen=True, slots=True)
class SignificantDigitsLaplace(Flaw):
    """A noisy count rounded to as many digits as the exact count has but one: no finite epsilon.

    In practice "two significant digits" are those of the answer. An output that is no multiple of ten says that the
    count was below 10.
    """

    epsilon: float
    query: Query = field(default=len, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        answer = real_answer(self.query, dataset)
        step = 10.0 ** math.floor(math.log10(max(answer, 1.0)))
        return np.asarray(np.round(LaplaceMechanism(self.epsilon).sample(answer, size, rng) / step) * step + 0.0)


def median(rows: npt.ArrayLike) -> float:
    """The middle one of an odd number of rows."""
    return float(_sorted_odd(rows)[len(np.asarray(rows)) // 2])


def gap_at_the_median(rows: npt.ArrayLike) -> float:
    """How far the median can move when one row is replaced: its local sensitivity."""
    ordered = _sorted_odd(rows)
    middle = len(ordered) // 2
    return float(max(ordered[middle] - ordered[middle - 1], ordered[middle + 1] - ordered[middle]))


def spread(rows: npt.ArrayLike) -> float:
    """The largest value less the smallest."""
    return float(np.ptp(np.asarray(rows, dtype=np.float64)))


def mean(rows: npt.ArrayLike) -> float:
    """Sum by number of rows."""
    return float(np.mean(np.asarray(rows, dtype=np.float64)))


def share_of_a_row(rows: npt.ArrayLike) -> float:
    """One by the number of rows: what a mean of values in [0, 1] moves by when one of so many rows is replaced."""
    return 1.0 / len(np.asarray(rows))


def largest_degree(graph: Any) -> float:
    """Of the nodes of a graph, at least 1."""
    return float(max([1, *(degree for _, degree in graph.degree())]))


def n_edges(graph: Any) -> int:
    """The number of edges."""
    return int(graph.number_of_edges())


def _sorted_odd(rows: npt.ArrayLike) -> Floats:
    ordered = np.sort(np.asarray(rows, dtype=np.float64))
    if len(ordered) < 3 or len(ordered) % 2 == 0:
        raise DatasetError(f"{len(ordered)} rows have no single middle one; use 3, 5, … rows.", rows=len(ordered))
    return ordered
