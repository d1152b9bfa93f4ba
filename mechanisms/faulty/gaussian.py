"""Gaussian noise of the wrong standard deviation."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...audit.claims import ApproxDP, check_number
from ..gaussian import analytic_gaussian_scale, gaussian_delta
from ..laws import GaussianLaw
from ..noise import Floats, gaussian_on_grid
from ..queries import Query, identity, real_answer
from .twin import ReferenceMechanism, Twin


@dataclass(frozen=True, slots=True)
class GaussianOfScale:
    """A real answer plus normal noise of a given standard deviation, whatever it was meant to satisfy."""

    scale: float
    claim: ApproxDP
    query: Query = identity

    def law(self, dataset: Any) -> GaussianLaw:
        return GaussianLaw(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return gaussian_on_grid(real_answer(self.query, dataset), self.scale, size, rng)


@dataclass(frozen=True, slots=True)
class _MiscalibratedGaussian(Twin):
    epsilon: float
    delta: float
    sensitivity: float = 1.0
    query: Query = identity
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        right = analytic_gaussian_scale(self.epsilon, self.delta, self.sensitivity)
        object.__setattr__(self, "scale", self._wrong_scale(right))

    @abstractmethod
    def _wrong_scale(self, right: float) -> float:
        """The standard deviation of the noise that is added, where `right` would be."""

    @property
    def runs_as(self) -> ReferenceMechanism:
        return GaussianOfScale(self.scale, self.truth, self.query)

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def truth(self) -> ApproxDP:
        """With the claimed epsilon and the delta that is true at it."""
        return ApproxDP(self.epsilon, gaussian_delta(self.epsilon, self.scale, self.sensitivity))


@dataclass(frozen=True, slots=True)
class VarianceAsScaleGaussian(_MiscalibratedGaussian):
    """Normal noise whose generator is given the variance σ² where it expects σ.

    In practice a formula for the variance meets a library that wants the standard deviation. Under-noised when σ < 1
    (a large epsilon or a small sensitivity), over-noised when σ > 1: a test at small epsilon never sees it.
    """

    def _wrong_scale(self, right: float) -> float:
        return right**2


@dataclass(frozen=True, slots=True)
class ClassicalBeyondOneGaussian(_MiscalibratedGaussian):
    """Normal noise from the classical formula, at an epsilon above 1 where its theorem does not hold.

    In practice the formula is copied without its condition. Far above 1 the noise is too small: at epsilon 10 and
    delta 0.1 the true delta is 0.406. (A small excess of epsilon over 1 does no harm, as the formula has slack there.)

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Section 2.
    """

    def _wrong_scale(self, right: float) -> float:
        return self.sensitivity * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
