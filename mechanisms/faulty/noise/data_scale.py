"""Noise and grids whose size depends on the data."""

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
    """An answer plus Laplace noise for a sensitivity that is computed from the dataset: no finite ε.

    The tails of two Laplace laws of different scale diverge, and a sensitivity of 0 means no noise. The queries `query`
    and `sensitivity` decide which bug this is: the range of the values as the sensitivity of their sum, the exact
    number of rows under a mean, the local sensitivity of a median, or the largest degree of a graph.

    References
    ----------
    Nissim, Raskhodnikova & Smith (2007), Smooth sensitivity and sampling in private data analysis: why the local
    sensitivity may not decide the noise.
    """

    epsilon: float
    query: Query = field(repr=False)
    sensitivity: Callable[[Any], float] = field(repr=False)

    def law(self, dataset: Any) -> LaplaceLaw:
        """Exact law of the output before rounding; refuses a sensitivity of 0."""
        return LaplaceLaw(real_answer(self.query, dataset), real_answer(self.sensitivity, dataset) / self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,), on one grid for all scales."""
        noise = standard_laplace(size, rng) * (real_answer(self.sensitivity, dataset) / self.epsilon)
        return round_to_grid(noise, 1.0 / self.epsilon, real_answer(self.query, dataset))


@dataclass(frozen=True, slots=True)
class FlooredScaleMean(Flaw):
    """A sum over a noisy count plus noise for a mean of that many rows, of scale at least 1e-12: no finite ε.

    In practice, a generator refuses a negative scale, and a clamp silences the error. When the noisy count is negative
    there is no noise, and a single row of 0 gives exactly 0. With `least_count` the count is clamped instead, to 1 or
    more. The output is then a noisy sum over a noisy count, and ε-DP holds for rows in [0, 1] added or removed.
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
    """A noisy count rounded to a grid that depends on the number of digits of the exact count: no finite ε.

    In practice, "one significant digit" is that of the exact answer. The grid of a count of d digits has steps of 10^(d
    − 1), so an output that is not a multiple of 10 shows that the count was below 10.
    """

    epsilon: float
    query: Query = field(default=len, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        answer = real_answer(self.query, dataset)
        step = 10.0 ** math.floor(math.log10(max(answer, 1.0)))
        return np.asarray(np.round(LaplaceMechanism(self.epsilon).sample(answer, size, rng) / step) * step + 0.0)


def median(rows: npt.ArrayLike) -> float:
    """Middle value of an odd number of rows."""
    return float(_sorted_odd(rows)[len(np.asarray(rows)) // 2])


def gap_at_the_median(rows: npt.ArrayLike) -> float:
    """Local sensitivity of the median: how far it can move when one row is replaced."""
    ordered = _sorted_odd(rows)
    middle = len(ordered) // 2
    return float(max(ordered[middle] - ordered[middle - 1], ordered[middle + 1] - ordered[middle]))


def spread(rows: npt.ArrayLike) -> float:
    """The largest value less the smallest."""
    return float(np.ptp(np.asarray(rows, dtype=np.float64)))


def mean(rows: npt.ArrayLike) -> float:
    """Mean of the rows."""
    return float(np.mean(np.asarray(rows, dtype=np.float64)))


def share_of_a_row(rows: npt.ArrayLike) -> float:
    """1 over the number of rows: how far a mean of values in [0, 1] moves when one row is replaced."""
    return 1.0 / len(np.asarray(rows))


def largest_degree(graph: Any) -> float:
    """Largest degree of a graph's nodes, at least 1."""
    return float(max([1, *(degree for _, degree in graph.degree())]))


def n_edges(graph: Any) -> int:
    """The number of edges."""
    return int(graph.number_of_edges())


def _sorted_odd(rows: npt.ArrayLike) -> Floats:
    ordered = np.sort(np.asarray(rows, dtype=np.float64))
    if len(ordered) < 3 or len(ordered) % 2 == 0:
        raise DatasetError(f"{len(ordered)} rows have no single middle one; use 3, 5, … rows.", rows=len(ordered))
    return ordered
