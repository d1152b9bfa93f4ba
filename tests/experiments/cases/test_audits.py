"""Audits with the exact strength of their claim, and single proportions with Clopper-Pearson limits."""

import pytest
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, PureDP, Verdict, Within
from dpaudit.audit.errors import ClaimError, OptionError
from dpaudit.experiments.cases.experiment import RUNS, fails, holds
from dpaudit.experiments.cases.simulate import proportion
from dpaudit.mechanisms import GaussianMechanism, GroupPrivacy, LaplaceMechanism, exact_delta, exact_epsilon


class NoLaw:
    """A mechanism whose law nobody knows."""

    claim = PureDP(1.0)

    def sample(self, dataset, size, rng):
        return rng.laplace(dataset, size=size)


PAIR = (0.0, 1.0)
GAUSSIAN, LAPLACE = GaussianMechanism(1.0, 0.01), LaplaceMechanism(0.5)
LAWS = GAUSSIAN.law(0.0), GAUSSIAN.law(1.0)


@pytest.mark.parametrize(
    ("claim", "exact"),
    [
        (ApproxDP(0.7, 0.02), exact_epsilon(*LAWS, 0.02)),
        (ApproxDP(0.7, 0.02, bound_on="delta"), exact_delta(*LAWS, 0.7)),
        (PureDP(1.0), float("inf")),
    ],
    ids=str,
)
def test_exact_strength_is_that_of_the_bounded_parameter(claim, exact):
    case = fails("T1", GAUSSIAN, PAIR, Within("l2"), "note", claim=claim)
    assert case.exact == exact
    assert (case.claim, case.runs, case.note, case.expected) == (claim, RUNS, "note", Verdict.REFUTED)


def test_defaults_and_options():
    case = holds("T2", LAPLACE, PAIR, Within("l1"), "note", runs=5)
    assert (case.claim, case.exact, case.runs, case.expected) == (PureDP(0.5), 0.5, 5, Verdict.NOT_REFUTED)
    group = holds("T3", LAPLACE, (0.0, 3.0), Within("l1"), "note", claim=GroupPrivacy(0.5), distance=3)
    assert (group.exact, group.distance) == (1.5, 3)
    assert holds("T4", LAPLACE, PAIR, Within("l1"), "note", exact=None).exact is None


def test_at_a_distance_the_exact_strength_is_per_step():
    """Also of a claim with a δ, which must not be read as a claim without."""
    far = (0.0, 3.0)
    pure = holds("T5", LAPLACE, far, Within("l1"), "note", distance=3)
    approx = holds("T6", GAUSSIAN, far, Within("l2"), "note", distance=3)
    assert pure.exact == 0.5
    assert approx.exact == pytest.approx(0.890643485)
    wrong = fails("T7", GaussianMechanism(3.0, 0.01), far, Within("l2"), "note", claim=ApproxDP(1.0, 0.01), distance=3)
    assert 1.0 < wrong.exact < 3.0


def test_a_strength_that_is_not_known_must_be_given():
    claim, place = GaussianDP(1.0), ("T8", GAUSSIAN, PAIR, Within("l2"), "note")
    with pytest.raises(OptionError, match=r"do not give the exact strength of 1-GDP .*pass it as exact="):
        holds(*place, claim=claim)
    assert holds(*place, claim=claim, exact=0.9).exact == 0.9
    lawless = ("T9", NoLaw(), PAIR, Within("l2"), "note")
    with pytest.raises(OptionError, match=r"\(it has no law\); pass it as exact=, or exact=None if it is unknown"):
        holds(*lawless)
    assert holds(*lawless, exact=None).exact is None


@pytest.mark.parametrize("claim", [ApproxDP(0.0, 0.1), ApproxDP(0.0, 0.1).group(2), GroupPrivacy(0.0, 0.1)], ids=str)
@pytest.mark.parametrize("audit", [holds, fails])
def test_a_bound_on_epsilon_that_is_claimed_to_be_0_is_refused(audit, claim):
    with pytest.raises(ClaimError, match=r"^T10: .* is a claim on delta alone; use .*bound_on='delta'\)\.$"):
        audit("T10", GAUSSIAN, PAIR, Within("l2"), "note", claim=claim)


def test_a_claim_of_equal_distributions_needs_no_bound_on_delta():
    claim = ApproxDP(0.0, 0.0)
    assert holds("T11", LAPLACE, (0.0, 0.0), Within("l1"), "note", claim=claim).exact == 0.0


def test_a_proportion_has_the_limits_of_the_exact_test_in_its_unit():
    point = proportion(30, 1000, 0.01, low=0.1, high=0.2, unit=5.0, at="t")
    limits = stats.binomtest(30, 1000).proportion_ci(0.99)
    assert (point.lower, point.upper) == pytest.approx((5 * limits.low, 5 * limits.high), rel=1e-6)
    assert (point.estimate, point.low, point.high, point.at) == (0.15, 0.1, 0.2, "t")
    assert (proportion(0, 0, 0.01).lower, proportion(0, 0, 0.01).upper) == (0.0, 1.0)
