"""Every pair that a search may try is a pair of neighbours in its domain, for all domains and adjacencies.

The tests count distances independently, in the simplest way, so that no function is compared with itself. Domains of
tables, their columns and their rows come last.
"""

import math
from collections import Counter
from itertools import islice

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit as dp
from dpaudit.audit.datasets.contents import Kept, hold_the_same
from dpaudit.audit.datasets.description import difference, summarise
from dpaudit.audit.datasets.rows import columns_by_name, rows_apart, rows_by_name
from dpaudit.audit.errors import AdjacencyError, DatasetError, MechanismError, OptionError
from dpaudit.audit.sampling.object_identity import identity
from dpaudit.audit.search.candidates import Pool
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.domains import CategoricalColumn, NumericColumn, table_features

from ..stand_ins import Frame, Tensor

N_DRAWN, N_MOVES = 16, 4


def tried(domain, adjacency, distance, seed=0):
    """Patterns, random pairs and moves from both, as in the search."""
    pool = Pool(pairs_of(domain, adjacency, distance, seed), adjacency, distance, seed)
    first = [*pool.patterns(1_000), *pool.drawn(N_DRAWN)]
    assert first, "no pair to begin with"
    return first + list(pool.moves(first[0], N_MOVES)) + list(pool.moves(first[-1], N_MOVES))


def plain(row):
    """Return a hashable form of a row."""
    if isinstance(row, dict):
        return tuple(row.values())
    return tuple(row) if isinstance(row, (tuple, list, np.ndarray)) else row


def rows_in(dataset):
    if isinstance(dataset, pd.DataFrame):
        return [tuple(row) for row in dataset.itertuples(index=False, name=None)]
    return [plain(row) for row in dataset]


@settings(max_examples=8, deadline=None, derandomize=True)
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


@settings(max_examples=6, deadline=None, derandomize=True)
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
    rows = dataset.to_dict("records") if isinstance(dataset, pd.DataFrame) else dataset
    return [(str(row[place]), str(row)) for row in rows]


@settings(max_examples=8, deadline=None, derandomize=True)
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
            owned = Counter(name for name, _ in rows.elements())
            assert not largest or max(owned.values(), default=0) <= largest
            sizes |= set(owned.values())
    most = distance + more
    assert max(sizes) >= min(largest or most, most // distance)  # the largest number of rows of a user occurs


@settings(max_examples=6, deadline=None, derandomize=True)
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
        (dp.Answers(3), dp.AddRemove(), 1, AdjacencyError, "Answers have no neighbours by add/remove one row; use a m"),
        (dp.Rows(), dp.AddRemove(), 1.5, OptionError, "distance=1.5 is not a number of rows; use an integer"),
        (dp.Rows(most=2), dp.AddRemove(), 3, DatasetError, "most=2 rows cannot differ in 3; use most >= 3"),
        (dp.Rows(values=("a",)), dp.Replace(), 1, AdjacencyError, "give a second value"),
        (dp.Rows(), dp.UserLevel("user"), 1, AdjacencyError, "user='user' is not in rows such as 0.0"),
        (dp.Rows(size=4), dp.AddRemove(), 1, AdjacencyError, "datasets of 4 rows each cannot differ by an added"),
        (dp.Tables({"n": NumericColumn(0, 1)}), None, 1, AdjacencyError, '"zero-out" or UserLevel(…)'),
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
        (CategoricalColumn, {"values": ("a", "a")}, "are not the categories of a column"),
        (NumericColumn, {"low": 0, "high": 1, "bins": 0}, "bins=0"),
        (dp.Tables, {"columns": {}}, "are not the columns of a table"),
        (dp.Tables, {"columns": {"n": NumericColumn(0, 1)}, "outside": ("far",)}, "outside='far' is unknown"),
        (dp.Tables, {"columns": {"n": NumericColumn(0, 1)}, "form": "set"}, "form='set' is unknown"),
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


COLUMNS = {"sex": CategoricalColumn(("f", "m")), "age": NumericColumn(0, 100, bins=2)}
ROWS = [("f", 10.0), ("f", 90.0), ("m", 100.0), ("x", -5.0), (None, None), ("m", math.nan)]
TABLE = {"sex": [row[0] for row in ROWS], "age": [row[1] for row in ROWS]}
FORMS = {
    "columns": TABLE, "frame": pd.DataFrame(TABLE), "categories": pd.DataFrame(TABLE).astype({"sex": "category"}),
    "dicts": [{"sex": sex, "age": age} for sex, age in ROWS], "tuples": ROWS, "array": np.array(ROWS, dtype=object),
    "other order": pd.DataFrame(TABLE)[["age", "sex"]],
}  # fmt: skip
SHOWN = {
    "rows": 6, "other columns": 0,
    "sex: f": 2, "sex: m": 2, "sex: other": 1, "sex: missing": 1,
    "age: from 0 to 50": 1, "age: from 50 to 100": 2, "age: other": 1, "age: missing": 2,
    "age: min": -5, "age: max": 100,
}  # fmt: skip


def test_a_table_of_any_form_gives_the_same_numbers_and_other_outputs_are_refused():
    for table in FORMS.values():
        assert table_features(table, COLUMNS) == SHOWN
    for output in (3.0, {"sex": ["f"], "age": [1.0, 2.0]}, [(1, 2), (1,)]):
        with pytest.raises(MechanismError, match="is not a table"):
            table_features(output, COLUMNS)


def test_two_way_marginals_and_columns_that_a_table_lacks():
    features = dp.Tables(COLUMNS).pair_features(TABLE)
    assert {name: count for name, count in features.items() if " and " in name} == {
        "sex = f and age from 0 to 50": 1, "sex = f and age from 50 to 100": 1, "sex = m and age from 0 to 50": 0,
        "sex = m and age from 50 to 100": 1,
    }  # fmt: skip
    assert {name: features[name] for name in SHOWN} == dp.Tables(COLUMNS).features(TABLE) == SHOWN
    lacks = table_features({"sex": ["f"]}, COLUMNS, pairs=True)
    assert all(math.isnan(count) for name, count in lacks.items() if "age" in name)
    assert table_features([("f", 1.0, 2, 3)], COLUMNS)["other columns"] == 2


@pytest.mark.parametrize("table", [{"sex": [], "age": []}, [], pd.DataFrame({"sex": [], "age": []})])
def test_a_table_without_rows(table):
    features = table_features(table, COLUMNS)
    assert features.keys() == SHOWN.keys()
    assert features["rows"] == features["sex: f"] == features["age: other"] == 0
    assert math.isnan(features["age: min"])


def test_numbers_are_compared_by_value():
    column, codes = CategoricalColumn((0, 1, True + 1)), [0, 3, 1, -1, -1, -1, -2]
    assert column.codes([0.0, np.int64(1), 2, "1", [], np.nan, pd.NA, pd.NaT]).tolist() == [0, 1, 2, -1, -1, -2, -2, -2]
    assert NumericColumn(0, 1).codes([0, 1, 0.25, 1e400, "a", 10**400, None]).tolist() == codes


cells = st.one_of(st.sampled_from(["f", "m", "x", None]), st.integers(-5, 105), st.floats(allow_nan=True))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(cells, cells), max_size=8), st.randoms(use_true_random=False))
def test_counts_add_up_and_the_order_of_rows_does_not_matter(rows, random):
    features = table_features(rows, COLUMNS)
    for name, column in COLUMNS.items():
        words = [*(cell.removeprefix("= ") for cell in column.cells), "other", "missing"]
        assert sum(features[f"{name}: {word}"] for word in words) == len(rows)
    assert repr(table_features(random.sample(rows, len(rows)), COLUMNS)) == repr(features)


def test_rows_break_the_declaration_in_all_columns_or_in_one():
    tables = dp.Tables(COLUMNS)
    new = "value outside the domain"
    odd = (new, 1100), (new, 0.0), ("f", 1100), (None, None), (None, 0.0), ("f", None)
    assert tables.corners() == (("f", 0.0), ("m", 100.0), *odd)
    assert dp.Tables(COLUMNS, outside=()).corners() == (("f", 0.0), ("m", 100.0))
    assert dp.Tables({"n": CategoricalColumn((0, 3))}, outside=["new"]).corners() == ((0,), (3,), (4,))
    turned = dp.Tables(dict(reversed(COLUMNS.items())))
    assert len({tables, dp.Tables(COLUMNS.items()), turned}) == 2, "tables have a hash, and columns an order"


@pytest.mark.parametrize("form", ["frame", "rows"])
def test_every_pair_of_a_search_is_of_neighbours(form):
    tables, rng = dp.Tables(COLUMNS, most=4, form=form), np.random.default_rng(0)
    for adjacency in (dp.AddRemove(), dp.Replace()):
        source = pairs_of(tables, adjacency, 1, 0)
        patterns = list(source.patterns())
        allowed = [pair for pair in (*patterns, *islice(source.random(rng), 20)) if source.is_allowed(pair)]
        assert len(allowed) > 20
        distances = [adjacency.distance(pair.x, pair.y) for pair in allowed]
        assert set(distances) <= {0.0, 1.0}
        assert distances[: len(patterns)].count(1.0) >= len(patterns) - 4
        odd = [pair for pair in patterns if "value outside the domain" in str(pair.parts)]
        assert len(odd) >= 6


def test_categories_named_like_other_values_or_spelt_alike_are_counted_apart():
    column = CategoricalColumn(("other", "missing", 1, "1"))
    assert table_features({"a": ["other", "other", None, "x", "x", "x", 1, 1, 1, 1, "1"]}, {"a": column}) == {
        "rows": 11.0, "other columns": 0.0, "a: other (category 1)": 2.0, "a: missing (category 2)": 0.0,
        "a: 1 (category 3)": 4.0, "a: 1 (category 4)": 1.0, "a: other": 3.0, "a: missing": 1.0,
    }  # fmt: skip


TABLE_ROWS = [("a", 1.0), ("a", None), ("b", 3.0)]
FEWER, OTHER = TABLE_ROWS[:2], [("a", 1.0), ("b", 3.0), ("a", 9.0)]


def by_column(rows):
    return {"user": [user for user, _ in rows], "value": [value for _, value in rows]}


MAKERS = {
    "frame": lambda rows: Frame(by_column(rows)),
    "lists": by_column,
    "arrays": lambda rows: {name: np.array(values, object) for name, values in by_column(rows).items()},
    "pandas": lambda rows: pd.DataFrame(by_column(rows)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_distances_and_contents(make):
    assert hold_the_same(make(TABLE_ROWS), make(TABLE_ROWS))
    assert not hold_the_same(make(TABLE_ROWS), make(OTHER))
    assert identity(make(TABLE_ROWS)) == identity(make(TABLE_ROWS))
    assert identity(make(TABLE_ROWS)).hash != identity(make(OTHER)).hash
    x, fewer, other = map(make, (TABLE_ROWS, FEWER, OTHER))
    assert rows_apart(x, fewer) == (1, 0)
    assert difference(x, fewer) == "1 row only in x, 0 only in y"
    assert (dp.AddRemove().distance(x, fewer), dp.AddRemove().distance(x, other)) == (1.0, 2.0)
    assert dp.Replace().distance(x, other) == 1.0
    assert dp.UserLevel("user").distance(x, fewer) == 1.0
    assert dp.UserLevel("user").distance(x, other) == 2.0
    with pytest.raises(AdjacencyError, match="user='name' is not in the row"):
        dp.UserLevel("name").distance(x, other)


def test_tensors_and_changes():
    frame, tensor = Frame({"a": [1.0, 2.0]}), Tensor([1.0, 2.0])
    kept = [Kept(frame), Kept(tensor)]
    assert not any(each.has_changed() for each in kept)
    frame.held["a"][0] = tensor.values[0] = 7.0
    assert all(each.has_changed() for each in kept)
    x, y = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 2.0], [3.0, 4.5]])
    assert summarise(x) == "Tensor of shape (2, 2), float32"
    assert dp.Replace().distance(x, y) == 1.0
    assert dp.domains.Within("l1").distance(x, y) == 0.5
    assert difference(Tensor(1.0), Tensor(2.5)) == "the values differ by 1.5"
    assert hold_the_same(x, Tensor(x.values))
    assert not hold_the_same(x, y)
    assert identity(x) == identity(Tensor(x.values)) != identity(y)


def test_summaries_and_rows():
    assert summarise(Frame(by_column(TABLE_ROWS))) == "data frame of 3 rows, 2 columns"
    assert summarise(by_column(TABLE_ROWS)) == "dictionary of 2 columns, 3 rows"
    assert rows_by_name(by_column(FEWER)) == [{"user": "a", "value": 1.0}, {"user": "a", "value": None}]
    for other in ({}, {"cats": 5}, {"a": [1], "b": [1, 2]}, {"a": np.ones((2, 2))}, [1], None):
        assert columns_by_name(other) is None
    assert dp.AddRemove().distance({"a": [1], "b": [2]}, {"a": [1], "c": [2]}) == 2
    with pytest.raises(DatasetError, match="a dictionary of columns of equal length"):
        dp.AddRemove().distance({"cats": 5}, {"cats": 4})
