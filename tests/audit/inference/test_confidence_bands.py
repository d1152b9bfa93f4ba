"""Confidence bands for nested events: coverage by enumeration, a known distribution, and the two derived curves."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, multinomial, norm

from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.binomial_tails import limits
from dpaudit.audit.inference.confidence_bands import concave_hull, confidence_band

RATES = np.concatenate([[0.0], np.geomspace(1e-8, 0.01, 20), np.linspace(0.02, 1.0, 50)])
EDGES = np.linspace(5.0, -4.0, 31)  # of outputs, N(1, 1) on x and N(0, 1) on y: 32 cells by decreasing score


def cells(mean: float, edges: np.ndarray = EDGES) -> np.ndarray:
    """Probabilities of the cells of a normal output."""
    return np.diff(np.concatenate([[0.0], norm.sf(edges, mean), [1.0]]))


def gaussian_profile(epsilon: np.ndarray) -> np.ndarray:
    return norm.cdf(0.5 - epsilon) - np.exp(epsilon) * norm.cdf(-0.5 - epsilon)


def gaussian_power(q: np.ndarray) -> np.ndarray:
    return norm.cdf(norm.ppf(q) + 1.0)


def slow_power(q: float, rates: np.ndarray, powers: np.ndarray) -> float:
    """Return the power of the best mixture of two tests, over all pairs of tests."""
    best = 0.0
    points = [(0.0, 0.0), (1.0, 1.0), *zip(rates, powers, strict=True)]
    for (a, low), (b, high) in itertools.combinations_with_replacement(points, 2):
        if a <= q:
            best = max(best, low)
        if b <= q:
            best = max(best, high)
        if min(a, b) < q < max(a, b):
            best = max(best, low + (high - low) * (q - a) / (b - a))
    return best


@pytest.mark.parametrize("runs", [1, 7, 10**4, 10**10])
@pytest.mark.parametrize("alpha", [1e-12, 0.01])
def test_limits_of_a_probability_are_exact(runs, alpha):
    counts = np.unique([h for h in (0, 1, 7, 999, 1000, runs // 3, runs - 1000, runs - 1, runs) if 0 <= h <= runs])
    lower, upper = limits(counts.astype(float), runs, alpha=alpha)
    assert np.all(binom.sf(counts - 1, runs, lower)[counts > 0] <= alpha * (1 + 1e-6))
    assert np.all(binom.cdf(counts, runs, upper)[counts < runs] <= alpha * (1 + 1e-6))
    assert lower[0] == 0.0
    assert upper[-1] == 1.0
    # The limits are at most one hit too wide.
    assert np.all(binom.sf(counts - 2, runs, lower)[counts > 1] >= alpha * (1 - 1e-3))
    assert np.all(binom.cdf(counts + 1, runs, upper)[counts < runs - 1] >= alpha * (1 - 1e-3))


@pytest.mark.parametrize(
    ("p", "q"),
    [((0.2, 0.3, 0.5), (0.2, 0.3, 0.5)), ((0.6, 0.3, 0.1), (0.1, 0.2, 0.7)), ((0.9, 0.1, 0.0), (0, 0.5, 0.5))],
)
def test_limits_hold_together(p, q):
    """Over all outcomes of three cells, the probability that any of the eight limits is wrong is at most alpha."""
    n, m, alpha = 12, 9, 0.3
    on_x = np.array([c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n])
    on_y = np.array([c for c in itertools.product(range(m + 1), repeat=3) if sum(c) == m])
    # Limits on x do not depend on the counts on y, so the probabilities of no error multiply.
    right = 1.0
    for counts, runs, distribution in ((on_x, n, p), (on_y, m, q)):
        bands = [confidence_band(c, c, alpha=alpha) for c in counts]
        truth = np.cumsum(distribution)[:2]
        wrong = [bool(((b.lower_x > truth + 1e-12) | (b.upper_x < truth - 1e-12)).any()) for b in bands]
        right *= 1.0 - multinomial.pmf(counts, runs, distribution)[wrong].sum()
    assert 1.0 - right <= alpha
    assert 1.0 - right > 0.02 or min(p) == 0.0


@pytest.mark.parametrize("runs", [10**4, 10**9])
def test_curves_from_expected_counts_enclose_the_truth_and_close_in(runs):
    band = confidence_band(np.round(runs * cells(1.0)), np.round(runs * cells(0.0)), alpha=0.05)
    epsilons = np.linspace(0, 3, 31)
    low, estimate, high = band.profile(epsilons)
    truth = gaussian_profile(epsilons)
    assert np.all(low <= truth)
    assert np.all(truth <= high + 2e-3)  # error of 32 cells
    assert np.all(high - low <= 8 * (1 + np.exp(epsilons)) / math.sqrt(runs))
    assert np.all((low <= estimate) & (estimate <= high))
    weak, middle, strong = band.trade_off(RATES)
    assert np.all(weak <= gaussian_power(RATES) + 1e-12)
    assert np.all((weak <= middle) & (middle <= strong))


def test_curves_are_monotone_within_their_range_and_dual():
    band = confidence_band([50, 0, 400, 300, 200, 50], [0, 9, 91, 300, 500, 100], alpha=0.05)
    epsilons, rates = np.linspace(-4, 800, 500), np.linspace(0, 1, 400)
    for delta in band.profile(epsilons):
        assert np.all(np.diff(delta) <= 1e-15)
        assert 0.0 <= delta.min() <= delta.max() <= 1.0
    for power in band.trade_off(rates):
        assert np.all(np.diff(power) >= 0)
        assert np.all(np.diff(power, 2) <= 1e-12)
        assert 0.0 <= power.min() <= power.max() <= 1.0
        assert np.all(power >= rates - 1e-12)
    # δ(ε) = sup over q of B(q) − e^ε q, attained at a vertex.
    vertices, _ = concave_hull(band.upper_y, band.lower_x)
    for epsilon in (-1.0, 0.0, 0.7, 2.0):
        least = band.trade_off(vertices)[0] - math.exp(epsilon) * vertices
        assert band.profile(epsilon)[0] == pytest.approx(max(least.max(), 0.0), abs=1e-12)


def test_hull_against_all_mixtures_of_two_tests():
    rng = np.random.default_rng(2)
    for n in (0, 1, 2, 5, 12):
        rates, powers = rng.random(n).round(1), rng.random(n)
        hull = concave_hull(rates, powers)
        assert np.all(np.diff(hull[0]) > 0)
        assert np.all(np.diff(np.diff(hull[1]) / np.diff(hull[0])) < 1e-12)
        for q in np.linspace(0, 1, 21):
            assert np.interp(q, *hull) == pytest.approx(slow_power(q, rates, powers), abs=1e-12)


BAND = confidence_band([3, 4], [4, 3], alpha=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda x=x, y=y: confidence_band(x, y, alpha=0.05), "bins_") for x, y in (
            ([1], [1]), ([1, 2], [1, 2, 3]), ([1, -1], [1, 1]), ([0, 0], [1, 1]), ([1.5, 1], [1, 1]))),
        (lambda: confidence_band([1, 2], [1, 2], alpha=1.0), "alpha="), (lambda: BAND.trade_off(1.1), "q="),
        (lambda: BAND.trade_off([0.5, math.nan]), "q="), (lambda: BAND.profile(math.nan), "epsilon="),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()
