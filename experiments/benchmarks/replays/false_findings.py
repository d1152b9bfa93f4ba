"""Replays of mechanisms that keep their claims, on random neighbours: an excess would be a false finding."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import networkx as nx
import numpy as np

from ....audit.search.pairs_for_domain import pairs_of
from ....audit.search.pool import new_pool
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
from ...libraries.diffprivlib_fits import diffprivlib_fits
from ...libraries.installed import is_installed
from ..core.bench_json import Figures, Row, at_most, columns
from ..core.effort import Bench, Effort, Task, counted, seeds_of
from .verdicts import verdicts

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


_QUICK_PAIRS, _BATCH = 3, 50
_TABLE = 36  # number for `seeds_of`
_QUICK = ("LaplaceMechanism", "SparseVector")
_COUNTS = ("pairs", "excess", "bounded", "open", "raised")


def _right_fits() -> list[str]:
    return [fit.name for fit in diffprivlib_fits() if fit.is_right]


def _subject(name: str) -> tuple[Any, DrawPair]:
    """Return a mechanism with a function that draws a pair of its neighbours; a fit needs diffprivlib."""
    return REFERENCES[name] if name in REFERENCES else _fitted(name)


@cache
def _fitted(name: str) -> tuple[Any, DrawPair]:
    fit = next(fit for fit in diffprivlib_fits() if fit.name == name)
    mechanism = fit.make()
    source = pairs_of(fit.domain, mechanism.adjacency, 1.0, 0)

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        (pair,) = new_pool(source, mechanism.adjacency, 1.0, int(rng.integers(2**32)), None).drawn(1)
        return pair.x, pair.y

    return mechanism, draw


def _counts(name: str, seeds: range) -> Counter[str]:
    mechanism, draw = _subject(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        found = verdicts(mechanism, (draw(np.random.default_rng(seed)) for seed in seeds), seeds.start)
    return Counter({"pairs": len(seeds), **{each: getattr(found, each) for each in _COUNTS[1:]}})


def _cells(name: str, total: Counter[str]) -> Figures:
    counts = {each: total[each] for each in _COUNTS}
    targets = [at_most("excess", total["excess"], 0), at_most("raised", total["raised"], 0)]
    return {"mechanism": name, "claim": str(_subject(name)[0].claim), **counts}, targets


def _rows(name: str, place: int, wanted: int, jobs: int, former: Row | None) -> Iterator[Row]:
    return counted(
        name,
        partial(_counts, name),
        partial(_cells, name),
        former,
        names=_COUNTS,
        seeds=lambda used: seeds_of(_TABLE, place, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=jobs,
    )


def _tasks(effort: Effort) -> Iterator[Task]:
    wanted = min(effort.audits, effort.either(_QUICK_PAIRS, effort.audits))
    names = [*REFERENCES, *(_right_fits() if is_installed("diffprivlib") else ())]
    for place, name in enumerate(names):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK):
            yield Task(name, partial(_rows, name, place, wanted, effort.jobs))


FALSE_FINDINGS = Bench(
    name="false-findings",
    title="Replays of mechanisms that keep their claims: the reference mechanisms, and models of diffprivlib",
    method=(
        "Random neighbours, half of those of reference mechanisms as far apart as neighbours can be, each replayed "
        "with a different seed. An excess would be a false finding. Bounded is not a proof and open not a failure: "
        "noise that decides something (sparse vector, noisy max, coins) leaves a replay open. --audits sets the number "
        "of pairs, and --resume adds to those that were replayed."
    ),
    columns=columns("mechanism | claim | pairs :, | excess | bounded :, | open :, | raised"),
    names=(*REFERENCES, *_right_fits()),
    tasks=_tasks,
)
