"""All statements of one `BinCounts` hold together: counted over every table of a few runs, and simulated."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.inference.binomial_tails import limits
from dpaudit.audit.inference.confidence_bands import concave_hull
from dpaudit.audit.inference.ratio_intervals import ratio_intervals
from dpaudit.results import BinCounts

SLACK = 1e-9  # of sums in other orders
ORDERS = (0.5, 1.0, 2.0, 8.0, math.inf)


def counted(count_x, count_y, alpha):
    return BinCounts(
        names=tuple(map(str, range(len(count_x)))), count_x=tuple(map(int, count_x)), count_y=tuple(map(int, count_y)),
        alpha=alpha, n_known=len(count_x), scope="all",
    )  # fmt: skip


def renyi(p, q, order):
    logs = np.log(p / q)
    if order == 1.0:
        return float(p @ logs)
    return float(logs.max()) if math.isinf(order) else float(np.log(p @ np.exp((order - 1) * logs)) / (order - 1))


def misses(cells, p, q):
    """Which statements are false of the distributions (p, q) of the cells, which are all outcomes there are."""
    logs, epsilon = np.log(p / q), np.linspace(0, 2, 9)
    band, ratios = cells.band(), cells.ratios()
    at, power = np.cumsum(q)[:-1], np.cumsum(p)[:-1]
    events = np.array(list(itertools.product([0.0, 1.0], repeat=len(p))))
    delta = (events @ p - np.exp(epsilon)[:, None] * (events @ q)).max(axis=1)
    largest = {"x": logs.max(), "y": (-logs).max(), "both": np.abs(logs).max()}
    ends = {way: cells.maximum(way) for way in largest}
    outside = {
        "limits": np.any((band.lower_x > power) | (band.upper_x < power) | (band.lower_y > at) | (band.upper_y < at)),
        "profile": np.any(band.profile(epsilon)[0] > delta + SLACK),
        "trade-off": np.any(band.trade_off(at)[0] > power + SLACK),  # cells by decreasing ratio: S_j are the best tests
        "ratios": np.any((ratios.lower > logs) | (ratios.upper < logs)),
        "rényi": any(cells.renyi_lower(order) > renyi(p, q, order) + SLACK for order in ORDERS),
        **{f"largest, {way}": not end.lower <= largest[way] <= end.upper for way, end in ends.items()},
    }
    return {name for name, is_outside in outside.items() if is_outside}


def tables(n, cells):
    """Every way to put n runs in cells."""
    return [c for c in itertools.product(range(n + 1), repeat=cells) if sum(c) == n]


@pytest.mark.parametrize(("p", "q", "n"), [((0.5, 0.5), (0.5, 0.5), 4), ((0.7, 0.25, 0.05), (0.1, 0.3, 0.6), 2)])
def test_any_statement_is_false_with_probability_alpha_at_most(p, q, n):
    """Exact, over every table of a few runs, with an alpha so large that some of them mislead."""
    alpha, p, q = 0.6, np.array(p), np.array(q)
    chance_x, chance_y = (
        {c: stats.multinomial(n, distribution).pmf(c) for c in tables(n, len(p))} for distribution in (p, q)
    )
    both = itertools.product(chance_x, chance_y)
    false = math.fsum(chance_x[x] * chance_y[y] for x, y in both if misses(counted(x, y, alpha), p, q))
    assert 0.0 < false <= alpha


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("p", "q"), [((0.55, 0.25, 0.15, 0.05), (0.2, 0.2, 0.3, 0.3)), ((1 / 3,) * 3, (1 / 3,) * 3)], ids=["apart", "equal"]
)
def test_all_statements_hold_together_in_many_runs(p, q):
    """Any is false in at most alpha of 30 repetitions, and as many more as come with probability 1e-6."""
    p, q, alpha, rng = np.array(p), np.array(q), 0.5, np.random.default_rng(3)
    found = [misses(counted(rng.multinomial(2000, p), rng.multinomial(2000, q), alpha), p, q) for _ in range(30)]
    assert 0 < sum(map(bool, found)) <= stats.binom.isf(1e-6, 30, alpha)


def test_the_parts_add_up_to_alpha():
    cells = counted((700, 200, 100), (300, 300, 400), 0.05)
    band, ratios, n_limits = cells.band(), cells.ratios(), 2 * len(cells.names)
    for way in ("x", "y", "both"):
        assert band.alpha + cells.maximum(way).alpha == cells.alpha
    # The upper end of the maximum is one limit: its part is what the ratios leave.
    upper = ratio_intervals(cells.count_x, 1000, cells.count_y, 1000, alpha=cells.alpha / 8 * n_limits).upper
    assert cells.maximum("x").upper == upper.max() < ratios.upper.max()
    assert cells.maximum("x").lower == ratios.lower.max()
    assert cells.maximum("y").lower == -ratios.upper.min()
    assert cells.maximum("both").lower == max(ratios.lower.max(), -ratios.upper.min())
    assert cells.maximum("both").upper == max(cells.maximum("x").upper, cells.maximum("y").upper)


@pytest.mark.parametrize("n_cells", [2, 3, 33])
def test_the_renyi_bound_rests_on_limits_of_the_band(n_cells):
    """To the last bit: it is the divergence of the least concave power curve over the band's lower ends."""
    rng = np.random.default_rng(n_cells)
    cells = counted(rng.integers(0, 900, n_cells), rng.integers(1, 900, n_cells), 0.05)
    band, each = cells.band(), 0.05 / (8 * (n_cells - 1))
    rates, powers = concave_hull(band.upper_y, band.lower_x)
    rise, length = np.diff(powers), np.diff(rates)
    for order in ORDERS:
        expected = renyi(rise[rise > 0], length[rise > 0], order)
        assert cells.renyi_lower(order) == pytest.approx(max(expected, 0.0), abs=1e-12)
    x, y = np.cumsum(cells.count_x, dtype=float), np.cumsum(cells.count_y, dtype=float)
    assert band.lower_x.tolist() == limits(x[:-1], x[-1], alpha=each)[0].tolist()
    assert band.upper_y.tolist() == limits(y[:-1], y[-1], alpha=each)[1].tolist()
