"""Repeated responses of one person, against enumeration of all answers."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import PureDP
from dpaudit.mechanisms import RandomisedResponse, RandomisedResponseFold, UpAndDown, exact_epsilon


def up_and_down_by_paths(epsilon, n, value):
    """Return the law of the number of yeses by enumerating all answers."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    found = np.zeros(n + 1)
    for answers in itertools.product((False, True), repeat=n):
        probability, threshold = 1.0, 0
        for answer in answers:
            probability *= truth if answer == (value > threshold) else 1 - truth
            threshold += 1 if answer else -1
        found[sum(answers)] += probability
    return found


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_the_number_of_ones_is_binomial_and_attains_the_claim(n):
    fold = RandomisedResponseFold(0.2, n)
    assert fold.claim == PureDP(n * 0.2)
    truth = math.exp(0.2) / (1 + math.exp(0.2))
    for bit, probability in ((1, truth), (0, 1 - truth)):
        expected = stats.binom.logpmf(np.arange(n + 1), n, probability)
        assert fold.law(bit).log_probabilities == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert exact_epsilon(fold.law(0), fold.law(1)) == pytest.approx(n * 0.2, rel=1e-9)
    if n == 1:
        assert fold.law(1).log_probabilities == pytest.approx(RandomisedResponse(0.2).law(1).log_probabilities)


@pytest.mark.parametrize("value", [-9, -2, 0, 1, 3, 9])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_up_and_down_is_the_sum_over_all_answers(n, value):
    law = UpAndDown(0.6, n).law(value)
    assert law.probabilities == pytest.approx(up_and_down_by_paths(0.6, n, value), rel=1e-12)


def test_up_and_down_keeps_its_claim_on_all_pairs_and_attains_it_on_one():
    mechanism = UpAndDown(0.5, 6)
    losses = {
        (x, y): exact_epsilon(mechanism.law(x), mechanism.law(y)) for x, y in itertools.combinations(range(-7, 8), 2)
    }
    assert max(losses.values()) == losses[-7, 7] == pytest.approx(3.0, rel=1e-12)
    assert losses[0, 1] < 2.0
    assert losses[6, 7] == 0.0  # above all thresholds
    fold = RandomisedResponseFold(0.5, 6)
    assert mechanism.law(6).log_probabilities == pytest.approx(fold.law(1).log_probabilities, rel=1e-12)


def test_up_and_down_asks_about_the_last_threshold():
    """If answers are never lies (except once in 10¹² runs), the thresholds are known."""
    mechanism = UpAndDown(30.0, 9)
    for value, last in ((-20, -9), (20, 9), (0, -1), (1, 1), (3, 3), (4, 3), (2, 1)):
        yeses = mechanism.sample(value, 50, np.random.default_rng(1))
        assert (2 * yeses - 9 == last).all()
