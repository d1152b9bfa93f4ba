"""Answers that move by more than their stated sensitivity, noise scaled by the data, and clipping after the noise."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.datasets.adjacency import AddRemove, Replace
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import LaplaceLaw, query_sensitivity
from dpaudit.mechanisms.faulty import ClippedAfterNoise, FlooredScaleMean, ScaleFromTheData, SignificantDigitsLaplace
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

ALARM, RUNS = 1e-8, 100_000


def rng():
    return np.random.default_rng(3)


def are_plausible(is_hit, probability):
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
    assert query_sensitivity(ClippedTotal(0, 1), [-3, 0.5, 8], 2, AddRemove()) == 1
    assert query_sensitivity(total, [-3, 0.5, 8], 2, AddRemove()) == 8
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
    mechanism = ScaleFromTheData(0.5, median, gap_at_the_median)
    assert mechanism.law([0, 0, 5, 6, 6]) == LaplaceLaw(5.0, 10.0)
    outputs = mechanism.sample([0, 0, 5, 6, 6], RUNS, rng())
    assert are_plausible(outputs > 15.0, math.exp(-1) / 2)
    assert set(mechanism.sample([0.0] * 5, 10, rng())) == {0.0}
    with pytest.raises(OptionError, match="scale=0"):
        mechanism.law([0.0] * 5)
    assert "0x" not in str(mechanism)


def test_a_floored_scale_adds_no_noise_where_the_noisy_count_is_negative():
    chance = math.exp(-0.5) / 2  # of a negative noisy count, for a count of 1 and noise of scale 2
    assert are_plausible(FlooredScaleMean(1.0).sample([0.0], RUNS, rng()) == 0.0, chance)
    assert not np.any(FlooredScaleMean(1.0).sample([0.0, 1.0], RUNS, rng()) == 0.0)
    right = FlooredScaleMean(1.0, least_count=1.0)
    assert np.count_nonzero(right.sample([0.0], RUNS, rng()) == 0.0) < 100
    assert np.abs(right.sample([1.0] * 1000, 1000, rng()) - 1.0).max() < 0.1


def test_the_grid_follows_the_digits_of_the_exact_count():
    mechanism = SignificantDigitsLaplace(0.5)
    assert np.any(np.mod(mechanism.sample([1] * 9, 1000, rng()), 10) != 0)
    assert np.all(np.mod(mechanism.sample([1] * 10, 1000, rng()), 10) == 0)
    assert np.all(np.mod(mechanism.sample([], 1000, rng()), 1) == 0)


def test_clipping_after_the_noise_bounds_only_the_output():
    outputs = ClippedAfterNoise(1.0, 8.0).sample([1.0, 6.0], RUNS, rng())
    assert (outputs.min(), outputs.max()) == (0.0, 8.0)
    assert are_plausible(outputs == 8.0, math.exp(-1) / 2)
    assert are_plausible(outputs == 0.0, math.exp(-7) / 2)
    with pytest.raises(ClaimError, match="most=0 is not allowed"):
        ClippedAfterNoise(1.0, 0)


def test_sensitivities_of_the_queries_in_the_catalogue():
    """The true sensitivities, for which the faulty mechanisms add too little noise."""
    assert query_sensitivity(median, [0.0, 1.0], 3, Replace(), min_rows=3) == 1
    assert query_sensitivity(ClippedTotal(0, 1), [0.0, 1.0], 3, Replace()) == 1
    assert query_sensitivity(total, [-1.0, 1.0], 3, Replace()) == 2
    assert query_sensitivity(WrappingTotal(2), [0, 1], 3, AddRemove()) == 3
