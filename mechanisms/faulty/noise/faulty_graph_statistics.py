"""Statistics of graphs with noise for less than the claim is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.datasets.graph_adjacency import NodeNeighbours
from ...laws.laws import GeometricLaw
from ...noise.graph_statistics import DegreeHistogramMechanism, EdgeCountMechanism, degrees_of
from ...noise_samplers import Integers
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class EdgeNoiseForNodes(Twin):
    """An edge count with noise for one edge, said to hide a person: max_degree·epsilon for nodes of that degree.

    In practice "the graph is private" leaves open what of it. Shows on graphs that differ by a node with its edges,
    `NodeNeighbours`; on graphs that differ by an edge the claim holds.
    """

    epsilon: float
    max_degree: int = 3

    def __post_init__(self) -> None:
        EdgeCountMechanism(self.epsilon, NodeNeighbours(), self.max_degree)  # what it should be: refuses the same

    @property
    def runs_as(self) -> EdgeCountMechanism:
        return EdgeCountMechanism(self.epsilon)

    def law(self, dataset: Any) -> GeometricLaw:
        """The output's exact law; refuses nodes of a larger degree, for which more than `truth` is lost."""
        degrees_of(dataset, self.max_degree)
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs; refuses nodes of a larger degree."""
        degrees_of(dataset, self.max_degree)
        return self.runs_as.sample(dataset, size, rng)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.max_degree)


@dataclass(frozen=True, slots=True)
class OneEndDegreeHistogram(Twin):
    """A degree histogram with sensitivity 2 for an edge, as if it had one end: 2·epsilon instead of epsilon.

    In practice one node moves from one count to another, "so two counts change", and the other end is forgotten. Shows
    on graphs that differ by an edge, unless its ends have degrees next to each other: then a count is left and entered.
    """

    epsilon: float
    max_degree: int = 3

    @property
    def runs_as(self) -> DegreeHistogramMechanism:
        return DegreeHistogramMechanism(2 * self.epsilon, self.max_degree)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)
