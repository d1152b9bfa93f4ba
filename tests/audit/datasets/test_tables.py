"""Domains of tables, and synthetic tables as numbers."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import AddRemove, CategoricalColumn, Local, NumericColumn, Replace, Tables, check, table_features
from dpaudit.audit.errors import AdjacencyError, DatasetError, MechanismError
from dpaudit.audit.search.pairs_for_domain import pairs_of

COLUMNS = {"sex": CategoricalColumn(("f", "m")), "age": NumericColumn(0, 100, bins=2)}
ROWS = [("f", 10.0), ("f", 90.0), ("m", 100.0), ("x", -5.0), (None, None), ("m", math.nan)]
TABLE = {"sex": [row[0] for row in ROWS], "age": [row[1] for row in ROWS]}
FORMS = {
    "columns": TABLE,
    "frame": pd.DataFrame(TABLE),
    "categories": pd.DataFrame(TABLE).astype({"sex": "category"}),
    "dicts": [{"sex": sex, "age": age} for sex, age in ROWS],
    "tuples": ROWS,
    "array": np.array(ROWS, dtype=object),
    "other order": pd.DataFrame(TABLE)[["age", "sex"]],
}
SHOWN = {
    "rows": 6, "other columns": 0,
    "sex: f": 2, "sex: m": 2, "sex: other": 1, "sex: missing": 1,
    "age: from 0 to 50": 1, "age: from 50 to 100": 2, "age: other": 1, "age: missing": 2,
    "age: min": -5, "age: max": 100,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_any_form_gives_the_same_numbers(form):
    assert table_features(FORMS[form], COLUMNS) == SHOWN


def test_two_way_marginals():
    features = table_features(TABLE, COLUMNS, pairs=True)
    assert {name: count for name, count in features.items() if " and " in name} == {
        "sex = f and age from 0 to 50": 1,
        "sex = f and age from 50 to 100": 1,
        "sex = m and age from 0 to 50": 0,
        "sex = m and age from 50 to 100": 1,
    }


@pytest.mark.parametrize("table", [{"sex": [], "age": []}, [], pd.DataFrame({"sex": [], "age": []})])
def test_a_table_without_rows(table):
    features = table_features(table, COLUMNS)
    assert features.keys() == SHOWN.keys()
    assert features["rows"] == features["sex: f"] == features["age: other"] == 0
    assert math.isnan(features["age: min"])


def test_a_column_that_is_not_there_is_nan_and_one_too_many_is_counted():
    features = table_features({"age": [1.0], "zip": ["0"]}, COLUMNS)
    assert math.isnan(features["sex: f"])
    assert math.isnan(features["sex: missing"])
    assert (features["age: min"], features["other columns"]) == (1.0, 1.0)
    assert math.isnan(table_features(TABLE | {"age": [None] * 6}, COLUMNS)["age: max"])


@pytest.mark.parametrize("output", [3.0, "a table", {"sex": ["f"], "age": [1.0, 2.0]}, [(1, 2), (1,)], None])
def test_what_is_not_a_table_is_refused(output):
    with pytest.raises(MechanismError, match="is not a table"):
        table_features(output, COLUMNS)


def test_numbers_are_compared_by_value():
    column = CategoricalColumn((0, 1, True + 1))
    assert column.codes([0.0, np.int64(1), 2, "1", [], np.nan, pd.NA, pd.NaT]).tolist() == [0, 1, 2, -1, -1, -2, -2, -2]
    assert NumericColumn(0, 1).codes([0, 1, 0.25, 1e400, "a", 10**400, None]).tolist() == [0, 3, 1, -1, -1, -1, -2]


cells = st.one_of(st.sampled_from(["f", "m", "x", None]), st.integers(-5, 105), st.floats(allow_nan=True))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, cells), max_size=8), st.randoms(use_true_random=False))
def test_counts_add_up_and_the_order_of_rows_does_not_matter(rows, random):
    features = table_features(rows, COLUMNS)
    for name, column in COLUMNS.items():
        words = [*(cell.removeprefix("= ") for cell in column.cells), "other", "missing"]
        assert sum(features[f"{name}: {word}"] for word in words) == len(rows)
    shuffled = random.sample(rows, len(rows))
    assert repr(table_features(shuffled, COLUMNS)) == repr(features)


def test_rows_break_the_declaration_in_all_columns_or_in_one():
    tables = Tables(COLUMNS)
    new = "value outside the domain"
    assert tables.corners() == (
        ("f", 0.0), ("m", 100.0),
        (new, 1100), (new, 0.0), ("f", 1100),
        (None, None), (None, 0.0), ("f", None),
    )  # fmt: skip
    assert Tables(COLUMNS, outside=()).corners() == (("f", 0.0), ("m", 100.0))
    assert Tables({"n": CategoricalColumn((0, 3))}, outside=["new"]).corners() == ((0,), (3,), (4,))


@pytest.mark.parametrize("form", ["frame", "columns", "rows"])
def test_every_pair_of_a_search_is_of_neighbours(form):
    tables, rng = Tables(COLUMNS, most=4, form=form), np.random.default_rng(0)
    for adjacency in (AddRemove(), Replace()):
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


def test_frames_have_the_types_of_files():
    tables = Tables({"sex": COLUMNS["sex"], "n": NumericColumn(0, 9, integer=True)})
    assert tables.build([("f", 1)]).dtypes.map(str).tolist() == ["object", "int64"]
    assert tables.build([("f", None)]).dtypes.map(str).tolist() == ["object", "float64"]
    assert tables.build([]).columns.tolist() == ["sex", "n"]


def test_random_rows_keep_to_the_declaration_mostly():
    tables, rng = Tables(COLUMNS), np.random.default_rng(0)
    features = table_features([tables.draw(rng) for _ in range(2_000)], COLUMNS)
    assert 0.02 < features["sex: other"] / 2_000 < 0.15
    assert 0.02 < features["age: missing"] / 2_000 < 0.15
    strict = Tables({"n": NumericColumn(0, 9, integer=True)}, outside=())
    drawn = {cell for _ in range(300) for cell in strict.draw(rng)}
    assert drawn <= set(range(10))


def test_a_domain_is_a_value():
    tables = Tables(COLUMNS, size=3)
    assert (tables.least, tables.most) == (3, 3)
    assert pickle.loads(pickle.dumps(tables)) == tables
    assert tables == Tables(tuple(COLUMNS.items()), size=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {}}, "are not the columns of a table"),
        ({"columns": {"a": (0, 1)}}, "are not the columns of a table"),
        ({"columns": COLUMNS, "most": 0}, "most=0 is not a number of rows"),
        ({"columns": COLUMNS, "least": 7}, "least=7 rows are more than most=5"),
        ({"columns": COLUMNS, "form": "array"}, "form='array' is unknown"),
        ({"columns": COLUMNS, "outside": ("far",)}, "outside='far' is unknown"),
    ],
)
def test_arguments_outside_their_range(arguments, message):
    with pytest.raises(DatasetError, match=message):
        Tables(**arguments)


def test_columns_outside_their_range():
    with pytest.raises(DatasetError, match="are not the categories of a column"):
        CategoricalColumn(("a", "a"))
    with pytest.raises(DatasetError, match="do not form a range"):
        NumericColumn(1, 0)
    with pytest.raises(DatasetError, match="bins=0"):
        NumericColumn(0, 1, bins=0)


def test_other_adjacencies_are_refused():
    for adjacency in (None, Local()):
        with pytest.raises(AdjacencyError, match="AddRemove or Replace"):
            pairs_of(Tables(COLUMNS), adjacency, 1, 0)


def test_the_pairs_of_a_search_show_a_range_that_is_learned():
    """The generator is right in all but its range, which a row far outside the declared one shows."""

    def ages(table, rng):
        high = max([0.0, *(age for age in table["age"] if age is not None)])
        return {"age": rng.uniform(0.0, max(high, 100.0), size=5).tolist()}

    tables = Tables({"age": NumericColumn(0, 100, bins=1)}, most=2, form="columns", outside=("beyond",))
    pair = next(pair for pair in pairs_of(tables, AddRemove(), 1, 0).patterns() if 1100.0 in pair.x["age"])
    result = check(
        ages, pair.x, pair.y, claim=1.0, adjacency=AddRemove(), runs=200, alpha=1e-6, output=tables.features,
        bits=False, jobs=1,
    )  # fmt: skip
    assert result.is_refuted
    assert "age: " in result.event_in_words


def test_categories_named_like_other_values_or_spelt_alike_are_counted_apart():
    column = CategoricalColumn(("other", "missing", 1, "1"))
    found = table_features({"a": ["other", "other", None, "x", "x", "x", 1, 1, 1, 1, "1"]}, {"a": column})
    assert found == {
        "rows": 11.0,
        "other columns": 0.0,
        "a: other (category 1)": 2.0,
        "a: missing (category 2)": 0.0,
        "a: 1 (category 3)": 4.0,
        "a: 1 (category 4)": 1.0,
        "a: other": 3.0,
        "a: missing": 1.0,
    }
