"""Columns and scores compared with their definitions, one output at a time, and read alone or with all others."""

import enum
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit.audit.events.events import Intervals, Scored
from dpaudit.audit.events.features import (
    MODULUS,
    Conditional,
    Coordinates,
    OrderStatistics,
    Parities,
    Products,
    Released,
    Statistics,
)
from dpaudit.audit.events.leaves import Summaries, learn_leaves
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.events.scores import Additive, Column, Decimals, LastDigits, LowestBit, Number, Remainder, Residue


class Answer(enum.Enum):
    ABOVE = 1
    BELOW = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


OBJECTS = [
    (Answer.ABOVE, 2.5, ("a", -0.0)), (Answer.BELOW, float("nan"), ("b", 7)), (Answer.BELOW, 2**60, ("3.5", 7, 8)),
    (Answer.ABOVE,), (Level.LOW, "2.5", None), {"count": 2.0, "sum": {"total": 3}}, {"count": "a"}, 1.5, "1.5", None,
    frozenset("ab"), (), ((1.0, 2.0), Answer.ABOVE),
]  # fmt: skip
VECTORS = np.array([[1.0, -2.0, np.nan], [0.5, 2.0, np.inf], [-1.0, 3.0, 0.0]])


ODD = as_outputs(OBJECTS, len(OBJECTS), "m")
LEAVES = learn_leaves(ODD, ODD)


@pytest.mark.parametrize(
    ("columns", "outputs"),
    [
        (Conditional(LEAVES, ((1, 2.0, 3), (0, 1.0, 2))), ODD),
        (Products(LEAVES, ((1, 0.5, 2, 0.0),)), ODD),
        (Parities(Coordinates(3), (((0, 0.0), (1, 0.0)), ((0, 0.0), (1, 1.0), (2, 0.0)))), VECTORS),
        (Statistics(Coordinates(3), (0, 1, 2)), VECTORS),
        (Coordinates(3, differences=True), ODD),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_score_is_one_of_the_columns(columns, outputs):
    matrix = columns.read(outputs)
    assert len(columns.names) == len(matrix)
    for column, values in enumerate(matrix):
        np.testing.assert_array_equal(Column(columns, column).values(outputs), values, err_msg=columns.names[column])


# Scores.

INF, NAN = math.inf, math.nan


def objects(*values):
    return np.fromiter(values, dtype=object, count=len(values))


def test_additive_adds_steps_and_ramps():
    score = Additive(Coordinates(2), ((0, 1.0, 1.0, 2.0), (0, 3.0, 5.0, -1.0), (1, 0.0, 0.0, 0.25)), ((1, 10.0),))
    outputs = np.array([[0.0, -1.0], [1.0, 0.0], [4.0, 7.0], [9.0, NAN]])
    assert score.values(outputs).tolist() == [0.0, 2.25, 1.75, 11.0]


def test_leaves_of_unlike_outputs():
    outputs = objects((1.5, "a"), (2.5, Answer.ABOVE), (1.0,), None, Raised("ValueError"), ((3.0, None), "a"))
    leaves = learn_leaves(outputs, outputs)
    assert leaves.names == ("form of the output", "output[0]", "output[0][0]", "output", "output[0][1]", "output[1]")
    read = leaves.read(outputs)
    columns = dict(zip(leaves.names, read, strict=True))
    assert np.array_equal(columns["output[0]"], [1.5, 2.5, 1.0, NAN, NAN, NAN], equal_nan=True)
    assert np.array_equal(columns["output[0][0]"], [NAN, NAN, NAN, NAN, NAN, 3.0], equal_nan=True)
    build = columns["form of the output"]
    assert build[0] == build[1], "a string and an Enum have the same form"
    assert len(set(build.tolist())) == 5
    assert leaves.codes(0)[int(build[4])] == "an exception"
    assert columns["output"][3] != columns["output"][4]
    assert leaves.kinds == [0, 4, 5]
    is_a = Scored(Column(leaves, 5), Intervals(((0.0, 0.0),)))
    assert is_a.contains(outputs).tolist() == [True, False, False, False, False, True]
    assert str(is_a) == "output[1] is 'a'"
    code = leaves.builds.index((True, False))
    is_pair = Scored(Column(leaves, 0), Intervals(((code, code),)))
    assert str(is_pair) == "output is a tuple of 2 (a number, a value such as 'a' or Answer.ABOVE)"


@pytest.mark.parametrize("outputs", [[(1.0, 2.0)] * 3, [(1.0, 2.0), "a", (3.0,)], ["a", "b", "a"]])
def test_a_block_reads_the_same_whatever_it_was_packed_into(outputs):
    """Equally long tuples become a matrix in one block and objects in another."""
    leaves = learn_leaves(objects(*outputs, None), objects(*outputs))
    packed = leaves.read(as_outputs(outputs, len(outputs), "f"))
    assert np.array_equal(packed, leaves.read(objects(*outputs)), equal_nan=True)


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([None, 1.5], "a value such as None"), ([None, "a", b"b", 1.5], "a value such as None or 'a'"),
        ([(None, 1.5), 1.5], "a tuple of 2 (a value such as None, a number)"),
        ([1.5, Raised("ValueError")], "an exception"),
    ],
)  # fmt: skip
def test_forms_are_told_by_examples(outputs, words):
    """Not by "not a number", which readers take for NaN, a number here."""
    held = objects(*outputs)
    leaves = learn_leaves(held, held)
    assert words in leaves.codes(0)
    code = float(leaves.codes(0).index(words))
    others = Intervals(((-math.inf, code - 0.5), (code + 0.5, math.inf)))
    assert str(Scored(Column(leaves, 0), Intervals(((code, code),)))) == f"output is {words}"
    assert str(Scored(Column(leaves, 0), others)) == f"output is not {words}"


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@given(DOUBLES)
@settings(derandomize=True, deadline=None)
def test_lowest_bit_is_the_largest_power_of_two_that_divides(number):
    exponent = LowestBit(Number()).values(np.array([number]))[0]
    numerator, denominator = number.as_integer_ratio()
    if number == 0:
        assert exponent == 1024
    else:  # an odd multiple of 2ᵏ
        power = (numerator & -numerator).bit_length() - 1 - (denominator.bit_length() - 1)
        assert exponent == power


@given(st.integers(-(2**40), 2**40), st.integers(-30, 10))
@settings(derandomize=True, deadline=None)
def test_residue_is_exact(numerator, exponent):
    number = numerator * 2.0**-20
    step = 2.0**exponent
    assert Residue(Number(), exponent).values(np.array([number]))[0] == number - math.floor(number / step) * step


@given(st.integers(-(2**53), 2**53), st.integers(2, 16))
@settings(derandomize=True, deadline=None)
def test_remainder_is_exact(number, divisor):
    assert Remainder(Number(), divisor).values(np.array([float(number)]))[0] == number % divisor


@given(st.integers(-(10**8), 10**8), st.integers(0, 9))
@settings(derandomize=True, deadline=None)
def test_decimals_are_those_that_are_printed(units, decimals):
    number = float(f"{units}e-{decimals}")
    printed = f"{Decimal(units).scaleb(-decimals):f}"
    expected = len(printed.rstrip("0").partition(".")[2]) if "." in printed else 0
    near = number * (1.0 + np.array([-1e-15, 0.0, 1e-15]))
    assert Decimals(Number()).values(near).tolist() == [expected] * 3


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64, object])
@given(number=st.integers(-(2**63), 2**64 - 1))
@example(number=2**63)
@settings(derandomize=True, deadline=None)
def test_last_digits_are_exact(kind, number):
    if kind is np.int64 and number >= 2**63:
        number -= 2**64
    if kind is np.uint64:
        number = abs(number)
    held = np.fromiter([number], dtype=object, count=1) if kind in (int, object) else np.array([number], dtype=kind)
    assert LastDigits().values(held).tolist() == [float(number % MODULUS)]
    assert MODULUS < 2**53


def test_equal_numbers_have_equal_last_digits_however_they_are_packed():
    """A block of small numbers and fractions is packed as doubles, one with a large integer as objects."""
    big, values = 2**60 + 1, [1, 1.0, True, 0.5, 3.0, 2**60, 2.0**60]
    leaves = learn_leaves(as_outputs([big, 0.5], 2, "f"), as_outputs([big, None], 2, "f"))
    place = leaves.names.index("output (last digits)")
    expected = [1.0, 1.0, 1.0, NAN, 3.0, 2**60 % MODULUS, 2**60 % MODULUS]
    for block in (values, [*values, None], [*reversed(values), big]):
        read = leaves.read(as_outputs(block, len(block), "f"))[place]
        wanted = [
            expected[values.index(value)] if value in values else NAN if value is None else big % MODULUS
            for value in block
        ]
        np.testing.assert_array_equal(read, wanted)
    np.testing.assert_array_equal([leaves.read(as_outputs([value], 1, "f"))[place][0] for value in values], expected)


NAN3 = [NAN] * 3
PARITIES = Parities(Coordinates(3), (((0, 0.0), (1, 0.0), (2, 1.0)), ((0, 0.0), (2, 0.5))))
DEFINITIONS = [  # columns, outputs, what is read of each output, and names of the columns
    (
        Statistics(Coordinates(4), (0, 1, 3)),
        [[1.0, -4.0, 9.0, 2.0], [0.0, 3.0, NAN, INF], [1.0, NAN, 0.0, 1.0]],
        [[-1, math.sqrt(21.0), 4, -4, 2, -5, 1, 6], [INF, INF, INF, 0, INF, 3, INF, INF], [*NAN3, *NAN3, 0, NAN]],
        {1: "Euclidean norm of coordinate 0, coordinate 1, coordinate 3", -1: "(coordinate 3 − coordinate 1)"},
    ),
    (Released(3), [[NAN, 2.5, 1.0], NAN3], [[2, 1, 2, 1, 2.5], [0, 3, 3, NAN, NAN]], {3: "smallest number in output"}),
    (
        Summaries(), [OBJECTS[0], OBJECTS[5], OBJECTS[3]], [[4, 2, 0, 2.5], [2, 2, 2, 3], [1, 0, NAN, NAN]],
        {2: "smallest number in output"},
    ),
    (PARITIES, [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, NAN, 0.0]], [[1, 0], [0, 0], [NAN, 1]], {}),
    (
        Parities(Coordinates(9), (tuple((place, 0.0) for place in range(9)),)), [[1.0] * 9], [[1]],
        {0: "parity of " + " + ".join(f"[coordinate {place} ≥ 0]" for place in range(6)) + " + … 9 in all"},
    ),
    (
        Products(Coordinates(3), ((0, 1.0, 2, -1.0), (1, 0.0, 2, 0.0))), [[2.0, 3.0, 4.0], [0.0, NAN, 1.0]],
        [[5, 12], [-2, NAN]],
        {0: "(coordinate 0 − 1)·(coordinate 2 − -1)", 1: "(coordinate 1 − 0)·(coordinate 2 − 0)"},
    ),
    (OrderStatistics(3), [[3.0, 1.0, 2.0], [5.0, NAN, 1.0]], [[1, 2, 3, 1, 1], [1, 5, NAN, 4, NAN]], {}),
    (
        OrderStatistics(100, (0, 50, 99)),
        np.random.default_rng(0).permuted(np.arange(100.0) ** 2)[None],
        [[0.0, 2500.0, 9801.0, 99.0, 197.0]],
        {-1: "(sorted coordinate 99 − sorted coordinate 98)"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "outputs", "expected", "names"), DEFINITIONS)
def test_columns_are_those_of_the_definition(columns, outputs, expected, names):
    rows = as_outputs(outputs, len(outputs), "m") if isinstance(columns, Summaries) else np.array(outputs)
    np.testing.assert_array_equal(columns.read(rows).T, expected)
    assert len(columns.names) == len(expected[0])
    assert all(columns.names[place] == name for place, name in names.items())


def test_columns_where_another_has_a_value():
    leaves = learn_leaves(*[as_outputs([("a", 1.0), ("b", 2.0), ("a", 3.0)], 3, "m")] * 2)
    read, key = 1, leaves.names.index("output[0]")
    columns = Conditional(leaves, ((key, float(leaves.coded[0][1].index("b")), read), (key, -1.0, read)))
    assert columns.names == ("(output[1] where output[0] = 'b')", "(output[1] where output[0] = anything else)")
    outputs = as_outputs([("b", 5.0), ("a", 6.0), ("c", 7.0), "b"], 4, "m")
    np.testing.assert_array_equal(columns.read(outputs), [[5.0, np.nan, np.nan, np.nan], [np.nan, np.nan, 7.0, np.nan]])
