"""Numbers by their keys, and outputs that Python calls equal, which are one outcome and have equal features."""

import datetime
import enum
import itertools
import math
import pathlib
from collections import Counter, OrderedDict, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import attrs
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from dpaudit.audit.events.leaves import KeyedValues, learn_leaves, name_words, named_values, same_name
from dpaudit.audit.events.named_parts import equal_text, outcome_text
from dpaudit.audit.events.outputs import Raised, as_numbers, as_outputs, merge, outcome_key, outcome_list
from dpaudit.audit.events.plain_outputs import form_of
from dpaudit.audit.events.text_columns import learn_texts

from .test_every_reader import nested, twin

COLOUR = enum.Enum("Colour", "RED")
ROWS = "(output[…][1] where output[…][0] = {})"
COUNTS = "(output['counts'][…] where output['keys'][…] = {})"
CASES = [
    ([("a", 2.5), ("b", 0.5)], {ROWS.format("'a'"): 2.5, ROWS.format("'b'"): 0.5}),
    ([(3, 0.5), (4, 1)], {ROWS.format("3"): 0.5, ROWS.format("4"): 1.0, "(output[…][0] where output[…][1] = 1)": 4.0}),
    ([{"count": 3.0, "key": "a"}], {"(output[…]['count'] where output[…]['key'] = 'a')": 3.0}),
    (
        [("a", {"count": 2.5})],
        {"(output[…][1]['count'] where output[…][0] = 'a')": 2.5, "(len(output[…][1]) where output[…][0] = 'a')": 1.0},
    ),
    (
        [("a", "high")],
        {
            "count of 'a' in output[…][0]": 1.0,
            "count of 'high' in output[…][1]": 1.0,
            "count of ('a', 'high') in output": 1.0,
        },
    ),
    (
        {"keys": ["a", "b"], "counts": [2.0, 1.0], "total": 3.0},
        {COUNTS.format("'a'"): 2.0, COUNTS.format("'b'"): 1.0, "output['total']": 3.0},
    ),
    (["b", "a", "b"], {"count of 'a' in output": 1.0, "count of 'b' in output": 2.0}),
    (
        {"kept": frozenset(["a", np.int64(5)]), "names": ["u", "v"]},
        {
            f"count of {key} in output['{at}']": 1.0
            for at, key in (("kept", "'a'"), ("kept", "5"), ("names", "'u'"), ("names", "'v'"))
        },
    ),
    (frozenset([("a", 1.5)]), {ROWS.format("'a'"): 1.5}),
    (
        [("a", 1.5), ("b", 1.5, 2.5), None],
        {ROWS.format("'a'"): 1.5, ROWS.format("'b'"): 1.5, "(output[…][2] where output[…][0] = 'b')": 2.5},
    ),
    ([("a", 1.5), (0.5, 2.5)], {"output[0][1]": 1.5, "output[1][0]": 0.5, "output[1][1]": 2.5}),
    ([], {}),
]


@pytest.mark.parametrize(("output", "expected"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_names_and_values(output, expected):
    (read,) = as_outputs([output], 1, "m").tolist()
    found = Counter()
    for name, value in named_values(read):
        found[name_words(name)] += value
    assert found == expected


def test_columns_of_chosen_keys():
    outputs = as_outputs([[("a", 1.0), ("b", 2.0), ("a", 3.0)], [], "no rows", [("b", math.nan)], ["a", "a"]], 5, "m")
    (a, _), (b, _) = list(named_values(outputs[0]))[:2]
    (counted, _), *_ = named_values(outputs[4])
    columns = KeyedValues((a, b, counted))
    nan = np.nan
    np.testing.assert_array_equal(
        columns.read(outputs), [[3.0, nan, nan, nan, nan], [2.0, nan, nan, nan, nan], [0.0, 0.0, 0.0, 0.0, 2.0]]
    )
    assert columns.names == (ROWS.format("'a'"), ROWS.format("'b'"), "count of 'a' in output")
    assert columns.codes(0) is None


# Outputs that Python calls equal.


class Level(enum.IntEnum):
    ONE = 1


class Word(enum.StrEnum):
    RED = "red"


class Unsorted(tuple):
    """A tuple that compares as a set."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Unsorted) and frozenset(self) == frozenset(other)

    def __hash__(self):
        return hash(frozenset(self))


@dataclass(frozen=True)
class Partly:
    x: float
    at: int = field(compare=False, default=0)


@attrs.define(eq=False)
class OwnAttrs:
    x: float
    tag: str

    def __eq__(self, other):
        return type(other) is OwnAttrs and self.x == other.x

    def __hash__(self):
        return hash(self.x)


@attrs.frozen
class Folded:
    word: str = attrs.field(eq=str.lower)


Pair = namedtuple("Pair", "a b")
NOON = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
KEYS = [
    [1, 1.0, True, Decimal("1.00"), Fraction(1), np.int64(1), np.float32(1), np.bool_(True), Level.ONE],
    [0, 0.0, -0.0, False, np.float64(-0.0), Decimal("-0"), Decimal("0E+3")],
    [Fraction(1, 10), Decimal("0.1"), Decimal("0.100")],
    [2**60, float(2**60), Decimal(2**60), np.uint64(2**60)],
    [10**30, Decimal("1E+30"), Fraction(10**30)],
    [2**60 + 1, Fraction(2**60 + 1), Decimal(2**60 + 1), np.int64(2**60 + 1)],
    [math.inf, Decimal("Infinity"), np.float32(np.inf)],
    ["red", Word.RED, np.str_("red")],
    [NOON, NOON.astimezone(ZoneInfo("Asia/Tokyo")), pd.Timestamp(NOON), pd.Timestamp(NOON).tz_convert("US/Eastern")],
    [datetime.datetime(2026, 7, 1, 12), pd.Timestamp("2026-07-01 12:00"), np.datetime64("2026-07-01T12", "h")],
    [np.datetime64("2026-07-01", "D"), np.datetime64("2026-07-01T00", "ns"), pd.Timestamp("2026-07-01")],
    [pd.Timestamp("2026-07-01 00:00:00.000000001"), np.datetime64("2026-07-01T00:00:00.000000001", "ns")],
    [datetime.datetime(2026, 7, 1, 2), datetime.datetime(2026, 7, 1, 2, fold=1)],
    [datetime.time(12, tzinfo=datetime.UTC), datetime.time(13, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))],
    [DAY, pd.Timedelta(DAY), np.timedelta64(24, "h"), np.timedelta64(1, "D")],
    [np.timedelta64(7, "ns"), pd.Timedelta(7, "ns"), np.timedelta64(7_000, "ps")],
    [np.timedelta64(1, "Y"), np.timedelta64(12, "M")],
    [range(0), range(1, 1), range(5, 3)],
    [pathlib.PurePosixPath("a/b"), pathlib.Path("a/b")],
    [frozenset([1, "s"]), frozenset([1.0, Word.RED[:0] + "s"]), frozenset([True, "s"])],
    [(1, "s"), (1.0, "s"), (True, "s"), Pair(1, "s")],
    [Partly(1.0, 1), Partly(1, 2)],
    [OwnAttrs(1.0, "x"), OwnAttrs(1.0, "y")],
    [Folded("A"), Folded("a")],
    [Unsorted((1, 2)), Unsorted((2, 1))],
]
"""Values that can be keys, those of a line equal."""
OUTPUTS = [
    *KEYS,
    [Counter(a=0, b=1), Counter(b=1)],
    [{"a": 1, "b": 2.0}, {"b": 2, "a": True}, OrderedDict(b=2, a=1)],
    [{1, 2}, frozenset([1.0, 2.0]), {True, Decimal(2)}],
    [np.array([1, 2]), np.array([1.0, 2.0]), np.array([True, 2], dtype=object)],
    [pd.DataFrame({"v": [1, 2]}), pd.DataFrame({"v": [1.0, 2.0]}, index=pd.Index([0, 1]))],
    [pd.Series([1, 2]), pd.Series([1.0, 2.0], index=[0, 1]), pd.Series([1, 2], dtype="Int64")],
    [pd.Series({"a": 1, "b": 2}), pd.Series({"a": 1.0, "b": 2.0})],
]


def of_both(one, other):
    """Outputs of two runs as they are read, without a form and with that of each."""
    for form in (None, form_of([one]), form_of([other])):
        yield as_outputs([one], 1, "m", form), as_outputs([other], 1, "m", form)


def features(x, y):
    """What is read of the outputs of one run on x and of one on y."""
    leaves, texts = learn_leaves(x, y), learn_texts(x, y)
    keyed = KeyedValues(tuple(name for part in (x, y) for read in outcome_list(part) for name, _ in named_values(read)))
    for output in (x, y):
        (read,) = outcome_list(output)
        yield without_nan(
            (
                leaves.read(output).tolist(), None if texts is None else texts.read(output).tolist(),
                keyed.read(output).tolist(), [(same_name(name), value) for name, value in named_values(read)],
                as_numbers(output).tolist() if output.ndim == 1 else output.tolist(), equal_text(read),
                outcome_text(read),
            )
        )  # fmt: skip


def without_nan(value):
    """Nested lists with None in place of NaN."""
    if isinstance(value, (list, tuple)):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and value != value else value


def assert_alike(one, other):
    for a, b in of_both(one, other):
        x, y = merge([a], [b])
        (key_x,), (key_y,) = (list(map(outcome_key, outcome_list(part))) for part in (x, y))
        assert key_x == key_y
        assert hash(key_x) == hash(key_y)
        read_x, read_y = features(x, y)
        assert read_x == read_y


def around(value):
    """A value at several places in outputs; lists and named tuples are tuples before they are read."""
    yield from (value, (value, 0.5), {"a": value, "zz": "t"}, [("k", value), ("l", 0.5)])
    yield from ({"rows": [value, value], "counts": [0.5, 1.5]}, Partly(value))


def keyed(value):
    """A value as a key or a member at several places in outputs."""
    yield from ({value: 1.5, "zz": "t"}, {value: 1.5, "b": 2.5}, {"s": {value, 0.25}}, [(value, 0.5), ("l", 1.5)])
    yield from ({(value, "s"): 1, "zz": "t"}, {"zz": {value: {"t": 1.5}}}, Counter({value: 2, "zz": 1}))


PLACES = [(around, line) for line in OUTPUTS] + [(keyed, line) for line in KEYS]


@pytest.mark.parametrize(
    ("places", "line"), PLACES, ids=[f"{places.__name__}, {type(line[0]).__name__}" for places, line in PLACES]
)
def test_equal_outputs_keys_and_members_are_read_alike(places, line):
    for other in line[1:]:
        for one, two in zip(places(line[0]), places(other), strict=True):
            assert_alike(one, two)


EQUAL = {id(value): line[place - 1] for line in KEYS for place, value in enumerate(line)}
VALUES = st.sampled_from([0.25, 3, "t", None, *itertools.chain.from_iterable(KEYS)])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.recursive(VALUES, lambda parts: nested(parts) | st.dictionaries(VALUES, parts, max_size=3), max_leaves=6))
def test_nested_equal_outputs_are_read_alike(output):
    assert_alike(output, twin(output, lambda value: EQUAL.get(id(value), value)))


FRAME = pd.DataFrame({"a": [1.5]})
DIFFERENT = [
    ({"a": np.array([1.5, 2.0])}, {"a[0]": 1.5, "a[1]": 2.0}),
    ({"a": 1.5}, FRAME),
    (FRAME.set_axis(["alice"]), FRAME.set_axis(["bob"])),
    (FRAME, pd.concat([FRAME, FRAME], ignore_index=True)),
    (pd.DataFrame({"a": [(1, 2)]}), pd.DataFrame({"a": [1, 2]})),
    (pd.DataFrame({"a": [1.5, 1, 2]}).nlargest(1, "a"), pd.DataFrame({"a": [1, 2, 1.5]}).nlargest(1, "a")),
    (pd.Series([1.5, 2], name="user0"), pd.Series([1.5, 2], name="user1")),
    (pd.Series({1: 1.5}), pd.Series({"1": 1.5})),
    (pd.Series([1.5, 2], index=["a", "a"]), pd.Series({"a": 1.5, "a (2)": 2})),
    (np.array([(1.5,)], dtype=[("a", "f8")]), np.array([(1.5,)], dtype=[("b", "f8")])),
    (Partly("ValueError"), Raised("ValueError")),
    (np.datetime64(5, "ns"), 5),
    (np.timedelta64(5, "ns"), 5),
    (np.datetime64("NaT", "s"), None),
    (pd.array([None], dtype="Int64"), np.array([math.nan])),
    (pd.Series([1.5, None], dtype="Float64"), pd.Series([1.5, math.nan])),
    (pd.Series([2**53 + 1, None], dtype="Int64"), pd.Series([2**53, None], dtype="Int64")),
    (pd.Series({"a": 1, "b": 2}), pd.Series({"b": 2, "a": 1})),
    (np.zeros((0, 1)), np.zeros((0, 2))),
    (Unsorted((1, 2)), (1, 2)),
    (Counter(a=1), Counter(a=1, b=1)),
    (pd.DataFrame({"v": [1, 2]}), pd.DataFrame({"v": [1, 2]}, index=[1, 2])),
    (Decimal("0.1"), 0.1),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_different_outputs_stay_apart(one, other):
    for a, b in ((one, other), ({"a": one}, {"a": other}), ([one, "t"], [other, "t"])):
        for form in (None, form_of([a]), form_of([b])):
            for blocks in ([[a], [b]], [[a, b]]):
                read = [outcome_list(as_outputs(block, len(block), "m", form)) for block in blocks]
                one_key, other_key = map(outcome_key, itertools.chain(*read))
                assert one_key != other_key
