"""The order of counts: nested regions that hold the observed counts, and the search for their strength."""

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, ZeroConcentratedDP
from dpaudit.audit.claims.mironov_propositions import ProbabilityPreservation
from dpaudit.audit.inference.boundary_test import Counts, critical_hits, order, root_from_below

CLAIMS = [
    PureDP(1.0),
    ApproxDP(0.5, 0.2, bound_on="delta"),
    GaussianDP(1.0),
    RenyiDP(2.0, 0.3),
    RenyiDP(30.0, 0.3).group(2),
    ZeroConcentratedDP(0.5),
    PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.1)),
    TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
    ProbabilityPreservation(2.0, 0.3),
]
SIZES = [(30, 30), (1000, 40), (40, 1000), (10**6, 10**7)]
MOST = 10.0  # standard deviations between the tested hits on y


def some_hits(runs, most):
    """Return all hits on y, or some near a fifth of the runs."""
    span = (0, runs) if runs <= 1000 else runs / 5 + MOST * math.sqrt(runs) * np.array([-0.5, 0.5])
    return np.unique(np.round(np.linspace(*span, most)))


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), SIZES)
class TestRegions:
    def test_they_are_nested_in_the_strength_and_in_z(self, claim, n, m):
        y = some_hits(m, 100)
        strengths = claim.strength + np.array([0.0, 1e-9, 1e-6, 1e-3, 0.1])
        found = [critical_hits(y, n, m, claim.with_strength(s), z) for s in strengths for z in (0.0, 1.0, 1.6, 5.0)]
        grid = np.array(found).reshape(len(strengths), 4, len(y))
        for axis in range(3):
            assert np.diff(grid, axis=axis).min() >= 0

    def test_the_table_is_the_same_for_one_count_and_for_many(self, claim, n, m):
        """The grid of the table depends on the runs alone, so a region does not depend on the observed counts."""
        y = some_hits(m, 40)
        alone = [critical_hits(np.array([one]), n, m, claim, 1.6)[0] for one in y]
        assert critical_hits(y, n, m, claim, 1.6).tolist() == alone

    def test_counts_lie_in_their_own_region_and_hardly_in_a_smaller_one(self, claim, n, m):
        for share in (0.0, 0.01, 0.3, 0.9):
            hits_y = round(share * m)
            power = float(claim.max_power(share)[0])
            for hits_x in {0, round(n * power), round(n * power + 2 * math.sqrt(n)), round(n * (1 + power) / 2), n}:
                counts = Counts(hits_x=min(hits_x, n), runs_x=n, hits_y=hits_y, runs_y=m)
                strength, z = order(counts, claim, 1.6)
                if z == 0.0 or math.isinf(strength):
                    continue
                y = np.array([float(hits_y)])
                assert critical_hits(y, n, m, claim.with_strength(strength), z)[0] <= counts.hits_x
                if strength > 0.0 and strength * (1 + 1e-6) < claim.max_strength:
                    larger = claim.with_strength(strength * (1 + 1e-6) + 1e-12)
                    assert critical_hits(y, n, m, larger, z)[0] > counts.hits_x


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if not claim.has_closed_form], ids=str)
def test_what_a_table_says_is_near_the_boundary(claim):
    """The error is at most one hit or a fiftieth of the standard error of the hits."""
    n = m = 10**6
    y = np.round(m * np.array([1e-4, 0.01, 0.1, 0.3, 0.6, 0.9]))
    p, rest = claim.max_power((y + 0.5) / (m + 1.0))
    assert np.all(np.abs(critical_hits(y, n, m, claim, 0.0) - n * p) <= 1.0 + 0.02 * np.sqrt(n * p * rest))


@pytest.mark.parametrize("root", [0.0, 1e-9, 0.3, 1.0, 1.7, 2.5e5])
@pytest.mark.parametrize("start", [1e-3, 1.0, 40.0])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_the_search_ends_just_below_the_root(root, start, size):
    for excess in (
        lambda at: at - root,
        lambda at: math.copysign(abs(at - root) ** 3, at - root),
        lambda at: math.floor(10 * (at - root)) + 0.5,  # a step
        lambda at: 1e-9 if at > root else -1e6,
    ):
        found = root_from_below(excess, math.inf, start, size)
        assert found == 0.0 or excess(found) <= 0
        assert found <= root + 0.1
        assert excess(found * (1 + 2e-7) + 1e-15) > 0


def test_the_search_ends_below_a_limit_and_gives_up_far_out():
    assert 1.0 - 1e-6 < root_from_below(lambda at: -1.0, 1.0, 0.2, 1.0) < 1.0
    assert root_from_below(lambda at: -1.0, math.inf, 1.0, 1.0) == math.inf


def test_the_search_takes_a_dozen_steps():
    asked = []
    root_from_below(lambda at: asked.append(at) or math.expm1(at - 1.05), math.inf, 1.0, 1.0)
    assert len(asked) <= 12
