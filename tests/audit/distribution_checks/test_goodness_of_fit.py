"""Distances from a distribution and their critical values: against integrals, transforms, enumeration and SciPy."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.distribution_checks.goodness_of_fit import (
    ad_critical,
    ad_distance,
    ad_radius,
    ad_tail,
    cell_limits,
    chi_square_distance,
    chi_square_radius,
    ks_distance,
    ks_radius,
    least,
    safe_rank,
)
from dpaudit.audit.distribution_checks.noise_distributions import GeometricNoise


@pytest.mark.parametrize(("tail", "value"), [(0.10, 1.9329578), (0.05, 2.492367), (0.01, 3.878125)])
def test_anderson_darling_values_of_the_literature(tail, value):
    """Marsaglia & Marsaglia (2004), Evaluating the Anderson-Darling distribution."""
    assert ad_critical(tail) == pytest.approx(value, rel=1e-6)
    assert ad_tail(value) == pytest.approx(tail, rel=1e-6)


def transform(s):
    """Return E exp(−sA²) from the weights 1/(j(j + 1)); the weights beyond 200 enter by their sums."""
    inside = mpmath.fprod(mpmath.sqrt(1 + 2 * s / (j * (j + 1))) for j in range(1, 201))
    return mpmath.exp(-s / 201 + s * s / (3 * mpmath.mpf(201) ** 3)) / inside


@pytest.mark.parametrize("z", [0.3, 2.5, 12.0, 30.0])
def test_anderson_darling_tail_is_the_inverse_of_its_transform(z):
    """Talbot's inversion with 40 digits is also precise far in the tail."""
    with mpmath.workdps(40):
        expected = mpmath.invertlaplace(lambda s: (1 - transform(s)) / s, z, method="talbot", degree=30)
    assert ad_tail(z) == pytest.approx(float(expected), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_anderson_darling_distance_is_the_weighted_integral(n):
    u = np.sort(np.random.default_rng(n).random(n))

    def integrand(v):
        return (np.mean(u <= v) - v) ** 2 / (v * (1 - v))

    edges = [0.0, *u, 1.0]
    expected = sum(integrate.quad(integrand, a, b)[0] for a, b in itertools.pairwise(edges))
    assert ad_distance(np.log(u), np.log1p(-u)) == pytest.approx(math.sqrt(expected), rel=1e-6)


def test_impossible_values_make_the_distance_large_and_no_nan():
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([0.0, 0.0, 0.5, 1.0])), np.log(np.array([1.0, 1.0, 0.5, 0.0]))
    assert 10 < ad_distance(*logs) < math.inf


def test_smirnov_distance_is_scipys():
    values = np.sort(np.random.default_rng(0).normal(size=500))
    found = ks_distance(values, stats.laplace.cdf, stats.laplace.cdf)
    assert found == pytest.approx(stats.kstest(values, "laplace").statistic, rel=1e-12)


def test_smirnov_distance_of_a_distribution_with_atoms_is_found_at_them():
    """Compare with a search over all integers, drawn or not."""
    distribution, values = stats.poisson(3.0), np.sort(np.random.default_rng(1).choice([0.0, 1, 5, 9], size=50))
    every = np.arange(-1, 60)
    expected = max(abs(np.mean(values <= k) - distribution.cdf(k)) for k in every)
    assert ks_distance(values, distribution.cdf, lambda v: distribution.cdf(np.ceil(v) - 1)) == pytest.approx(
        expected, rel=1e-12
    )
    same = np.repeat(np.arange(5.0), [1, 2, 3, 2, 2])
    own = lambda v: np.searchsorted(same, v, side="right") / 10  # noqa: E731
    assert ks_distance(same, own, lambda v: np.searchsorted(same, v, side="left") / 10) == 0.0


@pytest.mark.parametrize("n", [1, 40, 1000, 100_000, 10**7])
@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-9])
def test_smirnov_radius_is_exceeded_with_probability_alpha(n, alpha):
    radius = ks_radius(n, alpha=alpha)
    assert stats.kstwo.sf(radius, n) <= alpha * (1 + 1e-3)
    assert radius <= math.sqrt(math.log(2 / alpha) / (2 * n))  # Massart's bound


def level(radius, n, chances):
    """Return Pr[distance > radius] for n draws in three cells, summed over all outcomes."""
    a, b = np.divmod(np.arange((n + 1) ** 2), n + 1)
    counts = np.stack([a, b, n - a - b])[:, a + b <= n]
    distances = np.array([chi_square_distance(each, np.array(chances)) for each in counts.T])
    return stats.multinomial(n, chances).pmf(counts.T)[distances > radius].sum()


@pytest.mark.parametrize(
    ("n", "chances"), [(50, (0.1, 0.3, 0.6)), (80, (1 / 3, 1 / 3, 1 / 3)), (60, (0.02, 0.08, 0.9))]
)
@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.01, 1e-3])
def test_chi_square_keeps_its_alpha(n, chances, alpha):
    """Exact levels on lattices where many outcomes have equal distances. Each seed fails with probability 1e-6."""
    radius = chi_square_radius(n, chances, alpha=alpha)
    assert level(radius, n, chances) <= alpha
    assert level(radius * (1 - 1e-9), n, chances) > 0.25 * alpha  # including outcomes at the radius


def test_chi_square_keeps_its_alpha_in_many_cells():
    """Of 40,000 fresh samples a share from .3 to 1 of alpha exceeds the radius. False alarm: 1e-6 on either side."""
    distribution, n = GeometricNoise(5.0), 1_000
    chances = np.array([distribution.cell_probability(*cell) for cell in distribution.cells(n)])
    drawn = np.random.default_rng(7).multinomial(n, chances / chances.sum(), size=40_000)
    distances = np.sqrt(((drawn / n - chances) ** 2 / chances).sum(axis=1))
    assert distances[:50].tolist() == pytest.approx([chi_square_distance(counts, chances) for counts in drawn[:50]])
    for alpha in (0.05, 1e-3):
        beyond = np.sum(distances > chi_square_radius(n, tuple(chances.tolist()), alpha=alpha))
        assert stats.binom.isf(1 - 1e-6, 40_000, 0.3 * alpha) <= beyond <= stats.binom.isf(1e-6, 40_000, alpha)


@pytest.mark.parametrize(("samples", "alpha"), [(200, 0.5), (2000, 0.05), (166_667, 6e-4), (10**6, 1e-4)])
def test_the_safe_rank_is_the_largest_that_seldom_misses(samples, alpha):
    """The distribution of an order statistic: the level beyond the r-th largest is Beta(r, samples − r + 1)."""
    rank = safe_rank(samples, alpha)
    missed = [stats.beta.sf(alpha, r, samples - r + 1) for r in (rank, rank + 1)]
    assert missed[0] <= 1e-6 < missed[1]


def test_limits_of_cells_hold_together():
    """All outcomes of 9 draws in three cells."""
    n, alpha, p = 9, 0.1, np.array([0.05, 0.25, 0.7])
    missed = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            counts = np.array([a, b, n - a - b])
            lower, upper = cell_limits(counts, n, alpha=alpha)
            if np.any(lower > p) or np.any(upper < p):
                missed += stats.multinomial(n, p).pmf(counts)
    assert 0 < missed <= alpha


def test_draws_from_the_distribution_are_seldom_far_from_it():
    """40 draws, the fewest: 20,000 samples at alpha .01; both limits are exceeded with probability 1e-7."""
    alpha, n, reps = 0.01, 40, 20_000
    u = np.sort(np.random.default_rng(5).random((reps, n)), axis=1)
    far = sum(ad_distance(np.log(row), np.log1p(-row)) > ad_radius(n, alpha=alpha) for row in u)
    odd = (2 * np.arange(1, n + 1) - 1) / (2 * n)
    also = int(np.sum(np.abs(u - odd).max(axis=1) + 1 / (2 * n) > ks_radius(n, alpha=alpha)))
    for count in (far, also):
        assert stats.binom.isf(1 - 1e-7, reps, alpha) <= count <= stats.binom.isf(1e-7, reps, alpha)


def test_the_nearest_scale_is_found():
    values = np.sort(np.random.default_rng(2).exponential(1.04, size=3000))
    distance = lambda scale: ks_distance(values, *[lambda v: -np.expm1(-v / scale)] * 2)  # noqa: E731
    expected = min(distance(scale) for scale in np.linspace(0.9, 1.1, 4001))
    assert least(distance, (0.9, 1.1)) <= expected + 1e-5
    assert least(distance, (1.0, 1.0)) == distance(1.0)
    assert least(distance, (0.5, 0.9)) == pytest.approx(distance(0.9))
