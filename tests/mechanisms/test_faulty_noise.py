"""Bugs in noise and in answers: outputs, their probabilities, and the loss.

Random tests raise a false alarm with probability 1e-8 at most each.
"""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.datasets.adjacency import AddRemove, Replace
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.faulty.calibration import misprinted_newton, scale_from_chi, solve_with_one
from dpaudit.mechanisms.faulty.flaw import (
    ClippedColumnTotals,
    ClippedTotal,
    CountsBetween,
    CountsOverTheRange,
    GradientSum,
    RoundedAnswer,
    WrappingTotal,
    column_totals,
    half_precision_total,
    interval_tree,
    n_triangles,
    prefix_counts,
    standardised,
    total,
)
from dpaudit.mechanisms.faulty.noise import (
    gap_at_the_median,
    largest_degree,
    mean,
    median,
    n_edges,
    share_of_a_row,
    spread,
)

# Noise of the wrong shape, and counts forced into a range: outputs, their probabilities, and the loss.

ALARM, RUNS = 1e-8, 100_000


def rng():
    return np.random.default_rng(3)


def are_plausible(is_hit, probability):
    """Whether the number of hits is inside the exact binomial limits."""
    limits = stats.binom(len(is_hit), probability)
    return limits.ppf(ALARM / 2) <= np.count_nonzero(is_hit) <= limits.isf(ALARM / 2)


def test_truncated_noise_stays_within_its_reach():
    outputs = faulty.BoundedLaplace(0.5, reach=3.0).sample(10.0, RUNS, rng())
    assert 4.0 <= outputs.min() < 4.1
    assert 15.9 < outputs.max() <= 16.0
    beyond = (math.exp(-1) - math.exp(-3)) / (1 - math.exp(-3)) / 2
    assert are_plausible(outputs > 12.0, beyond)
    assert are_plausible(outputs < 8.0, beyond)


def test_one_sided_noise_is_exponential():
    outputs = faulty.OneSidedLaplace(0.5).sample(10.0, RUNS, rng())
    assert outputs.min() >= 10.0
    assert are_plausible(outputs > 12.0, math.exp(-1))


def test_noise_of_few_bits_has_few_values():
    mechanism = faulty.FewValuesLaplace(0.5, bits=5)
    here, there = (set(mechanism.sample(answer, 5_000, rng()).tolist()) for answer in (0.0, 1.0))
    assert len(here) == len(there) == 2**5
    assert not here & there
    law = m.LaplaceLaw(0.0, 2.0)
    assert sorted(law.cdf(sorted(here))) == pytest.approx((np.arange(32) + 0.5) / 32, abs=1e-6)


@pytest.mark.parametrize("count", [0, 2])
def test_counts_redrawn_until_they_are_not_negative(count):
    outputs = faulty.RedrawnUntilNonnegative(0.5).sample(count, RUNS, rng())
    assert outputs.min() >= 0
    law = m.LaplaceLaw(count, 2.0)
    assert are_plausible(outputs <= 1.0, (law.cdf(1.0) - law.cdf(0.0)) / law.sf(0.0))


def test_the_loss_of_redrawing():
    z = np.linspace(0, 30, 301)

    def log_density(count):
        law = m.LaplaceLaw(count, 2.0)
        return law.log_density(z) - np.log(law.sf(0.0))

    losses = [np.abs(log_density(count) - log_density(count + 1)).max() for count in range(5)]
    assert losses[0] == max(losses) == pytest.approx(faulty.RedrawnUntilNonnegative(0.5).truth.epsilon, rel=1e-12)
    with pytest.raises(DatasetError, match="the count -1 is negative"):
        faulty.RedrawnUntilNonnegative(0.5).sample(-1, 1, rng())


def test_noise_rounded_towards_zero():
    mechanism = faulty.TowardsZeroLaplace(0.5)
    outputs = mechanism.sample(7, RUNS, rng())
    zero, one = -math.expm1(-0.5), -math.expm1(-0.5) * math.exp(-0.5) / 2
    assert outputs.dtype == np.int64
    assert are_plausible(outputs == 7, zero)
    assert are_plausible(outputs == 8, one)
    assert are_plausible(outputs == 6, one)
    assert math.log(zero / one) == pytest.approx(mechanism.truth.epsilon, rel=1e-12)


def test_a_seed_from_the_data_leaves_no_noise():
    mechanism = faulty.SeededByTheData(0.5)
    first = mechanism.sample([1, 2, 2], 50, rng())
    assert len(set(first)) == 1
    assert np.array_equal(first, mechanism.sample([2, 1, 2], 50, np.random.default_rng(4)))
    assert first[0] != mechanism.sample([1, 2], 1, rng())[0]


def test_scales_of_the_twins():
    assert faulty.BestOfDraws(0.5, k=4).law(0.0) == m.LaplaceLaw(0.0, 0.5)
    deviation = faulty.DeviationAsScaleLaplace(0.5).law(0.0).scale * math.sqrt(2)
    assert deviation == pytest.approx(2.0, rel=1e-15)
    for twin in (faulty.BestOfDraws(0.5, k=4), faulty.DeviationAsScaleLaplace(0.5)):
        assert m.exact_epsilon(twin.law(0.0), twin.law(1.0)) == pytest.approx(twin.truth.epsilon, rel=1e-15)
        assert twin.claim == PureDP(0.5)


def test_the_best_of_draws_is_nearest_to_the_answer():
    draws = np.random.default_rng(5).laplace(scale=2.0, size=(RUNS, 4))
    nearest = np.take_along_axis(draws, np.abs(draws).argmin(axis=1)[:, None], axis=1)[:, 0]
    law = faulty.BestOfDraws(0.5, k=4).law(0.0)
    for z in (-1.0, -0.1, 0.3, 2.0):
        assert are_plausible(nearest <= z, float(law.cdf(z)))


def test_a_clamped_count_has_the_masses_of_the_tails():
    law = faulty.RangedCount(0.5, 3, is_redrawn=False).law([1, 0])
    free = {k: (1 - math.exp(-0.5)) / (1 + math.exp(-0.5)) * math.exp(-0.5 * abs(k - 1)) for k in range(-200, 200)}
    expected = [sum(free[k] for k in range(-200, 1)), free[1], free[2], sum(free[k] for k in range(3, 200))]
    assert law.probabilities.tolist() == pytest.approx(expected, rel=1e-12)
    assert faulty.RangedCount(0.5, None, is_redrawn=False).law([]).probabilities.tolist() == [1.0]


@pytest.mark.parametrize("most", [1, 4])
def test_redrawing_into_a_range_loses_more_and_clamping_does_not(most):
    twin, clamped = faulty.RedrawnIntoRange(0.5, most), faulty.RangedCount(0.5, most, is_redrawn=False)
    datasets = [[1] * count for count in range(most + 1)]

    def largest(mechanism):
        laws = [mechanism.law(dataset) for dataset in datasets]
        return max(m.exact_epsilon(*laws[i : i + 2]) for i in range(most))

    assert largest(twin) == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert (twin.truth.epsilon > 0.5) == (most > 1)  # one step apart in {0, 1} the two normalisers are the same
    assert twin.truth.epsilon < 1.0
    assert largest(clamped) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("is_redrawn", [True, False])
def test_a_range_that_follows_the_rows_reveals_a_row(is_redrawn):
    twin = faulty.RangeOfTheRows(0.5, is_redrawn)
    assert m.exact_epsilon(twin.law([0, 1]), twin.law([0, 1, 0])) == math.inf
    assert twin.truth is None
    assert twin.sample([0, 1], 1000, rng()).max() == 2


# A table of geometric noise with one wrong weight: its frequencies, and what it guarantees.


@pytest.mark.parametrize(("epsilon", "factor", "place"), [(0.5, 1.2, 2), (1.0, 3.0, 0), (0.1, 1.0, -7)])
def test_frequencies_are_those_of_the_table(epsilon, factor, place):
    """Of nine outcomes in 100,000 runs; this test fails by chance with probability 2e-8."""
    mechanism, runs = faulty.MisprintedTableGeometric(epsilon, factor, place, query=len), 100_000
    outputs = mechanism.sample([1] * 5, runs, np.random.default_rng(3))
    assert outputs.dtype == np.int64
    right = np.exp(m.GeometricMechanism(epsilon).law(0).log_density(np.arange(-400, 401)))
    weights = np.where(np.arange(-400, 401) == place, factor, 1.0) * right
    for noise in range(place - 4, place + 5):
        share = weights[noise + 400] / weights.sum()
        low, high = binom.ppf(1e-9, runs, share), binom.isf(1e-9, runs, share)
        assert low <= np.count_nonzero(outputs == 5 + noise) <= high


def test_one_outcome_breaks_the_claim():
    mechanism = faulty.MisprintedTableGeometric(0.5, 1.2, 2)
    assert mechanism.claim == PureDP(0.5)
    assert mechanism.truth == PureDP(0.5 + math.log(1.2))
    assert str(mechanism) == "MisprintedTableGeometric(epsilon=0.5, factor=1.2, place=2)"


@pytest.mark.parametrize("options", [{"factor": 0.5}, {"place": 1_000}, {"factor": math.nan}, {"epsilon": 0.0}])
def test_impossible_tables(options):
    with pytest.raises(ClaimError):
        faulty.MisprintedTableGeometric(**({"epsilon": 0.5} | options))


# Three ways to miscalibrate Gaussian noise: direction and size of the error.

TWINS = [faulty.VarianceAsScaleGaussian, faulty.OneForEpsilonGaussian, faulty.MisprintedNewtonGaussian]


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1.0), (1.1, 0.2)])
def test_twins_state_the_true_delta_of_their_noise(kind, epsilon, sensitivity):
    twin = kind(epsilon, 1e-5, sensitivity=sensitivity)
    assert twin.right_scale == m.analytic_gaussian_scale(epsilon, 1e-5, sensitivity)
    assert twin.law(3.0).scale == twin.scale
    assert twin.claim == ApproxDP(epsilon, 1e-5)
    found = m.exact_delta(twin.law(0.0), twin.law(sensitivity), epsilon)
    assert twin.truth.delta == pytest.approx(found, rel=1e-9)
    assert twin.truth.epsilon == epsilon
    assert (twin.truth.delta > 1e-5) == (twin.scale < twin.right_scale)


@pytest.mark.parametrize("kind", [faulty.OneForEpsilonGaussian, faulty.MisprintedNewtonGaussian])
def test_a_wrong_chi_is_independent_of_the_sensitivity(kind):
    assert kind(0.7, 1e-5, sensitivity=7.0).scale == pytest.approx(7 * kind(0.7, 1e-5).scale, rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_right_chi_gives_the_right_scale(epsilon):
    scale = m.analytic_gaussian_scale(epsilon, 1e-5)
    chi = (epsilon * scale - 1 / (2 * scale)) / math.sqrt(2)
    assert scale_from_chi(chi, epsilon, 1.0) == pytest.approx(scale, rel=1e-12)
    assert 1 / (math.sqrt(2) * (math.sqrt(chi**2 + epsilon) - chi)) == pytest.approx(scale, rel=1e-12)


def test_one_for_epsilon_is_right_at_one_and_over_noised_below():
    assert faulty.OneForEpsilonGaussian(1.0, 1e-5).scale == pytest.approx(
        m.analytic_gaussian_scale(1.0, 1e-5), rel=1e-9
    )
    ratios = [faulty.OneForEpsilonGaussian(epsilon, 1e-5) for epsilon in (0.1, 0.25, 0.5, 0.9)]
    excess = [twin.scale / twin.right_scale for twin in ratios]
    assert excess == sorted(excess, reverse=True)
    assert excess == pytest.approx([1.355, 1.252, 1.175, 1.063], abs=1e-3)


def test_one_for_epsilon_is_under_noised_just_above_one():
    twin = faulty.OneForEpsilonGaussian(1.1, 1e-5)
    assert twin.truth.delta == pytest.approx(3.9e-4, rel=0.01)
    assert twin.scale / twin.right_scale == pytest.approx(0.764, abs=1e-3)


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_a_failed_solver_returns_its_last_iterate(epsilon):
    """The solver finds no solution: the equation is far from met, and the end point depends on the last bits."""
    chi = solve_with_one(epsilon, 1e-5)
    gap = math.erfc(chi) - math.exp(epsilon) * math.erfc(math.sqrt(chi**2 + 1)) - 2e-5
    assert abs(gap) > 0.9e-5
    assert 1.5 < faulty.OneForEpsilonGaussian(epsilon, 1e-5).scale / m.analytic_gaussian_scale(epsilon, 1e-5) < 3.5
    assert solve_with_one(epsilon, 1e-5) == chi


def test_misprinted_newton_stops_near_its_start():
    chi = misprinted_newton(1.0, 1e-5, tolerance=1e-3, most_steps=1000)
    assert 2.0 < chi < 2.0001
    twin = faulty.MisprintedNewtonGaussian(1.0, 1e-5)
    assert twin.truth.delta == pytest.approx(2.1e-4, rel=0.01)
    assert twin.scale < 0.81 * twin.right_scale


def test_misprinted_newton_creeps():
    """From 2 the iteration reaches 2.011 in 10⁵ steps; the solution is 2.543."""
    assert misprinted_newton(1.0, 1e-5, tolerance=0.0, most_steps=100_000) == pytest.approx(2.011, abs=5e-4)
    right = (m.analytic_gaussian_scale(1.0, 1e-5) - 1 / (2 * m.analytic_gaussian_scale(1.0, 1e-5))) / math.sqrt(2)
    assert right == pytest.approx(2.543, abs=5e-4)


def test_newton_with_the_right_derivative_converges():
    """With the derivative e^ε e^{−χ²−ε} χ/√(χ²+ε) − e^{−χ²} the iteration is sound."""
    chi, epsilon, delta = 2.0, 1.0, 1e-5
    for _ in range(20):
        root = math.sqrt(chi**2 + epsilon)
        gap = math.sqrt(math.pi) / 2 * (math.erfc(chi) - math.exp(epsilon) * math.erfc(root) - 2 * delta)
        chi -= gap / (math.exp(-chi * chi) * (chi / root - 1))
    assert scale_from_chi(chi, epsilon, 1.0) == pytest.approx(m.analytic_gaussian_scale(epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0, 0.1, "epsilon=0 is not allowed; use 0 < epsilon < 700"),
        (700.0, 0.1, "epsilon=700.0 is not allowed"),
        (math.nan, 0.1, "epsilon=nan is not allowed"),
        (1.0, 0, "delta=0 is not allowed"),
    ],
)
def test_errors_of_faulty_gaussian(kind, epsilon, delta, message):
    with pytest.raises(ClaimError) as caught:
        kind(epsilon, delta)
    assert message in str(caught.value)


def test_outputs_have_the_wrong_scale():
    """The deviation of 10⁵ outputs is within 5.9 standard errors of the wrong scale (4e-9) and 30 off the right one."""
    twin = faulty.OneForEpsilonGaussian(1.1, 1e-5)
    spread = float(np.std(twin.sample(0.0, 100_000, np.random.default_rng(5))))
    assert abs(spread / twin.scale - 1) < 5.9 / math.sqrt(200_000)
    assert abs(spread / twin.right_scale - 1) > 30 / math.sqrt(200_000)


# Answers that move by more than their stated sensitivity, noise scaled by the data, and clipping after the noise.

ALARM, RUNS = 1e-8, 100_000


def are_plausible_of_faulty_answers(is_hit, probability):
    limits = stats.binom(len(is_hit), probability)
    return limits.ppf(ALARM / 2) <= np.count_nonzero(is_hit) <= limits.isf(ALARM / 2)


def test_whole_sums_wrap_as_in_numpy():
    for rows in ([1] * 127, [1] * 128, [-1] * 129, [100, 100, 100], []):
        assert WrappingTotal(8)(rows) == int(np.array(rows, dtype=np.int8).sum(dtype=np.int8))
    assert WrappingTotal(8)([1] * 127) - WrappingTotal(8)([1] * 128) == 255
    assert WrappingTotal(16)([1] * 128) == 128


def test_half_precision_rounds_by_the_partial_sum():
    up_and_down = [1.25, -0.75] * 60
    low, high = ([16.0] * 127 + [row, *up_and_down] for row in (8.0, 16.0))
    assert half_precision_total(low) == 2040
    assert half_precision_total(high) == 2048 + 120
    assert total(high) - total(low) == 8


def test_half_precision_depends_on_the_order():
    large, small = [16.0] * 128, [1.0] * 100
    assert half_precision_total(large + small) == 2048
    assert half_precision_total(small + large) == 2148 == total(small + large)


def test_clipping_bounds_the_sensitivity():
    assert m.query_sensitivity(ClippedTotal(0, 1), [-3, 0.5, 8], 2, AddRemove()) == 1
    assert m.query_sensitivity(total, [-3, 0.5, 8], 2, AddRemove()) == 8
    assert ClippedColumnTotals()([(8, 0.5), (-1, 0.5)]).tolist() == [1, 1]
    assert column_totals([(8, 0.5), (-1, 0.5)]).tolist() == [7, 1]


def test_rounding_turns_a_change_below_1_into_1():
    assert [RoundedAnswer()(answer) for answer in (0.4, 0.6)] == [0, 1]
    assert RoundedAnswer(len)([1, 2]) == 2


def test_standardised_scores():
    scores = standardised([1.0] + [0.0] * 49)
    assert scores[0] == pytest.approx(7.0)
    assert scores.mean() == pytest.approx(0.0, abs=1e-15)
    assert standardised([2.0, 2.0]).tolist() == [0, 0]


def test_counts_of_triangles_move_by_the_common_neighbours():
    graph = nx.complete_graph(5)
    assert n_triangles(graph) == 10
    graph.remove_edge(0, 1)
    assert n_triangles(graph) == 7


def test_sums_over_bins():
    assert prefix_counts([1, 0, 2]).tolist() == [1, 1, 3]
    assert interval_tree([1, 0, 2, 3]).tolist() == [1, 0, 2, 3, 1, 5, 6]
    moved = [np.abs(interval_tree(counts) - interval_tree([0] * 4)).sum() for counts in np.eye(4, dtype=int)]
    assert moved == [3] * 4
    numbers = [0.0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert CountsOverTheRange(2)(numbers).tolist() == [5, 5]
    assert CountsOverTheRange(2)([*numbers, 40.0]).tolist() == [10, 1]
    assert CountsBetween(2, 0.0, 10.0)([*numbers, 40.0]).tolist() == [5, 6]


def test_gradients_are_clipped_by_example_by_their_mean_or_by_coordinate():
    rows = [(3.0, 4.0), (0.3, 0.4), (0.0, 0.0)]
    assert GradientSum(1.0)(rows).tolist() == pytest.approx([0.9, 1.2])
    assert GradientSum(1.0, "mean")(rows).tolist() == pytest.approx([0.6, 0.8])
    assert GradientSum(1.0, "coordinate")(rows).tolist() == pytest.approx([1.3, 1.4])
    assert GradientSum(10.0)(rows).tolist() == pytest.approx([3.3, 4.4])


def test_statistics_used_as_sensitivities():
    assert median([3, 1, 2]) == 2
    assert gap_at_the_median([0, 0, 5, 6, 6]) == 5
    rows = [0.0, 0.0, 0.0, 1.0, 1.0]
    reached = [median([*rows[:i], new, *rows[i + 1 :]]) for i in range(5) for new in (0.0, 0.5, 1.0)]
    assert max(abs(value - median(rows)) for value in reached) == gap_at_the_median(rows) == 1
    assert spread([2, 5, 3]) == 3
    assert mean([2, 5, 5]) == 4
    assert share_of_a_row([2, 5]) == 0.5
    assert [largest_degree(graph) for graph in (nx.star_graph(4), nx.empty_graph(3), nx.Graph())] == [4, 1, 1]
    assert n_edges(nx.star_graph(4)) == 4
    with pytest.raises(DatasetError, match="2 rows have no single middle one"):
        median([1, 2])


def test_noise_of_a_scale_from_the_data():
    mechanism = faulty.ScaleFromTheData(0.5, median, gap_at_the_median)
    assert mechanism.law([0, 0, 5, 6, 6]) == m.LaplaceLaw(5.0, 10.0)
    outputs = mechanism.sample([0, 0, 5, 6, 6], RUNS, rng())
    assert are_plausible_of_faulty_answers(outputs > 15.0, math.exp(-1) / 2)
    assert set(mechanism.sample([0.0] * 5, 10, rng())) == {0.0}
    with pytest.raises(OptionError, match="scale=0"):
        mechanism.law([0.0] * 5)
    assert "0x" not in str(mechanism)


def test_a_floored_scale_adds_no_noise_where_the_noisy_count_is_negative():
    chance = math.exp(-0.5) / 2  # of a negative noisy count, for a count of 1 and noise of scale 2
    assert are_plausible_of_faulty_answers(faulty.FlooredScaleMean(1.0).sample([0.0], RUNS, rng()) == 0.0, chance)
    assert not np.any(faulty.FlooredScaleMean(1.0).sample([0.0, 1.0], RUNS, rng()) == 0.0)
    right = faulty.FlooredScaleMean(1.0, least_count=1.0)
    assert np.count_nonzero(right.sample([0.0], RUNS, rng()) == 0.0) < 100
    assert np.abs(right.sample([1.0] * 1000, 1000, rng()) - 1.0).max() < 0.1


def test_the_grid_follows_the_digits_of_the_exact_count():
    mechanism = faulty.SignificantDigitsLaplace(0.5)
    assert np.any(np.mod(mechanism.sample([1] * 9, 1000, rng()), 10) != 0)
    assert np.all(np.mod(mechanism.sample([1] * 10, 1000, rng()), 10) == 0)
    assert np.all(np.mod(mechanism.sample([], 1000, rng()), 1) == 0)


def test_clipping_after_the_noise_bounds_only_the_output():
    outputs = faulty.ClippedAfterNoise(1.0, 8.0).sample([1.0, 6.0], RUNS, rng())
    assert (outputs.min(), outputs.max()) == (0.0, 8.0)
    assert are_plausible_of_faulty_answers(outputs == 8.0, math.exp(-1) / 2)
    assert are_plausible_of_faulty_answers(outputs == 0.0, math.exp(-7) / 2)
    with pytest.raises(ClaimError, match="most=0 is not allowed"):
        faulty.ClippedAfterNoise(1.0, 0)


def test_sensitivities_of_the_queries_in_the_catalogue():
    """The true sensitivities, for which the faulty mechanisms add too little noise."""
    assert m.query_sensitivity(median, [0.0, 1.0], 3, Replace(), min_rows=3) == 1
    assert m.query_sensitivity(ClippedTotal(0, 1), [0.0, 1.0], 3, Replace()) == 1
    assert m.query_sensitivity(total, [-1.0, 1.0], 3, Replace()) == 2
    assert m.query_sensitivity(WrappingTotal(2), [0, 1], 3, AddRemove()) == 3


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: faulty.BoundedLaplace(0.5, reach=0), ClaimError, "reach=0 is not allowed"),
        (lambda: faulty.BoundedLaplace(-1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: faulty.FewValuesLaplace(0.5, bits=0), ClaimError, "bits=0 is not a number of random bits"),
        (lambda: faulty.OneSidedLaplace(math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: faulty.BestOfDraws(0.5, k=0), ClaimError, "k=0 is not a number of draws"),
        (lambda: faulty.RedrawnIntoRange(0.5, 0), ClaimError, "most=0 is not a number of rows"),
        (lambda: faulty.RangeOfTheRows(0.5).law([2]), DatasetError, "a row is neither 0 nor 1"),
        (lambda: faulty.RedrawnIntoRange(0.5, 1).law([1, 1]), DatasetError, "2 rows are 1, more than most=1"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
