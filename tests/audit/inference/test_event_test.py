"""The joint test and the order of counts: exact size by enumeration of all outcomes, monotonicity, efficiency."""

import math
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
import scipy
from scipy.stats import binom, poisson
from statsmodels.stats.proportion import proportion_confint

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, ZeroConcentratedDP
from dpaudit.audit.claims.mironov_propositions import ProbabilityPreservation
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.audit.inference.binomial_tails import clopper_pearson, upper_tail
from dpaudit.audit.inference.event_test import (
    Counts,
    critical_counts,
    joint_test,
    joint_test_beside,
    order,
    parameter_estimate,
    parameter_lower,
    pvalue,
    root_from_below,
)

CLAIMS = [
    PureDP(0.0), PureDP(1.0), PureDP(3.0), ApproxDP(1.0, 0.05), ApproxDP(0.5, 0.2, bound_on="delta"), GaussianDP(1.0),
    RenyiDP(2.0, 0.3), PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.1)), TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
]  # fmt: skip


def counted(x: int, n: int, y: int, m: int) -> Counts:
    return Counts(count_x=x, runs_x=n, count_y=y, runs_y=m)


def of_all_counts(function, n: int, m: int) -> np.ndarray:
    """Return a function of all counts, shape (n + 1, m + 1); grouping by the counts on y is faster."""
    return np.array([[function(counted(x, n, y, m)) for x in range(n + 1)] for y in range(m + 1)]).T


def largest_sizes(claim, *rejected: np.ndarray) -> list[float]:
    """Return the largest probabilities of rejection on the boundary, over a fine grid of q that covers both ends."""
    n, m = rejected[0].shape[0] - 1, rejected[0].shape[1] - 1
    inner = np.linspace(1e-4, 1 - 1e-4, 801)
    ends = np.geomspace(1e-12, 1e-4, 60)
    q = np.concatenate([ends, inner, 1 - ends])
    rest = np.concatenate([1 - ends, 1 - inner, ends])
    p, _ = claim.max_power(q, rest)
    on_x = binom.pmf(np.arange(n + 1)[:, None], n, p)  # shape (n + 1, grid)
    on_y = binom.pmf(np.arange(m + 1)[:, None], m, q)
    return [float((on_x * (each.astype(float) @ on_y)).sum(axis=0).max()) for each in rejected]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(4, 8), (8, 4)])  # unequal, so that runs that are exchanged show
def test_size_never_exceeds_alpha(n, m, claim):
    found = of_all_counts(lambda counts: pvalue(counts, claim), n, m)
    alphas = (0.05, 0.01, 0.2)  # the test is tuned to .05 and valid for any alpha
    sizes = largest_sizes(claim, *(found <= alpha for alpha in alphas))
    assert all(size <= alpha for size, alpha in zip(sizes, alphas, strict=True))


def test_size_comes_near_alpha():
    """The size test above would accept a test that never rejects."""
    rejected = of_all_counts(lambda counts: pvalue(counts, PureDP(1.0)) <= 0.05, 20, 20)
    assert largest_sizes(PureDP(1.0), rejected)[0] > 0.03


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_bound_exceeds_the_truth_with_probability_at_most_alpha(claim):
    bounds = of_all_counts(lambda counts: parameter_lower(counts, claim, alpha=0.1), 10, 10)
    for truth in (claim.parameter, 0.3, 2.0):
        assert largest_sizes(claim.with_parameter(truth), bounds > truth)[0] <= 0.1


@pytest.mark.parametrize("counts", [(60, 100, 10, 100), (30, 30, 1, 3000)])
@pytest.mark.parametrize("claim", [*CLAIMS, ZeroConcentratedDP(0.5)], ids=str)
def test_pvalue_grows_with_the_parameter_and_crosses_alpha_at_the_bound(claim, counts):
    observed = counted(*counts)
    bound, estimate = parameter_lower(observed, claim, alpha=0.05), parameter_estimate(observed, claim)
    top = min(2 * bound + 0.5, claim.max_parameter * 0.999)
    found = [pvalue(observed, claim.with_parameter(s)) for s in np.linspace(0.0, top, 3)]
    assert all(a <= b + 1e-12 for a, b in pairwise(found))
    assert bound > 0.0
    assert pvalue(observed, claim.with_parameter(bound)) <= 0.05
    beyond = bound + 0.02 * max(min(estimate, bound + 10) - bound, 1e-3) + 1e-6
    assert math.isinf(estimate) or pvalue(observed, claim.with_parameter(beyond)) > 0.05


@pytest.mark.parametrize("n", [10**4, 10**10])
def test_gap_is_within_three_percent_of_the_asymptotic_one(n):
    p, q = 0.5, 0.5 * math.exp(-1)
    counts = counted(round(n * p), n, round(n * q), n)
    gap = 1.6449 * math.sqrt((1 - p) / (p * n) + (1 - q) / (q * n))
    assert parameter_estimate(counts, PureDP(1.0)) - parameter_lower(counts, PureDP(1.0), alpha=0.05) < 1.03 * gap


def test_bound_is_monotone_in_alpha_and_in_the_counts():
    counts = [counted(x, 1000, 50, 1000) for x in (60, 120, 200, 400)]
    by_counts = [parameter_lower(c, PureDP(1.0), alpha=0.05) for c in counts]
    assert by_counts == sorted(by_counts)
    assert by_counts[-1] > 1.5
    by_alpha = [parameter_lower(counts[2], PureDP(1.0), alpha=a) for a in (1e-8, 1e-4, 0.05, 0.3, 0.6)]
    assert by_alpha == sorted(by_alpha)


N = 10**10
CORNERS = [(0, 9, 0, 9), (9, 9, 0, 9), (0, 9, 9, 9), (9, 9, 9, 9), (1, 1, 0, 1)]
LARGE = [(0, N, 0, N), (N, N, 0, N), (N, N, N, N), (30, N, 2, N), (N // 2, N, N // 4, N), (N, N, N - 40, N)]


@pytest.mark.parametrize("claim", [*CLAIMS, ZeroConcentratedDP(0.5)], ids=str)
def test_corners_are_defined(claim):
    for corner in CORNERS + (LARGE if claim == PureDP(1.0) else []):
        counts = counted(*corner)
        assert 0.0 < pvalue(counts, claim) <= 1.0
        bound = parameter_lower(counts, claim, alpha=0.05)
        assert 0.0 <= bound < claim.max_parameter
        assert bound <= max(parameter_estimate(counts, claim), 0.0)
        assert bound == 0.0 or corner[0] != corner[2], "equal counts refute nothing"


def test_impossible_counts_and_other_arguments_are_refused():
    for bad in ((-1, 5, 0, 5), (6, 5, 0, 5), (0, 0, 0, 5), (1, 5, 2.5, 5)):
        with pytest.raises(OptionError):
            counted(*bad)
    counts = counted(60, 100, 10, 100)
    assert pvalue(counts, 1.0) == pvalue(counts, PureDP(1.0)) < 0.05
    with pytest.raises(ClaimError, match="is not a claim"):
        pvalue(counts, "1.0")
    for alpha in (0.0, 1.0, math.nan, 1e-12):
        with pytest.raises(OptionError, match="alpha="):
            parameter_lower(counts, PureDP(1.0), alpha=alpha)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 0.2, bound_on="delta"), RenyiDP(2.0, 0.3)], ids=str)
def test_beside_known_numbers_nothing_is_left_out_that_betters_them(claim):
    for count_x in (20, 75, 95, 100):
        counts = counted(count_x, 100, 10, 100)
        p, bound = joint_test(counts, claim, alpha=0.01)
        for known in (claim.parameter, *(share * bound for share in (0.9, 1.1) if share * bound > claim.parameter)):
            expected = bound if bound > known else 0.0
            assert joint_test_beside(counts, claim, 1.0, known, alpha=0.01) == (p, expected)
            assert joint_test_beside(counts, claim, 1e-10, known, alpha=0.01) == (1.0, expected)


ALL_CLAIMS = [
    PureDP(1.0), ApproxDP(0.5, 0.2, bound_on="delta"), GaussianDP(1.0), RenyiDP(2.0, 0.3), RenyiDP(30.0, 0.3).group(2),
    ZeroConcentratedDP(0.5), PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.1)), TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
    ProbabilityPreservation(2.0, 0.3),
]  # fmt: skip
MOST = 10.0  # standard deviations between the tested counts on y


def some_counts(runs, most):
    """Return all counts on y, or some near a fifth of the runs."""
    span = (0, runs) if runs <= 1000 else runs / 5 + MOST * math.sqrt(runs) * np.array([-0.5, 0.5])
    return np.unique(np.round(np.linspace(*span, most)))


@pytest.mark.parametrize("claim", ALL_CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(1000, 40), (10**6, 10**7)])
def test_regions_are_nested_and_do_not_depend_on_the_counts_observed(claim, n, m):
    """In the counts, the privacy parameter and z. The grid of a table depends on the runs alone."""
    y = some_counts(m, 40)
    parameters = claim.parameter + np.array([0.0, 1e-9, 1e-6, 1e-3, 0.1])
    found = [critical_counts(y, n, m, claim.with_parameter(s), z) for s in parameters for z in (0.0, 1.0, 1.6, 5.0)]
    grid = np.array(found).reshape(len(parameters), 4, len(y))
    for axis in range(3):
        assert np.diff(grid, axis=axis).min() >= 0
    assert grid[0, 2].tolist() == [critical_counts(np.array([one]), n, m, claim, 1.6)[0] for one in y]


@pytest.mark.parametrize("claim", [claim for claim in ALL_CLAIMS if not claim.has_closed_form], ids=str)
def test_what_a_table_says_is_near_the_boundary(claim):
    """The error is at most one hit or a fiftieth of the standard error of the counts."""
    n = m = 10**6
    y = np.round(m * np.array([1e-4, 0.01, 0.1, 0.3, 0.6, 0.9]))
    p, rest = claim.max_power((y + 0.5) / (m + 1.0))
    assert np.all(np.abs(critical_counts(y, n, m, claim, 0.0) - n * p) <= 1.0 + 0.02 * np.sqrt(n * p * rest))


@pytest.mark.parametrize("claim", ALL_CLAIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(40, 1000), (10**6, 10**7)])
def test_counts_lie_in_their_own_region_and_hardly_in_a_smaller_one(claim, n, m):
    for share in (0.0, 0.01, 0.3, 0.9):
        count_y, power = round(share * m), float(claim.max_power(share)[0])
        for count_x in {0, round(n * power), round(n * power + 2 * math.sqrt(n)), round(n * (1 + power) / 2), n}:
            counts = counted(min(count_x, n), n, count_y, m)
            parameter, z = order(counts, claim, 1.6)
            if z == 0.0 or math.isinf(parameter):
                continue
            y = np.array([float(count_y)])
            assert critical_counts(y, n, m, claim.with_parameter(parameter), z)[0] <= counts.count_x
            if parameter > 0.0 and parameter * (1 + 1e-6) < claim.max_parameter:
                larger = claim.with_parameter(parameter * (1 + 1e-6) + 1e-12)
                assert critical_counts(y, n, m, larger, z)[0] > counts.count_x


@pytest.mark.parametrize("root", [0.0, 1e-9, 0.3, 1.7, 2.5e5])
def test_the_search_ends_just_below_the_root(root):
    functions = (
        lambda at: at - root,
        lambda at: math.copysign(abs(at - root) ** 3, at - root),
        lambda at: math.floor(10 * (at - root)) + 0.5,  # a step
        lambda at: 1e-9 if at > root else -1e6,
    )
    for excess, start, size in product(functions, (1e-3, 1.0, 40.0), (1.0, 1e6)):
        found = root_from_below(excess, math.inf, start, size)
        assert found == 0.0 or excess(found) <= 0
        assert found <= root + 0.1
        assert excess(found * (1 + 2e-7) + 1e-15) > 0


def test_the_search_ends_below_a_limit_gives_up_far_out_and_takes_a_dozen_steps():
    assert 1.0 - 1e-6 < root_from_below(lambda at: -1.0, 1.0, 0.2, 1.0) < 1.0
    assert root_from_below(lambda at: -1.0, math.inf, 1.0, 1.0) == math.inf
    asked = []
    root_from_below(lambda at: asked.append(at) or math.expm1(at - 1.05), math.inf, 1.0, 1.0)
    assert len(asked) <= 12


@pytest.mark.parametrize("runs", [1, 10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("p", [0.0, 1e-9, 1e-4, 0.03, 0.5, 0.97, 1 - 1e-6, 1.0])
def test_upper_tail_is_never_too_small_and_close(runs, p):
    deviation = np.sqrt(runs * p * (1 - p))
    counts = np.unique(np.clip(np.round(runs * p + np.linspace(-7, 7, 57) * (deviation + 1)), -1, runs + 1))
    bound = upper_tail(counts[None], runs, np.array([p]), np.array([1 - p]))[0]
    exact = binom.sf(counts - 1, runs, p)
    assert np.all(bound >= exact * (1 - 1e-12))
    # The normal bound is at most one hit too large, the sums by a relative 1e-9 (plus 1e-12 beyond their reach).
    lenient = binom.sf(counts - 2, runs, p) if runs * p * (1 - p) >= 1e4 else exact
    assert np.all(bound <= lenient * (1 + 1e-6) + 2e-12)
    assert np.all(np.diff(bound) <= 0)


def test_far_tail_against_high_precision():
    with mpmath.workdps(40):
        exact = mpmath.betainc(60, 10**4 - 60 + 1, 0, mpmath.mpf("0.003"), regularized=True)
    bound = upper_tail(np.array([[60.0]]), 10**4, np.array([0.003]), np.array([0.997]))[0, 0]
    assert float(exact) <= bound <= float(exact) * (1 + 1e-6) + 2e-12


@pytest.mark.parametrize(("counts", "runs"), [(0, 5), (5, 5), (3, 10), (17, 10**6), (10**9, 3 * 10**9)])
def test_clopper_pearson_is_that_of_statsmodels(counts, runs):
    (low, low_rest), (high, high_rest) = clopper_pearson(counts, runs, alpha=0.05)
    assert (low, high) == pytest.approx(proportion_confint(counts, runs, alpha=0.05, method="beta"), rel=1e-6)
    assert (low + low_rest, high + high_rest) == pytest.approx((1.0, 1.0))
    (low, _), (high, _) = clopper_pearson(counts, runs, alpha=1e-10)
    assert low == 0.0 if counts == 0 else binom.sf(counts - 1, runs, low) <= 5e-11 * (1 + 1e-6)
    assert high == 1.0 if counts == runs else binom.cdf(counts, runs, high) <= 5e-11 * (1 + 1e-6)


def test_limits_hold_where_the_inverse_beta_function_does_not():
    """SciPy's inverse fails at a shape of exactly 1000; its tails and the Poisson approximation, close here, do not."""
    for runs, counts, alpha in product([10**8, 3 * 10**8, 10**10], [999, 1000, 1001], [0.05, 1e-10]):
        (low, _), (high, _) = clopper_pearson(counts, runs, alpha=alpha)
        assert poisson.sf(counts - 1, low * runs) <= alpha / 2 * (1 + 1e-3)
        assert poisson.cdf(counts, high * runs) <= alpha / 2 * (1 + 1e-3)
        assert low * runs < counts < high * runs


@pytest.mark.parametrize(("counts", "runs"), [(1, 50), (49, 50), (10**11, 10**12)])
def test_limits_hold_where_the_inverse_beta_function_is_not_a_number(counts, runs, monkeypatch):
    exact = clopper_pearson(counts, runs, alpha=0.01)
    for name in ("betaincinv", "betainccinv"):
        monkeypatch.setattr(scipy.special, name, lambda a, b, p: np.full_like(a, np.nan))
    (low, low_rest), (high, high_rest) = clopper_pearson(counts, runs, alpha=0.01)
    assert 0 <= low <= exact[0][0]
    assert low <= 1 - low_rest + 1e-9
    assert high >= exact[1][0]
    assert high - low < 4 * np.sqrt(5.3 / (2 * runs))
    assert 0 <= high_rest <= exact[1][1]


def test_rows_of_different_probability_do_not_disturb_each_other():
    p = np.array([0.0, 1e-7, 1e-3, 0.2, 0.999, 1.0])
    counts = np.tile(np.array([0.0, 1.0, 5.0, 900.0, 200_000.0, 10**6]), (len(p), 1))
    bound = upper_tail(counts, 10**6, p, 1 - p)
    for row, value in enumerate(p):
        alone = upper_tail(counts[row : row + 1], 10**6, p[row : row + 1], 1 - p[row : row + 1])[0]
        np.testing.assert_allclose(bound[row], alone, rtol=1e-9, atol=2e-12)
        assert np.all(bound[row] >= binom.sf(counts[row] - 1, 10**6, value) * (1 - 1e-12))
