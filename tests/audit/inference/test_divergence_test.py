"""Graded payoffs never mean more than the divergence allows, and the test keeps its level and finds small excesses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.audit.inference.divergence_test import (
    _MULTIPLIERS,
    Divergence,
    _soft_clip,
    divergence_test,
    log_gain,
    telling_divergence,
)

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
    refuted = sum(run(1.0, claim, 1_000, seed=seed, pilot=200, alpha=0.2).p_value <= 0.2 for seed in range(30))
    assert refuted <= binom.isf(1e-6, 30, 0.2)


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
