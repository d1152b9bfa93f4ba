"""Bounds on divergences: graded payoffs, the Rényi bound, coverage by enumeration, and the closest pair of laws."""

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, norm

from dpaudit.audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.binomial_tails import limits
from dpaudit.audit.inference.divergence_test import (
    _MULTIPLIERS,
    Divergence,
    _soft_clip,
    divergence_test,
    log_gain,
    telling_divergence,
)
from dpaudit.audit.inference.renyi_lower_bound import moment_lower, renyi_lower

EVEN = np.linspace(0.0, 1.0, 33)[1:-1]


def renyi(p, q, order):
    return float(p @ np.log(p / q)) if order == 1.0 else float(np.log(p**order @ q ** (1.0 - order)) / (order - 1.0))


def gaussian_bins(mu):
    edges = mu * EVEN + ndtri(EVEN)
    return tuple(np.diff(ndtr(edges - mean), prepend=0.0, append=1.0) for mean in (mu, 0.0))


def run(mu, claim, runs, *, seed=0, pilot=2_000, alpha=0.05):
    p, q = gaussian_bins(mu)
    rng = np.random.default_rng(seed)
    hits = (rng.multinomial(size, law) for size in (pilot, runs) for law in (p, q))
    return divergence_test(*hits, claim, alpha=alpha, coins=rng)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 8.0, 32.0])
@pytest.mark.parametrize("way", ["x from y", "y from x", "both ways"])
@pytest.mark.parametrize("multiplier", [0.0, 1e-3, 1.0])
def test_payoffs_are_limited_by_the_divergence(order, way, multiplier):
    rng = np.random.default_rng(1)
    for _ in range(50):
        p, q, a, b = rng.dirichlet(np.ones(6), 4)
        own = {"x from y": renyi(p, q, order), "y from x": renyi(q, p, order)}
        largest = max(own.values()) if way == "both ways" else own[way]
        divergence = Divergence(order, 1.0, way, multiplier, 6)
        for first, second in ((a, b), (p, q)):  # payoffs learned anywhere, and at the laws themselves
            mean_x, _, mean_y, _ = divergence.payoffs(first, second).moments(p, q)
            assert mean_x - mean_y <= divergence.limit(largest) * (1.0 + 1e-9)
        if way != "both ways" and multiplier == 0.0:
            assert mean_x - mean_y == pytest.approx(float(divergence.limit(largest)))


@pytest.mark.parametrize("order", [1.0, 2.0, 32.0])
@pytest.mark.parametrize("multiplier", [0.0, 1e-6, 1e-2, 1.0])
def test_a_bet_has_mean_one_at_most(order, multiplier):
    """The mean over all counts of one run on x and two on y, for laws at the limit and below it; some bins are rare."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        p, q, a, b = np.maximum(rng.dirichlet(np.full(3, rng.choice([0.1, 1.0])), 4), 1e-4)
        p, q = p / p.sum(), q / q.sum()
        divergence = Divergence(order, 1.0, "x from y", multiplier, 3)
        limit = divergence.limit(np.array([renyi(p, q, order), renyi(p, q, order) + 0.1]))
        payoffs = divergence.payoffs(a, b)
        mean = np.zeros(2)
        for i, j, k in np.ndindex(3, 3, 3):
            x, y = np.bincount([i], minlength=3), np.bincount([j, k], minlength=3)
            gained = log_gain(payoffs, limit, np.full(2, 0.3), 0.4, 0.1, x, y)
            mean += p[i] * q[j] * q[k] * np.exp(gained)
        assert (mean <= 1.0 + 1e-12).all()


@pytest.mark.parametrize("order", [1.1, 2.0, 8.0])
def test_limits_at_a_distance(order):
    """A chain of laws with D_a at most 1 between neighbours, and its ends."""
    rng, claim = np.random.default_rng(3), RenyiDP(order, 1.0)
    assert claim.divergence_slopes[-1] == (order, 1.0)
    for distance in (2, 3, 5):
        slopes = claim.group(distance).divergence_slopes
        for _ in range(50):
            laws = rng.dirichlet(np.ones(4), distance + 1)
            steps = max(renyi(p, q, order) for p, q in pairwise(laws))
            for lower, slope in slopes:
                assert renyi(laws[0], laws[-1], lower) <= slope * steps * (1.0 + 1e-9)
    assert ZeroConcentratedDP(0.5).group(3).divergence_slopes[0] == (1.0, 9.0)


@pytest.mark.parametrize("runs", [6, 10])
def test_size_by_enumeration(runs):
    """Randomised response with odds 3 to 1 at its divergence of order 1, averaged over the orders that coins draw."""
    hits, rate = np.arange(runs + 1), 0.75
    claim = ZeroConcentratedDP(0.5 * np.log(3.0))
    on_x, on_y = binom.pmf(hits, runs, rate), binom.pmf(hits, runs, 1.0 - rate)
    pilot = np.array([30, 10])
    size = 0.0
    for x, y in np.ndindex(runs + 1, runs + 1):
        counts = np.array([x, runs - x]), np.array([y, runs - y])
        found = divergence_test(pilot, pilot[::-1], *counts, claim, alpha=0.2, coins=np.random.default_rng(x * 31 + y))
        size += on_x[x] * on_y[y] * (found.p_value <= 0.2)
        assert (found.bound > claim.rho) <= (found.p_value <= 0.2)
    assert size <= 0.2


def test_gaussian_noise_above_the_claim_is_refuted():
    found = run(np.sqrt(1.25), ZeroConcentratedDP(0.5), 20_000)
    assert found.p_value < 1e-4
    assert 0.55 < found.bound < 0.625
    assert found.estimate == pytest.approx(0.625, rel=0.05)
    assert run(np.sqrt(1.25), ZeroConcentratedDP(0.625), 20_000).bound < 0.625


@pytest.mark.parametrize(("order", "rho"), [(2, 0.2), (8, 0.01), (32, 1e-3)])
def test_renyi_claims(order, rho):
    """Gaussian noise with twice the divergence of the claim."""
    found = run(np.sqrt(4.0 * rho), RenyiDP(order, order * rho), 1_000_000)
    assert order * rho < found.bound < 2.0 * order * rho
    assert run(np.sqrt(2.0 * rho), RenyiDP(order, order * rho), 100_000).bound < order * rho


@pytest.mark.parametrize("rho", [0.78, 2.0])
def test_the_bound_approaches_the_divergence(rho):
    """That of the bins."""
    found = run(np.sqrt(2.0 * rho), ZeroConcentratedDP(0.5), 3_000_000, pilot=100_000)
    assert 0.98 < found.bound / renyi(*gaussian_bins(np.sqrt(2.0 * rho)), 1.0) < 1.0


def test_high_orders_are_seen_in_few_runs():
    """Gaussian noise with twice the divergence of order 32: 4.5 standard errors at the nearest laws allowed."""
    for seed in range(3):
        assert run(np.sqrt(0.4 / 32), RenyiDP(32, 0.1), 100_000, pilot=100_000, seed=seed).bound > 0.1


@pytest.mark.parametrize("order", [1.0, 1.25, 2.0, 64.0])
def test_the_soft_clip(order):
    log_ratio = np.linspace(-60.0, 60.0, 241)
    for multiplier in _MULTIPLIERS:
        found, above = _soft_clip(log_ratio, order, np.asarray(multiplier)), order - 1.0
        if multiplier > 0.0:
            first = order * np.sinh(above * found) / above if above > 0.0 else found
            total = found + multiplier * (first + np.sinh(order * found))
            assert total == pytest.approx(log_ratio, rel=0.05, abs=1e-9)
        assert (np.diff(found) >= 0.0).all()
        assert (np.abs(found) <= np.abs(log_ratio)).all()


def test_noise_at_the_claim_is_rarely_refuted():
    claim = ZeroConcentratedDP(0.5)
    refuted = sum(run(1.0, claim, 1_000, seed=seed, pilot=200, alpha=0.2).p_value <= 0.2 for seed in range(12))
    assert refuted <= binom.isf(1e-6, 12, 0.2)


def test_more_runs_than_can_be_shuffled():
    p, q = gaussian_bins(np.sqrt(1.2))
    hits = [np.round(law * size).astype(np.int64) for size in (1e6, 3e9) for law in (p, q)]
    found = divergence_test(*hits, ZeroConcentratedDP(0.5), alpha=0.05, coins=np.random.default_rng(0))
    assert 0.58 < found.bound < 0.6


def test_the_divergence_that_shows_most():
    p, q = gaussian_bins(1.0)
    divergence, away = telling_divergence(p, q, ZeroConcentratedDP(0.4), 1_000, 1_000)
    assert divergence.order == 1.0
    assert away > 0.0
    assert telling_divergence(p, q, ZeroConcentratedDP(0.6), 1_000, 1_000)[1] < 0.0


def test_nothing_is_bet_against_a_limit_beyond_doubles():
    p, q = gaussian_bins(1.0)
    divergence = Divergence(32.0, 1.0, "both ways", 0.0, 32)
    x, y = np.round(1e4 * p).astype(np.int64), np.round(1e4 * q).astype(np.int64)
    gained = log_gain(divergence.payoffs(p, q), divergence.limit([1e3, 1.0]), np.full(2, 1e9), 0.0, 0.0, x, y)
    assert gained[0] == 0.0
    assert np.isfinite(gained).all()


@pytest.mark.parametrize("order", [1.000001, 1.01, 1.5, 2.0, 9e5])
@pytest.mark.parametrize("distance", [1, 2, 200, 1_000])
def test_limits_at_far_distances_are_numbers(order, distance):
    for at, slope in RenyiDP(order, 1e-6).group(distance).divergence_slopes:
        assert 1.0 <= at <= order
        assert 0.0 < slope < 1e13


@pytest.mark.parametrize("log_odds", [2.0, 3.0, 5.0, 40.0])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_no_strength_below_the_claim_keeps_a_violation_from_being_refuted(log_odds, share):
    """Randomised response with large odds, up to outputs that never occur on both datasets."""
    p = 1.0 / (1.0 + math.exp(-log_odds))
    divergence = (2.0 * p - 1.0) * log_odds
    pilot, counts = (np.array([runs - (rest := round(runs * (1.0 - p))), rest]) for runs in (1_000, 20_000))
    found = divergence_test(
        pilot, pilot[::-1], counts, counts[::-1], ZeroConcentratedDP(share * divergence if log_odds < 10 else share),
        alpha=0.05, coins=np.random.default_rng(1),
    )  # fmt: skip
    assert found.p_value < 1e-6
    assert found.bound > share * divergence if log_odds < 10 else found.bound > 5.0


ORDERS = np.array([0.5, 1.0, 1.5, 2.0, 8.0, 64.0, np.inf])
SIGMA = 2.0
EDGES = np.linspace(1 + 3.2 * SIGMA, -3.2 * SIGMA, 31)  # the 32 cells that the docstring recommends


def cells(mean: float) -> np.ndarray:
    return np.diff(np.concatenate([[0.0], norm.sf(EDGES, mean, SIGMA), [1.0]]))


def divergence_of(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Compute the divergence by definition, for laws of full support."""
    if order == 1.0:
        return float(np.sum(p * np.log(p / q)))
    if order == np.inf:
        return float(np.log(p / q).max())
    return math.log(float(np.sum(p**order * q ** (1.0 - order)))) / (order - 1.0)


def all_orders(p, q) -> np.ndarray:
    return np.array([divergence_of(np.asarray(p), np.asarray(q), order) for order in ORDERS])


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_bounds_exceed_the_truth_with_probability_at_most_alpha(alpha):
    """Binary outputs: all pairs of counts, and all orders simultaneously."""
    n, m = 15, 12
    bound = np.array(
        [[renyi_lower([x, n - x], [y, m - y], ORDERS, alpha=alpha) for y in range(m + 1)] for x in range(n + 1)]
    )
    most = 0.0
    for p, q in itertools.product([0.01, 0.2, 0.5, 0.6, 0.8, 0.99], repeat=2):
        wrong = (bound > all_orders([p, 1 - p], [q, 1 - q]) + 1e-12).any(axis=2)
        on_x, on_y = binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, q)
        most = max(most, float(on_x @ wrong @ on_y))
    assert most <= alpha
    assert most > alpha / 20


def test_bounds_hold_on_many_cells():
    rng, repeats, runs, alpha = np.random.default_rng(8), 200, 3000, 0.5
    p, q = cells(1.0), cells(0.0)
    truth = all_orders(p, q)  # the divergence of the cells is below that of the outputs
    misses = sum(
        bool((renyi_lower(rng.multinomial(runs, p), rng.multinomial(runs, q), ORDERS, alpha=alpha) > truth).any())
        for _ in range(repeats)
    )
    assert misses <= binom.isf(1e-7, repeats, alpha)  # fails by chance with probability below 1e-7


def test_the_frequencies_themselves_would_not_do():
    """The wrong twin is the point estimate, which is never 0 for equal laws."""
    rng, p = np.random.default_rng(8), np.full(4, 0.25)
    misses = 0
    for _ in range(50):
        x, y = rng.multinomial(3000, p), rng.multinomial(3000, p)
        misses += divergence_of(x / 3000, y / 3000, 2.0) > 0.0
        assert renyi_lower(x, y, 2.0, alpha=1e-6) == 0.0  # fails by chance with probability at most 1e-6 each
    assert misses == 50


@pytest.mark.parametrize(
    ("runs", "shares"), [(10**5, (0.84, 0.63)), (10**6, (0.94, 0.77)), (10**7, (0.97, 0.85)), (10**12, (0.99, 0.93))]
)
def test_gaussian_from_expected_counts(runs, shares):
    """D_a = a/(2σ²) at sensitivity 1; the shares are slightly below those of the docstring."""
    truth = np.array([2.0, 8.0]) / (2 * SIGMA**2)
    bound = renyi_lower(np.round(runs * cells(1.0)), np.round(runs * cells(0.0)), [2.0, 8.0], alpha=0.05)
    assert np.all(bound < truth)
    assert np.all(bound > shares * truth)


@pytest.mark.parametrize(("runs", "share"), [(10**4, 0.92), (10**6, 0.99), (10**10, 0.9999)])
def test_randomised_response(runs, share):
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    bound, truth = renyi_lower(runs * p, runs * q, ORDERS, alpha=0.05), all_orders(p, q)
    assert np.all(bound < truth)
    assert np.all(bound > share * truth)
    np.testing.assert_allclose(moment_lower(runs * p, runs * q, [2, 8], alpha=0.05), np.exp([1, 7] * bound[[3, 4]]))


def test_no_allowed_pair_of_laws_is_closer():
    rng, runs, alpha = np.random.default_rng(4), 300, 0.2
    x, y = np.array([150, 20, 80, 50]), np.array([40, 60, 50, 150])  # not sorted by the ratio
    low = limits(np.cumsum(x)[:-1], runs, alpha=alpha / 6)[0]
    high = limits(np.cumsum(y)[:-1], runs, alpha=alpha / 6)[1]
    bound = renyi_lower(x, y, ORDERS, alpha=alpha)
    closest = np.full(len(ORDERS), np.inf)
    for spread in np.geomspace(0.01, 1, 40):
        p = rng.dirichlet(0.5 + x * (1 - spread), 400) * (1 - spread / 10) + spread / 40
        nested = np.cumsum(p, axis=1)[:, :3]
        nested = np.maximum.accumulate(np.clip(nested, low, 1.0), axis=1) * (1 - 1e-9) + 1e-9 * low
        p = np.diff(nested, axis=1, prepend=0.0, append=1.0)
        nested_q = np.minimum(np.cumsum(rng.dirichlet(0.5 + y, 400), axis=1)[:, :3], high)
        q = np.diff(nested_q, axis=1, prepend=0.0, append=1.0)
        for one, other in zip(p, q, strict=True):
            if min(one.min(), other.min()) > 1e-6:
                closest = np.minimum(closest, all_orders(one, other))
    assert np.all(closest >= bound * (1 - 1e-6))
    assert np.all(closest < 2 * bound)


def test_bounds_grow_with_the_order_and_alpha_and_pass_smoothly_through_one():
    x, y = [400, 350, 250], [150, 350, 500]
    orders = np.concatenate([np.linspace(0.1, 3, 30), [10.0, 100.0, np.inf]])
    bound = renyi_lower(x, y, orders, alpha=0.05)
    assert np.all(np.diff(bound) > 0)
    near = renyi_lower(x, y, [1 - 1e-6, 1.0, 1 + 1e-6], alpha=0.05)
    np.testing.assert_allclose(near, near[1], rtol=1e-5)
    assert np.all(np.diff([renyi_lower(x, y, 2.0, alpha=a) for a in (1e-9, 1e-3, 0.1, 0.9)]) > 0)


def test_shapes_and_empty_cells():
    assert renyi_lower([0, 5], [5, 0], 2.0, alpha=0.05).shape == ()
    assert renyi_lower([0, 5, 0], [5, 0, 0], np.ones((2, 3)), alpha=0.05).shape == (2, 3)
    assert renyi_lower([0, 10**6], [10**6, 0], 2.0, alpha=0.05) == 0.0  # the reverse of the informative order
    assert renyi_lower([10**6, 0], [0, 10**6], [2.0, np.inf], alpha=0.05).min() > 10.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda a=order: renyi_lower([1, 2], [2, 1], a, alpha=0.05), "order=") for order in (0.0, -1.0, math.nan)),
        *((lambda a=order: moment_lower([1, 2], [2, 1], a, alpha=0.05), "order=") for order in (1.0, math.inf)),
        (lambda: renyi_lower([1, 2], [2, 1], 2.0, alpha=0.0), "alpha="),
        (lambda: renyi_lower([1], [2], 2.0, alpha=0.05), "cells_x"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()
