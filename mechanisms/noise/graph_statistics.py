"""Statistics of graphs, private for edges or for nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ...audit.datasets.rows import is_graph
from ...audit.errors import ClaimError, DatasetError
from ..laws.laws import GeometricLaw
from ..laws.product import ProductLaw
from ..noise_samplers import Integers
from .geometric import GeometricMechanism
from .histogram import HistogramMechanism


def degrees_of(dataset: Any, bound: int | None = None) -> Integers:
    """The degrees of a graph's nodes, shape (n_nodes,); of a directed graph in and out together. Else a `DatasetError`.

    As in networkx, a loop adds two to its node's degree. With a `bound`, a graph with a larger degree is refused.
    """
    if not is_graph(dataset):
        raise DatasetError(
            f"a dataset of type {type(dataset).__name__} is not a graph; use a networkx.Graph.",
            type=type(dataset).__name__,
        )
    degrees = np.fromiter((degree for _, degree in dataset.degree()), dtype=np.int64, count=dataset.number_of_nodes())
    if bound is not None and degrees.max(initial=0) > bound:
        raise DatasetError(
            f"a node has {degrees.max()} edges, and the noise hides a node of max_degree={bound}; use a larger one.",
            degree=int(degrees.max()),
            max_degree=bound,
        )
    return degrees


@dataclass(frozen=True, slots=True)
class EdgeCountMechanism:
    """The number of edges plus geometric noise: epsilon-DP for edges, or for nodes of bounded degree.

    An edge changes the count by 1, a node by its degree. So noise for edges hides k edges of a person with k·epsilon in
    all, and a person of at most 1/epsilon edges with 1 (`PureDP.group`); noise for nodes hides all `max_degree`.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    adjacency : EdgeNeighbours or NodeNeighbours
        What the claim is about.
    max_degree : int, optional
        For nodes: the claim is about graphs without a node of more edges, and others are refused. With n nodes at
        most, n − 1 is enough for simple graphs.

    Raises
    ------
    ClaimError
        For an epsilon that is not positive and finite, for nodes a `max_degree` below 1, for edges any, or another
        adjacency.

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

    epsilon: float
    adjacency: EdgeNeighbours | NodeNeighbours = field(default_factory=EdgeNeighbours)
    max_degree: int | None = None

    def __post_init__(self) -> None:
        if _is_for_nodes(self.adjacency):
            _check_degree(self.max_degree)
        elif self.max_degree is not None:
            raise ClaimError(
                f"max_degree={self.max_degree!r} has no part in a claim for edges; leave it out, or use "
                "NodeNeighbours() to hide nodes of that degree.",
                max_degree=self.max_degree,
            )
        self._on_count  # noqa: B018  # refuses the other parameters

    def __str__(self) -> str:
        return f"EdgeCount(epsilon={self.epsilon:g}, {_for_what(self.adjacency, self.max_degree)})"

    @property
    def sensitivity(self) -> int:
        """The largest change of the count between neighbours."""
        return self._bound or 1

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for edges, or for nodes of bounded degree."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> GeometricLaw:
        """The output's exact law."""
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
class DegreeHistogramMechanism:
    """How many nodes have each degree, 0 … max_degree, plus geometric noise: epsilon-DP for edges or nodes.

    An edge moves its two nodes by one place each, so that four counts change by 1: sensitivity 4. A node of degree D
    adds itself to one count and moves D others: 2D + 1.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    max_degree : int
        At least 1. For edges, nodes of more are counted in the last place; for nodes, the claim is about graphs
        without any, and others are refused.
    adjacency : EdgeNeighbours or NodeNeighbours
        What the claim is about.

    Raises
    ------
    ClaimError
        For an epsilon that is not positive and finite, a `max_degree` below 1, or another adjacency.

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

    epsilon: float
    max_degree: int
    adjacency: EdgeNeighbours | NodeNeighbours = field(default_factory=EdgeNeighbours)

    def __post_init__(self) -> None:
        _check_degree(self.max_degree)
        self._on_degrees  # noqa: B018  # refuses the other parameters

    def __str__(self) -> str:
        return f"DegreeHistogram(epsilon={self.epsilon:g}, {_for_what(self.adjacency, self.max_degree)})"

    @property
    def sensitivity(self) -> int:
        """The largest sum of absolute changes of the counts between neighbours."""
        return 2 * self.max_degree + 1 if _is_for_nodes(self.adjacency) else 4

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for edges or nodes as stated."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> ProductLaw:
        """The output's exact law."""
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


def _check_degree(max_degree: Any) -> None:
    if not isinstance(max_degree, (int, np.integer)) or max_degree < 1:
        raise ClaimError(
            f"max_degree={max_degree!r} bounds no node's edges; use a whole number from 1.", max_degree=max_degree
        )


def _is_for_nodes(adjacency: Any) -> bool:
    if not isinstance(adjacency, (EdgeNeighbours, NodeNeighbours)):
        raise ClaimError(
            f"adjacency={adjacency!r} is not about graphs; use EdgeNeighbours() or NodeNeighbours().",
            adjacency=adjacency,
        )
    return isinstance(adjacency, NodeNeighbours)


def _for_what(adjacency: EdgeNeighbours | NodeNeighbours, max_degree: int | None) -> str:
    return f"for nodes of degree {max_degree}" if _is_for_nodes(adjacency) else "for edges"
