"""Samplers of noise on a grid, answers of queries and their sensitivity."""

import itertools
import math
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit import AddRemove, Local, Replace
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms import noise_samplers as noise
from dpaudit.mechanisms.queries import places_below_leader

# Queries that score candidates: a function of each candidate, and counts of categories.

NAMES = ["Ann", "Bob", "Eve"]


@pytest.mark.parametrize(
    "form", [list, tuple, np.array, pd.Series, lambda rows: np.array(rows, dtype=object)], ids=["l", "t", "a", "s", "o"]
)
def test_rows_are_counted_whatever_holds_them(form):
    assert m.CategoryCounts(NAMES)(form(["Eve", "Bob", "Zoe", "Bob"])).tolist() == [0, 2, 1]


def test_categories_are_rows_of_any_kind():
    frame = pd.DataFrame({"ill": ["flu", "flu", "cold"], "age": [1, 2, 1]})
    assert m.CategoryCounts([("flu", 1), ("cold", 1)])(frame).tolist() == [1, 1]
    assert m.CategoryCounts(np.arange(3))(np.array([2, 2, 0])).tolist() == [1, 0, 2]
    assert m.CategoryCounts([True, False])([]).tolist() == [0, 0]


def test_counts_have_the_sensitivity_and_the_direction_that_they_say():
    counts = m.CategoryCounts("abc")
    assert m.query_sensitivity(counts, "abcz", 3, AddRemove(), norm="linf") == 1
    assert m.query_sensitivity(counts, "abcz", 3, Replace(), norm="linf") == 1
    for row in "abcz":
        assert np.all(counts([*"abza", row]) >= counts([*"abza"]))


def test_the_most_common_name_under_the_right_and_the_wrong_neighbours():
    """Counts are monotone if a row is added, but not if a row is replaced; the saving is then a false version."""
    before, added, replaced = ["Ann"] * 40 + ["Bob"], ["Ann"] * 40 + ["Bob"] * 2, ["Ann"] * 39 + ["Bob"] * 2
    counts = m.CategoryCounts(["Ann", "Bob"])
    for wrong in (
        *(
            faulty.NoisyMaxMissingFactorTwo(1.0, noise=kind, counts=counts)
            for kind in ("laplace", "exponential", "gumbel")
        ),
        faulty.ExponentialMissingFactorTwo(1.0, utilities=counts),
    ):
        assert wrong.runs_as.monotone
        assert m.exact_epsilon(wrong.law(before), wrong.law(added)) <= 1.0 + 1e-12
        assert m.exact_epsilon(wrong.law(before), wrong.law(replaced)) > 1.9
    for right in (m.ReportNoisyMax(1.0, counts=counts), m.ExponentialMechanism(1.0, utilities=counts)):
        assert m.exact_epsilon(right.law(before), right.law(replaced)) <= 1.0 + 1e-12


def test_queries_survive_pickling_and_compare_by_value():
    for query in (m.CategoryCounts(NAMES), m.EachCandidate(list.count, NAMES)):
        copy = pickle.loads(pickle.dumps(query))
        assert copy == query
        assert list(copy(["Bob"])) == [0, 1, 0]


def test_each_candidate_is_scored_in_order():
    assert m.EachCandidate(lambda rows, c: sum(rows) * c, [1, 3, 2])([2, 3]) == [5, 15, 10]
    assert m.EachCandidate(min, range(1, 3)).candidates == (1, 2)


def test_places_are_taken_from_the_largest_score():
    places = places_below_leader(np.array, [1e15, 1e15 + 2, 1e15 - 4], 4.0)
    assert places.tolist() == [-0.5, 0.0, -1.5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: m.CategoryCounts([]), ClaimError, r"categories=\(\) is an empty range; give at least one"),
        (lambda: m.CategoryCounts(["a", "b", "a"]), ClaimError, "names a category twice, .* twice; name each"),
        (lambda: m.CategoryCounts([1, 1.0]), ClaimError, "names a category twice"),
        (lambda: m.EachCandidate(max, []), ClaimError, r"candidates=\(\) is an empty range; give at least one"),
        (lambda: m.CategoryCounts("ab")(3), DatasetError, "a dataset of type int has no rows to compare"),
    ],
    ids=["no category", "twice", "equal", "no candidate", "no rows"],
)
def test_errors_of_queries(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Exact sensitivities: by hand, against all pairs of datasets, and the effect of half a sensitivity.


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
    found = m.query_sensitivity(spread, domain, 4, adjacency, norm=norm, min_rows=min_rows)
    assert found == pytest.approx(by_all_pairs(spread, domain, 4, adjacency, order, min_rows), rel=1e-14)


@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
def test_utility_sensitivity_is_the_maximum_over_candidates_and_pairs(adjacency):
    domain, candidates = [0, 1, 3], [1, 2, 5]
    found = m.utility_sensitivity(nearness, candidates, domain, 3, adjacency)
    expected = by_all_pairs(lambda x: [nearness(x, c) for c in candidates], domain, 3, adjacency, math.inf)
    assert found == expected == 3


@pytest.mark.parametrize(
    ("query", "domain", "norm", "add_remove", "replace"),
    [
        (len, "ab", "l1", 1, 0),
        (m.CategoryCounts("abc"), "abc", "l1", 1, 2),
        (m.CategoryCounts("abc"), "abc", "l2", 1, math.sqrt(2)),
        (m.CategoryCounts("abc"), "abc", "linf", 1, 1),
        (sum, [-2.0, 1.0], "l1", 2, 3),
    ],
    ids=["count", "histogram L1", "histogram L2", "histogram Linf", "sum"],
)
def test_the_same_query_under_two_relations(query, domain, norm, add_remove, replace):
    assert m.query_sensitivity(query, domain, 3, AddRemove(), norm=norm) == pytest.approx(add_remove, rel=1e-15)
    assert m.query_sensitivity(query, domain, 3, Replace(), norm=norm) == pytest.approx(replace, rel=1e-15)


def test_a_mean_moves_less_on_more_rows():
    for n in (1, 2, 5):
        assert m.query_sensitivity(mean, [0.0, 1.0], n, Replace(), min_rows=n) == pytest.approx(1 / n, rel=1e-12)
    assert m.query_sensitivity(mean, [0.0, 1.0], 5, Replace()) == 1.0
    with pytest.raises(
        DatasetError, match=r"answered nan on a dataset of length 0, .* a query that answers every dataset, or a"
    ):
        m.query_sensitivity(mean, [0.0, 1.0], 5, AddRemove())


def test_every_pair_of_neighbours_is_tried_and_no_other():
    """Only one pair of datasets has the largest change, and its place varies."""
    datasets = [rows for size in range(4) for rows in itertools.combinations_with_replacement("ab", size)]
    for hidden in datasets:

        def is_hidden(rows, hidden=hidden):
            return Counter(rows) == Counter(hidden)

        assert m.query_sensitivity(is_hidden, "ab", 3, AddRemove()) == 1
        assert m.query_sensitivity(is_hidden, "ab", 3, Replace()) == (len(hidden) > 0)
        assert m.query_sensitivity(is_hidden, "ab", 5, AddRemove(), min_rows=len(hidden) + 1) == 0


@pytest.mark.parametrize("prices", [[1, 2, 3], [2.5], [0.5, 4.0]], ids=str)
@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
def test_revenue_changes_by_the_highest_price(prices, adjacency):
    assert m.utility_sensitivity(revenue, prices, [0, 1, 2, 3, 4], 3, adjacency) == max(prices)


@pytest.mark.parametrize("monotone", [False, True])
def test_half_of_the_sensitivity_breaks_the_claim(monotone):
    """A row changes the total by 1, raises one candidate's utility, and lowers fifty others (or none)."""

    def utility(rows, candidate):
        return sum(rows) * (1.0 if candidate == 0 else 0.0 if monotone else -1.0)

    candidates, x, y = range(51), [1.0] * 3, [1.0] * 2
    sensitivity = m.utility_sensitivity(utility, candidates, [0.0, 1.0], 3, AddRemove())
    assert sensitivity == 1.0
    twin = faulty.HalfSensitivityExponential(1.0, sensitivity, monotone)
    right = m.ExponentialMechanism(1.0, sensitivity, monotone)
    scores_x, scores_y = ([utility(rows, c) - utility(y, c) for c in candidates] for rows in (x, y))
    assert m.exact_epsilon(right.law(scores_x), right.law(scores_y)) <= 1.0
    found = m.exact_epsilon(twin.law(scores_x), twin.law(scores_y))
    assert twin.claim.epsilon == 1.0 < 1.8 < found <= twin.truth.epsilon == 2.0


def test_the_two_in_the_exponent_makes_up_for_half_of_a_monotone_sensitivity():
    """A pair on which the bug has no effect."""
    twin = faulty.HalfSensitivityExponential(1.0)
    assert m.exact_epsilon(twin.law([0.0] * 50), twin.law([1.0] + [0.0] * 49)) <= 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: m.query_sensitivity(len, range(100), 10, AddRemove()),
            "a domain of 100 and datasets of 0 to 10 rows make 426,342,151,127,100 pairs of neighbours; use sizes",
        ),
        (
            lambda: m.query_sensitivity(len, [], 3, AddRemove()),
            "a domain of 0 and datasets of 0 to 3 rows make 0 pairs",
        ),
        (
            lambda: m.query_sensitivity(len, [1], 3, Replace()),
            "a domain of one row leaves nothing to replace the row by",
        ),
        (lambda: m.query_sensitivity(len, [1], 3, AddRemove(), min_rows=3), "and datasets of 3 to 3 rows make 0 pairs"),
        (lambda: m.query_sensitivity(len, [1], 2.5, AddRemove()), "max_rows=2.5 are not a range of sizes"),
        (
            lambda: m.query_sensitivity(len, [1], 2, AddRemove(), min_rows=-1),
            "min_rows=-1 and max_rows=2 are not a range",
        ),
        (lambda: m.query_sensitivity(len, [1], 2, Local()), r"cannot be enumerated; use AddRemove\(\) or"),
        (lambda: m.query_sensitivity(len, [1], 2, AddRemove(), norm="l3"), 'norm=\'l3\' is unknown; use "l1", "l2" or'),
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
        (lambda rows: "many", "the query answered 'many' on a dataset of length 1, which is not a finite number"),
        (lambda rows: [0.0] * len(rows), "answers 1 numbers on one dataset and 0 on a neighbour; use a query whose"),
    ],
    ids=["infinite", "word", "lengths"],
)
def test_answers_that_cannot_be_compared_are_refused(query, message):
    with pytest.raises(DatasetError, match=message):
        m.query_sensitivity(query, [1, 2], 3, AddRemove())


def test_a_utility_that_answers_several_numbers_is_refused():
    with pytest.raises(DatasetError, match=r"the utility of candidate 0 is \[1, 2\], which is not a number"):
        m.utility_sensitivity(lambda rows, candidate: [1, 2], "ab", range(3), 2, AddRemove())


def test_a_twin_refuses_what_the_mechanism_refuses():
    with pytest.raises(ClaimError, match=r"sensitivity=0\.0 is not allowed"):
        faulty.HalfSensitivityExponential(1.0, 0.0)


# Noise samplers. Random tests use fixed seeds; each has a false-alarm probability of at most 1e-7.

RUNS = 400_000


ALARM = 1e-7


def counts_are_off(counts, probabilities, runs, alarm):
    """Return whether a cell's count is outside its exact binomial limits; false-alarm probability ≤ `alarm`."""
    each = alarm / (2 * len(counts))
    low, high = stats.binom.ppf(each, runs, probabilities), stats.binom.isf(each, runs, probabilities)
    return bool(np.any((counts < low) | (counts > high)))


@pytest.mark.parametrize(
    ("fill", "law"),
    [(noise.fill_laplace, stats.laplace), (noise.fill_gaussian, stats.norm), (noise.fill_exponential, stats.expon)],
)
def test_standard_laws(fill, law):
    out = np.empty(RUNS)
    fill(out, np.random.default_rng(1))
    cells = np.histogram(law.cdf(out), bins=50, range=(0, 1))[0]
    assert not counts_are_off(cells, np.full(50, 1 / 50), RUNS, ALARM)


def test_the_check_of_counts_sees_a_scale_wrong_by_a_twentieth():
    out = 1.05 * noise.standard_laplace(RUNS, np.random.default_rng(1))
    cells = np.histogram(stats.laplace.cdf(out), bins=50, range=(0, 1))[0]
    assert counts_are_off(cells, np.full(50, 1 / 50), RUNS, ALARM)


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_two_sided_geometric_is_exact_zero_included(scale):
    law = m.GeometricLaw(0, math.exp(-1 / scale))
    k = np.arange(-30, 31)
    draws = noise.two_sided_geometric(scale, RUNS, np.random.default_rng(2))
    assert draws.dtype == np.int64
    counts = (draws == k[:, None]).sum(axis=1)
    assert not counts_are_off(counts, np.exp(law.log_density(k)), RUNS, ALARM)


def test_two_sided_geometric_events_follow_from_the_exponential():
    """The magnitude is at least k if and only if E ≥ k/scale − ln(2/(1+r)), with probability 2rᵏ/(1+r)."""
    for scale in (0.05, 1.0, 2.0**30):
        r = math.exp(-1 / scale)
        for k in (1, 2, 50):
            threshold = k / scale - math.log(2 / (1 + r))
            assert threshold >= 0
            assert math.exp(-threshold) == pytest.approx(2 * r**k / (1 + r), rel=1e-12)


@pytest.mark.parametrize("n_outcomes", [1, 2, 5, 300])
def test_draw_indices(n_outcomes):
    probabilities = np.random.default_rng(3).dirichlet(np.ones(n_outcomes))
    draws = noise.draw_indices(probabilities, RUNS, np.random.default_rng(4))
    counts = np.bincount(draws, minlength=n_outcomes)
    assert len(counts) == n_outcomes
    assert not counts_are_off(counts, probabilities, RUNS, ALARM)


def test_draw_indices_skips_what_is_impossible():
    draws = noise.draw_indices([0.0, 0.5, 0.0, 0.5, 0.0], 10_000, np.random.default_rng(5))
    assert set(draws.tolist()) == {1, 3}


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 1.5, 2.0, 12345.678])
def test_the_grid_is_a_power_of_two_of_the_stated_size(scale):
    step = noise.grid_step(scale)
    assert math.frexp(step)[0] == 0.5
    assert 2.0**-21 < step / scale <= 2.0**-20


@pytest.mark.parametrize("answer", [0.0, 1.0, 10.1, -3.3e-7, 1e9 + 0.123456789, 2.0**30])
def test_rounding_is_to_the_nearest_grid_point_of_the_exact_sum(answer):
    values = np.random.default_rng(6).laplace(size=2000)
    step = noise.grid_step(1.0)
    outputs = noise.round_to_grid(values.copy(), 1.0, answer)
    multiples = outputs / step
    assert np.array_equal(multiples, np.rint(multiples))
    # In units of the step: the answer splits exactly, and noise and remainder add with 30 spare bits.
    whole = round(answer / step)
    expected = whole + np.rint(values / step + (answer / step - whole))
    assert np.array_equal(multiples, expected)


def test_rounding_leaves_no_signed_zero():
    outputs = noise.round_to_grid(np.array([-1e-12, 1e-12, -0.0]), 1.0)
    assert not np.signbit(outputs).any()


def test_low_bits_do_not_tell_the_answer():
    """The lowest set bit is never below the grid, where raw doubles distinguish the answers 0 and 1."""

    def lowest_exponents(outputs):
        mantissa, exponent = np.frexp(outputs[outputs != 0])
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        return exponent - 53 + np.log2((whole & -whole).astype(np.float64))

    raw = [lowest_exponents(a + noise.standard_laplace(50_000, np.random.default_rng(7))) for a in (0.0, 1.0)]
    assert (raw[0] < -53).mean() > 1.5 * (raw[1] < -53).mean()
    for answer in (0.0, 1.0):
        outputs = noise.laplace_on_grid(answer, 1.0, 50_000, np.random.default_rng(8))
        assert lowest_exponents(outputs).min() == math.log2(noise.grid_step(1.0))


@pytest.mark.parametrize("answer", [2.0**32, -1e300, math.nan, math.inf])
def test_answers_beyond_the_grid_are_refused(answer):
    with pytest.raises(
        DatasetError, match=r"too large for a double to resolve .*, the grid step of .* 1; use answers within"
    ):
        noise.round_to_grid(np.zeros(3), 1.0, answer)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, noise.PIECE, noise.PIECE + 1])
def test_any_size(size):
    rng = np.random.default_rng(9)
    assert noise.random_signs(size, rng).shape == (size,)
    assert noise.standard_laplace(size, rng).shape == (size,)
    assert noise.two_sided_geometric(1.0, size, rng).shape == (size,)
    assert noise.draw_indices([0.5, 0.5], size, rng).shape == (size,)
    assert noise.gaussian_on_grid(0.0, 1.0, size, rng).shape == (size,)
