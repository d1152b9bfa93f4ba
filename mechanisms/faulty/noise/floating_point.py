"""Noise as floating-point numbers give it: right in distribution, and its low bits tell the answer.

Values say nothing here; what differs is which doubles can come. An audit finds it when it looks at the bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import ApproxDP
from ...noise.gaussian import GaussianMechanism
from ...noise_samplers import Floats
from ...queries import Query, identity, real_answer
from ..flaw import Flaw


@dataclass(frozen=True, slots=True)
class NaiveLaplace(Flaw):
    """An answer plus a double from a Laplace sampler, not rounded: no finite epsilon.

    In practice this is what textbooks print. The sum of the answer and the noise is rounded to a double, and which
    doubles can come depends on the answer.

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
    """An answer plus a double from a normal sampler, not rounded: no delta holds that is worth its name.

    In practice as for Laplace noise: the doubles near an answer tell of it.

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
        return ApproxDP(self.epsilon, self.delta)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return real_answer(self.query, dataset) + self.on_grid.scale * rng.standard_normal(size)

    @property
    def on_grid(self) -> GaussianMechanism:
        """The same noise, rounded."""
        return GaussianMechanism(self.epsilon, self.delta, query=self.query)


@dataclass(frozen=True, slots=True)
class SinglePrecisionNoise(Flaw):
    """A double plus Laplace noise in single precision: no finite epsilon.

    In practice the noise comes from a library of the graphics card. Below its 24 bits the answer shows as it is.
    """

    epsilon: float
    query: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        noise = np.asarray(rng.laplace(scale=1 / self.epsilon, size=size), dtype=np.float32)
        return real_answer(self.query, dataset) + noise.astype(np.float64)
