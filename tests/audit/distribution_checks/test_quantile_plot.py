"""Quantiles of noise and of the claimed law: the law's quantiles are exact, and the band covers the true ones."""

import math

import numpy as np
import pytest
from scipy.stats import dlaplace, expon, gumbel_r, laplace, norm

from dpaudit.audit.distribution_checks.check_noise import check_noise, law_quantiles, quantile_series
from dpaudit.audit.distribution_checks.noise_laws import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    GumbelNoise,
    LaplaceNoise,
)

LEVELS = np.array([0.005, 0.1, 0.25, 0.5, 0.9, 0.995])
LAWS = [
    (LaplaceNoise(scale=2.0), laplace(scale=2.0)),
    (GaussianNoise(sigma=1e-3), norm(scale=1e-3)),
    (ExponentialNoise(scale=3.0), expon(scale=3.0)),
    (GumbelNoise(scale=5.0), gumbel_r(scale=5.0)),
    (GeometricNoise(scale=1.5), dlaplace(1 / 1.5)),
]


@pytest.mark.parametrize(("law", "known"), LAWS)
def test_quantiles_of_the_laws_are_scipys(law, known):
    assert law_quantiles(law, LEVELS) == pytest.approx(known.ppf(LEVELS), rel=1e-9, abs=1e-9 * law.value)


@pytest.mark.parametrize(("law", "known"), LAWS)
def test_draws_spaced_as_the_law_lie_on_the_line_and_others_do_not(law, known):
    n = 20_000
    values = np.sort(known.ppf((np.arange(n) + 0.5) / n))
    found = quantile_series(values, law, alpha=0.01)
    x, estimate = np.array(found.x), np.array(found.estimate)
    step = 1.0 if law.is_discrete else 0.05 * law.value
    assert np.abs(x - estimate).max() <= step
    assert (np.diff(x) > 0).all()
    assert all(low <= at <= high for low, at, high in zip(found.lower, found.x, found.upper, strict=True))
    twice = quantile_series(2 * values, law, alpha=0.01)
    assert any(not low <= at <= high for low, at, high in zip(twice.lower, twice.stated, twice.upper, strict=True))


def test_the_band_leaves_out_the_law_as_often_as_alpha_says():
    alpha, repetitions, n, rng = 0.2, 400, 300, np.random.default_rng(5)
    missed = 0
    for _ in range(repetitions):
        found = quantile_series(np.sort(rng.laplace(size=n)), LaplaceNoise(scale=1.0), alpha=alpha)
        missed += any(not low <= at <= high for low, at, high in zip(found.lower, found.x, found.upper, strict=True))
    assert missed <= 124  # binom.isf(1e-7, 400, 0.2): false alarm 1e-7
    assert missed >= 20  # binom.ppf(1e-12, 400, 0.12); the 41 places detect most misses of the whole band


def test_few_draws_have_open_ends():
    found = quantile_series(np.array([0.5]), LaplaceNoise(scale=1.0), alpha=0.05)
    middle = len(found.x) // 2
    assert found.lower[middle] == found.lower[0] == -math.inf
    assert found.upper[middle] == found.upper[-1] == math.inf
    assert set(found.estimate) == {0.5}


def test_the_check_of_noise_has_its_quantiles_unless_the_runs_depend_on_each_other():
    def noisy(x, size, rng):
        return x + rng.laplace(size=size)

    def repeated(x, size, rng):
        return x + np.random.default_rng(3).laplace(size=size)

    found = check_noise(noisy, 0.0, noise=LaplaceNoise(scale=1.0), answer=0.0, runs=1_000, jobs=1)
    assert "99.85% confidence" in found.series.intervals
    assert check_noise(repeated, 0.0, noise=LaplaceNoise(scale=1.0), answer=0.0, runs=1_000, jobs=1).series is None
