"""Columns and scores compared with their definitions, one output at a time, and read alone or with all others."""

import dataclasses
import enum
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import PureDP, Verdict, check
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
    last_digits,
)
from dpaudit.audit.events.leaves import Summaries, learn_leaves
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.events.scores import (
    Additive,
    Column,
    Decimals,
    DifferentSizes,
    LastDigits,
    LowestBit,
    NegativeZero,
    Number,
    Remainder,
    Residue,
    TrailingZeros,
    Units,
    Weighted,
)


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


def odd_objects():
    return as_outputs(OBJECTS, len(OBJECTS), "m")


ODD = odd_objects()
LEAVES = learn_leaves(ODD, ODD)
RELEASED = np.array([[1.0, -2.0, np.nan], [np.nan, 2.0, np.inf], [np.nan, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("columns", "outputs"),
    [
        (LEAVES, ODD),
        (Conditional(LEAVES, ((1, 2.0, 3), (0, 1.0, 2))), ODD),
        (Products(LEAVES, ((1, 0.5, 2, 0.0),)), ODD),
        (Summaries(), ODD),
        (Coordinates(3), VECTORS),
        (Coordinates(3, differences=True), VECTORS),
        (OrderStatistics(3), VECTORS),
        (Released(3), RELEASED),
        (Parities(Coordinates(3), (((0, 0.0), (1, 0.0)), ((0, 0.0), (1, 1.0), (2, 0.0)))), VECTORS),
        (Statistics(Coordinates(3), (0, 1, 2)), VECTORS),
        (Statistics(LEAVES, (1, 3)), ODD),
        (Coordinates(3), ODD),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_column_alone_is_the_same(columns, outputs):
    matrix = columns.read(outputs)
    assert len(columns.names) == len(matrix)
    for column, values in enumerate(matrix):
        np.testing.assert_array_equal(columns.column(outputs, column), values, err_msg=columns.names[column])


def test_statistics():
    statistics = Statistics(Coordinates(4), (0, 1, 3))
    outputs = np.array([[1.0, -4.0, 9.0, 2.0], [0.0, 3.0, np.nan, np.inf], [1.0, np.nan, 0.0, 1.0]])
    np.testing.assert_array_equal(
        statistics.read(outputs),
        [
            [-1.0, np.inf, np.nan], [math.sqrt(21.0), np.inf, np.nan], [4.0, np.inf, np.nan], [-4.0, 0.0, np.nan],
            [2.0, np.inf, np.nan], [-5.0, 3.0, np.nan], [1.0, np.inf, 0.0], [6.0, np.inf, np.nan],
        ],
    )  # fmt: skip
    assert statistics.names[1] == "Euclidean norm of coordinate 0, coordinate 1, coordinate 3"
    assert statistics.names[-1] == "(coordinate 3 − coordinate 1)"


@pytest.mark.parametrize(("columns", "differences"), [(10, 45), (11, 10)])
def test_every_two_of_a_few_columns_have_a_difference(columns, differences):
    names = Statistics(Coordinates(columns), tuple(range(columns))).names
    assert names[0] == f"sum of {columns} columns"
    assert len(set(names)) == 5 + differences


def test_statistics_do_not_depend_on_the_number_of_runs():
    """Sums along an axis are rounded in another order for one run than for many."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100, 20)) * 10.0 ** rng.integers(-8, 8, (100, 20))
    statistics = Statistics(Coordinates(20), tuple(range(20)))
    alone = np.concatenate([statistics.read(vectors[run : run + 1]) for run in range(100)], axis=1)
    np.testing.assert_array_equal(statistics.read(vectors), alone)


def test_released_numbers():
    read = Released(3).read(np.array([[np.nan, 2.5, 1.0], [np.nan] * 3])).T
    np.testing.assert_array_equal(read, [[2.0, 1.0, 2.0, 1.0, 2.5], [0.0, 3.0, 3.0, np.nan, np.nan]])


def test_summaries():
    found = Summaries().read(odd_objects()).T.tolist()
    assert found[0] == [4.0, 2.0, 0.0, 2.5]
    assert found[5] == [2.0, 2.0, 2.0, 3.0]
    np.testing.assert_array_equal(found[3], [1.0, 0.0, np.nan, np.nan])
    assert Summaries().names[2] == "smallest number in output"


@pytest.mark.usefixtures("without_resolution")
def test_a_number_that_is_released_anywhere():
    """A transcript that ends at a place by chance; where it is long, its smallest number tells the datasets apart."""

    def transcript(is_low, size, rng):
        places, lengths = rng.integers(0, 12, size), rng.integers(12, 20, size)
        numbers = rng.laplace(size=size) - 3.0 * is_low
        return [
            tuple(number if place == at else "below" for place in range(length))
            for at, number, length in zip(places.tolist(), numbers.tolist(), lengths.tolist(), strict=True)
        ]

    result = check(transcript, False, True, claim=PureDP(1.0), runs=3_000, bits=False, jobs=1)
    assert result.bound > 2.0
    assert "number in output" in str(result.event)


# Scores.

INF, NAN = math.inf, math.nan


def objects(*values):
    return np.fromiter(values, dtype=object, count=len(values))


def test_additive_adds_steps_and_ramps():
    score = Additive(Coordinates(2), ((0, 1.0, 1.0, 2.0), (0, 3.0, 5.0, -1.0), (1, 0.0, 0.0, 0.25)), ((1, 10.0),))
    outputs = np.array([[0.0, -1.0], [1.0, 0.0], [4.0, 7.0], [9.0, NAN]])
    assert score.values(outputs).tolist() == [0.0, 2.25, 1.75, 11.0]


def test_differences_are_columns():
    columns = Coordinates(3, differences=True)
    assert columns.read(np.array([[1.0, 4.0, 2.0]])).ravel().tolist() == [1.0, 3.0, -2.0]
    assert columns.names[1] == "(coordinate 1 − coordinate 0)"


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


def test_what_was_not_learned_is_minus_one():
    seen = objects(("a", 1.0), ("b", 2.0))
    leaves = learn_leaves(seen, seen)
    assert leaves.read(objects(("c", 1.0), (1.0, 2.0, 3.0)))[0].tolist()[1] == -1.0
    assert leaves.read(objects(*[("c", 1.0)]))[-1].tolist() == [-1.0]


@pytest.mark.parametrize("outputs", [[(1.0, 2.0)] * 3, [(1.0, 2.0), "a", (3.0,)], ["a", "b", "a"]])
def test_a_block_reads_the_same_whatever_it_was_packed_into(outputs):
    """Equally long tuples become a matrix in one block and objects in another."""
    leaves = learn_leaves(objects(*outputs, None), objects(*outputs))
    packed = leaves.read(as_outputs(outputs, len(outputs), "f"))
    assert np.array_equal(packed, leaves.read(objects(*outputs)), equal_nan=True)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (LowestBit(Number()), "exponent of the lowest set bit of output ≤ 3"),
        (Residue(Weighted((0.0, 1.0)), -4), "coordinate 1 modulo 2^-4 ≤ 3"),
        (Remainder(Number(), 2), "output modulo 2 ≤ 3"),
        (Decimals(Number()), "number of decimals of output ≤ 3"),
        (Remainder(Weighted((0.0, 1.0)), 1), "fractional part of coordinate 1 ≤ 3"),
        (Remainder(Units(Number(), 2), 10), "(100·output) modulo 10 ≤ 3"),
        (TrailingZeros(LastDigits(1)), "number of zeros at the end of coordinate 1 ≤ 3"),
        (NegativeZero(Number()), "output is any number but −0.0 or −0.0"),
        (DifferentSizes(4), "number of different sizes among 4 coordinates ≤ 3"),
        (Column(Coordinates(3, differences=True), 2), "(coordinate 2 − coordinate 1) ≤ 3"),
        (Additive(Coordinates(2), ((1, 0.0, 1.0, 5.0), (0, 0.0, 1.0, -1.0))), "score(coordinate 1, coordinate 0) ≤ 3"),
        (
            Additive(Coordinates(9), tuple((i, 0.0, 0.0, 9.0 - i) for i in range(9))),
            "score(coordinate 0, coordinate 1, coordinate 2, … 9 in all) ≤ 3",
        ),
    ],
)
def test_words(score, words):
    assert str(Scored(score, Intervals(((-INF, 3.0),)))) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [(Decimal("1.5"), 1.5), (Decimal(2**60 + 1), 2**60 + 1), ({1: 0.5}, {True: 0.5}), ({2: 0.5}, {2.0: 0.5})],
)
def test_equal_outputs_are_read_alike_whatever_comes_before_them(one, other):
    one, other = as_outputs([one, other, "z"], 3, "f")[:2]
    assert one == other
    leaves = learn_leaves(objects(one, other, "z"), objects(other, one, "z"))
    read = [leaves.read(objects(*block)) for block in ((one, other, "z"), (other, one, "z"), (other, "z"))]
    for columns in read:
        assert np.array_equal(columns[:, 0], read[0][:, 1], equal_nan=True)


def test_an_event_of_all_but_a_form_names_that_form():
    def fails(answer, rng):
        return "down" if answer and rng.random() < 0.5 else answer + rng.laplace()

    outputs = [[fails(answer, np.random.default_rng(seed)) for seed in range(40)] for answer in (0, 1)]
    leaves = learn_leaves(*(as_outputs(side, 40, "m") for side in outputs))
    column = Column(leaves, 0)
    codes = leaves.codes(0)
    text, number = codes.index("a value such as 'down'"), codes.index("a number")
    alone = Intervals(((float(number), float(number)),))
    assert str(Scored(column, alone)) == "output is a number"
    rest = Intervals(((-math.inf, text - 0.5), (text + 0.5, math.inf)))
    assert str(Scored(column, rest)) == "output is not a value such as 'down'"
    both = Intervals(((-math.inf, -0.5),))
    assert str(Scored(column, both)).startswith("output is neither ")


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([None, 1.5], "a value such as None"), ([None, "a", b"b", 1.5], "a value such as None or 'a'"),
        ([NAN, 1.5, 2], "a number"), ([(None, 1.5), 1.5], "a tuple of 2 (a value such as None, a number)"),
        ([Raised("ValueError"), None], "a value such as None"), ([1.5, Raised("ValueError")], "an exception"),
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


def test_leaves_without_examples_are_named_all_the_same():
    leaves = dataclasses.replace(learn_leaves(objects(None, 1.5), objects(None, 1.5)), coded=())
    assert leaves.codes(0) == ["a value that is not a number", "a number"]


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


def test_a_fractional_part_is_below_one():
    parts = Remainder(Number(), 1).values(np.array([-1e-300, -0.25, 2.5, 3.0, NAN, INF]))
    np.testing.assert_array_equal(parts, [0.0, 0.75, 0.5, 0.0, NAN, NAN])


@given(st.integers(-(10**8), 10**8), st.integers(0, 9))
@settings(derandomize=True, deadline=None)
def test_decimals_are_those_that_are_printed(units, decimals):
    number = float(f"{units}e-{decimals}")
    printed = f"{Decimal(units).scaleb(-decimals):f}"
    expected = len(printed.rstrip("0").partition(".")[2]) if "." in printed else 0
    near = number * (1.0 + np.array([-1e-15, 0.0, 1e-15]))
    assert Decimals(Number()).values(near).tolist() == [expected] * 3


def test_decimals_of_noise_are_many():
    noise = np.random.default_rng(0).laplace(size=100_000)
    for scale in (1e-3, 1.0, 1e3, 1e15):
        assert np.mean(Decimals(Number()).values(scale * noise) < 10) < 1e-3


def test_bits_of_what_is_no_number():
    strange = np.array([NAN, INF, -INF])
    assert np.isnan(LowestBit(Number()).values(strange)).all()
    assert np.isnan(Residue(Number(), -3).values(strange)).all()
    assert np.isnan(Number().values(np.zeros((3, 2)))).all()


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


def test_last_digits_keep_remainders():
    assert [MODULUS % divisor for divisor in (*range(2, 14), 16, 10**9)] == [0] * 14


def test_last_digits_of_vectors_and_of_other_outputs():
    big = 2**60 + 1
    ints, objects = as_outputs([(0, big)], 1, "f"), as_outputs([(0, 2**70), (0,), "a"], 3, "f")
    assert LastDigits(1).values(ints).tolist() == [float(big % MODULUS)]
    assert LastDigits(0).values(ints).tolist() == [0.0]
    np.testing.assert_array_equal(LastDigits(1).values(objects), [float(2**70 % MODULUS), NAN, NAN])
    np.testing.assert_array_equal(LastDigits().values(np.array([-1.0, 0.5, NAN, INF])), [MODULUS - 1.0, NAN, NAN, NAN])
    assert np.isnan(LastDigits().values(ints)).all()
    assert np.isnan(LastDigits(0).values(np.arange(3))).all()


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


def test_leaves_read_last_digits_where_some_integers_are_beyond_the_doubles():
    big = 2**60 + 1
    large, small = (as_outputs([("a", number), ("b", number)], 2, "f") for number in (big, 7))
    assert learn_leaves(large, small).names == (
        "form of the output", "output[1]", "output[1] (last digits)", "output[0]",
    )  # fmt: skip
    assert learn_leaves(large, small).read(large)[2].tolist() == [float(big % MODULUS)] * 2
    assert learn_leaves(small, small).names == ("form of the output", "output[1]", "output[0]")


@given(st.integers(-(10**14), 10**14))
@settings(derandomize=True, deadline=None)
def test_zeros_at_the_end_are_those_that_are_printed(number):
    printed = str(number)
    expected = min(len(printed) - len(printed.rstrip("0")), 10) if number else 10
    assert TrailingZeros(Number()).values(np.array([float(number)])).tolist() == [expected]


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
@settings(derandomize=True, deadline=None)
def test_units_count_the_last_decimal(units, decimals):
    number = float(f"{units}e-{decimals}")
    assert Units(Number(), decimals).values(np.array([number])).tolist() == [units]


def test_the_sign_of_zero():
    numbers = np.array([0.0, -0.0, -1.0, NAN, -INF])
    np.testing.assert_array_equal(NegativeZero(Number()).values(numbers), [0.0, 1.0, 0.0, NAN, 0.0])


def test_sizes_that_coincide():
    vectors = np.array([[1.0, -1.0, 2.0], [0.0, -0.0, 0.0], [3.0, 2.0, 1.0], [1.0, NAN, 1.0]])
    np.testing.assert_array_equal(DifferentSizes(3).values(vectors), [2.0, 1.0, 3.0, NAN])
    assert np.isnan(DifferentSizes(2).values(vectors)).all()


@pytest.mark.parametrize(("number", "digits"), [(Decimal("NaN"), NAN), (0.5, NAN), (3 + Fraction(1, 10**30), 1e-30)])
def test_last_digits_of_what_is_not_whole(number, digits):
    assert last_digits(number) == pytest.approx(digits, rel=0.0, abs=0.0, nan_ok=True)


def test_decimal_nans_are_equal():
    """They compare unequal even to themselves, and their hashes differ between processes."""

    def fair(dataset, rng):
        return Decimal("NaN") if rng.random() < 0.5 else 10**30 + int(rng.integers(5))

    result = check(fair, 0, 1, claim=PureDP(1.0), runs=2_000, jobs=2)
    assert result.verdict is Verdict.NOT_REFUTED
    assert not result.findings


def test_columns_are_those_of_the_definition():
    parities = Parities(Coordinates(3), (((0, 0.0), (1, 0.0), (2, 1.0)), ((0, 0.0), (2, 0.5))))
    outputs = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 0.0]])
    np.testing.assert_array_equal(parities.read(outputs), [[1, 0, np.nan], [0, 0, 1]])
    many = Parities(Coordinates(9), (tuple((place, 0.0) for place in range(9)),))
    assert many.names[0].endswith("[coordinate 5 ≥ 0] + … 9 in all")
    products = Products(Coordinates(3), ((0, 1.0, 2, -1.0), (1, 0.0, 2, 0.0)))
    np.testing.assert_array_equal(
        products.read(np.array([[2.0, 3.0, 4.0], [0.0, np.nan, 1.0]])), [[5, -2], [12, np.nan]]
    )
    assert products.names == ("(coordinate 0 − 1)·(coordinate 2 − -1)", "(coordinate 1 − 0)·(coordinate 2 − 0)")
    ordered, outputs = OrderStatistics(3), np.array([[3.0, 1.0, 2.0], [5.0, np.nan, 1.0]])
    np.testing.assert_array_equal(ordered.read(outputs), [[1, 1], [2, 5], [3, np.nan], [1, 4], [1, np.nan]])
    assert len(ordered.names) == 5
    long = OrderStatistics(100, (0, 50, 99))
    outputs = np.random.default_rng(0).permuted(np.tile(np.arange(100.0) ** 2, (3, 1)), axis=1)
    assert long.read(outputs)[:, 0].tolist() == [0.0, 2500.0, 9801.0, 99.0, 197.0]
    assert long.names[-1] == "(sorted coordinate 99 − sorted coordinate 98)"


def test_columns_where_another_has_a_value():
    leaves = learn_leaves(*[as_outputs([("a", 1.0), ("b", 2.0), ("a", 3.0)], 3, "m")] * 2)
    read, key = 1, leaves.names.index("output[0]")
    columns = Conditional(leaves, ((key, float(leaves.coded[0][1].index("b")), read), (key, -1.0, read)))
    assert columns.names == ("(output[1] where output[0] = 'b')", "(output[1] where output[0] = anything else)")
    outputs = as_outputs([("b", 5.0), ("a", 6.0), ("c", 7.0), "b"], 4, "m")
    np.testing.assert_array_equal(columns.read(outputs), [[5.0, np.nan, np.nan, np.nan], [np.nan, np.nan, 7.0, np.nan]])
