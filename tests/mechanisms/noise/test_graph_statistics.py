"""Private graph statistics: sensitivities over all small graphs, and true and false claims on both relations."""

import itertools
import math
import pickle

import networkx as nx
import numpy as np
import pytest

from dpaudit import EdgeNeighbours, NodeNeighbours, PureDP, check
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import DegreeHistogramMechanism, EdgeCountMechanism, GeometricLaw, ProductLaw, exact_epsilon
from dpaudit.mechanisms.faulty import EdgeNoiseForNodes, OneEndDegreeHistogram
from dpaudit.mechanisms.noise.laplace import degrees_of

EDGES, NODES = EdgeNeighbours(), NodeNeighbours()


def graphs_on(n_nodes):
    """Yield every simple graph on the nodes 0 … n − 1."""
    pairs = list(itertools.combinations(range(n_nodes), 2))
    for chosen in itertools.product([False, True], repeat=len(pairs)):
        graph = nx.empty_graph(n_nodes)
        graph.add_edges_from(itertools.compress(pairs, chosen))
        yield graph


def edge_neighbours(n_nodes):
    for graph in graphs_on(n_nodes):
        for edge in graph.edges:
            other = graph.copy()
            other.remove_edge(*edge)
            yield graph, other


def node_neighbours(n_nodes, max_degree):
    for graph in graphs_on(n_nodes):
        if degrees_of(graph).max() <= max_degree:
            other = graph.copy()
            other.remove_node(n_nodes - 1)
            yield graph, other


def histogram_change(pair, max_degree):
    counts = [np.bincount(np.minimum(degrees_of(graph), max_degree), minlength=max_degree + 1) for graph in pair]
    return np.abs(counts[0] - counts[1]).sum()


@pytest.mark.parametrize("max_degree", [1, 2, 3, 4])
def test_sensitivities_are_the_largest_changes_over_all_small_graphs(max_degree):
    assert max(histogram_change(pair, max_degree) for pair in edge_neighbours(4)) == 4
    assert DegreeHistogramMechanism(1.0, max_degree).sensitivity == 4
    pairs = list(node_neighbours(max_degree + 1, max_degree))
    assert max(x.number_of_edges() - y.number_of_edges() for x, y in pairs) == max_degree
    assert EdgeCountMechanism(1.0, NODES, max_degree).sensitivity == max_degree
    largest = max(histogram_change(pair, max_degree) for pair in pairs)
    assert largest == 2 * max_degree + 1 == DegreeHistogramMechanism(1.0, max_degree, NODES).sensitivity


@pytest.mark.parametrize("adjacency", [EDGES, NODES], ids=str)
def test_claims_hold_exactly_on_all_small_graphs_and_are_attained(adjacency):
    pairs = list(edge_neighbours(4) if adjacency == EDGES else node_neighbours(4, 3))
    for mechanism in (
        EdgeCountMechanism(0.6, adjacency, None if adjacency == EDGES else 3),
        DegreeHistogramMechanism(0.6, 3, adjacency),
    ):
        assert mechanism.claim == PureDP(0.6)
        assert all(adjacency.distance(x, y) == 1 for x, y in pairs)
        largest = max(exact_epsilon(mechanism.law(x), mechanism.law(y)) for x, y in pairs)
        assert largest == pytest.approx(0.6, rel=1e-12)


def test_laws_by_hand():
    star = nx.star_graph(["hub", "ann", "bob", "cyd"])
    ratio = math.exp(-0.5)
    assert EdgeCountMechanism(0.5).law(star) == GeometricLaw(3, ratio)
    assert EdgeCountMechanism(0.5, NODES, max_degree=4).law(star) == GeometricLaw(3, math.exp(-0.5 / 4))
    assert DegreeHistogramMechanism(2.0, 4).law(star) == ProductLaw(
        tuple(GeometricLaw(n, ratio) for n in (0, 3, 0, 1, 0))
    )
    counted_in_the_last = DegreeHistogramMechanism(2.0, 2).law(star)
    assert [law.location for law in counted_in_the_last.marginals] == [0, 3, 1]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_every_kind_of_graph_is_counted(kind):
    graph = kind([(1, 2), (2, 2), (2, 3), (3, 1)])
    assert EdgeCountMechanism(1.0).law(graph).location == graph.number_of_edges() == 4
    assert degrees_of(graph).tolist() == [2, 4, 2]
    assert EdgeCountMechanism(1.0).law(kind()).location == 0


def test_a_loop_moves_one_node_by_two_places():
    graph = nx.Graph([(1, 2)])
    with_loop = nx.Graph([(1, 2), (1, 1)])
    assert histogram_change((graph, with_loop), 3) == 2


def test_noise_for_edges_gives_a_person_what_group_privacy_says():
    """k edges of a person cost k·epsilon, so 1/epsilon edges cost at most 1."""
    mechanism = EdgeCountMechanism(0.25)
    for k in (1, 2, 4):
        hub = nx.star_graph(k)
        alone = nx.create_empty_copy(hub)
        assert EDGES.distance(hub, alone) == k
        assert exact_epsilon(mechanism.law(hub), mechanism.law(alone)) == pytest.approx(0.25 * k, rel=1e-12)


def test_noise_for_edges_claimed_for_nodes_is_refuted():
    """Each true claim is refuted with probability at most alpha=5e-9."""
    twin = EdgeNoiseForNodes(0.5, max_degree=4)
    hub, leaves = nx.star_graph(4), nx.empty_graph(range(1, 5))
    assert NODES.distance(hub, leaves) == 1
    assert exact_epsilon(twin.law(hub), twin.law(leaves)) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert twin.truth == PureDP(2.0)
    settings = {"runs": 20_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert check(twin, hub, leaves, claim=twin.claim, adjacency=NODES, **settings).bound > 1.0
    assert not check(twin, hub, leaves, claim=twin.truth, adjacency=NODES, **settings).is_refuted
    right = EdgeCountMechanism(0.5, NODES, max_degree=4)
    assert not check(right, hub, leaves, claim=right.claim, adjacency=NODES, **settings).is_refuted


def test_a_degree_histogram_for_one_end_of_an_edge_is_refuted():
    twin, right = OneEndDegreeHistogram(1.0, max_degree=2), DegreeHistogramMechanism(1.0, max_degree=2)
    edge, none = nx.path_graph(2), nx.empty_graph(2)
    assert exact_epsilon(twin.law(edge), twin.law(none)) == pytest.approx(2.0, rel=1e-12)
    assert twin.truth == PureDP(2.0)
    settings = {"claim": PureDP(1.0), "adjacency": EDGES, "runs": 5_000, "seed": 1, "alpha": 5e-9, "jobs": 1}
    assert check(twin, edge, none, **settings).is_refuted
    assert not check(right, edge, none, **settings).is_refuted


def test_the_false_histogram_does_not_show_where_a_count_is_left_and_entered():
    twin = OneEndDegreeHistogram(1.0)
    path, shorter = nx.path_graph(3), nx.Graph([(0, 1)])
    shorter.add_node(2)
    assert exact_epsilon(twin.law(path), twin.law(shorter)) == pytest.approx(1.0, rel=1e-12)


def test_outputs_are_whole_numbers_and_graphs_are_left_alone():
    graph = nx.path_graph(5)
    for mechanism, shape in ((EdgeCountMechanism(1.0), (7,)), (DegreeHistogramMechanism(1.0, 3), (7, 4))):
        outputs = mechanism.sample(graph, 7, np.random.default_rng(1))
        assert outputs.shape == shape
        assert outputs.dtype == np.int64
    assert nx.utils.graphs_equal(graph, nx.path_graph(5))


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [
        (EdgeCountMechanism(0.5), "EdgeCount(epsilon=0.5, for edges)"),
        (EdgeCountMechanism(0.5, NODES, 10), "EdgeCount(epsilon=0.5, for nodes of degree 10)"),
        (DegreeHistogramMechanism(0.5, 10), "DegreeHistogram(epsilon=0.5, for edges)"),
        (DegreeHistogramMechanism(0.5, 10, NODES), "DegreeHistogram(epsilon=0.5, for nodes of degree 10)"),
        (EdgeNoiseForNodes(0.5), "EdgeNoiseForNodes(epsilon=0.5, max_degree=3)"),
        (OneEndDegreeHistogram(0.5), "OneEndDegreeHistogram(epsilon=0.5, max_degree=3)"),
    ],
)
def test_lines_and_pickles(mechanism, line):
    assert str(mechanism) == line
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: EdgeCountMechanism(0), ClaimError, "epsilon=0 is not allowed"),
        (
            lambda: EdgeCountMechanism(1, NODES),
            ClaimError,
            "max_degree=None is not a number of edges; use a whole number",
        ),
        (lambda: EdgeCountMechanism(1, NODES, 0), ClaimError, "max_degree=0 is not a number of edges"),
        (
            lambda: EdgeCountMechanism(1, "node"),
            ClaimError,
            r"adjacency='node' is not a relation of graphs; use EdgeNeighbours\(\)",
        ),
        (lambda: DegreeHistogramMechanism(1, 2.5), ClaimError, r"max_degree=2\.5 is not a number of edges"),
        (lambda: DegreeHistogramMechanism(-1, 2), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: DegreeHistogramMechanism(1, 2, NodeNeighbours), ClaimError, "is not a relation of graphs"),
        (lambda: EdgeNoiseForNodes(1, 0), ClaimError, "max_degree=0 is not a number of edges"),
        (lambda: OneEndDegreeHistogram(1, 0), ClaimError, "max_degree=0 is not a number of edges"),
        (lambda: EdgeCountMechanism(1).law([1, 2]), DatasetError, r"type list is not a graph; use a networkx\.Graph"),
        (
            lambda: EdgeCountMechanism(1, NODES, 2).law(nx.star_graph(5)),
            DatasetError,
            "a node has 5 edges, but the noise hides only max_degree=2; use a larger max_degree",
        ),
        (
            lambda: DegreeHistogramMechanism(1, 2, NODES).sample(nx.star_graph(3), 1, np.random.default_rng(1)),
            DatasetError,
            "a node has 3 edges",
        ),
    ],
    ids=range(12),
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_largest_degree_has_no_part_in_a_claim_for_edges():
    with pytest.raises(ClaimError, match="max_degree=3 does not apply to a claim for edges"):
        EdgeCountMechanism(0.5, max_degree=3)


def test_twin_refuses_nodes_of_a_larger_degree_than_its_truth_is_for():
    import networkx as nx

    with pytest.raises(DatasetError):
        EdgeNoiseForNodes(1.0, 3).law(nx.star_graph(9))
