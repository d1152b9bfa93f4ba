"""Adjacency of graphs that differ by one edge, or by one node with all its edges."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import AdjacencyError
from .adjacency import Adjacency
from .description import difference, edges_of, nodes_of
from .rows import is_graph, symmetric_difference

_SECONDS = 10.0  # for a vertex cover, which is hard in the worst case; 100 nodes with 500 random edges take 2 s


@dataclass(frozen=True, slots=True)
class EdgeNeighbours(Adjacency):
    """Graphs on the same nodes that differ by one edge; the distance is the number of edges in only one graph.

    A dataset is a networkx graph, directed or not, whose nodes are identified by their labels. The attributes of a node
    or an edge are part of it: an edge with another weight is another edge, so changing a weight takes two steps. Graphs
    with different nodes are at an infinite distance.

    References
    ----------
    Hay, Li, Miklau & Jensen (2009), Accurate estimation of the degree distribution of private networks (edge
    differential privacy).

    Examples
    --------
    >>> import networkx as nx
    >>> EdgeNeighbours().distance(nx.cycle_graph(4), nx.path_graph(4))
    1.0
    """

    unit: ClassVar[str] = "one edge"

    def __str__(self) -> str:
        return "add/remove one edge"

    def distance(self, x: Any, y: Any) -> float:
        if _are_of_different_kinds(x, y) or nodes_of(x) != nodes_of(y):
            return math.inf
        return float(symmetric_difference(edges_of(x), edges_of(y)).total())

    def difference(self, x: Any, y: Any) -> str:
        words = difference(x, y)
        if nodes_of(x) == nodes_of(y):
            return words
        return f"{words} (edge neighbours have the same nodes; use graph.add_nodes_from, or NodeNeighbours)"


@dataclass(frozen=True, slots=True)
class NodeNeighbours(Adjacency):
    """Graphs that differ by one node, added or removed with all its edges; all other edges stay.

    The distance is the smallest number of such steps. Changing the edges of a node takes two steps: the node is removed
    and added again. So nodes that are in only one graph count once. Of the common nodes, a smallest set that touches
    every differing edge between common nodes counts twice; this smallest vertex cover is found by integer programming.
    Nodes and edges are compared as for `EdgeNeighbours`.

    References
    ----------
    Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013), Analyzing graphs with node differential privacy.

    Examples
    --------
    >>> import networkx as nx
    >>> NodeNeighbours().distance(nx.star_graph(5), nx.empty_graph(6)), NodeNeighbours().distance(
    ...     nx.complete_graph(5), nx.complete_graph(4)
    ... )
    (2.0, 1.0)
    """

    unit: ClassVar[str] = "one node with its edges"

    def __str__(self) -> str:
        return "add/remove one node with its edges"

    def distance(self, x: Any, y: Any) -> float:
        if _are_of_different_kinds(x, y):
            return math.inf
        nodes_x, nodes_y = nodes_of(x), nodes_of(y)
        one_sided = {node for node, _ in nodes_x} ^ {node for node, _ in nodes_y}
        changed = {node for node, _ in symmetric_difference(nodes_x, nodes_y)} - one_sided
        edges = {frozenset(ends) for ends, _ in symmetric_difference(edges_of(x), edges_of(y))}
        untouched = [edge for edge in edges if not edge & (one_sided | changed)]
        return float(len(one_sided) + 2 * (len(changed) + _smallest_cover(untouched)))


def _are_of_different_kinds(x: Any, y: Any) -> bool:
    for dataset in (x, y):
        if not is_graph(dataset):
            raise AdjacencyError(
                f"a dataset of type {type(dataset).__name__} is not a graph; use a networkx.Graph, or an adjacency for "
                "rows such as AddRemove.",
                type=type(dataset).__name__,
            )
    return bool(x.is_directed() != y.is_directed())


def _smallest_cover(edges: list[frozenset[Any]]) -> int:
    """Return the size of a smallest set of nodes that touches every edge; a loop has only one node."""
    if not edges:
        return 0
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    degrees = Counter(node for edge in edges for node in edge)
    column = {node: j for j, node in enumerate(degrees)}
    places = [(i, column[node]) for i, edge in enumerate(edges) for node in edge]
    where = np.array(places, dtype=np.int32).T  # the solver of SciPy 1.12 takes no longer indices
    touches = csr_array((np.ones(len(places)), where), shape=(len(edges), len(column)))
    each = np.ones(len(column), dtype=np.int64)
    found = milp(
        each,
        integrality=each,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(touches, lb=1),
        options={"mip_rel_gap": 0.0, "time_limit": _SECONDS},  # the default gap may stop before the optimum
    )
    if found.status != 0 or found.x is None:
        raise AdjacencyError(
            f"the graphs differ in {len(edges):,} edges between common nodes, and their node distance was not found "
            f"in {_SECONDS:g} s; pass graphs that differ less, or no adjacency.",
            n_edges=len(edges),
        )
    return round(float(found.x.sum()))
