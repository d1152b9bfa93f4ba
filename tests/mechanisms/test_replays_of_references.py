"""Replays of the reference mechanisms on random neighbours find no excess; those of faulty ones name the fault."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import replay
from dpaudit.audit.replay.replay_result import ReplayVerdict
from dpaudit.mechanisms import (
    BinomialMechanism,
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeometricMechanism,
    HistogramMechanism,
    Interval,
    IntervalOf,
    LaplaceByInverseCDF,
    LaplaceMechanism,
    LocalGaussianMechanism,
    ParallelComposition,
    PermuteAndFlip,
    RandomisedResponse,
    RandomisedResponseFold,
    ReportNoisyMax,
    SequentialComposition,
    SparseVector,
    VectorGaussianMechanism,
)
from dpaudit.mechanisms.faulty import (
    DeviationAsScaleLaplace,
    ExponentialMissingFactorTwo,
    HalfNoiseHistogram,
    HalfSensitivityExponential,
    InvertedScaleLaplace,
    LocalSensitivityLaplace,
    OverlappingPartCounts,
    TruthAmongTheLies,
    UnclippedLocalGaussian,
    UndercountedComposition,
    UnderstatedSensitivityLaplace,
    VarianceAsScaleGaussian,
)


def numbers(step, *, is_whole=False):
    """Answers that differ by at most `step`, in half of the pairs by exactly `step`."""

    def pair(rng):
        x, share = rng.normal(0.0, 30.0), rng.choice([-1.0, 1.0, *rng.uniform(-1.0, 1.0, 2)])
        return (round(x), round(x) + round(share * step)) if is_whole else (x, x + share * step)

    return pair


def vectors(n, step, norm):
    """Vectors that differ by at most `step` in the norm."""

    def pair(rng):
        x, move = rng.normal(0.0, 3.0, n), rng.uniform(-1.0, 1.0, n)
        length = np.max(np.abs(move)) if norm == "linf" else np.linalg.norm(move)
        return x, x + move * (step * rng.choice([1.0, rng.random()]) / length)

    return pair


def rows(values, *, most=6):
    """Collections of which one has one more row, in either order."""

    def pair(rng):
        held = rng.choice(values, rng.integers(1, most + 1)).tolist()
        return (held, held[:-1]) if rng.random() < 0.5 else (held[:-1], held)

    return pair


def values(k):
    return lambda rng: tuple(map(int, rng.choice(k, 2)))


TWO = SequentialComposition((VectorGaussianMechanism(1.0, 1e-5), GeometricMechanism(0.5, query=len)))
PARTS = ParallelComposition(
    [GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)], IntervalOf((1.0, 3.0))
)
RIGHT = [
    (LaplaceMechanism(0.5, sensitivity=2.0), numbers(2.0)),
    (LaplaceMechanism(1.0, query=len), rows([1.0, 2.0])),
    (LaplaceByInverseCDF(0.5, sensitivity=2.0), numbers(2.0)),
    (GeometricMechanism(0.5, sensitivity=2), numbers(2.0, is_whole=True)),
    (GaussianMechanism(1.0, 1e-5), numbers(1.0)),
    (GaussianMechanism(0.5, 0.01, calibration="classical"), numbers(1.0)),
    (DiscreteGaussianMechanism(1.3, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    (BinomialMechanism(50, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    (VectorGaussianMechanism(1.0, 1e-5), vectors(3, 1.0, "l2")),
    (LocalGaussianMechanism(1.0, 1e-5, Interval(-1, 3)), lambda rng: tuple(rng.normal(0.0, 9.0, 2).tolist())),
    (HistogramMechanism(1.0, k=3), rows([0, 1, 2])),
    (HistogramMechanism(1.0, k=3, sensitivity=2, noise="geometric"), rows([0, 1, 2])),
    (RandomisedResponse(1.0), values(2)),
    (RandomisedResponse(2.0, k=6), values(6)),
    (ExponentialMechanism(1.0), vectors(4, 1.0, "linf")),
    (ReportNoisyMax(1.0), vectors(4, 1.0, "linf")),
    (ReportNoisyMax(2.0, noise="gumbel"), vectors(4, 1.0, "linf")),
    (PermuteAndFlip(1.0), vectors(4, 1.0, "linf")),
    (TWO, vectors(2, 1.0, "l2")),
    (PARTS, rows([0.0, 1.0, 2.0, 3.01])),
    (RandomisedResponseFold(0.25, 30), values(2)),
    (SparseVector(1.0), vectors(3, 1.0, "linf")),
]  # fmt: skip
BOUNDED = {"LaplaceMechanism", "GeometricMechanism", "GaussianMechanism", "VectorGaussianMechanism"} | {
    "LocalGaussianMechanism", "HistogramMechanism", "RandomisedResponse", "ExponentialMechanism",
    "SequentialComposition", "ParallelComposition",
}  # fmt: skip
"""Those whose noise is given or added to their answers; the others decide something by their noise and stay open."""


def outcomes(mechanism, pair, number):
    """The results of replays on random pairs, with different paths."""
    rng = np.random.default_rng(7)
    for seed in range(number):
        yield replay(mechanism, *pair(rng), seed=seed)


@pytest.mark.parametrize(("mechanism", "pair"), RIGHT, ids=[type(each).__name__ for each, _ in RIGHT])
def test_right_mechanisms_have_no_excess(mechanism, pair):
    for result in outcomes(mechanism, pair, 5):
        assert not result.has_excess, str(result)
        assert not result.unrecorded, str(result)
        is_bounded = result.verdict is ReplayVerdict.BOUNDED
        assert is_bounded == (type(mechanism).__name__ in BOUNDED) or (not is_bounded and not result.calls), str(result)


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "needed"),
    [
        (UnderstatedSensitivityLaplace(0.5), 7.0, 9.0, 1.0),
        (InvertedScaleLaplace(0.5), 7.0, 8.0, 2.0),
        (DeviationAsScaleLaplace(0.5), 7.0, 8.0, 0.5 * 2**0.5),
        (VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1), 1.0, 1.1, math.inf),
        (HalfNoiseHistogram(1.0, k=3), [0, 2, 2], [0, 2, 0], 2.0),
        (ExponentialMissingFactorTwo(1.0), [0.0] * 50, [1.0, *[-1.0] * 49], None),
        (HalfSensitivityExponential(1.0), [2.0, -1.0], [1.0, 0.0], None),
        (UndercountedComposition(LaplaceMechanism(0.5), 3), 7.0, 8.0, 1.5),
        (OverlappingPartCounts(0.5, (0.0, 1.0, 3.0, 3.01)), [1.0, 1.0], [1.0], 1.0),
        (UnclippedLocalGaussian(1.0, 1e-5, Interval(-1, 3)), 12.0, -9.0, math.inf),
        (TruthAmongTheLies(1.0, k=3), 1, 2, None),
        (LocalSensitivityLaplace(0.5), [0, 0], [0], 1.5),
    ],
    ids=lambda each: type(each).__name__ if hasattr(each, "claim") else "",
)
def test_faulty_mechanisms_have_an_excess(mechanism, x, y, needed):
    result = replay(mechanism, x, y)
    assert result.verdict is ReplayVerdict.EXCESS, str(result)
    if needed is not None:
        assert result.loss.worst == pytest.approx(needed, rel=1e-4)
