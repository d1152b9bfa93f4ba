"""The joint test: exact size by enumeration of all outcomes, monotonicity laws, and efficiency."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, ZeroConcentratedDP
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.audit.inference.boundary_test import (
    Counts,
    joint_test,
    joint_test_beside,
    p_value,
    strength_estimate,
    strength_lower,
)

CLAIMS = [
    PureDP(0.0),
    PureDP(1.0),
    PureDP(3.0),
    ApproxDP(1.0, 0.05),
    ApproxDP(0.5, 0.2, bound_on="delta"),
    GaussianDP(1.0),
    RenyiDP(2.0, 0.3),
    PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.1)),
    TradeOffCurve((0.1, 0.4), (0.6, 0.2)),
]


def p_values(n: int, m: int, claim, alpha: float) -> np.ndarray:
    """Return all p-values, shape (n + 1, m + 1); grouping by the hits on y is faster."""
    return np.array(
        [
            [p_value(Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m), claim, alpha=alpha) for x in range(n + 1)]
            for y in range(m + 1)
        ]
    ).T


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
@pytest.mark.parametrize(("n", "m"), [(7, 7), (3, 8), (8, 3)])
def test_size_never_exceeds_alpha(n, m, claim):
    found = p_values(n, m, claim, 0.05)
    alphas = (0.05, 0.01, 0.2)  # the test is tuned to .05 and valid for any alpha
    sizes = largest_sizes(claim, *(found <= alpha for alpha in alphas))
    assert all(size <= alpha for size, alpha in zip(sizes, alphas, strict=True))


def test_size_comes_near_alpha():
    """The size test above would accept a test that never rejects."""
    assert largest_sizes(PureDP(1.0), p_values(20, 20, PureDP(1.0), 0.05) <= 0.05)[0] > 0.03


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)], ids=str)
def test_bound_exceeds_the_truth_with_probability_at_most_alpha(claim):
    n = m = 10
    bounds = np.array(
        [
            [strength_lower(Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m), claim, alpha=0.1) for x in range(n + 1)]
            for y in range(m + 1)
        ]
    ).T
    for truth in (claim.strength, 0.3, 2.0):
        assert largest_sizes(claim.with_strength(truth), bounds > truth)[0] <= 0.1


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("runs", [1, 7, 100])
def test_equal_hits_refute_nothing_at_any_count(claim, runs):
    for hits in (*range(0, runs, max(1, runs // 12)), runs):
        counts = Counts(hits_x=hits, runs_x=runs, hits_y=hits, runs_y=runs)
        assert p_value(counts, claim) == 1.0
        assert strength_lower(counts, claim, alpha=0.05) == 0.0


@pytest.mark.parametrize(
    ("claim", "counts"),
    [
        *product(CLAIMS, [(60, 100, 10, 100), (900, 1000, 5, 400), (7, 10**6, 0, 10**6), (30, 30, 1, 3000)]),
        (ZeroConcentratedDP(0.5), (60, 100, 10, 100)),  # its boundary is slow to compute
        (ZeroConcentratedDP(0.5), (30, 30, 1, 3000)),
    ],
    ids=str,
)
def test_p_value_grows_with_the_strength_and_crosses_alpha_at_the_bound(claim, counts):
    observed = Counts(hits_x=counts[0], runs_x=counts[1], hits_y=counts[2], runs_y=counts[3])
    bound = strength_lower(observed, claim, alpha=0.05)
    top = min(2 * bound + 0.5, claim.max_strength * 0.999)
    found = [p_value(observed, claim.with_strength(s)) for s in np.linspace(0.0, top, 3)]
    assert all(a <= b + 1e-12 for a, b in pairwise(found))
    if bound > 0:
        assert p_value(observed, claim.with_strength(bound)) <= 0.05
        estimate = min(strength_estimate(observed, claim), bound + 10)
        assert p_value(
            observed, claim.with_strength(bound + 0.02 * max(estimate - bound, 1e-3) + 1e-6)
        ) > 0.05 or math.isinf(strength_estimate(observed, claim))


@pytest.mark.parametrize("n", [10**4, 10**6, 10**10])
def test_gap_is_within_three_percent_of_the_asymptotic_one(n):
    p, q = 0.5, 0.5 * math.exp(-1)
    counts = Counts(hits_x=round(n * p), runs_x=n, hits_y=round(n * q), runs_y=n)
    gap = 1.6449 * math.sqrt((1 - p) / (p * n) + (1 - q) / (q * n))
    assert strength_estimate(counts, PureDP(1.0)) - strength_lower(counts, PureDP(1.0), alpha=0.05) < 1.03 * gap


def test_twenty_hits_against_none_show_more_than_two_limits_do():
    """Two Clopper-Pearson limits give 1.20; the best test of ε on these counts gives about 2.1."""
    counts = Counts(hits_x=20, runs_x=10**6, hits_y=0, runs_y=10**6)
    assert 2.0 < strength_lower(counts, PureDP(1.0), alpha=0.05) < 2.15


def test_bound_is_monotone_in_alpha_and_in_the_hits():
    counts = [Counts(hits_x=x, runs_x=1000, hits_y=50, runs_y=1000) for x in (60, 120, 200, 400)]
    by_hits = [strength_lower(c, PureDP(1.0), alpha=0.05) for c in counts]
    assert by_hits == sorted(by_hits)
    assert by_hits[-1] > 1.5
    by_alpha = [strength_lower(counts[2], PureDP(1.0), alpha=a) for a in (1e-8, 1e-4, 0.05, 0.3, 0.6)]
    assert by_alpha == sorted(by_alpha)


def test_misses_count_as_well_as_hits():
    """Under pure DP the complement of an event, in the other direction, is the same evidence."""
    hits = strength_lower(Counts(hits_x=300, runs_x=1000, hits_y=50, runs_y=900), PureDP(1.0), alpha=0.05)
    misses = strength_lower(Counts(hits_x=850, runs_x=900, hits_y=700, runs_y=1000), PureDP(1.0), alpha=0.05)
    assert misses == pytest.approx(hits, rel=0.02)


@pytest.mark.parametrize("corner", [(0, 9, 0, 9), (9, 9, 0, 9), (0, 9, 9, 9), (9, 9, 9, 9), (1, 1, 0, 1)])
@pytest.mark.parametrize("claim", [*CLAIMS, ZeroConcentratedDP(0.5)], ids=str)
def test_corners_are_defined(corner, claim):
    counts = Counts(hits_x=corner[0], runs_x=corner[1], hits_y=corner[2], runs_y=corner[3])
    assert 0.0 < p_value(counts, claim) <= 1.0
    assert 0.0 <= strength_lower(counts, claim, alpha=0.05) < claim.max_strength


def test_ten_billion_runs():
    n = 10**10
    for hits_x, hits_y in ((0, 0), (n, 0), (n, n), (30, 2), (n // 2, n // 4), (n, n - 40)):
        counts = Counts(hits_x=hits_x, runs_x=n, hits_y=hits_y, runs_y=n)
        bound = strength_lower(counts, PureDP(1.0), alpha=0.05)
        assert bound <= strength_estimate(counts, PureDP(1.0))


@pytest.mark.parametrize("bad", [(-1, 5, 0, 5), (6, 5, 0, 5), (0, 0, 0, 5), (1, 5, 2.5, 5)])
def test_impossible_counts_are_refused(bad):
    with pytest.raises(OptionError):
        Counts(hits_x=bad[0], runs_x=bad[1], hits_y=bad[2], runs_y=bad[3])


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, math.nan, 1e-12])
def test_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(OptionError, match="alpha="):
        strength_lower(Counts(hits_x=3, runs_x=5, hits_y=0, runs_y=5), PureDP(1.0), alpha=alpha)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 0.2, bound_on="delta"), RenyiDP(2.0, 0.3)], ids=str)
def test_beside_known_numbers_nothing_is_left_out_that_betters_them(claim):
    for hits_x in (20, 75, 95, 100):
        counts = Counts(hits_x=hits_x, runs_x=100, hits_y=10, runs_y=100)
        p, bound = joint_test(counts, claim, alpha=0.01)
        for known in (claim.strength, *(share * bound for share in (0.9, 1.1) if share * bound > claim.strength)):
            expected = bound if bound > known else 0.0
            assert joint_test_beside(counts, claim, 1.0, known, alpha=0.01) == (p, expected)
            assert joint_test_beside(counts, claim, 1e-10, known, alpha=0.01) == (1.0, expected)


def test_a_number_is_a_claim():
    counts = Counts(hits_x=60, runs_x=100, hits_y=10, runs_y=100)
    assert p_value(counts, 1.0) == p_value(counts, PureDP(1.0)) < 0.05
    assert strength_lower(counts, (0.5, 1e-5), alpha=0.05) == strength_lower(counts, ApproxDP(0.5, 1e-5), alpha=0.05)
    for wrong in ("1.0", None):
        with pytest.raises(ClaimError, match="is not a claim"):
            p_value(counts, wrong)


def test_a_p_value_is_smallest_at_a_level_near_it():
    """As docs/how-to/counts.md says: alpha fixes the order of the counts."""
    counts = Counts(hits_x=40, runs_x=100, hits_y=5, runs_y=100)
    tuned = {alpha: p_value(counts, PureDP(1.0), alpha=alpha) for alpha in (0.2, 0.05, 1e-6)}
    assert tuned[0.05] < 0.5 * min(tuned[0.2], tuned[1e-6])
