"""The reference mechanisms, each with a function that draws a pair of its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import networkx as nx
import numpy as np

from ....mechanisms import (
    BinomialMechanism,
    DegreeHistogramMechanism,
    DiscreteGaussianMechanism,
    EdgeCountMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeometricMechanism,
    GroupTightMechanism,
    HistogramMechanism,
    Interval,
    IntervalOf,
    LaplaceByInverseCDF,
    LaplaceMechanism,
    LocalGaussianMechanism,
    NameAndShame,
    ParallelComposition,
    PermuteAndFlip,
    PostedPriceAuction,
    RandomisedResponse,
    RandomisedResponseFold,
    RareLeakLaplace,
    ReportNoisyMax,
    SequentialComposition,
    SparseVector,
    UpAndDown,
    VectorGaussianMechanism,
)

DrawPair: TypeAlias = Callable[[np.random.Generator], tuple[Any, Any]]


def numbers(step: float, *, is_whole: bool = False) -> DrawPair:
    """Draw answers that differ by at most `step`, in half of the pairs by exactly `step`."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        x, share = float(rng.normal(0.0, 30.0)), float(rng.choice([-1.0, 1.0, *rng.uniform(-1.0, 1.0, 2)]))
        return (round(x), round(x) + round(share * step)) if is_whole else (x, x + share * step)

    return pair


def vectors(n: int, step: float, norm: Literal["l2", "linf"]) -> DrawPair:
    """Draw vectors that differ by at most `step` in the norm."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        x, move = rng.normal(0.0, 3.0, n), rng.uniform(-1.0, 1.0, n)
        length = np.max(np.abs(move)) if norm == "linf" else np.linalg.norm(move)
        return x, x + move * (step * rng.choice([1.0, rng.random()]) / length)

    return pair


def rows(values: list[Any], *, most: int = 6) -> DrawPair:
    """Draw collections of which one has one more row, in either order."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        held = rng.choice(values, rng.integers(1, most + 1)).tolist()
        return (held, held[:-1]) if rng.random() < 0.5 else (held[:-1], held)

    return pair


def values(k: int) -> DrawPair:
    """Draw two of k values."""
    return lambda rng: (int(rng.integers(k)), int(rng.integers(k)))


def replaced(values: list[Any], *, most: int = 5) -> DrawPair:
    """Draw collections of which one row was replaced."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        x = rng.choice(values, rng.integers(1, most + 1)).tolist()
        y = list(x)
        y[int(rng.integers(len(y)))] = rng.choice(values).item()
        return x, y

    return pair


def edges(rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw graphs of six nodes of which one has one more edge, in either order."""
    x = nx.gnp_random_graph(6, float(rng.uniform(0.2, 0.8)), seed=int(rng.integers(2**31)))
    y = x.copy()
    one, other = rng.choice(6, 2, replace=False).tolist()
    (y.remove_edge if y.has_edge(one, other) else y.add_edge)(one, other)
    return x, y


def _far(rng: np.random.Generator) -> tuple[Any, Any]:
    x, y = rng.normal(0.0, 9.0, 2).tolist()
    return x, y


_TWO = SequentialComposition((VectorGaussianMechanism(1.0, 1e-5), GeometricMechanism(0.5, query=len)))
_PARTS = ParallelComposition(
    [GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)], IntervalOf((1.0, 3.0))
)
REFERENCES: dict[str, tuple[Any, DrawPair]] = {
    "LaplaceMechanism": (LaplaceMechanism(0.5, sensitivity=2.0), numbers(2.0)),
    "LaplaceMechanism of a count": (LaplaceMechanism(1.0, query=len), rows([1.0, 2.0])),
    "LaplaceByInverseCDF": (LaplaceByInverseCDF(0.5, sensitivity=2.0), numbers(2.0)),
    "GeometricMechanism": (GeometricMechanism(0.5, sensitivity=2), numbers(2.0, is_whole=True)),
    "GaussianMechanism": (GaussianMechanism(1.0, 1e-5), numbers(1.0)),
    "GaussianMechanism, classical": (GaussianMechanism(0.5, 0.01, calibration="classical"), numbers(1.0)),
    "DiscreteGaussianMechanism": (DiscreteGaussianMechanism(1.3, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    "BinomialMechanism": (BinomialMechanism(50, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    "VectorGaussianMechanism": (VectorGaussianMechanism(1.0, 1e-5), vectors(3, 1.0, "l2")),
    "LocalGaussianMechanism": (LocalGaussianMechanism(1.0, 1e-5, Interval(-1, 3)), _far),
    "HistogramMechanism": (HistogramMechanism(1.0, k=3), rows([0, 1, 2])),
    "HistogramMechanism, geometric": (
        HistogramMechanism(1.0, k=3, sensitivity=2, noise="geometric"),
        rows([0, 1, 2]),
    ),
    "RandomisedResponse": (RandomisedResponse(1.0), values(2)),
    "RandomisedResponse of six": (RandomisedResponse(2.0, k=6), values(6)),
    "ExponentialMechanism": (ExponentialMechanism(1.0), vectors(4, 1.0, "linf")),
    "ReportNoisyMax": (ReportNoisyMax(1.0), vectors(4, 1.0, "linf")),
    "ReportNoisyMax, Gumbel": (ReportNoisyMax(2.0, noise="gumbel"), vectors(4, 1.0, "linf")),
    "ReportNoisyMax, exponential": (ReportNoisyMax(1.0, noise="exponential"), vectors(4, 1.0, "linf")),
    "PermuteAndFlip": (PermuteAndFlip(1.0), vectors(4, 1.0, "linf")),
    "SequentialComposition": (_TWO, vectors(2, 1.0, "l2")),
    "ParallelComposition": (_PARTS, rows([0.0, 1.0, 2.0, 3.01])),
    "RandomisedResponseFold": (RandomisedResponseFold(0.25, 30), values(2)),
    "UpAndDown": (UpAndDown(0.25, 30), values(4)),
    "SparseVector": (SparseVector(1.0), vectors(3, 1.0, "linf")),
    "SparseVector, refreshed": (SparseVector(2.0, 2, threshold=0.5, refresh=True), vectors(3, 1.0, "linf")),
    "PostedPriceAuction": (PostedPriceAuction(2.0, [1.0, 2.0, 3.01, 4.0]), rows([0.5, 1.0, 2.5, 3.01, 4.0])),
    "EdgeCountMechanism": (EdgeCountMechanism(0.5), edges),
    "DegreeHistogramMechanism": (DegreeHistogramMechanism(0.5, 6), edges),
    "NameAndShame": (NameAndShame(0.05), replaced([1, 2, 3])),
    "RareLeakLaplace": (RareLeakLaplace(0.5, 0.01), numbers(1.0)),
    "GroupTightMechanism": (GroupTightMechanism(1.0, 0.01, query=len), rows([1.0, 2.0])),
}
"""By name: the mechanism, and a function that draws x and y from a generator."""
