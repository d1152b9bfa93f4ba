"""Intervals for log ratios: coverage by enumeration, a slow oracle, tightness, and the maximum."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, multinomial

from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference import ratio_intervals as simultaneous
from dpaudit.audit.inference.ratio_intervals import maximum_interval, ratio_intervals, ratio_lower

SIZES = [(28, 28), (5, 30), (30, 5), (1, 20)]
ENDS = np.geomspace(1e-9, 0.02, 12)
GRID = np.concatenate([ENDS, np.linspace(0.03, 0.97, 30), 1 - ENDS[::-1], [1.0]])


@cache
def every_limit(n: int, m: int, alpha: float) -> np.ndarray:
    """Return the lower limits of all pairs of counts, shape (n + 1, m + 1)."""
    x, y = np.divmod(np.arange((n + 1) * (m + 1)), m + 1)
    return ratio_lower(x, n, y, m, alpha=alpha).reshape(n + 1, m + 1)


def chance(wrong: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """Return the largest probability, over pairs (p, q), of the counts marked wrong."""
    n, m = wrong.shape[0] - 1, wrong.shape[1] - 1
    on_x = binom.pmf(np.arange(n + 1)[:, None], n, p)
    on_y = binom.pmf(np.arange(m + 1)[:, None], m, q)
    return float((on_x * (wrong.astype(float) @ on_y)).sum(axis=0).max())


def largest_miss(limit: np.ndarray) -> float:
    worst = 0.0
    # All limits that reach a truth are wrong just below it, so truths next to the limits suffice.
    values = np.unique(limit[np.isfinite(limit)])
    for value in values[:: max(1, len(values) // 30)]:
        p = np.exp(value) * (1 - 1e-9) * GRID
        worst = max(worst, chance(limit >= value, p[p <= 1], GRID[p <= 1]))
    return worst


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("alpha", [0.025, 0.3])
def test_a_limit_exceeds_the_truth_with_probability_at_most_alpha(n, m, alpha):
    assert largest_miss(every_limit(n, m, alpha)) <= alpha


def test_the_probability_comes_near_alpha():
    """The coverage test above would accept infinite limits."""
    assert largest_miss(every_limit(28, 28, 0.025)) > 0.015
    assert largest_miss(every_limit(1, 20, 0.025)) > 0.02


def slow_lower(count_x: int, n: int, count_y: int, m: int, alpha: float) -> float:
    """The same test on a dense grid, with the best t at every point and no box other than the grid."""
    unit_x, unit_y = math.sqrt(1 / count_x), math.sqrt(1 / max(count_y, 1))
    p = np.minimum(count_x / n * np.exp(unit_x * np.linspace(-6, 6, 900)), 1 - 1e-12)
    q = np.minimum(max(count_y, 1) / m * np.exp(unit_y * np.linspace(-6, 6, 1100)), 1 - 1e-12)
    share = alpha * simultaneous._SPENT
    at_least, at_most = binom.sf(count_x - 1, n, p), binom.cdf(count_y, m, q)
    in_p = (at_least > share) & (binom.cdf(count_x, n, p) > share)
    in_q = (at_most > share) & (binom.sf(count_y - 1, m, q) > share)
    p, q, u, v = p[in_p], q[in_q], -ndtri(at_least[in_p]), -ndtri(at_most[in_q])
    sd_x, sd_y = np.sqrt((1 - p) / (n * p))[:, None], np.sqrt((1 - q) / (m * q))[None]
    statistic = (sd_x * u[:, None] + sd_y * v[None]) / np.hypot(sd_x, sd_y)
    refuted = statistic >= -ndtri(alpha * (1 - 4 * simultaneous._SPENT))
    return float(np.where(refuted, np.inf, np.log(p)[:, None] - np.log(q)[None]).min())


@pytest.mark.parametrize(
    ("count_x", "n", "count_y", "m"),
    [
        (10, 100, 10, 100), (60, 100, 10, 100), (95, 100, 40, 100), (3, 10**6, 30, 10**6), (400, 10**4, 15, 500),
        (10**4, 10**6, 100, 10**6), (700, 1000, 10**5, 10**6), (99_990, 10**5, 99_990, 10**7),
        (10**5, 10**7, 99_990, 10**5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("alpha", [0.05, 5e-4])
def test_against_a_dense_grid(count_x, n, count_y, m, alpha):
    slow = slow_lower(count_x, n, count_y, m, alpha)
    gap = math.log(count_x / n * m / count_y) - slow
    assert slow - 0.06 * gap <= ratio_lower([count_x], n, [count_y], m, alpha=alpha)[0] <= slow + 0.02 * gap


@pytest.mark.parametrize("runs", [10**7, 10**10])
@pytest.mark.parametrize(("counts", "most"), [(100, 1.10), (10**4, 1.02), (10**6, 1.015)])
def test_gap_is_near_the_asymptotic_one(runs, counts, most):
    alpha = 5e-4
    for other in (counts, counts // 2, 3 * counts):
        sd = math.sqrt((1 - counts / runs) / counts + (1 - other / runs) / other)
        gap = math.log(counts / other) - ratio_lower([counts], runs, [other], runs, alpha=alpha)[0]
        assert 0.95 < gap / (-ndtri(alpha) * sd) < most


def test_roots_are_where_zubkov_and_serov_put_them():
    """Φ(z_k) ≤ Pr[X ≤ k] ≤ Φ(z_{k+1}), at sizes for which exact sums are infeasible."""
    for runs, counts in [(10**7, 10**4), (10**10, 10**4), (10**10, 10**9), (10**10, 7 * 10**9)]:
        sd = math.sqrt(counts * (1 - counts / runs))
        p = (counts + sd * np.linspace(-5, 5, 11)) / runs
        bounds = []
        for k in (counts - 1, counts):
            away = k - runs * p
            # n KL(k/n ‖ p) by its series in away/(np), up to the fifth power.
            terms = [
                (-1) ** j * away**j / (j * (j - 1)) * ((runs * p) ** (1 - j) + (-1) ** j * (runs * (1 - p)) ** (1 - j))
                for j in range(2, 6)
            ]
            bounds.append(np.sign(away) * np.sqrt(2 * np.sum(terms, axis=0)))
        root = simultaneous._root(float(counts), runs, p, 1 - p)
        assert np.all(bounds[0] - 1e-4 / sd < root)
        assert np.all(root < bounds[1] + 1e-4 / sd)


def test_intervals_hold_together():
    """Over all outcomes of two multinomials in three cells, all six limits hold with probability at least 1 − alpha."""
    n = 5
    cells = np.array([c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n])
    found = {
        (i, j): ratio_intervals(cells[i], n, cells[j], n, alpha=0.2)
        for i, j in itertools.product(range(len(cells)), repeat=2)
    }
    most = 0.0
    for p, q in [((0.4, 0.35, 0.25), (0.4, 0.35, 0.25)), ((0.7, 0.2, 0.1), (0.3, 0.3, 0.4)), ((0.5, 0.5, 0.0),) * 2]:
        on_x, on_y = multinomial.pmf(cells, n, p), multinomial.pmf(cells, n, q)
        with np.errstate(invalid="ignore"):
            truth = np.log(p) - np.log(q) if min(p) > 0 else np.array([0.0, 0.0, np.nan])
        missed = 0.0
        for (i, j), one in found.items():
            if np.any((one.lower > truth) | (one.upper < truth)):
                missed += on_x[i] * on_y[j]
        most = max(most, missed)
        assert missed <= 0.2
    assert most > 0.005


@pytest.mark.parametrize("direction", ["x", "y", "both"])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_maximum_is_held_with_probability_one_less_alpha(direction, alpha):
    """Binary outputs: all pairs of counts, and a grid of distributions."""
    n = 6
    counts = np.arange(n + 1)
    found = [
        maximum_interval([x, n - x], n, [y, n - y], n, alpha=alpha, direction=direction) for x in counts for y in counts
    ]
    lower, upper = (np.array([getattr(one, end) for one in found]).reshape(n + 1, n + 1) for end in ("lower", "upper"))
    for p, q in itertools.product([0.02, 0.3, 0.5, 0.75, 0.99], repeat=2):
        ratios = np.log([p / q, (1 - p) / (1 - q)])
        truth = {"x": ratios.max(), "y": (-ratios).max(), "both": np.abs(ratios).max()}[direction]
        one_p, one_q = np.array([p]), np.array([q])
        assert chance(lower > truth + 1e-9, one_p, one_q) <= alpha / 2
        assert chance(upper < truth - 1e-9, one_p, one_q) <= alpha / 2


def test_ends_are_the_limits_that_the_proof_names():
    x, y = np.array([400, 350, 250]), np.array([200, 350, 450])
    one_sided = [ratio_lower(x, 1000, y, 1000, alpha=a) for a in (0.05 / 6, 0.05 / 12)]
    others = [ratio_lower(y, 1000, x, 1000, alpha=a) for a in (0.025, 0.05 / 6, 0.05 / 12)]
    intervals = ratio_intervals(x, 1000, y, 1000, alpha=0.05)
    np.testing.assert_array_equal(intervals.lower, one_sided[0])
    np.testing.assert_array_equal(intervals.upper, -others[1])
    for direction, lower, upper in [
        ("x", one_sided[0].max(), (-others[0]).max()),
        ("y", others[1].max(), (-ratio_lower(x, 1000, y, 1000, alpha=0.025)).max()),
        ("both", max(one_sided[1].max(), others[2].max()), None),
    ]:
        found = maximum_interval(x, 1000, y, 1000, alpha=0.05, direction=direction)
        assert found.lower == lower
        assert upper is None or found.upper == upper
        assert found.lower < found.observed < found.upper
        assert (found.direction, found.alpha) == (direction, 0.05)


@pytest.mark.parametrize("alpha", [1e-30, 0.05, 0.999])
def test_corners_are_defined(alpha):
    for x, n, y, m in ((0, 9, 0, 9), (9, 9, 0, 9), (0, 9, 9, 9), (9, 9, 9, 9), (1, 1, 0, 1), (1, 1, 1, 10**10)):
        found = ratio_intervals([x], n, [y], m, alpha=alpha)
        assert found.lower[0] <= found.upper[0]
        assert (np.isneginf(found.lower[0]), np.isposinf(found.upper[0])) == (x == 0, y == 0)


def test_impossible_counts_and_options_are_refused():
    for counts in (
        ([1, 2], 5, [1], 5), ([], 5, [], 5), ([6], 5, [1], 5), ([1], 5, [-1], 5), ([1.5], 5, [1], 5),
        ([math.nan], 5, [1], 5), ([0], 0, [1], 5), ([1], 5, [1], math.inf),
    ):  # fmt: skip
        for function in (ratio_intervals, maximum_interval, ratio_lower):
            with pytest.raises(OptionError):
                function(*counts, alpha=0.05)
    with pytest.raises(OptionError, match="direction='z'"):
        maximum_interval([1], 2, [1], 2, alpha=0.05, direction="z")
    with pytest.raises(OptionError, match="alpha="):
        ratio_intervals([1], 2, [1], 2, alpha=1.0)


@pytest.mark.parametrize("runs", [3, 100, 10**6, 10**10])
def test_roots_are_concave_in_the_logarithm(runs):
    for counts in {1, 2, runs // 100 + 1, runs // 2 + 1, runs - 1, runs}:
        low, high = np.exp(simultaneous._log_limits(np.array([float(counts)]), runs, 1e-6)[0])
        log_p = np.linspace(math.log(low), math.log(high) - 1e-4 / runs, 40)
        root = simultaneous._root(float(counts), runs, np.exp(log_p), -np.expm1(log_p))
        assert np.all(np.diff(root) < 0)
        assert np.all(np.diff(root, 2) < 1e-6)
