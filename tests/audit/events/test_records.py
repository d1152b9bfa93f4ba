"""Outputs with named parts: their columns, and the dictionary that a record without the common form becomes."""

from __future__ import annotations

import enum
import math
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest

from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.named_parts import Mark, Part, outcome_key
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.events.records import Form, form_of, form_of_block, plain_output

Pair = namedtuple("Pair", "mean_age n")


@dataclass(frozen=True)
class Stats:
    mean_age: float
    n: int


@dataclass
class Other:
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


class Colour(Stats, enum.Enum):
    RED = 1.0, 2


class Undecorated(Stats):
    pass


ROW = np.array((2.5, 3), dtype=[("mean_age", "f8"), ("n", "i4")])
RECORDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "dataclass": (Stats(2.5, 3), {"mean_age": 2.5, "n": 3}),
    "named tuple": (Pair(2.5, 3), {"mean_age": 2.5, "n": 3}),
    "dictionary": ({"mean_age": 2.5, 7: 3}, {"7": 3, "mean_age": 2.5}),
    "nested dictionary": ({"a": {"b": 1}, "d": np.array([3.0, 4.0])}, {"a.b": 1, "d[0]": 3.0, "d[1]": 4.0}),
    "nested dataclass": (
        Nested("x", Stats(2.5, 3), [0.5, 1.5]),
        {"label": "x", "stats.mean_age": 2.5, "stats.n": 3, "weights[0]": 0.5, "weights[1]": 1.5},
    ),
    "attrs": (Fitted(1.5), {"slope": 1.5}),
    "row of an array": (ROW, {"mean_age": 2.5, "n": 3}),
    "scalar row": (ROW[()], {"mean_age": 2.5, "n": 3}),
    "frame": (pd.DataFrame({"mean_age": [2.5], "n": [3]}), {"mean_age": 2.5, "n": 3}),
    "rows": (pd.DataFrame({"mean": [2.5, 1.5]}, index=["u", "v"]), {"mean[u]": 2.5, "mean[v]": 1.5}),
    "levels": (pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples(["ab", "ac"])), {"a.b": 1, "a.c": 2}),
    "equal labels": (pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": 1, "a (2)": 2}),
    "labels": (pd.Series({"mean_age": 2.5, "n": 3.0}), {"mean_age": 2.5, "n": 3.0}),
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
        1.5,
        "text",
        None,
        (1, 2),
        [1, 2],
        np.arange(3),
        {},
        {"key": ["a"], "count": [1.5]},
        {"a": None},
        pd.Series([1.0, 2.0]),
        pd.DataFrame({"a": []}),
        Raised("ValueError"),
        Colour.RED,
        OwnEquality(1.0),
        Undecorated(1.0, 2),
        Stats,
    ],
    ids=str,
)
def test_outputs_without_columns(output):
    assert form_of([output]) == Form() == Form(names=("names are not compared",))


def test_records_that_differ_have_no_common_form():
    assert form_of([Stats(1.0, 2), Other(1.0, 2)]) == Form()
    assert form_of([{"a": 1}, {"b": 1}]) == Form()
    assert form_of([]) == Form()


def test_a_record_of_another_form_keeps_its_names_and_its_class():
    form = form_of([Stats(1.0, 2)])
    outputs = as_outputs([Stats(1.0, 2), Other(1.0, 2), {"mean_age": 1.0}, None], 4, "m", form)
    assert outputs[0] == (1.0, 2)
    assert [dict(output.entries) for output in outputs[1:3]] == [
        {Mark.CLASS: f"{__name__}.Other", "mean_age": 1.0, "n": 2},
        {"mean_age": 1.0},
    ]
    assert outputs[3] is None


def test_a_label_that_varies_is_a_key():
    outputs = as_outputs([pd.Series({"a": 1.0, "b": 2.0}), pd.Series({"b": 2.0})], 2, "m", Form())
    assert [f"{pd.Series.__module__}.Series" in str(output) for output in outputs] == [True, True]
    assert [output.entries[2:] for output in outputs] == [(("a", 1.0), ("b", 2.0)), (("b", 2.0),)]


def test_equal_records_are_equal_outputs_in_either_form():
    for form in (None, form_of([Stats(math.nan, 1)])):
        first, second = as_outputs([Stats(math.nan, 1), Stats(float("nan"), 1)], 2, "m", form).tolist()
        assert outcome_key(tuple(first) if form else first) == outcome_key(tuple(second) if form else second)


def test_a_record_that_contains_itself_is_refused():
    ring = {}
    ring["ring"] = ring
    assert form_of([ring]) == Form()
    with pytest.raises(MechanismError, match="nested more than"):
        as_outputs([ring], 1, "m")


BLOCKS = {
    "frame": pd.DataFrame({"mean": [0.5, 1.5], "n": [1, 2]}),
    "dictionary": {"mean": [0.5, 1.5], "n": np.array([1, 2])},
    "array": np.array([(0.5, 1), (1.5, 2)], dtype=[("mean", "f4"), ("n", "i8")]),
    "list": [{"mean": 0.5, "n": 1}, {"mean": 1.5, "n": 2}],
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_has_a_run_in_each_row(kind):
    block = BLOCKS[kind]
    form = form_of_block(block)
    assert form.names == ("mean", "n")
    outputs = as_outputs(block, 2, "m", form)
    assert outputs.dtype == np.float64
    assert outputs.tolist() == [[0.5, 1.0], [1.5, 2.0]]


def test_columns_of_a_block_keep_their_values():
    texts = as_outputs(pd.DataFrame({"n": [2**60 + 1, 3], "word": ["a", None]}, dtype=object), 2, "m")
    assert texts.tolist() == [(2**60 + 1, "a"), (3, None)]
    large = as_outputs({"a": np.array([2**60 + 1, 3]), "b": np.array([0.5, 1.5])}, 2, "m")
    assert large.tolist() == [(2**60 + 1, 0.5), (3, 1.5)]
    missing = as_outputs(pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}), 2, "m")
    assert missing.tolist() == [1, None]
    assert as_outputs({"a": np.array([True, False]), "n": np.array([3, 4], np.int8)}, 2, "m").dtype == np.int64
    assert as_outputs(pd.Series([1.0, 2.0], name="a"), 2, "m").tolist() == [1.0, 2.0]
    assert as_outputs({"w": np.ones((2, 2)), "b": np.zeros(2)}, 2, "m").shape == (2, 3)
    assert form_of_block({"w": np.ones((2, 2)), "b": np.zeros(2)}).names == ("b", "w[0]", "w[1]")


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
