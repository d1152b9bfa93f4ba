"""Adjacency relations: distances of rows, graphs and named relations."""

import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import AddRemove, Replace, UserLevel
from dpaudit.audit.datasets.adjacency import as_adjacency
from dpaudit.audit.errors import AdjacencyError, OptionError
from dpaudit.domains import EdgeNeighbours, NodeNeighbours, Within

NAN = math.nan
ROWS = [(1, "a"), (2, "b"), (2, "b")]


class Tensor:
    """An array of another library."""

    def __init__(self, rows):
        self.rows = np.array(rows).reshape(-1, 2)
        self.ndim, self.dtype, self.shape = 2, self.rows.dtype, self.rows.shape

    def __len__(self):
        return len(self.rows)

    def __array__(self, dtype=None, copy=None):
        return self.rows


FORMS = {
    "list": list, "dicts": lambda rows: [{"n": n, "s": s} for n, s in rows],
    "frame": lambda rows: pd.DataFrame(rows, columns=["n", "s"]),
    "array": lambda rows: np.array([(n, ord(s)) for n, s in rows]).reshape(-1, 2),
    "objects": lambda rows: np.array(rows, dtype=object).reshape(-1, 2),
    "features and labels": lambda rows: (np.array([[n, 1] for n, _ in rows]).reshape(-1, 2), [s for _, s in rows]),
    "with weights": lambda rows: (
        pd.DataFrame(rows, columns=["n", "s"]), np.array([s for _, s in rows]), np.array([n for n, _ in rows])
    ),
    "dictionary": lambda rows: {"X": Tensor([[n, 1] for n, _ in rows]), "y": np.array([s for _, s in rows])},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_added_removed_and_replaced(form):
    for other, added_or_removed, replaced in (
        (ROWS, 0, 0), (ROWS[::-1], 0, 0), (ROWS[:2], 1, math.inf),  # each of two equal rows counts
        ([(1, "a"), (1, "a"), (2, "b")], 2, 1), ([], 3, math.inf),
    ):  # fmt: skip
        x, y = form(ROWS), form(other)
        assert AddRemove().distance(x, y) == AddRemove().distance(y, x) == added_or_removed
        assert Replace().distance(x, y) == Replace().distance(y, x) == replaced


FEATURES, LABELS = np.arange(12.0).reshape(6, 2), np.array([0, 1, 1, 0, 1, 0])


@pytest.mark.parametrize(
    ("x", "y", "distance", "hint"),
    [
        ([FEATURES[0], FEATURES[1]], [FEATURES[0]], 1, ""),  # a list has a row in each array
        ([FEATURES, LABELS], [FEATURES[:5], LABELS[:5]], 4, "Each of the 2 parts of the list counts as one row"),
        (([1, 2], [3, 4]), ([1, 2],), 1, ""),  # a tuple of lists has a row in each list
        (
            (FEATURES.tolist(), LABELS.tolist()), (FEATURES[:5].tolist(), LABELS[:5].tolist()), 4,
            "Each of the 2 parts of the tuple counts as one row",
        ),
        ((FEATURES, LABELS[:5]), (FEATURES[:5], LABELS[:5]), 7, "Each of the 2 parts of the tuple counts as one row"),
        ((FEATURES[0], np.float64(1.0)), (FEATURES[0],), 1, ""),
    ],
)  # fmt: skip
def test_only_tuples_of_arrays_of_one_length_are_tables(x, y, distance, hint):
    for pair in ((x, y), (y, x)):
        assert AddRemove().distance(*pair) == distance
        if hint:
            with pytest.raises(AdjacencyError, match=hint):
                AddRemove().check(*pair, 1)


EDGES, NODES, PATH = EdgeNeighbours(), NodeNeighbours(), nx.path_graph(4)
USERS = [("ann", 1), ("ann", 2), ("bob", 3)]


@pytest.mark.parametrize(
    ("user", "form"),
    [
        (0, list),
        ("who", lambda rows: [{"who": w, "v": v} for w, v in rows]),
        ("who", lambda rows: pd.DataFrame(rows, columns=["who", "v"])),
        (0, lambda rows: np.array([(len(w) + ord(w[0]), v) for w, v in rows]).reshape(-1, 2)),
        (1, lambda rows: (np.array([v for _, v in rows]), [w for w, _ in rows])),
    ],
)
def test_users_added_and_removed_with_all_their_rows(user, form):
    more = [*USERS, ("cyd", 1), ("cyd", 2)]
    for other, distance in ((USERS[::-1], 0), (USERS[2:], 1), (more, 1), ([("cyd", 1)], 3), ([], 2)):
        x, y = form(USERS), form(other)
        assert UserLevel(user).distance(x, y) == UserLevel(user).distance(y, x) == distance


FRAME = pd.DataFrame({"u": [1, 2, 2], "v": [5, 6, 7]})


@pytest.mark.parametrize(
    ("user", "x", "y", "distance"),
    [
        # Users are added or removed with all their rows, so changing a user means removing and adding the user. If this
        # were one step, a pair at distance 2 would be tested against the claim at distance 1.
        (0, [("ann", 1)], [("ann", 2)], 2),
        ("u", FRAME, FRAME.iloc[:1][["v", "u"]], 1),
        ("u", FRAME, FRAME[["v", "u"]], 0),
        ("u", FRAME, FRAME.rename(columns={"v": "w"}), 4),
        (0, np.array([[NAN, 1.0], [2.0, 3.0]]), np.array([[NAN, 1.0], [2.0, 3.0]]), 0),
    ],
)
def test_users_change_and_have_named_columns_or_unknown_names(user, x, y, distance):
    assert UserLevel(user).distance(x, y) == distance


def test_a_user_that_is_not_in_the_rows_or_is_none_is_refused():
    for user, dataset in (("who", [{"name": 1}]), (5, [(1, 2)]), (0, pd.DataFrame({"a": [1]}))):
        with pytest.raises(AdjacencyError, match=rf"user={user!r} is not in the row .*; name the column or position"):
            UserLevel(user).distance(dataset, dataset)
    with pytest.raises(AdjacencyError, match=r"user=0 holds .*, which cannot identify a user"):
        UserLevel(0).distance([(type("Blank", (), {"__hash__": None})(), 1)], [])


@pytest.mark.parametrize(("norm", "moved"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_answers_move_by_a_norm(norm, moved):
    adjacency = Within(norm, radius=2.0)
    assert adjacency.distance([0, 3.0], [4, 0.0]) == moved / 2
    assert adjacency.distance(np.zeros((2, 1)), np.array([[3.0], [4.0]])) == moved / 2
    assert adjacency.distance(1, 3.0) == 1
    assert adjacency.distance([], []) == 0
    assert adjacency.distance([1.0], [1.0, 2.0]) == math.inf
    assert adjacency.check([0, 3.0], [4, 0.0], 4) == moved / 2  # nearer than stated is allowed
    with pytest.raises(AdjacencyError, match=f"at distance {moved / 2:g} under answers within 2 in L"):
        adjacency.check([0, 3.0], [4, 0.0], 1)
    with pytest.raises(AdjacencyError, match="at no finite distance"):
        adjacency.check([1.0], [1.0, 2.0], 1)


def test_answers_that_are_not_numbers_and_norms_and_radii_out_of_range_are_refused():
    for dataset in ([NAN, 1.0], [math.inf, 1.0], [[1], [2, 3]], {"a": 1}):
        with pytest.raises(AdjacencyError, match=r"is not a vector of answers|holds NaN or an infinite number"):
            Within("l2").distance(dataset, dataset)
    for arguments in (("l3",), ("l1", 0.0), ("l2", NAN)):
        with pytest.raises(AdjacencyError, match=r"(norm|radius)=.*; use"):
            Within(*arguments)


@pytest.mark.parametrize(
    ("adjacency", "x", "y", "distance", "found"),
    [
        (AddRemove(), [1, 2], [1], 2, "at distance 1 under add/remove one row, not at 2: 1 row only in x, 0 only in y"),
        (AddRemove(), [1], [2], 1, "at distance 2 under add/remove one row, not at 1: 1 row only in x, 1 only in y"),
        (Replace(), [1], [1, 2], 1, "at no finite distance under replace one row, not at 1: 0 rows only in x"),
        (UserLevel(0), USERS, USERS[:0], 1, r"at distance 2 under add/remove all rows of one user \(0\)"),
        (EDGES, PATH, nx.path_graph(3), 1, "at no finite distance under .* 1 node .*graph.add_nodes_from"),
        (NODES, PATH, nx.cycle_graph(4), 1, "at distance 2 under add/remove one node with its edges"),
    ],
)
def test_another_distance_than_stated_is_refused_with_the_difference(adjacency, x, y, distance, found):
    with pytest.raises(AdjacencyError, match=f"the pair is {found}.*pass another pair") as caught:
        adjacency.check(x, y, distance)
    measured = adjacency.distance(x, y)
    assert caught.value.facts["measured"] == measured
    assert ("distance= to audit" in str(caught.value)) == (0 < measured < math.inf)  # only where the remedy applies


ROW = st.tuples(st.sampled_from(["ann", "bob", "cyd"]), st.sampled_from([0, 1, NAN]))
DATASET = st.lists(ROW, max_size=5)
VECTOR = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2)
METRICS = [
    (AddRemove(), DATASET), (Replace(), DATASET), (UserLevel(0), DATASET),
    *((Within(norm, 0.5), VECTOR) for norm in ("l1", "l2", "linf")),
]  # fmt: skip


@pytest.mark.parametrize(("adjacency", "datasets"), METRICS, ids=lambda m: str(m) if hasattr(m, "distance") else "")
@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=75)
def test_distances_are_metrics(adjacency, datasets, data):
    x, y, z = (data.draw(datasets) for _ in range(3))
    d = adjacency.distance
    assert d(x, y) == d(y, x) >= 0
    assert d(x, x) == 0
    assert d(x, z) <= d(x, y) + d(y, z) + 1e-6
    if isinstance(adjacency, Within):
        assert (d(x, y) == 0) == (x == y) or math.dist(x, y) < 1e-150
    else:
        assert d(x, data.draw(st.permutations(x))) == 0


def test_whole_numbers_beyond_doubles_are_measured_exactly():
    """The wrong variant is a pair that doubles cannot distinguish, which would be accepted at any distance."""
    for x, y, distance in (
        ([2**60, 7], [2**60 + 1, 9], 3.0), (np.array([2**62]), np.array([2**62 - 1]), 1.0), (10**30, 10**30 + 1, 1.0),
    ):  # fmt: skip
        assert Within("l1").distance(x, y) == distance
        with pytest.raises(AdjacencyError, match=r"not at 0\.5"):
            Within("l1").check(x, y, 0.5)


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


@pytest.mark.parametrize("number", [20, 85])
def test_node_distance_is_the_length_of_a_shortest_path(number):
    steps = nx.single_source_shortest_path_length(ONE_STEP, ALL[number])
    x = as_graph(ALL[number])
    for place, other in enumerate(ALL):
        y = as_graph(other)
        assert NODES.distance(*((x, y) if place % 2 else (y, x))) == steps[other]


def test_the_node_distance_takes_the_smallest_cover():
    """The centre covers the five edges of a star; a cycle of five needs three nodes; greedy choices need more."""
    assert NODES.distance(nx.star_graph(5), nx.empty_graph(6)) == 2
    assert NODES.distance(nx.cycle_graph(5), nx.empty_graph(5)) == 6
    assert NODES.distance(nx.petersen_graph(), nx.empty_graph(10)) == 12
    assert NODES.distance(nx.Graph(itertools.product(range(3), range(3, 33))), nx.empty_graph(33)) == 6
    assert NODES.distance(nx.grid_graph([15, 20]), nx.create_empty_copy(nx.grid_graph([15, 20]))) == 300


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiDiGraph])
def test_every_kind_of_graph_has_distances(kind):
    x = kind([(1, 2), (2, 2), (2, 3)])
    y = x.copy()
    y.remove_edge(2, 2)
    assert EDGES.check(x, y, 1) == 1
    assert NODES.check(x, y, 2) == 2
    assert EDGES.distance(x, x.copy()) == NODES.distance(x, x.copy()) == 0
    turned = kind([(2, 1), (2, 2), (2, 3)])
    assert EDGES.distance(x, turned) == (2 if x.is_directed() else 0)
    doubled = x.copy()
    doubled.add_edge(1, 2)
    assert EDGES.distance(x, doubled) == (1 if x.is_multigraph() else 0)


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
    older.remove_edge(2, 3)
    assert NODES.distance(x, older) == 2
    older.nodes[3]["age"] = object.__new__(type("Unhashable", (), {"__hash__": None}))
    with pytest.raises(ValueError, match="cannot be compared by value"):
        EDGES.distance(x, older)


def test_what_is_refused():
    with pytest.raises(AdjacencyError, match=r"is not a graph; use a networkx\.Graph, or an adjacency for rows"):
        NODES.distance(nx.path_graph(2), {1: [2]})
    assert NODES.distance(nx.path_graph(2), nx.DiGraph(nx.path_graph(2))) == math.inf
    for value, message in (
        ("unbounded", r"write adjacency=AddRemove\(\)\."),
        (Within, r'a class; write adjacency=Within\("l1"\)'),
        ("Add/Remove", "did you mean 'add-remove'"),
        (1, r"is not an adjacency relation; use an instance such as AddRemove\(\)"),
    ):
        with pytest.raises(OptionError, match=message):
            as_adjacency(value)
