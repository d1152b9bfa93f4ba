"""Every pair that a search may try is a pair of neighbours in its domain, for all domains and adjacencies.

The tests count distances independently, in the simplest way, so that no function is compared with itself.
"""

import math
from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit as dp
from dpaudit.audit.errors import AdjacencyError, DatasetError, OptionError
from dpaudit.audit.search.candidates import Pool
from dpaudit.audit.search.pairs_for_domain import pairs_of

N_DRAWN, N_MOVES = 16, 4


def tried(domain, adjacency, distance, seed=0):
    """Patterns, random pairs and moves from both, as in the search."""
    pool = Pool(pairs_of(domain, adjacency, distance, seed), adjacency, distance, seed)
    first = [*pool.patterns(1_000), *pool.drawn(N_DRAWN)]
    assert first, "no pair to begin with"
    return first + list(pool.moves([first[0], first[-1]], N_MOVES))


def plain(row):
    """Return a hashable form of a row."""
    if isinstance(row, dict):
        return tuple(row.values())
    return tuple(row) if isinstance(row, (tuple, list, np.ndarray)) else row


def rows_in(dataset):
    if isinstance(dataset, pd.DataFrame):
        return [tuple(row) for row in dataset.itertuples(index=False, name=None)]
    return [plain(row) for row in dataset]


@settings(max_examples=8, deadline=None)
@given(
    n_answers=st.one_of(st.none(), st.integers(1, 6)), low=st.integers(-3, 3), width=st.integers(1, 9),
    integer=st.booleans(), norm=st.sampled_from(["l1", "l2", "linf"]), radius=st.sampled_from([0.5, 1.0, 2.0, 3.7]),
    distance=st.sampled_from([1, 2, 2.5, 4]), seed=st.integers(0, 9),
)  # fmt: skip
def test_answers_within(n_answers, low, width, integer, norm, radius, distance, seed):
    domain = dp.Answers(n_answers, float(low), float(low + width), integer)
    if integer and radius * distance < 1:
        with pytest.raises(AdjacencyError, match="cannot be two different integers"):
            pairs_of(domain, dp.domains.Within(norm, radius), distance, seed)
        return
    reached = []
    for pair in tried(domain, dp.domains.Within(norm, radius), distance, seed):
        for end in (pair.x, pair.y):
            assert np.shape(end) == (() if n_answers is None else (n_answers,))
            assert np.min(end) >= low
            assert np.max(end) <= low + width
            assert not integer or np.asarray(end).dtype.kind == "i"
        gap = np.abs(np.atleast_1d(np.subtract(pair.x, pair.y, dtype=float)))
        length = {"l1": gap.sum(), "l2": math.sqrt((gap**2).sum()), "linf": gap.max()}[norm]
        assert 0 < length <= radius * distance * (1 + 1e-9)
        reached.append(length)
    whole = math.floor(radius * distance) if integer else radius * distance
    assert max(reached) >= min(whole, width) * (1 - 1e-9)  # some pairs attain the largest distance


def test_canonical_answers_are_there():
    """One above, one below, all, half, the cross, one against the rest; and the ends of the range."""
    pairs = [(tuple(p.x), tuple(p.y)) for p in tried(dp.Answers(4, 0.0, 2.0), dp.domains.Within("linf"), 1)]
    known = set(pairs) | {(y, x) for x, y in pairs}
    assert {
        ((1, 1, 1, 1), (2, 1, 1, 1)), ((1, 1, 1, 1), (0, 1, 1, 1)), ((1, 1, 1, 1), (2, 2, 2, 2)),
        ((1, 1, 1, 1), (0, 0, 0, 0)), ((1, 1, 1, 1), (2, 2, 0, 0)), ((1, 1, 0, 0), (0, 0, 1, 1)),
        ((1, 1, 1, 1), (2, 0, 0, 0)), ((0, 2, 2, 2), (1, 1, 1, 1)), ((0, 0, 0, 0), (1, 1, 1, 1)),
        ((1, 1, 1, 1), (1, 1, 1, 2)),
    } <= known  # fmt: skip


@settings(max_examples=6, deadline=None)
@given(
    of=st.sampled_from(["names", "numbers", "whole", "tuples", "vectors", "dictionaries"]),
    form=st.sampled_from(["list", "array", "frame", "dicts"]),
    adjacency=st.sampled_from([dp.AddRemove(), dp.Replace()]),
    distance=st.integers(1, 4),
    more=st.integers(0, 3),
    seed=st.integers(0, 9),
)
def test_rows(of, form, adjacency, distance, more, seed):
    options = {
        "names": {"values": ("Ann", "Bob", "Eve")}, "numbers": {"low": -1.0, "high": 2.0},
        "whole": {"low": 0, "high": 9, "integer": True}, "tuples": {"values": (("a", 1), ("b", 2), ("b", 3))},
        "vectors": {"low": (0.0, -1.0, 0.0), "high": (1.0, 1.0, 5.0)},
        "dictionaries": {"values": ({"a": 1.0}, {"a": 4.0})},
    }[of]  # fmt: skip
    form = "list" if of == "dictionaries" else form
    width = {"tuples": 2, "vectors": 3}.get(of, 1)
    if form == "array" and of == "tuples":
        form = "list"  # an array cannot hold strings and numbers together
    columns = tuple("abc"[:width]) if form in ("dicts", "frame") else ()
    domain = dp.Rows(most=distance + more, form="list" if form == "dicts" else form, columns=columns, **options)
    kinds = {"list": list, "dicts": list, "array": np.ndarray, "frame": pd.DataFrame}
    n_empty = 0
    for pair in tried(domain, adjacency, distance, seed):
        assert isinstance(pair.x, kinds[form])
        x, y = Counter(rows_in(pair.x)), Counter(rows_in(pair.y))
        assert max(x.total(), y.total()) <= distance + more
        n_empty += not (x and y)
        if isinstance(adjacency, dp.AddRemove):
            assert sum(abs(x[row] - y[row]) for row in x | y) == distance
        else:
            assert x.total() == y.total()
            assert sum(abs(x[row] - y[row]) for row in x | y) == 2 * distance
        for row in x + y:
            if domain.values:
                names = {"Ann", "Bob", "Eve", ("Ann",), ("Bob",), ("Eve",)}
                assert row in {"names": names, "dictionaries": {(1.0,), (4.0,)}}.get(of, domain.values)
            else:
                ends = zip(*domain.ranges, strict=True)
                assert all(low <= number <= high for number, (low, high) in zip(np.ravel(row), ends, strict=True))
    assert n_empty or isinstance(adjacency, dp.Replace)


def test_canonical_rows_are_there():
    """No other rows, the extremes, duplicates, and a row among others."""
    known = {(tuple(p.x), tuple(p.y)) for p in tried(dp.Rows(most=3), dp.AddRemove(), 1)}
    assert {((0.0,), ()), ((1.0,), ()), ((0.0, 0.0, 0.0), (0.0, 0.0)), ((0.0, 0.0, 1.0), (0.0, 0.0))} <= known
    labels = [p.label for p in tried(dp.Rows(most=3), dp.AddRemove(), 1)]
    assert "x has one more row, 0.0; no other rows" in labels
    assert "x has one more row, 0.0; both contain 2 rows, all 0.0" in labels
    assert "x has one more row, 0.0; both contain [1.0]" in labels


def user_rows(dataset, place):
    if isinstance(dataset, pd.DataFrame):
        return [(str(row[place]), str(tuple(row.values()))) for row in dataset.to_dict("records")]
    return [(str(row[place]), str(row)) for row in dataset]


@settings(max_examples=8, deadline=None)
@given(
    case=st.sampled_from(["frame", "dicts", "tuples", "listed", "listed dicts"]), distance=st.integers(1, 3),
    more=st.integers(0, 4), largest=st.one_of(st.none(), st.integers(1, 3)), seed=st.integers(0, 9),
)  # fmt: skip
def test_users(case, distance, more, largest, seed):
    spent = {"low": (0, 0.0), "high": (5, 10.0), "columns": ("user", "spent")}
    listed = [(name, n) for name in ("Ann", "Bob", "Eve", "Joe") for n in (1, 2)]
    options, user = {
        "frame": ({**spent, "form": "frame"}, "user"),
        "dicts": (spent, "user"),
        "tuples": ({"low": (0.0, 1), "high": (10.0, 6)}, 1),
        "listed": ({"values": tuple(listed)}, 0),
        "listed dicts": ({"values": tuple({"who": name, "n": n} for name, n in listed)}, "who"),
    }[case]
    domain = dp.Rows(most=distance + more, rows_per_user=largest, **options)
    sizes = set()
    for pair in tried(domain, dp.UserLevel(user), distance, seed):
        x, y = (Counter(user_rows(end, user)) for end in (pair.x, pair.y))
        owners_x, owners_y = {name for name, _ in x}, {name for name, _ in y}
        assert len(owners_x ^ owners_y) == distance
        assert all(x[row] == y[row] for row in x | y if row[0] in owners_x & owners_y)
        for rows in (x, y):
            assert rows.total() <= distance + more
            owned = Counter()
            for (name, _), times in rows.items():
                owned[name] += times
            assert not largest or max(owned.values(), default=0) <= largest
            sizes |= set(owned.values())
    most = distance + more
    assert max(sizes) >= min(largest or most, most // distance)  # the largest number of rows of a user occurs


@settings(max_examples=6, deadline=None)
@given(
    most=st.integers(2, 7), max_degree=st.one_of(st.none(), st.integers(1, 4)),
    adjacency=st.sampled_from([dp.domains.EdgeNeighbours(), dp.domains.NodeNeighbours()]), distance=st.integers(1, 3),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_graphs(most, max_degree, adjacency, distance, seed):
    domain = dp.domains.Graphs(most, max_degree)
    by_edges = isinstance(adjacency, dp.domains.EdgeNeighbours)
    if (most * domain.degree // 2 if by_edges else most) < distance:
        with pytest.raises(DatasetError, match="cannot differ in"):
            pairs_of(domain, adjacency, distance, seed)
        return
    for pair in tried(domain, adjacency, distance, seed):
        for graph in (pair.x, pair.y):
            assert isinstance(graph, nx.Graph)
            assert graph.number_of_nodes() <= most
            assert max((degree for _, degree in graph.degree()), default=0) <= domain.degree
        x, y = (set(map(frozenset, graph.edges)) for graph in (pair.x, pair.y))
        gone = set(pair.x) ^ set(pair.y)
        if by_edges:
            assert not gone
            assert len(x ^ y) == distance
        else:
            assert len(gone) == distance
            assert all(edge & gone for edge in x ^ y)


def test_listed_values_of_any_kind():
    pairs = tried(dp.Values(("a", "b", "c")), dp.Local(), 1)
    assert {frozenset((p.x, p.y)) for p in pairs} == {frozenset("ab"), frozenset("ac"), frozenset("bc")}
    assert (pairs[0].x, pairs[0].y) == ("a", "c")
    datasets = dp.Values(([], [1], [1, 1], [2, 1]))
    assert {(len(p.x), len(p.y)) for p in tried(datasets, dp.AddRemove(), 1)} == {(0, 1), (1, 2)}
    assert [(p.x, p.y) for p in tried(datasets, dp.Replace(), 1)] == [([1, 1], [2, 1])]


@pytest.mark.parametrize(
    ("domain", "adjacency", "distance", "error", "message"),
    [
        (
            dp.Answers(3), dp.AddRemove(), 1, AdjacencyError,
            "Answers have no neighbours by add/remove one row; use a matching",
        ),
        (dp.Rows(), dp.AddRemove(), 1.5, OptionError, "distance=1.5 is not a number of rows; use an integer"),
        (dp.Rows(most=2), dp.AddRemove(), 3, DatasetError, "most=2 rows cannot differ in 3; use most >= 3"),
        (dp.Rows(values=("a",)), dp.Replace(), 1, AdjacencyError, "give a second value"),
        (dp.Rows(), dp.UserLevel("user"), 1, AdjacencyError, "user='user' is not in rows such as 0.0"),
        (dp.Rows(size=4), dp.AddRemove(), 1, AdjacencyError, "datasets of 4 rows each cannot differ by an added"),
        (dp.Tables({"n": dp.domains.NumericColumn(0, 1)}), None, 1, AdjacencyError, "AddRemove or Replace"),
        (dp.domains.Graphs(3), dp.domains.NodeNeighbours(), 4, DatasetError, "cannot differ in 4 nodes; use a larger"),
        (42, dp.Local(), 1, OptionError, "domain=42 describes no datasets; use Answers, Values, Rows, Tables or"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(domain, adjacency, distance, error, message):
    with pytest.raises(error) as caught:
        pairs_of(domain, adjacency, distance, 0)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (dp.domains.CategoricalColumn, {"values": ("a", "a")}, "are not the categories of a column"),
        (dp.domains.NumericColumn, {"low": 0, "high": 1, "bins": 0}, "bins=0"),
        (dp.Tables, {"columns": {}}, "are not the columns of a table"),
        (
            dp.Tables,
            {"columns": {"n": dp.domains.NumericColumn(0, 1)}, "outside": ("far",)},
            "outside='far' is unknown",
        ),
        (dp.Answers, {"n_answers": 0}, "n_answers=0 is not a number of answers"),
        (dp.Answers, {"low": 1.0, "high": 1.0}, "low=1.0 and high=1.0 do not form a range"),
        (dp.Answers, {"high": math.inf}, "use finite numbers"),
        (dp.Answers, {"high": 1.5, "integer": True}, "are not both whole"),
        (dp.Values, {"values": ("a",)}, "do not form a pair; list two or more"),
        (dp.Rows, {"most": 0}, "most=0 is not a number of rows"),
        (dp.Rows, {"form": "set"}, "form='set' is unknown; use \"list\""),
        (dp.Rows, {"low": (0.0, 0.0), "high": 1.0}, "differ in form"),
        (dp.Rows, {"columns": ("a", "b")}, "do not fit rows of 1"),
        (dp.Rows, {"rows_per_user": 0}, "rows_per_user=0"),
        (dp.domains.Graphs, {"most": 1}, "most=1 is not a number of nodes; use a whole number from 2 to 1,000,000"),
        (dp.Values, {"values": {"a", "b"}}, "is not an ordered list"),
        (dp.Answers, {"low": np.zeros(2), "high": np.ones(2)}, "low=array"),
        (dp.Rows, {"least": 6}, "least=6 rows are more than most=5"),
        (dp.Rows, {"size": 0}, "size=0"),
    ],
)
def test_domains_that_are_none(kind, options, message):
    with pytest.raises(DatasetError) as caught:
        kind(**options)
    assert message in str(caught.value)
