"""Noise with a wrong scale, of the wrong shape, at the wrong place, or scaled by the data."""

from __future__ import annotations

import math
import zlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, PureDP
from ...audit.datasets.rows import rows_of
from ...audit.errors import DatasetError
from ..distributions.distributions import DiscreteDistribution, LaplaceDistribution, ProductDistribution
from ..distributions.divergences import NamedByParameters
from ..noise.gaussian import GaussianMechanism, vector_answer
from ..noise.laplace import LaplaceMechanism, inverse_laplace_cdf
from ..noise_samplers import Floats, Integers, grid_step, laplace_on_grid, random_signs, round_to_grid, standard_laplace
from ..queries import Query, identity, real_answer, whole_answer
from .flaw import PureFlaw, total

__all__ = [
    "MisprintedTableGeometric", "BoundedLaplace", "OneSidedLaplace", "FewValuesLaplace", "RedrawnUntilNonnegative",
    "TowardsZeroLaplace", "SeededByTheData", "ScaleFromTheData", "FlooredScaleMean", "SignificantDigitsLaplace",
    "ClippedAfterNoise", "LaplaceOfScale", "ConsistentWithTheTotal", "NaiveLaplace", "NaiveGaussian",
    "SinglePrecisionNoise",
]  # fmt: skip

# Noise of the wrong weights or misplaced, in vectors and in the low bits.


@dataclass(frozen=True, slots=True)
class MisprintedTableGeometric(NamedByParameters, PureFlaw):
    """Geometric noise from a table with one weight too large, by a factor f: ε + ln f instead of ε.

    In practice, a table of cumulative probabilities is copied by hand, or an index is off by one at a single place.
    Only one outcome gives it away.
    """

    factor: float = 1.1
    place: int = 2
    query: Query = identity
    truth = property(lambda t: PureDP(t.epsilon + math.log(t.factor)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        reach = math.ceil(36.0 / self.epsilon)  # larger noise has probability below 2e-16
        noise = np.arange(-reach, reach + 1)
        weights = np.exp(-self.epsilon * np.abs(noise)) * np.where(noise == self.place, self.factor, 1.0)
        table = np.cumsum(weights)
        drawn = np.searchsorted(table, rng.random(size) * table[-1], side="right")
        outputs: Integers = np.minimum(drawn, len(noise) - 1) - reach + whole_answer(self.query, dataset)
        return outputs


Spared = Literal["none", "zeros", "last"]


@dataclass(frozen=True, slots=True)
class LaplaceOfScale:
    """Real answers plus independent Laplace noise of one scale, on a grid.

    The mechanism is (Δ/scale)-DP for answers that move by Δ in total, summed over the coordinates, if none is spared. A
    scale for the Euclidean norm, for one coordinate, or for one level of a tree is too small. Coordinates without noise
    are those with an answer of 0 ("zeros"), or the last.
    """

    scale: float
    claim: Claim
    query: Query = field(default=identity, repr=False)
    spared: Spared = "none"

    def distribution(self, dataset: Any) -> ProductDistribution:
        """Exact distribution of the output before rounding."""
        answers = vector_answer(self.query, dataset)
        return ProductDistribution(
            tuple(
                DiscreteDistribution((answer,), (0.0,)) if is_spared else LaplaceDistribution(answer, self.scale)
                for answer, is_spared in zip(answers, self._are_spared(answers), strict=True)
            )
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs."""
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
class ConsistentWithTheTotal(PureFlaw):
    """Noisy counts shifted so that they add up to the exact total: no finite ε.

    In practice, tables have to "add up", and the total is published elsewhere or thought to be known. The shift is a
    post-processing that looks at the data, and the sum of the outputs is the exact number of rows.
    """

    counts: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        counts, scale = np.asarray(vector_answer(self.counts, dataset)), 1.0 / self.epsilon
        noise = np.stack([scale * standard_laplace(size, rng) for _ in counts], axis=1)
        noise -= noise.mean(axis=1, keepdims=True)
        outputs = np.stack([round_to_grid(noise[:, j].copy(), scale, count) for j, count in enumerate(counts)], axis=1)
        outputs[:, -1] = counts.sum() - outputs[:, :-1].sum(axis=1)  # takes up the rounding
        return outputs


@dataclass(frozen=True, slots=True)
class ClippedAfterNoise(PureFlaw):
    """A sum with noise for rows in [0, 1], clipped to [0, most] after the noise while the rows are not: no finite ε.

    In practice, the bounds are given to the function that does everything, and it clips last. Clipping the output is
    free, but it does not bound what a row may add.
    """

    most: float

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return np.clip(LaplaceMechanism(self.epsilon, query=total).sample(dataset, size, rng), 0.0, self.most)


@dataclass(frozen=True, slots=True)
class _OfAnswer(PureFlaw):
    """A flaw of noise on one answer."""

    query: Query = field(default=identity, repr=False)


@dataclass(frozen=True, slots=True)
class NaiveLaplace(_OfAnswer):
    """An answer plus Laplace noise as a double, not rounded, so that the low bits reveal the answer: no finite ε.

    In practice, textbooks print this sampler (Mironov 2012). The sum of the answer and the noise is rounded to a
    double, and which doubles can occur depends on the answer.
    """

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return real_answer(self.query, dataset) + rng.laplace(scale=1 / self.epsilon, size=size)


@dataclass(frozen=True, slots=True)
class NaiveGaussian(PureFlaw):
    """An answer plus Gaussian noise as a double, not rounded, so that the low bits reveal the answer: no useful δ.

    In practice, textbooks print this sampler (Jin et al. 2022). As with Laplace noise, the doubles near an answer
    reveal it.

    Source: Jin, McMurtry, Rubinstein & Ohrimenko (2022), Are we there yet? Timing and floating-point attacks.
    """

    delta: float
    query: Query = field(default=identity, repr=False)
    claim = property(lambda t: t.on_grid.claim)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return real_answer(self.query, dataset) + self.on_grid.scale * rng.standard_normal(size)

    @property
    def on_grid(self) -> GaussianMechanism:
        """The right mechanism, with the same noise rounded to a grid."""
        return GaussianMechanism(self.epsilon, self.delta, query=self.query)


@dataclass(frozen=True, slots=True)
class SinglePrecisionNoise(_OfAnswer):
    """An answer in double precision plus Laplace noise in single precision: no finite ε.

    In practice, the noise comes from a library of the graphics card. Below its 24 bits the answer shows unchanged.
    """

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        noise = np.asarray(rng.laplace(scale=1 / self.epsilon, size=size), dtype=np.float32)
        return real_answer(self.query, dataset) + noise.astype(np.float64)


# Laplace noise of the wrong shape: truncated, one-sided, redrawn, or with too few values.


@dataclass(frozen=True, slots=True)
class _NoisyAnswer(_OfAnswer):
    """An answer of sensitivity 1 plus noise in units of 1/ε, on the Laplace mechanism's grid."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        scale = 1.0 / self.epsilon
        return round_to_grid(scale * self._noise(size, rng), scale, real_answer(self.query, dataset))

    @abstractmethod
    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Independent draws of the noise, shape (size,)."""


@dataclass(frozen=True, slots=True)
class BoundedLaplace(_NoisyAnswer):
    """Laplace noise redrawn until it is within `reach` scales, without a δ: no finite ε.

    In practice, "absurd" noise is kept from users. The bug shows at the ends: an output beyond the reach of the smaller
    answer comes from the larger one.
    """

    reach: float = 3.0

    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        inside = -math.expm1(-self.reach)
        return -np.log1p(-inside * rng.random(size)) * random_signs(size, rng)


@dataclass(frozen=True, slots=True)
class OneSidedLaplace(_NoisyAnswer):
    """Exponential noise instead of Laplace noise, never negative: no finite ε.

    In practice, a count may not be understated, or the noise is drawn as an exponential and its sign forgotten. An
    output below the larger answer comes from the smaller one.
    """

    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        return rng.standard_exponential(size)


@dataclass(frozen=True, slots=True)
class FewValuesLaplace(_NoisyAnswer):
    """Laplace noise by the inverse CDF of a uniform number of a few bits, 2^bits values: no finite ε.

    In practice, the uniform number comes from a generator of 15 bits (`rand()` of many C libraries), or of single
    precision, 24 bits. The outputs for two answers have almost no value in common.
    """

    bits: int = 8

    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        return inverse_laplace_cdf((rng.integers(0, 2**self.bits, size) + 0.5) / 2**self.bits - 0.5)


@dataclass(frozen=True, slots=True)
class RedrawnUntilNonnegative(_OfAnswer):
    """A count with Laplace noise, redrawn until it is not negative: ln(2e^ε − 1) instead of ε for whole counts from 0.

    In practice, negative counts are "impossible" and the draw is repeated, where setting them to 0 would be free. The
    distribution is renormalised by the probability of being kept, which depends on the count. The bug shows between 0
    and 1.
    """

    # At 0 the densities differ by e^ε, the probabilities of being kept by (1 − e^{−ε}/2)/(1/2) = 2 − e^{−ε}.
    truth = property(lambda t: PureDP(math.log(2 * math.exp(t.epsilon) - 1)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        count, scale = whole_answer(self.query, dataset), 1.0 / self.epsilon
        if count < 0:
            raise DatasetError(f"the count {count} is negative; use counts from 0.", count=count)
        outputs = round_to_grid(scale * standard_laplace(size, rng), scale, count)
        while (again := np.flatnonzero(outputs < 0)).size:
            outputs[again] = round_to_grid(scale * standard_laplace(again.size, rng), scale, count)
        return outputs


@dataclass(frozen=True, slots=True)
class TowardsZeroLaplace(_OfAnswer):
    """A count plus Laplace noise truncated to its whole part, so that 0 has twice its share: ε + ln 2.

    In practice, `int(noise)` rounds towards zero, so that zero gets the draws of two cells, (−1, 1), and every other
    number those of one. A random sign before a geometric magnitude gives the same distribution when −0 is kept as well
    as +0 (Canonne et al. 2020, Algorithm 2). The bug shows at the counts themselves. Rounding the noisy count instead
    would be post-processing.
    """

    truth = property(lambda t: PureDP(t.epsilon + math.log(2)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        noise = np.trunc(standard_laplace(size, rng) / self.epsilon).astype(np.int64)
        return noise + whole_answer(self.query, dataset)


@dataclass(frozen=True, slots=True)
class SeededByTheData(PureFlaw):
    """A count with Laplace noise from a generator seeded with a hash of the rows: no finite ε.

    In practice, answers are cached, or made "sticky", so that averaging repeated answers gains nothing. The output is
    then a function of the rows.
    """

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        rows = sorted(map(repr, rows_of(dataset).elements()))
        seeded = np.random.default_rng(zlib.crc32("\n".join(rows).encode()))
        return np.full(size, LaplaceMechanism(self.epsilon).sample(len(rows), 1, seeded)[0])


# Noise and grids whose size depends on the data.


@dataclass(frozen=True, slots=True)
class ScaleFromTheData(PureFlaw):
    """An answer plus Laplace noise for a sensitivity that is computed from the dataset: no finite ε.

    The tails of two Laplace distributions of different scale diverge, and a sensitivity of 0 means no noise. The
    queries `query` and `sensitivity` decide which bug this is: the range of the values as the sensitivity of their sum,
    the exact number of rows under a mean, the local sensitivity of a median, or the largest degree of a graph.

    Source: Nissim, Raskhodnikova & Smith (2007), Smooth sensitivity and sampling in private data analysis.
    """

    query: Query = field(repr=False)
    sensitivity: Callable[[Any], float] = field(repr=False)

    def distribution(self, dataset: Any) -> LaplaceDistribution:
        """Exact distribution of the output before rounding; refuses a sensitivity of 0."""
        return LaplaceDistribution(
            real_answer(self.query, dataset), real_answer(self.sensitivity, dataset) / self.epsilon
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        noise = standard_laplace(size, rng) * (real_answer(self.sensitivity, dataset) / self.epsilon)
        return round_to_grid(noise, 1.0 / self.epsilon, real_answer(self.query, dataset))


@dataclass(frozen=True, slots=True)
class FlooredScaleMean(PureFlaw):
    """A sum over a noisy count plus noise for a mean of that many rows, of scale at least 1e-12: no finite ε.

    In practice, a generator refuses a negative scale, and a clamp silences the error. When the noisy count is negative
    there is no noise, and a single row of 0 gives exactly 0. With `least_count` the count is clamped instead, to 1 or
    more. The output is then a noisy sum over a noisy count, and ε-DP holds for rows in [0, 1] added or removed. Without
    `noisy_divisor`, the sum is divided by the exact count, or by 1 if there are no rows.
    """

    least_count: float | None = None
    noisy_divisor: bool = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        rows = np.clip(np.asarray(dataset, dtype=np.float64), 0.0, 1.0)
        each = 2.0 / self.epsilon
        count = len(rows) + each * standard_laplace(size, rng)
        if self.least_count is not None:
            count = np.maximum(count, self.least_count)
        divisor = count if self.noisy_divisor else max(len(rows), 1)
        outputs = real_answer(np.sum, rows) / divisor + np.maximum(each / count, 1e-12) * standard_laplace(size, rng)
        step = grid_step(each)
        return np.asarray(np.round(outputs / step) * step + 0.0)  # −0 is 0


@dataclass(frozen=True, slots=True)
class SignificantDigitsLaplace(PureFlaw):
    """A noisy count rounded to a grid that depends on the number of digits of the exact count: no finite ε.

    In practice, "one significant digit" is that of the exact answer. The grid of a count of d digits has steps of 10^(d
    − 1), so an output that is not a multiple of 10 shows that the count was below 10.
    """

    query: Query = field(default=len, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        answer = real_answer(self.query, dataset)
        step = 10.0 ** math.floor(math.log10(max(answer, 1.0)))
        return np.asarray(np.round(LaplaceMechanism(self.epsilon).sample(answer, size, rng) / step) * step + 0.0)


def median(rows: npt.ArrayLike) -> float:
    """Middle value of an odd number of rows."""
    return float(_sorted_odd(rows)[len(np.asarray(rows)) // 2])


def gap_at_the_median(rows: npt.ArrayLike) -> float:
    """Local sensitivity of the median: how far it can move when one row is replaced."""
    ordered = _sorted_odd(rows)
    middle = len(ordered) // 2
    return float(max(ordered[middle] - ordered[middle - 1], ordered[middle + 1] - ordered[middle]))


def spread(rows: npt.ArrayLike) -> float:
    """The largest value less the smallest."""
    return float(np.ptp(np.asarray(rows, dtype=np.float64)))


def mean(rows: npt.ArrayLike) -> float:
    """Mean of the rows, 0 if there are none."""
    values = np.asarray(rows, dtype=np.float64)
    return float(np.sum(values) / max(len(values), 1))


def share_of_a_row(rows: npt.ArrayLike) -> float:
    """1 over the number of rows, at least 1: how far a mean of values in [0, 1] moves when one row is replaced."""
    return 1.0 / max(len(np.asarray(rows)), 1)


def largest_degree(graph: Any) -> float:
    """Largest degree of a graph's nodes, at least 1."""
    return float(max([1, *(degree for _, degree in graph.degree())]))


def n_edges(graph: Any) -> int:
    """The number of edges."""
    return int(graph.number_of_edges())


def _sorted_odd(rows: npt.ArrayLike) -> Floats:
    ordered = np.sort(np.asarray(rows, dtype=np.float64))
    if len(ordered) < 3 or len(ordered) % 2 == 0:
        raise DatasetError(f"{len(ordered)} rows have no single middle one; use 3, 5, … rows.", rows=len(ordered))
    return ordered
