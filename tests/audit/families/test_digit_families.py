"""Leaks in how a number is written that values hardly show; twins without the leak show none."""

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.events.scores import Number
from dpaudit.audit.families.digit_families import remainder_families
from dpaudit.audit.families.pilot_split import PilotSplit

OFTEN, SELDOM = 0.9, 0.1


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


class Leak:
    def __init__(self, draw, *, leaks):
        self.draw, self.leaks = draw, leaks

    def sample(self, dataset, size, rng):
        often = OFTEN if dataset and self.leaks else SELDOM
        if self.draw is parity_in_a_tuple:
            return [self.draw(often, rng) for _ in range(size)]
        return self.draw(often, size, rng)


LEAKS = [
    parity, modulo_nine, fractional_part, rounded, parity_of_a_coordinate, parity_beyond_the_doubles, parity_in_a_tuple,
    rounded_to_thousands, last_decimal, equal_coordinates,
]  # fmt: skip
WORDS = ("modulo", "fractional part", "decimals", "zeros at the end", "different sizes")


@pytest.mark.usefixtures("without_resolution", "learned_seldom", "without_trees")
@pytest.mark.parametrize(
    ("draw", "sequential"), [*((draw, False) for draw in LEAKS), *((draw, True) for draw in LEAKS[:4])]
)
def test_it_is_found(draw, sequential):
    leak = Leak(draw, leaks=True)
    result = check(leak, 0, 1, claim=PureDP(1.0), runs=2_500, alpha=1e-7, seed=1, jobs=1, sequential=sequential)
    assert result.is_refuted
    assert any(word in result.event_in_words for word in WORDS)


@pytest.mark.usefixtures("without_resolution", "without_trees")
@pytest.mark.parametrize("draw", LEAKS)
def test_its_twin_shows_nothing(draw):
    result = check(Leak(draw, leaks=False), 0, 1, claim=PureDP(0.0), runs=1_250, alpha=1e-7, seed=1, jobs=1)
    assert result.verdict is not Verdict.REFUTED


@pytest.mark.parametrize(
    "values",
    [np.full(1_000, np.nan), np.arange(1_000) % 7, 1e300 * np.arange(1.0, 1_001.0), np.zeros(0)],
    ids=["no number", "few numbers", "beyond whole doubles", "no runs"],
)
def test_other_numbers_have_no_such_events(values):
    assert list(remainder_families(Number(), PilotSplit.in_half(values.astype(float), values.astype(float)))) == []


@pytest.mark.usefixtures("without_resolution", "learned_seldom", "without_trees")
@pytest.mark.parametrize("sequential", [False, True])
def test_numbers_that_are_printed_are_read(sequential):
    """Alone, in a tuple beside another text, and as the value of a dictionary."""

    def text(answer, rng):
        return f"{answer + rng.laplace(scale=0.02):.6f}"  # nearly always with the same first character

    for mechanism in (text, lambda d, rng: (text(d, rng), "ok"), lambda d, rng: {"mean": text(d, rng)}):
        result = check(mechanism, 5.50, 5.54, claim=PureDP(1.0), runs=1_500, alpha=1e-6, jobs=1, sequential=sequential)
        assert result.is_refuted
        assert "float(output" in result.event_in_words
