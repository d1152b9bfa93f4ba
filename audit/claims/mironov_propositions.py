"""Claims in the words of two propositions of Mironov (2017): what Rényi DP says of a single event, and n-fold use.

Both say less than the guarantees that they follow from (`RenyiDP`, or `PureDP` composed), and are here to be audited
as they are stated. Both boundaries are worked out as logarithms, of whichever of the probability and its complement is
small.

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ClaimError
from ..printing import rounded_down
from .claim import Array, Claim, check_number


@dataclass(frozen=True, slots=True)
class ProbabilityPreservation(Claim):
    """p ≤ (e^τ q)^{(a−1)/a} for every event, and with the datasets exchanged: what (a, τ)-Rényi DP says of one event.

    For the complement of the event the exchanged inequality reads 1 − p ≥ e^{−τ} (1 − q)^{a/(a−1)}; the boundary is
    the lower of the two curves. `RenyiDP` has a lower one still.

    Parameters
    ----------
    order : float
        From 1 + 1e-6 to 1e6.
    divergence : float
        In nats, ≥ 0.

    Raises
    ------
    ClaimError
        For numbers outside these ranges.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Proposition 10 (probability preservation).

    Examples
    --------
    >>> power, _ = ProbabilityPreservation(order=2, divergence=0.1).max_power(1e-4)
    >>> round(float(power), 4)
    0.0105
    """

    order: float
    divergence: float

    def __post_init__(self) -> None:
        order = check_number("order", self.order, 1 + 1e-6, 1e6, "use PureDP(epsilon) for order infinity")
        object.__setattr__(self, "order", order)
        divergence = check_number("divergence", self.divergence, 0, math.inf, "in nats")
        object.__setattr__(self, "divergence", divergence)

    def __str__(self) -> str:
        return f"({self.order:g}, {self.divergence:g})-probability preservation"

    strength_name = "divergence"
    has_closed_form = True

    @property
    def strength(self) -> float:
        return self.divergence

    @property
    def _exponent(self) -> float:
        return (self.order - 1.0) / self.order

    def with_strength(self, strength: float) -> ProbabilityPreservation:
        return replace(self, divergence=strength)

    def describe_strength(self, strength: float) -> str:
        return f"Rényi divergence of order {self.order:g} >= {rounded_down(strength):g} by probability preservation"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        log_q, log_rest = _logs(q, q_complement)
        log_value = np.minimum(self._exponent * (self.divergence + log_q), 0.0)
        log_mirror = log_rest / self._exponent - self.divergence
        return (
            np.minimum(np.exp(log_value), -np.expm1(log_mirror)),
            np.maximum(-np.expm1(log_value), np.exp(log_mirror)),
        )

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        (log_p, log_p_rest), (log_q, log_q_rest) = _logs(p, p_complement), _logs(q, q_complement)
        larger: Array = np.fmax(log_p / self._exponent - log_q, log_q_rest / self._exponent - log_p_rest)
        return larger


@dataclass(frozen=True, slots=True)
class NFoldComposition(Claim):
    """p ≤ q exp(2ε √(n ln(1/q))) for every event: what n-fold adaptive composition of ε-DP mechanisms keeps.

    The right side reaches 1 at q = e^{−4ε²n}; from there on everything is allowed. It is audited as stated: for the
    complement of an event the statement is another one, which is tested with the datasets exchanged.

    Parameters
    ----------
    epsilon : float
        Of each of the composed mechanisms, in nats, ≥ 0.
    n : int
        How many are composed, at least 1.

    Raises
    ------
    ClaimError
        For a negative, infinite or NaN epsilon, or an n that is not a whole number from 1.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Proposition 4.

    Examples
    --------
    >>> power, _ = NFoldComposition(epsilon=0.1, n=10).max_power([0.01, 0.5, 0.9])
    >>> power.round(4).tolist()
    [0.0389, 0.8465, 1.0]
    """

    epsilon: float
    n: int

    def __post_init__(self) -> None:
        epsilon = check_number("epsilon", self.epsilon, 0, math.inf, "epsilon=0 claims equal distributions")
        object.__setattr__(self, "epsilon", epsilon)
        n = check_number("n", self.n, 1, math.inf, "n mechanisms are composed")
        if n != int(n):
            raise ClaimError(f"n={self.n!r} is not a whole number; use n = 1, 2, … composed mechanisms.", n=self.n)
        object.__setattr__(self, "n", int(n))

    def __str__(self) -> str:
        return f"{self.n}-fold composition of {self.epsilon:g}-DP"

    strength_name = "epsilon"
    has_closed_form = True

    @property
    def strength(self) -> float:
        return self.epsilon

    def with_strength(self, strength: float) -> NFoldComposition:
        return replace(self, epsilon=strength)

    def describe_strength(self, strength: float) -> str:
        return f"epsilon >= {rounded_down(strength):g} of each of {self.n} composed mechanisms"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        root = np.sqrt(-_logs(q, q_complement)[0])
        log_value = root * np.minimum(2.0 * self.epsilon * math.sqrt(self.n) - root, 0.0)
        return np.exp(log_value), -np.expm1(log_value)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        log_p, log_q = _logs(p, p_complement)[0], _logs(q, q_complement)[0]
        found: Array = (log_p - log_q) / (2.0 * np.sqrt(-self.n * log_q))
        return found


def _logs(q: Array, q_complement: Array) -> tuple[Array, Array]:
    """ln q and ln(1 − q), each accurate in the relative sense."""
    with np.errstate(divide="ignore"):
        return (
            np.where(q < 0.5, np.log(q), np.log1p(-np.minimum(q_complement, 1.0))),
            np.where(q_complement < 0.5, np.log(q_complement), np.log1p(-np.minimum(q, 1.0))),
        )
