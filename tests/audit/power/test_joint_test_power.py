"""Planning: the stated power is that of the exact test, and the runs needed and the resolution are inverse."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP, RenyiDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.boundary_test import Counts, p_value
from dpaudit.audit.power.alternatives import best_q
from dpaudit.audit.power.joint_test_power import power_of_test, resolution, runs_needed

CASES = [
    (PureDP(1.0), 0.18, 0.02),
    (PureDP(1.0), 1e-4, 0.5),
    (ApproxDP(1.0, 0.05), 0.05, 0.05),
    (ApproxDP(1.0, 0.05, bound_on="delta"), 0.05, 0.01),
    (GaussianDP(1.0), 0.3, 0.05),
    (RenyiDP(2.0, 0.1), 0.3, 0.01),
]


@pytest.mark.parametrize(
    ("claim", "q", "excess", "power"),
    [(*case, 0.95) for case in CASES] + [(*case, 0.5) for case in (CASES[0], CASES[3])],
    ids=str,
)
def test_runs_needed_reach_the_power_and_hardly_more(claim, q, excess, power):
    runs = runs_needed(claim, q, resolution=excess, power=power, alpha=0.05)
    assert power_of_test(claim, runs, runs, q, excess, alpha=0.05) >= power
    fewer = int(runs * 0.97)
    assert power_of_test(claim, fewer, fewer, q, excess, alpha=0.05) < power
    assert resolution(claim, runs, runs, q, alpha=0.05, power=power) == pytest.approx(excess, rel=0.02)


@functools.cache
def is_refuted(claim, n, m, x, y):
    return p_value(Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m), claim) <= 0.05


def fewest_refuted(claim, n, m, y, low):
    """Return the fewest hits on x, `low` or more, that the exact test refutes at .05, or n + 1."""
    high = low
    while high <= n and not is_refuted(claim, n, m, high, y):
        low, high = high + 1, 2 * high - low + 2  # at 1, 3, 7 … more
    high = min(high, n + 1)
    while low < high:
        x = (low + high) // 2
        low, high = (low, x) if is_refuted(claim, n, m, x, y) else (x + 1, high)
    return low


def exact_power(claim, n, m, q, excess):
    """Compute the power from the exact p-values of all counts, except for y of total probability 1e-6."""
    p = float(claim.with_strength(claim.strength + excess).max_power(q)[0])
    likely = range(int(binom.ppf(5e-7, m, q)), int(binom.isf(5e-7, m, q)) + 1)
    fewest, power = 0, 0.0
    for y in likely:
        fewest = fewest_refuted(claim, n, m, y, fewest)  # with more hits on y it is as large or larger
        power += binom.pmf(y, m, q) * binom.sf(fewest - 1, n, p)
    return power


@pytest.mark.parametrize(
    ("n", "m", "q"),
    [(n, n, q) for n in (20, 60) for q in (0.02, 0.2, 0.6)] + [(20, 60, 0.2), (60, 20, 0.2)],
)
def test_stated_power_against_enumeration(n, m, q):
    for excess in (0.3, 1.0, 2.0):
        stated = power_of_test(PureDP(0.5), n, m, q, excess, alpha=0.05)
        assert stated == pytest.approx(exact_power(PureDP(0.5), n, m, q, excess), abs=0.02)


@pytest.mark.parametrize(
    ("claim", "runs", "q", "excess"),
    [
        (PureDP(1.0), 1_000_000, 1e-6, 1.5),
        (PureDP(1.0), 1_000_000, 1e-6, 2.2),
        (ApproxDP(1.0, 1e-5, bound_on="delta"), 1_000_000, 1e-7, 2e-5),
        (GaussianDP(1.0), 300, 0.02, 0.6),
        (PureDP(0.0), 100, 0.1, 0.9),
        (PureDP(3.0), 300, 0.01, 1.0),
        (RenyiDP(2.0, 0.1), 30, 0.1, 0.8),
    ],
    ids=str,
)
def test_stated_power_where_hits_are_few(claim, runs, q, excess):
    truth = exact_power(claim, runs, runs, q, excess)
    assert 0.2 < truth < 0.99
    assert power_of_test(claim, runs, runs, q, excess, alpha=0.05) == pytest.approx(truth, abs=0.03)


def n_refuted(claim, runs, pairs):
    """Return how many counts are refuted; more hits on x and fewer on y than refuted counts are refuted, too."""
    middle = np.mean(pairs, axis=0)
    refuted, kept = [], []
    for x, y in sorted(pairs, key=lambda pair: abs(pair[0] - middle[0] - pair[1] + middle[1])):
        if any(x >= a and y <= b for a, b in refuted):
            refuted.append((x, y))
        elif any(x <= a and y >= b for a, b in kept):
            kept.append((x, y))
        else:
            (refuted if is_refuted(claim, runs, runs, x, y) else kept).append((x, y))
    return len(refuted)


@pytest.mark.parametrize(("claim", "q"), [(PureDP(1.0), 0.268), (GaussianDP(1.0), 0.3)], ids=str)
def test_stated_power_against_simulation(claim, q):
    """60 exact tests refute as often as stated, within .02; this test fails by chance with probability 2e-8."""
    runs = 100_000
    excess = resolution(claim, runs, runs, q, alpha=0.05, power=0.8)
    rng = np.random.default_rng(1)
    p = float(claim.with_strength(claim.strength + excess).max_power(q)[0])
    pairs = zip(rng.binomial(runs, p, 60).tolist(), rng.binomial(runs, q, 60).tolist(), strict=True)
    refuted = n_refuted(claim, runs, list(pairs))
    assert binom.ppf(1e-8, 60, 0.78) <= refuted <= binom.isf(1e-8, 60, 0.82)


@pytest.mark.parametrize(
    ("claim", "runs", "q", "excess"),
    [
        (PureDP(1.0), 10_000, 0.18, 0.05838),
        (PureDP(1.0), 100_000, 0.268, 0.015152),
        (ApproxDP(1.0, 0.05), 10_000, 0.1, 0.084576),
        (ApproxDP(1.0, 0.05, bound_on="delta"), 10_000, 0.05, 0.018287),
        (GaussianDP(1.0), 1_000_000, 1e-5, 0.178551),
        (PureDP(4.0), 1_000_000, 0.01785, 0.019137),
    ],
    ids=str,
)
def test_stated_power_against_tables(claim, runs, q, excess):
    """Excesses at power .8, computed once from exact p-values.

    For 70 counts y within 4 standard deviations, bisection finds the fewest x with p_value <= .05. In between, the
    difference from the fewest x of an ellipse of 1.645 is linear in y. The power is summed over the binomial laws and
    solved for the excess.
    """
    assert power_of_test(claim, runs, runs, q, excess, alpha=0.05) == pytest.approx(0.8, abs=0.02)


def test_power_grows_with_excess_runs_and_alpha():
    claim = PureDP(1.0)
    for powers in (
        [power_of_test(claim, 10_000, 10_000, 0.2, excess, alpha=0.05) for excess in (0.0, 0.02, 0.05, 0.2)],
        [power_of_test(claim, runs, runs, 0.2, 0.05, alpha=0.05) for runs in (100, 1_000, 10_000, 100_000)],
        [power_of_test(claim, 10_000, 10_000, 0.2, 0.05, alpha=alpha) for alpha in (1e-8, 1e-4, 0.05, 0.5)],
    ):
        assert powers == sorted(powers)
    assert power_of_test(claim, 10_000, 10_000, 0.2, 0.0, alpha=0.05) < 0.055


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_the_best_event_needs_the_fewest_runs(claim):
    excess = 0.1
    best = best_q(claim, resolution=excess)
    needed = runs_needed(claim, best, resolution=excess, alpha=0.05)
    for factor in (0.9, 1.1):
        assert runs_needed(claim, factor * best, resolution=excess, alpha=0.05) > 0.97 * needed


def test_where_nothing_or_anything_is_found():
    assert resolution(PureDP(1.0), 1, 1, 0.5, alpha=0.05) == math.inf
    assert resolution(ApproxDP(1.0, 0.05, bound_on="delta"), 100, 100, 0.99, alpha=0.05) == math.inf
    assert power_of_test(PureDP(1.0), 1, 1, 0.5, 3.0, alpha=0.05) < 1e-9
    assert 0.0 < resolution(PureDP(1.0), 1_000, 1_000, 0.2, alpha=0.05, power=0.01) < 1e-9


def test_impossible_plans():
    with pytest.raises(OptionError, match="larger resolution"):
        runs_needed(PureDP(1.0), 1e-12, resolution=1e-3, alpha=0.05)
    with pytest.raises(OptionError, match="is not a possible excess"):
        runs_needed(ApproxDP(1.0, 0.5, bound_on="delta"), 0.1, resolution=0.6, alpha=0.05)
    for bad in (0.0, 1.0, float("nan")):
        with pytest.raises(OptionError, match="inside"):
            runs_needed(PureDP(1.0), bad, resolution=0.1, alpha=0.05)
    with pytest.raises(OptionError, match="below the claim"):
        power_of_test(PureDP(1.0), 100, 100, 0.1, -0.1, alpha=0.05)
