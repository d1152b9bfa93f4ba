"""Noise of the wrong scale or misplaced: geometric, Laplace, floating-point, on histograms, vectors and graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from ....audit.claims.claim import ApproxDP, Claim, PureDP, check_number
from ....audit.datasets.graph_adjacency import NodeNeighbours
from ...laws.discrete_law import DiscreteLaw
from ...laws.laws import GeometricLaw, LaplaceLaw
from ...laws.product import ProductLaw
from ...noise.gaussian import GaussianMechanism
from ...noise.gaussian_vector import vector_answer
from ...noise.geometric import GeometricMechanism
from ...noise.graph_statistics import DegreeHistogramMechanism, EdgeCountMechanism, degrees_of
from ...noise.histogram import HistogramMechanism
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats, Integers, laplace_on_grid, round_to_grid, standard_laplace
from ...queries import Query, identity, real_answer, whole_answer
from ..answers import total
from ..flaw import Flaw, check_choice
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class PerRowGeometric(Twin):
    """A count with noise for one row, for users with up to `rows_per_user` rows: rows_per_user·ε at user level.

    In practice, the unit of privacy is a person while the table has one row per event. The bug shows on neighbours that
    differ by a user with all their rows.
    """

    epsilon: float
    rows_per_user: int = 2
    query: Query = identity

    def __post_init__(self) -> None:
        GeometricMechanism(self.epsilon, sensitivity=self.rows_per_user)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> GeometricMechanism:
        return GeometricMechanism(self.epsilon, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.rows_per_user)


@dataclass(frozen=True, slots=True)
class SquaredRatioGeometric(Twin):
    """A count with noise of ratio e^{−2ε} instead of e^{−ε}: 2ε instead of ε.

    In practice, a factor 2 that belongs below ε, as the sensitivity of a replaced row, is written above it. The bug
    shows on every pair of different counts.
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> GeometricMechanism:
        return GeometricMechanism(2 * self.epsilon, query=self.query)


@dataclass(frozen=True, slots=True)
class MisprintedTableGeometric(Flaw):
    """Geometric noise from a table with one weight too large, by a factor f: ε + ln f instead of ε.

    In practice, a table of cumulative probabilities is copied by hand, or an index is off by one at a single place.
    Only one outcome gives it away.
    """

    epsilon: float
    factor: float = 1.1
    place: int = 2
    query: Query = identity

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("factor", self.factor, 1, math.inf, "1 is the right table")
        check_number("place", self.place, -self._reach, self._reach + 1, "the table holds the noise")

    def __str__(self) -> str:
        return f"MisprintedTableGeometric(epsilon={self.epsilon:g}, factor={self.factor:g}, place={self.place})"

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon + math.log(self.factor))

    @property
    def _reach(self) -> int:
        """Largest noise in the table; larger noise has probability below 2e-16."""
        return math.ceil(36.0 / self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        noise = np.arange(-self._reach, self._reach + 1)
        weights = np.exp(-self.epsilon * np.abs(noise)) * np.where(noise == self.place, self.factor, 1.0)
        table = np.cumsum(weights)
        drawn = np.searchsorted(table, rng.random(size) * table[-1], side="right")
        outputs: Integers = np.minimum(drawn, len(noise) - 1) - self._reach + whole_answer(self.query, dataset)
        return outputs


@dataclass(frozen=True, slots=True)
class HalfNoiseHistogram(Twin):
    """A histogram with noise for an added or removed row, claimed for a replaced row, which changes two counts: 2ε.

    In practice, "each row is in one bin only, so the sensitivity is 1" (Dwork & Roth 2014, Example 3.2) is said without
    naming the adjacency. The bug shows on datasets of equal size, one row of which is in another category.
    """

    epsilon: float
    k: int
    noise: Literal["laplace", "geometric"] = "laplace"

    @property
    def runs_as(self) -> HistogramMechanism:
        return HistogramMechanism(self.epsilon, self.k, noise=self.noise)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)


Spared = Literal["none", "zeros", "last"]


@dataclass(frozen=True, slots=True)
class LaplaceOfScale:
    """Real answers plus independent Laplace noise of one scale, on a grid.

    The mechanism is (Δ/scale)-DP for answers that move by Δ in total, summed over the coordinates, if none is spared. A
    scale for the Euclidean norm, for one coordinate, or for one level of a tree is too small.

    Parameters
    ----------
    scale : float
    claim : Claim
    query : callable
        Map from the dataset to the answers, shape (n_answers,).
    spared : {"none", "zeros", "last"}
        Coordinates without noise: those with an answer of 0, or the last.
    """

    scale: float
    claim: Claim
    query: Query = field(default=identity, repr=False)
    spared: Spared = "none"

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, np.inf, "of Laplace noise", closed=False)
        check_choice("spared", self.spared, get_args(Spared))

    def law(self, dataset: Any) -> ProductLaw:
        """Exact law of the output before rounding."""
        answers = vector_answer(self.query, dataset)
        return ProductLaw(
            tuple(
                DiscreteLaw((answer,), (0.0,)) if is_spared else LaplaceLaw(answer, self.scale)
                for answer, is_spared in zip(answers, self._are_spared(answers), strict=True)
            )
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, n_answers)."""
        answers = vector_answer(self.query, dataset)
        outputs = np.empty((size, len(answers)))
        for j, is_spared in enumerate(self._are_spared(answers)):
            outputs[:, j] = answers[j] if is_spared else laplace_on_grid(answers[j], self.scale, size, rng)
        return outputs

    def _are_spared(self, answers: tuple[float, ...]) -> list[bool]:
        last = len(answers) - 1
        return [
            (self.spared == "zeros" and answer == 0.0) or (self.spared == "last" and j == last)
            for j, answer in enumerate(answers)
        ]


@dataclass(frozen=True, slots=True)
class ConsistentWithTheTotal(Flaw):
    """Noisy counts shifted so that they add up to the exact total: no finite ε.

    In practice, tables have to "add up", and the total is published elsewhere or thought to be known. The shift is a
    post-processing that looks at the data, and the sum of the outputs is the exact number of rows.
    """

    epsilon: float
    counts: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, n_counts)."""
        counts, scale = np.asarray(vector_answer(self.counts, dataset)), 1.0 / self.epsilon
        noise = np.stack([scale * standard_laplace(size, rng) for _ in counts], axis=1)
        noise -= noise.mean(axis=1, keepdims=True)
        outputs = np.stack([round_to_grid(noise[:, j].copy(), scale, count) for j, count in enumerate(counts)], axis=1)
        outputs[:, -1] = counts.sum() - outputs[:, :-1].sum(axis=1)  # takes up the rounding
        return outputs


@dataclass(frozen=True, slots=True)
class EdgeNoiseForNodes(Twin):
    """An edge count with noise for one edge, claimed to hide a node: max_degree·ε for nodes of that degree.

    In practice, "the graph is private" does not say whether edges or nodes are (Hay, Li, Miklau & Jensen 2009). The bug
    shows on graphs that differ by a node with its edges (`NodeNeighbours`). For graphs that differ by an edge the claim
    holds.
    """

    epsilon: float
    max_degree: int = 3

    def __post_init__(self) -> None:
        EdgeCountMechanism(self.epsilon, NodeNeighbours(), self.max_degree)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> EdgeCountMechanism:
        return EdgeCountMechanism(self.epsilon)

    def law(self, dataset: Any) -> GeometricLaw:
        """Exact law of the output; refuses nodes of a larger degree, whose loss exceeds `truth`."""
        degrees_of(dataset, self.max_degree)
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs; refuses nodes of a larger degree."""
        degrees_of(dataset, self.max_degree)
        return self.runs_as.sample(dataset, size, rng)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.max_degree)


@dataclass(frozen=True, slots=True)
class OneEndDegreeHistogram(Twin):
    """A degree histogram with noise for one end of an edge, sensitivity 2: 2ε instead of ε.

    In practice, one node moves from one count to another, "so two counts change", and the other end is forgotten. The
    bug shows on graphs that differ by an edge, unless the degrees of its ends differ by 1: then one node leaves the
    count that the other enters.
    """

    epsilon: float
    max_degree: int = 3

    @property
    def runs_as(self) -> DegreeHistogramMechanism:
        return DegreeHistogramMechanism(2 * self.epsilon, self.max_degree)


@dataclass(frozen=True, slots=True)
class ClippedAfterNoise(Flaw):
    """A sum with noise for rows in [0, 1], clipped to [0, most] after the noise while the rows are not: no finite ε.

    In practice, the bounds are given to the function that does everything, and it clips last. Clipping the output is
    free, but it does not bound what a row may add.
    """

    epsilon: float
    most: float

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("most", self.most, 0, np.inf, "the largest output", closed=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return np.clip(LaplaceMechanism(self.epsilon, query=total).sample(dataset, size, rng), 0.0, self.most)


@dataclass(frozen=True, slots=True)
class NaiveLaplace(Flaw):
    """An answer plus Laplace noise as a double, not rounded, so that the low bits reveal the answer: no finite ε.

    In practice, textbooks print this sampler (Mironov 2012). The sum of the answer and the noise is rounded to a
    double, and which doubles can occur depends on the answer.

    References
    ----------
    Mironov (2012), On significance of the least significant bits for differential privacy.
    """

    epsilon: float
    query: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return real_answer(self.query, dataset) + rng.laplace(scale=1 / self.epsilon, size=size)


@dataclass(frozen=True, slots=True)
class NaiveGaussian(Flaw):
    """An answer plus Gaussian noise as a double, not rounded, so that the low bits reveal the answer: no useful δ.

    In practice, textbooks print this sampler (Jin et al. 2022). As with Laplace noise, the doubles near an answer
    reveal it.

    References
    ----------
    Jin, McMurtry, Rubinstein & Ohrimenko (2022), Are we there yet? Timing and floating-point attacks on differential
    privacy systems.
    """

    epsilon: float
    delta: float
    query: Query = field(default=identity, repr=False)

    @property
    def claim(self) -> ApproxDP:
        return self.on_grid.claim

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return real_answer(self.query, dataset) + self.on_grid.scale * rng.standard_normal(size)

    @property
    def on_grid(self) -> GaussianMechanism:
        """The right mechanism, with the same noise rounded to a grid."""
        return GaussianMechanism(self.epsilon, self.delta, query=self.query)


@dataclass(frozen=True, slots=True)
class SinglePrecisionNoise(Flaw):
    """An answer in double precision plus Laplace noise in single precision: no finite ε.

    In practice, the noise comes from a library of the graphics card. Below its 24 bits the answer shows unchanged.
    """

    epsilon: float
    query: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        noise = np.asarray(rng.laplace(scale=1 / self.epsilon, size=size), dtype=np.float32)
        return real_answer(self.query, dataset) + noise.astype(np.float64)


@dataclass(frozen=True, slots=True)
class UnderstatedSensitivityLaplace(Twin):
    """A sum of values in [0, bound] with the sensitivity of a count, 1: ε·bound instead of ε (for bound > 1).

    In practice, code for a count is reused for a sum, or the clipping bound is changed in one place only. The bug shows
    on add/remove neighbours that differ by a row at the bound.
    """

    epsilon: float
    bound: float = 2.0
    query: Query = identity

    def __post_init__(self) -> None:
        LaplaceMechanism(self.epsilon, sensitivity=self.bound)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, sensitivity=1.0, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.bound)


@dataclass(frozen=True, slots=True)
class InvertedScaleLaplace(Twin):
    """A count with Laplace noise of scale ε instead of 1/ε: (1/ε)-DP.

    In practice, the generator's `scale` is taken for the rate, or for the privacy parameter itself. There is too little
    noise for ε < 1 and too much for ε > 1. At ε = 1 the bug is invisible, so it passes a test written there (Ding et
    al. 2018).
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(1.0 / self.epsilon, query=self.query)
