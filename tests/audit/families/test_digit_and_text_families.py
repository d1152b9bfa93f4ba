"""Leaks in how a number, a text or a date is written, which values hardly show; twins without the leak show none."""

import datetime
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Number
from dpaudit.audit.families.digit_families import remainder_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.inference.boundary_test import Counts, p_value


def parity(often, size, rng):
    return 2 * rng.integers(0, 10**9, size=size) + (rng.random(size) < often)


def modulo_nine(often, size, rng):
    number = rng.integers(10**7, 10**8, size=size)
    return number - number % 9 + np.where(rng.random(size) < often, 0, rng.integers(1, 9, size=size))


def fractional_part(often, size, rng):
    part = 0.5 * rng.random(size)
    return rng.integers(-1_000, 1_000, size=size) + np.where(rng.random(size) < often, part, 0.5 + part)


def rounded(often, size, rng):
    noise = rng.laplace(size=size)
    return np.where(rng.random(size) < often, noise.round(6), noise)


def parity_beyond_the_doubles(often, size, rng):
    return 2**60 + parity(often, size, rng)


def parity_in_a_tuple(often, rng):
    return "id", 2**70 + int(parity(often, 1, rng)[0])


def rounded_to_thousands(often, size, rng):
    number = rng.integers(10**9, 10**10, size=size)
    return np.where(rng.random(size) < often, number // 1_000 * 1_000, number)


def last_decimal(often, size, rng):
    digit = np.where(rng.random(size) < often, 7, rng.integers(0, 10, size=size))
    return (np.floor(1e4 * rng.laplace(size=size)) / 100 + digit / 1_000).round(3)


def equal_coordinates(often, size, rng):
    vectors = rng.laplace(size=(size, 4))
    vectors[:, 3] = np.where(rng.random(size) < often, -vectors[:, 1], vectors[:, 3])
    return vectors


def parity_of_a_coordinate(often, size, rng):
    return np.stack([rng.normal(size=size), parity(often, size, rng)], axis=1)


def optional_field(often, rng):
    counts = {"sum": round(1_000 + rng.laplace(scale=50.0), 3), "n": int(rng.integers(80, 120))}
    return json.dumps(counts | ({"retries": 1} if rng.random() < often else {}))


def word(often, rng):
    near = "about" if rng.random() < often else "near"
    return f"The mean age is {near} {40.0 + rng.laplace():.6f}."


def trailing_space(often, rng):
    return f"n={100.0 + rng.laplace():.6f}" + " " * (rng.random() < often)


def prefix(often, rng):
    return "00" * (rng.random() < often) + rng.bytes(8).hex()


def number_in_a_sentence(often, rng):
    return f"Of {rng.integers(10**6)} people, {rng.laplace() + (20.0 if rng.random() < often else 0.0):.6f} say yes."


def first_byte(often, rng):
    return bytes([255 if rng.random() < often else int(rng.integers(250))]) + rng.bytes(8)


def midnight(often, rng):
    day = datetime.datetime(2024, 1, 1)
    return day if rng.random() < often else day + datetime.timedelta(seconds=float(86_400 * rng.random()))


def word_beside_a_number(often, rng):
    return rng.laplace(), word(often, rng)


NUMBERS = [
    parity, modulo_nine, fractional_part, rounded, parity_of_a_coordinate, parity_beyond_the_doubles,
    rounded_to_thousands, last_decimal, equal_coordinates,
]  # fmt: skip
TEXTS = [
    parity_in_a_tuple, optional_field, word, trailing_space, prefix, number_in_a_sentence, first_byte, midnight,
    word_beside_a_number,
]  # fmt: skip
WORDS = (
    "modulo", "fractional part", "decimals", "zeros at the end", "different sizes",
    "count of '", "template (", "start of", "end of", "2nd number in", "character in", "length of",
)  # fmt: skip


def outputs_of(draw, often, size, rng):
    if draw in NUMBERS:
        return draw(often, size, rng)
    return as_outputs([draw(often, rng) for _ in range(size)], size, "m")


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize("draw", NUMBERS + TEXTS)
def test_a_leak_is_found_and_its_twin_shows_nothing(draw):
    """Fresh runs refute 1-DP by the event of a pilot; without the leak, they do not refute 0-DP."""
    for often, claim, alpha in ((0.6, PureDP(1.0), 1e-6), (0.03, PureDP(0.0), 1e-7)):
        rng = np.random.default_rng(1)
        (pilot_x, x), (pilot_y, y) = ([outputs_of(draw, p, 600, rng) for _ in range(2)] for p in (often, 0.03))
        choice = choose_event(PilotSplit.in_half(pilot_x, pilot_y), claim, 600, alpha)
        counts = Counts(hits_x=choice.event.count(x), runs_x=600, hits_y=choice.event.count(y), runs_y=600)
        found = p_value(counts if choice.likelier_on == "x" else counts.swapped(), claim, alpha=alpha)
        assert (found <= alpha) is (often == 0.6)
        assert often == 0.03 or any(each in str(choice.event) for each in WORDS)


@pytest.mark.usefixtures("learned_seldom")
@pytest.mark.parametrize("draw", [parity, optional_field])
def test_it_is_found_by_sequential_audits(draw):
    def leak(dataset, size, rng):
        return list(outputs_of(draw, 0.6 if dataset else 0.03, size, rng))

    result = check(leak, 0, 1, claim=PureDP(1.0), runs=1_200, alpha=1e-6, seed=1, jobs=1, sequential=True)
    assert result.is_refuted
    assert any(each in result.event_in_words for each in WORDS)


@pytest.mark.parametrize(
    "values",
    [np.full(1_000, np.nan), np.arange(1_000) % 7, 1e300 * np.arange(1.0, 1_001.0), np.zeros(0)],
    ids=["no number", "few numbers", "beyond whole doubles", "no runs"],
)
def test_other_numbers_have_no_such_events(values):
    assert list(remainder_families(Number(), PilotSplit.in_half(values.astype(float), values.astype(float)))) == []


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(
    ("within", "sequential"),
    [(lambda text: text, True), (lambda text: (text, "ok"), False), (lambda text: {"mean": text}, False)],
    ids=["alone", "in a tuple", "in a dictionary"],
)
def test_numbers_that_are_printed_are_read(within, sequential):
    def text(answer, rng):
        return within(f"{answer + rng.laplace(scale=0.02):.6f}")  # nearly always with the same first character

    result = check(text, 5.50, 5.54, claim=PureDP(1.0), runs=1_500, alpha=1e-6, jobs=1, sequential=sequential)
    assert result.is_refuted
    assert sequential or "float(output" in result.event_in_words


def _decimal(data, rng):
    return Decimal(int(rng.integers(10**6))) + Decimal(data) / Decimal(10**20)


def _fraction(data, rng):
    return Fraction(int(rng.integers(10**6)) * 10**25 + data, 10**25)


def _long_double(data, rng):
    return np.longdouble(int(rng.integers(1, 10**6))) + np.longdouble(data) * np.longdouble(2) ** -40


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(
    "sampler",
    [
        _decimal,
        _long_double,
        pytest.param(lambda data, rng: (_decimal(data, rng), "a"), id="part of a tuple"),
        pytest.param(lambda data, rng: (_fraction(data, rng), 1), id="coordinate of a vector"),
        pytest.param(
            lambda data, size, rng: np.array([_long_double(data, rng) for _ in range(size)]), id="block of long doubles"
        ),
    ],
)
def test_digits_beyond_those_of_a_double_are_read(sampler):
    """Doubles of all these numbers are the same on both datasets."""
    assert check(sampler, 0, 1, claim=PureDP(1.0), runs=1_000, alpha=1e-6, seed=1, bits=False, jobs=1).is_refuted
