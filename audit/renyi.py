"""Claims given by Rényi divergences: Rényi DP of one order, and zero-concentrated DP (all orders).

For one event the divergence of the two output distributions is at least that of the two coins Ber(p) and Ber(q) (data
processing), in both directions. So B(q) is the largest p whose coin keeps within the claim. This is tighter than
Proposition 10 of Mironov (2017), which drops one of the two terms of the coin's divergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .claims import Array, Claim, check_number

_BISECTIONS = 64  # the bracket in logit space starts at most ~1500 wide and ends below one rounding error
_ROUNDING = 8 * np.finfo(float).eps  # slack on the divergence, so that rounding can only enlarge the boundary


def _coin_power(order: Array, divergence: Array, q: Array, q_complement: Array) -> tuple[Array, Array]:
    """Largest p with D_a(p‖q) ≤ τ and D_a(q‖p) ≤ τ, and 1 − p; all arguments broadcast together."""
    log_q, log_rest = np.log(q), np.log(q_complement)
    excess = order - 1.0

    def too_far(logit: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        log_p, log_p_rest = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
        forward = np.logaddexp(order * log_p - excess * log_q, order * log_p_rest - excess * log_rest)
        backward = np.logaddexp(order * log_q - excess * log_p, order * log_rest - excess * log_p_rest)
        far: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = np.maximum(forward, backward) > excess * divergence
        return far

    # Mironov's Proposition 10, p ≤ (e^τ q)^{(a−1)/a} and its mirror image for 1 − p, brackets the answer from above.
    low = log_q - log_rest
    cap = np.minimum((divergence + log_q) * excess / order, -1e-300)
    mirror = np.minimum(order / excess * log_rest - divergence, -1e-300)
    high = np.minimum(cap - np.log(-np.expm1(cap)), np.log(-np.expm1(mirror)) - mirror)
    low, high = np.broadcast_arrays(low, np.maximum(high, low))
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        far = too_far(middle)
        low, high = np.where(far, low, middle), np.where(far, middle, high)
        if np.all(high - low <= _ROUNDING * (1.0 + np.abs(high))):
            break
    high = high + _ROUNDING * (1.0 + np.abs(high))
    return np.exp(-np.logaddexp(0.0, -high)), np.exp(-np.logaddexp(0.0, high))


def _coin_divergence(order: Array, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """The larger of D_a(Ber p ‖ Ber q) and D_a(Ber q ‖ Ber p); all arguments broadcast together."""
    log_p, log_p_rest, log_q, log_q_rest = np.log(p), np.log(p_rest), np.log(q), np.log(q_rest)

    def term(of: Array, against: Array) -> Array:
        return np.where(np.isneginf(of), -np.inf, order * of - (order - 1.0) * against)

    forward = np.logaddexp(term(log_p, log_q), term(log_p_rest, log_q_rest))
    backward = np.logaddexp(term(log_q, log_p), term(log_q_rest, log_p_rest))
    return np.where(p < q, 0.0, np.maximum(forward, backward) / (order - 1.0))


@dataclass(frozen=True, slots=True)
class RenyiDP(Claim):
    """(a, τ)-Rényi DP: the Rényi divergence of order a between M(x) and M(y) is at most τ, in both directions.

    Parameters
    ----------
    order : float
        In (1, 1e6]; the limit of infinite order is `PureDP`.
    divergence : float
        In nats, ≥ 0.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Definition 4.
    """

    order: float
    divergence: float

    def __post_init__(self) -> None:
        order = check_number("order", self.order, 1, 1e6, "use PureDP(epsilon) for order infinity", closed=False)
        object.__setattr__(self, "order", order)
        divergence = check_number("divergence", self.divergence, 0, math.inf, "0 claims equal distributions")
        object.__setattr__(self, "divergence", divergence)

    def __str__(self) -> str:
        return f"({self.order:g}, {self.divergence:g})-Rényi DP"

    strength_name = "divergence"

    @property
    def strength(self) -> float:
        return self.divergence

    def with_strength(self, strength: float) -> RenyiDP:
        return replace(self, divergence=strength)

    def describe_strength(self, strength: float) -> str:
        return f"Rényi divergence of order {self.order:g} >= {strength:.4g}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return _coin_power(np.asarray(self.order), np.asarray(self.divergence), q, q_complement)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _coin_divergence(np.asarray(self.order), p, p_complement, q, q_complement)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(Claim):
    """ρ-zero-concentrated DP: the Rényi divergence of every order a > 1 is at most ρ a.

    The boundary is the least over orders. Any set of orders gives a valid (larger) boundary, so the search for the
    best order needs no proof, only care to be near it.

    References
    ----------
    Bun & Steinke (2016), Concentrated differential privacy, Definition 1.1; Proposition 1.9 for groups.
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_number("rho", self.rho, 0, math.inf, "rho=0 claims equal distributions"))

    def __str__(self) -> str:
        return f"{self.rho:g}-zCDP"

    strength_name = "rho"

    @property
    def strength(self) -> float:
        return self.rho

    def with_strength(self, strength: float) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(strength)

    def direct_at_distance(self, distance: int) -> ZeroConcentratedDP:
        """Group privacy of zCDP: k²ρ at distance k."""
        return ZeroConcentratedDP(self.rho * distance**2)

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        if self.rho == 0.0:
            return q, q_complement
        # For a tail of log-probability −L the best order is near √(L/ρ) (minimise (ρa − L)(a − 1)/a); scan around it.
        tail = -np.log(np.minimum(np.minimum(q, q_complement), 0.25))
        centre = np.sqrt(tail / self.rho)
        value, rest = np.ones_like(q), np.zeros_like(q)
        best, width, points = np.log(centre), 4.0, 13
        for _ in range(5):
            steps = np.linspace(-width, width, points).reshape(-1, *([1] * q.ndim))
            orders = 1.0 + np.exp(np.clip(best + steps, -4.6, 13.8))  # orders from 1.01 to 10⁶
            values, rests = _coin_power(orders, self.rho * orders, q[None], q_complement[None])
            # Compare by logit: 1 − p says more where p is near 1.
            least = np.expand_dims(np.argmin(np.log(values) - np.log(np.maximum(rests, 1e-320)), axis=0), 0)
            best = np.log(np.take_along_axis(orders, least, 0)[0] - 1.0)
            value = np.minimum(value, np.take_along_axis(values, least, 0)[0])
            rest = np.maximum(rest, np.take_along_axis(rests, least, 0)[0])
            width, points = 2 * width / (points - 1), 5
        return value, rest

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        p, p_rest, q, q_rest = np.broadcast_arrays(p, p_complement, q, q_complement)
        orders = (1.0 + np.geomspace(1e-2, 1e4, 121)).reshape(-1, *([1] * p.ndim))
        return np.asarray((_coin_divergence(orders, p, p_rest, q, q_rest) / orders).max(axis=0))
