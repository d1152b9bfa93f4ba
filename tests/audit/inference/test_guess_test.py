"""Guesses in both directions: enumeration of sizes and bounds, coins, tails, and what fixed sides break."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, xlogy

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.inference.binomial_tails import varied_upper_tail
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.inference.guess_test import (
    Guesses,
    coins_for,
    guess_test,
    guesses_by_coins,
    guesses_in_batch,
    is_symmetric,
    share_that_fits,
)

RUNS = 11
ALL = [(right, wrong) for right in range(RUNS + 1) for wrong in range(RUNS + 1 - right)]


def distribution_of(c, w, runs=RUNS, outcomes=ALL):
    """Trinomial probabilities of numbers of correct and incorrect guesses."""
    right, wrong = np.array(outcomes).T
    rest = runs - right - wrong
    ways = gammaln(runs + 1) - gammaln(right + 1) - gammaln(wrong + 1) - gammaln(rest + 1)
    return np.exp(ways + xlogy(right, c) + xlogy(wrong, w) + xlogy(rest, max(1.0 - c - w, 0.0)))


def of_all_guesses(claim, alpha):
    """P-values and bounds of all numbers of guesses, shape (2, outcomes)."""
    return np.array([guess_test(Guesses(correct=r, incorrect=w, runs=RUNS), claim, alpha=alpha) for r, w in ALL]).T


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.0), PureDP(1.0), PureDP(0.3).group(3), ApproxDP(0.0, 0.1, bound_on="delta"), ApproxDP(1.0, 0.05),
        ApproxDP(1.0, 0.05, bound_on="delta"), GaussianDP(0.7), PrivacyProfile((0.0, 1.0), (0.4, 0.05)),
        RenyiDP(2.0, 0.5),
    ],
    ids=str,
)  # fmt: skip
def test_sizes_and_bounds_by_enumeration(claim):
    """For any probabilities under the boundary, small p-values and large bounds are as rare as they should be."""
    levels = (0.05, 0.3) if claim.has_closed_form else (0.3,)
    found = {alpha: of_all_guesses(claim, alpha) for alpha in levels}
    for tuned, (pvalues, bounds) in found.items():
        for w in (1e-4, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
            most = min(float(claim.max_power(w)[0]), 1.0 - w)
            for c in (most, 0.9 * most):
                distribution = distribution_of(c, w)
                assert distribution.sum() == pytest.approx(1.0)
                assert all(distribution[pvalues <= a].sum() <= a + 1e-12 for a in (0.01, 0.05, 0.3, 0.6))
                assert distribution[bounds > claim.parameter].sum() <= tuned
        assert np.array_equal(pvalues <= tuned, bounds > claim.parameter) or claim.log_ratio is None
        assert not np.any((bounds > claim.parameter) & (pvalues > tuned))
    assert found[0.3][0].min() < 0.05, "some counts refute"


@pytest.mark.parametrize("runs", [32, 12_345, 10**7])
def test_coins_fit(runs):
    coins = coins_for(runs)
    assert 2 * runs - 3.1 * math.sqrt(2 * runs) - 1 <= coins < 2 * runs
    inside = stats.binom.cdf(runs, coins, 0.5) - stats.binom.cdf(coins - runs - 1, coins, 0.5)
    assert share_that_fits(runs) == pytest.approx(inside, abs=1e-9)
    assert share_that_fits(runs) <= inside + 1e-12
    assert 0.99 < inside < 1.0


def test_guesses_by_coins_are_trinomial():
    """Means and variances over 4,000 audits of 50 runs; the limits are five standard errors."""
    rng, p, q = np.random.default_rng(0), (0.5, 0.1), (0.2, 0.4)
    on_x, on_y = (rng.multinomial(50, (*rates, 1 - sum(rates)), size=4_000) for rates in (p, q))
    found = []
    for (first_x, second_x, _), (first_y, second_y, _) in zip(on_x.tolist(), on_y.tolist(), strict=True):
        first = Counts(count_x=first_x, runs_x=50, count_y=first_y, runs_y=50)
        second = Counts(count_x=second_x, runs_x=50, count_y=second_y, runs_y=50)
        guesses, fits = guesses_by_coins(first, second, rng)
        assert (guesses.runs, fits) == (coins_for(50), share_that_fits(50))
        found.append((guesses.correct, guesses.incorrect))
    n, c, w = coins_for(50), 0.5 * (0.5 + 0.4), 0.5 * (0.2 + 0.1)
    right, wrong = np.array(found).T
    for counts, rate in ((right, c), (wrong, w)):
        spread = math.sqrt(n * rate * (1 - rate))
        assert abs(counts.mean() - n * rate) < 5 * spread / math.sqrt(4_000)
        assert counts.std() == pytest.approx(spread, rel=5 / math.sqrt(8_000))
    assert np.cov(right, wrong)[0, 1] == pytest.approx(-n * c * w, abs=5 * n * math.sqrt(c * w / 4_000))


@pytest.mark.parametrize("runs", [8, 5_000])
def test_coins_of_a_batch_are_fair_until_one_dataset_is_used_up(runs):
    """Runs of a batch in which all outputs on x are in the first event, none on y: correct guesses are runs on x."""
    rng = np.random.default_rng(runs)
    first, none = (Counts(count_x=count, runs_x=runs, count_y=0, runs_y=runs) for count in (runs, 0))
    found = [guesses_in_batch(first, none, rng) for _ in range(2_000)]
    on_x, made = np.array([(each.correct, each.runs) for each in found]).T
    assert np.all(np.maximum(on_x, made - on_x) == runs), "one dataset is used up"
    left_out = 2 * runs - made.mean()
    assert left_out == pytest.approx(math.sqrt(4 * runs / math.pi), rel=0.15)
    # Wealth from bets that the dataset is x, at even odds, has mean 1; its standard error is below .05.
    wealth = np.exp(on_x * math.log1p(0.3 / math.sqrt(runs)) + (made - on_x) * math.log1p(-0.3 / math.sqrt(runs)))
    assert wealth.mean() == pytest.approx(1.0, abs=5 * wealth.std() / math.sqrt(2_000))


def test_tails_of_varied_runs():
    rng = np.random.default_rng(1)
    runs = np.sort(rng.integers(900, 1_000, (5, 40)))[:, ::-1].astype(float)
    counts = np.sort(rng.integers(200, 400, (5, 40))).astype(float)
    counts[0, :3], counts[1, -1] = (-1.0, 0.0, 1.0), 1_200.0
    p = np.array([0.3, 0.32, 0.25, 1e-9, 1.0])
    exact = stats.binom.sf(counts - 1, runs, p[:, None])
    for is_small, accuracy in ((True, 2e-9), (False, 0.06)):
        found = varied_upper_tail(counts, runs, p, 1.0 - p, np.full(5, is_small))
        assert np.all(found >= exact * (1 - 1e-11))
        assert np.all(found <= exact + accuracy)
        assert np.all(np.diff(found, axis=1) <= 1e-12)


def test_large_and_extreme_counts():
    p, bound = guess_test(Guesses(correct=40, incorrect=0, runs=50), PureDP(1.0), alpha=0.05)
    assert p == pytest.approx((1 / (1 + math.exp(-1))) ** 40, rel=1e-6)
    assert bound == pytest.approx(math.log(0.05 ** (1 / 40) / (1 - 0.05 ** (1 / 40))), rel=1e-6)
    for claim in (PureDP(1.0), ApproxDP(1.0, 1e-6), GaussianDP(1.0)):
        assert guess_test(Guesses(correct=0, incorrect=0, runs=50), claim, alpha=0.05) == (1.0, 0.0)
        assert guess_test(Guesses(correct=50, incorrect=0, runs=50), claim, alpha=0.05)[1] > claim.parameter
        assert guess_test(Guesses(correct=3 * 10**9, incorrect=10**9, runs=10**10), claim, alpha=0.05)[1] > 0.0


def test_a_condition_on_the_coins_costs_its_probability():
    guesses = Guesses(correct=1_480, incorrect=500, runs=3_000)
    p, bound = guess_test(guesses, PureDP(1.0), alpha=0.05)
    given, lower = guess_test(guesses, PureDP(1.0), alpha=0.05, fits=0.9)
    assert given == pytest.approx(p / 0.9)
    assert lower == guess_test(guesses, PureDP(1.0), alpha=0.045)[1] < bound


@dataclass(frozen=True, slots=True)
class OneWay(PureDP):
    def reversed(self):
        return PureDP(2.0 * self.epsilon)


@dataclass(frozen=True, slots=True)
class Dented(PureDP):
    """A claim of one's own whose boundary is not concave."""

    log_ratio = None

    def _boundary(self, q, q_complement):
        power = np.interp(q, [0, 0.1, 0.2, 0.35, 0.68, 0.7, 1], [0, 0.3, 0.32, 0.65, 0.8, 0.9, 1])
        return power, 1.0 - power


def test_claims_that_are_not_concave_or_differ_between_directions_are_refused():
    # x has these outputs with probabilities 0.65, 0.10 and 0.25, y with 0.35, 0.30 and 0.35: every event keeps the
    # claim in both directions, but correct guesses have 0.475 and wrong ones 0.225, where the boundary is 0.375.
    assert not is_symmetric(Dented(1.0))
    for claim in (Dented(1.0), OneWay(1.0)):
        with pytest.raises(OptionError, match="differs between the directions, or its boundary is not concave"):
            guess_test(Guesses(correct=475, incorrect=225, runs=1_000), claim, alpha=0.05)


def test_impossible_guesses_are_refused():
    for right, wrong, runs in ((-1, 0, 5), (3, 3, 5), (0, 0, 0), (0, -1, 3)):
        with pytest.raises(OptionError, match="is impossible"):
            Guesses(correct=right, incorrect=wrong, runs=runs)


def test_distributions_with_a_worse_direction_are_covered_too():
    """S and T with different losses: only their mean keeps the boundary."""
    pvalues = of_all_guesses(GaussianDP(1.0), 0.05)[0]
    for q_s, p_t in ((0.02, 0.3), (0.2, 0.01), (0.1, 0.1)):
        p_s, q_t = (float(GaussianDP(1.0).max_power(rate)[0]) for rate in (q_s, p_t))
        distribution = distribution_of(0.5 * (p_s + q_t), 0.5 * (q_s + p_t))
        assert distribution[pvalues <= 0.05].sum() <= 0.05
