"""Domains of tables: their columns and their rows."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit as dp
from dpaudit.audit.datasets.contents import Kept, hold_the_same
from dpaudit.audit.datasets.description import difference, summarise
from dpaudit.audit.datasets.rows import columns_by_name, rows_apart, rows_by_name
from dpaudit.audit.errors import AdjacencyError, DatasetError, MechanismError
from dpaudit.audit.sampling.object_identity import identity
from dpaudit.audit.search.pairs_for_domain import pairs_of

from ..stand_ins import Frame, Tensor

COLUMNS = {"sex": dp.domains.CategoricalColumn(("f", "m")), "age": dp.domains.NumericColumn(0, 100, bins=2)}
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


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_any_form_gives_the_same_numbers(form):
    assert dp.domains.table_features(FORMS[form], COLUMNS) == SHOWN


def test_two_way_marginals():
    features = dp.domains.table_features(TABLE, COLUMNS, pairs=True)
    assert {name: count for name, count in features.items() if " and " in name} == {
        "sex = f and age from 0 to 50": 1, "sex = f and age from 50 to 100": 1, "sex = m and age from 0 to 50": 0,
        "sex = m and age from 50 to 100": 1,
    }  # fmt: skip


@pytest.mark.parametrize("table", [{"sex": [], "age": []}, [], pd.DataFrame({"sex": [], "age": []})])
def test_a_table_without_rows(table):
    features = dp.domains.table_features(table, COLUMNS)
    assert features.keys() == SHOWN.keys()
    assert features["rows"] == features["sex: f"] == features["age: other"] == 0
    assert math.isnan(features["age: min"])


@pytest.mark.parametrize("output", [3.0, {"sex": ["f"], "age": [1.0, 2.0]}, [(1, 2), (1,)]])
def test_what_is_not_a_table_is_refused(output):
    with pytest.raises(MechanismError, match="is not a table"):
        dp.domains.table_features(output, COLUMNS)


def test_numbers_are_compared_by_value():
    column = dp.domains.CategoricalColumn((0, 1, True + 1))
    assert column.codes([0.0, np.int64(1), 2, "1", [], np.nan, pd.NA, pd.NaT]).tolist() == [0, 1, 2, -1, -1, -2, -2, -2]
    assert dp.domains.NumericColumn(0, 1).codes([0, 1, 0.25, 1e400, "a", 10**400, None]).tolist() == [
        0,
        3,
        1,
        -1,
        -1,
        -1,
        -2,
    ]


cells = st.one_of(st.sampled_from(["f", "m", "x", None]), st.integers(-5, 105), st.floats(allow_nan=True))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, cells), max_size=8), st.randoms(use_true_random=False))
def test_counts_add_up_and_the_order_of_rows_does_not_matter(rows, random):
    features = dp.domains.table_features(rows, COLUMNS)
    for name, column in COLUMNS.items():
        words = [*(cell.removeprefix("= ") for cell in column.cells), "other", "missing"]
        assert sum(features[f"{name}: {word}"] for word in words) == len(rows)
    shuffled = random.sample(rows, len(rows))
    assert repr(dp.domains.table_features(shuffled, COLUMNS)) == repr(features)


def test_rows_break_the_declaration_in_all_columns_or_in_one():
    tables = dp.Tables(COLUMNS)
    new = "value outside the domain"
    assert tables.corners() == (
        ("f", 0.0), ("m", 100.0),
        (new, 1100), (new, 0.0), ("f", 1100),
        (None, None), (None, 0.0), ("f", None),
    )  # fmt: skip
    assert dp.Tables(COLUMNS, outside=()).corners() == (("f", 0.0), ("m", 100.0))
    assert dp.Tables({"n": dp.domains.CategoricalColumn((0, 3))}, outside=["new"]).corners() == ((0,), (3,), (4,))


@pytest.mark.parametrize("form", ["frame", "rows"])
def test_every_pair_of_a_search_is_of_neighbours(form):
    tables, rng = dp.Tables(COLUMNS, most=4, form=form), np.random.default_rng(0)
    for adjacency in (dp.AddRemove(), dp.Replace()):
        source = pairs_of(tables, adjacency, 1, 0)
        patterns = list(source.patterns())
        drawn = [pair for pair, _ in zip(source.random(rng), range(20), strict=False)]
        allowed = [pair for pair in (*patterns, *drawn) if source.is_allowed(pair)]
        assert len(allowed) > 20
        distances = [adjacency.distance(pair.x, pair.y) for pair in allowed]
        assert set(distances) <= {0.0, 1.0}
        assert distances[: len(patterns)].count(1.0) >= len(patterns) - 4
        odd = [pair for pair in patterns if "value outside the domain" in str(pair.parts)]
        assert len(odd) >= 6


def test_categories_named_like_other_values_or_spelt_alike_are_counted_apart():
    column = dp.domains.CategoricalColumn(("other", "missing", 1, "1"))
    found = dp.domains.table_features({"a": ["other", "other", None, "x", "x", "x", 1, 1, 1, 1, "1"]}, {"a": column})
    assert found == {
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


@pytest.mark.parametrize("kind", MAKERS)
def test_distances(kind):
    x, fewer, other = map(MAKERS[kind], (TABLE_ROWS, FEWER, OTHER))
    assert rows_apart(x, fewer) == (1, 0)
    assert difference(x, fewer) == "1 row only in x, 0 only in y"
    assert (dp.AddRemove().distance(x, fewer), dp.AddRemove().distance(x, other)) == (1.0, 2.0)
    assert dp.Replace().distance(x, other) == 1.0
    assert dp.UserLevel("user").distance(x, fewer) == 1.0
    assert dp.UserLevel("user").distance(x, other) == 2.0
    with pytest.raises(AdjacencyError, match="user='name' is not in the row"):
        dp.UserLevel("name").distance(x, other)


@pytest.mark.parametrize("kind", MAKERS)
def test_contents(kind):
    make = MAKERS[kind]
    assert hold_the_same(make(TABLE_ROWS), make(TABLE_ROWS))
    assert not hold_the_same(make(TABLE_ROWS), make(OTHER))
    assert identity(make(TABLE_ROWS)) == identity(make(TABLE_ROWS))
    assert identity(make(TABLE_ROWS)).hash != identity(make(OTHER)).hash


def test_changes_are_seen():
    frame, tensor = Frame({"a": [1.0, 2.0]}), Tensor([1.0, 2.0])
    kept = [Kept(frame), Kept(tensor)]
    assert not any(each.has_changed() for each in kept)
    frame.held["a"][0] = tensor.values[0] = 7.0
    assert all(each.has_changed() for each in kept)


def test_tensors():
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
    with pytest.raises(DatasetError, match="a dictionary of columns of equal length"):
        dp.AddRemove().distance({"cats": 5}, {"cats": 4})
