"""Events by values that recur among others that do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.events.scores import Number
from dpaudit.audit.families.number_families import recurring_values
from dpaudit.audit.families.pilot_split import PilotSplit

N = 4_000


def in_half(x, y):
    return PilotSplit.in_half(x, y).ordered


def with_zeros(share, seed, rest=lambda rng: rng.normal(size=N)):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(N) < share, 0.0, rest(rng))


def test_a_value_that_recurs_among_others_is_an_event():
    x, y = with_zeros(0.12, 1), with_zeros(0.1, 2)
    (family,) = recurring_values(Number(), in_half(x, y))
    assert family.runs == N
    assert (family.hits_x[0], family.hits_y[0]) == ((x == 0.0).sum(), (y == 0.0).sum())
    inside, outside = family.build(0, True), family.build(0, False)
    assert inside.contains(x).sum() == (x == 0.0).sum()
    assert outside.contains(x).sum() == (x != 0.0).sum()


def test_the_complement_of_a_value_has_what_is_no_number():
    x, y = with_zeros(0.12, 1), with_zeros(0.1, 2)
    x[:50] = math.nan
    (family,) = recurring_values(Number(), in_half(x, y))
    assert family.build(0, False).contains(x).sum() == (x != 0.0).sum()


def digits(rng):
    return rng.integers(0, 9, N).astype(np.float64)


@pytest.mark.parametrize("draw", [lambda rng: rng.normal(size=N), digits, lambda rng: np.full(N, 7.0)])
def test_there_is_none_where_all_values_recur_or_none_does(draw):
    x, y = (draw(np.random.default_rng(seed)) for seed in (3, 4))
    assert list(recurring_values(Number(), in_half(x, y))) == []


def test_a_coordinate_that_is_zero_more_often_is_found():
    """By twelve standard errors of all runs, and yet by few in the pilots with these seeds."""

    def released(share, size, rng):
        noise = rng.normal(size=(size, 2))
        noise[rng.random(size) < share, 1] = 0.0
        return noise

    for seed in (1, 8, 9):
        assert check(released, 0.11667, 0.1, claim=PureDP(0.0), runs=100_000, seed=seed, bits=False).is_refuted
