"""What results say of attacks: closed forms of claims, and error probabilities of what counts show, by enumeration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpaudit as dp
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.inference.guess_test import Guesses
from dpaudit.audit.results.attack_limits import attack_limits, attack_limits_of_profile
from dpaudit.audit.results.audit_result import OtherDirection

NAMES = [
    "μ of Gaussian DP", "true positives at 1% false positives", "true positives at 0.1% false positives", "advantage",
    "correct of 100 guesses",
]  # fmt: skip
ALPHA = 0.2
BASE = dp.check_outputs([0] * 60 + [1] * 40, [0] * 40 + [1] * 60, claim=5.0, alpha=ALPHA, detect=10.0)


def result(counts=BASE.counts, *, claim=BASE.claim, net_events=0, opposite=None, **fields):
    """An audit with these counts, more of which are on x."""
    net_alpha = 0.01 if net_events else 0.0
    fields = {"claim": claim, "more_likely_on": "x", "net_events": net_events, "net_alpha": net_alpha} | fields
    excess = None if fields.get("bound", BASE.bound) > claim.parameter else 1.0
    return replace(BASE, counts=counts, opposite=opposite, min_detectable_excess=excess, **fields)


def at_most(claim):
    return [each.at_most for each in attack_limits(result(claim=claim))]


def at_least(*args, **fields):
    return [each.at_least for each in attack_limits(result(*args, **fields))]


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 5.0, 20.0, 50.0, 700.0])
def test_a_pure_claim_allows_what_randomised_response_reaches(epsilon):
    assert [each.name for each in attack_limits(result(claim=dp.PureDP(epsilon)))] == NAMES
    mu, *rates, advantage, correct = at_most(dp.PureDP(epsilon))
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    assert mu == pytest.approx(2.0 * -norm.ppf(1.0 / (1.0 + math.exp(epsilon))), abs=1e-12)
    assert advantage == pytest.approx(2.0 * truth - 1.0, abs=2e-12)
    assert correct == pytest.approx(100.0 * truth, abs=2e-10)
    for rate, found in zip((0.01, 0.001), rates, strict=True):
        upper = 1.0 - math.exp(-epsilon) * (1.0 - rate)
        assert found == pytest.approx(min(math.exp(min(epsilon, 10.0)) * rate, upper), rel=1e-12)


def test_no_smaller_mu_and_no_larger_difference_of_quantiles():
    for epsilon in (0.1, 1.0, 5.0):
        q = np.append(np.exp(np.linspace(-200.0, 0.0, 2_001))[:-1], 1.0 / (1.0 + math.exp(epsilon)))
        p, rest = dp.PureDP(epsilon).max_power(q)
        along = dp.GaussianDP(0.0).parameter_of(p, q, rest, 1.0 - q)
        mu = at_most(dp.PureDP(epsilon))[0]
        assert along.max() <= mu + 1e-9
        assert along.max() == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.3), (1.0, 1e-5), (3.0, 0.1), (0.0, 0.0)])
def test_an_approximate_claim_allows_the_crossing_of_its_lines(epsilon, delta):
    mu, first, _, advantage, correct = at_most(dp.ApproxDP(epsilon, delta))
    assert advantage == pytest.approx((math.expm1(epsilon) + 2.0 * delta) / (math.exp(epsilon) + 1.0), abs=2e-12)
    assert correct == pytest.approx(50.0 + 50.0 * advantage)
    assert first == pytest.approx(math.exp(epsilon) * 0.01 + delta)
    assert (mu == 0.0) if delta == 0.0 else (mu == "no μ-GDP follows where δ > 0")


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 4.0])
def test_a_gaussian_claim_allows_what_a_threshold_reaches(mu):
    found, first, second, advantage, _ = at_most(dp.GaussianDP(mu))
    assert found == mu
    assert [first, second] == pytest.approx([norm.cdf(norm.ppf(rate) + mu) for rate in (0.01, 0.001)])
    assert advantage == pytest.approx(2.0 * norm.cdf(mu / 2.0) - 1.0, abs=2e-12)


def test_claims_at_a_distance_allow_more():
    assert at_most(dp.GaussianDP(0.5).group(3))[0] == 1.5
    assert at_most(dp.PureDP(0.5).group(3))[0] == at_most(dp.PureDP(1.5))[0]
    assert at_most(dp.PureDP(0.5).group(3))[3] <= at_most(dp.PureDP(1.5))[3]
    assert at_most(dp.PureDP(0.5).group(3))[3] > at_most(dp.PureDP(0.5))[3]


@pytest.mark.parametrize(
    ("claim", "advantage"),
    [
        (dp.PrivacyProfile((0.0, 1.0), (0.3, 0.05)), 0.3),
        (dp.TradeOffCurve((0.0, 0.25, 1.0), (1.0, 0.25, 0.0)), 0.5),
        (dp.ZeroConcentratedDP(0.0), 0.0),
        # The largest p − q with ln(p²/q + (1 − p)²/(1 − q)) = 1: p = 1 − q, so p³ + q³ = e p q.
        (dp.RenyiDP(2, 1.0), math.sqrt(1.0 - 4.0 / (3.0 + math.e))),
    ],
    ids=str,
)
def test_a_claim_without_a_closed_form_of_mu(claim, advantage):
    found = at_most(claim)
    assert found[0] == "no closed form"
    assert found[3] == pytest.approx(advantage, abs=2e-12 if not claim.divergence_slopes else 1e-9)


def test_a_larger_parameter_allows_more():
    others = dp.GaussianDP(1.0), dp.RenyiDP(3, 1.0), dp.ZeroConcentratedDP(1.0)
    for family in (dp.PureDP(1.0), dp.ApproxDP(1.0, 1e-3), *others):
        small, large = (at_most(family.with_parameter(size))[1:] for size in (0.4, 0.8))
        assert all(low < high for low, high in zip(small, large, strict=True))


# What counts show.

RUNS, P, Q = 15, 0.7, 0.35


def truth(p, q):
    """The measures of a mechanism with two outcomes, one of which has these probabilities on x and on y."""

    def power(rate):  # in the better role
        ways = [(p, q), (1.0 - q, 1.0 - p)]
        return max(np.interp(rate, [0.0, size, 1.0], [0.0, power, 1.0]) for power, size in ways)

    return [norm.ppf(p) - norm.ppf(q), power(0.01), power(0.001), p - q, 50.0 * (1.0 + p - q)]


def error(shown, exact):
    """The probability that some measure of a result exceeds its exact value, over all counts."""
    found = 0.0
    for x in range(RUNS + 1):
        for y in range(RUNS + 1):
            limits = shown(Counts(count_x=x, runs_x=RUNS, count_y=y, runs_y=RUNS))
            numbers = [(low, high) for low, high in zip(limits, exact, strict=True) if not isinstance(low, str)]
            if any(low > high * (1.0 + 1e-12) for low, high in numbers):
                found += binom.pmf(x, RUNS, P) * binom.pmf(y, RUNS, Q)
    return found


def with_both(counts):
    """Both outcomes as events, one in each direction."""
    both = Guesses(correct=1, incorrect=0, runs=2 * RUNS)  # not used
    return OtherDirection(event=BASE.event, counts=counts.outside(), guesses=both)


def test_counts_err_with_probability_alpha_at_most():
    """Of one event, and of events in both directions, which share alpha."""
    assert 0.02 < error(at_least, truth(P, Q)) <= ALPHA
    assert error(lambda counts: at_least(counts, alpha=0.999), truth(P, Q)) > ALPHA  # a level that is too large
    assert 0.005 < error(lambda counts: at_least(counts, opposite=with_both(counts)), truth(P, Q)) <= ALPHA


MORE_ON_X = Counts(count_x=600, runs_x=1000, count_y=400, runs_y=1000)


def test_plain_events_share_half_of_alpha():
    """The chosen events have the other half; each event of the net may be shown in either direction."""
    assert at_least(MORE_ON_X, net_events=10) == at_least(MORE_ON_X, alpha=ALPHA / 40)
    both = with_both(MORE_ON_X)
    assert at_least(MORE_ON_X, net_events=10, opposite=both) == at_least(MORE_ON_X, opposite=both, alpha=ALPHA / 2)


def test_an_event_that_is_more_likely_on_y_shows_the_same():
    assert at_least(MORE_ON_X.swapped(), more_likely_on="y") == at_least(MORE_ON_X)
    assert at_least(MORE_ON_X.outside(), more_likely_on="y") == pytest.approx(at_least(MORE_ON_X))
    assert at_least(MORE_ON_X.swapped()) == ["these counts show no difference"] * 5


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_an_audit_shows_less_than_laplace_noise_reveals(scale):
    def noisy(rows, size, rng):
        return len(rows) + rng.laplace(scale=scale, size=size)

    audit = dp.check(noisy, [1, 1], [1], claim=10.0, runs=40_000, detect=20.0, alpha=1e-6)
    mu, first, second, advantage, _ = (each.at_least for each in attack_limits(audit))
    loss = 1.0 / scale
    assert 0.5 * math.expm1(loss) < first / 0.01 - 1.0 < math.expm1(loss)
    assert 0.5 * math.expm1(loss) < second / 0.001 - 1.0 < math.expm1(loss)
    assert 0.5 < advantage / -math.expm1(-loss / 2.0) < 1.0
    assert 0.5 < mu / at_most(dp.PureDP(loss))[0] < 1.0


# What a bound implies.


def test_a_bound_on_epsilon_at_delta_implies_the_mu_for_which_it_is_tight():
    def noisy(rows, size, rng):
        return len(rows) + rng.normal(size=size)

    audit = dp.check(noisy, [1, 1], [1], claim=(0.2, 1e-3), runs=100_000, sequential=True)
    assert audit.stopped == "refuted"
    mu, *others = (each.at_least for each in attack_limits(audit))
    delta = norm.cdf(mu / 2 - audit.bound / mu) - math.exp(audit.bound) * norm.cdf(-mu / 2 - audit.bound / mu)
    assert delta == pytest.approx(1e-3, rel=1e-6)
    assert mu < 1.0
    assert others == ["a betting test bounds the claim's parameter alone"] * 4


@pytest.mark.parametrize(
    ("claim", "bound", "mu"),
    [
        (dp.GaussianDP(1.0), 1.5, 1.5), (dp.GaussianDP(1.0).group(2), 1.5, 3.0), (dp.ZeroConcentratedDP(1.0), 2.0, 2.0),
        (dp.RenyiDP(4.0, 1.0), 2.0, 1.0), (dp.GaussianDP(1.0), 0.0, "the bound is 0"),
    ],
    ids=str,
)  # fmt: skip
def test_mu_of_gaussian_and_renyi_claims_follows_from_the_bound(claim, bound, mu):
    assert at_least(claim=claim, bound=bound)[0] == (mu if isinstance(mu, str) else pytest.approx(mu))


def test_a_bound_on_total_variation_is_the_advantage():
    claim = dp.ApproxDP(0.0, 0.1, bound_on="delta")
    found = at_least(claim=claim, bound=0.25)
    assert found[3:] == [0.25, 62.5]
    assert at_least(claim=claim, bound=0.0)[3:] == ["the bound is 0"] * 2
    assert found[0] == at_least()[0]


def test_a_pure_bound_alone_implies_nothing():
    """A sequential audit, and canaries: the outputs with the large loss may be rare."""

    def rare(value, size, rng):
        return (rng.random(size) < value).astype(float)

    audit = dp.check(rare, 0.05, 0.0, claim=0.5, runs=10_000, sequential=True)
    assert audit.stopped == "refuted"
    assert [type(each.at_least) for each in attack_limits(audit)] == [str] * 5
    rng = np.random.default_rng(0)
    included = rng.random(200) < 0.5
    canaries = dp.check_canaries(included + 0.1 * rng.normal(size=200), included, claim=1.0)
    assert canaries.bound > 1.0
    shown = {each.at_least for each in attack_limits(canaries)}
    assert shown == {"one training bounds the claim's parameter alone"}


def test_a_failed_health_check_leaves_what_the_claim_allows():
    sick = result(findings=(Finding(HealthCheck.NO_POWER, "nothing was tested"),))
    assert {each.at_least for each in attack_limits(sick)} == {"a health check failed"}
    assert [each.at_most for each in attack_limits(sick)] == at_most(BASE.claim)


def test_an_exact_profile_gives_both_ends():
    """Randomised response with probability 3/4: δ(ε) = 3/4 − e^ε/4 up to ln 3."""
    epsilons = np.linspace(0.0, math.log(3.0), 9)
    deltas = np.maximum(0.75 - np.exp(epsilons) / 4.0, 0.0)
    found = attack_limits_of_profile([(e, d * 0.99, d) for e, d in zip(epsilons, deltas, strict=True)])
    assert [each.at_least for each in found] == [*["only δ(ε) is known"] * 3, 0.5 * 0.99, 50.0 * (1.0 + 0.5 * 0.99)]
    assert [each.at_most for each in found][1:] == pytest.approx([0.03, 0.003, 0.5, 75.0])
