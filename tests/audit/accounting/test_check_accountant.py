"""Accountants that claim too little are refuted, others are not, and filters are asked for more than they have."""

import json
import math
from dataclasses import replace

import pytest

import dpaudit
from dpaudit import ApproxDP, PureDP
from dpaudit.accountants import (
    GRID,
    OTHER_ADJACENCIES,
    Case,
    Gaussian,
    Laplace,
    Outcome,
    check_accountant,
    check_filter,
    true_epsilon,
)
from dpaudit.audit.errors import InconclusiveError, MechanismError, OptionError, RefutedError
from dpaudit.audit.records.suite import Suite
from dpaudit.audit.results.verdict import ExactVerdict, Verdict

CASES = [
    Case.dp_sgd(1.0, 0.1, 10), Case.dp_sgd(2.0, 0.1, 10), Case.dp_sgd(1.0, 0.2, 10), Case.dp_sgd(1.0, 0.1, 20),
    Case.dp_sgd(1.0, 0.1, 10, 1e-6), Case(((Laplace(2.0), 3), (PureDP(0.1), 2))), Case(((ApproxDP(0.1, 1e-7), 9),)),
]  # fmt: skip


def exact(case):
    return true_epsilon(case).upper


def test_an_accountant_at_the_upper_limit_holds_everywhere():
    result = check_accountant(exact, CASES, delta=lambda case, epsilon: case.delta)
    assert result.verdict is ExactVerdict.VERIFIED
    assert [row.outcome for row in result.rows] == [Outcome.HOLDS] * 14
    assert str(result) == "VERIFIED  exact: 14 claims hold, at most 0.0175% above the truth"
    assert result.raise_if_refuted() is result
    assert result.to_dict()["n_holds"] == 14


def test_a_claim_that_is_too_small_is_refuted_in_its_case_only():
    def wrong(case):
        return exact(case) * (0.99 if case.mechanisms[0][0] == Gaussian(2.0, 0.1) else 1.2)

    result = check_accountant(wrong, CASES)
    (row,) = result.those(Outcome.TOO_SMALL)
    assert row.case == CASES[1]
    assert row is result.worst
    assert row.error == pytest.approx(-0.01, abs=1e-4)
    assert result.verdict is ExactVerdict.REFUTED
    assert str(result).splitlines() == [
        "REFUTED  wrong: 1 of 7 claims is too small (certain); 10 x Gaussian 2, rate 0.1;",
        "  delta 1e-05: epsilon >= 0.7984, claimed 0.7905",
        "  largest errors: 0.998% below the truth, 20% above",
        "  next: print(result.table()) has all cases; dpaudit.accountants.true_epsilon(case) has the limits",
    ]
    with pytest.raises(RefutedError):
        result.raise_if_refuted()
    assert len(result.table().splitlines()) == 7
    of_delta = check_accountant(exact, CASES[:1], delta=lambda case, epsilon: 0.9 * case.delta)
    assert [row.outcome for row in of_delta.rows] == [Outcome.HOLDS, Outcome.TOO_SMALL]
    assert "epsilon 2.85" in str(of_delta)
    assert "delta >= 9.99" in str(of_delta)


def test_refusals_are_coverage_and_not_errors():
    def partial(case):
        if case.adjacency == "add-remove" and len(case.mechanisms) == 1 and case.delta == 1e-5:
            return exact(case)
        raise ValueError("not this one")

    result = check_accountant(partial, CASES)
    assert result.verdict is ExactVerdict.VERIFIED
    assert len(result.those(Outcome.REFUSED)) == 2
    assert "refused: 2 cases, such as ValueError: not this one" in str(result)
    nothing = check_accountant(lambda case: "much", CASES[:2], name="text")
    assert str(nothing).startswith(
        "UNDETERMINED  text: it refused all of 2 cases\n  refused: 2 cases, such as it returned 'much'"
    )
    with pytest.raises(InconclusiveError):
        nothing.raise_if_refuted()


def test_what_is_no_epsilon():
    for claim in (-1.0, -math.inf, 0.0, math.inf, math.nan):
        result = check_accountant(lambda case, claim=claim: claim, CASES[:1])
        (row,) = result.rows
        outcome = Outcome.UNDECIDED if math.isnan(claim) else Outcome.TOO_SMALL if claim <= 0.0 else Outcome.HOLDS
        assert row.outcome is outcome, claim
        assert ("undecided: 1 claim between the limits or not a number" in str(result)) == math.isnan(claim)


def test_a_shortfall_within_the_limits_is_undecided_unless_it_is_small():
    low, high = true_epsilon(CASES[0], tolerance=1e-3)
    between = lambda case: high - 0.25 * (high - low)  # noqa: E731
    (row,) = check_accountant(between, CASES[:1], tolerance=1e-2).rows
    assert row.outcome is Outcome.HOLDS
    assert row.error == 0.0
    assert replace(row, true=type(row.true)(low, 1.1 * high)).outcome is Outcome.UNDECIDED


def test_the_rounding_of_an_accountant_is_no_shortfall():
    """Limits of guarantees are exact to 14 digits."""
    case, nothing = Case(((PureDP(0.1), 30),), 0.0), Case(((Laplace(10.0), 1),), 0.5)
    by_case = {case: 3.0 * (1.0 - 1e-12), nothing: -1e-16}
    assert check_accountant(by_case.__getitem__, list(by_case)).verdict is ExactVerdict.VERIFIED
    assert check_accountant(lambda case: 3.0 * (1.0 - 1e-8), [case]).verdict is ExactVerdict.REFUTED


@pytest.mark.parametrize(
    ("place", "claim", "name"),
    [(1, 9.5, "noise multiplier 2"), (2, 8.5, "sampling rate 0.2"), (3, 8.5, "steps 20"), (4, 8.5, "delta 1e-05")],
)
def test_claims_in_the_wrong_order_are_shown(place, claim, name):
    """Where a parameter that adds to the loss lowers the claim; each claim for itself is large enough."""
    by_case = {CASES[0]: 9.0, CASES[place]: claim}
    result = check_accountant(by_case.__getitem__, list(by_case), name="table")
    assert result.verdict is ExactVerdict.VERIFIED
    (shown,) = result.not_monotone
    assert f"at {name}" in shown
    assert check_accountant(exact, CASES).not_monotone == ()


def test_the_grid_asks_for_every_kind_of_case():
    cases = (*GRID, *OTHER_ADJACENCIES)
    assert len(cases) == len(set(cases)) == 48
    kinds = {type(mechanism) for case in GRID for mechanism, _ in case.mechanisms}
    assert kinds == {Gaussian, Laplace, PureDP, ApproxDP}
    assert {case.adjacency for case in GRID} == {"add-remove"}  # what an accountant means that reads no adjacency
    assert {case.adjacency for case in OTHER_ADJACENCIES} == {"replace", "zero-out"}


def test_options_are_checked():
    with pytest.raises(OptionError, match="cases is empty"):
        check_accountant(exact, [])
    with pytest.raises(OptionError, match=r"tolerance=2 is not a fraction"):
        check_accountant(exact, CASES, tolerance=2)


# Filters and odometers.


class Basic:
    """The sums of ε and δ, which is correct."""

    budget = 1.0, 1e-6

    def __init__(self):
        self.asked = []

    def allows(self, epsilon, delta):
        return epsilon <= self.budget[0] and delta <= self.budget[1]

    def is_valid(self, request):
        return request.epsilon >= 0 and request.delta >= 0

    def spend(self, request):
        if not self.is_valid(request):
            raise ValueError
        totals = [math.fsum(each[place] for each in [*self.asked, request]) for place in (0, 1)]
        if not self.allows(*totals):
            return False
        self.asked.append(request)
        return True

    def spent(self):
        return tuple(math.fsum(each[place] for each in self.asked) for place in (0, 1))

    def child(self):
        return self


def without_limit_of_delta(self, epsilon, delta):
    return epsilon <= self.budget[0]


class NotANumber(Basic):
    """NaN makes all later comparisons false."""

    def is_valid(self, request):
        return not request.epsilon < 0 and not request.delta < 0

    def allows(self, epsilon, delta):
        return not (epsilon > self.budget[0] or delta > self.budget[1])


class AfterRefusal(Basic):
    """It subtracts what it refuses, and adds it again where it was never subtracted."""

    def spend(self, request):
        accepted = super().spend(request)
        if not accepted and self.asked:
            self.asked.pop()
        return accepted


class Siblings(Basic):
    """The second child has a budget of its own."""

    children = 0

    def child(self):
        self.children += 1
        return self if self.children == 1 else Basic()


class Infinite(Basic):
    """A refused request is taken off, and added again."""

    refunded = 0.0

    def spend(self, request):
        if request.epsilon == math.inf:
            self.refunded = math.inf
        return super().spend(request)

    def allows(self, epsilon, delta):
        return super().allows(epsilon - self.refunded, delta)


def mean_spent(self):
    epsilon, delta = Basic.spent(self)
    return epsilon / math.sqrt(max(len(self.asked), 1)), delta


def spent_without_small_requests(self):
    return math.fsum(each.epsilon for each in self.asked if each.epsilon > 1e-3), Basic.spent(self)[1]


def faulty(name, **methods):
    """A filter that is correct but for some methods."""
    return type(name, (Basic,), methods)


NEGATIVE = faulty("Negative", is_valid=lambda self, request: True)
FAULTY = [
    NEGATIVE, NotANumber, AfterRefusal, Siblings, Infinite,
    faulty("NoDelta", allows=without_limit_of_delta),
    faulty("Orphan", child=lambda self: Basic()),
    faulty("Average", spent=mean_spent),
    faulty("Rounded", spent=spent_without_small_requests),
]  # fmt: skip


@pytest.mark.parametrize("wrong", FAULTY)
def test_a_faulty_filter_is_refuted_and_its_requests_are_shortened(wrong):
    result = check_filter(wrong, Basic.budget)
    assert result.verdict is Verdict.REFUTED
    assert len(result.violation.requests) <= 6
    assert not result.violation.true.lower <= result.violation.stated.epsilon  # which may be NaN
    with pytest.raises(RefutedError):
        result.raise_if_refuted()
    again = check_filter(wrong, Basic.budget)
    assert str(again) == str(result)


def test_a_correct_filter_is_not_refuted():
    result = check_filter(Basic, Basic.budget)
    assert str(result) == (
        "NOT REFUTED  Basic: the budget (1, 1e-06) was never exceeded (116 sequences, 1,338 of 8,028 requests accepted)"
    )
    result.raise_if_refuted()


class Accurate(Basic):
    """It states ε alone, at the δ of its budget, and has no children."""

    budget = (1.0, 0.0)

    def spent(self):
        return super().spent()[0]

    def child(self):
        raise NotImplementedError("none")


class Concentrated:
    """ρ-zCDP of Gaussian noise."""

    budget = math.inf

    def __init__(self):
        self.rho = 0.0

    def spend(self, mechanism):
        rho = 0.5 / mechanism.noise_multiplier**2
        if self.rho + rho > self.budget:
            return False
        self.rho += rho


def test_an_epsilon_alone_is_stated_at_the_delta_of_the_budget():
    class Odometer(Concentrated):
        child = Accurate.child

        def spent(self):
            return self.rho + 2.0 * math.sqrt(self.rho * math.log(1e5))  # Bun & Steinke (2016), Lemma 3.6

    result = check_filter(Odometer, (1e3, 1e-5), mechanisms=[Gaussian(10.0)])
    assert result.verdict is Verdict.NOT_REFUTED
    assert "note: child() raised NotImplementedError: none" in str(result)


def test_a_budget_is_exceeded_by_the_mechanisms_that_are_given():
    stated, mechanisms = (0.1 + 2.0 * math.sqrt(0.1 * math.log(1e5)), 1e-5), [Gaussian(10.0), Gaussian(20.0)]
    for rho, verdict in ((0.1, Verdict.NOT_REFUTED), (0.2, Verdict.REFUTED)):
        result = check_filter(type("Curvature", (Concentrated,), {"budget": rho}), stated, mechanisms=mechanisms)
        assert result.verdict is verdict
        assert ("x Gaussian 10" in str(result)) == result.is_refuted


def test_a_budget_without_delta_is_asked_for_a_leak_if_it_was_given_as_a_pair():
    class NoLeak(Accurate):
        allows = without_limit_of_delta

    assert check_filter(Accurate, (1.0, 0.0)).verdict is Verdict.NOT_REFUTED
    assert check_filter(NoLeak, (1.0, 0.0)).verdict is Verdict.REFUTED
    assert check_filter(NoLeak, 1.0).verdict is Verdict.NOT_REFUTED


def test_an_odometer_that_raises_or_accepts_nothing():
    class Silent(Basic):
        def spend(self, request):
            raise RuntimeError

        def spent(self):
            raise RuntimeError("empty")

    result = check_filter(Silent, 1.0)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "accepted nothing" in str(result)
    assert "note: spent() raised RuntimeError: empty" in str(result)


def test_objects_of_another_kind_are_refused():
    with pytest.raises(MechanismError, match=r"without a method spend\(request\)"):
        check_filter(dict, 1.0)
    with pytest.raises(OptionError, match="budget is missing"):
        check_filter(type("Only", (), {"spend": lambda self, request: True}))

    class Words(Basic):
        def spent(self):
            return "much"

    with pytest.raises(MechanismError, match=r"spent\(\) returned 'much'; return epsilon"):
        check_filter(Words)


def test_results_are_entries_of_a_suite(tmp_path):
    results = [check_accountant(exact, CASES[:1]), check_filter(NEGATIVE, Basic.budget)]
    assert [result.to_dict()["verdict"] for result in results] == ["verified", "refuted"]
    for result in results:
        assert result._repr_html_()
        path = tmp_path / "result.json"
        dpaudit.save(result, path)
        assert json.loads(path.read_text(encoding="utf-8"))
        assert isinstance(dpaudit.load(path), Suite)
