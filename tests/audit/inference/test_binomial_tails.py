"""Tail bounds and limits compared with exact sums and other libraries."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, poisson
from statsmodels.stats.proportion import proportion_confint

from dpaudit.audit.inference import binomial_tails
from dpaudit.audit.inference.binomial_tails import clopper_pearson, upper_tail


@pytest.mark.parametrize("runs", [1, 2, 10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("p", [0.0, 1e-9, 1e-4, 0.03, 0.5, 0.97, 1 - 1e-6, 1.0])
def test_upper_tail_is_never_too_small_and_close(runs, p):
    deviation = np.sqrt(runs * p * (1 - p))
    hits = np.unique(np.clip(np.round(runs * p + np.linspace(-7, 7, 57) * (deviation + 1)), -1, runs + 1))
    bound = upper_tail(hits[None], runs, np.array([p]), np.array([1 - p]))[0]
    exact = binom.sf(hits - 1, runs, p)
    assert np.all(bound >= exact * (1 - 1e-12))
    # The normal bound is at most one hit too large, the sums by a relative 1e-9 (plus 1e-12 beyond their reach).
    lenient = binom.sf(hits - 2, runs, p) if runs * p * (1 - p) >= 1e4 else exact
    assert np.all(bound <= lenient * (1 + 1e-6) + 2e-12)
    assert np.all(np.diff(bound) <= 0)


def test_rows_of_different_probability_do_not_disturb_each_other():
    p = np.array([0.0, 1e-7, 1e-3, 0.2, 0.999, 1.0])
    hits = np.tile(np.array([0.0, 1.0, 5.0, 900.0, 200_000.0, 10**6]), (len(p), 1))
    bound = upper_tail(hits, 10**6, p, 1 - p)
    for row, value in enumerate(p):
        alone = upper_tail(hits[row : row + 1], 10**6, p[row : row + 1], 1 - p[row : row + 1])[0]
        np.testing.assert_allclose(bound[row], alone, rtol=1e-9, atol=2e-12)
        assert np.all(bound[row] >= binom.sf(hits[row] - 1, 10**6, value) * (1 - 1e-12))


def test_far_tail_against_high_precision():
    with mpmath.workdps(40):
        exact = mpmath.betainc(60, 10**4 - 60 + 1, 0, mpmath.mpf("0.003"), regularized=True)
    bound = upper_tail(np.array([[60.0]]), 10**4, np.array([0.003]), np.array([0.997]))[0, 0]
    assert float(exact) <= bound <= float(exact) * (1 + 1e-6) + 2e-12


@pytest.mark.parametrize(("hits", "runs"), [(0, 5), (5, 5), (3, 10), (0, 10**6), (17, 10**6), (10**9, 3 * 10**9)])
@pytest.mark.parametrize("alpha", [1e-10, 0.05])
def test_clopper_pearson(hits, runs, alpha):
    (low, low_rest), (high, high_rest) = clopper_pearson(hits, runs, alpha=alpha)
    assert low == 0.0 if hits == 0 else binom.sf(hits - 1, runs, low) <= alpha / 2 * (1 + 1e-6)
    assert high == 1.0 if hits == runs else binom.cdf(hits, runs, high) <= alpha / 2 * (1 + 1e-6)
    assert low + low_rest == pytest.approx(1.0)
    assert high + high_rest == pytest.approx(1.0)
    if alpha == 0.05:
        other = proportion_confint(hits, runs, alpha=alpha, method="beta")
        assert (low, high) == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("runs", [10**8, 3 * 10**8, 10**10])
@pytest.mark.parametrize("hits", [999, 1000, 1001])
@pytest.mark.parametrize("alpha", [0.05, 1e-10])
def test_limits_hold_where_the_inverse_beta_function_does_not(hits, runs, alpha):
    """SciPy's inverse fails at a shape of exactly 1000; its tails and the Poisson approximation, close here, do not."""
    (low, _), (high, _) = clopper_pearson(hits, runs, alpha=alpha)
    assert poisson.sf(hits - 1, low * runs) <= alpha / 2 * (1 + 1e-3)
    assert poisson.cdf(hits, high * runs) <= alpha / 2 * (1 + 1e-3)
    assert low * runs < hits < high * runs


@pytest.mark.parametrize(("hits", "runs"), [(1, 50), (20, 50), (49, 50), (10**11, 10**12)])
def test_limits_hold_where_the_inverse_beta_function_is_not_a_number(hits, runs, monkeypatch):
    exact = clopper_pearson(hits, runs, alpha=0.01)
    for name in ("betaincinv", "betainccinv"):
        monkeypatch.setattr(binomial_tails, name, lambda a, b, p: np.full_like(a, np.nan))
    (low, low_rest), (high, high_rest) = clopper_pearson(hits, runs, alpha=0.01)
    assert 0 <= low <= exact[0][0]
    assert low <= 1 - low_rest + 1e-9
    assert high >= exact[1][0]
    assert high - low < 4 * np.sqrt(5.3 / (2 * runs))
    assert 0 <= high_rest <= exact[1][1]
