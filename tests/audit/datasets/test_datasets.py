"""Contents and sizes of datasets."""

import copy
import functools
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import AddRemove, Rows, check
from dpaudit.audit.datasets.contents import Kept, hold_the_same
from dpaudit.audit.datasets.description import difference, notes_on_texts, summarise
from dpaudit.audit.datasets.rows import rows_apart, rows_of
from dpaudit.audit.errors import AdjacencyError, DatasetError
from dpaudit.audit.sampling.object_identity import identity

SECRET = 8675309


def graph(*edges, kind=nx.Graph):
    made = kind()
    made.add_edges_from(edges)
    return made


class Database:
    def __repr__(self):
        return f"Database({SECRET})"


COLLECTIONS = {  # in the local model a scalar is one person's value
    "list of 2": [SECRET, 1], "tuple of 1": (SECRET,), "set of 1": {SECRET}, "frozenset of 2": frozenset({SECRET, 1}),
    "dict of 1": {SECRET: SECRET}, "tuple of 2 columns, 1 row": (np.array([[SECRET, 1]]), [SECRET]),
    "dictionary of 2 columns, 1 row": {"X": np.array([[SECRET, 1]]), "y": [SECRET]},
    "array of shape (1, 2), int64": np.array([[SECRET, 1]]), "array of shape (), int64": np.array(SECRET),
    "data frame of 1 row, 2 columns": pd.DataFrame({"a": [SECRET], "b": [1]}), "Series of 1": pd.Series([SECRET]),
    "graph of 2 nodes, 1 edges": graph((SECRET, 1)), "bytes of 7": b"8675309", "a single int": SECRET,
    "a single float": float(SECRET), "a single float64": np.float64(SECRET), "Database": Database(),
}  # fmt: skip


@pytest.mark.parametrize("words", COLLECTIONS)
def test_collections_are_summarised_and_differences_are_said_without_contents(words):
    assert summarise(COLLECTIONS[words]) == words
    for other in ([1], pd.DataFrame({"a": [3]}), 5):
        for said in (difference(COLLECTIONS[words], other), difference(other, COLLECTIONS[words])):
            assert str(SECRET) not in said


def test_refusals_do_not_show_contents_either():
    with pytest.raises(AdjacencyError) as caught:
        AddRemove().check([SECRET, SECRET + 1], [1], 1)
    assert "867530" not in str(caught.value)
    with pytest.raises(DatasetError) as refused:
        rows_of({"secret": SECRET})
    assert "dict" in str(refused.value)
    assert str(SECRET) not in str(refused.value)


VALUES = st.sampled_from([0, 1, -0.0, 0.0, 1.0, 2.5, float("nan"), "a", "b", None, True])
KINDS = ["-", "0", "1", "2", "T", "a", "b", "n"]


def _text(value):
    return None if value is None else str(value)[0]


FORMS = {
    "list of tuples": list,
    "objects": lambda rows: np.fromiter(rows, dtype=object, count=len(rows)),
    "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
    "typed frame": lambda rows: pd.DataFrame(rows, columns=["a", "b"]).infer_objects(),
    "frame of categories": lambda rows: pd.DataFrame({"a": pd.Categorical([_text(a) for a, _ in rows], KINDS)}),
    "array": lambda rows: np.array([[float(a == 1), float(b == 2.5)] for a, b in rows]).reshape(-1, 2),
    "texts": lambda rows: np.array([[str(a), str(b)] for a, b in rows], dtype="U4").reshape(-1, 2),
    "times": lambda rows: np.array([a == 1 for a, _ in rows], dtype="M8[s]"),
    "Counter": Counter,
    "arrays": lambda rows: (
        np.array([[a == 1, b == 2.5] for a, b in rows]).reshape(-1, 2), np.array([str(b) for _, b in rows])
    ),
    "matrix and list": lambda rows: {
        "X": np.array([[float(a == 1)] for a, _ in rows]).reshape(-1, 1), "y": [b for _, b in rows]
    },
    "frame and column": lambda rows: (
        pd.DataFrame(rows, columns=["a", "b"]), pd.Series([a == 1 for a, _ in rows], dtype=bool)
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(VALUES, VALUES), max_size=6), st.lists(st.tuples(VALUES, VALUES), max_size=3),
    st.lists(st.tuples(VALUES, VALUES), max_size=3), st.integers(0, 6), st.booleans(),
)  # fmt: skip
def test_rows_apart_are_those_of_the_multisets(form, common, more_x, more_y, at, is_reversed):
    """Different rows in the middle, at either end or in another order, as identical and as equal objects."""
    made = FORMS[form]
    x = made(common[:at] + more_x + common[at:])
    y = made((common[:at] + more_y + common[at:])[:: -1 if is_reversed else 1])
    a, b = rows_of(x), rows_of(y)
    for other, its_rows in ((y, b), (copy.deepcopy(y), b)):
        assert rows_apart(x, other) == ((a - its_rows).total(), (its_rows - a).total())


def test_rows_apart_of_frames_of_other_types_and_columns():
    whole = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert rows_apart(whole, whole.astype({"a": float})) == (0, 0)
    assert rows_apart(whole, whole.astype({"b": "category"})) == (0, 0)
    assert rows_apart(whole, whole[["b", "a"]]) == (0, 0)
    with pytest.raises(DatasetError, match="x has 2 columns and y has 1"):
        rows_apart(whole, whole[["a"]])
    assert rows_apart(whole, whole.iloc[[2, 1, 0]]) == (0, 0)
    assert rows_apart(whole, whole.iloc[[0, 0, 1]]) == (1, 1)
    assert rows_apart(pd.DataFrame(index=range(3)), pd.DataFrame(index=range(2))) == (1, 0)
    assert rows_apart(np.zeros((3, 0)), np.zeros((2, 0))) == (1, 0)
    assert rows_apart(np.zeros((3, 2, 2)), np.zeros((2, 2, 2))) == (1, 0)
    assert rows_apart(np.array([1, 2]), [2.0, 1.0, 1.0]) == (0, 1)


ALIGNED = np.dtype([("a", "i1"), ("b", "f8")], align=True)


def deep():
    return functools.reduce(lambda value, _: [value], range(5_000), [])


@pytest.mark.parametrize("make", [lambda: np.zeros(4_000, ALIGNED)[::2], lambda: np.ones(500, np.longdouble)])
def test_bytes_that_mean_nothing_change_nothing(make):
    array = make()
    kept, before = Kept(array), identity(array)
    for value in range(20):
        np.full(array.nbytes, value, np.uint8)  # possible padding bytes of a copy of the array
        array[:] = array * 1 if array.dtype.names is None else array.copy()
        assert not kept.has_changed()
        assert identity(array) == before
    array[7] = (1, 2.0) if array.dtype.names else np.nextafter(np.longdouble(1), np.longdouble(2))
    assert kept.has_changed()
    assert identity(array) != before


DIFFERENT = {
    "order of categories": [
        pd.DataFrame({"a": pd.Categorical(["u", "v"], categories=c)}) for c in (["u", "v"], ["v", "u"])
    ],
    "name of an index": [pd.DataFrame({"a": [1]}, index=pd.Index([0], name=name)) for name in ("i", None)],
    "eleven deep": ([[[[[[[[[[[1]]]]]]]]]]], [[[[[[[[[[[2]]]]]]]]]]]),
    "keys of edges": [nx.MultiGraph([(0, 1, key)]) for key in "kl"],
    "types of zeros": (np.zeros(3), np.zeros(3, int)),
    "types of members": ({1, "a"}, {1.0, "a"}),
    "order of keys": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
}


@pytest.mark.parametrize(("x", "y"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_seen(x, y):
    assert hold_the_same(x, x)
    assert not hold_the_same(x, y)
    assert identity(x) != identity(y)


class Column:
    """Of the user's own: numpy cannot read it."""

    name = "age"

    def __init__(self, *ages):
        self.ages = list(ages)

    def to_numpy(self):
        return np.array(self.ages)


def test_a_column_of_the_users_own_is_read_by_its_attributes():
    column = Column(31, 57)
    assert hold_the_same(column, Column(31, 57))
    assert not hold_the_same(column, Column(31, 58))
    kept = Kept(column)
    assert not kept.has_changed()
    column.ages.append(4)
    assert kept.has_changed()


@pytest.mark.parametrize(
    "use",
    [
        lambda frame: frame.values, lambda frame: frame.describe(include="all"),
        lambda frame: frame.sort_index().index.is_monotonic_increasing,
    ],
)  # fmt: skip
def test_what_pandas_has_computed_changes_no_identity(use):
    frame = pd.DataFrame({"n": pd.array([30, None], "Int64"), "t": pd.date_range("2020", periods=2, tz="UTC")})
    before = identity(frame)
    kept = Kept(frame)
    use(frame)
    assert not kept.has_changed()
    assert identity(frame) == before != identity(frame.assign(n=1))
    assert identity(frame) != identity(frame.set_index(pd.Index([0, 2])))


@dataclass
class Holder:
    held: object


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ({"a": np.ones(3), "b": 1}, {"a": np.ones(2), "b": 1}, "1 of 2 entries differ"),
        (Holder(np.ones(3)), Holder(np.zeros(3)), "the values differ"),
        ([deep()], [deep(), 1], "the values differ"),
        (Fraction(1, 3), "1/3", "the types differ"),
        (1.0, 2.0, "the values differ by 1"),
        ("a", "a", "nothing differs"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_datasets_of_every_kind_have_a_difference(x, y, words):
    assert difference(x, y) == words
    assert not Kept(x).has_changed()
    assert summarise(x)


def test_an_iterator_is_refused():
    with pytest.raises(DatasetError, match=r"x is an iterator \(list_iterator\), which the first run would use up"):
        check(lambda dataset, rng: sum(dataset), iter([1, 2]), iter([1]), claim=1.0, runs=1_000, jobs=1)


def test_texts_of_numbers_are_noted():
    for x, y in ((np.array(["1.5"]), ["2"]), ("1", "2"), (["1"], ["2", "3"])):
        (note,) = notes_on_texts(x, y)
        assert "texts of numbers" in note
    for x, y in ((["1"], ["one"]), ([], []), ([1.5], [2.5]), ({"a": "1"}, {"a": "2"}), (["nan"], ["inf"])):
        assert notes_on_texts(x, y) == ()
    (note,) = notes_on_texts("x.csv", "y.csv")
    assert "not the contents of files; read the files first" in note


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (None, "is x or y missing"), (Rows((0, 1)), "pass a domain to find_worst_pair; use"),
        *((dataset, "use a list") for dataset in (3, "text", np.array(3.0), {"a": 1})),
    ],
)  # fmt: skip
def test_what_is_meant_by_a_dataset_without_rows(dataset, words):
    with pytest.raises(DatasetError, match=f"has no rows to compare; {words}"):
        rows_of(dataset)
