"""What a claim allows as curves: exact for straight pieces, never below the claim, near it elsewhere."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.reports.figures.output_figures import ClaimedCurve

from ..examples import CLAIMS

CURVES = [*CLAIMS, PureDP(0.5).group(3), ZeroConcentratedDP(0.1).group(2), ApproxDP(0.5, 1e-3).group(2)]


@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(0.2), ApproxDP(0.5, 1e-3), ApproxDP(0.0, 0.2)], ids=str)
def test_profile_of_a_claim_with_an_epsilon_is_exact(claim):
    epsilon = np.linspace(0, 2, 41)
    delta = getattr(claim, "delta", 0.0)
    rate = (1 - delta) / (1 + math.exp(claim.epsilon))
    corner = math.exp(claim.epsilon) * rate + delta - np.exp(epsilon) * rate
    assert ClaimedCurve.of(claim).profile(epsilon) == pytest.approx(np.maximum(corner, delta), abs=1e-12)


def test_profile_of_a_gaussian_claim_errs_to_the_safe_side_by_little():
    for mu in (0.3, 1.0, 3.0):
        epsilon = np.linspace(0, 3 * mu, 31)
        true = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        found = ClaimedCurve.of(GaussianDP(mu)).profile(epsilon)
        assert (found >= true * (1 - 1e-9)).all()
        assert (found <= true * 1.03).all()


@pytest.mark.parametrize("claim", CURVES, ids=str)
def test_claimed_curve_is_concave_and_not_below_the_boundary(claim):
    curve = ClaimedCurve.of(claim)
    q = np.linspace(0.001, 0.999, 300)
    power = np.interp(q, curve.rate, curve.power)
    assert (power >= claim.max_power(q)[0] - 1e-9).all()
    assert power == pytest.approx(claim.max_power(q)[0], abs=3e-3)
    assert (np.diff(curve.profile(np.linspace(0, 5, 50))) <= 1e-12).all()
