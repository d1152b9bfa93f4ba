"""LDP-Auditor's suite: losses of its protocols, and its attack by enumeration of all reports."""

import itertools

import numpy as np
import pytest
from scipy import integrate

from dpaudit.experiments.published import ldp_auditor
from dpaudit.experiments.published.ldp_auditor import attack
from dpaudit.mechanisms import (
    HadamardResponse,
    HistogramMechanism,
    LocalHashing,
    RandomisedResponse,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
)

ENTRIES = {entry.name: entry for entry in ldp_auditor.entries()}
K = 4


def test_only_the_package_with_the_bug_breaks_its_claim():
    assert len(ENTRIES) == 10
    for name, entry in ENTRIES.items():
        entry.adjacency.check(entry.x, entry.y, 1)
        assert entry.is_broken == name.endswith("of pure-LDP 1.1.2")
        assert attack(entry.mechanism).bound() < attack(entry.mechanism).loss <= entry.exact * (1 + 1e-12)


def test_the_attack_shows_the_bug_for_small_epsilon_only():
    """As the issue of the package says; with 25 values, the attack loses too much of a larger ε."""
    for epsilon, is_shown in ((0.25, True), (0.5, True), (1.0, False), (2.0, False)):
        found = [one.mechanism for one in ldp_auditor.entries(epsilon) if one.is_broken]
        assert [attack(one).bound() > epsilon for one in found] == [is_shown, is_shown]


@pytest.mark.parametrize(
    "oracle", [UnaryEncoding(1.0, K), UnaryEncoding(1.0, K, is_optimised=True), ThresholdedHistogram(1.0, K)], ids=str
)
@pytest.mark.parametrize("value", [0, K - 1])
def test_guesses_from_bits(oracle, value):
    rows = np.array(list(itertools.product((0, 1), repeat=K)))
    support = np.where(rows.any(axis=1, keepdims=True), rows, 1)
    guess = np.exp(oracle.distribution(value).log_density(rows)) @ (support / support.sum(axis=1, keepdims=True))
    found = attack(oracle)
    assert guess[0] == pytest.approx(found.true_positive if value == 0 else found.false_positive)


def test_guesses_from_subsets_responses_and_hashes():
    subset = SubsetSelection(1.0, K, size=2)
    sets = np.array([bits for bits in itertools.product((0, 1), repeat=K) if sum(bits) == 2])
    for value, expected in ((0, attack(subset).true_positive), (3, attack(subset).false_positive)):
        assert np.exp(subset.distribution(value).log_density(sets)) @ sets[:, 0] / 2 == pytest.approx(expected)
    response = attack(RandomisedResponse(1.0, K))
    assert (response.true_positive, response.false_positive) == pytest.approx(
        tuple(RandomisedResponse(1.0, K).distribution(0).probabilities[:2])
    )
    hashing, total = LocalHashing(1.0, K, g=3), 0.0
    for hashes in itertools.product(range(3), repeat=K):  # all functions, equally likely
        for report in range(3):
            support = [value for value in range(K) if hashes[value] == report] or range(K)
            chance = np.e if report == hashes[0] else 1.0
            total += chance / (np.e + 2) * (0 in support) / len(support) / 3**K
    assert attack(hashing).true_positive == pytest.approx(total)


def test_guesses_from_noisy_bits():
    """Of two values, the likelier is the one with the larger bit after clipping to [0, 1]; half of the equals."""
    distribution_1, distribution_0 = HistogramMechanism(1.0, 2, sensitivity=2).distribution([0]).marginals
    inside = integrate.quad(lambda bit: np.exp(distribution_1.log_density(bit)) * distribution_0.cdf(bit), 0, 1)[0]
    above = distribution_1.sf(1) * (distribution_0.cdf(1) + distribution_0.sf(1) / 2)
    expected = inside + above + distribution_1.cdf(0) * distribution_0.cdf(0) / 2
    assert attack(HistogramMechanism(1.0, 2, sensitivity=2)).true_positive == pytest.approx(float(expected))


def test_other_mechanisms_are_refused():
    with pytest.raises(TypeError, match="is not a protocol of LDP-Auditor"):
        attack(HadamardResponse(1.0, K))
