"""Graph statistics with noise for a smaller change than the claim covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.datasets.graph_adjacency import NodeNeighbours
from ...laws.laws import GeometricLaw
from ...noise.graph_statistics import DegreeHistogramMechanism, EdgeCountMechanism, degrees_of
from ...noise_samplers import Integers
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class EdgeNoiseForNodes(Twin):
    """An edge count with noise for one edge, claimed to hide a node: max_degree·ε for nodes of that degree.

    In practice, "the graph is private" does not say whether edges or nodes are (Hay, Li, Miklau & Jensen 2009). The bug
    shows on graphs that differ by a node with its edges (`NodeNeighbours`). For graphs that differ by an edge the claim
    holds.
    """

    epsilon: float
    max_degree: int = 3

    def __post_init__(self) -> None:
        EdgeCountMechanism(self.epsilon, NodeNeighbours(), self.max_degree)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> EdgeCountMechanism:
        return EdgeCountMechanism(self.epsilon)

    def law(self, dataset: Any) -> GeometricLaw:
        """Exact law of the output; refuses nodes of a larger degree, whose loss exceeds `truth`."""
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
    """A degree histogram with noise for one end of an edge, sensitivity 2: 2ε instead of ε.

    In practice, one node moves from one count to another, "so two counts change", and the other end is forgotten. The
    bug shows on graphs that differ by an edge, unless the degrees of its ends differ by 1: then one node leaves the
    count that the other enters.
    """

    epsilon: float
    max_degree: int = 3

    @property
    def runs_as(self) -> DegreeHistogramMechanism:
        return DegreeHistogramMechanism(2 * self.epsilon, self.max_degree)
