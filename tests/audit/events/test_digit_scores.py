"""Scores by how numbers are written, compared with exact arithmetic."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.events.features import MODULUS, last_digits
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import (
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
)

INF, NAN = math.inf, math.nan
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


@pytest.mark.parametrize("divisor", [2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16, 10**9])
def test_last_digits_keep_remainders(divisor):
    assert MODULUS % divisor == 0


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
    place = leaves.names.index("output modulo 720720·10⁹")
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
        "form of the output", "output[1]", "output[1] modulo 720720·10⁹", "output[0]",
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


def test_a_decimal_nan_has_no_last_digits():
    assert math.isnan(last_digits(Decimal("NaN")))


@pytest.mark.parametrize("jobs", [1, 2])
def test_decimal_nans_are_equal(jobs):
    """They compare unequal even to themselves, and their hashes differ between processes."""

    def fair(dataset, rng):
        return Decimal("NaN") if rng.random() < 0.5 else 10**30 + int(rng.integers(5))

    result = check(fair, 0, 1, claim=PureDP(1.0), runs=2_000, jobs=jobs)
    assert result.verdict is Verdict.NOT_REFUTED
    assert not result.findings
