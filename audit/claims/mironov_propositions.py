"""Two propositions of Mironov (2017) as claims: Rényi DP for a single event, and n-fold composition.

Both are weaker than the guarantees that imply them (`RenyiDP`, and `PureDP` composed); these claims audit them as
stated. Both boundaries are computed from the logarithm of the smaller of a probability and its complement.

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ClaimError
from ..printing import shorten
from .claim import Array, ParametricClaim, check_number


@dataclass(frozen=True, slots=True)
class ProbabilityPreservation(ParametricClaim):
    """Claim that p ≤ (e^τ q)^{(a−1)/a} for every event and in both directions, which follows from (a, τ)-Rényi DP.

    The inequality with the datasets exchanged, applied to the complement of the event, is
    1 − p ≥ e^{−τ} (1 − q)^{a/(a−1)}. The boundary is the lower of the two curves; that of `RenyiDP` is lower still.

    Parameters
    ----------
    order : float
        From 1 + 1e-6 to 1e6.
    divergence : float
        In nats, ≥ 0.

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
        self._store_number("order", 1 + 1e-6, 1e6, "use PureDP(epsilon) for order infinity")
        self._store_number("divergence", 0, math.inf, "in nats")

    def __str__(self) -> str:
        return f"({self.order:g}, {self.divergence:g})-probability preservation"

    parameter_name = "divergence"
    has_closed_form = True

    @property
    def _exponent(self) -> float:
        return (self.order - 1.0) / self.order

    def describe_bound(self, least: str) -> str:
        return f"Rényi divergence of order {self.order:g} {least} by probability preservation"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        log_q, log_rest = _logs(q, q_complement)
        log_value = np.minimum(self._exponent * (self.divergence + log_q), 0.0)
        log_mirror = log_rest / self._exponent - self.divergence
        return (
            np.minimum(np.exp(log_value), -np.expm1(log_mirror)),
            np.maximum(-np.expm1(log_value), np.exp(log_mirror)),
        )

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        (log_p, log_p_rest), (log_q, log_q_rest) = _logs(p, p_complement), _logs(q, q_complement)
        return np.asarray(np.fmax(log_p / self._exponent - log_q, log_q_rest / self._exponent - log_p_rest))


@dataclass(frozen=True, slots=True)
class NFoldComposition(ParametricClaim):
    """Claim that p ≤ q exp(2ε √(n ln(1/q))) for every event, which n-fold composition of ε-DP mechanisms satisfies.

    The composition may be adaptive. The right side reaches 1 at q = e^{−4ε²n}, and a larger q allows every p. The
    inequality is audited as stated; for the complement of an event it is a different statement, which an audit tests
    with the datasets exchanged.

    Parameters
    ----------
    epsilon : float
        Of each composed mechanism, in nats, ≥ 0.
    n : int
        Number of composed mechanisms, at least 1.

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
        self._store_number("epsilon", 0, math.inf, "epsilon=0 claims equal distributions")
        n = check_number("n", self.n, 1, math.inf, "n mechanisms are composed")
        if n != int(n):
            raise ClaimError(
                f"n={shorten(self.n)} is not a whole number; use n = 1, 2, … composed mechanisms.", n=self.n
            )
        object.__setattr__(self, "n", int(n))

    def __str__(self) -> str:
        return f"{self.n}-fold composition of {self.epsilon:g}-DP"

    parameter_name = "epsilon"
    has_closed_form = True

    def describe_bound(self, least: str) -> str:
        return f"epsilon {least} of each of {self.n} composed mechanisms"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        root = np.sqrt(-_logs(q, q_complement)[0])
        log_value = root * np.minimum(2.0 * self.epsilon * math.sqrt(self.n) - root, 0.0)
        return np.exp(log_value), -np.expm1(log_value)

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        log_p, log_q = _logs(p, p_complement)[0], _logs(q, q_complement)[0]
        return np.asarray((log_p - log_q) / (2.0 * np.sqrt(-self.n * log_q)))


def _logs(q: Array, q_complement: Array) -> tuple[Array, Array]:
    """Return ln q and ln(1 − q), each with a small relative error."""
    with np.errstate(divide="ignore"):
        return (
            np.where(q < 0.5, np.log(q), np.log1p(-np.minimum(q_complement, 1.0))),
            np.where(q_complement < 0.5, np.log(q_complement), np.log1p(-np.minimum(q, 1.0))),
        )
