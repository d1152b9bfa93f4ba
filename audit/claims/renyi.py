"""Claims given by Rényi divergences: Rényi DP (one order) and zero-concentrated DP (all orders).

B(q) is the largest p for which the divergences between Ber(p) and Ber(q) satisfy the claim. This boundary is tighter
than Proposition 10 of Mironov (2017), which drops one of the two terms of the divergence of two coins.

Proofs: docs/proofs/boundaries.md, docs/proofs/group.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .bernoulli_renyi import LARGEST, Coins, probabilities
from .claim import Array, ParametricClaim

_ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
"""Orders whose divergences are tested. They are dense enough: D_a increases in a, and (a − 1) D_a is convex."""
_ROUGH_ORDERS = 1.0 + np.geomspace(3e-5, 1e4, 19)


def _coins(p: Array, p_complement: Array, q: Array, q_complement: Array) -> tuple[Coins, Array]:
    """Return the coins of q, and the larger of the log-odds of p and of q."""
    coins = Coins.of(q, q_complement)
    return coins, np.maximum(Coins.of(p, p_complement).logit, coins.logit)


@dataclass(frozen=True, slots=True)
class RenyiDP(ParametricClaim):
    """(a, τ)-Rényi DP: the Rényi divergence of order a between M(x) and M(y) is at most τ, in both directions.

    Parameters
    ----------
    order : float
        At least 1 + 1e-6 and below 1e6; the limit of infinite order is `PureDP`.
    divergence : float
        In nats, ≥ 0.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Definition 4.
    """

    order: float
    divergence: float

    def __post_init__(self) -> None:
        self._store_number("order", 1 + 1e-6, 1e6, "use PureDP(epsilon) for order infinity")
        self._store_number("divergence", 0, math.inf, "0 claims equal distributions")

    def __str__(self) -> str:
        return f"({self.order:g}, {self.divergence:g})-Rényi DP"

    strength_name = "divergence"

    def slopes_at(self, distance: int) -> tuple[tuple[float, float], ...]:
        """Return the limits of the order that k steps leave: conjugate exponents a/(a − 1) multiply, moments stay."""
        log_conjugate = -distance * math.log1p(-1.0 / self.order)
        if log_conjugate > math.log(1e12):
            return ()
        above = math.expm1(log_conjugate)
        order, slope = 1.0 + 1.0 / above, (self.order - 1.0) * above
        order, slope = (self.order, 1.0) if distance == 1 else (order, slope)
        return *((lower, slope) for lower in _ORDERS if lower < order), (order, slope)

    @property
    def gaussian_mu(self) -> float | None:
        return math.sqrt(2.0 * self.divergence / self.order)

    def describe_bound(self, least: str) -> str:
        return f"Rényi divergence of order {self.order:g} {least}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        if self.divergence == 0.0:
            return q, q_complement
        return probabilities(Coins.of(q, q_complement).most(np.asarray(self.order), np.asarray(self.divergence)))

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        coins, logit = _coins(p, p_complement, q, q_complement)
        return coins.divergence(np.asarray(self.order), logit)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(ParametricClaim):
    """ρ-zero-concentrated DP: the Rényi divergence of every order a > 1 is at most ρ a.

    The boundary is the minimum over orders, here from 1.00003 to 10⁶. Every order gives a valid boundary, so an
    inaccurate search for the best order costs power but not validity.

    References
    ----------
    Bun & Steinke (2016), Concentrated differential privacy, Definition 1.1.
    """

    rho: float

    def __post_init__(self) -> None:
        self._store_number("rho", 0, math.inf, "rho=0 claims equal distributions")

    def __str__(self) -> str:
        return f"{self.rho:g}-zCDP"

    strength_name = "rho"

    def slopes_at(self, distance: int) -> tuple[tuple[float, float], ...]:
        return tuple((order, order * distance**2) for order in _ORDERS)

    @property
    def gaussian_mu(self) -> float | None:
        return math.sqrt(2.0 * self.rho)

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        if self.rho == 0.0:
            return q, q_complement
        return probabilities(Coins.of(q, q_complement).most_at_any_order(self.rho)[0])

    def power_touching(self, at: Array, q: Array) -> tuple[Array, Array]:
        """Return the boundary of the order that binds at `at`; the boundary of a fixed order is concave."""
        if self.rho == 0.0:
            return self.max_power(q)
        order = Coins.of(at, 1.0 - at).most_at_any_order(self.rho)[1]
        return probabilities(Coins.of(q, 1.0 - q).most(order, min(self.rho, LARGEST) * order))

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        coins, logit = _coins(*np.broadcast_arrays(p, p_complement, q, q_complement))
        order = coins.telling_order(logit)
        return coins.divergence(order, logit) / order

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            coins, logit = _coins(*np.broadcast_arrays(p, p_complement, q, q_complement))
            orders = _ROUGH_ORDERS.reshape(-1, *([1] * logit.ndim))
            found = (coins.divergence(orders, logit) / orders).max(axis=0)
        return np.where((p == 0.0) | (q_complement == 0.0), -np.inf, found)
