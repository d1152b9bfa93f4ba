"""Mechanisms of the local model.

Random tests have a false-alarm probability of 1e-8 each.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.local.frequency_oracles import best_threshold
from dpaudit.mechanisms.local.randomised_response import HIDDEN

# Randomised response.


@pytest.mark.parametrize("k", [2, 3, 17])
def test_law_is_kept_truth_and_even_lies(k):
    e = math.exp(0.9)
    for value in range(k):
        expected = np.full(k, 1 / (e + k - 1))
        expected[value] = e / (e + k - 1)
        np.testing.assert_allclose(m.RandomisedResponse(0.9, k).law(value).probabilities, expected, rtol=1e-13)


@pytest.mark.parametrize("k", [2, 5])
def test_every_pair_attains_the_claim(k):
    mechanism = m.RandomisedResponse(1.3, k)
    assert mechanism.claim == PureDP(1.3)
    for x, y in itertools.permutations(range(k), 2):
        assert m.exact_epsilon(mechanism.law(x), mechanism.law(y)) == pytest.approx(1.3, rel=1e-14)


@pytest.mark.parametrize("dataset", [-1, 3, 0.5, "yes", None])
def test_values_outside_the_menu_are_refused(dataset):
    with pytest.raises(DatasetError, match="is not one of the k=3 values; use a whole number from 0 to 2"):
        m.RandomisedResponse(1, k=3).law(dataset)


# Repeated responses of one person, against enumeration of all answers.


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
    fold = m.RandomisedResponseFold(0.2, n)
    assert fold.claim == PureDP(n * 0.2)
    truth = math.exp(0.2) / (1 + math.exp(0.2))
    for bit, probability in ((1, truth), (0, 1 - truth)):
        expected = stats.binom.logpmf(np.arange(n + 1), n, probability)
        assert fold.law(bit).log_probabilities == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert m.exact_epsilon(fold.law(0), fold.law(1)) == pytest.approx(n * 0.2, rel=1e-9)
    if n == 1:
        assert fold.law(1).log_probabilities == pytest.approx(m.RandomisedResponse(0.2).law(1).log_probabilities)


@pytest.mark.parametrize("value", [-9, -2, 0, 1, 3, 9])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_up_and_down_is_the_sum_over_all_answers(n, value):
    law = m.UpAndDown(0.6, n).law(value)
    assert law.probabilities == pytest.approx(up_and_down_by_paths(0.6, n, value), rel=1e-12)


def test_up_and_down_keeps_its_claim_on_all_pairs_and_attains_it_on_one():
    mechanism = m.UpAndDown(0.5, 6)
    losses = {
        (x, y): m.exact_epsilon(mechanism.law(x), mechanism.law(y)) for x, y in itertools.combinations(range(-7, 8), 2)
    }
    assert max(losses.values()) == losses[-7, 7] == pytest.approx(3.0, rel=1e-12)
    assert losses[0, 1] < 2.0
    assert losses[6, 7] == 0.0  # above all thresholds
    fold = m.RandomisedResponseFold(0.5, 6)
    assert mechanism.law(6).log_probabilities == pytest.approx(fold.law(1).log_probabilities, rel=1e-12)


def test_up_and_down_asks_about_the_last_threshold():
    """If answers are never lies (except once in 10¹² runs), the thresholds are known."""
    mechanism = m.UpAndDown(30.0, 9)
    for value, last in ((-20, -9), (20, 9), (0, -1), (1, 1), (3, 3), (4, 3), (2, 1)):
        yeses = mechanism.sample(value, 50, np.random.default_rng(1))
        assert (2 * yeses - 9 == last).all()


# Name and shame: exactly (0, delta)-DP, no pure guarantee, and the number of people exposed.

ALARM = 1e-8


ROWS, NEIGHBOUR = [7, 0, 7], [7, 0, 8]


def test_every_output_has_its_probability():
    """Enumerate independent coins, one per person."""
    law = m.NameAndShame(0.3).law(ROWS)
    total = 0.0
    for exposed in itertools.product((False, True), repeat=3):
        output = [row if is_exposed else HIDDEN for row, is_exposed in zip(ROWS, exposed, strict=True)]
        expected = math.prod(0.3 if is_exposed else 0.7 for is_exposed in exposed)
        assert math.exp(law.log_density(output)) == pytest.approx(expected, rel=1e-12)
        total += expected
    assert total == pytest.approx(1.0)
    assert law.log_density([7, 7, 7]) == -math.inf


@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.3])
def test_the_claim_is_exact_for_a_replaced_row(delta):
    mechanism = m.NameAndShame(delta)
    law, moved = mechanism.law(ROWS), mechanism.law(NEIGHBOUR)
    assert mechanism.claim == ApproxDP(0.0, delta)
    for epsilon in (0.0, 1.0, 50.0):
        assert m.exact_delta(law, moved, epsilon) == pytest.approx(delta, rel=1e-12)
    assert m.exact_epsilon(law, moved) == math.inf
    assert m.exact_epsilon(law, moved, delta) == pytest.approx(0.0, abs=1e-12)  # attained, hence covered
    assert m.exact_epsilon(law, moved, delta * (1 + 1e-9)) == pytest.approx(0.0, abs=1e-12)
    assert m.exact_epsilon(law, mechanism.law(ROWS)) == 0.0


def test_two_replaced_rows_lose_both_deltas():
    """1 − (1 − δ)² at any epsilon, by hand over the sixteen pairs of coins."""
    mechanism = m.NameAndShame(0.3)
    law, other = mechanism.law([1, 2]), mechanism.law([3, 4])
    shown = [[row if coin else HIDDEN for row, coin in zip((1, 2), coins, strict=True)] for coins in np.ndindex(2, 2)]
    p, q = np.exp(law.log_density(shown)), np.exp(other.log_density(shown))
    assert np.maximum(p - math.e * q, 0).sum() == pytest.approx(1 - 0.7**2)
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_delta(law, other, 1.0)


def test_people_are_exposed_independently():
    """The counts of all eight outcomes are within exact binomial limits."""
    runs, law = 100_000, m.NameAndShame(0.2).law(ROWS)
    outputs = m.NameAndShame(0.2).sample(ROWS, runs, np.random.default_rng(2))
    seen = 0
    for exposed in itertools.product((False, True), repeat=3):
        output = [row if is_exposed else HIDDEN for row, is_exposed in zip(ROWS, exposed, strict=True)]
        hits = int((outputs == output).all(axis=1).sum())
        limits = stats.binom(runs, math.exp(law.log_density(output)))
        assert limits.ppf(ALARM / 16) <= hits <= limits.isf(ALARM / 16)
        seen += hits
    assert seen == runs


def test_twice_the_delta_breaks_the_claim_and_keeps_the_truth():
    twin = faulty.TwiceExposed(0.1)
    law, moved = twin.law(ROWS), twin.law(NEIGHBOUR)
    assert (twin.claim, twin.truth) == (ApproxDP(0.0, 0.1), ApproxDP(0.0, 0.2))
    assert m.exact_delta(law, moved, 0.0) == pytest.approx(0.2, rel=1e-12)
    assert str(twin) == "TwiceExposed(delta=0.1)"
    outputs = twin.sample(ROWS, 100_000, np.random.default_rng(4))
    hits = stats.binom(300_000, 0.2)
    assert hits.ppf(ALARM / 2) <= (outputs != HIDDEN).sum() <= hits.isf(ALARM / 2)


def test_rows_may_be_numbers_of_any_kind():
    for rows in ([3.0, 4.0], np.array([3, 4]), (True, False), [0, 2**52]):
        outputs = m.NameAndShame(0.999).sample(rows, 50, np.random.default_rng(1))
        assert outputs.dtype == np.int64
        assert set(outputs.ravel().tolist()) <= {HIDDEN, *map(int, rows)}


# Frequency oracles against enumeration of all reports: laws, losses of all pairs, and the faulty twins.

ATTAINED = [
    m.RandomisedResponse(1.3, 5),
    m.UnaryEncoding(1.3, 5),
    m.UnaryEncoding(1.3, 5, is_optimised=True),
    m.LocalHashing(1.3, 5),
    m.LocalHashing(1.3, 5, g=2),
    m.SubsetSelection(1.3, 5),
    m.SubsetSelection(1.3, 5, size=4),
    m.HadamardResponse(1.3, 5),
    m.MemoisedBits(2.0, 1.3, 5),
    m.MemoisedBits(2.0, 1.3, 5, is_optimised=True),
    m.MemoisedResponse(2.0, 1.3, 5),
]


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
        (faulty.MixedUnaryCoins(0.8), (0, 1), 1.2),
        (faulty.TrueBitSetTwice(1.0), (0, 1), math.log(1 + 0.5 / (0.5 / (1 + math.e)))),
        (faulty.TrueBitSetTwice(1.0, is_optimised=False), (0, 1), math.log(1 + math.exp(0.5) * (1 + math.exp(0.5)))),
        (faulty.OnesNeverCleared(0.5), (0, 1), math.inf),
        (
            faulty.HalfNoiseThreshold(0.5),
            (0, 1),
            m.exact_epsilon(*(m.ThresholdedHistogram(1.0, 4).law(v) for v in (0, 1))),
        ),
        (faulty.BinaryHashingOdds(1.0), (0, 5), 1 + math.log(3)),
        (faulty.HashChosenByTheValue(1.0), (0, 1), math.inf),
        (faulty.SubsetOfWrongSize(1.0), (0, 1), 1 + math.log(3 * 8 / (2 * 7))),
        (faulty.SubsetInOrder(1.0), (0, 1), math.inf),
        (faulty.HadamardOrAnyColumn(0.7), (0, 1), math.log(1 + 2 * math.exp(0.7))),
        (faulty.RedrawnMemo(2.0, 0.7, reports=5), (0, 1), 3.5),
        (faulty.FirstReportForAll(0.7, 2.0, reports=30), (0, 1), 2.0),
    ],
    ids=str,
)
def test_twins_lose_what_is_said(twin, pair, loss):
    assert m.exact_epsilon(*(twin.law(value) for value in pair)) == pytest.approx(loss, rel=1e-6)
    assert twin.truth is None if math.isinf(loss) else twin.truth.epsilon >= loss * (1 - 1e-6)


@pytest.mark.parametrize("twin", [faulty.HashChosenByTheValue(1.0), faulty.SubsetInOrder(1.0)], ids=repr)
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


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: m.RandomisedResponse(0), ClaimError, "epsilon=0 is not allowed; use 0 < epsilon < inf (the truth is"),
        (lambda: m.RandomisedResponse(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.RandomisedResponse(1, k=1), ClaimError, "k=1 is not a number of values; use a whole number k >= 2."),
        (lambda: m.RandomisedResponse(1, k=2.5), ClaimError, "k=2.5 is not a number of values"),
        (lambda: m.RandomisedResponseFold(0, 3), ClaimError, "epsilon_each=0 is not allowed; use 0 < epsilon_each"),
        (lambda: m.RandomisedResponseFold(1, 0), ClaimError, "n=0 is not a number of responses"),
        (lambda: m.UpAndDown(1, 2.5), ClaimError, "n=2.5 is not a number of responses"),
        (lambda: m.RandomisedResponseFold(1, 3).law(2), DatasetError, "dataset=2 is not one of the k=2 values"),
        (lambda: m.UpAndDown(1, 3).sample(0.5, 3, None), DatasetError, "answered 0.5, which is not a whole number"),
        (lambda: m.NameAndShame(0), ClaimError, "delta=0 is not allowed; use 0 < delta < 1"),
        (lambda: m.NameAndShame(1.0), ClaimError, "delta=1.0 is not allowed"),
        (lambda: m.NameAndShame(math.nan), ClaimError, "delta=nan is not allowed"),
        (lambda: faulty.TwiceExposed(0.5), ClaimError, "delta=0.5 is not allowed; use 0 < delta < 0.5"),
        (lambda: m.NameAndShame(0.1).law([]), DatasetError, "dataset=[] is not a list of rows"),
        (lambda: m.NameAndShame(0.1).law(3), DatasetError, "dataset=3 is not a list of rows"),
        (lambda: m.NameAndShame(0.1).law([-1]), DatasetError, "each a whole number from 0"),
        (lambda: m.NameAndShame(0.1).law([0.5]), DatasetError, "is not a list of rows"),
        (lambda: m.NameAndShame(0.1).law([2.0**53]), DatasetError, "is not a list of rows"),
        (
            lambda: m.NameAndShame(0.1).sample(["Ann"], 1, np.random.default_rng()),
            DatasetError,
            "dataset=['Ann'] is not",
        ),
        (lambda: m.UnaryEncoding(0.0, 3), ClaimError, "epsilon=0.0 is not allowed"),
        (lambda: m.UnaryEncoding(1.0, 1), ClaimError, "k=1 is not a number of values"),
        (lambda: m.ThresholdedHistogram(1.0, 3, math.nan), ClaimError, "threshold=nan is not allowed"),
        (lambda: m.LocalHashing(1.0, 3, g=1), ClaimError, "g=1 is not a number of hashes"),
        (lambda: m.SubsetSelection(1.0, 3, size=3), ClaimError, "size=3 of k=3 values says nothing"),
        (lambda: m.LocalHashing(20.0, 3), ClaimError, "g=485165196 with 16 hash functions is too much"),
        (lambda: m.UnaryEncoding(30.0, 3), ClaimError, "epsilon=30.0 is not allowed; use 0 < epsilon < 30"),
        (lambda: m.MemoisedBits(1.0, 1.0, 3), ClaimError, "use epsilon_first < epsilon_permanent"),
        (lambda: faulty.SubsetOfWrongSize(1.0, 3), ClaimError, "size=2 keeps the claim; use a size below the best, 1"),
        (lambda: m.HadamardResponse(1.0, 3).law(3), DatasetError, "dataset=3 is not one of the k=3 values"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
