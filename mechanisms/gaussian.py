"""The Gaussian mechanism, with the classical and the exact calibration of its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..audit.claims import ApproxDP, check_number
from ..audit.errors import ClaimError
from .laws import GaussianLaw, log_gaussian_delta
from .noise import Floats, gaussian_on_grid
from .queries import Query, identity, real_answer


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """The smallest delta at `epsilon` of normal noise with standard deviation `scale`; exact.

    Tight: two answers `sensitivity` apart attain it.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.

    Examples
    --------
    >>> round(gaussian_delta(epsilon=1, scale=1), 4)
    0.1269
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    _check_positive(scale=scale, sensitivity=sensitivity)
    return math.exp(log_gaussian_delta(sensitivity / scale, epsilon))


def classical_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """A standard deviation S √(2 ln(1.25/δ))/ε that is enough for (epsilon, delta)-DP when epsilon ≤ 1.

    Raises
    ------
    ClaimError
        For epsilon > 1, where the theorem does not hold and the noise can be too small.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem A.1.
    """
    _check_claim(epsilon, delta)
    _check_positive(epsilon=epsilon, sensitivity=sensitivity)
    if epsilon > 1:
        raise ClaimError(
            f"epsilon={epsilon!r} is outside the classical theorem; use epsilon <= 1, or the analytic calibration.",
            epsilon=epsilon,
        )
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation with which normal noise is (epsilon, delta)-DP, to a relative 1e-9.

    The root of ln δ(σ) = ln delta in ln σ: δ(σ) falls strictly, so the bracket is grown from a guess until it holds
    the one root.

    Parameters
    ----------
    epsilon : float
        In nats, ≥ 0 (0 bounds the total variation by delta).
    delta : float
        In (0, 1).
    sensitivity : float
        Largest Euclidean change of the answer, positive.

    References
    ----------
    Balle & Wang (2018), Theorem 8; they solve for the same σ by another substitution (Algorithm 1).

    Examples
    --------
    >>> round(analytic_gaussian_scale(epsilon=1, delta=1e-5), 4)
    3.7306
    """
    _check_claim(epsilon, delta)
    _check_positive(sensitivity=sensitivity)
    from scipy.optimize import brentq

    target = math.log(delta)

    def excess(log_scale: float) -> float:
        return max(log_gaussian_delta(math.exp(-log_scale), epsilon), -1e6) - target

    low = high = math.log(math.sqrt(2 * math.log(1.25 / delta)) / epsilon) if epsilon > 0 else -target
    while excess(low) < 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    if low == high:
        return sensitivity * math.exp(low)
    return sensitivity * math.exp(float(brentq(excess, low, high, xtol=1e-14)))


@dataclass(frozen=True, slots=True)
class GaussianMechanism:
    """A real answer plus normal noise: (epsilon, delta)-DP.

    Outputs are rounded to a grid of at most 2⁻²⁰ standard deviations (`noise.grid_step`), the same for every dataset.

    Parameters
    ----------
    epsilon : float
        In nats; positive, or 0 with the analytic calibration.
    delta : float
        In (0, 1).
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive.
    calibration : {"analytic", "classical"}
        How the standard deviation, kept as `scale`, is found. The analytic one is tight; the classical one is larger
        and refused for epsilon > 1.
    query : callable
        From the dataset to the answer; by default the dataset is the answer.

    Raises
    ------
    ClaimError
        For parameters outside these ranges.

    Examples
    --------
    >>> print(GaussianMechanism(epsilon=1, delta=1e-5))
    Gaussian(epsilon=1, delta=1e-05, sensitivity=1)
    """

    epsilon: float
    delta: float
    sensitivity: float = 1.0
    calibration: Literal["analytic", "classical"] = "analytic"
    query: Query = identity
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.calibration not in ("analytic", "classical"):
            raise ClaimError(
                f'calibration={self.calibration!r} is unknown; use "analytic" or "classical".',
                calibration=self.calibration,
            )
        find = analytic_gaussian_scale if self.calibration == "analytic" else classical_gaussian_scale
        object.__setattr__(self, "scale", find(self.epsilon, self.delta, self.sensitivity))

    def __str__(self) -> str:
        name = "Gaussian" if self.calibration == "analytic" else "ClassicalGaussian"
        return f"{name}(epsilon={self.epsilon:g}, delta={self.delta:g}, sensitivity={self.sensitivity:g})"

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def law(self, dataset: Any) -> GaussianLaw:
        """The output's law before the rounding to the grid."""
        return GaussianLaw(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return gaussian_on_grid(real_answer(self.query, dataset), self.scale, size, rng)


def _check_claim(epsilon: float, delta: float) -> None:
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    check_number("delta", delta, 0, 1, "normal noise has no pure guarantee", closed=False)


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        check_number(name, value, 0, math.inf, "positive", closed=False)
