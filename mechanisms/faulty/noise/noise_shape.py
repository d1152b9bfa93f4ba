"""Laplace noise of the wrong shape: truncated, one-sided, redrawn, or with too few values."""

from __future__ import annotations

import math
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP, check_number
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
    """An answer of sensitivity 1 plus noise in units of 1/ε, on the Laplace mechanism's grid."""

    epsilon: float
    query: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
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

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("reach", self.reach, 0, math.inf, "in scales", closed=False)

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
    precision, 24 bits. The outputs for two answers have hardly a value in common.
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
    """A count with Laplace noise, redrawn until it is not negative: ln(2e^ε − 1) instead of ε for whole counts from 0.

    In practice, negative counts are "impossible" and the draw is repeated, where setting them to 0 would be free. The
    law is renormalised by the probability of being kept, which depends on the count. The bug shows between 0 and 1.
    """

    epsilon: float
    query: Query = field(default=identity, repr=False)

    @property
    def truth(self) -> PureDP:
        # At 0 the densities differ by e^ε, the probabilities of being kept by (1 − e^{−ε}/2)/(1/2) = 2 − e^{−ε}.
        return PureDP(math.log(2 * math.exp(self.epsilon) - 1))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,); refuses negative counts."""
        count, scale = whole_answer(self.query, dataset), 1.0 / self.epsilon
        if count < 0:
            raise DatasetError(f"the count {count} is negative; use counts from 0.", count=count)
        outputs = round_to_grid(scale * standard_laplace(size, rng), scale, count)
        while (again := np.flatnonzero(outputs < 0)).size:
            outputs[again] = round_to_grid(scale * standard_laplace(again.size, rng), scale, count)
        return outputs


@dataclass(frozen=True, slots=True)
class TowardsZeroLaplace(Flaw):
    """A count plus Laplace noise truncated to its whole part, so that 0 has twice its share: ε + ln 2.

    In practice, `int(noise)` rounds towards zero, so that zero gets the draws of two cells, (−1, 1), and every other
    number those of one. A random sign before a geometric magnitude gives the same law when −0 is kept as well as +0
    (Canonne et al. 2020, Algorithm 2). The bug shows at the counts themselves. Rounding the noisy count instead would
    be post-processing.

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
    """A count with Laplace noise from a generator seeded with a hash of the rows: no finite ε.

    In practice, answers are cached, or made "sticky", so that averaging repeated answers gains nothing. The output is
    then a function of the rows.
    """

    epsilon: float

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """The same output `size` times, shape (size,)."""
        rows = sorted(map(repr, rows_of(dataset).elements()))
        seeded = np.random.default_rng(zlib.crc32("\n".join(rows).encode()))
        return np.full(size, LaplaceMechanism(self.epsilon).sample(len(rows), 1, seeded)[0])


@dataclass(frozen=True, slots=True)
class BestOfDraws(Twin):
    """The noisy answer nearest to the truth, out of k: kε instead of ε.

    In practice, a release that looks "too noisy" is drawn again. The smallest of k exponential magnitudes is
    exponential with k times the rate, so the noise is Laplace of scale 1/(kε).
    """

    epsilon: float
    k: int = 2
    query: Query = identity

    def __post_init__(self) -> None:
        check_count("k", self.k, "draws")
        Twin.__post_init__(self)

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.k * self.epsilon, query=self.query)


@dataclass(frozen=True, slots=True)
class DeviationAsScaleLaplace(Twin):
    """Laplace noise of standard deviation 1/ε instead of scale 1/ε: √2·ε.

    In practice, noise is specified by its standard deviation, as Gaussian noise is; that of Laplace noise is √2 scales.
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(math.sqrt(2) * self.epsilon, query=self.query)
