"""Copies are found by how often outputs occur: the wealth of each bet has mean at most 1, and copies raise it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.inference.repeat_counts import _FEWER, _MORE, MOST_COPIES, _log_wealth, copies_p_value, gain

RARE = 1e-8


def numbers_of(outputs):
    """How many different outputs occur exactly k times, at place k."""
    times = np.unique(outputs, return_counts=True)[1]
    return np.bincount(times[times <= MOST_COPIES + 1], minlength=MOST_COPIES + 2)


@pytest.mark.parametrize("copies", [2, 3, 7, MOST_COPIES])
def test_the_wealth_of_an_output_has_mean_at_most_one(copies):
    """For a Poisson number of times with any mean; equality for the mean at which the bet is sharp."""
    means = np.geomspace(1e-9, 1e3, 2_000)[:, None, None]
    fewer, same, more = (stats.poisson.pmf(copies + step, means) for step in (-1, 0, 1))
    change = same * (gain(copies) - 1.0) - fewer * _FEWER - more * _MORE
    assert change.max() <= 1e-12
    assert (change.max(axis=0) > -1e-4).all()
    without = same * (gain(copies) - 1.0) - fewer * _FEWER  # the wrong twin: more copies cost nothing
    assert without.max() > 1e-3


@pytest.mark.parametrize("law", [(0.5, 0.5), (0.9, 0.1), (0.25,) * 4, (0.7, 0.1, 0.1, 0.1)])
@pytest.mark.parametrize("runs", [4, 9])
def test_the_mean_wealth_of_a_sample_is_bounded(law, runs):
    """By enumerating all counts: the mean is at most 1 over the probability that a Poisson sample has this size."""
    total = np.zeros((MOST_COPIES - 1, _FEWER.size, _MORE.size))
    mass = 0.0
    for counts in itertools.product(range(runs + 1), repeat=len(law)):
        if sum(counts) == runs:
            chance = float(stats.multinomial.pmf(counts, runs, law))
            numbers = np.bincount(counts, minlength=MOST_COPIES + 2)
            bets = range(2, MOST_COPIES + 1)
            total += chance * np.exp([_log_wealth(numbers[k - 1 : k + 2].astype(float), k) for k in bets])
            mass += chance
    assert mass == pytest.approx(1.0)
    assert total.max() <= 1.0 / stats.poisson.pmf(runs, runs)
    assert 1.0 / stats.poisson.pmf(runs, runs) <= math.sqrt(2 * math.pi * runs) * math.exp(1 / (12 * runs))


@pytest.mark.parametrize("copies", range(2, MOST_COPIES + 1))
def test_copies_of_all_outputs_are_found_and_counted(copies):
    p_value, found = copies_p_value(numbers_of(np.tile(np.arange(60), copies)), 60 * copies)
    assert p_value < RARE
    assert found == copies


def test_few_copies_prove_nothing():
    values = np.concatenate([np.arange(10_000), np.arange(100)])
    assert copies_p_value(numbers_of(values), len(values))[0] == 1.0
    assert copies_p_value(numbers_of([1, 1]), 2)[0] > 0.1


def test_copies_of_a_part_are_found_among_many_outputs():
    values = np.concatenate([np.arange(10_000), np.arange(1_000)])
    assert copies_p_value(numbers_of(values), len(values))[0] < RARE


@pytest.mark.parametrize("mean", [0.01, 0.3, 1.0, 1.5, 2.0, 2.5, 5.0, 12.0])
def test_independent_runs_are_not_accused(mean):
    """Equally likely outputs that occur `mean` times on average, where the bet is sharpest at one of them."""
    rng = np.random.default_rng(7)
    outcomes = 5_000
    for _ in range(5):
        numbers = numbers_of(rng.integers(outcomes, size=int(mean * outcomes)))
        assert copies_p_value(numbers, int(mean * outcomes))[0] > RARE
