"""Replays of the reference mechanisms on random neighbours find no excess; those of faulty ones name the fault."""

import math

import numpy as np
import pytest

from dpaudit import replay
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.experiments.benchmarks.replays import REFERENCES
from dpaudit.experiments.catalogue.entries import entries

BOUNDED = {"LaplaceMechanism", "GeometricMechanism", "GaussianMechanism", "VectorGaussianMechanism"} | {
    "LocalGaussianMechanism", "HistogramMechanism", "RandomisedResponse", "ExponentialMechanism",
    "SequentialComposition", "ParallelComposition", "PostedPriceAuction", "EdgeCountMechanism",
    "DegreeHistogramMechanism", "RandomisedResponseFold",
}  # fmt: skip
"""Those whose noise is given or added to their answers; the others decide something by their noise and stay open.
The folded responses are here on a pair of equal answers, where all counts lead to the same output."""


QUICK = {"GaussianMechanism", "HistogramMechanism, geometric", "ExponentialMechanism", "SparseVector"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.evidence) for name in REFERENCES]
)
def test_right_mechanisms_have_no_excess(name):
    """`dpaudit bench replays --table false-findings` does the same on a thousand pairs each."""
    mechanism, pair = REFERENCES[name]
    result = replay(mechanism, *pair(np.random.default_rng(7)), seed=0)
    assert not result.has_excess, str(result)
    assert not result.unrecorded, str(result)
    is_bounded = result.verdict is ReplayVerdict.BOUNDED
    assert is_bounded == (type(mechanism).__name__ in BOUNDED) or (not is_bounded and not result.calls), str(result)


FAULTS = {fault.name: fault for fault in entries()}
NEEDED = {
    "sensitivity-understated": 1.0, "variance-as-deviation": math.inf, "exponential-without-two": None,
    "loop-charged-once": 1.5, "truth-among-the-lies": None, "local-sensitivity": 1.5,
}  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_faulty_mechanisms_have_an_excess(name):
    fault = FAULTS[name]
    result = replay(fault.mechanism, fault.x, fault.y, claim=fault.claim)
    assert result.verdict is ReplayVerdict.EXCESS, str(result)
    if NEEDED[name] is not None:
        assert result.loss.worst == pytest.approx(NEEDED[name], rel=1e-4)
