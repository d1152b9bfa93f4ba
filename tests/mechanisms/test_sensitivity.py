"""Exact sensitivities: by hand, against all pairs of datasets, and the effect of half a sensitivity."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from dpaudit import AddRemove, Local, Replace
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import (
    CategoryCounts,
    ExponentialMechanism,
    exact_epsilon,
    query_sensitivity,
    utility_sensitivity,
)
from dpaudit.mechanisms.faulty import HalfSensitivityExponential


def revenue(bids, price):
    return price * sum(bid >= price for bid in bids)


def nearness(rows, candidate):
    """A utility that is not monotone: a row attracts the best candidate."""
    return -abs(sum(rows) - candidate)


def spread(rows):
    return [max(rows, default=0) - min(rows, default=0), len(rows) ** 2, float(np.prod(rows))]


def mean(rows):
    return sum(rows) / len(rows) if rows else math.nan


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
    found = query_sensitivity(spread, domain, 4, adjacency, norm=norm, min_rows=min_rows)
    assert found == pytest.approx(by_all_pairs(spread, domain, 4, adjacency, order, min_rows), rel=1e-14)


@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
def test_utility_sensitivity_is_the_maximum_over_candidates_and_pairs(adjacency):
    domain, candidates = [0, 1, 3], [1, 2, 5]
    found = utility_sensitivity(nearness, candidates, domain, 3, adjacency)
    expected = by_all_pairs(lambda x: [nearness(x, c) for c in candidates], domain, 3, adjacency, math.inf)
    assert found == expected == 3


@pytest.mark.parametrize(
    ("query", "domain", "norm", "add_remove", "replace"),
    [
        (len, "ab", "l1", 1, 0), (CategoryCounts("abc"), "abc", "l1", 1, 2),
        (CategoryCounts("abc"), "abc", "l2", 1, math.sqrt(2)), (CategoryCounts("abc"), "abc", "linf", 1, 1),
        (sum, [-2.0, 1.0], "l1", 2, 3),
    ],
    ids=["count", "histogram L1", "histogram L2", "histogram Linf", "sum"],
)  # fmt: skip
def test_the_same_query_under_two_relations(query, domain, norm, add_remove, replace):
    assert query_sensitivity(query, domain, 3, AddRemove(), norm=norm) == pytest.approx(add_remove, rel=1e-15)
    assert query_sensitivity(query, domain, 3, Replace(), norm=norm) == pytest.approx(replace, rel=1e-15)


def test_a_mean_moves_less_on_more_rows():
    for n in (1, 2, 5):
        assert query_sensitivity(mean, [0.0, 1.0], n, Replace(), min_rows=n) == pytest.approx(1 / n, rel=1e-12)
    assert query_sensitivity(mean, [0.0, 1.0], 5, Replace()) == 1.0
    with pytest.raises(
        DatasetError, match=r"answered nan on a dataset of length 0, .* a query that answers every dataset, or a"
    ):
        query_sensitivity(mean, [0.0, 1.0], 5, AddRemove())


def test_every_pair_of_neighbours_is_tried_and_no_other():
    """Only one pair of datasets has the largest change, and its place varies."""
    datasets = [rows for size in range(4) for rows in itertools.combinations_with_replacement("ab", size)]
    for hidden in datasets:

        def is_hidden(rows, hidden=hidden):
            return Counter(rows) == Counter(hidden)

        assert query_sensitivity(is_hidden, "ab", 3, AddRemove()) == 1
        assert query_sensitivity(is_hidden, "ab", 3, Replace()) == (len(hidden) > 0)
        assert query_sensitivity(is_hidden, "ab", 5, AddRemove(), min_rows=len(hidden) + 1) == 0


@pytest.mark.parametrize("prices", [[1, 2, 3], [2.5], [0.5, 4.0]], ids=str)
@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
def test_revenue_changes_by_the_highest_price(prices, adjacency):
    assert utility_sensitivity(revenue, prices, [0, 1, 2, 3, 4], 3, adjacency) == max(prices)


@pytest.mark.parametrize("monotone", [False, True])
def test_half_of_the_sensitivity_breaks_the_claim(monotone):
    """A row changes the total by 1, raises one candidate's utility, and lowers fifty others (or none)."""

    def utility(rows, candidate):
        return sum(rows) * (1.0 if candidate == 0 else 0.0 if monotone else -1.0)

    candidates, x, y = range(51), [1.0] * 3, [1.0] * 2
    sensitivity = utility_sensitivity(utility, candidates, [0.0, 1.0], 3, AddRemove())
    assert sensitivity == 1.0
    twin = HalfSensitivityExponential(1.0, sensitivity, monotone)
    right = ExponentialMechanism(1.0, sensitivity, monotone)
    scores_x, scores_y = ([utility(rows, c) - utility(y, c) for c in candidates] for rows in (x, y))
    assert exact_epsilon(right.law(scores_x), right.law(scores_y)) <= 1.0
    found = exact_epsilon(twin.law(scores_x), twin.law(scores_y))
    assert twin.claim.epsilon == 1.0 < 1.8 < found <= twin.truth.epsilon == 2.0


def test_the_two_in_the_exponent_makes_up_for_half_of_a_monotone_sensitivity():
    """A pair on which the bug has no effect."""
    twin = HalfSensitivityExponential(1.0)
    assert exact_epsilon(twin.law([0.0] * 50), twin.law([1.0] + [0.0] * 49)) <= 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: query_sensitivity(len, range(100), 10, AddRemove()),
            "a domain of 100 and datasets of 0 to 10 rows make 426,342,151,127,100 pairs of neighbours; use sizes",
        ),
        (lambda: query_sensitivity(len, [], 3, AddRemove()), "a domain of 0 and datasets of 0 to 3 rows make 0 pairs"),
        (lambda: query_sensitivity(len, [1], 3, Replace()), "a domain of one row leaves nothing to replace the row by"),
        (lambda: query_sensitivity(len, [1], 3, AddRemove(), min_rows=3), "and datasets of 3 to 3 rows make 0 pairs"),
        (lambda: query_sensitivity(len, [1], 2.5, AddRemove()), "max_rows=2.5 are not a range of sizes"),
        (
            lambda: query_sensitivity(len, [1], 2, AddRemove(), min_rows=-1),
            "min_rows=-1 and max_rows=2 are not a range",
        ),
        (lambda: query_sensitivity(len, [1], 2, Local()), r"cannot be enumerated; use AddRemove\(\) or"),
        (lambda: query_sensitivity(len, [1], 2, AddRemove(), norm="l3"), 'norm=\'l3\' is unknown; use "l1", "l2" or'),
    ],
    ids=["too many", "no row", "one row", "one size", "no number", "negative", "adjacency", "norm"],
)
def test_options_out_of_range(call, message):
    with pytest.raises(OptionError, match=message):
        call()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            lambda rows: math.inf if len(rows) == 2 else 0,
            "the query answered inf on a dataset of length 2, which is not a finite",
        ),
        (
            lambda rows: "many",
            "the query answered 'many' on a dataset of length 1, which is not a finite number",
        ),
        (lambda rows: [0.0] * len(rows), "answers 1 numbers on one dataset and 0 on a neighbour; use a query whose"),
    ],
    ids=["infinite", "word", "lengths"],
)
def test_answers_that_cannot_be_compared_are_refused(query, message):
    with pytest.raises(DatasetError, match=message):
        query_sensitivity(query, [1, 2], 3, AddRemove())


def test_a_utility_that_answers_several_numbers_is_refused():
    with pytest.raises(DatasetError, match=r"the utility of candidate 0 is \[1, 2\], which is not a number"):
        utility_sensitivity(lambda rows, candidate: [1, 2], "ab", range(3), 2, AddRemove())


def test_a_twin_refuses_what_the_mechanism_refuses():
    with pytest.raises(ClaimError, match=r"sensitivity=0\.0 is not allowed"):
        HalfSensitivityExponential(1.0, 0.0)
