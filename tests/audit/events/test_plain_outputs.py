"""Outputs with named parts: columns of records, and that flattening loses nothing.

Outputs are equal as vectors of columns exactly if they were equal before.
"""

import math
import re
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest

from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.named_parts import Dictionary, Mark, Part
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.events.plain_outputs import Form, form_of, form_of_block, plain_output

Pair = namedtuple("Pair", "mean_age n")


@dataclass(frozen=True)
class Stats:
    mean_age: float
    n: int


@dataclass
class Nested:
    label: str
    stats: Stats
    weights: list[float]
    seen_at: int = field(default=0, compare=False)


@attrs.define
class Fitted:
    slope: float
    at: float = attrs.field(eq=False, default=0.0)


@dataclass(eq=False)
class OwnEquality:
    value: float

    def __eq__(self, other):
        return round(self.value) == round(other.value)

    def __hash__(self):
        return hash(round(self.value))


class Broken(dict):
    def items(self):
        raise RuntimeError


ROW = np.array((2.5, 3), dtype=[("mean_age", "f8"), ("n", "i4")])
RECORDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "named tuple": (Pair(2.5, 3), {"mean_age": 2.5, "n": 3}),
    "dictionary": ({"mean_age": 2.5, 7: 3}, {"7": 3, "mean_age": 2.5}),
    "nested dictionary": ({"a": {"b": 1}, "d": np.array([3.0, 4.0])}, {"a.b": 1, "d[0]": 3.0, "d[1]": 4.0}),
    "nested dataclass": (
        Nested("x", Stats(2.5, 3), [0.5, 1.5]),
        {"label": "x", "stats.mean_age": 2.5, "stats.n": 3, "weights[0]": 0.5, "weights[1]": 1.5},
    ),
    "attrs": (Fitted(1.5), {"slope": 1.5}),
    "scalar row": (ROW[()], {"mean_age": 2.5, "n": 3}),
    "rows": (pd.DataFrame({"mean": [2.5, 1.5]}, index=["u", "v"]), {"mean[u]": 2.5, "mean[v]": 1.5}),
    "levels": (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples(["ab", "ac"])), {"a.b": 1, "a.c": 2}),
    "equal labels": (pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": 1, "a (2)": 2}),
    "picked": (Part("mean_age", "none"), {"mean_age": "none"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", RECORDS)
def test_columns_of_a_record(kind):
    record, columns = RECORDS[kind]
    form = form_of([record, record])
    assert form.names == tuple(columns)
    assert form.values_of(plain_output(record, "m")) == tuple(columns.values())
    (output,) = as_outputs([record], 1, "m", form).tolist()
    assert (tuple(output) if len(columns) > 1 else (output,)) == tuple(columns.values())


@pytest.mark.parametrize(
    "output",
    [
        1.5, "text", None, (1, 2), [1, 2], np.arange(3), {}, {"key": ["a"], "count": [1.5]}, {"a": None},
        pd.Series([1.0, 2.0]), pd.DataFrame({"a": []}), Raised("ValueError"), OwnEquality(1.0), Stats, Broken(a=1),
    ],
    ids=str,
)  # fmt: skip
def test_outputs_without_columns(output):
    assert form_of([output]) == Form() == Form(names=("names are not compared",))


BLOCKS = [
    (pd.DataFrame({"mean": [0.5, 1.5], "n": [1, 2]}), ("mean", "n"), [[0.5, 1], [1.5, 2]]),
    ({"mean": [0.5, 1.5], "n": np.array([1, 2])}, ("mean", "n"), [[0.5, 1], [1.5, 2]]),
    ([{"mean": 0.5, "n": 1}, {"mean": 1.5, "n": 2}], ("mean", "n"), [[0.5, 1], [1.5, 2]]),
    (
        pd.DataFrame({"n": [2**60 + 1, 3], "word": ["a", None]}, dtype=object),
        ("n", "word"),
        [(2**60 + 1, "a"), (3, None)],
    ),
    ({"a": np.array([2**60 + 1, 3]), "b": np.array([0.5, 1.5])}, ("a", "b"), [(2**60 + 1, 0.5), (3, 1.5)]),
    (pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}), ("n",), [1, None]),
    ({"a": np.array([True, False]), "n": np.array([3, 4], np.int8)}, ("a", "n"), [[1, 3], [0, 4]]),
    (pd.Series([1.0, 2.0], name="a"), ("a",), [1.0, 2.0]),
    ({"w": np.ones((2, 2)), "b": np.zeros(2)}, ("b", "w[0]", "w[1]"), [[0, 1, 1], [0, 1, 1]]),
    (pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 9]), ("index", "a"), [[5, 1], [9, 2]]),
    (pd.Series([1.0, 2.0], index=[5, 9], name="a"), ("index", "a"), [[5, 1], [9, 2]]),
    (pd.Series([1.0, 2.0], index=[5, 9]), ("index", "value"), [[5, 1], [9, 2]]),
]


@pytest.mark.parametrize(("block", "names", "rows"), BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_has_a_run_in_each_row(block, names, rows):
    form = form_of_block(block)
    assert form.names == names
    assert as_outputs(block, 2, "m", form).tolist() == rows


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"a": [1.0, [2.0]]}, r"a column 'a' that cannot be read \(ValueError"),
        ({"a": [1.0]}, r"a column 'a' of shape \(1,\) when asked for 2 outputs"),
        ({}, "m returned no columns; return at least one"),
        ({"a": np.ma.array([1.0, 2.0], mask=[True, False])}, "masked array"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(block, said):
    with pytest.raises(MechanismError, match=said):
        as_outputs(block, 2, "m")


# Flattening loses nothing.


@dataclass(frozen=True)
class P:
    a: Any


def test_dictionaries_have_a_canonical_order():
    names = form_of([{"b": 1, "a": 2, 1: 3, "1": 4}]).names
    assert names == form_of([{"1": 4, 1: 3, "a": 2, "b": 1}]).names == ("1", "1 (2)", "a", "b")
    large = [(2**60 + 1, "a"), (2**60, "b"), (10**5000, "c")]
    assert repr(Dictionary.of(large)) == repr(Dictionary.of(large[::-1]))
    assert form_of([{math.nan: 1.0}]).names == ()


def grouped(size, **columns):
    return [pd.DataFrame({name: column(run) for name, column in columns.items()}) for run in range(size)]


CITIES, YEARS, AGES = (lambda run: ["Oslo", "Bergen"]), (lambda run: [2019, 2020]), (lambda run: [run + 0.5, 2.0])


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"city": CITIES, "age": AGES}, ("city[0]", "city[1]", "age[Oslo]", "age[Bergen]")),
        ({"age": AGES, "city": CITIES}, ("age[Oslo]", "age[Bergen]", "city[0]", "city[1]")),
        ({"year": YEARS, "n": AGES}, ("year[0]", "year[1]", "n[2019]", "n[2020]")),
        ({"n": AGES, "year": YEARS}, ("n[0]", "n[1]", "year[0]", "year[1]")),
        (
            {"a": lambda run: ["x", "x"], "b": lambda run: ["y", "z"], "n": AGES},
            ("a[0]", "a[1]", "b[0]", "b[1]", "n[x.y]", "n[x.z]"),
        ),
        ({"a": lambda run: ["x", "x"], "n": AGES}, ("a[0]", "a[1]", "n[0]", "n[1]")),
        ({"a": lambda run: ["x", "y" * (run < 3)], "n": AGES}, ("a[0]", "a[1]", "n[0]", "n[1]")),
    ],
)
def test_rows_of_a_table_are_named_by_its_groups(columns, names):
    form = form_of(grouped(5, **columns))
    assert form.names == names
    assert form.agreed(form) is form
    others = form_of(grouped(5, **{**columns, "city": lambda run: ["Rome", "Oslo"]})) if "city" in columns else form
    numbers = form_of(grouped(5, **columns)).numbered
    assert form.agreed(others).names == (numbers if "city" in columns else names)
    assert all(re.fullmatch(r"\w+\[[01]\]", name) for name in numbers)


def test_names_are_safe_to_print():
    raw = {"a\n\x1b[31m": 1.0, "long" * 20: 2.0, "\ud800": 3.0, "a" * 39 + "\n": 4.0, "a" * 39 + "\t": 5.0}
    names = form_of([raw]).names
    assert len(set(names)) == 5
    assert all(name.isprintable() and len(name) <= 45 for name in names)
    assert "a\\n\\x1b[31m" in names
    block = {key: np.ones(2) for key in raw}
    assert form_of_block(block).names == names


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([Broken(a=1)], "cannot be read"), (Broken(a=1), "cannot be read"), ([(Broken(a=1),)], "cannot be read"),
        ([{"a": np.ma.array([1.0, 2.0], mask=[False, True])}], "masked array"),
    ],
    ids=range(4),
)  # fmt: skip
def test_odd_outputs_are_refused(raw, said):
    with pytest.raises(MechanismError, match=said):
        as_outputs(raw, 1, "m")


def test_rows_of_other_columns_are_other_outcomes():
    form = form_of_block({"a": np.ones(2)})
    for block in ({"b": np.ones(2)}, {"a": np.ones(2), "b": np.ones(2)}, np.ones(2), [1.0, 1.0], {}):
        outputs = as_outputs(block, 2, "m", form)
        assert all(type(output) is Dictionary for output in outputs)
    for block in ({"a": [1, 2]}, pd.DataFrame({"a": [1, 2]}), [{"a": 1}, {"a": 2}]):
        assert as_outputs(block, 2, "m", form).tolist() == [1, 2]
    two = form_of_block(pd.DataFrame({"b": [1.0], "a": [2.0]}))
    assert two.names == ("b", "a")
    assert as_outputs({"a": [2.0], "b": [1.0]}, 1, "m", two).tolist() == [[1.0, 2.0]]
    (apart,) = as_outputs(np.array([[1.0, 2.0]]), 1, "m", two)
    assert apart.entries == ((Mark.OTHER, (1.0, 2.0)),)
