"""Replays of the reference mechanisms on random neighbours find no excess; those of faulty ones name the fault."""

import math

import numpy as np
import pytest

from dpaudit import replay
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.experiments.benchmarks.replays import REFERENCES
from dpaudit.mechanisms import LaplaceMechanism
from dpaudit.mechanisms.faulty import (
    ExponentialMissingFactorTwo,
    LocalSensitivityLaplace,
    TruthAmongTheLies,
    UndercountedComposition,
    UnderstatedSensitivityLaplace,
    VarianceAsScaleGaussian,
)

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


FAULTY = [
    (UnderstatedSensitivityLaplace(0.5), 7.0, 9.0, 1.0),
    (VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1), 1.0, 1.1, math.inf),
    (ExponentialMissingFactorTwo(1.0), [0.0] * 50, [1.0, *[-1.0] * 49], None),
    (UndercountedComposition(LaplaceMechanism(0.5), 3), 7.0, 8.0, 1.5),
    (TruthAmongTheLies(1.0, k=3), 1, 2, None),
    (LocalSensitivityLaplace(0.5), [0, 0], [0], 1.5),
]


@pytest.mark.parametrize(("mechanism", "x", "y", "needed"), FAULTY, ids=[type(row[0]).__name__ for row in FAULTY])
def test_faulty_mechanisms_have_an_excess(mechanism, x, y, needed):
    result = replay(mechanism, x, y)
    assert result.verdict is ReplayVerdict.EXCESS, str(result)
    if needed is not None:
        assert result.loss.worst == pytest.approx(needed, rel=1e-4)
