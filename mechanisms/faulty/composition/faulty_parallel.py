"""Parallel composition where it does not hold: overlapping parts, and rows that move between parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import PureDP, check_number
from ...composition.parallel_composition import IntervalOf, ParallelComposition, check_edges
from ...composition.sequential_composition import side_by_side
from ...laws.product import ProductLaw
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats
from ..twin import Twin


def counts_of_parts(epsilon: float, n_parts: int, part: Callable[[Any], int]) -> ParallelComposition:
    """Number of rows in each part, with Laplace noise of scale 1/ε."""
    return ParallelComposition([LaplaceMechanism(epsilon, query=len)] * n_parts, part)


@dataclass(frozen=True, slots=True)
class ClosedIntervals:
    """Noisy counts of the numbers in [e₀, e₁], [e₁, e₂], …: a number at an inner edge counts twice."""

    epsilon: float
    edges: tuple[float, ...]

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> ProductLaw:
        return side_by_side(self._noise.law(count) for count in self._counts(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return np.stack([self._noise.sample(count, size, rng) for count in self._counts(dataset)], axis=1)

    @property
    def _noise(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon)

    def _counts(self, dataset: Any) -> npt.NDArray[np.int64]:
        rows, edges = np.asarray(dataset, dtype=np.float64)[:, None], np.asarray(self.edges)
        return np.asarray(((rows >= edges[:-1]) & (rows <= edges[1:])).sum(axis=0), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class OverlappingPartCounts(Twin):
    """Counts of intervals that contain both their ends, taken for disjoint parts: 2ε instead of ε.

    In practice, BETWEEN includes both ends, so "between 18 and 65" and "between 65 and 120" both count a person of 65.
    The bug shows on a row at an inner edge, added or removed.

    Parameters
    ----------
    epsilon : float
        In nats.
    edges : sequence of float
        Edges of the intervals in ascending order, at least three.
    """

    epsilon: float
    edges: Sequence[float]

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        object.__setattr__(self, "edges", check_edges(self.edges))
        check_number("number of edges", len(self.edges), 3, math.inf, "two intervals share an edge")

    @property
    def runs_as(self) -> ClosedIntervals:
        return ClosedIntervals(self.epsilon, tuple(self.edges))

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)


@dataclass(frozen=True, slots=True)
class PartCountsForReplace(Twin):
    """Counts of disjoint parts at ε each, claimed to be ε-DP for a replaced row, which moves between parts: 2ε.

    In practice, "parallel composition is free" is said without naming the adjacency. The bug shows on datasets of equal
    size, one row of which is in another part: one count falls and another rises.

    Parameters
    ----------
    epsilon : float
        In nats.
    edges : sequence of float
        Edges that cut the numbers into parts (`IntervalOf`), one or more.
    """

    epsilon: float
    edges: Sequence[float]

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        object.__setattr__(self, "edges", check_edges(self.edges))
        check_number("number of edges", len(self.edges), 1, math.inf, "they cut the rows into two parts or more")

    @property
    def runs_as(self) -> ParallelComposition:
        return counts_of_parts(self.epsilon, len(self.edges) + 1, IntervalOf(self.edges))

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)
