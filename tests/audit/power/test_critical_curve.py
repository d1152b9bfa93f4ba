"""The fewest hits that are refuted, for all numbers of hits on y at once, are those of the exact test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.audit.inference.boundary_test import Counts, p_value
from dpaudit.audit.power.critical_curve import RegionProbabilities, critical_curve, likely_hits


def p_of(claim, n, m, alpha, x, y):
    """Return the exact p-value in units of alpha; 0 if there are more hits than runs."""
    if x > n:
        return 0.0
    return p_value(Counts(hits_x=int(x), runs_x=n, hits_y=int(y), runs_y=m), claim, alpha=alpha) / alpha


@pytest.mark.parametrize(
    ("claim", "n", "m", "q", "alpha"),
    [
        (PureDP(1.0), 60, 60, 0.2, 0.05),
        (PureDP(0.0), 200, 200, 0.5, 1e-8),
        (PureDP(4.0), 10_000, 10_000, 1e-3, 0.05),
        (PureDP(1.0), 1_000_000, 1_000_000, 1e-6, 1e-3),
        (ApproxDP(1.0, 0.1), 200, 200, 0.7, 0.05),
        (ApproxDP(1.0, 1e-5, bound_on="delta"), 1_000_000, 1_000_000, 1e-7, 0.05),
        (GaussianDP(1.0), 300, 200, 0.02, 0.05),
        (GaussianDP(0.5).group(2), 1_000, 1_000, 0.01, 1e-5),
        (RenyiDP(2.0, 0.1), 300, 300, 0.05, 0.05),
        (ZeroConcentratedDP(0.5), 300, 300, 0.3, 0.05),
        (PrivacyProfile((0.0, 1.0), (0.3, 0.1)), 200, 200, 0.3, 0.05),
    ],
    ids=str,
)
def test_few_hits_are_refuted_from_the_curve_on_and_no_fewer(claim, n, m, q, alpha):
    """Up to p-values that alpha separates by chance: 6% above it or 7% below it at most."""
    low, high = likely_hits(m, q)
    y = np.arange(low, high + 1.0)
    curve = critical_curve(claim, n, m, q, alpha, y)
    for at in range(0, len(y), max(len(y) // 6, 1)):
        assert p_of(claim, n, m, alpha, curve[at], y[at]) <= 1.06
        assert p_of(claim, n, m, alpha, curve[at] - 1, y[at]) > 0.93


@pytest.mark.parametrize("alpha", [0.05, 1e-5])
@pytest.mark.parametrize(
    ("claim", "q"),
    [(PureDP(1.0), 0.268), (ApproxDP(1.0, 0.05), 0.1), (GaussianDP(1.0), 1e-3), (RenyiDP(4.0, 1.0), 0.3)],
    ids=str,
)
def test_many_hits_on_the_curve_have_a_p_value_near_alpha(claim, q, alpha):
    """Within .02 standard errors: 4% at alpha .05, and 9% at 1e-5."""
    n = 1_000_000
    y = np.round(n * q + np.array([-3.0, 0.0, 3.0]) * math.sqrt(n * q * (1.0 - q)))
    for hits_y, x in zip(y, critical_curve(claim, n, n, q, alpha, y), strict=True):
        assert p_of(claim, n, n, alpha, x, hits_y) == pytest.approx(1.0, abs=0.04 if alpha == 0.05 else 0.09)


def test_the_curve_rises_with_strength_and_confidence():
    y = np.arange(10.0, 60.0)
    curves = [critical_curve(PureDP(each), 200, 200, 0.18, 0.05, y) for each in (0.5, 1.0, 1.5)]
    assert all((np.diff(curve) >= 0).all() for curve in curves)
    assert (np.diff(curves, axis=0) >= 0).all()
    assert (critical_curve(PureDP(1.0), 200, 200, 0.18, 1e-4, y) >= curves[1]).all()


@pytest.mark.parametrize(("n", "m"), [(50, 50), (3_000, 100), (100_000, 100_000)])
def test_a_region_has_its_probability(n, m):
    """1 for all counts, 0 for none, and the tail of a binomial law, which grows with p, for some hits on x."""
    claim = PureDP(1.0)
    boundary = RegionProbabilities.of(claim, claim, n, m, 0.3, 0.6)
    always, never, some = (np.full(len(boundary.y), each) for each in (0.0, n + 1.0, math.floor(0.6 * n)))
    found = boundary.at(np.stack([always, never, some]))
    assert found[0] == pytest.approx(1.0, abs=1e-6)
    assert found[1] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(found[2]) >= -1e-9).all()
