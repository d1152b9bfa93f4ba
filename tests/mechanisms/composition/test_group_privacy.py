"""Group privacy: both forms of delta against mpmath and plain sums, attained bounds, and failures at two steps."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms import GroupPrivacy, GroupTightMechanism, exact_delta, exact_epsilon, group_delta
from dpaudit.mechanisms.faulty import LocalSensitivityLaplace

EPSILONS = (0.0, 5e-324, 1e-300, 1e-17, 1e-9, 1e-3, 0.5, 1.0, 20.0)


class TestGroupDelta:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("k", [1, 2, 3, 8, 30])
    def test_both_forms_at_high_precision(self, epsilon, k):
        """The sum term by term, and k times its last term, with 60 digits of mpmath."""
        with mpmath.workdps(60):
            terms = [mpmath.exp(j * mpmath.mpf(epsilon)) for j in range(k)]
            exact = {"sum": mpmath.fsum(terms) * mpmath.mpf(1e-6), "product": k * terms[-1] * mpmath.mpf(1e-6)}
        for form, value in exact.items():
            assert group_delta(epsilon, 1e-6, k, form) == pytest.approx(float(value), rel=1e-12)

    def test_one_step_is_the_claim_itself(self):
        for epsilon in EPSILONS:
            for form in ("sum", "product"):
                assert group_delta(epsilon, 1e-5, 1, form) == pytest.approx(1e-5, rel=1e-14)

    def test_the_sum_is_the_smaller_form(self):
        for epsilon in (0.01, 1.0, 5.0):
            for k in (2, 5, 50):
                assert group_delta(epsilon, 1e-9, k, "sum") < group_delta(epsilon, 1e-9, k, "product")
        assert group_delta(0.0, 1e-9, 50, "sum") == group_delta(0.0, 1e-9, 50, "product")

    def test_no_delta_stays_none(self):
        assert group_delta(1.0, 0.0, 1000) == group_delta(1.0, 0.0, 1000, "product") == 0.0

    def test_huge_groups_overflow_to_infinity(self):
        assert group_delta(1.0, 1e-5, 10**6) == group_delta(1e308, 1e-5, 10, "product") == math.inf
        assert group_delta(1e308, 1e-5, 10) == math.inf

    def test_the_claim_at_a_distance(self):
        assert GroupPrivacy(0.5)(4) == PureDP(2.0)
        assert GroupPrivacy(0.5)(3.2) == PureDP(2.0)  # the distance needs four steps
        for form in ("sum", "product"):
            claim = GroupPrivacy(0.5, 1e-3, form, bound_on="delta")(3)
            assert claim == ApproxDP(1.5, group_delta(0.5, 1e-3, 3, form), "delta")
        with pytest.raises(ClaimError, match=r"at distance 2 delta is 2\.72, which claims nothing"):
            GroupPrivacy(1.0, 0.5, "product")(2)  # delta 2 e · 0.5 claims nothing

    def test_boundaries_composed_k_times_are_the_sum_form(self):
        """The strongest test at distance k, from q = 0, is the claim's boundary applied k times."""
        claim, k = ApproxDP(0.5, 1e-3), 4
        one, zero = np.zeros(1), np.ones(1)
        for _ in range(k):
            one, zero = claim.max_power(one, zero)
        assert one[0] == pytest.approx(group_delta(0.5, 1e-3, k), rel=1e-12)


class TestGroupTight:
    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.3, 0.01), (0.0, 0.02)])
    def test_neighbours_attain_the_claim_and_groups_the_sum(self, epsilon, delta):
        mechanism = GroupTightMechanism(epsilon, delta)
        laws = [mechanism.law(n) for n in range(9)]
        assert mechanism.claim == ApproxDP(epsilon, delta)
        for law, following in itertools.pairwise(laws):
            assert exact_delta(law, following, epsilon) == pytest.approx(delta, rel=1e-9)
        reached = [exact_delta(laws[0], laws[k], k * epsilon) for k in range(1, 9)]
        corner = (1 - delta) / (1 + math.exp(epsilon))
        for k, found in enumerate(reached, start=1):
            bound = group_delta(epsilon, delta, k)
            assert found <= bound * (1 + 1e-9)
            if bound <= corner:
                assert found == pytest.approx(bound, rel=1e-9)
        assert reached[1] == pytest.approx(group_delta(epsilon, delta, 2), rel=1e-9)

    def test_without_delta_the_odds_grow_by_epsilon(self):
        """Up to the corner 1/(1 + e^ε), by hand; beyond it the complement shrinks by e^ε."""
        mechanism = GroupTightMechanism(0.5, start=0.01)
        laws = [mechanism.law(n) for n in range(30)]
        assert mechanism.claim == PureDP(0.5)
        for n in range(7):
            assert laws[n].probabilities[1] == pytest.approx(0.01 * math.exp(0.5 * n), rel=1e-12)
            assert exact_epsilon(laws[0], laws[n]) == pytest.approx(0.5 * n, rel=1e-12)
        assert all(exact_epsilon(one, two) == pytest.approx(0.5, rel=1e-12) for one, two in itertools.pairwise(laws))
        assert laws[29].probabilities[0] == pytest.approx(laws[28].probabilities[0] * math.exp(-0.5), rel=1e-12)

    def test_the_bit_ends_at_one_with_a_delta(self):
        law = GroupTightMechanism(1.0, 0.1).law(50)
        assert law.probabilities.tolist() == [0.0, 1.0]
        assert GroupTightMechanism(1.0, 0.1).sample(50, 10, np.random.default_rng(1)).tolist() == [1] * 10

    def test_query(self):
        mechanism = GroupTightMechanism(1.0, 1e-3, query=len)
        assert mechanism.law(["Ann", "Bob"]) == GroupTightMechanism(1.0, 1e-3).law(2)
        assert str(mechanism) == "GroupTight(epsilon=1, delta=0.001, start=0)"


class TestLocalSensitivity:
    def test_one_step_from_the_empty_dataset_keeps_the_claim_and_two_break_it(self):
        twin = LocalSensitivityLaplace(0.5)
        empty, one, two = (twin.law([0] * rows) for rows in range(3))
        assert exact_epsilon(empty, one) == pytest.approx(0.5, rel=1e-12) == twin.claim.epsilon
        assert exact_epsilon(empty, two) == pytest.approx(2.0, rel=1e-12)
        assert exact_epsilon(empty, two) > GroupPrivacy(0.5)(2).epsilon

    @pytest.mark.parametrize("most_rows", [1, 2, 5])
    def test_the_truth_is_attained_at_the_largest_datasets(self, most_rows):
        twin = LocalSensitivityLaplace(0.5, most_rows)
        losses = [exact_epsilon(twin.law([0] * n), twin.law([0] * (n + 1))) for n in range(most_rows)]
        assert max(losses) == losses[-1] == pytest.approx(twin.truth.epsilon, rel=1e-12)
        assert (twin.truth.epsilon > twin.claim.epsilon) == (most_rows > 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GroupPrivacy(-1.0), "epsilon=-1.0 is not allowed"),
        (lambda: GroupPrivacy(1.0, form="neither"), "form='neither' is unknown"),
        (lambda: GroupPrivacy(1.0)(0), "distance=0 is not the size of a group"),
        (lambda: GroupPrivacy(1.0)(math.inf), "distance=inf is not the size of a group"),
    ],
)
def test_group_claims_refuse(call, message):
    with pytest.raises(ClaimError) as caught:
        call()
    assert message in str(caught.value)
