"""Pure, approximate and Gaussian differential privacy as claims."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from ..errors import ClaimError
from ..printing import shorten
from .claim import Array, ParametricClaim


def pure_lines(epsilon: Array | float, delta: Array | float, q: Array, rest: Array) -> tuple[Array, Array]:
    """Return min(1, e^ε q + δ, 1 − e^{−ε}(1 − δ − q)) and its complement, without overflow for any ε."""
    scaled = np.exp(np.minimum(epsilon + np.log(q), 1.0))  # values above 1 need no accuracy
    shrunk = np.exp(-epsilon) * (rest - delta)
    # Each line avoids cancellation where it is the lower one: it is written in q near 0 and in 1 − q near 1.
    upper_line = -np.expm1(-epsilon) + np.exp(-epsilon) * (q + delta)
    low = np.minimum(epsilon, 1.0)  # for ε > ln 2 the first line is above 1 at every q ≥ ½
    lower_rest = np.where(q < 0.5, 1.0 - delta - scaled, np.exp(low) * rest - np.expm1(low) - delta)
    value = np.minimum(1.0, np.minimum(scaled + delta, upper_line))
    return value, np.maximum(0.0, np.maximum(lower_rest, shrunk))


def _pure_epsilon(delta: Array | float, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """Return the least ε for which both lines of (ε, δ)-DP reach p at q."""
    forward = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
    backward = np.log(np.maximum(q_rest - delta, 0.0)) - np.log(p_rest)
    larger: Array = np.fmax(forward, backward)
    return larger


def excess_delta(epsilon: Array | float, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """Return the least δ for which both lines of (ε, δ)-DP reach p at q."""
    factor = np.exp(np.minimum(epsilon, 700.0))
    return np.maximum(p - factor * q, q_rest - factor * p_rest)


@dataclass(frozen=True, slots=True)
class PureDP(ParametricClaim):
    """ε-differential privacy: Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] for every event S.

    Parameters
    ----------
    epsilon : float
        In nats, finite and ≥ 0; 0 claims that the two distributions are equal.

    Raises
    ------
    ClaimError
        For a negative, infinite or NaN epsilon.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Definition 2.4 with δ = 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        self._store_number("epsilon", 0, math.inf, "epsilon=0 claims equal distributions")

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP"

    strength_name = "epsilon"
    has_closed_form = True

    @property
    def log_ratio(self) -> float:
        return self.epsilon

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return pure_lines(self.epsilon, 0.0, q, q_complement)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _pure_epsilon(0.0, p, p_complement, q, q_complement)


@dataclass(frozen=True, slots=True)
class ApproxDP(ParametricClaim):
    """(ε, δ)-differential privacy: Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] + δ for every event S.

    Parameters
    ----------
    epsilon : float
        In nats, finite and ≥ 0.
    delta : float
        In [0, 1).
    bound_on : {"epsilon", "delta"}
        The parameter that an audit bounds; the other is held fixed.

    References
    ----------
    Dwork & Roth (2014), Definition 2.4.
    """

    epsilon: float
    delta: float
    bound_on: Literal["epsilon", "delta"] = "epsilon"

    def __post_init__(self) -> None:
        self._store_number("epsilon", 0, math.inf, "epsilon=0 bounds the total variation by delta")
        self._store_number("delta", 0, 1, "delta=0 claims pure DP")
        if not isinstance(self.bound_on, str) or self.bound_on not in ("epsilon", "delta"):
            raise ClaimError(
                f'bound_on={shorten(self.bound_on)} is unknown; use "epsilon" or "delta".', bound_on=self.bound_on
            )

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"

    has_closed_form = True

    @property
    def strength_name(self) -> str:
        return self.bound_on

    @property
    def max_strength(self) -> float:
        return math.inf if self.bound_on == "epsilon" else 1.0

    @property
    def log_ratio(self) -> float | None:
        return self.epsilon if self.delta == 0.0 and self.bound_on == "epsilon" else None

    @property
    def gaussian_mu(self) -> float | None:
        return None if self.delta == 0.0 else _tight_mu(self.epsilon, self.delta)

    def describe_bound(self, least: str) -> str:
        fixed = f"delta {self.delta:g}" if self.bound_on == "epsilon" else f"epsilon {self.epsilon:g}"
        return f"{self.bound_on} {least} at {fixed}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return pure_lines(self.epsilon, self.delta, q, q_complement)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        if self.bound_on == "epsilon":
            return _pure_epsilon(self.delta, p, p_complement, q, q_complement)
        return excess_delta(self.epsilon, p, p_complement, q, q_complement)


# From this ε on doubles see no difference between μ and the limit √(2ε): it is Φ⁻¹(δ), at most 38 of 10³⁷.
_LARGEST = 1e75


@lru_cache(maxsize=1 << 12)
def _tight_mu(epsilon: float, delta: float) -> float:
    """Return μ of the Gaussian mechanism for which (ε, δ) is tight.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.
    """
    from scipy.optimize import brentq  # takes a tenth of a second, and only claims with a δ need it

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        far = float(log_ndtr(-mu / 2 - epsilon / mu)) + epsilon
        return float(ndtr(mu / 2 - epsilon / mu)) - math.exp(min(far, 0.0)) - delta

    if epsilon > _LARGEST:
        return math.sqrt(2.0 * epsilon)
    return math.exp(float(brentq(excess, math.log(1e-300), math.log(1e150), xtol=1e-12)))


@dataclass(frozen=True, slots=True)
class GaussianDP(ParametricClaim):
    """μ-Gaussian differential privacy: telling x from y is at least as hard as telling N(μ, 1) from N(0, 1).

    References
    ----------
    Dong, Roth & Su (2022), Gaussian differential privacy, Definition 2.6.
    """

    mu: float

    def __post_init__(self) -> None:
        self._store_number("mu", 0, math.inf, "mu=0 claims equal distributions")

    def __str__(self) -> str:
        return f"{self.mu:g}-GDP"

    strength_name = "mu"
    has_closed_form = True

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        z = _quantile(q, q_complement) + self.mu
        return ndtr(z), ndtr(-z)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _quantile(p, p_complement) - _quantile(q, q_complement)


def _quantile(q: Array, rest: Array) -> Array:
    """Return Φ⁻¹(q), computed from the smaller of q and 1 − q."""
    return np.where(q < rest, ndtri(np.minimum(q, 0.5)), -ndtri(np.minimum(rest, 0.5)))
