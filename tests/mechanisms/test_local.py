"""Mechanisms of the local model, by enumeration of all answers, sets and memories."""

import itertools
import math

import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit.mechanisms.local.frequency_oracles import best_threshold
from dpaudit.mechanisms.local.randomised_response import HIDDEN


@pytest.mark.parametrize("k", [2, 3, 17])
def test_a_response_is_the_kept_truth_or_an_even_lie(k):
    e = math.exp(0.9)
    for value in range(k):
        expected = np.full(k, 1 / (e + k - 1))
        expected[value] = e / (e + k - 1)
        np.testing.assert_allclose(m.RandomisedResponse(0.9, k).distribution(value).probabilities, expected, rtol=1e-13)


def up_and_down_by_paths(epsilon, n, value):
    """Return the distribution of the number of yeses by enumerating all answers."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    found = np.zeros(n + 1)
    for answers in itertools.product((False, True), repeat=n):
        probability, threshold = 1.0, 0
        for answer in answers:
            probability *= truth if answer == (value > threshold) else 1 - truth
            threshold += 1 if answer else -1
        found[sum(answers)] += probability
    return found


@pytest.mark.parametrize("value", [-9, -2, 0, 1, 3, 9])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_up_and_down_is_the_sum_over_all_answers(n, value):
    distribution = m.UpAndDown(0.6, n).distribution(value)
    assert distribution.probabilities == pytest.approx(up_and_down_by_paths(0.6, n, value), rel=1e-12)


def test_up_and_down_keeps_its_claim_on_all_pairs():
    mechanism = m.UpAndDown(0.5, 6)
    distributions = {value: mechanism.distribution(value) for value in range(-7, 8)}
    losses = {
        pair: m.exact_epsilon(distributions[pair[0]], distributions[pair[1]])
        for pair in itertools.combinations(distributions, 2)
    }
    assert max(losses.values()) == losses[-7, 7] == pytest.approx(3.0, rel=1e-12)
    assert losses[0, 1] < 2.0
    fold = m.RandomisedResponseFold(0.5, 6).distribution(1)
    assert distributions[6].log_probabilities == pytest.approx(fold.log_probabilities, rel=1e-12)


def test_every_output_of_independent_coins_has_its_probability():
    """All eight outcomes of three coins, one per person; replaced rows lose δ each, at any epsilon."""
    rows, coins = np.array([7, 0, 7]), np.array(list(itertools.product((False, True), repeat=3)))
    mechanism = m.NameAndShame(0.3)
    distribution = mechanism.distribution(rows)
    p = np.prod(np.where(coins, 0.3, 0.7), axis=1)
    outputs = np.where(coins, rows, HIDDEN)
    np.testing.assert_allclose(np.exp(distribution.log_density(outputs)), p, rtol=1e-12)
    assert distribution.log_density([7, 7, 7]) == -math.inf
    for other, lost in (([7, 0, 8], 0.3), ([7, 1, 8], 1 - 0.7**2)):
        q = np.exp(mechanism.distribution(other).log_density(outputs))
        assert np.maximum(p - math.e * q, 0).sum() == pytest.approx(lost)


@pytest.mark.parametrize("oracle", [m.SubsetSelection(1.0, 5), m.SubsetSelection(0.4, 5, size=4)], ids=str)
def test_subsets_are_those_of_the_definition(oracle):
    """A set with the value is e^ε times as likely as one without, whatever else is in it."""
    sets = np.array([bits for bits in itertools.product((0, 1), repeat=5) if sum(bits) == oracle.n_members])
    for value in range(5):
        weights = np.exp(oracle.epsilon * sets[:, value])
        assert oracle.distribution(value).log_density(sets) == pytest.approx(np.log(weights / weights.sum()))
    assert np.isneginf(oracle.distribution(0).log_density([[1, 1, 1, 1, 1], [0.5, 0.5, 0, 0, 0]])).all()


def test_default_sizes_are_the_published_ones():
    assert [m.SubsetSelection(epsilon, 100).n_members for epsilon in (1.0, 2.0, 9.0)] == [27, 12, 1]
    assert [m.LocalHashing(epsilon, 100).n_reports for epsilon in (0.5, 1.0, 3.0)] == [3, 4, 21]


def test_thresholded_noise_loses_less_than_noisy_bits():
    for epsilon, threshold in ((0.5, None), (1.0, None), (4.0, None), (1.0, 0.9)):
        oracle, noisy = m.ThresholdedHistogram(epsilon, 4, threshold), m.HistogramMechanism(epsilon, 4, sensitivity=2)
        found = m.exact_epsilon(oracle.distribution(0), oracle.distribution(3))
        assert (
            0.7 * epsilon
            < found
            < epsilon
            == pytest.approx(m.exact_epsilon(noisy.distribution([0]), noisy.distribution([3])))
        )
        cut = threshold or best_threshold(epsilon)
        kept, added = (float(noisy.distribution([0]).marginals[place].sf(cut)) for place in (0, 1))
        assert (oracle.runs_as.kept, oracle.runs_as.added) == pytest.approx((kept, added))
        assert 0.5 < best_threshold(epsilon) < 1.0


def test_two_reports_of_a_memoised_value_by_enumeration():
    """All memories and both reports."""
    oracle = m.MemoisedResponse(2.0, 1.0, 3, 2)
    memory = m.RandomisedResponse(2.0, 3).distribution(1).probabilities
    one = m.MemoisedResponse(2.0, 1.0, 3)
    kept = (one.distribution(1).log_density([0, 1, 0]).item(), memory[1], memory[0])
    # Pr[report 1] = m₁ s + (1 − m₁)(1 − s)/2 gives the probability s that a report is the memory.
    s = (math.exp(kept[0]) - (1 - memory[1]) / 2) / (memory[1] - (1 - memory[1]) / 2)
    second = np.where(np.eye(3, dtype=bool), s, (1 - s) / 2)
    found = np.zeros((3, 3))
    for value, first, last in itertools.product(range(3), repeat=3):
        found[first, last] += memory[value] * second[value, first] * second[value, last]
    for first, last in itertools.combinations_with_replacement(range(3), 2):
        counts = np.bincount([first, last], minlength=3)
        expected = found[first, last] * (1 if first == last else 2)
        assert math.exp(oracle.distribution(1).log_density(counts)) == pytest.approx(expected)


def test_rows_that_are_not_in_a_distribution_are_impossible():
    distribution = m.RowDistribution(((0, 1), (2, -1)), (math.log(0.25), math.log(0.75)))
    assert np.exp(distribution.log_density([[2, -1], [0, 1], [0, -1], [9, 9], [0.5, 1]])).tolist() == [
        0.75,
        0.25,
        0,
        0,
        0,
    ]
