"""Outputs with named parts: columns of records, and that flattening loses nothing.

Outputs are equal as vectors of columns exactly if they were equal before.
"""

import datetime
import enum
import math
import re
from collections import namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings

from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.named_parts import Dictionary, Mark, Part, outcome_key
from dpaudit.audit.events.outputs import Raised, as_outputs, outcome_list
from dpaudit.audit.events.records import Form, form_of, form_of_block, plain_output

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
        pd.Series([1.0, 2.0]), pd.DataFrame({"a": []}), Raised("ValueError"), OwnEquality(1.0), Stats,
    ],
    ids=str,
)  # fmt: skip
def test_outputs_without_columns(output):
    assert form_of([output]) == Form() == Form(names=("names are not compared",))


BLOCKS = {
    "frame": pd.DataFrame({"mean": [0.5, 1.5], "n": [1, 2]}),
    "dictionary": {"mean": [0.5, 1.5], "n": np.array([1, 2])},
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


# Flattening loses nothing.

KEYS = st.sampled_from(
    [
        "a", "b", "a.b", "a[0]", 0, -0.0, 1, 1.0, True, Fraction(1), "1", "class", "value", ("a", "b"), (1, "s"),
        (1.0, "s"),
    ]
)  # fmt: skip
TwoParts = namedtuple("TwoParts", "a b")
Single = namedtuple("Single", "a")


@dataclass(frozen=True)
class P:
    a: Any


@dataclass(frozen=True)
class Q:
    a: Any


@dataclass(frozen=True)
class Box:
    u: Any
    v: Any


def are_equal(a: Any, b: Any) -> bool:
    """Python's equality, except that NaN equals NaN; named tuples are tuples."""
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(are_equal, a, b))
    if type(a) is dict and type(b) is dict:
        return a.keys() == b.keys() and all(are_equal(a[key], b[key]) for key in a)
    if type(a) is type(b) and isinstance(a, (P, Q, Box)):
        return all(are_equal(getattr(a, name), getattr(b, name)) for name in vars(a))
    return bool(a == b)


class Level(enum.IntEnum):
    ONE = 1


NUMBERS = st.sampled_from(
    [0, -0.0, 1, 1.0, True, Level.ONE, Decimal("1.00"), Fraction(5, 2), 2.5, math.nan, 2**60 + 1, 2**60, 2.0**60]
)
ZONES = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (1, 5)]
MOMENTS = [datetime.datetime(2026, 1, 1, hour, tzinfo=zone) for hour, zone in zip((1, 5), ZONES, strict=True)]
LEAVES = NUMBERS | st.sampled_from([None, "", "1", "a", (), *MOMENTS, frozenset([1, "a"]), frozenset([1.0, "a"])])


def _nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.dictionaries(KEYS, parts, max_size=3), st.builds(P, parts), st.builds(Q, parts),
        st.builds(Box, parts, parts), st.builds(TwoParts, parts, parts), st.builds(Single, parts), st.tuples(parts),
        st.tuples(parts, parts),
    )  # fmt: skip


OUTPUTS = st.recursive(LEAVES, _nested, max_leaves=5)
ANY_RECORD = _nested(OUTPUTS) | st.recursive(
    NUMBERS, lambda parts: st.dictionaries(KEYS, parts, min_size=1, max_size=3), max_leaves=4
)


def reordered(output: Any) -> Any:
    """An equal output whose dictionaries have another order, and with other objects."""
    if type(output) is dict:
        return {key: reordered(output[key]) for key in reversed(output)}
    if isinstance(output, float):
        return float(repr(output))
    if isinstance(output, tuple):
        parts = map(reordered, output)
        return type(output)(*parts) if hasattr(output, "_fields") else tuple(parts)
    return type(output)(*map(reordered, vars(output).values())) if isinstance(output, (P, Q, Box)) else output


def flattened(outputs: list[Any], form: Any) -> list[Any]:
    """Return the keys of outputs, each drawn in a block of its own or all in one."""
    alone = [outcome_key(outcome_list(as_outputs([output], 1, "m", form))[0]) for output in outputs]
    assert alone == [*map(outcome_key, outcome_list(as_outputs(outputs, len(outputs), "m", form)))]
    return alone


@settings(max_examples=80, deadline=None, derandomize=True)
@given(ANY_RECORD, OUTPUTS, OUTPUTS)
@example({"a": {"b": 1.5, "c": 1}}, {"a.b": 1.5, "a.c": 1}, {"a": {"c": 1, "b": 1.5}})
@example({1: 0, 2: 0}, {"1": 0, "2": 0}, {2: 0, 1: 0})
@example({"a": 1.5}, 1.5, {"a": {"a": 1.5}})
@example({"a": 1.5, "b": 1}, (1.5, 1.0), TwoParts(1.5, 1))
@example(P(None), None, P(P(None)))
@example(P(1.5), 1.5, Q(1.5))
@example(Box(P(1), {"a": 1}), Box({"a": 1}, P(1)), (1, 1))
def test_outputs_are_equal_after_exactly_if_before(record, other, third):
    outputs = [record, reordered(record), other, third]
    for form in (None, form_of([record]), form_of([other])):
        keys = flattened(outputs, form)
        for i, a in enumerate(outputs):
            for j, b in enumerate(outputs):
                assert (keys[i] == keys[j]) == are_equal(a, b), (form, a, b)
                assert keys[i] != keys[j] or hash(keys[i]) == hash(keys[j])


V = 1.5
FRAME = pd.DataFrame({"a": [V]})


@pytest.mark.parametrize(
    ("record", "other"),
    [
        ({"a": np.array([V, 2.0])}, {"a[0]": V, "a[1]": 2.0}), ({"a": V}, FRAME),
        (FRAME.set_axis(["alice"]), FRAME.set_axis(["bob"])), (FRAME, pd.concat([FRAME, FRAME], ignore_index=True)),
        (pd.DataFrame({"a": [(1, 2)]}), pd.DataFrame({"a": [1, 2]})),
        (pd.DataFrame({"a": [V, 1, 2]}).nlargest(1, "a"), pd.DataFrame({"a": [1, 2, V]}).nlargest(1, "a")),
        (pd.Series([V, 2], name="user0"), pd.Series([V, 2], name="user1")), (pd.Series({1: V}), pd.Series({"1": V})),
        (pd.Series([V, 2], index=["a", "a"]), pd.Series({"a": V, "a (2)": 2})),
        (np.array([(V,)], dtype=[("a", "f8")]), np.array([(V,)], dtype=[("b", "f8")])),
        (P(Raised("ValueError").exception), Raised("ValueError")),
    ],
    ids=str,
)  # fmt: skip
def test_outputs_of_libraries_that_differ_stay_apart(record, other):
    for form in (None, form_of([record]), form_of([other])):
        one, two = flattened([record, other], form)
        assert one != two


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


class Broken(dict):
    def items(self):
        raise RuntimeError


def test_odd_outputs_are_refused():
    assert form_of([Broken(a=1)]).names == ()
    for raw, size in (([Broken(a=1)], 1), (Broken(a=1), 1), ([(Broken(a=1),)], 1)):
        with pytest.raises(MechanismError):
            as_outputs(raw, size, "m")


@pytest.mark.parametrize("output", [{"a": np.ma.array([1.0, 2.0], mask=[False, True])}])
def test_masks_are_refused(output):
    with pytest.raises(MechanismError, match="masked array"):
        as_outputs([output], 1, "m")


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


def test_labels_of_the_rows_of_a_block_are_a_column():
    block = pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 9])
    assert form_of_block(block).names == ("index", "a")
    assert form_of_block(block["a"]).names == ("index", "a")
    assert form_of_block(block["a"].rename(None)).names == ("index", "value")
    assert as_outputs(block, 2, "m", form_of_block(block)).tolist() == [[5, 1], [9, 2]]
