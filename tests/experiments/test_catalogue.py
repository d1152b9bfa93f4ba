"""The catalogue of bugs: audits find every bug with the stated runs, and refute none of the right mechanisms.

`make evidence` makes all of the audits, `make test` those of two bugs. A right mechanism is refuted here with
probability at most 1e-8 each and 2e-6 together. A bug is missed with probability at most 1e-3 each; the seed is fixed.
"""

import math
import re
from functools import partial

import pytest

from dpaudit import check
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.datasets.adjacency import Replace, Within
from dpaudit.audit.errors import ClaimError
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.experiments.cases.experiment import parameter_by_distributions
from dpaudit.experiments.catalogue.entries import entries
from dpaudit.experiments.catalogue.fault import NeighbouringPair
from dpaudit.experiments.catalogue.fault import fault as new_fault
from dpaudit.mechanisms import LaplaceMechanism, NameAndShame, exact_delta, exact_epsilon, faulty
from dpaudit.mechanisms.faulty import VarianceAsScaleGaussian

FAULTS = {fault.name: fault for fault in entries()}
IN_VALUES = [name for name, fault in FAULTS.items() if fault.floating_point == "ignore"]
QUICK = ("scale-epsilon", "raises-for-no-rows")
IS_AUDITED = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.evidence) for name in IN_VALUES]
)
MISSED, ALARM = 1e-6, 1e-8
ALARM_RUNS = 5_000  # at most of a right mechanism: a false alarm does not need millions


def audit(fault, mechanism, alpha, runs):
    options = fault.options | {"floating_point": "ignore"}
    return check(mechanism, fault.x, fault.y, runs=runs, alpha=alpha, seed=0, jobs=1, **options)


def test_names_and_texts():
    causes = [fault.cause for fault in FAULTS.values()]
    assert len(FAULTS) == len(entries()) == len(set(causes)) >= 60
    assert len({fault.family for fault in FAULTS.values()}) >= 15
    assert len(FAULTS) * ALARM < 2e-6
    for name, fault in FAULTS.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", name)
        assert "\n" not in fault.cause + fault.practice
        assert fault.cause[-1:] not in ("", "."), name
        assert fault.practice.endswith("."), name
        for mechanism in (fault.mechanism, fault.correct):
            assert re.fullmatch(r"(?!.* at 0x).{1,80}", as_sampler(mechanism).name), name
    assert FAULTS["sampling-not-done"].cause == "All rows used, with the ε of a sample of half"
    variant = FAULTS["noise-one-sided"]  # from its docstring
    assert variant.cause == "Exponential noise instead of Laplace noise, never negative: no finite ε"
    assert variant.practice.startswith("In practice, a count may not be understated")


def test_the_bounded_parameter_is_stated():
    """A claim keeps its bounded parameter unless the entry states another, and the exact privacy parameter follows."""
    pair, flaw = NeighbouringPair(0.0, 1.0, Within("l2")), VarianceAsScaleGaussian(8.0, 1e-5)
    distributions = flaw.distribution(0.0), flaw.distribution(1.0)
    for bound_on, exact in ((None, exact_epsilon(*distributions, 1e-5)), ("delta", exact_delta(*distributions, 8.0))):
        entry = new_fault("Gaussian", "variance", flaw, pair, correct=None, bound_on=bound_on)
        assert (entry.claim, entry.exact) == (ApproxDP(8.0, 1e-5, bound_on or "epsilon"), exact)


def test_a_bound_on_epsilon_that_says_nothing_is_refused():
    """Of a claim with ε = 0, and where no finite ε holds although a truth is known."""
    row = NeighbouringPair([7], [8], Replace())
    claim = NameAndShame(0.01).claim
    entry = partial(new_fault, "exposure", "twice", NameAndShame(0.02), row, correct=NameAndShame(0.01), claim=claim)
    for bound_on in (None, "epsilon"):
        with pytest.raises(
            ClaimError, match=r"\(0, 0\.01\)-DP is a claim only on delta; use ApproxDP\(.*bound_on='delta'"
        ):
            entry(bound_on=bound_on)
    flaw = entry(bound_on="delta")
    assert (flaw.exact, flaw.truth) == (pytest.approx(0.02), ApproxDP(0.0, 0.02))
    with pytest.raises(ClaimError, match=r"no finite epsilon .* although the truth is \(0, 0\.02\)-DP"):
        entry(claim=ApproxDP(1.0, 0.01))


def test_claim_and_truth_are_of_one_kind():
    """A variant that keeps the default claim, PureDP, of a mechanism with a δ; it has no bound to choose either."""
    pair, flaw = NeighbouringPair(0.0, 1.0, Within("l2")), VarianceAsScaleGaussian(8.0, 1e-5)
    entry = partial(new_fault, "Gaussian", "variance", flaw, pair, correct=None, claim=PureDP(8.0))
    with pytest.raises(ClaimError, match=r"claim, 8-DP, is PureDP, but the truth, .*, is ApproxDP; override `claim`"):
        entry()
    with pytest.raises(ClaimError, match=r"8-DP has no delta, so bound_on='delta' does not apply; override `claim`"):
        entry(bound_on="delta")


def test_the_exact_parameter_at_a_distance_is_per_step():
    pair = NeighbouringPair(0.0, 6.0, Within("l1", 2.0), distance=3)
    entry = new_fault("Laplace", "half", LaplaceMechanism(0.5), pair, correct=None, truth=PureDP(1.0))
    assert entry.exact == pytest.approx(entry.truth.epsilon)


def test_every_faulty_mechanism_is_in_it():
    """Except the one that keeps its claim, and the parts of the others."""
    kinds = {getattr(faulty, name) for name in faulty.__all__}
    shown = {type(fault.mechanism) for fault in FAULTS.values()}
    assert kinds - shown == {faulty.Variant, faulty.Flaw, faulty.ClosedEndLaplace}


def test_every_pair_is_at_its_distance_and_breaks_the_claim():
    for name, fault in FAULTS.items():
        fault.adjacency.check(fault.x, fault.y, fault.distance)
        assert fault.exact is None or fault.exact > fault.claim.parameter, name
        assert fault.exact != math.inf or fault.truth is None, name
        if fault.truth is not None:
            assert isinstance(fault.truth, type(fault.claim)), name
            held = fault.truth.delta if fault.claim.parameter_name == "delta" else fault.truth.parameter
            assert held > fault.claim.parameter, name
            assert fault.exact is not None, name
            assert fault.exact <= held * (1 + 1e-9), name


def test_right_mechanisms_keep_the_claim_by_their_distributions():
    """All of them, also those of which another of the same kind is audited."""
    known = 0
    for name, fault in FAULTS.items():
        parameter = parameter_by_distributions(fault.correct, (fault.x, fault.y), fault.claim)
        known += parameter is not None
        assert parameter is None or parameter <= fault.claim.parameter * (1 + 1e-9), name
    assert known > len(FAULTS) / 2


@IS_AUDITED
def test_it_is_found(name):
    """With some of the stated runs, or else with all of them."""
    fault = FAULTS[name]
    found = (audit(fault, fault.mechanism, MISSED, fault.runs // share) for share in (64, 16, 4, 1))
    result = next((result for result in found if result.is_refuted), None)
    assert result is not None
    assert fault.exact is None or result.bound <= fault.exact  # except with probability 4 * MISSED


@IS_AUDITED
def test_the_right_mechanism_is_not_refuted(name):
    fault = FAULTS[name]
    assert not audit(fault, fault.correct, ALARM, min(fault.runs, ALARM_RUNS)).is_refuted
