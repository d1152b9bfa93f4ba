"""Lower bounds on the Rényi divergence: coverage by enumeration, known laws, and the closest pair of laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.binomial_tails import limits
from dpaudit.audit.inference.renyi_lower_bound import moment_lower, renyi_lower

ORDERS = np.array([0.5, 1.0, 1.5, 2.0, 8.0, 64.0, np.inf])
SIGMA = 2.0
EDGES = np.linspace(1 + 3.2 * SIGMA, -3.2 * SIGMA, 31)  # the 32 cells that the docstring recommends


def cells(mean: float) -> np.ndarray:
    return np.diff(np.concatenate([[0.0], norm.sf(EDGES, mean, SIGMA), [1.0]]))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Compute the divergence by definition, for laws of full support."""
    if order == 1.0:
        return float(np.sum(p * np.log(p / q)))
    if order == np.inf:
        return float(np.log(p / q).max())
    return math.log(float(np.sum(p**order * q ** (1.0 - order)))) / (order - 1.0)


def all_orders(p, q) -> np.ndarray:
    return np.array([renyi(np.asarray(p), np.asarray(q), order) for order in ORDERS])


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
        misses += renyi(x / 3000, y / 3000, 2.0) > 0.0
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


@pytest.mark.parametrize("order", [0.0, -1.0, math.nan])
def test_orders_that_name_no_divergence_are_refused(order):
    with pytest.raises(OptionError, match="order="):
        renyi_lower([1, 2], [2, 1], order, alpha=0.05)


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan])
def test_orders_without_a_moment_are_refused(order):
    with pytest.raises(OptionError, match="order="):
        moment_lower([1, 2], [2, 1], order, alpha=0.05)


def test_other_options_are_refused():
    with pytest.raises(OptionError, match="alpha="):
        renyi_lower([1, 2], [2, 1], 2.0, alpha=0.0)
    with pytest.raises(OptionError, match="cells_x"):
        renyi_lower([1], [2], 2.0, alpha=0.05)
