"""Gaussian noise of the wrong standard deviation."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....audit.claims.claim import ApproxDP, check_number
from ...laws.laws import GaussianLaw
from ...laws.reference_mechanism import ReferenceMechanism
from ...noise.gaussian import analytic_gaussian_scale, gaussian_delta
from ...noise_samplers import Floats, gaussian_on_grid
from ...queries import Query, identity, real_answer
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class GaussianOfScale:
    """A real answer plus Gaussian noise of a given standard deviation."""

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
    right_scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, 700, "two of these formulas exponentiate it", closed=False)
        right = analytic_gaussian_scale(self.epsilon, self.delta, self.sensitivity)
        object.__setattr__(self, "right_scale", right)
        object.__setattr__(self, "scale", self._wrong_scale())

    @abstractmethod
    def _wrong_scale(self) -> float:
        """Standard deviation of the noise that is added instead of `right_scale`."""

    @property
    def runs_as(self) -> ReferenceMechanism:
        return GaussianOfScale(self.scale, self.claim, self.query)

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def truth(self) -> ApproxDP | None:
        """The claimed ε with its true δ; None where the true δ rounds to 1."""
        delta = gaussian_delta(self.epsilon, self.scale, self.sensitivity)
        return ApproxDP(self.epsilon, delta) if delta < 1 else None


@dataclass(frozen=True, slots=True)
class VarianceAsScaleGaussian(_MiscalibratedGaussian):
    """Gaussian noise whose generator is given the variance σ² instead of σ.

    In practice, a formula for the variance meets a library that expects the standard deviation. There is too little
    noise when σ < 1 (a large ε or a small sensitivity) and too much when σ > 1, so a test at small ε never sees it.
    """

    def _wrong_scale(self) -> float:
        return self.right_scale**2


@dataclass(frozen=True, slots=True)
class ClassicalBeyondOneGaussian(_MiscalibratedGaussian):
    """Gaussian noise from the classical formula at an ε above 1, where its theorem does not hold.

    In practice, the formula is copied without its condition (Balle & Wang 2018). Far above 1 the noise is too small: at
    ε = 10 and δ = 0.1 the true δ is 0.406. An ε slightly above 1 does no harm, as the formula has slack there.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Section 2.
    """

    def _wrong_scale(self) -> float:
        return self.sensitivity * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon


@dataclass(frozen=True, slots=True)
class OneForEpsilonGaussian(_MiscalibratedGaussian):
    """Gaussian noise whose calibration solves for χ with √(χ² + 1) instead of √(χ² + ε).

    In practice, a formula is programmed for ε = 1, and the parameter is changed later. At δ = 1e-5 the noise is too
    large below ε = 1, by a factor of 1.4 at ε = .1, and a quarter too small at ε = 1.1 (true δ 3.9e-4). At a somewhat
    larger ε the solver gives up where the equation is flat, its failure is not checked, and the noise is about twice
    what is needed.
    """

    def _wrong_scale(self) -> float:
        return scale_from_chi(solve_with_one(self.epsilon, self.delta), self.epsilon, self.sensitivity)


@dataclass(frozen=True, slots=True)
class MisprintedNewtonGaussian(_MiscalibratedGaussian):
    """Gaussian noise whose calibration, Newton's iteration with a misprinted derivative, stops near its start.

    In practice, an exponent loses its sign in print, and a loose tolerance hides that nothing converges: −e^{−χ²} is
    copied as −e^{2χ²}, and √(χ² + ε) as √(χ² + 1). From χ = 2 the steps become so short that the iteration ends only
    because its tolerance is 1e-3 in the equation for δ, or because its steps are used up. Where χ is then too low the
    noise is too small: at ε = 1 and δ = 1e-5 the true δ is 2.1e-4.
    """

    def _wrong_scale(self) -> float:
        chi = misprinted_newton(self.epsilon, self.delta, tolerance=1e-3, most_steps=1000)
        return scale_from_chi(chi, self.epsilon, self.sensitivity)


def scale_from_chi(chi: float, epsilon: float, sensitivity: float) -> float:
    """Standard deviation S/(√2 (√(χ² + ε) − χ)), in the form in which Bao et al. (2021) state the calibration."""
    return sensitivity * (math.sqrt(chi * chi + epsilon) + chi) / (math.sqrt(2) * epsilon)


def solve_with_one(epsilon: float, delta: float) -> float:
    """χ at which the solver stops for e^ε F(√(χ² + 1)) − F(χ) = C from χ = 2, F the integral of e^{−t²} from 0."""

    from scipy.optimize import root

    def gap(chi: Floats) -> float:
        return _gap(float(chi[0]), 1.0, epsilon, delta)

    return float(root(gap, [2.0], method="hybr").x[0])  # as `fsolve` does; .success is not checked


def misprinted_newton(epsilon: float, delta: float, *, tolerance: float, most_steps: int) -> float:
    """χ at which Newton's iteration stops from 2 with the derivative e^ε e^{−χ²−1} χ/√(χ² + 1) − e^{2χ²}."""
    chi = 2.0
    for _ in range(most_steps):
        slope = math.exp(epsilon - chi * chi - 1) * chi / math.sqrt(chi * chi + 1) - math.exp(2 * chi * chi)
        chi -= _gap(chi, epsilon, epsilon, delta) / slope
        if abs(_gap(chi, epsilon, epsilon, delta)) < tolerance:
            break
    return chi


def _gap(chi: float, under_root: float, epsilon: float, delta: float) -> float:
    """e^ε F(√(χ² + under_root)) − F(χ) − C, with C = √π/2 (2δ − 1 + e^ε); zero at the solution."""
    first, second = math.erf(math.sqrt(chi * chi + under_root)), math.erf(chi)
    return math.sqrt(math.pi) / 2 * (math.exp(epsilon) * (first - 1) - second + 1 - 2 * delta)
