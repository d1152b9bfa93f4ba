"""Bounds on divergences: graded payoffs, the Rényi bound, coverage by enumeration, and the closest distributions."""

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpaudit.audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.binomial_tails import limits
from dpaudit.audit.inference.confidence_bands import renyi_lower
from dpaudit.audit.inference.divergence_test import _MULTIPLIERS, Divergence, _soft_clip, divergence_test, log_gain

EVEN = np.linspace(0.0, 1.0, 33)[1:-1]


def renyi(p, q, order):
    """The divergence by definition, for distributions of full support."""
    if order == np.inf:
        return float(np.log(p / q).max())
    return float(p @ np.log(p / q)) if order == 1.0 else float(np.log(p**order @ q ** (1.0 - order)) / (order - 1.0))


def gaussian_bins(mu):
    edges = mu * EVEN + ndtri(EVEN)
    return tuple(np.diff(ndtr(edges - mean), prepend=0.0, append=1.0) for mean in (mu, 0.0))


def run(mu, claim, runs, *, seed=0, pilot=2_000, alpha=0.05):
    p, q = gaussian_bins(mu)
    rng = np.random.default_rng(seed)
    counts = (rng.multinomial(size, distribution) for size in (pilot, runs) for distribution in (p, q))
    return divergence_test(*counts, claim, alpha=alpha, coins=rng)


@pytest.mark.parametrize("order", [1.0, 1.5, 32.0])
@pytest.mark.parametrize("way", ["x from y", "y from x", "both ways"])
@pytest.mark.parametrize("multiplier", [0.0, 1e-3, 1.0])
def test_payoffs_are_limited_by_the_divergence(order, way, multiplier):
    rng = np.random.default_rng(1)
    for _ in range(50):
        p, q, a, b = rng.dirichlet(np.ones(6), 4)
        own = {"x from y": renyi(p, q, order), "y from x": renyi(q, p, order)}
        largest = max(own.values()) if way == "both ways" else own[way]
        divergence = Divergence(order, 1.0, way, multiplier, 6)
        for first, second in ((a, b), (p, q)):  # payoffs learned anywhere, and at the distributions themselves
            mean_x, _, mean_y, _ = divergence.payoffs(first, second).moments(p, q)
            assert mean_x - mean_y <= divergence.limit(largest) * (1.0 + 1e-9)
        if way != "both ways" and multiplier == 0.0:
            assert mean_x - mean_y == pytest.approx(float(divergence.limit(largest)))


@pytest.mark.parametrize("order", [1.0, 32.0])
@pytest.mark.parametrize("multiplier", [0.0, 1e-2, 1.0])
def test_a_bet_has_mean_one_at_most(order, multiplier):
    """The mean over all counts of one run on x and two on y, at the limit and below it; some bins are rare."""
    rng = np.random.default_rng(2)
    for _ in range(20):
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
    """A chain of distributions with D_a at most 1 between neighbours, and its ends."""
    rng, claim = np.random.default_rng(3), RenyiDP(order, 1.0)
    assert claim.divergence_slopes[-1] == (order, 1.0)
    for distance in (2, 3, 5):
        slopes = claim.group(distance).divergence_slopes
        for _ in range(50):
            distributions = rng.dirichlet(np.ones(4), distance + 1)
            steps = max(renyi(p, q, order) for p, q in pairwise(distributions))
            for lower, slope in slopes:
                assert renyi(distributions[0], distributions[-1], lower) <= slope * steps * (1.0 + 1e-9)
    assert ZeroConcentratedDP(0.5).group(3).divergence_slopes[0] == (1.0, 9.0)


def test_size_by_enumeration():
    """Randomised response with odds 3 to 1 at its divergence of order 1, averaged over the orders that coins draw."""
    runs, rate = 6, 0.75  # enough for three batches
    seen = np.arange(runs + 1)
    claim = ZeroConcentratedDP(0.5 * np.log(3.0))
    on_x, on_y = binom.pmf(seen, runs, rate), binom.pmf(seen, runs, 1.0 - rate)
    pilot = np.array([30, 10])
    size = 0.0
    for x, y in np.ndindex(runs + 1, runs + 1):
        counts = np.array([x, runs - x]), np.array([y, runs - y])
        found = divergence_test(pilot, pilot[::-1], *counts, claim, alpha=0.2, coins=np.random.default_rng(x * 31 + y))
        size += on_x[x] * on_y[y] * (found.pvalue <= 0.2)
        assert (found.bound > claim.rho) <= (found.pvalue <= 0.2)
    assert size <= 0.2


def test_gaussian_noise_above_the_claim_is_refuted():
    found = run(np.sqrt(1.25), ZeroConcentratedDP(0.5), 20_000)
    assert found.pvalue < 1e-4
    assert 0.55 < found.bound < 0.625
    assert found.estimate == pytest.approx(0.625, rel=0.05)
    assert run(np.sqrt(1.25), ZeroConcentratedDP(0.625), 20_000).bound < 0.625


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


@pytest.mark.parametrize("log_odds", [3.0, 40.0])
@pytest.mark.parametrize("share", [0.02, 0.9])
def test_no_parameter_below_the_claim_keeps_a_violation_from_being_refuted(log_odds, share):
    """Randomised response with large odds, up to outputs that never occur on both datasets."""
    p = 1.0 / (1.0 + math.exp(-log_odds))
    divergence = (2.0 * p - 1.0) * log_odds
    pilot, counts = (np.array([runs - (rest := round(runs * (1.0 - p))), rest]) for runs in (1_000, 20_000))
    found = divergence_test(
        pilot, pilot[::-1], counts, counts[::-1], ZeroConcentratedDP(share * divergence if log_odds < 10 else share),
        alpha=0.05, coins=np.random.default_rng(1),
    )  # fmt: skip
    assert found.pvalue < 1e-6
    assert found.bound > share * divergence if log_odds < 10 else found.bound > 5.0


ORDERS = np.array([0.5, 1.0, 1.5, 2.0, 8.0, 64.0, np.inf])


def all_orders(p, q) -> np.ndarray:
    return np.array([renyi(np.asarray(p), np.asarray(q), order) for order in ORDERS])


def test_bounds_exceed_the_truth_with_probability_at_most_alpha():
    """Binary outputs: all pairs of counts, and all orders simultaneously."""
    n, m, alpha = 12, 9, 0.3
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


def test_no_allowed_pair_of_distributions_is_closer():
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda a=order: renyi_lower([1, 2], [2, 1], a, alpha=0.05), "order=") for order in (0.0, -1.0, math.nan)),
        (lambda: renyi_lower([1, 2], [2, 1], 2.0, alpha=0.0), "alpha="),
        (lambda: renyi_lower([1], [2], 2.0, alpha=0.05), "bins_x"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()
