"""Noise in floating-point numbers: right in distribution, but the low bits of the outputs reveal the answer.

An audit finds these bugs only when it looks at the bits, as they change which doubles can occur and not the values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....audit.claims.claim import ApproxDP
from ...noise.gaussian import GaussianMechanism
from ...noise_samplers import Floats
from ...queries import Query, identity, real_answer
from ..flaw import Flaw


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
