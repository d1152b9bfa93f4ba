"""Sequential and adaptive composition: exact sums of losses, and failures where noise or budget is shared.

The one random test, on 6 joint outcomes, has a false-alarm probability of 1e-8.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.errors import ClaimError, MechanismError, OptionError
from dpaudit.mechanisms.faulty import SharedNoiseLaplace, UndercountedComposition

RUNS = 100_000
ALARM = 1e-8


@dataclass(frozen=True, slots=True)
class Always:
    """Query with the same answer for every dataset."""

    answer: float

    def __call__(self, dataset):
        return self.answer


@dataclass(frozen=True, slots=True)
class Unusual:
    """Mechanism whose claim is not epsilon and delta."""

    claim: object = GaussianDP(1.0)

    def sample(self, dataset, size, rng):
        return np.zeros(size)


def echo(output):
    """Return a geometric mechanism around 100 times the output, with noise 0 except once in 10¹² draws."""
    return m.GeometricMechanism(30.0, query=Always(100 * output))


def echo_of_row(row):
    return echo(row[0] + 10 * row[1])


def follow_up(answer):
    """Return a finer question after a yes."""
    return m.RandomisedResponse(0.3, k=3) if answer == 0 else m.RandomisedResponse(0.7, k=3)


def same_or_noisier(answer):
    return m.LaplaceMechanism(1.0 if answer == 0 else 0.5)


TWO_STEPS = m.AdaptiveComposition(m.RandomisedResponse(1.0), follow_up, then_claim=PureDP(0.7))


@pytest.mark.parametrize(
    ("parts", "claim"),
    [
        ([m.LaplaceMechanism(0.5), m.GeometricMechanism(0.25)], PureDP(0.75)),
        ([m.LaplaceMechanism(0.5)], PureDP(0.5)),
        ([m.LaplaceMechanism(0.5), m.GaussianMechanism(0.25, 1e-5)], ApproxDP(0.75, 1e-5)),
        ([m.GaussianMechanism(1.0, 1e-5), m.GaussianMechanism(0.5, 2e-5)], ApproxDP(1.5, 3e-5)),
    ],
    ids=["pure", "one", "mixed", "approximate"],
)
def test_epsilons_and_deltas_add_up(parts, claim):
    composition = m.SequentialComposition(parts)
    assert type(composition.claim) is type(claim)
    assert composition.claim.epsilon == pytest.approx(claim.epsilon, rel=1e-15)
    assert getattr(composition.claim, "delta", 0.0) == pytest.approx(getattr(claim, "delta", 0.0), rel=1e-15)


def test_the_losses_of_independent_parts_add_up_exactly():
    both = m.SequentialComposition([m.LaplaceMechanism(0.5, query=len), m.GeometricMechanism(0.25, query=len)])
    assert m.exact_epsilon(both.law("ab"), both.law("abc")) == pytest.approx(0.75, rel=1e-12)
    folded, product = m.RandomisedResponseFold(0.3, 4), m.composed(m.RandomisedResponse(0.3), 4)
    joint = joint_table(product.law(1), product.law(0), [range(2)] * 4)
    for epsilon in (0.0, 0.1, 0.5, 1.0):  # the number of ones is sufficient
        assert m.exact_delta(*joint, epsilon) == pytest.approx(m.exact_delta(folded.law(1), folded.law(0), epsilon))


def joint_table(law_x, law_y, ranges):
    """Return both laws as laws of a row's index among all rows."""
    rows = list(itertools.product(*ranges))
    return [m.FiniteLaw(tuple(law.log_density(rows).tolist())) for law in (law_x, law_y)]


def test_rows_hold_the_parts_outputs():
    rng = np.random.default_rng(1)
    whole = m.SequentialComposition([m.GeometricMechanism(1.0), m.DiscreteGaussianMechanism(1.0, 1.0)]).sample(
        3, 10, rng
    )
    assert (whole.dtype, whole.shape) == (np.int64, (10, 2))
    both = m.SequentialComposition(
        [m.VectorGaussianMechanism(1.0, 1e-5, query=list), m.GeometricMechanism(30.0, query=len)]
    )
    rows = both.sample((5.0, -5.0), 10, rng)
    assert (rows.dtype, rows.shape) == (np.float64, (10, 3))
    assert (rows[:, 2] == 2).all()
    assert [law.location for law in both.law((5.0, -5.0)).marginals] == [5.0, -5.0, 2]


def test_a_chain_is_the_law_of_its_rows():
    x, y = TWO_STEPS.law(0), TWO_STEPS.law(1)
    ranges = [range(2), range(3)]
    table_x, table_y = joint_table(x, y, ranges)  # FiniteLaw checks that the probabilities add to 1
    for epsilon in (0.0, 0.2, 0.35, 0.8, 1.2, 1.69, 1.71, 3.0):
        assert m.hockey_stick(x, y, epsilon) == pytest.approx(m.hockey_stick(table_x, table_y, epsilon), abs=1e-15)
        assert m.hockey_stick(y, x, epsilon) == pytest.approx(m.hockey_stick(table_y, table_x, epsilon), abs=1e-15)
    for delta in (0.0, 1e-9, 0.01, 0.2, 0.4, 0.9):
        assert m.exact_epsilon(x, y, delta) == pytest.approx(m.exact_epsilon(table_x, table_y, delta), abs=1e-12)
    assert m.exact_epsilon(x, y) == pytest.approx(1.7, rel=1e-12)  # attains the claim
    assert TWO_STEPS.claim == PureDP(1.7)


def test_a_chain_that_ends_in_real_numbers():
    chain = m.AdaptiveComposition(m.RandomisedResponse(0.5), same_or_noisier, then_claim=PureDP(1.0))
    x, y = chain.law(0), chain.law(1)

    def gain(z, o, epsilon):
        p, q = (math.exp(law.log_density([o, z])) for law in (x, y))
        return max(p - math.exp(epsilon) * q, 0.0)

    for epsilon in (0.0, 0.3, 0.7, 1.4):
        found = sum(integrate.quad(gain, -40, 40, (o, epsilon), points=(0, 1), limit=200)[0] for o in range(2))
        assert m.hockey_stick(x, y, epsilon) == pytest.approx(found, abs=1e-7)
    assert m.exact_epsilon(x, y) == pytest.approx(1.5, rel=1e-12)
    at = m.exact_epsilon(x, y, 0.1)
    assert m.exact_delta(x, y, at) == pytest.approx(0.1, abs=1e-12)


def test_an_outcome_of_one_side_only_has_no_finite_epsilon():
    coin = m.FiniteLaw((math.log(0.5), math.log(0.5)))
    sure, either = m.FiniteLaw((0.0, -math.inf)), m.FiniteLaw((math.log(0.75), math.log(0.25)))
    x, y = m.ChainLaw(either, (coin, coin)), m.ChainLaw(sure, (coin, coin))
    assert m.exact_epsilon(x, y) == math.inf
    assert m.exact_epsilon(x, y, 0.2) == math.inf
    assert m.exact_epsilon(x, y, 0.3) == 0.0
    assert m.hockey_stick(y, x, 0.1) == pytest.approx(1 - math.exp(0.1) * 0.75, rel=1e-12)
    assert m.hockey_stick(x, y, 5.0) == pytest.approx(0.25, rel=1e-12)


def test_the_second_mechanism_is_the_one_chosen_for_the_first_output():
    first = m.RandomisedResponse(0.1, k=5)
    rows = m.AdaptiveComposition(first, echo, then_claim=PureDP(30.0)).sample(2, 5_000, np.random.default_rng(1))
    assert rows.dtype == np.int64
    assert set(rows[:, 0].tolist()) == set(range(5))
    assert np.array_equal(rows[:, 1], 100 * rows[:, 0])
    pair = m.SequentialComposition([first, first])
    rows = m.AdaptiveComposition(pair, echo_of_row, PureDP(30.0)).sample(2, 5_000, np.random.default_rng(1))
    assert np.array_equal(rows[:, 2], 100 * (rows[:, 0] + 10 * rows[:, 1]))
    chosen = m.AdaptiveComposition(m.LaplaceMechanism(1.0), same_or_noisier, PureDP(1.0))  # one mechanism per run
    assert chosen.sample(0.0, 50, np.random.default_rng(1)).shape == (50, 2)


def test_rows_of_an_adaptive_composition_follow_its_law():
    law, rows = TWO_STEPS.law(0), TWO_STEPS.sample(0, RUNS, np.random.default_rng(5))
    outcomes = np.array(list(itertools.product(range(2), range(3))))
    counts = (rows[:, None, :] == outcomes).all(axis=2).sum(axis=0)
    probabilities = np.exp(law.log_density(outcomes))
    each = ALARM / (2 * len(outcomes))
    low, high = (edge(each, RUNS, probabilities) for edge in (stats.binom.ppf, stats.binom.isf))
    assert np.all((low <= counts) & (counts <= high))
    wrong = np.exp(TWO_STEPS.law(1).log_density(outcomes))
    assert np.any(counts > stats.binom.isf(each, RUNS, wrong))


@pytest.mark.parametrize("use", ["sample", "law"])
def test_a_second_mechanism_that_claims_more_is_refused(use):
    greedy = m.AdaptiveComposition(m.RandomisedResponse(1.0), follow_up, then_claim=PureDP(0.5))
    with pytest.raises(
        ClaimError, match=r"then\(1\) returned RandomisedResponse\(epsilon=0.7, k=3\), which claims 0.7"
    ):
        greedy.sample(0, 1000, np.random.default_rng(1)) if use == "sample" else greedy.law(0)


def test_advanced_composition_holds_of_the_exact_composition_and_pays_for_many():
    for epsilon, k, slack in itertools.product((0.05, 0.2, 1.0), (1, 10, 400), (1e-9, 1e-3)):
        fold = m.RandomisedResponseFold(epsilon, k)
        bound, delta = m.advanced_composition(epsilon, 0.0, k, slack)
        assert delta == slack
        assert m.exact_epsilon(fold.law(0), fold.law(1), delta) <= bound
    assert m.advanced_composition(0.01, 0.0, 10_000, 1e-6)[0] < 0.1 * 10_000 * 0.01
    assert m.advanced_composition(0.5, 1e-7, 2, 1e-6)[0] > 2 * 0.5
    # mpmath, 30 digits: sqrt(2000 log(10^6)) / 10 + 100 (e^(1/10) − 1)
    bound, delta = m.advanced_composition(0.1, 1e-8, 1000, 1e-6)
    assert (bound, delta) == pytest.approx((27.1396731702559, 1.1e-5), rel=1e-12)


def test_shared_noise_gives_away_what_moves_one_answer_only():
    twin = SharedNoiseLaplace(0.5, (len, sum))
    assert (twin.claim, twin.truth) == (PureDP(1.0), None)
    x, y = [1, 1, 1], [1, 1, 1, 0]
    assert m.exact_epsilon(twin.law(x), twin.law(y), 0.5) == math.inf
    assert m.exact_delta(twin.law(x), twin.law(y), 20.0) == 1.0
    assert m.exact_epsilon(twin.law(x), twin.law([1, 1])) == pytest.approx(0.5, rel=1e-12)  # same direction
    assert m.exact_delta(twin.law(x), twin.law([1, 1]), 0.25) == pytest.approx(-math.expm1(-0.125), rel=1e-12)
    rows = twin.sample(y, 1000, np.random.default_rng(1))
    assert (rows[:, 0] - rows[:, 1] == 1).all()
    assert np.isfinite(twin.law(y).log_density(rows)).all()
    assert (twin.law(x).log_density(rows) == -np.inf).all()
    assert rows.std(axis=0, ddof=1) == pytest.approx([math.sqrt(8)] * 2, rel=0.25)
    assert str(twin) == "SharedNoiseLaplace(epsilon_each=0.5, 2 queries)"


@pytest.mark.parametrize(("charged", "claimed"), [(1.0, 0.5), (math.sqrt(8), 0.5 * math.sqrt(8))])
def test_an_undercounted_composition_loses_every_run(charged, claimed):
    twin = UndercountedComposition(m.GeometricMechanism(0.5), 8, charged)
    assert twin.claim.epsilon == pytest.approx(claimed, rel=1e-15)
    assert m.exact_epsilon(twin.law(3), twin.law(4)) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert twin.truth == PureDP(4.0)
    approximate = UndercountedComposition(m.GaussianMechanism(0.5, 1e-5), 4, charged=2.0)
    assert (approximate.claim, approximate.truth) == (ApproxDP(1.0, 2e-5), ApproxDP(2.0, 4e-5))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: m.SequentialComposition(()), ClaimError, "mechanisms=() composes nothing"),
        (lambda: m.SequentialComposition(m.LaplaceMechanism(1.0)), ClaimError, "is not a sequence of mechanisms"),
        (lambda: m.SequentialComposition([len]), ClaimError, "is not a mechanism with a claim and a sample method"),
        (
            lambda: m.exact_epsilon(*(m.composed(m.LaplaceMechanism(1.0), 3).law(place) for place in (0, 1)), 0.1),
            OptionError,
            "differ in 3 coordinates have no closed form for their divergence at delta > 0",
        ),
        (lambda: m.SequentialComposition([Unusual()]), ClaimError, "a part claims 1-GDP, which does not add up"),
        (lambda: m.composed(m.GaussianMechanism(1.0, 0.4), 3), ClaimError, "delta=1.2"),
        (lambda: m.composed(m.LaplaceMechanism(1.0), 0), ClaimError, "k=0 is not a number of runs; use a whole number"),
        (lambda: m.composed(m.LaplaceMechanism(1.0), 2.0), ClaimError, "k=2.0 is not a number of runs"),
        (lambda: m.AdaptiveComposition(Unusual(), follow_up, PureDP(1.0)), ClaimError, "a part claims 1-GDP"),
        (
            lambda: m.AdaptiveComposition(m.LaplaceMechanism(1.0), echo, GaussianDP(1.0)),
            ClaimError,
            "a part claims 1-GDP",
        ),
        (
            lambda: m.AdaptiveComposition(m.LaplaceMechanism(1.0), echo, PureDP(30.0)).law(0.0),
            OptionError,
            "does not have finitely many outcomes",
        ),
        (lambda: m.composed(TWO_STEPS, 2).law(0), OptionError, "is a law of dependent coordinates"),
        (
            lambda: m.ChainLaw(m.FiniteLaw((0.0,)), ()),
            OptionError,
            "number of laws=0 is not allowed; use one law for each of 1",
        ),
        (lambda: m.advanced_composition(-1, 0, 1, 0.1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: m.advanced_composition(1, 1, 1, 0.1), ClaimError, "delta=1 is not allowed"),
        (lambda: m.advanced_composition(1, 0, 0, 0.1), ClaimError, "k=0 is not a number of mechanisms"),
        (lambda: m.advanced_composition(1, 0, 1, 0), ClaimError, "slack=0 is not allowed"),
        (lambda: m.LaplaceMechanism("1"), ClaimError, "epsilon='1' is text, not a number"),
        (lambda: m.LaplaceMechanism(1e10, 1e-310), ClaimError, "leaves the range of doubles"),
        (lambda: m.GeometricMechanism(800.0), ClaimError, "leaves so little noise that doubles cannot"),
        (lambda: SharedNoiseLaplace(0, (len,)), ClaimError, "epsilon_each=0 is not allowed"),
        (lambda: SharedNoiseLaplace(1, ()), ClaimError, "queries=() has no query"),
        (lambda: UndercountedComposition(m.LaplaceMechanism(1.0), 0), ClaimError, "k=0 is not a number of runs"),
        (lambda: UndercountedComposition(m.LaplaceMechanism(1.0), 2, 0), ClaimError, "charged=0 is not allowed"),
        (lambda: UndercountedComposition(Unusual(), 2), ClaimError, "a part claims 1-GDP"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


def test_advanced_composition_of_large_epsilons_is_no_bound_rather_than_an_error():
    assert m.advanced_composition(800.0, 0.0, 3, 1e-6)[0] == math.inf


def test_shared_noise_is_seen_by_lines_and_not_by_the_rounding_of_answers():
    shifted = SharedNoiseLaplace(1.0, [lambda rows: len(rows) + 0.1, lambda rows: len(rows) + 0.3])
    assert m.exact_epsilon(shifted.law([1]), shifted.law([1, 2])) == pytest.approx(1.0)
    twisted = SharedNoiseLaplace(1.0, [len, lambda rows: 2 * len(rows)])
    assert m.exact_epsilon(twisted.law([1]), twisted.law([1, 2])) == math.inf


class Words:
    """Mechanism whose outputs are words."""

    claim = PureDP(0.3)

    def sample(self, dataset, size, rng):
        return np.array(["a", "b"])[rng.integers(0, 2, size)]


def test_words_have_no_place_in_a_row_of_numbers():
    both = m.SequentialComposition((Words(), m.LaplaceMechanism(5.0)))
    with pytest.raises(MechanismError, match="a part's outputs are of type <U1"):
        both.sample(0.0, 3, np.random.default_rng(0))
