"""The exponential mechanism."""

import math

import numpy as np
import pytest

from dpaudit.audit.claims import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import ExponentialMechanism, exact_epsilon

RIGHT = ExponentialMechanism(1.0)
ONE_UP = [1.0] + [-1.0] * 49


def test_law_by_the_formula():
    utilities = np.array([0.0, 2.0, -1.0, 5.0])
    for monotone, rate in ((False, 0.3 / (2 * 1.5)), (True, 0.3 / 1.5)):
        weights = np.exp(rate * utilities)
        found = ExponentialMechanism(0.3, 1.5, monotone=monotone).law(utilities).probabilities
        np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-13)


def test_utilities_of_any_size_do_not_overflow():
    found = RIGHT.law([1e6, 1e6 + 2]).probabilities
    np.testing.assert_allclose(found, RIGHT.law([0.0, 2.0]).probabilities, rtol=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "loss"),
    [
        ([0.0] * 50, ONE_UP, 0.966),
        ([0.0, -3.0], [-1.0, -2.0], 0.727),
        ([0.0, -3.0], [1.0, -4.0], 0.877),
    ],
)
def test_losses_computed_by_hand(x, y, loss):
    assert RIGHT.claim == PureDP(1.0)
    assert exact_epsilon(RIGHT.law(x), RIGHT.law(y)) == pytest.approx(loss, abs=5e-4)


def test_claim_is_approached_but_not_exceeded():
    losses = [exact_epsilon(RIGHT.law([0.0] * k), RIGHT.law([1.0] + [-1.0] * (k - 1))) for k in (2, 10, 1000, 100_000)]
    assert losses == sorted(losses)
    assert losses[-1] < 1.0
    assert losses[-1] > 0.9999


def test_neighbours_drawn_at_random_stay_within_the_claim():
    rng = np.random.default_rng(1)
    for _ in range(200):
        u = rng.normal(0, 3, 6)
        general = ExponentialMechanism(0.8, 2.0)
        assert exact_epsilon(general.law(u), general.law(u + rng.uniform(-2, 2, 6))) <= 0.8
        monotone = ExponentialMechanism(0.8, 2.0, monotone=True)
        assert exact_epsilon(monotone.law(u), monotone.law(u + rng.uniform(0, 2, 6))) <= 0.8


def test_monotone_saving_is_false_under_replace():
    mechanism = ExponentialMechanism(1.0, monotone=True)
    assert exact_epsilon(mechanism.law([0.0] * 50), mechanism.law(ONE_UP)) == pytest.approx(1.880, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ExponentialMechanism(0), "epsilon=0 is not allowed; use 0 < epsilon and finite"),
        (lambda: ExponentialMechanism(math.nan), "epsilon=nan is not allowed"),
        (lambda: ExponentialMechanism(1, -2.0), "sensitivity=-2.0 is not allowed; use 0 < sensitivity and finite"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ClaimError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("utilities", [[], [1.0, math.nan], [[1.0]], 3.0, ["a"], [math.inf]])
def test_utilities_that_are_no_vector_are_refused(utilities):
    with pytest.raises(DatasetError, match="which is not a vector of finite scores; return one number for each"):
        RIGHT.law(utilities)
