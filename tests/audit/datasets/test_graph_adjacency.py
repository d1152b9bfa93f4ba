"""Neighbouring graphs: distances compared with a search through all small graphs, and audits end to end."""

from __future__ import annotations

import itertools
import math
import pickle

import networkx as nx
import pytest

from dpaudit import EdgeNeighbours, NodeNeighbours, PureDP, check
from dpaudit.audit.errors import AdjacencyError

EDGES, NODES = EdgeNeighbours(), NodeNeighbours()


def graphs_on(labels):
    """Every undirected graph without loops whose nodes are among the labels, as (nodes, edges)."""
    for size in range(len(labels) + 1):
        for nodes in itertools.combinations(labels, size):
            pairs = list(itertools.combinations(nodes, 2))
            for chosen in itertools.product([False, True], repeat=len(pairs)):
                yield frozenset(nodes), frozenset(itertools.compress(pairs, chosen))


ALL = list(graphs_on(range(4)))


def without(graph, node):
    nodes, edges = graph
    return nodes - {node}, frozenset(edge for edge in edges if node not in edge)


# By definition, two graphs are one step apart if removing a node from one of them gives the other.
ONE_STEP = nx.Graph([(graph, without(graph, node)) for graph in ALL for node in graph[0]])


def as_graph(graph):
    made = nx.Graph()
    made.add_nodes_from(graph[0])
    made.add_edges_from(graph[1])
    return made


def test_there_are_as_many_small_graphs_as_there_should_be():
    assert len(ALL) == len(ONE_STEP) == 1 + 4 + 6 * 2 + 4 * 8 + 64


@pytest.mark.parametrize("number", [0, 20, 85, 112])
def test_node_distance_is_the_length_of_a_shortest_path(number):
    steps = nx.single_source_shortest_path_length(ONE_STEP, ALL[number])
    x = as_graph(ALL[number])
    for other in ALL[:: 1 if number == 85 else 3]:
        y = as_graph(other)
        assert NODES.distance(x, y) == NODES.distance(y, x) == steps[other]


def test_edge_distance_counts_the_edges_in_one_graph_only():
    for (nodes, edges), (others, theirs) in itertools.product(ALL[::7], ALL[::5]):
        expected = len(edges ^ theirs) if nodes == others else math.inf
        assert EDGES.distance(as_graph((nodes, edges)), as_graph((others, theirs))) == expected


def test_nodes_are_told_by_their_labels():
    x = nx.Graph([("ann", "bob"), ("bob", "cyd")])
    assert EDGES.distance(x, nx.Graph([("cyd", "bob"), ("bob", "ann")])) == 0
    assert EDGES.distance(x, nx.Graph([("ann", "bob"), ("ann", "cyd")])) == 2
    assert NODES.distance(x, nx.Graph([("bob", "ann")])) == 1
    assert NODES.distance(x, nx.relabel_nodes(x, {"cyd": "dan"})) == 2


def test_the_node_distance_takes_the_smallest_cover():
    """The centre covers the five edges of a star; a cycle of five needs three nodes; greedy choices need more."""
    assert NODES.distance(nx.star_graph(5), nx.empty_graph(6)) == 2
    assert NODES.distance(nx.cycle_graph(5), nx.empty_graph(5)) == 6
    assert NODES.distance(nx.petersen_graph(), nx.empty_graph(10)) == 12
    assert NODES.distance(nx.Graph(itertools.product(range(3), range(3, 33))), nx.empty_graph(33)) == 6
    assert NODES.distance(nx.grid_graph([15, 20]), nx.create_empty_copy(nx.grid_graph([15, 20]))) == 300


def test_a_distance_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("dpaudit.audit.datasets.graph_adjacency._SECONDS", 0.0)
    x = nx.random_regular_graph(4, 40, seed=1)
    with pytest.raises(
        AdjacencyError, match="differ in 80 edges between common nodes, and their node distance was not"
    ):
        NODES.distance(x, nx.create_empty_copy(x))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_every_kind_of_graph_has_distances(kind):
    x = kind([(1, 2), (2, 2), (2, 3)])
    y = x.copy()
    y.remove_edge(2, 2)
    assert EDGES.distance(x, y) == 1
    assert NODES.distance(x, y) == 2
    assert EDGES.distance(x, x.copy()) == NODES.distance(x, x.copy()) == 0
    turned = kind([(2, 1), (2, 2), (2, 3)])
    assert EDGES.distance(x, turned) == (2 if x.is_directed() else 0)
    doubled = x.copy()
    doubled.add_edge(1, 2)
    assert EDGES.distance(x, doubled) == (1 if x.is_multigraph() else 0)


def test_a_directed_graph_is_no_neighbour_of_an_undirected_one():
    assert EDGES.distance(nx.path_graph(3), nx.path_graph(3, nx.DiGraph)) == math.inf
    assert NODES.distance(nx.path_graph(3), nx.path_graph(3, nx.DiGraph)) == math.inf


def test_what_is_stored_in_a_graph_belongs_to_it():
    """Otherwise the weights of two neighbouring graphs could differ everywhere."""
    x = nx.path_graph(4)
    nx.set_edge_attributes(x, 1.0, "weight")
    heavier, older = x.copy(), x.copy()
    heavier.edges[1, 2]["weight"] = 2.0
    older.nodes[3]["age"] = [33, 34]
    assert EDGES.distance(x, heavier) == 2
    assert NODES.distance(x, heavier) == 2
    assert EDGES.distance(x, older) == math.inf
    assert NODES.distance(x, older) == 2
    older.nodes[3]["age"] = object.__new__(type("Unhashable", (), {"__hash__": None}))
    with pytest.raises(ValueError, match="cannot be compared by value"):
        EDGES.distance(x, older)


@pytest.mark.parametrize(
    ("adjacency", "x", "y", "words"),
    [
        (EDGES, nx.path_graph(4), nx.cycle_graph(4), None),
        (EDGES, nx.path_graph(4), nx.empty_graph(4), "at distance 3 under add/remove one edge, .* 0 nodes and 3 edges"),
        (EDGES, nx.path_graph(4), nx.path_graph(3), "at no finite distance under .* 1 node .*graph.add_nodes_from"),
        (NODES, nx.path_graph(4), nx.path_graph(3), None),
        (NODES, nx.path_graph(4), nx.cycle_graph(4), "at distance 2 under add/remove one node with its edges"),
        (NODES, nx.path_graph(4), nx.path_graph(4), "at distance 0"),
    ],
    ids=["edge", "edges", "fewer nodes", "node", "an edge is no node step", "equal"],
)
def test_pairs_that_are_no_neighbours_are_refused_in_words(adjacency, x, y, words):
    if words is None:
        assert adjacency.check(x, y, 1) == 1
    else:
        with pytest.raises(AdjacencyError, match=f"the pair is {words}.*pass another pair"):
            adjacency.check(x, y, 1)


@pytest.mark.parametrize("adjacency", [EDGES, NODES])
@pytest.mark.parametrize("dataset", [[1, 2], {1: [2]}, 3.0])
def test_what_is_no_graph_is_refused(adjacency, dataset):
    for pair in ((dataset, nx.path_graph(2)), (nx.path_graph(2), dataset)):
        with pytest.raises(AdjacencyError, match=r"is not a graph; use a networkx\.Graph, or an adjacency for rows"):
            adjacency.distance(*pair)


def test_they_survive_pickling_and_compare_by_value():
    assert pickle.loads(pickle.dumps(EDGES)) == EdgeNeighbours() != NodeNeighbours()


def noisy_edges(graph, size, rng):
    return graph.number_of_edges() + rng.geometric(0.5, size) - rng.geometric(0.5, size)


def one_noisy_edge_count(graph, rng):
    return int(graph.number_of_edges() + rng.geometric(0.5) - rng.geometric(0.5))


@pytest.mark.parametrize(
    ("mechanism", "jobs"), [(noisy_edges, 1), (one_noisy_edge_count, 1), (one_noisy_edge_count, 2)]
)
def test_graphs_are_audited_end_to_end(mechanism, jobs):
    """The privacy loss is exactly ln 2 per edge, so 3 ln 2 for a node of three edges.

    The first and the last audit refute a correct claim with probability at most alpha=5e-9.
    """
    complete = nx.complete_graph(["ann", "bob", "cyd", "dan"])
    fewer_edges, fewer_nodes = complete.copy(), complete.copy()
    fewer_edges.remove_edge("ann", "bob")
    fewer_nodes.remove_node("dan")
    settings = {"runs": 20_000, "seed": 1, "alpha": 5e-9, "jobs": jobs}
    edge = check(mechanism, complete, fewer_edges, claim=PureDP(0.7), adjacency=EDGES, **settings)
    node = check(mechanism, complete, fewer_nodes, claim=PureDP(0.7), adjacency=NODES, **settings)
    group = check(mechanism, complete, fewer_nodes, claim=lambda d: PureDP(3 * 0.7 * d), adjacency=NODES, **settings)
    assert not edge.is_refuted
    assert node.is_refuted
    assert node.bound > 1.5
    assert not group.is_refuted
    assert edge.pair.x == "graph of 4 nodes, 6 edges"
    assert edge.pair.difference == "0 nodes and 1 edge differ"
    assert node.pair.difference == "1 node and 3 edges differ"
    assert node.pair.adjacency == "add/remove one node with its edges"
