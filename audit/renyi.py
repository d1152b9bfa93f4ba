"""Claims given by Rényi divergences: Rényi DP of one order, and zero-concentrated DP (all orders).

For one event the divergence of the two output distributions is at least that of the two coins Ber(p) and Ber(q) (data
processing), in both directions. So B(q) is the largest p whose coin keeps within the claim. This is tighter than
Proposition 10 of Mironov (2017), which drops one of the two terms of the coin's divergence.

Proofs: docs/proofs/boundaries.md, docs/proofs/group.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

import numpy as np

from .claims import Array, Claim, check_number

_LARGEST = 1e5  # divergence; from about 1,500 on every p is allowed but for what a double cannot tell from 1
_WIDTH = 1e-12  # to which log-odds are solved; the larger end is taken
_TABLE_STEP, _FIRST_TAIL, _TAILS = 0.125, -3, 57  # of ln(−ln q), from q just above a half to the least, and of ln ρ
_ORDERS = (-4.6, 13.8)  # ln(a − 1) from orders of 1.01 to 10⁶
_ROUNDING = 16 * np.finfo(float).eps  # slack on sums and on log-odds, so that rounding can only enlarge the boundary


def _coin_power(order: Array, divergence: Array, q: Array, q_complement: Array) -> tuple[Array, Array, Array]:
    """Largest p with D_a(p‖q) ≤ τ_a and D_a(q‖p) ≤ τ_a for every order a given, 1 − p, and which order binds.

    `order` and `divergence` have one axis more than `q`, the first: shape (orders, …); the results that of `q`.
    """
    divergence = np.minimum(divergence, _LARGEST)
    small = np.minimum(q, q_complement)
    logs = np.log(small), np.log1p(-small)
    log_q, log_rest = np.where(q < q_complement, logs, logs[::-1])
    excess, sizes = order - 1.0, -(log_q + log_rest)

    def over(logit: Array) -> Array:
        log_p_rest = -np.logaddexp(0.0, logit)
        log_p = logit + log_p_rest
        forward = np.logaddexp(order * log_p - excess * log_q, order * log_p_rest - excess * log_rest)
        backward = np.logaddexp(order * log_q - excess * log_p, order * log_rest - excess * log_p_rest)
        rounding = order * (np.abs(logit) - log_p_rest + sizes) + 1.0
        found: Array = (np.maximum(forward, backward) - _ROUNDING * rounding) / excess - divergence
        return found

    # Mironov's Proposition 10, p ≤ (e^τ q)^{(a−1)/a} and its mirror image for 1 − p, brackets the answer from above.
    low = log_q - log_rest
    cap = (divergence + log_q) * excess / order
    below = np.minimum(cap, -1e-300)
    mirror = np.minimum(order / excess * log_rest - divergence, -1e-300)
    capped = np.where(cap < 0.0, below - np.log(-np.expm1(below)), np.inf)
    high = np.minimum(capped, np.log(-np.expm1(mirror)) - mirror).min(axis=0)
    high = np.maximum(high, low)
    high = _solve(lambda logit: over(logit).max(axis=0), low, high + _WIDTH * (1.0 + np.abs(high)))
    binding = np.argmax(over(high), axis=0)
    high = high + _ROUNDING * (1.0 + np.abs(high))
    return np.exp(-np.logaddexp(0.0, -high)), np.exp(-np.logaddexp(0.0, high)), binding


def _solve(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Upper ends of brackets of width `_WIDTH` around the roots of a function that grows through zero.

    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without
    using derivatives: inverse quadratic interpolation where it is safe, else bisection; mostly about ten steps. Every
    fourth is a bisection, so that there are at most four times as many as by bisection alone.
    """
    # `new` and `old` enclose the root, `last` is the point before.
    tiny = np.finfo(float).tiny
    new, old, last = low, high, low
    at_new, at_old = np.minimum(function(low), -tiny), np.maximum(function(high), tiny)
    at_last, share = at_new, np.full(low.shape, 0.5)
    for step in count(1):
        gap = old - new
        open_ = np.abs(gap) > _WIDTH * (1.0 + np.minimum(np.abs(old), np.abs(new)))
        if not np.any(open_):
            break
        # Never nearer to an end than half a bracket, so that the next point lies beyond the root.
        least = np.minimum(0.5 * _WIDTH * (1.0 + np.abs(new)) / np.where(open_, np.abs(gap), 1.0), 0.5)
        at = new + np.clip(share, least, 1.0 - least) * gap
        value = function(at)
        is_same = (value > 0.0) == (at_new > 0.0)
        last, at_last = np.where(is_same, new, old), np.where(is_same, at_new, at_old)
        old, at_old = np.where(is_same, old, new), np.where(is_same, at_old, at_new)
        new, at_new = at, value
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            place, height = (new - old) / (last - old), (at_new - at_old) / (at_last - at_old)
            is_safe = (height**2 < place) & ((1.0 - height) ** 2 < 1.0 - place)
            quadratic = at_new / (at_old - at_new) * at_last / (at_old - at_last)
            quadratic += (last - new) / (old - new) * at_new / (at_last - at_new) * at_old / (at_last - at_old)
        share = np.where(is_safe & (step % 4 > 0), quadratic, 0.5)
    return np.where(at_new > 0.0, new, old)


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
        order = check_number("order", self.order, 1 + 1e-6, 1e6, "use PureDP(epsilon) for order infinity")
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
        if self.divergence == 0.0:
            return q, q_complement
        order, divergence = np.full((1, *q.shape), self.order), np.full((1, *q.shape), self.divergence)
        value, rest, _ = _coin_power(order, divergence, q, q_complement)
        return value, rest

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _coin_divergence(np.asarray(self.order), p, p_complement, q, q_complement)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(Claim):
    """ρ-zero-concentrated DP: the Rényi divergence of every order a > 1 is at most ρ a.

    The boundary is the least over orders. Any set of orders gives a valid (larger) boundary, so where the best one is
    looked for needs no proof, only care to be near it.

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

    def direct_at_distance(self, distance: int) -> ZeroConcentratedDP | None:
        """Group privacy of zCDP: k²ρ at distance k, where that is a number."""
        rho = self.rho * distance**2
        return ZeroConcentratedDP(rho) if rho < np.inf else None

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        if self.rho == 0.0:
            return q, q_complement
        orders = _orders_near(self.rho, q, q_complement)
        return _coin_power(orders, self.rho * orders, q, q_complement)[:2]

    def power_touching(self, at: Array, q: Array) -> tuple[Array, Array]:
        """The boundary of the order that is best at `at`; the least over a few orders is concave but for a little."""
        if self.rho == 0.0:
            return self.max_power(q)
        orders = np.broadcast_to(_orders_near(self.rho, at, 1.0 - at)[0], q.shape)[None]
        value, rest, _ = _coin_power(orders, self.rho * orders, q, 1.0 - q)
        return value, rest

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return self._largest(121, p, p_complement, q, q_complement)

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._largest(13, p, p_complement, q, q_complement)
        return np.where((p == 0.0) | (q_complement == 0.0), -np.inf, found)

    def _largest(self, n_orders: int, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        """The largest D_a / a over so many orders a."""
        p, p_rest, q, q_rest = np.broadcast_arrays(p, p_complement, q, q_complement)
        orders = (1.0 + np.geomspace(1e-2, 1e4, n_orders)).reshape(-1, *([1] * p.ndim))
        return np.asarray((_coin_divergence(orders, p, p_rest, q, q_rest) / orders).max(axis=0))


def _orders_near(rho: float, q: Array, q_complement: Array) -> Array:
    """Orders at which ρ-zCDP says most at q, the likeliest first, then four around it; shape (5, …).

    Between the places of a table of ln(a − 1), which changes slowly with ln ρ and the logarithm of q's own.
    """
    tail = np.log(-np.log(np.minimum(q, q_complement))) / _TABLE_STEP - _FIRST_TAIL
    nearest, place = math.floor(math.log(rho) / _TABLE_STEP), np.clip(tail.astype(np.int64), 0, _TAILS - 2)
    above, beyond = math.log(rho) / _TABLE_STEP - nearest, tail - place
    side = (q >= q_complement).astype(np.int64)
    less, more = _best_orders(nearest), _best_orders(nearest + 1)
    corners = [table[side, at] for table in (less, more) for at in (place, place + 1)]
    rows = [corners[k] + beyond * (corners[k + 1] - corners[k]) for k in (0, 2)]
    return np.asarray(1.0 + np.exp(np.stack([rows[0] + above * (rows[1] - rows[0]), *corners])))


@lru_cache(maxsize=1 << 10)
def _best_orders(place: int) -> Array:
    """ln(a − 1) of the best order a for this place of ln ρ, for q below a half and above; shape (2, tails)."""
    rho = math.exp(min(max(place * _TABLE_STEP, -700.0), 700.0))
    tail = np.minimum(np.exp((np.arange(_TAILS) + _FIRST_TAIL) * _TABLE_STEP), 740.0)  # where doubles end
    small, large = np.exp(-tail), -np.expm1(-tail)
    q, q_complement = np.stack([small, large]), np.stack([large, small])
    # For a tail of log-probability −L the best order is near √(L/ρ) (minimise (ρa − L)(a − 1)/a): look around that,
    # then ever closer around the order that binds.
    best, width = np.broadcast_to(0.5 * np.log(tail / rho), q.shape), 5.0
    for points in (25, 9, 9):
        steps = np.linspace(-width, width, points)[:, None, None]
        orders = 1.0 + np.exp(np.clip(best + steps, *_ORDERS))
        binding = _coin_power(orders, rho * orders, q, q_complement)[2]
        best = np.log(np.take_along_axis(orders, np.expand_dims(binding, 0), 0)[0] - 1.0)
        width *= 2.0 / (points - 1)
    return best
