"""The Gaussian mechanism, with classical and exact calibration of its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from ...audit.claims.claim import check_number
from ...audit.errors import ClaimError
from ..laws.laws import GaussianLaw, log_gaussian_delta
from ..laws.reference_mechanism import ApproxMechanism
from ..noise_samplers import Floats, gaussian_on_grid
from ..queries import Query, identity, real_answer


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta at `epsilon` for Gaussian noise with standard deviation `scale`; exact.

    Two answers `sensitivity` apart attain it.

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


def gaussian_loss_tail(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return Pr[privacy loss > epsilon] for answers `sensitivity` apart under Gaussian noise; exact.

    The loss is normal with mean μ²/2 and variance μ², where μ = sensitivity/scale. The probability is larger than the
    delta at epsilon, which counts only the part of a loss above epsilon: (ε, δ)-DP does not mean that the loss is at
    most ε with probability 1 − δ.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy (the law of the privacy loss).

    Examples
    --------
    >>> scale = analytic_gaussian_scale(epsilon=1, delta=1e-5)
    >>> round(gaussian_loss_tail(epsilon=1, scale=scale), 6)
    0.000161
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    _check_positive(scale=scale, sensitivity=sensitivity)
    mu = sensitivity / scale
    return float(ndtr(mu / 2 - epsilon / mu))


def classical_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return S √(2 ln(1.25/δ))/ε, a standard deviation that is enough for (epsilon, delta)-DP if epsilon ≤ 1.

    Raises
    ------
    ClaimError
        If epsilon > 1, where the theorem does not hold and the noise can be too small.

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
    """Return the smallest standard deviation for which Gaussian noise is (epsilon, delta)-DP, to a relative 1e-9.

    It is the root of ln δ(σ) = ln delta in ln σ. δ(σ) decreases strictly, so the bracket is grown until it contains the
    only root.

    Parameters
    ----------
    epsilon : float
        In nats, ≥ 0 (0 bounds the total variation by delta).
    delta : float
        In (0, 1).
    sensitivity : float
        Largest Euclidean change of the answer, positive.

    Raises
    ------
    ClaimError
        If a parameter is outside its range, or the standard deviation exceeds 1e308.

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

    low, high, step = 0.0, 0.0, 1.0
    while excess(low) < 0:
        high, low, step = low, low - step, 2 * step
    while excess(high) > 0:
        low, high, step = high, high + step, 2 * step
    log_scale = float(brentq(excess, low, high, xtol=1e-14)) if low < high else low
    if log_scale + math.log(sensitivity) > 709:
        raise ClaimError(
            f"epsilon={epsilon!r}, delta={delta!r} and sensitivity={sensitivity!r} need a standard deviation beyond "
            "1e308; use a larger epsilon or delta.",
            epsilon=epsilon,
            delta=delta,
        )
    return sensitivity * math.exp(log_scale)


@dataclass(frozen=True, slots=True)
class GaussianMechanism(ApproxMechanism):
    """A real answer plus Gaussian noise: (epsilon, delta)-DP.

    Outputs are rounded to a grid with a step of at most 2⁻²⁰ standard deviations (`noise.grid_step`), the same for
    every dataset.

    Parameters
    ----------
    epsilon : float
        In nats; positive, or 0 with the analytic calibration.
    delta : float
        In (0, 1).
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive.
    calibration : {"analytic", "classical"}
        How to find the standard deviation, stored as `scale`. The analytic calibration is tight. The classical one
        gives more noise and rejects epsilon > 1.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    Examples
    --------
    >>> print(GaussianMechanism(epsilon=1, delta=1e-5))
    Gaussian(epsilon=1, delta=1e-05, sensitivity=1)
    """

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

    def law(self, dataset: Any) -> GaussianLaw:
        """The law of the output before rounding to the grid."""
        return GaussianLaw(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return gaussian_on_grid(real_answer(self.query, dataset), self.scale, size, rng)


def _check_claim(epsilon: float, delta: float) -> None:
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    check_number(
        "delta", delta, 0, 1, "Gaussian noise has no pure guarantee, and delta=1 promises nothing", closed=False
    )


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        check_number(name, value, 0, math.inf, "positive", closed=False)
