"""All readers of values agree: equal outputs have equal keys, texts, leaves, rows and files, and others have not.

Readers of contents (of datasets, of recorded outputs, of mechanisms) are finer: they tell 1 from 1.0, a list from a
tuple and the orders of a dictionary apart, but no value from its copy.
"""

import array
import copy
import datetime
import enum
import ipaddress
import itertools
import math
import pathlib
import types
import uuid
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings

from dpaudit.audit.datasets.contents import Kept, hold_the_same, kept, numbers_of, output_distance, same_output
from dpaudit.audit.datasets.rows import row_key
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.leaves import leaves_by_path, leaves_of
from dpaudit.audit.events.named_parts import outcome_key, outcome_text, printed
from dpaudit.audit.events.outputs import as_outputs, outcome_list
from dpaudit.audit.events.plain_outputs import Form, canonical, form_of, plain_output
from dpaudit.audit.records.json_codec import Opaque, plain_data, read_data
from dpaudit.audit.sampling.object_identity import identity
from dpaudit.audit.sampling.sampler import pick_from_run
from dpaudit.audit.training.seeded_step import output_of


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    ONE = 1


@dataclass
class Mean:
    """Cannot be hashed, and has a part that is not compared."""

    value: Any


@dataclass(frozen=True)
class Total:
    value: Any


Pair = namedtuple("Pair", "x y")
Single = namedtuple("Single", "x")
SEQUENCES = (list, tuple, deque, UserList)
MAPPINGS = (dict, OrderedDict, UserDict, ChainMap, types.MappingProxyType)

ATOMS = st.sampled_from(
    [
        0, -0.0, 1, 1.0, True, 2.5, math.nan, math.inf, 2**60 + 1, 2.0**60, np.int64(1), np.float32(2.5),
        np.bool_(True), Decimal("1.00"), Decimal("2.5"), Fraction(5, 2), Fraction(1, 3), Fraction(1, 10),
        Decimal("0.1"), "", "1", "a", np.str_("a"), b"a", bytearray(b"a"), None, Colour.RED, "Colour.RED",
        Level.ONE, datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 6, tzinfo=ZoneInfo("Africa/Tunis")),
        np.datetime64("2020-01-01"), datetime.datetime(2020, 1, 1, 5, tzinfo=datetime.UTC), datetime.timedelta(1),
        np.timedelta64(24, "h"), uuid.UUID(int=7), pathlib.PurePosixPath("a"), ipaddress.ip_address("1.2.3.4"),
        range(0), range(3, 3), range(2), frozenset(), frozenset("ab"), frozenset([1, ("a", 2.0)]),
        frozenset([1.0, ("a", 2)]), {8, 0}, {0, 8},
        np.array(2.5), np.array([1.0, 2.5]), np.array([1, "a"], object), array.array("d", [1.0, 2.5]), ("NaN", "row"),
        np.array([(1.0, 2)], [("a", "f8"), ("b", "i4")]), {("a", 1)}, {"a": 1}, types.SimpleNamespace(a=1),
    ]
)  # fmt: skip
KEYS = st.sampled_from(
    ["a", "b", "a.b", "a[0]", "class", 0, -0.0, 1, 1.0, True, "1", 2.5, ("a", 1), Colour.RED, frozenset("ab"), b"a"]
)


def nested(parts):
    mappings = st.dictionaries(KEYS, parts, max_size=3)
    return st.one_of(
        *(st.lists(parts, max_size=3).map(kind) for kind in SEQUENCES), *(mappings.map(kind) for kind in MAPPINGS),
        parts.map(Mean), parts.map(Total), parts.map(Single), st.tuples(parts, parts).map(lambda two: Pair(*two)),
        st.dictionaries(KEYS, st.integers(1, 2), max_size=2).map(Counter),
    )  # fmt: skip


ANY_OUTPUT = st.recursive(ATOMS, nested, max_leaves=5)
NUMBERS = st.sampled_from([0, -0.0, 1, 1.0, True, Decimal("1.00"), Fraction(5, 2), 2.5, math.nan, 2**60 + 1, 2.0**60])
RECORD = nested(ANY_OUTPUT) | st.recursive(
    NUMBERS, lambda parts: st.dictionaries(KEYS, parts, min_size=1, max_size=3), max_leaves=4
)


def simplest(output: Any) -> Any:
    """What Python would compare: the same output in tuples and dictionaries, with one NaN."""
    if isinstance(output, np.ndarray | np.generic):
        is_named = output.dtype.names is not None
        is_time = output.dtype.kind in "mM"
        found = {name: simplest(output[name]) for name in output.dtype.names} if is_named else output.tolist()
        return ("row", found) if is_named else (output.item() if is_time else simplest(found))
    if isinstance(output, (*SEQUENCES, array.array)):
        return tuple(map(simplest, output))
    if isinstance(output, MAPPINGS):
        return {key: simplest(part) for key, part in output.items()}
    if isinstance(output, Mean | Total | types.SimpleNamespace):
        return type(output), {name: simplest(part) for name, part in vars(output).items()}
    if isinstance(output, bytearray):
        return bytes(output)
    return math.nan if isinstance(output, float) and output != output else output


def twin(output: Any, of_atom: Any = copy.deepcopy) -> Any:
    """An equal output of other objects, whose dictionaries have another order."""
    if type(output) in MAPPINGS:
        return type(output)({of_atom(key): twin(output[key], of_atom) for key in reversed(list(output))})
    if type(output) in SEQUENCES:
        return type(output)(twin(part, of_atom) for part in output)
    if isinstance(output, Pair | Single):
        return type(output)(*(twin(part, of_atom) for part in output))
    return type(output)(twin(output.value, of_atom)) if isinstance(output, Mean | Total) else of_atom(output)


def leaves(plain):
    return [
        {path: list(map(outcome_key, held)) for path, (_, held) in found.items()} for found in leaves_by_path([plain])
    ]


def is_whole(data):
    """Whether a value read from a file has no part of which the file holds the text alone."""
    if isinstance(data, tuple | frozenset):
        return all(map(is_whole, data))
    return all(map(is_whole, data.entries)) if hasattr(data, "entries") else not isinstance(data, Opaque)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(ANY_OUTPUT, ANY_OUTPUT)
@example({"a": 1}, {("a", 1)})
@example(math.nan, ("NaN", "row"))
@example({8, 0}, {0, 8})
@example(Fraction(1, 10), Decimal("0.1"))
@example([Mean(1)], [Total(1)])
def test_all_readers_agree_on_what_is_equal(one, other):
    again = twin(one)
    plain, plain_again, plain_other = (plain_output(each, "m") for each in (one, again, other))
    are_equal = (simplest(one),) == (simplest(other),)  # a NaN is equal in a tuple
    readers = (
        outcome_key, lambda plain: outcome_text(canonical(plain)), lambda plain: printed(canonical(plain)),
        lambda plain: (canonical(plain),),
    )  # fmt: skip
    for reader in readers:
        assert reader(plain) == reader(plain_again)
        assert (reader(plain) == reader(plain_other)) == are_equal
    assert row_key(one) == row_key(again)
    assert (row_key(one) == row_key(other)) == are_equal
    assert outcome_text(plain) == outcome_text(plain_again)
    assert leaves(plain) == leaves(plain_again)
    assert not are_equal or (leaves(plain) == leaves(plain_other) and outcome_text(plain) == outcome_text(plain_other))
    numbered, others = leaves(plain)
    by_output = [(path, outcome_key(leaf)) for path, leaf in leaves_of(plain)]
    assert Counter(by_output) == Counter(
        (path, leaf) for each in (numbered, others) for path in each for leaf in each[path]
    )
    restored = read_data(plain_data(plain))
    assert not is_whole(restored) or outcome_key(restored) == outcome_key(plain)
    are_same = same_output(one, other) is True, hold_the_same(one, other), identity(one) == identity(other)
    assert are_equal or not any(are_same)


def flattened(outputs: list[Any], form: Form | None) -> list[Any]:
    """Return the keys of outputs that are drawn in one block each, or all in one."""
    alone = [outcome_key(outcome_list(as_outputs([output], 1, "m", form))[0]) for output in outputs]
    assert alone == [*map(outcome_key, outcome_list(as_outputs(outputs, len(outputs), "m", form)))]
    return alone


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(RECORD, ANY_OUTPUT, ANY_OUTPUT)
@example({"a": {"b": 1.5, "c": 1}}, {"a.b": 1.5, "a.c": 1}, {"a": {"c": 1, "b": 1.5}})
@example({1: 0, 2: 0}, {"1": 0, "2": 0}, {2: 0, 1: 0})
@example({"a": 1.5}, 1.5, {"a": {"a": 1.5}})
@example({"a": 1.5, "b": 1}, (1.5, 1.0), Pair(1.5, 1))
@example(Total(None), None, Total(Total(None)))
@example(Total(1.5), 1.5, Mean(1.5))
@example(Pair(Total(1), {"a": 1}), Pair({"a": 1}, Total(1)), (1, 1))
def test_columns_of_records_are_equal_exactly_if_the_records_are(record, other, third):
    outputs = [record, twin(record), other, third]
    simple = [(simplest(output),) for output in outputs]
    for form in (None, form_of([record]), form_of([other])):
        keys = flattened(outputs, form)
        for i, j in itertools.combinations(range(4), 2):
            assert (keys[i] == keys[j]) == (simple[i] == simple[j]), (form, outputs[i], outputs[j])
            assert keys[i] != keys[j] or hash(keys[i]) == hash(keys[j])


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(ANY_OUTPUT.filter(lambda value: "mappingproxy" not in repr(value)))  # which has no copy
def test_a_value_is_read_as_its_copy(value):
    again = copy.deepcopy(value)
    assert same_output(value, again) is True
    assert same_output(value, kept(value)) is True
    assert hold_the_same(value, again)
    dataset = Kept(value)
    assert not dataset.has_changed()
    dataset.dataset = again
    assert not dataset.has_changed()
    dataset.dataset = [value]
    assert dataset.has_changed()
    assert identity(value) == identity(again) != identity([value])
    assert output_distance(value, again) in (None, 0.0)
    alone, twice = numbers_of(value), numbers_of((value, value))
    assert (alone is None) == (twice is None)
    assert alone is None or np.array_equal(np.concatenate([alone, alone]), twice, equal_nan=True)


def test_the_numbers_of_exact_types_and_of_named_columns_are_read():
    assert output_distance(Fraction(1, 3), Fraction(1, 2)) == pytest.approx(1 / 6)
    assert output_distance(Decimal("1.50"), Decimal("2.25")) == 0.75
    assert numbers_of([uuid.UUID(int=7), UserDict(a=2), np.ma.ones(1)]).tolist() == [2.0, 1.0]
    assert numbers_of(bytearray(b"ab")).tolist() == [97.0, 98.0]
    assert numbers_of(Fraction(10**400)) is None
    assert numbers_of(np.ones((1, 2)).view(np.matrix)).tolist() == [1.0, 1.0]
    column = pd.Series([1.0, 2.5], name="mean")
    assert output_of(column, "step").parts[""].tolist() == [1.0, 2.5]
    assert pick_from_run(column, 1, "m").value == 2.5


def test_a_mapping_with_an_equality_of_its_own_is_no_dictionary():
    class Folded(UserDict):
        def __eq__(self, other):
            return True

    with pytest.raises(MechanismError, match="cannot be compared"):
        plain_output(Folded(a=1), "m")
