"""Planning: the stated power is that of the exact test, and runs and resolution are each other's inverse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.counts import Counts
from dpaudit.audit.inference.joint import p_value
from dpaudit.audit.inference.planning import best_q, power_of_test, resolution, runs_needed

CASES = [
    (PureDP(1.0), 0.18, 0.02),
    (PureDP(1.0), 1e-4, 0.5),
    (ApproxDP(1.0, 0.05), 0.05, 0.05),
    (ApproxDP(1.0, 0.05, bound_on="delta"), 0.05, 0.01),
    (GaussianDP(1.0), 0.3, 0.05),
]


@pytest.mark.parametrize(("claim", "q", "excess"), CASES, ids=str)
@pytest.mark.parametrize("power", [0.5, 0.95])
def test_runs_needed_reach_the_power_and_hardly_more(claim, q, excess, power):
    runs = runs_needed(claim, q, resolution=excess, power=power, alpha=0.05)
    assert power_of_test(claim, runs, runs, q, excess, alpha=0.05) >= power
    fewer = int(runs * 0.97)
    assert power_of_test(claim, fewer, fewer, q, excess, alpha=0.05) < power
    assert resolution(claim, runs, runs, q, alpha=0.05, power=power) == pytest.approx(excess, rel=0.02)


@pytest.mark.parametrize(("n", "m"), [(20, 20), (20, 100), (100, 20), (100, 100)])
@pytest.mark.parametrize("q", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("excess", [0.5, 2.0])
def test_stated_power_against_enumeration(n, m, q, excess):
    """Exact power from the exact p-value of every count: stated power may be below it, hardly above."""
    claim = PureDP(0.5)
    p = float(claim.with_strength(0.5 + excess).max_power(q)[0])
    exact = 0.0
    for y in range(m + 1):
        low, high = 0, n + 1  # the fewest refuted hits on x
        while low < high:
            x = (low + high) // 2
            counts = Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m)
            low, high = (low, x) if p_value(counts, claim) <= 0.05 else (x + 1, high)
        exact += binom.pmf(y, m, q) * binom.sf(low - 1, n, p)
    stated = power_of_test(claim, n, m, q, excess, alpha=0.05)
    assert stated <= exact + 0.03
    assert stated >= exact - 0.16


def test_stated_power_against_simulation():
    """600 tests at a stated power of .95: at least .93 refuted in truth, else this fails with probability 1e-7."""
    claim, q, excess, runs = PureDP(1.0), 0.18, 0.02, 164_545
    stated = power_of_test(claim, runs, runs, q, excess, alpha=0.05)
    assert stated == pytest.approx(0.95, abs=0.01)
    rng = np.random.default_rng(1)
    p = float(claim.with_strength(1.0 + excess).max_power(q)[0])
    pairs = zip(rng.binomial(runs, p, 200).tolist(), rng.binomial(runs, q, 200).tolist(), strict=True)
    refuted = sum(p_value(Counts(hits_x=x, runs_x=runs, hits_y=y, runs_y=runs), claim) <= 0.05 for x, y in pairs)
    assert binom.ppf(1e-7, 200, stated - 0.02) <= refuted


def test_the_best_event_needs_the_fewest_runs():
    claim, excess = PureDP(1.0), 0.05
    best = best_q(claim, resolution=excess)
    needed = runs_needed(claim, best, resolution=excess, alpha=0.05)
    for q in (0.1, 0.18, 0.35, 0.6):
        assert runs_needed(claim, q, resolution=excess, alpha=0.05) > 0.98 * needed


def test_impossible_plans():
    with pytest.raises(OptionError, match="coarser"):
        runs_needed(PureDP(1.0), 1e-12, resolution=1e-3, alpha=0.05)
    with pytest.raises(OptionError, match="no stronger member"):
        runs_needed(ApproxDP(1.0, 0.5, bound_on="delta"), 0.1, resolution=0.6, alpha=0.05)
    for bad in (0.0, 1.0, float("nan")):
        with pytest.raises(OptionError, match="inside"):
            runs_needed(PureDP(1.0), bad, resolution=0.1, alpha=0.05)
    with pytest.raises(OptionError, match="below the claim"):
        power_of_test(PureDP(1.0), 100, 100, 0.1, -0.1, alpha=0.05)
