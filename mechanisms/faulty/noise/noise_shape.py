"""Noise of the right size and the wrong shape: cut off, one-sided, drawn again, drawn from too few values."""

from __future__ import annotations

import math
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....audit.claims.claim import check_number
from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.datasets.rows import rows_of
from ....audit.errors import DatasetError
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats, Integers, random_signs, round_to_grid, standard_laplace
from ...parameter_checks import check_count
from ...queries import Query, identity, real_answer, whole_answer
from ..flaw import Flaw
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class _NoisyAnswer(Flaw):
    """An answer of sensitivity 1 plus noise of its own in units of 1/epsilon, on the Laplace mechanism's grid."""

    epsilon: float
    query: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        scale = 1.0 / self.epsilon
        return round_to_grid(scale * self._noise(size, rng), scale, real_answer(self.query, dataset))

    @abstractmethod
    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draws of the noise, shape (size,)."""


@dataclass(frozen=True, slots=True)
class BoundedLaplace(_NoisyAnswer):
    """Laplace noise that is drawn again until it is within `reach` scales: no finite epsilon.

    In practice "absurd" noise is kept from users, and nobody pays for it with a delta. Shows at the ends: an output
    beyond what the smaller answer can give comes from the larger one.
    """

    reach: float = 3.0

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("reach", self.reach, 0, math.inf, "in scales", closed=False)

    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        inside = -math.expm1(-self.reach)
        return -np.log1p(-inside * rng.random(size)) * random_signs(size, rng)


@dataclass(frozen=True, slots=True)
class OneSidedLaplace(_NoisyAnswer):
    """Exponential noise, upwards only: no finite epsilon.

    In practice a count may not be understated, or the sign is forgotten where the noise is drawn as an exponential. An
    output below the larger answer comes from the smaller one.
    """

    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        return rng.standard_exponential(size)


@dataclass(frozen=True, slots=True)
class FewValuesLaplace(_NoisyAnswer):
    """Laplace noise by the inverse CDF of a uniform number of a few bits: no finite epsilon.

    In practice the uniform comes from a generator of 15 bits (`rand()` of many C libraries), or of single precision.
    The noise takes 2^bits values, and the outputs for two answers have hardly one in common.
    """

    bits: int = 8

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_count("bits", self.bits, "random bits")

    def _noise(self, size: int, rng: np.random.Generator) -> Floats:
        xi = (rng.integers(0, 2**self.bits, size) + 0.5) / 2**self.bits - 0.5
        noise: Floats = -np.sign(xi) * np.log1p(-2.0 * np.abs(xi))
        return noise


@dataclass(frozen=True, slots=True)
class RedrawnUntilNonnegative(Flaw):
    """A count with Laplace noise, drawn again until it is not below zero: ln(2e^ε − 1) for whole counts from 0.

    In practice negative counts are "impossible" and the draw is repeated, where setting them to zero would be free.
    The chance of a repetition depends on the count, so the law is renormalised by it. Shows between 0 and 1.
    """

    epsilon: float
    query: Query = field(default=identity, repr=False)

    @property
    def truth(self) -> PureDP:
        # At 0 the densities differ by e^ε, the chances to be kept by (1 − e^{−ε}/2)/(1/2) = 2 − e^{−ε}.
        return PureDP(math.log(2 * math.exp(self.epsilon) - 1))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,); refuses negative counts."""
        count, scale = whole_answer(self.query, dataset), 1.0 / self.epsilon
        if count < 0:
            raise DatasetError(f"the count {count} is negative, and is never kept; use counts from 0.", count=count)
        outputs = round_to_grid(scale * standard_laplace(size, rng), scale, count)
        while (again := np.flatnonzero(outputs < 0)).size:
            outputs[again] = round_to_grid(scale * standard_laplace(again.size, rng), scale, count)
        return outputs


@dataclass(frozen=True, slots=True)
class TowardsZeroLaplace(Flaw):
    """A count plus the whole part of Laplace noise: ε + ln 2.

    In practice `int(noise)` rounds towards zero, so that zero gets the draws of two cells, (−1, 1), and every other
    number those of one. The same law comes of a random sign before a geometric magnitude, when −0 is kept beside +0.
    Shows at the counts themselves. (To round the noisy count instead would be post-processing.)

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Algorithm 2, which rejects −0.
    """

    epsilon: float
    query: Query = field(default=identity, repr=False)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon + math.log(2))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        noise = np.trunc(standard_laplace(size, rng) / self.epsilon).astype(np.int64)
        return noise + whole_answer(self.query, dataset)


@dataclass(frozen=True, slots=True)
class SeededByTheData(Flaw):
    """A count with Laplace noise from a generator that is seeded by the rows: no finite epsilon.

    In practice answers are cached, or made "sticky", by seeding with a hash of the data, so that averaging repeated
    answers gains nothing. The output is a function of the rows.
    """

    epsilon: float

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` times the same output, shape (size,)."""
        rows = sorted(map(repr, rows_of(dataset).elements()))
        seeded = np.random.default_rng(zlib.crc32("\n".join(rows).encode()))
        return np.full(size, LaplaceMechanism(self.epsilon).sample(len(rows), 1, seeded)[0])


@dataclass(frozen=True, slots=True)
class BestOfDraws(Twin):
    """Of k noisy answers the one nearest to the truth: k·epsilon instead of epsilon.

    In practice a release that looks "too noisy" is drawn again. The least of k exponential magnitudes is exponential
    of k times the rate, so this is Laplace noise of scale 1/(k·epsilon).
    """

    epsilon: float
    k: int = 2
    query: Query = identity

    def __post_init__(self) -> None:
        check_count("k", self.k, "draws")
        self.runs_as  # noqa: B018  # refuses the epsilon

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.k * self.epsilon, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.k * self.epsilon)


@dataclass(frozen=True, slots=True)
class DeviationAsScaleLaplace(Twin):
    """Laplace noise of standard deviation 1/epsilon instead of scale 1/epsilon: √2·epsilon.

    In practice noise is specified by its standard deviation, as normal noise is; that of Laplace noise is √2 scales.
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(math.sqrt(2) * self.epsilon, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(math.sqrt(2) * self.epsilon)
