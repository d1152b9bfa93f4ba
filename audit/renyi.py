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
from itertools import count

import numpy as np

from .claims import Array, Claim, check_number

_LARGEST = 1e5  # divergence; from about 1,500 on every p is allowed but for what a double cannot tell from 1
_WIDTH = 1e-12  # to which log-odds are solved; the larger end is taken
_ROUNDING = 16 * np.finfo(float).eps  # slack on sums and on log-odds, so that rounding can only enlarge the boundary
_ORDERS = (-10.4, 13.8)  # ln(a − 1) of orders from 1.00003 to 10⁶, of which the one that says most is looked for
_POINTS = (25, 9, 9, 9)  # how many are tried at a time, ever closer around the best
_WIDTHS = (1e-3, 1e-7, _WIDTH)  # of log-odds, each for a better order than the one before


@dataclass(frozen=True, slots=True)
class _Coins:
    """Ber(q) for every q, as ln q and ln(1 − q), and how far another coin may be from it; arrays broadcast together."""

    log_q: Array
    log_rest: Array

    @classmethod
    def of(cls, q: Array, q_complement: Array) -> _Coins:
        small = np.minimum(q, q_complement)
        logs = np.log(small), np.log1p(-small)
        return cls(*np.where(q < q_complement, logs, logs[::-1]))

    def divergence(self, order: Array, logit: Array, *, slack: float = 0.0) -> Array:
        """The larger of D_a(p‖q) and D_a(q‖p) for p of these log-odds, less a multiple of what the terms add up to."""
        excess, log_p_rest = order - 1.0, -np.logaddexp(0.0, logit)
        log_p = logit + log_p_rest
        forward = np.logaddexp(order * log_p - excess * self.log_q, order * log_p_rest - excess * self.log_rest)
        backward = np.logaddexp(order * self.log_q - excess * log_p, order * self.log_rest - excess * log_p_rest)
        found: Array = np.maximum(forward, backward)
        if slack:
            found -= slack * (order * (np.abs(logit) - log_p_rest - self.log_q - self.log_rest) + 1.0)
        return found / excess

    def cap(self, order: Array, divergence: Array) -> Array:
        """Log-odds from above by Proposition 10: p ≤ (e^τ q)^{(a−1)/a}, and its mirror image for 1 − p."""
        excess = order - 1.0
        cap = (divergence + self.log_q + _ROUNDING * (divergence - self.log_q)) * excess / order
        below = np.minimum(cap, -1e-300)
        mirror = np.minimum(order / excess * self.log_rest - divergence, -1e-300)
        capped = np.where(cap < 0.0, below - np.log(-np.expm1(below)), np.inf)
        found: Array = np.maximum(np.minimum(capped, np.log(-np.expm1(mirror)) - mirror), self.log_q - self.log_rest)
        return found + _WIDTH * (1.0 + np.abs(found))

    def most(self, order: Array, divergence: Array, below: Array | float = math.inf, *, width: float = _WIDTH) -> Array:
        """Log-odds of the largest p up to `below` with both divergences at most τ; from above."""
        divergence = np.minimum(divergence, _LARGEST)
        high = np.minimum(self.cap(order, divergence), below)
        low = np.minimum(np.broadcast_to(self.log_q - self.log_rest, high.shape), high)
        return _solve(lambda at: self.divergence(order, at, slack=_ROUNDING) - divergence, low, high, width)

    def telling_order(self, logit: Array) -> Array:
        """The order a with the largest D_a/a for p of these log-odds: the one that asks for the largest ρ."""
        best, wide = np.full(logit.shape, sum(_ORDERS) / 2), (_ORDERS[1] - _ORDERS[0]) / 2
        for points in _POINTS:
            apart = 2.0 * wide / (points - 1)
            at = np.clip(np.add.outer(np.linspace(-wide, wide, points), best), *_ORDERS)
            orders = 1.0 + np.exp(at)
            found = self.divergence(orders, logit) / orders
            top = np.clip(np.argmax(found, axis=0), 1, points - 2)
            one, two, three = (np.take_along_axis(found, (top + k)[None], 0)[0] for k in (-1, 0, 1))
            best, wide = np.take_along_axis(at, top[None], 0)[0], apart
        # Between the last ones by a parabola, where it has a top.
        bend = 2.0 * two - one - three
        shift = np.where(bend > 0.0, 0.5 * (three - one) / np.where(bend > 0.0, bend, 1.0), 0.0)
        return np.asarray(1.0 + np.exp(np.clip(best + apart * np.clip(shift, -1.0, 1.0), *_ORDERS)))


def _probabilities(logit: Array) -> tuple[Array, Array]:
    """p and 1 − p, slightly larger than these log-odds say."""
    logit = logit + _ROUNDING * (1.0 + np.abs(logit))
    return np.exp(-np.logaddexp(0.0, -logit)), np.exp(-np.logaddexp(0.0, logit))


def _solve(function: Callable[[Array], Array], low: Array, high: Array, width: float) -> Array:
    """Upper ends of brackets of this width around the roots of a function that grows through zero, or `high`.

    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without
    using derivatives: inverse quadratic interpolation where it is safe, else bisection; mostly about ten steps. Every
    fourth is a bisection, so that there are at most four times as many as by bisection alone.
    """
    # `new` and `old` enclose the root, `last` is the point before.
    tiny = np.finfo(float).tiny
    at_low, at_high = np.minimum(function(low), -tiny), function(high)
    new, old, last = np.where(at_high > 0.0, low, high), high, low
    at_new, at_old, at_last = at_low, np.maximum(at_high, tiny), at_low
    share = at_new / (at_new - at_old)
    for step in count(1):
        gap = old - new
        open_ = np.abs(gap) > width * (1.0 + np.minimum(np.abs(old), np.abs(new)))
        if not np.any(open_):
            break
        # Never nearer to an end than half a bracket, so that the next point lies beyond the root.
        least = np.minimum(0.5 * width * (1.0 + np.abs(new)) / np.where(open_, np.abs(gap), 1.0), 0.5)
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
        coins, order = _Coins.of(q, q_complement), np.asarray(self.order)
        return _probabilities(coins.most(order, np.asarray(self.divergence)))

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _coin_divergence(np.asarray(self.order), p, p_complement, q, q_complement)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(Claim):
    """ρ-zero-concentrated DP: the Rényi divergence of every order a > 1 is at most ρ a.

    The boundary is the least over orders, here from 1.00003 to 10⁶. Any order gives a valid (larger) boundary, so the
    search for the best one needs no proof, only care to be near it.

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
        return _probabilities(self._least(_Coins.of(q, q_complement))[0])

    def power_touching(self, at: Array, q: Array) -> tuple[Array, Array]:
        """The boundary of the order that binds at `at`, which is concave without any search."""
        if self.rho == 0.0:
            return self.max_power(q)
        order = self._least(_Coins.of(at, 1.0 - at))[1]
        divergence = min(self.rho, _LARGEST) * order
        return _probabilities(_Coins.of(q, 1.0 - q).most(order, divergence))

    def _least(self, coins: _Coins) -> tuple[Array, Array]:
        """Log-odds of the boundary and the order that binds, by exchanging one order for a better one.

        From what Proposition 10 says of a few orders: the order that says most about the p that is left, the largest p
        that this one allows, and again. An order that is off by a little leaves p off by its square.
        """
        rho = min(self.rho, _LARGEST)
        few = 1.0 + np.exp(np.linspace(*_ORDERS, _POINTS[0])).reshape(-1, *([1] * coins.log_q.ndim))
        below = coins.cap(few, np.minimum(rho * few, _LARGEST)).min(axis=0)
        for width in _WIDTHS:
            order = coins.telling_order(below)
            below = coins.most(order, rho * order, below, width=width)
        return below, order

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        p, p_rest, q, q_rest = np.broadcast_arrays(p, p_complement, q, q_complement)
        logit = np.clip(np.log(p) - np.log(p_rest), -745.0, 745.0)  # where p is 0 or 1 every order says the same
        order = _Coins.of(q, q_rest).telling_order(logit)
        return np.maximum(_coin_divergence(order, p, p_rest, q, q_rest) / order, 0.0)  # rounding, next to order 1

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        orders = (1.0 + np.geomspace(math.exp(_ORDERS[0]), 1e4, 19)).reshape(-1, *([1] * np.broadcast(p, q).ndim))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (_coin_divergence(orders, p, p_complement, q, q_complement) / orders).max(axis=0)
        return np.where((p == 0.0) | (q_complement == 0.0), -np.inf, found)
