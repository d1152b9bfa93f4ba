"""Frequency oracles against enumeration of all reports: laws, losses of all pairs, and the faulty twins."""

import itertools
import math

import numpy as np
import pytest

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms import faulty as f
from dpaudit.mechanisms.local.unary_encoding import best_threshold

ATTAINED = [
    m.RandomisedResponse(1.3, 5), m.UnaryEncoding(1.3, 5), m.UnaryEncoding(1.3, 5, is_optimised=True),
    m.LocalHashing(1.3, 5),
    m.LocalHashing(1.3, 5, g=2), m.SubsetSelection(1.3, 5), m.SubsetSelection(1.3, 5, size=4),
    m.HadamardResponse(1.3, 5),
    m.MemoisedBits(2.0, 1.3, 5), m.MemoisedBits(2.0, 1.3, 5, is_optimised=True), m.MemoisedResponse(2.0, 1.3, 5),
]  # fmt: skip


@pytest.mark.parametrize("oracle", ATTAINED, ids=str)
def test_every_pair_of_values_attains_the_claim(oracle):
    laws = [oracle.law(value) for value in range(5)]
    for one, two in itertools.permutations(laws, 2):
        assert m.exact_epsilon(one, two) == pytest.approx(oracle.claim.epsilon, rel=1e-9)
    assert m.exact_epsilon(laws[0], laws[0]) == 0.0


@pytest.mark.parametrize("oracle", [m.SubsetSelection(1.0, 5), m.SubsetSelection(0.4, 5, size=4)], ids=str)
def test_subsets_are_those_of_the_definition(oracle):
    """A set with the value is e^ε times as likely as one without, whatever else is in it."""
    sets = np.array([bits for bits in itertools.product((0, 1), repeat=5) if sum(bits) == oracle.n_members])
    tables = []
    for value in range(5):
        weights = np.exp(oracle.epsilon * sets[:, value])
        tables.append(m.FiniteLaw.from_log_weights(np.log(weights)))
        assert oracle.law(value).log_density(sets) == pytest.approx(tables[-1].log_probabilities)
    for delta in (0.0, 0.05):
        assert m.exact_epsilon(oracle.law(0), oracle.law(3), delta) == pytest.approx(
            m.exact_epsilon(*tables[::3], delta)
        )
    assert m.exact_delta(oracle.law(0), oracle.law(3), 0.2) == pytest.approx(m.exact_delta(*tables[::3], 0.2))
    assert np.isneginf(oracle.law(0).log_density([[1, 1, 1, 1, 1], [0.5, 0.5, 0, 0, 0]])).all()


@pytest.mark.parametrize("epsilon", [1e-6, 29.9])
def test_extreme_epsilons_are_exact(epsilon):
    for oracle in (
        m.UnaryEncoding(epsilon, 3),
        m.UnaryEncoding(epsilon, 3, is_optimised=True),
        m.SubsetSelection(epsilon, 3),
    ):
        assert m.exact_epsilon(oracle.law(0), oracle.law(1)) == pytest.approx(epsilon, rel=1e-8)


def test_default_sizes_are_the_published_ones():
    assert [m.SubsetSelection(epsilon, 100).n_members for epsilon in (1.0, 2.0, 9.0)] == [27, 12, 1]
    assert [m.LocalHashing(epsilon, 100).n_reports for epsilon in (0.5, 1.0, 3.0)] == [3, 4, 21]


def test_thresholded_noise_loses_less_than_noisy_bits():
    for epsilon in (0.5, 1.0, 4.0):
        oracle, noisy = m.ThresholdedHistogram(epsilon, 4), m.HistogramMechanism(epsilon, 4, sensitivity=2)
        found = m.exact_epsilon(oracle.law(0), oracle.law(3))
        assert 0.7 * epsilon < found < epsilon == pytest.approx(m.exact_epsilon(noisy.law([0]), noisy.law([3])))
        kept, added = (float(noisy.law([0]).marginals[place].sf(best_threshold(epsilon))) for place in (0, 1))
        assert (oracle.runs_as.kept, oracle.runs_as.added) == pytest.approx((kept, added))
        assert 0.5 < best_threshold(epsilon) < 1.0


@pytest.mark.parametrize("make", [m.MemoisedBits, m.MemoisedResponse])
def test_repeated_reports_lose_more_and_more_up_to_the_permanent_loss(make):
    losses = [
        m.exact_epsilon(*(make(2.0, 1.0, 3, reports).law(value) for value in (0, 1))) for reports in (1, 2, 4, 12)
    ]
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(1.0)
    assert 1.99 < losses[-1] <= 2.0 * (1 + 1e-12)
    assert [make(2.0, 1.0, 3, reports).claim for reports in (1, 2)] == [PureDP(1.0), PureDP(2.0)]


def test_two_reports_of_a_memoised_value_by_enumeration():
    """All memories and both reports."""
    oracle = m.MemoisedResponse(2.0, 1.0, 3, 2)
    memory = m.RandomisedResponse(2.0, 3).law(1).probabilities
    one = m.MemoisedResponse(2.0, 1.0, 3)
    kept = (one.law(1).log_density([0, 1, 0]).item(), memory[1], memory[0])
    # Pr[report 1] = m₁ s + (1 − m₁)(1 − s)/2 gives the probability s that a report is the memory.
    s = (math.exp(kept[0]) - (1 - memory[1]) / 2) / (memory[1] - (1 - memory[1]) / 2)
    second = np.where(np.eye(3, dtype=bool), s, (1 - s) / 2)
    found = np.zeros((3, 3))
    for value, first, last in itertools.product(range(3), repeat=3):
        found[first, last] += memory[value] * second[value, first] * second[value, last]
    for first, last in itertools.combinations_with_replacement(range(3), 2):
        counts = np.bincount([first, last], minlength=3)
        expected = found[first, last] * (1 if first == last else 2)
        assert math.exp(oracle.law(1).log_density(counts)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("twin", "pair", "loss"),
    [
        (f.MixedUnaryCoins(0.8), (0, 1), 1.2),
        (f.TrueBitSetTwice(1.0), (0, 1), math.log(1 + 0.5 / (0.5 / (1 + math.e)))),
        (f.TrueBitSetTwice(1.0, is_optimised=False), (0, 1), math.log(1 + math.exp(0.5) * (1 + math.exp(0.5)))),
        (f.OnesNeverCleared(0.5), (0, 1), math.inf),
        (f.HalfNoiseThreshold(0.5), (0, 1), m.exact_epsilon(*(m.ThresholdedHistogram(1.0, 4).law(v) for v in (0, 1)))),
        (f.BinaryHashingOdds(1.0), (0, 5), 1 + math.log(3)),
        (f.HashChosenByTheValue(1.0), (0, 1), math.inf),
        (f.SubsetOfWrongSize(1.0), (0, 1), 1 + math.log(3 * 8 / (2 * 7))),
        (f.SubsetInOrder(1.0), (0, 1), math.inf),
        (f.HadamardOrAnyColumn(0.7), (0, 1), math.log(1 + 2 * math.exp(0.7))),
        (f.RedrawnMemo(2.0, 0.7, reports=5), (0, 1), 3.5),
        (f.FirstReportForAll(0.7, 2.0, reports=30), (0, 1), 2.0),
    ],
    ids=str,
)
def test_twins_lose_what_is_said(twin, pair, loss):
    assert m.exact_epsilon(*(twin.law(value) for value in pair)) == pytest.approx(loss, rel=1e-6)
    assert twin.truth is None if math.isinf(loss) else twin.truth.epsilon >= loss * (1 - 1e-6)


@pytest.mark.parametrize("twin", [f.HashChosenByTheValue(1.0), f.SubsetInOrder(1.0)], ids=repr)
def test_samples_of_flaws_follow_their_laws(twin):
    """Each count is more than six standard deviations from its mean with probability about 2e-9."""
    outputs, law = twin.sample(1, 50_000, np.random.default_rng(3)), twin.law(1)
    rows, counts = np.unique(outputs, axis=0, return_counts=True)
    probabilities = np.exp(law.log_density(rows))
    assert probabilities.sum() == pytest.approx(1.0)  # every possible row occurs, and no other
    assert (abs(counts - 50_000 * probabilities) < 6 * np.sqrt(50_000 * probabilities)).all()


def test_rows_that_are_not_in_a_law_are_impossible():
    law = m.RowLaw(((0, 1), (2, -1)), (math.log(0.25), math.log(0.75)))
    assert np.exp(law.log_density([[2, -1], [0, 1], [0, -1], [9, 9], [0.5, 1]])).tolist() == [0.75, 0.25, 0, 0, 0]
    with pytest.raises(OptionError, match="lexicographic"):
        m.RowLaw(((2, -1), (0, 1)), law.log_probabilities)
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_epsilon(m.SubsetLaw(0, 5, 2, 1.0), m.SubsetLaw(0, 5, 3, 1.0))
