"""Queries and their exact sensitivity, over all pairs of datasets; synthetic tables."""

import itertools
import math
import pickle
from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit import AddRemove, Replace
from dpaudit.domains import CategoricalColumn, table_features
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.faulty import flaw
from dpaudit.mechanisms.faulty.noise import (
    gap_at_the_median,
    largest_degree,
    mean,
    median,
    n_edges,
    share_of_a_row,
    spread,
)
from dpaudit.mechanisms.queries import places_below_leader
from dpaudit.mechanisms.synthetic import _log_distribution, marginals

NAMES = ["Ann", "Bob", "Eve"]


def test_categories_and_candidates():
    for form in (list, tuple, np.array, pd.Series):
        assert m.CategoryCounts(NAMES)(form(["Eve", "Bob", "Zoe", "Bob"])).tolist() == [0, 2, 1]
    frame = pd.DataFrame({"ill": ["flu", "flu", "cold"], "age": [1, 2, 1]})
    assert m.CategoryCounts([("flu", 1), ("cold", 1)])(frame).tolist() == [1, 1]
    for query in (m.CategoryCounts(NAMES), m.EachCandidate(list.count, NAMES)):
        copy = pickle.loads(pickle.dumps(query))
        assert copy == query
        assert list(copy(["Bob"])) == [0, 1, 0]
    assert m.EachCandidate(lambda rows, c: sum(rows) * c, [1, 3, 2])([2, 3]) == [5, 15, 10]
    assert m.EachCandidate(min, range(1, 3)).candidates == (1, 2)
    assert places_below_leader(np.array, [1e15, 1e15 + 2, 1e15 - 4], 4.0).tolist() == [-0.5, 0.0, -1.5]


def nearness(rows, candidate):
    """A utility that is not monotone: a row attracts the best candidate."""
    return -abs(sum(rows) - candidate)


def revenue(bids, price):
    return price * sum(bid >= price for bid in bids)


def three_numbers(rows):
    return [max(rows, default=0) - min(rows, default=0), len(rows) ** 2, float(np.prod(rows))]


def by_all_pairs(query, domain, max_rows, adjacency, order, min_rows=0):
    """Slow and obvious: every pair of datasets, by the adjacency's own distance."""
    datasets = [
        list(rows)
        for size in range(min_rows, max_rows + 1)
        for rows in itertools.combinations_with_replacement(domain, size)
    ]
    pairs = [(x, y) for x, y in itertools.combinations(datasets, 2) if adjacency.distance(x, y) == 1]
    return max(np.linalg.norm(np.subtract(query(x), query(y)), order) for x, y in pairs)


@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", math.inf)])
@pytest.mark.parametrize("min_rows", [0, 2])
def test_sensitivity_is_the_maximum_over_all_pairs(adjacency, norm, order, min_rows):
    domain = [-1.0, 0.5, 2.0]
    found = m.query_sensitivity(three_numbers, domain, 4, adjacency, norm=norm, min_rows=min_rows)
    assert found == pytest.approx(by_all_pairs(three_numbers, domain, 4, adjacency, order, min_rows), rel=1e-14)
    candidates = [1, 2, 5]
    found = m.utility_sensitivity(nearness, candidates, [0, 1, 3], 3, adjacency)
    expected = by_all_pairs(lambda x: [nearness(x, c) for c in candidates], [0, 1, 3], 3, adjacency, math.inf)
    assert found == expected == 3
    for prices in ([1, 2, 3], [2.5], [0.5, 4.0]):
        assert m.utility_sensitivity(revenue, prices, [0, 1, 2, 3, 4], 3, adjacency) == max(prices)


def test_every_pair_of_neighbours_is_tried_and_no_other():
    """Only one pair of datasets has the largest change, and its place varies."""
    datasets = [rows for size in range(4) for rows in itertools.combinations_with_replacement("ab", size)]
    for hidden in datasets:

        def is_hidden(rows, hidden=hidden):
            return Counter(rows) == Counter(hidden)

        assert m.query_sensitivity(is_hidden, "ab", 3, AddRemove()) == 1
        assert m.query_sensitivity(is_hidden, "ab", 3, Replace()) == (len(hidden) > 0)
        assert m.query_sensitivity(is_hidden, "ab", 5, AddRemove(), min_rows=len(hidden) + 1) == 0


# Queries whose answers move by more than their stated sensitivity.

WRAPPED = [(1, 127, 127), (1, 128, -128), (-1, 129, 127), (1, 0, 0)]


ANSWERS = [
        *((flaw.WrappingTotal(8), [sign] * n, total) for sign, n, total in WRAPPED),
        (flaw.WrappingTotal(8), [100] * 3, 44),
        (flaw.half_precision_total, [16.0] * 127 + [8.0] + [1.25, -0.75] * 60, 2040),
        (flaw.half_precision_total, [16.0] * 128 + [1.0] * 100, 2048),  # by the order of the rows
        (flaw.half_precision_total, [1.0] * 100 + [16.0] * 128, 2148),
        (flaw.ClippedColumnTotals(), [(8, 0.5), (-1, 0.5)], [1, 1]),
        (flaw.column_totals, [(8, 0.5), (-1, 0.5)], [7, 1]),
        (flaw.RoundedAnswer(), 0.6, 1),
        (flaw.RoundedAnswer(len), [1, 2], 2),
        (flaw.standardised, [2.0, 2.0], [0, 0]),
        (lambda rows: flaw.standardised(rows)[0], [1.0] + [0.0] * 49, pytest.approx(7.0)),
        (flaw.n_triangles, nx.complete_graph(5), 10),
        (flaw.n_triangles, nx.Graph(set(nx.complete_graph(5).edges) - {(0, 1)}), 7),
        (flaw.squared_rows, [0, 0, 0], 9),
        (flaw.CountsOfClosedIntervals((0, 18, 65, 120)), [3.0, 18.0, 20.0, 64.0, 65.0, 99.0, 121.0], [2, 4, 2]),
        (flaw.prefix_counts, [1, 0, 2], [1, 1, 3]),
        (flaw.interval_tree, [1, 0, 2, 3], [1, 0, 2, 3, 1, 5, 6]),
        (flaw.CountsOverTheRange(2), [0.0, 1, 2, 3, 4, 5, 6, 7, 8, 10], [5, 5]),
        (flaw.CountsOverTheRange(2), [0.0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 40.0], [10, 1]),
        (flaw.CountsBetween(2, 0.0, 10.0), [0.0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 40.0], [5, 6]),
        (flaw.GradientSum(1.0), [(3.0, 4.0), (0.3, 0.4), (0.0, 0.0)], pytest.approx([0.9, 1.2])),
        (flaw.GradientSum(1.0, "mean"), [(3.0, 4.0), (0.3, 0.4), (0.0, 0.0)], pytest.approx([0.6, 0.8])),
        (flaw.GradientSum(1.0, "coordinate"), [(3.0, 4.0), (0.3, 0.4), (0.0, 0.0)], pytest.approx([1.3, 1.4])),
        (median, [3, 1, 2], 2),
        (gap_at_the_median, [0, 0, 5, 6, 6], 5),
        (spread, [2, 5, 3], 3),
        (mean, [2, 5, 5], 4),
        (share_of_a_row, [2, 5], 0.5),
        (largest_degree, nx.star_graph(4), 4),
        (largest_degree, nx.Graph(), 1),
        (n_edges, nx.star_graph(4), 4),
]  # fmt: skip


def test_answers_of_queries_in_the_catalogue():
    for query, rows, answer in ANSWERS:
        found = query(rows)
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == answer, query
    rows = [0.0, 0.0, 0.0, 1.0, 1.0]
    reached = [median([*rows[:i], new, *rows[i + 1 :]]) for i in range(5) for new in (0.0, 0.5, 1.0)]
    assert max(abs(value - median(rows)) for value in reached) == gap_at_the_median(rows) == 1
    moved = [np.abs(flaw.interval_tree(row) - flaw.interval_tree([0] * 4)).sum() for row in np.eye(4, dtype=int)]
    assert moved == [3] * 4


# Synthetic tables: the distribution of the marginals, and the tables that they stand for.

ONE_COLUMN = m.NoisyMarginals(1.0, (2,), rows=3)
MECHANISMS = [ONE_COLUMN, m.NoisyMarginals(1.0, (2, 3)), m.NoisyMarginals(0.5, (4,), 5, 2)]


def by_slow_code(counts, ratio, rows, reach=25):
    """Distribution of the values of category 1: every pair of noises, by its geometric probabilities."""
    distribution = np.zeros(rows + 1)
    for a in range(-reach, reach + 1):
        for b in range(-reach, reach + 1):
            weight = ((1 - ratio) / (1 + ratio)) ** 2 * ratio ** (abs(a) + abs(b))
            zero, one = max(counts[0] + a, 0), max(counts[1] + b, 0)
            share = one / (zero + one) if zero + one else 0.5
            distribution += weight * stats.binom.pmf(np.arange(rows + 1), rows, share)
    return distribution


def test_the_distribution_of_a_column_is_that_of_slow_code():
    assert np.exp(_log_distribution(np.array([2, 1]), ONE_COLUMN)) == pytest.approx(
        by_slow_code((2, 1), math.exp(-1), 3)
    )


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_a_table_has_the_marginals_that_are_its_output(mechanism):
    rows = [tuple(0 for _ in mechanism.categories)] * 2
    table = mechanism.table(rows, np.random.default_rng(3))
    drawn = mechanism.sample(rows, 1, np.random.default_rng(3))
    columns = {f"column {place}": CategoricalColumn(tuple(range(k))) for place, k in enumerate(mechanism.categories)}
    features = table_features(table, columns)
    assert {name: features[name] for name in drawn} == {name: float(count[0]) for name, count in drawn.items()}


def test_values_outside_the_domain_are_not_counted():
    counted = marginals([(0, 1), (7, 1), (None, -1), (1.5, 1)], (2, 2))
    assert [column.tolist() for column in counted] == [[1, 0], [0, 3]]


def test_a_noisy_number_of_rows_varies_and_that_of_the_data_does_not():
    data, rng = [(0,)] * 5, np.random.default_rng(0)
    assert len(set(m.NoisyMarginals(1.0, (2,)).sample(data, 100, rng)["rows"].tolist())) > 3
    assert set(faulty.RowsOfTheData(1.0, (2,)).sample(data, 100, rng)["rows"].tolist()) == {5}


def test_learned_categories_give_no_other():
    rng = np.random.default_rng(0)
    instead = faulty.LearnedCategories(1.0, (3,), 20).sample([(0,), (2,)], 200, rng)
    assert instead["column 0: 1"].max() == 0 < instead["column 0: 2"].max()
    besides = faulty.LearnedCategories(1.0, (3,), 20, "added")
    assert besides.sample([(0,)], 200, rng)["column 0: 3"].max() == 0
    assert besides.sample([(0,), (9,)], 200, rng)["column 0: 3"].max() > 0


def test_numbers_lie_in_the_declared_range_or_in_that_of_the_data():
    data, rng = [10.0, None, 40.0, 1e9], np.random.default_rng(0)
    declared = m.NoisyBins(1.0, 0.0, 100.0).sample(data, 500, rng)
    assert 0.0 <= declared.min() < 25.0 < 75.0 < declared.max() < 100.0
    learned = faulty.LearnedRange(1.0).sample(data[:3], 500, rng)
    assert learned.min() >= 10.0
    assert learned.max() < 40.0
