"""Dispersion of counts, repeated outputs, and two samples: enumeration, size, and planted dependence."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import xlogy
from scipy.stats import binom

from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.dependence import (
    _FEWER,
    _MORE,
    MOST_COPIES,
    _log_moments,
    _log_wealth,
    change_pvalue,
    copies_pvalue,
    dispersion_pvalue,
    gain,
    hypergeometric_tail,
    log_chance_of_head,
    log_chance_of_order,
    pairs_within_pvalue,
    product_pvalue,
)


@pytest.mark.parametrize(("sizes", "total"), [((4,) * 5, 9), ((3, 5, 7, 9), 10), ((1, 1, 2, 8), 3)])
def test_a_pvalue_is_at_least_the_probability_of_one_as_small(sizes, total):
    """Return all distributions of the counts over blocks, with their hypergeometric probabilities."""
    found = []
    for counts in itertools.product(*(range(min(size, total) + 1) for size in sizes)):
        if sum(counts) == total:
            ways = math.prod(math.comb(size, count) for size, count in zip(sizes, counts, strict=True))
            found.append((dispersion_pvalue(counts, sizes)[0], ways / math.comb(sum(sizes), total)))
    assert sum(probability for _, probability in found) == pytest.approx(1.0)
    for pvalue in {pvalue for pvalue, _ in found}:
        assert sum(probability for other, probability in found if other <= pvalue) <= pvalue + 1e-12
    assert min(pvalue for pvalue, _ in found) < 1.0


@pytest.mark.parametrize(("size", "rate"), [(12, 0.3), (200, 0.01), (40_000, 0.3)])
def test_moments_are_at_least_the_exact_ones(size, rate):
    """The bound holds also where counts far out are bounded instead of summed."""
    exponents = np.array([-8.0, -0.1, 0.06, 0.3, 0.48])
    counts = np.arange(size + 1)
    misses = size - counts
    deviance = 2 * (xlogy(counts, counts / (size * rate)) + xlogy(misses, misses / (size * (1 - rate))))
    distribution = stats.binom.logpmf(counts, size, rate)
    for exponent, found, most in zip(exponents, *_log_moments(size, rate, exponents), strict=True):
        terms = distribution + exponent * deviance
        exact = float(terms.max() + np.log(np.exp(terms - terms.max()).sum()))
        assert exact - 1e-6 <= found <= exact + 1e-3
        assert most == pytest.approx(float(terms.max()), abs=1e-6)


def test_the_probability_of_the_total_is_at_least_as_assumed():
    for runs in (2, 3, 10, 97, 1_000):
        for total in range(1, runs):
            assumed = math.sqrt(runs / (8.0 * total * (runs - total)))
            assert stats.binom.pmf(total, runs, total / runs) >= assumed * (1 - 1e-9)


def test_a_product_of_two_pvalues_is_a_pvalue():
    """Size by enumeration, for p-values uniform on a grid and for those of two sides with few runs."""
    grid = [((i + 1) / 40, 1 / 40) for i in range(40)]
    sizes = (6,) * 4
    of_side = [
        (dispersion_pvalue(counts, sizes)[0], math.prod(math.comb(6, count) for count in counts) / math.comb(24, 9))
        for counts in itertools.product(range(7), repeat=4)
        if sum(counts) == 9
    ]
    for one in (grid, of_side):
        both = sorted((product_pvalue(p, q), weight * other) for p, weight in one for q, other in one)
        reached = 0.0
        for index, (pvalue, probability) in enumerate(both):
            reached += probability
            if index + 1 == len(both) or both[index + 1][0] > pvalue:
                assert reached <= pvalue + 1e-9


def test_both_tails_and_their_limits():
    assert dispersion_pvalue([50] * 32, [100] * 32)[0] < 1e-20  # balanced
    wide, ratio = dispersion_pvalue([40, 60] * 16, [100] * 32)
    assert wide < 1e-6
    assert ratio == pytest.approx(4.1, abs=0.1)
    assert dispersion_pvalue([], []) == dispersion_pvalue([3], [9]) == dispersion_pvalue([0, 0], [5, 5]) == (1.0, 1.0)
    one = dispersion_pvalue([3, 9, 1, 4], [10, 20, 5, 9])
    assert one == pytest.approx(dispersion_pvalue([7, 11, 4, 5], [10, 20, 5, 9]))  # exchange counts and misses
    assert one == pytest.approx(dispersion_pvalue([9, 3, 4, 1], [20, 10, 9, 5]))  # another order


def test_large_blocks_weigh_more():
    """Large blocks whose counts vary too much show among many small blocks whose counts are as usual."""
    usual, large = (
        stats.binom.ppf((np.arange(n) + 0.5) / n, runs, 0.5).tolist() for n, runs in ((16, 16), (40, 4_000))
    )
    sizes = [16] * 6_400 + [4_000] * 40
    assert dispersion_pvalue(usual * 400 + large, sizes)[0] > 0.1
    assert dispersion_pvalue(usual * 400 + [1_900, 2_100] * 20, sizes)[0] < 1e-40


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 1, 2), (4, 3)])
@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_pairs_within_blocks_are_no_more_probable(sizes, pairs):
    """Enumerate all orders of the runs; the first runs form the pairs."""
    runs = sum(sizes)
    block = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.zeros(pairs + 1)
    for order in itertools.permutations(range(runs)):
        counts[sum(block[order[2 * i]] == block[order[2 * i + 1]] for i in range(pairs))] += 1
    if 2 * pairs <= runs:
        for within in range(pairs + 1):
            assert counts[within:].sum() / counts.sum() <= pairs_within_pvalue(within, pairs, sizes) + 1e-12


@pytest.mark.parametrize("distribution", [(0.9, 0.1), (0.2, 0.3, 0.5), (0.2,) * 5, (1.0,)])
def test_no_order_is_more_probable_than_assumed(distribution):
    for n in (2, 4):
        orders: dict[tuple[int, ...], float] = {}
        for outcome in itertools.product(range(len(distribution)), repeat=n):
            order = tuple(np.argsort(outcome, kind="stable").tolist())
            orders[order] = orders.get(order, 0.0) + math.prod(distribution[i] for i in outcome)
        assert max(orders.values()) <= math.exp(log_chance_of_order(n, max(distribution))) + 1e-12


@pytest.mark.parametrize("outputs", ["aabbc", "aaab", "abcd"])
@pytest.mark.parametrize("length", [1, 2])
def test_the_probability_that_a_head_comes_again_is_exact(outputs, length):
    """Enumerate all orders that begin with a given head, for each head."""
    orders = list(itertools.permutations(outputs))
    for head in {order[:length] for order in orders}:
        these = [order for order in orders if order[:length] == head]
        alike = sum(order[length : 2 * length] == head for order in these) / len(these)
        inside = [head.count(letter) for letter in sorted(set(head))]
        outside = [outputs.count(letter) - head.count(letter) for letter in sorted(set(head))]
        found = math.exp(log_chance_of_head(inside, outside, len(outputs) - length))
        assert found == pytest.approx(alike, abs=1e-12)


@pytest.mark.parametrize("copies", [2, 3, 7, MOST_COPIES])
def test_the_wealth_of_an_output_has_mean_at_most_one(copies):
    """For a Poisson number of times with any mean; equality for the mean at which the bet is sharp."""
    means = np.geomspace(1e-9, 1e3, 2_000)[:, None, None]
    fewer, same, more = (stats.poisson.pmf(copies + step, means) for step in (-1, 0, 1))
    change = same * (gain(copies) - 1.0) - fewer * _FEWER - more * _MORE
    assert change.max() <= 1e-12
    assert (change.max(axis=0) > -1e-4).all()
    without = same * (gain(copies) - 1.0) - fewer * _FEWER  # the wrong variant: more copies cost nothing
    assert without.max() > 1e-3


@pytest.mark.parametrize("distribution", [(0.5, 0.5), (0.7, 0.1, 0.1, 0.1)])
@pytest.mark.parametrize("runs", [4, 8])
def test_the_mean_wealth_of_a_sample_is_bounded(distribution, runs):
    """By enumerating all counts: the mean is at most 1 over the probability that a Poisson sample has this size."""
    total = np.zeros((MOST_COPIES - 1, _FEWER.size, _MORE.size))
    mass = 0.0
    for counts in itertools.product(range(runs + 1), repeat=len(distribution)):
        if sum(counts) == runs:
            chance = float(stats.multinomial.pmf(counts, runs, distribution))
            numbers = np.bincount(counts, minlength=MOST_COPIES + 2)
            bets = range(2, MOST_COPIES + 1)
            total += chance * np.exp([_log_wealth(numbers[k - 1 : k + 2].astype(float), k) for k in bets])
            mass += chance
    assert mass == pytest.approx(1.0)
    assert total.max() <= 1.0 / stats.poisson.pmf(runs, runs)
    assert 1.0 / stats.poisson.pmf(runs, runs) <= math.sqrt(2 * math.pi * runs) * math.exp(1 / (12 * runs))


@pytest.mark.parametrize("mean", [0.3, 1.5, 2.5, 12.0])
def test_numbers_as_expected_of_independent_runs_are_not_accused_and_copies_are(mean):
    """Of 100,000 equally likely outputs, each seen `mean` times on average; and of sixty, each seen twice."""
    numbers = np.round(1e5 * stats.poisson.pmf(np.arange(MOST_COPIES + 2), mean))
    assert copies_pvalue(numbers, round(1e5 * mean))[0] == 1.0
    copied = np.bincount([2] * 60, minlength=MOST_COPIES + 2)
    pvalue, copies = copies_pvalue(copied, 120)
    wealth = np.exp([_log_wealth(copied[k - 1 : k + 2].astype(float), k) for k in range(2, MOST_COPIES + 1)]).mean()
    assert copies == 2
    assert pvalue == pytest.approx(1.0 / (wealth * stats.poisson.pmf(120, 120)), rel=1e-3, abs=0.0)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 7), (12, 5), (3, 40)])
def test_its_size_is_at_most_alpha(n, m):
    """Enumerate all outcomes for a grid of p and three alphas."""
    values = np.array([[change_pvalue(h, n, k, m) for k in range(m + 1)] for h in range(n + 1)])
    for p in np.linspace(0.0, 1.0, 101):
        chance = np.outer(binom.pmf(range(n + 1), n, p), binom.pmf(range(m + 1), m, p))
        for alpha in (0.3, 0.05, 0.001):
            assert chance[values <= alpha].sum() <= alpha * (1 + 1e-9)


@pytest.mark.parametrize(
    ("total", "seen", "drawn"), [(40, 20, 20), (100, 31, 64), (4096, 2048, 1300), (50, 50, 9), (411, 5, 277)]
)
def test_tails_are_those_of_the_hypergeometric_distribution(total, seen, drawn):
    distribution = stats.hypergeom(total, seen, drawn)
    ends = max(0, seen + drawn - total), min(seen, drawn)
    for both in {*ends, *(int(distribution.ppf(q)) for q in (1e-9, 0.1, 0.3, 0.6, 0.9))}:
        tail = distribution.cdf(both) if both * total < seen * drawn else distribution.sf(both - 1)
        assert hypergeometric_tail(both, drawn, seen, total) == pytest.approx(tail, rel=1e-8)
        if drawn < total:
            twice = change_pvalue(both, drawn, seen - both, total - drawn)
            assert twice == pytest.approx(min(1.0, 2 * tail), rel=1e-8)


def test_large_and_extreme_counts():
    assert change_pvalue(0, 10**9, 0, 10**9) == change_pvalue(10**9, 10**9, 10**9, 10**9) == 1.0
    assert change_pvalue(10**9, 10**9, 0, 10**9) == 0.0
    # 2.236 standard errors: 0.0253 by the normal distribution
    assert change_pvalue(10**8, 10**9, 10**8 + 30_000, 10**9) == pytest.approx(0.02535, rel=1e-3)


def test_impossible_counts_are_refused():
    for counts in ((-1, 5, 0, 5), (6, 5, 0, 5), (0, 0, 0, 5), (0, 5, 1, 0)):
        with pytest.raises(OptionError):
            change_pvalue(*counts)
