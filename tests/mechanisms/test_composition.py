"""Compositions, group privacy and aggregates by published algorithms: rows, distributions, right values and slow
variants.

The thresholds and the samples of aggregates are random tests with false-alarm probabilities of at most 1e-8 each.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.aggregates import ApproximateBounds, BoundedMoments, noisy_moments, noisy_tree_counts
from dpaudit.mechanisms.noise_samplers import fill_laplace

from .cells import is_off

AGES = [3.0, 18.0, 20.0, 64.0, 65.0, 99.0]
LAPLACE, GAUSSIAN = m.LaplaceMechanism, m.GaussianMechanism


@pytest.mark.parametrize(
    ("composition", "claim"),
    [
        (m.SequentialComposition([LAPLACE(0.5), m.GeometricMechanism(0.25)]), PureDP(0.75)),
        (m.SequentialComposition([GAUSSIAN(1.0, 1e-5), GAUSSIAN(0.5, 2e-5)]), ApproxDP(1.5, 3e-5)),
        (m.ParallelComposition([LAPLACE(2.0), GAUSSIAN(1.0, 1e-5)], m.IntervalOf((18,))), ApproxDP(2.0, 1e-5)),
        (m.AdaptiveComposition(LAPLACE(0.5), LAPLACE, PureDP(0.25)), PureDP(0.75)),
        (faulty.SharedNoiseLaplace(0.5, (len, sum)), PureDP(1.0)),
    ],
    ids=str,
)
def test_epsilons_and_deltas_add_up_in_sequence_and_the_largest_counts_in_parallel(composition, claim):
    assert type(composition.claim) is type(claim)
    assert composition.epsilon == composition.claim.epsilon == pytest.approx(claim.epsilon, rel=1e-15)
    assert getattr(composition.claim, "delta", 0.0) == pytest.approx(getattr(claim, "delta", 0.0), rel=1e-15)


def test_rows_hold_the_parts_outputs():
    rng = np.random.default_rng(1)
    whole = m.SequentialComposition([m.GeometricMechanism(1.0), m.DiscreteGaussianMechanism(1.0, 1.0)])
    rows = whole.sample(3, 10, rng)
    assert (rows.dtype, rows.shape) == (np.int64, (10, 2))
    parts = [m.VectorGaussianMechanism(1.0, 1e-5, query=list), m.GeometricMechanism(30.0, query=len)]
    rows = m.SequentialComposition(parts).sample((5.0, -5.0), 10, rng)
    assert (rows.dtype, rows.shape) == (np.float64, (10, 3))
    assert (rows[:, 2] == 2).all()
    assert [
        distribution.location for distribution in m.SequentialComposition(parts).distribution((5.0, -5.0)).marginals
    ] == [5.0, -5.0, 2]
    part = m.IntervalOf((18, 65))
    assert [part(age) for age in (-np.inf, 17.9, 18, 64.9, 65, np.inf)] == [0, 0, 1, 1, 2, 2]
    assert [m.IntervalOf(())(age) for age in (-1, 1)] == [0, 0]
    sure = m.ParallelComposition([m.GeometricMechanism(40.0, query=len)] * 3, part)
    assert [distribution.location for distribution in sure.distribution(AGES).marginals] == [1, 3, 2]
    assert [distribution.location for distribution in sure.distribution([]).marginals] == [0, 0, 0]
    assert sure.sample(np.array(AGES), 5, rng).tolist() == [[1, 3, 2]] * 5


def test_the_number_of_ones_is_sufficient_for_many_responses():
    folded, product = m.RandomisedResponseFold(0.3, 4), m.composed(m.RandomisedResponse(0.3), 4)
    rows = list(itertools.product(range(2), repeat=4))
    joint = [m.FiniteDistribution(tuple(product.distribution(value).log_density(rows).tolist())) for value in (1, 0)]
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        assert m.exact_delta(*joint, epsilon) == pytest.approx(
            m.exact_delta(folded.distribution(1), folded.distribution(0), epsilon)
        )


def echo(output):
    """Return a geometric mechanism around 100 times the output, with noise 0 except once in 10¹² draws."""
    return m.GeometricMechanism(30.0, query=lambda dataset: 100 * output)


def test_the_second_mechanism_is_the_one_chosen_for_the_first_output():
    first, rng = m.RandomisedResponse(0.1, k=5), np.random.default_rng(1)
    rows = m.AdaptiveComposition(first, echo, then_claim=PureDP(30.0)).sample(2, 5_000, rng)
    assert rows.dtype == np.int64
    assert set(rows[:, 0].tolist()) == set(range(5))
    assert np.array_equal(rows[:, 1], 100 * rows[:, 0])
    pair = m.SequentialComposition([first, first])
    rows = m.AdaptiveComposition(pair, lambda row: echo(row[0] + 10 * row[1]), PureDP(30.0)).sample(2, 5_000, rng)
    assert np.array_equal(rows[:, 2], 100 * (rows[:, 0] + 10 * rows[:, 1]))
    chosen = m.AdaptiveComposition(LAPLACE(1.0), lambda answer: LAPLACE(1.0 if answer == 0 else 0.5), PureDP(1.0))
    assert chosen.sample(0.0, 50, rng).shape == (50, 2)  # one mechanism per run
    greedy = m.AdaptiveComposition(m.RandomisedResponse(1.0), lambda answer: m.RandomisedResponse(0.7), PureDP(0.5))
    for use in (greedy.distribution, lambda dataset: greedy.sample(dataset, 1000, rng)):
        with pytest.raises(ClaimError, match=r"then\(0\) returned RandomisedResponse\(epsilon=0.7.*, which claims 0.7"):
            use(0)


def test_advanced_composition_holds_of_the_exact_composition_and_pays_for_many():
    for epsilon, k, slack in itertools.product((0.05, 0.2, 1.0), (1, 10, 400), (1e-9, 1e-3)):
        fold = m.RandomisedResponseFold(epsilon, k)
        bound, delta = m.advanced_composition(epsilon, 0.0, k, slack)
        assert delta == slack
        assert m.exact_epsilon(fold.distribution(0), fold.distribution(1), delta) <= bound
    assert m.advanced_composition(0.01, 0.0, 10_000, 1e-6)[0] < 0.1 * 10_000 * 0.01
    assert m.advanced_composition(0.5, 1e-7, 2, 1e-6)[0] > 2 * 0.5
    assert m.advanced_composition(800.0, 0.0, 3, 1e-6)[0] == math.inf
    # mpmath, 30 digits: sqrt(2000 log(10^6)) / 10 + 100 (e^(1/10) − 1)
    assert m.advanced_composition(0.1, 1e-8, 1000, 1e-6) == pytest.approx((27.1396731702559, 1.1e-5), rel=1e-12)


def test_shared_noise_moves_both_answers_alike():
    variant = faulty.SharedNoiseLaplace(0.5, (len, sum))
    rows = variant.sample([1, 1, 1, 0], 1000, np.random.default_rng(1))
    assert (rows[:, 0] - rows[:, 1] == 1).all()
    without = variant.sample([1, 1, 1], 1000, np.random.default_rng(1))
    assert (without[:, 0] == without[:, 1]).all()
    assert rows.std(axis=0, ddof=1) == pytest.approx([math.sqrt(8)] * 2, rel=0.25)
    assert variant.truth is None


# Group privacy: both forms of delta against mpmath, attained bounds, and the claim's boundary composed.


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-17, 1e-3, 1.0, 20.0])
@pytest.mark.parametrize("k", [1, 2, 30])
def test_both_forms_of_a_groups_delta_at_high_precision(epsilon, k):
    """The sum term by term, and k times its last term, with 60 digits; the sum is the smaller form."""
    with mpmath.workdps(60):
        terms = [mpmath.exp(j * mpmath.mpf(epsilon)) for j in range(k)]
        exact = {"sum": mpmath.fsum(terms) * mpmath.mpf(1e-6), "product": k * terms[-1] * mpmath.mpf(1e-6)}
    for form, value in exact.items():
        assert m.group_delta(epsilon, 1e-6, k, form) == pytest.approx(float(value), rel=1e-12)
        assert m.group_delta(epsilon, 0.0, 1000, form) == 0.0


def test_claims_of_groups():
    assert m.group_delta(1.0, 1e-5, 10**6) == m.group_delta(1e308, 1e-5, 10, "product") == math.inf
    assert m.group_delta(1e308, 1e-5, 10) == math.inf
    assert m.GroupPrivacy(0.5)(4) == m.GroupPrivacy(0.5)(3.2) == PureDP(2.0)  # a distance of 3.2 needs four steps
    for form in ("sum", "product"):
        claim = m.GroupPrivacy(0.5, 1e-3, form, bound_on="delta")(3)
        assert claim == ApproxDP(1.5, m.group_delta(0.5, 1e-3, 3, form), "delta")
    # The strongest test at distance k, from q = 0, is the claim's boundary applied k times.
    one, zero = np.zeros(1), np.ones(1)
    for _ in range(4):
        one, zero = ApproxDP(0.5, 1e-3).max_power(one, zero)
    assert one[0] == pytest.approx(m.group_delta(0.5, 1e-3, 4), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.3, 0.01), (0.0, 0.02)])
def test_groups_attain_the_sum_up_to_the_corner(epsilon, delta):
    mechanism = m.GroupTightMechanism(epsilon, delta)
    distributions = [mechanism.distribution(n) for n in range(9)]
    assert mechanism.claim == ApproxDP(epsilon, delta)
    corner = (1 - delta) / (1 + math.exp(epsilon))
    for k in range(1, 9):
        found, bound = m.exact_delta(distributions[0], distributions[k], k * epsilon), m.group_delta(epsilon, delta, k)
        assert found <= bound * (1 + 1e-9)
        assert bound > corner or found == pytest.approx(bound, rel=1e-9)
        assert k > 2 or bound <= corner


def test_the_bit_of_a_group_grows_by_epsilon_and_ends_at_one_with_a_delta():
    """Up to the corner 1/(1 + e^ε), by hand; beyond it the complement shrinks by e^ε."""
    distributions = [m.GroupTightMechanism(0.5, start=0.01).distribution(n) for n in range(30)]
    assert [distribution.probabilities[1] for distribution in distributions[:7]] == pytest.approx(
        [0.01 * math.exp(0.5 * n) for n in range(7)]
    )
    assert all(
        m.exact_epsilon(one, two) == pytest.approx(0.5, rel=1e-12) for one, two in itertools.pairwise(distributions)
    )
    assert distributions[29].probabilities[0] == pytest.approx(
        distributions[28].probabilities[0] * math.exp(-0.5), rel=1e-12
    )
    ended = m.GroupTightMechanism(1.0, 0.1)
    assert ended.distribution(50).probabilities.tolist() == [0.0, 1.0]
    assert ended.sample(50, 10, np.random.default_rng(1)).tolist() == [1] * 10
    assert m.GroupTightMechanism(1.0, 1e-3, query=len).distribution(["Ann", "Bob"]) == m.GroupTightMechanism(
        1.0, 1e-3
    ).distribution(2)


# Aggregates.

ROWS = [0.5, -3.0, 7.0, 2.0]


def moments(n_moments, **options):
    return noisy_moments(n_moments, -1.0, 3.0, **options)


def test_moments_are_those_of_the_clipped_rows_and_results_are_clipped():
    for n_moments, wanted in [(1, np.mean), (2, np.var)]:
        noisy = moments(n_moments, epsilon=1.0)
        made, exact = (
            BoundedMoments(noisy, -1.0, 3.0),
            [distribution.location for distribution in noisy.distribution(ROWS).marginals],
        )
        assert made.from_parts([exact])[0] == pytest.approx(wanted(np.clip(ROWS, -1.0, 3.0)), rel=1e-12)
        parts = made.parts.sample(ROWS, 50, np.random.default_rng(3))
        assert made.sample(ROWS, 50, np.random.default_rng(3)).tolist() == made.from_parts(parts).tolist()
        assert made.claim == PureDP(1.0)
    assert str(made).startswith("variance of rows in [-1, 3]")
    mean, variance = (BoundedMoments(moments(n, epsilon=1.0), -1.0, 3.0) for n in (1, 2))
    assert mean.from_parts([[-5.0, 1.5], [2.0, 50.0], [2.0, -50.0]]).tolist() == [2.5, 3.0, -1.0]
    assert variance.from_parts([[1.0, 0.0, 90.0], [1.0, 9.0, 1.0], [-9.0, 1.0, 3.0]]).tolist() == [4.0, 0.0, 2.0]


def test_counts_of_a_tree_are_those_of_the_intervals():
    rows = [-9.0, -1.0, -0.51, -0.5, 0.0, 2.99, 3.0, 8.0]
    distribution = noisy_tree_counts(-1.0, 3.0, height=3, branching=2, epsilon=1.0).distribution(rows)
    edges = [np.linspace(-1.0, 3.0, 2**level + 1) for level in (1, 2, 3)]
    wanted = [np.histogram(np.clip(rows, -1.0, 3.0), each)[0] for each in edges]
    assert [each.location for each in distribution.marginals] == np.concatenate(wanted).tolist()


def slow(bounds, rows, size, seed):
    """Outputs by loops over bins and thresholds, with the noise that the sampler draws."""
    edges, noise = bounds.edges, np.empty((2 * bounds.bins, size))
    rng = np.random.default_rng(seed)
    for row in noise:
        fill_laplace(row, rng)
    noise *= bounds.noise_share * bounds.contributions / bounds.epsilon
    right = [bounds.scale * bounds.base**k for k in range(bounds.bins)]
    counts = [0.0] * (2 * bounds.bins)
    for value in rows:
        place = next((k for k, edge in enumerate(right) if abs(value) <= edge), bounds.bins - 1)
        counts[bounds.bins - 1 - place if value < 0 else bounds.bins + place] += 1
    found = []
    for run in range(size):
        output, noisy = (math.nan, math.nan), [count + z for count, z in zip(counts, noise[:, run], strict=True)]
        for threshold in bounds.thresholds:
            if reached := [place for place, count in enumerate(noisy) if count >= threshold]:
                output = (edges[reached[0]], edges[reached[-1] + 1])
                break
        found.append(output)
    return np.array(found)


@pytest.mark.parametrize(
    "rows", [[9.0] * 14, [-5.0] * 16 + [0.0] * 17 + [1.0] * 15, [99.0] * 30, [2.0] * 15 + [2.1] * 16]
)
@pytest.mark.parametrize("bins", [{}, {"bins": 3, "base": 3.0, "scale": 0.5}], ids=str)
def test_the_sampler_does_what_the_slow_code_does(rows, bins):
    bounds = ApproximateBounds(1.1, **bins)
    np.testing.assert_array_equal(bounds.sample(rows, 300, np.random.default_rng(5)), slow(bounds, rows, 300, 5))


def test_thresholds_are_quantiles_of_the_largest_noise():
    bounds = ApproximateBounds(0.5, contributions=3)
    below = 1 - np.exp(-bounds.thresholds * 0.5 / 3) / 2
    np.testing.assert_allclose(1 - below**10, 1e-9 * 2.0 ** np.arange(10), rtol=1e-6)


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_the_distribution_is_that_of_the_outputs(share):
    bounds, rows, runs = ApproximateBounds(1.1, noise_share=share), [3.0] * 15 + [9.0] * 17 + [-2.0] * 12, 20_000
    probabilities = bounds.distribution(rows).probabilities
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    outputs = bounds.sample(rows, runs, np.random.default_rng(6))
    places = {pair: place for place, pair in enumerate(bounds.outcomes[:-1])}
    found = [places.get((low, high), len(places)) for low, high in outputs.tolist()]
    assert not is_off(np.bincount(found, minlength=len(probabilities)), probabilities, runs)
