"""The power of the tests: excess and runs that are detected, and the critical curve."""

import functools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.event_test import Counts, pvalue
from dpaudit.audit.inference.guess_test import Guesses, guess_test
from dpaudit.audit.power.joint_test_power import (
    RegionProbabilities,
    best_q,
    critical_curve,
    detectable_excess,
    equivalent_runs,
    guess_excess,
    likely_counts,
    power_of_test,
    runs_needed,
)

CASES = [
    (PureDP(1.0), 0.18, 0.02), (PureDP(1.0), 1e-4, 0.5), (ApproxDP(1.0, 0.05), 0.05, 0.05),
    (ApproxDP(1.0, 0.05, bound_on="delta"), 0.05, 0.01), (GaussianDP(1.0), 0.3, 0.05), (RenyiDP(2.0, 0.1), 0.3, 0.01),
]  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "q", "excess", "power"), [(*case, 0.95) for case in CASES[1:]] + [(*CASES[0], 0.5)], ids=str
)
def test_runs_needed_reach_the_power_and_hardly_more(claim, q, excess, power):
    runs = runs_needed(claim, q, excess=excess, power=power, alpha=0.05)
    assert power_of_test(claim, runs, runs, q, excess, alpha=0.05) >= power
    fewer = int(runs * 0.97)
    assert power_of_test(claim, fewer, fewer, q, excess, alpha=0.05) < power
    assert detectable_excess(claim, runs, runs, q, alpha=0.05, power=power) == pytest.approx(excess, rel=0.02)


@functools.cache
def is_refuted(claim, n, m, x, y):
    return pvalue(Counts(count_x=x, runs_x=n, count_y=y, runs_y=m), claim) <= 0.05


def fewest_refuted(claim, n, m, y, low):
    """Return the smallest count on x, `low` or more, that the exact test refutes at .05, or n + 1."""
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
    p = float(claim.with_parameter(claim.parameter + excess).max_power(q)[0])
    likely = range(int(binom.ppf(5e-7, m, q)), int(binom.isf(5e-7, m, q)) + 1)
    fewest, power = 0, 0.0
    for y in likely:
        fewest = fewest_refuted(claim, n, m, y, fewest)  # with a larger count on y it is as large or larger
        power += binom.pmf(y, m, q) * binom.sf(fewest - 1, n, p)
    return power


@pytest.mark.parametrize(
    ("claim", "n", "m", "q", "excess", "error"),
    [
        *((PureDP(0.5), *case, excess, 0.02) for case in (
            (60, 60, 0.02), (60, 60, 0.6), (20, 60, 0.2), (60, 20, 0.2)) for excess in (0.3, 1.0, 2.0)),
        *((PureDP(1.0), 1_000_000, 1_000_000, 1e-6, excess, 0.03) for excess in (1.5, 2.2)),
        (ApproxDP(1.0, 1e-5, bound_on="delta"), 1_000_000, 1_000_000, 1e-7, 2e-5, 0.03),
        (GaussianDP(1.0), 300, 300, 0.02, 0.6, 0.03), (PureDP(0.0), 100, 100, 0.1, 0.9, 0.03),
        (PureDP(3.0), 300, 300, 0.01, 1.0, 0.03), (RenyiDP(2.0, 0.1), 30, 30, 0.1, 0.8, 0.03),
    ],
    ids=str,
)  # fmt: skip
def test_stated_power_against_enumeration(claim, n, m, q, excess, error):
    """With a larger error if counts are few."""
    truth = exact_power(claim, n, m, q, excess)
    assert error == 0.02 or 0.2 < truth < 0.99
    assert power_of_test(claim, n, m, q, excess, alpha=0.05) == pytest.approx(truth, abs=error)


@pytest.mark.parametrize(
    ("claim", "runs", "q", "excess"),
    [
        (PureDP(1.0), 10_000, 0.18, 0.05838), (PureDP(1.0), 100_000, 0.268, 0.015152),
        (ApproxDP(1.0, 0.05), 10_000, 0.1, 0.084576), (ApproxDP(1.0, 0.05, bound_on="delta"), 10_000, 0.05, 0.018287),
        (GaussianDP(1.0), 1_000_000, 1e-5, 0.178551), (PureDP(4.0), 1_000_000, 0.01785, 0.019137),
    ],
    ids=str,
)  # fmt: skip
def test_stated_power_against_tables(claim, runs, q, excess):
    """Excesses at power .8, computed once from exact p-values.

    For 70 counts y within 4 standard deviations, bisection finds the fewest x with pvalue <= .05. In between, the
    difference from the fewest x of an ellipse of 1.645 is linear in y. The power is summed over the binomial
    distributions and solved for the excess.
    """
    assert power_of_test(claim, runs, runs, q, excess, alpha=0.05) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_the_best_event_needs_the_fewest_runs(claim):
    excess = 0.1
    best = best_q(claim, excess=excess)
    needed = runs_needed(claim, best, excess=excess, alpha=0.05)
    for factor in (0.9, 1.1):
        assert runs_needed(claim, factor * best, excess=excess, alpha=0.05) > 0.97 * needed


def test_where_nothing_or_anything_is_found_and_impossible_plans():
    assert detectable_excess(PureDP(1.0), 1, 1, 0.5, alpha=0.05) == math.inf
    assert detectable_excess(ApproxDP(1.0, 0.05, bound_on="delta"), 100, 100, 0.99, alpha=0.05) == math.inf
    assert power_of_test(PureDP(1.0), 1, 1, 0.5, 3.0, alpha=0.05) < 1e-9
    assert 0.0 < detectable_excess(PureDP(1.0), 1_000, 1_000, 0.2, alpha=0.05, power=0.01) < 1e-9
    with pytest.raises(OptionError, match="larger excess"):
        runs_needed(PureDP(1.0), 1e-12, excess=1e-3, alpha=0.05)
    with pytest.raises(OptionError, match="is not a possible excess"):
        runs_needed(ApproxDP(1.0, 0.5, bound_on="delta"), 0.1, excess=0.6, alpha=0.05)
    for bad in (0.0, 1.0, float("nan")):
        with pytest.raises(OptionError, match="inside"):
            runs_needed(PureDP(1.0), bad, excess=0.1, alpha=0.05)
    with pytest.raises(OptionError, match="below the claim"):
        power_of_test(PureDP(1.0), 100, 100, 0.1, -0.1, alpha=0.05)


def p_of(claim, n, m, alpha, x, y):
    """Return the exact p-value in units of alpha; 0 if there is a larger count than runs."""
    if x > n:
        return 0.0
    return pvalue(Counts(count_x=int(x), runs_x=n, count_y=int(y), runs_y=m), claim, alpha=alpha) / alpha


@pytest.mark.parametrize(
    ("claim", "n", "m", "q", "alpha"),
    [
        (PureDP(1.0), 60, 60, 0.2, 0.05), (PureDP(0.0), 200, 200, 0.5, 1e-8), (PureDP(4.0), 10_000, 10_000, 1e-3, 0.05),
        (PureDP(1.0), 1_000_000, 1_000_000, 1e-6, 1e-3), (ApproxDP(1.0, 0.1), 200, 200, 0.7, 0.05),
        (ApproxDP(1.0, 1e-5, bound_on="delta"), 1_000_000, 1_000_000, 1e-7, 0.05),
        (GaussianDP(1.0), 300, 200, 0.02, 0.05), (GaussianDP(0.5).group(2), 1_000, 1_000, 0.01, 1e-5),
        (RenyiDP(2.0, 0.1), 300, 300, 0.05, 0.05), (ZeroConcentratedDP(0.5), 300, 300, 0.3, 0.05),
        (PrivacyProfile((0.0, 1.0), (0.3, 0.1)), 200, 200, 0.3, 0.05),
    ],
    ids=str,
)  # fmt: skip
def test_few_counts_are_refuted_from_the_curve_on_and_no_fewer(claim, n, m, q, alpha):
    """Up to p-values that alpha separates by chance: 6% above it or 7% below it at most."""
    low, high = likely_counts(m, q)
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
def test_many_counts_on_the_curve_have_a_pvalue_near_alpha(claim, q, alpha):
    """Within .02 standard errors: 4% at alpha .05, and 9% at 1e-5."""
    n = 1_000_000
    y = np.round(n * q + np.array([-3.0, 0.0, 3.0]) * math.sqrt(n * q * (1.0 - q)))
    for count_y, x in zip(y, critical_curve(claim, n, n, q, alpha, y), strict=True):
        assert p_of(claim, n, n, alpha, x, count_y) == pytest.approx(1.0, abs=0.04 if alpha == 0.05 else 0.09)


@pytest.mark.parametrize(("n", "m"), [(3_000, 100), (100_000, 100_000)])
def test_a_region_has_its_probability(n, m):
    """1 for all counts, 0 for none, and a binomial tail, which grows with p, for some counts on x."""
    claim = PureDP(1.0)
    boundary = RegionProbabilities.of(claim, n, m, 0.3, 0.6)
    always, never, some = (np.full(len(boundary.y), each) for each in (0.0, n + 1.0, math.floor(0.6 * n)))
    found = boundary.at(np.stack([always, never, some]))
    assert found[0] == pytest.approx(1.0, abs=1e-6)
    assert found[1] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(found[2]) >= -1e-9).all()


@pytest.mark.parametrize(("right", "wrong"), [(0.5, 0.184), (0.03, 0.011)])
def test_the_stated_excess_is_found_as_often_as_stated(right, wrong):
    """Power of the exact test at the stated excess, summed over all counts, for .9."""
    runs = 3_000
    guesses = Guesses(correct=round(right * runs), incorrect=round(wrong * runs), runs=runs)
    excess = guess_excess(PureDP(1.0), guesses, alpha=0.01, power=0.9)
    share = 1.0 / (1.0 + math.exp(-1.0 - excess))
    made = round((guesses.correct + 0.5) / share)
    numbers = np.arange(made + 1)
    each = [Guesses(correct=k, incorrect=made - k, runs=runs) for k in numbers.tolist()]
    found = [guess_test(guesses, PureDP(1.0), alpha=0.01)[0] <= 0.01 for guesses in each]
    assert binom.pmf(numbers, made, share)[found].sum() == pytest.approx(0.9, abs=0.03)
    assert math.isinf(guess_excess(PureDP(1.0), Guesses(correct=1, incorrect=0, runs=9), alpha=0.01, power=0.9))


def test_equivalent_runs_give_the_same_variance():
    guesses = Guesses(correct=240_000, incorrect=100_000, runs=1_000_000)
    claim, w = GaussianDP(0.6), 0.1
    c = float(claim.max_power(w)[0])
    slope = (float(claim.max_power(w + 1e-5)[0]) - float(claim.max_power(w - 1e-5)[0])) / 2e-5
    variance = (c * (1 - c) + slope**2 * w * (1 - w) + 2 * slope * c * w) / 1_000_000
    apart = c * (1 - c) + slope**2 * w * (1 - w)
    assert apart / equivalent_runs(claim, guesses) == pytest.approx(variance, rel=1e-3)
