"""Leaks in remainders and fractional parts of numbers that hardly recur; twins without the leak show none."""

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.distinguishers.pilot_split import PilotSplit
from dpaudit.audit.distinguishers.remainder_families import remainder_families
from dpaudit.audit.events.scores import Number

OFTEN, SELDOM = 0.9, 0.1


def parity(often, size, rng):
    return 2 * rng.integers(0, 10**9, size=size) + (rng.random(size) < often)


def modulo_nine(often, size, rng):
    number = rng.integers(10**7, 10**8, size=size)
    return number - number % 9 + np.where(rng.random(size) < often, 0, rng.integers(1, 9, size=size))


def fractional_part(often, size, rng):
    part = 0.5 * rng.random(size)
    return rng.integers(-1_000, 1_000, size=size) + np.where(rng.random(size) < often, part, 0.5 + part)


def parity_of_a_coordinate(often, size, rng):
    return np.stack([rng.normal(size=size), parity(often, size, rng)], axis=1)


class Leak:
    def __init__(self, draw, *, leaks):
        self.draw, self.leaks = draw, leaks

    def sample(self, dataset, size, rng):
        return self.draw(OFTEN if dataset and self.leaks else SELDOM, size, rng)


LEAKS = [parity, modulo_nine, fractional_part, parity_of_a_coordinate]


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("draw", LEAKS)
def test_it_is_found(draw, sequential):
    leak = Leak(draw, leaks=True)
    result = check(leak, 0, 1, claim=PureDP(1.0), runs=20_000, alpha=1e-7, seed=1, jobs=1, sequential=sequential)
    assert result.is_refuted
    assert "modulo" in result.event_in_words or "fractional part" in result.event_in_words


@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize("draw", LEAKS)
def test_its_twin_shows_nothing(draw):
    result = check(Leak(draw, leaks=False), 0, 1, claim=PureDP(1.0), runs=20_000, alpha=1e-7, seed=1, jobs=1)
    assert result.verdict is not Verdict.REFUTED


@pytest.mark.parametrize(
    "values",
    [np.full(1_000, np.nan), np.arange(1_000) % 7, 1e300 * np.arange(1.0, 1_001.0), np.zeros(0)],
    ids=["no number", "few numbers", "beyond whole doubles", "no runs"],
)
def test_other_numbers_have_no_such_events(values):
    assert list(remainder_families(Number(), PilotSplit.in_half(values.astype(float), values.astype(float)))) == []
