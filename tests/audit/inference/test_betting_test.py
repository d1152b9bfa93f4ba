"""The betting test is a supermartingale by enumeration; and shares of an error budget."""

import itertools
import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.inference.betting_test import (
    NO_PAIRS,
    WEIGHTS,
    JointCounts,
    Line,
    PairedGuesses,
    Wealth,
    supporting_lines,
)
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.inference.multiplicity import ErrorBudget, holm
from dpaudit.audit.sampling.tasks import PairCounts

CLAIMS = [
    PureDP(0.0), PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0), RenyiDP(2.0, 0.3), ZeroConcentratedDP(0.5),
    PrivacyProfile((0.0, 0.5, 1.0), (0.4, 0.2, 0.1)), PureDP(0.5).group(2),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("q", [1e-9, 0.1, 0.268941421, 1 - 1e-6])
def test_a_supporting_line_is_above_the_boundary_and_touches_it(claim, q):
    (line,) = supporting_lines(claim, [q])
    near = q + min(q, 1 - q) * np.linspace(-2e-3, 2e-3, 81)
    grid = np.concatenate([np.geomspace(1e-14, 1e-3, 60), np.linspace(1e-3, 1 - 1e-9, 2000), near])
    value, _ = claim.power_touching(np.full_like(grid, q), grid)  # zCDP: the boundary of one order, also valid
    assert np.all(line.slope * grid + line.intercept >= value * (1 - 1e-9) - 1e-15)
    assert line.slope * q + line.intercept == pytest.approx(float(claim.max_power(q)[0]), rel=2e-3)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("q", [0.05, 0.4])
def test_expected_wealth_never_grows_under_the_claim(claim, q):
    """Exact size over all outcomes of one batch of five pairs, on the boundary of the claim, in both directions."""
    (line,) = supporting_lines(claim, [q])
    p = float(claim.max_power(q)[0])
    probabilities = (p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q))
    expected = 0.0
    for split in itertools.product(range(6), repeat=4):
        if sum(split) == 5:
            ways = math.factorial(5) / math.prod(map(math.factorial, split))
            chance = ways * math.prod(pr**k for pr, k in zip(probabilities, split, strict=True))
            counts = JointCounts(both=split[0], only_p=split[1], only_q=split[2], neither=split[3])
            after = Wealth.start(1, 1).after([[line]], [counts])
            expected += chance * float(np.exp(after.log_wealth).mean())
    assert expected <= 1 + 1e-9


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("q", "more_q"), [(0.05, 0.2), (0.3, 0.01), (0.2, 0.2)])
def test_a_bet_on_both_directions_is_fair(claim, q, more_q):
    """All nine fates of a pair, for events on the boundary that exclude each other: no factor has a mean above 1."""
    p, more_p = (min(float(claim.max_power(rate)[0]), 1.0 - other) for rate, other in ((q, more_q), (more_q, q)))
    on_x, on_y = (p, more_q, 1.0 - p - more_q), (q, more_p, 1.0 - q - more_p)  # in S, in T, in neither
    (line,) = supporting_lines(claim, [0.5 * (q + more_q)])
    mean, chances = 0.0, dict.fromkeys(PairedGuesses.__slots__, 0.0)
    for (i, a), (j, b) in itertools.product(enumerate(on_x), enumerate(on_y)):
        right, wrong = (i == 0) + (j == 1), (i == 1) + (j == 0)
        names = {(2, 0): "both_right", (1, 1): "one_each", (1, 0): "one_right", (0, 2): "both_wrong"}
        chances[names.get((right, wrong), "one_wrong" if wrong else "unguessed")] += a * b
    for name, chance in chances.items():
        counts = PairedGuesses(**dict.fromkeys(chances, 0) | {name: 1})
        mean = mean + chance * np.exp(Wealth.start(1, 1).after([[line]], [counts]).log_wealth)
    assert sum(chances.values()) == pytest.approx(1.0)
    assert np.all(mean <= 1 + 1e-9)
    if claim == PureDP(1.0) and q < 1 / (1 + math.e):
        assert np.all(mean > 0.999), "and the account wastes nothing on the boundary"


def test_pairs_are_counted_by_which_runs_are_guessed_right():
    first, second = Intervals(((0.0, 2.0),)), Intervals(((1.0, 3.0),))
    x, y = np.array([0.5, 0.5, 0.5, 2.5, 2.5, 1.5, 9.0]), np.array([2.5, 0.5, 9.0, 0.5, 9.0, 2.5, 1.5])
    counted = PairCounts.of((first, second), (None, second), x, y)
    assert counted.first == JointCounts(both=1, only_p=3, only_q=2, neither=1)
    assert counted.second == JointCounts(both=1, only_p=2, only_q=2, neither=2)
    assert counted.both == PairedGuesses(both_right=1, one_each=1, one_right=2, both_wrong=1, one_wrong=1, unguessed=1)
    on_x, on_y = counted.rare
    assert (on_x.count_x, on_x.count_y) == (0, 0)
    assert (on_y.count_x, on_y.count_y, on_y.runs_x) == (3, 3, 7)
    assert counted.first.runs == len(x)
    nothing = PairCounts.of((None, second), (None, None), x, y)
    assert nothing.first == JointCounts(both=0, only_p=0, only_q=0, neither=7)
    assert nothing.both.both_right == 0


def test_the_account_of_both_directions_has_the_largest_share():
    lines = [[Line(math.e, 0.0)] * 4]
    nothing = PairedGuesses(both_right=0, one_each=0, one_right=0, both_wrong=0, one_wrong=0, unguessed=1)
    lost = JointCounts(both=0, only_p=0, only_q=10**6, neither=0)
    after = Wealth.start(1, 4).after(lines, [lost, lost, nothing, Guesses(correct=0, incorrect=10**6, runs=10**6)])
    assert np.exp(after.log_average) == pytest.approx(WEIGHTS[4][2])
    assert all(sum(shares) == pytest.approx(1.0) for shares in WEIGHTS.values())


def test_a_guess_by_coins_is_fair_and_none_changes_nothing():
    """A rare event that is e times as likely on the dataset guessed, and bets of all sizes."""
    c, w = 0.01 * math.e, 0.01
    start, line = Wealth.start(1, 4), [[Line(math.e, 0.0)] * 4]
    mean = 0.0
    for chance, right, wrong in ((c, 1, 0), (w, 0, 1), (1 - c - w, 0, 0)):
        after = start.after(line, [None, None, None, Guesses(correct=right, incorrect=wrong, runs=1)])
        assert np.all(after.log_wealth[:, :3] == 0.0)
        mean = mean + chance * np.exp(after.log_wealth[0, 3])
    assert np.all(np.abs(mean - 1.0) < 1e-12)


@pytest.mark.parametrize(("true", "runs"), [(2.0, 300), (1.05, 40_000)])
def test_counts_as_expected_of_a_known_event_refute(true, runs):
    q, start = 0.5 * math.exp(-true), Wealth.start(1, 1)
    both, only_p = round(0.5 * q * runs), round(0.5 * (1 - q) * runs)
    counts = JointCounts(both=both, only_p=only_p, only_q=both, neither=only_p)
    assert start.after([[Line(math.e, 0.0)]], [counts]).n_refuted(0.05) == 1


def test_running_bound_counts_members_without_a_gap():
    wealth = Wealth(np.zeros((4, 1, 14)), np.array([5.0, 4.0, 1.0, 9.0]))
    assert (wealth.n_refuted(0.05), wealth.n_refuted(math.exp(-0.5))) == (2, 4)
    np.testing.assert_allclose(wealth.pvalues(), np.exp([-5.0, -4.0, -1.0, -9.0]))


def test_the_peak_is_kept_when_wealth_is_lost():
    lines = [[Line(1.0, 0.0)]]
    won = Wealth.start(1, 1).after(lines, [JointCounts(both=0, only_p=60, only_q=5, neither=35)])
    lost = won.after(lines, [JointCounts(both=0, only_p=5, only_q=60, neither=35)])
    assert won.n_refuted(1e-3) == lost.n_refuted(1e-3) == 1
    assert np.exp(lost.log_wealth).mean() < np.exp(won.log_wealth).mean()


def test_holm_agrees_with_statsmodels():
    p = np.random.default_rng(20).random(20) ** 3
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([]).tolist() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Wealth.start(2, 1).after([[Line(1.0, 0.0)]], [NO_PAIRS]), "do not fit"),
        *((lambda p=bad: holm(p), "are not p-values") for bad in ([-0.1], [1.1], [math.nan], [[0.5]])),
        (lambda: ErrorBudget(0.05, (("a", 0.04), ("b", 0.02))), "do not fit"),
        (lambda: ErrorBudget(0.05, (("a", -0.01), ("b", 0.02))), "do not fit"),
        (lambda: ErrorBudget(0.05, (("a", 0.05),), beside=(("b", 1.0),)), "is not a probability"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()
