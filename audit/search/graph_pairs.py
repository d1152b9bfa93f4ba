"""Pairs of graphs that differ in edges, or in nodes with all their edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from ..datasets.domains import Graphs
from ..errors import DatasetError
from .candidates import Candidate, PairSource, varied

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plain:
    """A graph as a set of nodes and a set of edges."""

    nodes: frozenset[int]
    edges: frozenset[Edge]

    def without(self, nodes: Iterable[int]) -> Plain:
        gone = frozenset(nodes)
        return Plain(self.nodes - gone, frozenset(edge for edge in self.edges if not gone & set(edge)))

    def toggled(self, edges: Iterable[Edge]) -> Plain:
        return Plain(self.nodes, self.edges ^ frozenset(edges))

    @property
    def degrees(self) -> Counter[int]:
        return Counter(node for edge in self.edges for node in edge)


@dataclass(frozen=True, slots=True)
class GraphPairs(PairSource):
    """Graphs `steps` apart: y is x with some edges toggled or some nodes removed."""

    domain: Graphs
    steps: int
    kind: Literal["edges", "nodes"]

    def __post_init__(self) -> None:
        n = self.domain.most
        largest = n * self.domain.degree // 2 if self.kind == "edges" else n
        if largest < self.steps:
            raise DatasetError(
                f"{self.domain} cannot differ in {self.steps} {self.kind}; use a larger most.", most=n, steps=self.steps
            )

    def patterns(self) -> Iterator[Candidate]:
        for name, graph in self._named():
            if self.kind == "edges":
                for words, edges in self._sets_of_edges(graph):
                    yield self._candidate(f"x is {name}; {words}", graph, graph.toggled(edges))
            else:
                for words, nodes in self._sets_of_nodes(graph):
                    yield self._candidate(f"x is {name}; {words}", graph, graph.without(nodes))

    def _named(self) -> Iterator[tuple[str, Plain]]:
        """Yield representative graphs, none with a larger degree than allowed."""
        n, degree = self.domain.most, self.domain.degree
        every = range(n)
        rings = [_edge(i, (i + j) % n) for j in range(1, n) for i in every]
        hub = [(0, i) for i in range(1, degree + 1)]
        shapes = {
            f"a graph of {n} nodes without edges": [],
            f"a star with {degree} rays": hub,
            f"a graph with all edges that degree {degree} allows": rings,
            "a path": [(i, i + 1) for i in range(n - 1)],
            "a set of disjoint edges": [(i, i + 1) for i in range(0, n - 1, 2)],
            "a pair of stars": [(i % 2, i) for i in range(2, n)],
            "a bipartite graph": [(i, j) for i in range(n // 2) for j in range(n // 2, n)],
            "a single edge": [(0, 1)],
        }
        for name, edges in shapes.items():
            yield name, Plain(frozenset(every), self._allowed(edges))
        if n > 2:
            yield "a graph of 2 nodes without edges", Plain(frozenset(range(2)), frozenset())

    def _allowed(self, edges: Iterable[Edge]) -> frozenset[Edge]:
        """Add the edges in order, skipping each that would exceed the allowed degree."""
        kept: set[Edge] = set()
        degrees: Counter[int] = Counter()
        for edge in edges:
            if edge[0] != edge[1] and edge not in kept and max(degrees[end] for end in edge) < self.domain.degree:
                kept.add(edge)
                degrees.update(edge)
        return frozenset(kept)

    def _sets_of_edges(self, graph: Plain) -> Iterator[tuple[str, list[Edge]]]:
        """Yield sets of edges to toggle, one per kind of first edge: by presence and by the degrees of its ends."""
        degrees = graph.degrees
        kinds = {
            (edge in graph.edges, *sorted(degrees[end] for end in edge)): edge
            for edge in reversed(list(combinations(sorted(graph.nodes), 2)))
        }
        for (is_there, low, high), first in kinds.items():
            words = f"y {'lacks an' if is_there else 'has one more'} edge between nodes of degrees {low} and {high}"
            if self.steps == 1:
                yield words, [first]
            else:
                words = f"{words} and differs in {self.steps} edges"
                yield words, self._more_edges(graph, first, at_one_node=False)
                yield f"{words} at one node", self._more_edges(graph, first, at_one_node=True)

    def _more_edges(self, graph: Plain, first: Edge, *, at_one_node: bool) -> list[Edge]:
        """Return `steps` edges: the first, then preferably edges present or absent like it, at its node or disjoint."""
        is_there = first in graph.edges

        def rank(edge: Edge) -> tuple[bool, bool]:
            is_unlike = first[0] not in edge if at_one_node else not set(edge).isdisjoint(first)
            return (edge in graph.edges) != is_there, is_unlike

        others = [edge for edge in combinations(sorted(graph.nodes), 2) if edge != first]
        return [first, *sorted(others, key=rank)[: self.steps - 1]]

    def _sets_of_nodes(self, graph: Plain) -> Iterator[tuple[str, list[int]]]:
        """Yield sets of nodes to remove, one for each degree of the first node."""
        degrees = graph.degrees
        for degree in sorted({degrees[node] for node in graph.nodes}, reverse=True):
            chosen = sorted(graph.nodes, key=lambda node: (abs(degrees[node] - degree), node))[: self.steps]
            yield f"y lacks {'a node' if self.steps == 1 else f'{self.steps} nodes'} of degree {degree}", chosen

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        least = 2 if self.kind == "edges" else self.steps
        while True:
            nodes = range(int(rng.integers(min(least, self.domain.most), self.domain.most + 1)))
            density = rng.choice([0.1, 0.3, 0.5, 0.8])
            edges = [edge for edge in combinations(nodes, 2) if rng.random() < density]
            graph = Plain(frozenset(nodes), self._allowed([edges[i] for i in rng.permutation(len(edges)).tolist()]))
            yield self._candidate("random pair", graph, self._changed(graph, rng))

    def _changed(self, graph: Plain, rng: np.random.Generator) -> Plain:
        if self.kind == "nodes":
            return graph.without(rng.permutation(sorted(graph.nodes))[: self.steps].tolist())
        edges = list(combinations(sorted(graph.nodes), 2))
        return graph.toggled([edges[i] for i in rng.permutation(len(edges))[: self.steps].tolist()])

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        x, y = candidate.parts
        while True:
            i, j = sorted(rng.permutation(self.domain.most)[:2].tolist())
            match rng.choice(["edge", "edge", "change", "node"]):
                case "edge" if {i, j} <= x.nodes:
                    # In both graphs, unless y lacks one of the nodes.
                    new = x.toggled([(i, j)]), y.toggled([(i, j)]) if {i, j} <= y.nodes else y
                    how = f"edge {i}-{j} {'removed' if (i, j) in x.edges else 'added'}"
                    yield self._candidate(varied(candidate, how), *new)
                case "change":
                    yield self._candidate(varied(candidate, f"other {self.kind} differ"), x, self._changed(x, rng))
                case "node" if i in x.nodes and i in y.nodes:
                    yield self._candidate(varied(candidate, f"node {i} removed"), x.without([i]), y.without([i]))
                case "node" if i not in x.nodes:
                    grown = (Plain(graph.nodes | {i}, graph.edges) for graph in (x, y))
                    yield self._candidate(varied(candidate, f"node {i} added"), *grown)

    def is_allowed(self, candidate: Candidate) -> bool:
        return all(max(graph.degrees.values(), default=0) <= self.domain.degree for graph in candidate.parts)

    def _candidate(self, label: str, x: Plain, y: Plain) -> Candidate:
        first, second = (self.domain.build(sorted(graph.nodes), sorted(graph.edges)) for graph in (x, y))
        return Candidate(label, first, second, (x, y), (x, y))


def _edge(i: int, j: int) -> Edge:
    return (i, j) if i < j else (j, i)
