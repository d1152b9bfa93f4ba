"""The catalogue of bugs: every one is found with the runs that it states, and none of the mechanisms done right is.

A correct mechanism is refuted here with probability 1e-8 at most each, and 2e-6 together. A bug is missed with 1e-3 at
most each; the seed is fixed.
"""

import math
import re

import pytest

from dpaudit import check
from dpaudit.audit.claims.pure_approx_gaussian import ApproxDP
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.experiments.catalogue.entries import entries
from dpaudit.experiments.catalogue.fault import strength_by_laws
from dpaudit.mechanisms import faulty

FAULTS = {fault.name: fault for fault in entries()}
IN_VALUES = [name for name, fault in FAULTS.items() if not fault.bits]
# Each mechanism done right once on a pair, whatever was wrong with its twins.
RIGHT = list(
    {(repr(f.correct), repr(f.x), repr(f.y), f.claim): name for name, f in FAULTS.items() if not f.bits}.values()
)
MISSED, ALARM = 1e-6, 1e-8
ALARM_RUNS = 100_000  # of a mechanism done right, at most: a false alarm does not wait for millions


def audit(fault, mechanism, alpha, runs):
    return check(
        mechanism,
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        distance=fault.distance,
        runs=runs,
        alpha=alpha,
        seed=0,
        jobs=1,
    )


def test_sixty_causes_over_all_families():
    assert len(FAULTS) == len(entries()) >= 60
    families = {fault.family for fault in FAULTS.values()}
    assert len(families) >= 15
    assert len(FAULTS) * ALARM < 2e-6


def test_names_and_texts():
    causes = [fault.cause for fault in FAULTS.values()]
    assert len(set(causes)) == len(causes)
    for name, fault in FAULTS.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", name)
        for text in (fault.cause, fault.practice):
            assert text
            assert "\n" not in text
            assert not text.endswith(".")


def test_every_faulty_mechanism_is_in_it():
    """But the one that keeps its claim, and what the others are made of."""
    kinds = {getattr(faulty, name) for name in faulty.__all__}
    shown = {type(fault.mechanism) for fault in FAULTS.values()}
    assert kinds - shown == {faulty.Twin, faulty.Flaw, faulty.ClosedEndLaplace, faulty.RangedCount}


@pytest.mark.parametrize("name", FAULTS)
def test_the_pair_is_at_its_distance_and_breaks_the_claim(name):
    fault = FAULTS[name]
    fault.adjacency.check(fault.x, fault.y, fault.distance)
    assert fault.exact is None or fault.exact > fault.claim.strength
    if fault.truth is not None:
        kind = ApproxDP if isinstance(fault.claim, ApproxDP) else type(fault.claim)
        assert isinstance(fault.truth, kind)
        held = fault.truth.delta if kind is ApproxDP else fault.truth.strength
        assert held > fault.claim.strength
        assert fault.exact is not None
        assert fault.exact <= held * (1 + 1e-9)
    if fault.exact == math.inf:
        assert fault.truth is None


def test_what_is_done_right_keeps_the_claim_by_its_laws():
    known = 0
    for name, fault in FAULTS.items():
        strength = strength_by_laws(fault.correct, (fault.x, fault.y), fault.claim)
        known += strength is not None
        assert strength is None or strength <= fault.claim.strength * (1 + 1e-9), name
    assert known > len(FAULTS) / 2


def test_mechanisms_read_as_one_short_line():
    for fault in FAULTS.values():
        for mechanism in (fault.mechanism, fault.correct):
            name = as_sampler(mechanism).name
            assert len(name) <= 80
            assert "\n" not in name
            assert " at 0x" not in name


@pytest.mark.parametrize("name", IN_VALUES)
def test_it_is_found(name):
    fault = FAULTS[name]
    result = audit(fault, fault.mechanism, MISSED, fault.runs)
    assert result.is_refuted
    assert fault.exact is None or result.bound <= fault.exact  # but for a chance of MISSED


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_done_right_is_not(name):
    fault = FAULTS[name]
    assert not audit(fault, fault.correct, ALARM, min(fault.runs, ALARM_RUNS)).is_refuted
