"""Private statistics of graphs, for edge or node neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...audit.datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ...audit.datasets.rows import is_graph
from ...audit.errors import ClaimError, DatasetError
from ..laws.laws import GeometricLaw
from ..laws.product import ProductLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Integers
from ..parameter_checks import check_count
from .geometric import GeometricMechanism
from .histogram import HistogramMechanism


def degrees_of(dataset: Any, bound: int | None = None) -> Integers:
    """Return the degrees of a graph's nodes, shape (n_nodes,); for a directed graph, in-degree plus out-degree.

    As in networkx, a loop adds two to the degree of its node. A dataset that is not a graph, or a degree above `bound`,
    raises a `DatasetError`.
    """
    if not is_graph(dataset):
        raise DatasetError(
            f"a dataset of type {type(dataset).__name__} is not a graph; use a networkx.Graph.",
            type=type(dataset).__name__,
        )
    degrees = np.fromiter((degree for _, degree in dataset.degree()), dtype=np.int64, count=dataset.number_of_nodes())
    if bound is not None and degrees.max(initial=0) > bound:
        raise DatasetError(
            f"a node has {degrees.max()} edges, but the noise hides only max_degree={bound}; use a larger max_degree.",
            degree=int(degrees.max()),
            max_degree=bound,
        )
    return degrees


@dataclass(frozen=True, slots=True)
class EdgeCountMechanism(PureMechanism):
    """The number of edges plus geometric noise: epsilon-DP for edges, or for nodes of bounded degree.

    An edge changes the count by 1, a node by its degree. Noise for edges hides the k edges of one person with k·epsilon
    in total, at most 1 if k ≤ 1/epsilon (`PureDP.group`). Noise for nodes hides all `max_degree` edges.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    adjacency : EdgeNeighbours or NodeNeighbours
        Neighbours of the claim.
    max_degree : int, optional
        Required for nodes, at least 1; not allowed for edges. The claim covers graphs whose degrees are at most
        `max_degree`; other graphs are rejected. For simple graphs with at most n nodes, n − 1 is enough.

    References
    ----------
    Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013), Analyzing graphs with node differential privacy.

    Examples
    --------
    >>> from dpaudit import NodeNeighbours
    >>> for mechanism in EdgeCountMechanism(0.5), EdgeCountMechanism(0.5, NodeNeighbours(), max_degree=10):
    ...     print(mechanism, mechanism.sensitivity)
    EdgeCount(epsilon=0.5, for edges) 1
    EdgeCount(epsilon=0.5, for nodes of degree 10) 10
    """

    adjacency: EdgeNeighbours | NodeNeighbours = field(default_factory=EdgeNeighbours)
    max_degree: int | None = None

    def __post_init__(self) -> None:
        if _is_for_nodes(self.adjacency):
            check_count("max_degree", self.max_degree, "edges")
        elif self.max_degree is not None:
            raise ClaimError(
                f"max_degree={self.max_degree!r} does not apply to a claim for edges; omit it, or use NodeNeighbours() "
                "to hide nodes of that degree.",
                max_degree=self.max_degree,
            )
        self._on_count  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        return f"EdgeCount(epsilon={self.epsilon:g}, {_for_what(self.adjacency, self.max_degree)})"

    @property
    def sensitivity(self) -> int:
        """Largest change of the count between neighbours."""
        return self._bound or 1

    def law(self, dataset: Any) -> GeometricLaw:
        """The exact law of the output."""
        return self._on_count.law(self._count(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        return self._on_count.sample(self._count(dataset), size, rng)

    def _count(self, dataset: Any) -> int:
        return int(degrees_of(dataset, self._bound).sum()) // 2

    @property
    def _bound(self) -> int | None:
        return self.max_degree if _is_for_nodes(self.adjacency) else None

    @property
    def _on_count(self) -> GeometricMechanism:
        return GeometricMechanism(self.epsilon, self.sensitivity)


@dataclass(frozen=True, slots=True)
class DegreeHistogramMechanism(PureMechanism):
    """The number of nodes of each degree, 0 … max_degree, plus geometric noise: epsilon-DP for edges or nodes.

    An edge moves each of its two nodes by one place, so four counts change by 1: sensitivity 4. A node of degree D adds
    itself to one count and moves D others: sensitivity 2D + 1.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    max_degree : int
        At least 1. For edges, nodes of larger degree are counted in the last place. For nodes, the claim covers graphs
        without such nodes, and other graphs are rejected.
    adjacency : EdgeNeighbours or NodeNeighbours
        Neighbours of the claim.

    References
    ----------
    Hay, Li, Miklau & Jensen (2009), Accurate estimation of the degree distribution of private networks;
    Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013), Analyzing graphs with node differential privacy.

    Examples
    --------
    >>> import networkx as nx
    >>> mechanism = DegreeHistogramMechanism(epsilon=20.0, max_degree=3)
    >>> mechanism.sample(nx.star_graph(3), 2, np.random.default_rng(1)).tolist()
    [[0, 3, 0, 1], [0, 3, 0, 1]]
    """

    max_degree: int
    adjacency: EdgeNeighbours | NodeNeighbours = field(default_factory=EdgeNeighbours)

    def __post_init__(self) -> None:
        check_count("max_degree", self.max_degree, "edges")
        self._on_degrees  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        return f"DegreeHistogram(epsilon={self.epsilon:g}, {_for_what(self.adjacency, self.max_degree)})"

    @property
    def sensitivity(self) -> int:
        """Largest sum of absolute changes of the counts between neighbours."""
        return 2 * self.max_degree + 1 if _is_for_nodes(self.adjacency) else 4

    def law(self, dataset: Any) -> ProductLaw:
        """The exact law of the output."""
        return self._on_degrees.law(self._degrees(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs, shape (size, max_degree + 1), int64."""
        return self._on_degrees.sample(self._degrees(dataset), size, rng)

    def _degrees(self, dataset: Any) -> Integers:
        bound = self.max_degree if _is_for_nodes(self.adjacency) else None
        return np.minimum(degrees_of(dataset, bound), self.max_degree)

    @property
    def _on_degrees(self) -> HistogramMechanism:
        return HistogramMechanism(self.epsilon, self.max_degree + 1, self.sensitivity, noise="geometric")


def _is_for_nodes(adjacency: Any) -> bool:
    if not isinstance(adjacency, (EdgeNeighbours, NodeNeighbours)):
        raise ClaimError(
            f"adjacency={adjacency!r} is not a relation of graphs; use EdgeNeighbours() or NodeNeighbours().",
            adjacency=adjacency,
        )
    return isinstance(adjacency, NodeNeighbours)


def _for_what(adjacency: EdgeNeighbours | NodeNeighbours, max_degree: int | None) -> str:
    return f"for nodes of degree {max_degree}" if _is_for_nodes(adjacency) else "for edges"
