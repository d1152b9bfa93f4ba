"""Any value is read alike twice, as equal to its copy, and as different from a value with another part."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import enum
import fractions
import math

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpaudit.audit.datasets.contents import Kept, hold_the_same
from dpaudit.audit.events.outputs import as_outputs, outcome_key
from dpaudit.audit.replay.output_values import kept, numbers_of, same_form, same_output
from dpaudit.audit.sampling.object_identity import identity


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Mean:
    value: object


class Held:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Held)

    __hash__ = None


Pair = collections.namedtuple("Pair", "x y")
NUMBERS = st.one_of(
    st.floats(), st.integers(), st.sampled_from([0.0, -0.0, math.nan, 2**60]), st.complex_numbers(),
    hnp.scalar_dtypes().flatmap(lambda kind: hnp.arrays(kind, ())).map(lambda array: array[()]),
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=3), st.binary(max_size=3), st.sampled_from(["a", "1.5", *Colour]))
TIMES = st.one_of(st.dates(), st.datetimes(timezones=st.sampled_from([None, datetime.UTC])), st.timedeltas())
EXACT = st.one_of(st.none(), st.booleans(), st.decimals(), st.fractions(), st.just(fractions.Fraction(1, 3)))
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
FIELDS = np.dtype([("a", "f8"), ("b", "i4")])
ARRAYS = st.one_of(hnp.scalar_dtypes(), st.just(FIELDS)).flatmap(lambda kind: hnp.arrays(kind, SHAPES))
COLUMN = st.one_of(st.lists(each, min_size=2, max_size=2) for each in (st.floats(), st.integers(0, 9), st.text()))
COLUMNS = st.dictionaries(st.sampled_from("abc"), COLUMN, min_size=1)
TABLES = st.one_of(
    COLUMNS.map(pd.DataFrame), COLUMNS.map(lambda columns: pd.DataFrame(columns, index=["p", "q"])),
    COLUMN.map(lambda values: pd.Series(values, name="s")), COLUMN.map(pd.Index),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))).map(nx.Graph),
    COLUMN.map(lambda values: pd.Series(pd.Categorical(list(map(str, values))))),
)  # fmt: skip
LEAVES = st.one_of(NUMBERS, TEXTS, TIMES, EXACT, ARRAYS, TABLES)
KEYS = st.one_of(st.text(max_size=2), st.integers(-2, 2), st.booleans(), st.tuples(st.text(max_size=1)))


def nested(inner):
    lists = st.lists(inner, max_size=3)
    return st.one_of(
        lists, lists.map(tuple), lists.map(collections.deque), st.dictionaries(KEYS, inner, max_size=3),
        st.lists(st.fixed_dictionaries({"k": st.text(max_size=1), "v": st.floats()}), max_size=3),
        st.sets(KEYS, max_size=3), inner.map(Mean), inner.map(Held),
        st.tuples(inner, inner).map(lambda two: Pair(*two)),
        st.dictionaries(KEYS, st.integers(0, 2)).map(collections.Counter),
    )  # fmt: skip


ANY = st.recursive(LEAVES, nested, max_leaves=6)
THOROUGH = settings(
    max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@THOROUGH
@given(ANY)
def test_a_value_equals_its_copy(value):
    again = copy.deepcopy(value)
    assert hold_the_same(value, again)
    assert same_output(value, again) is True
    assert same_form(value, again)
    dataset = Kept(value)
    assert not dataset.has_changed()
    dataset.dataset = again
    assert not dataset.has_changed()
    assert identity(value).hash == identity(value).hash
    assert same_output(value, kept(value)) is True


@THOROUGH
@given(ANY)
def test_another_part_is_another_value(value):
    one, other = {"a": value, "b": 1.0}, {"a": value, "b": 2.0}
    assert not hold_the_same(one, other)
    assert same_output(one, other) is False
    assert same_form(one, other)
    dataset = Kept(one)
    one["b"] = 2.0
    assert dataset.has_changed()
    assert identity(one).hash != identity({"a": value, "b": 3.0}).hash


@THOROUGH
@given(ANY)
def test_numbers_are_those_of_the_parts(value):
    alone, twice = numbers_of(value), numbers_of([value, value])
    if alone is not None:
        assert np.array_equal(np.concatenate([alone, alone]), twice, equal_nan=True)


PLAIN = st.recursive(
    st.one_of(st.floats(), st.integers(), st.text(max_size=2), st.none(), TIMES, hnp.arrays(np.float64, 2)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | inner.map(Mean),
    max_leaves=6,
)


@THOROUGH
@given(PLAIN)
def test_an_output_equals_its_copy_in_any_order_of_its_keys(value):
    reordered = dict(reversed(value.items())) if type(value) is dict else copy.deepcopy(value)
    one, other = (as_outputs([each, None], 2, "m").tolist()[0] for each in (value, reordered))
    assert outcome_key(one) == outcome_key(other)
    assert hash(outcome_key(one)) == hash(outcome_key(other))
