"""The excess that guesses detect: the power of the exact test at it, and the runs of a test of one direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import GaussianDP, PureDP
from dpaudit.audit.inference.guess_test import Guesses, guess_test
from dpaudit.audit.power.guess_test_power import equivalent_runs, guess_resolution


@pytest.mark.parametrize(("right", "wrong"), [(0.5, 0.184), (0.03, 0.011), (0.73, 0.27)])
def test_the_stated_excess_is_found_as_often_as_stated(right, wrong):
    """Power of the exact test at the stated excess, summed over all counts, for .9."""
    runs = 3_000
    guesses = Guesses(right=round(right * runs), wrong=round(wrong * runs), runs=runs)
    excess = guess_resolution(PureDP(1.0), guesses, alpha=0.01, power=0.9)
    share = 1.0 / (1.0 + math.exp(-1.0 - excess))
    made = round((guesses.right + 0.5) / share)
    numbers = np.arange(made + 1)
    found = [
        guess_test(Guesses(right=k, wrong=made - k, runs=runs), PureDP(1.0), alpha=0.01)[0] <= 0.01 for k in numbers
    ]
    assert stats.binom.pmf(numbers, made, share)[found].sum() == pytest.approx(0.9, abs=0.03)
    assert math.isinf(guess_resolution(PureDP(1.0), Guesses(right=1, wrong=0, runs=9), alpha=0.01, power=0.9))


def test_equivalent_runs_give_the_same_variance():
    guesses = Guesses(right=240_000, wrong=100_000, runs=1_000_000)
    claim, w = GaussianDP(0.6), 0.1
    c = float(claim.max_power(w)[0])
    slope = (float(claim.max_power(w + 1e-5)[0]) - float(claim.max_power(w - 1e-5)[0])) / 2e-5
    variance = (c * (1 - c) + slope**2 * w * (1 - w) + 2 * slope * c * w) / 1_000_000
    apart = c * (1 - c) + slope**2 * w * (1 - w)
    assert apart / equivalent_runs(claim, guesses) == pytest.approx(variance, rel=1e-3)
