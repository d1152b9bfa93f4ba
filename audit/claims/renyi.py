"""Claims given by Rényi divergences: Rényi DP (one order) and zero-concentrated DP (all orders).

B(q) is the largest p for which the divergences between Ber(p) and Ber(q) satisfy the claim. This boundary is tighter
than Proposition 10 of Mironov (2017), which drops one of the two terms of the divergence of two coins.

Proofs: docs/proofs/boundaries.md, docs/proofs/group.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .claim import Array, ParametricClaim

# Rényi divergences of two coins: the largest p allowed for Ber(p) given Ber(q), and the most informative order.
#
# For one event, the divergence of two output distributions is at least that of the coins Ber(p) and Ber(q), in both
# directions (van Erven & Harremoës 2014, Rényi divergence and Kullback-Leibler divergence, Theorem 9: data
# processing). The largest p within a divergence is solved for in log-odds and rounded up.

Bools: TypeAlias = npt.NDArray[np.bool_]

LARGEST = 1e5
"""Largest divergence; from about 1,500 on, the allowed p is as near 1 as a double can tell."""

WIDTH = 1e-12
"""Accuracy of solved log-odds, of which the upper end is returned: some thousand times the last digit of a double."""
_ROUNDING = 16 * np.finfo(float).eps  # slack on sums and log-odds, so that rounding can only enlarge p
_NEWTON_STEPS = 20  # at most: bisection does better where rounding hides the slope
_LOG_ORDERS = np.linspace(3e-5**0.5, 13.8**0.5, 21) ** 2  # first grid of ln(order), from 1.00003 to 10⁶
_AROUND = np.linspace(-1.0, 1.0, 21)  # next grid around the best order, in multiples of its reach
_WIDEST = 0.5 * float(_LOG_ORDERS[-1] - _LOG_ORDERS[0])  # largest reach
_ROUNDS = 12  # most grids; three or four usually suffice for ρ < 1


class _Parts(NamedTuple):
    """Parts of D = ratio + ln(w + v e^{−bΔ}) / b for two coins; w + v = 1, b is the order minus 1 and Δ is `apart`."""

    log_p: Array
    log_p_rest: Array
    is_forward: Bools
    ratio: Array
    log_w: Array
    log_v: Array
    apart: Array


@dataclass(frozen=True, slots=True)
class Coins:
    """Coins Ber(q), stored as ln q, ln(1 − q) and log-odds."""

    log_q: Array
    log_q_rest: Array
    logit: Array

    @classmethod
    def of(cls, q: Array, q_complement: Array) -> Coins:
        """Build the coins from the smaller of q and 1 − q."""
        small = np.minimum(q, q_complement)
        logs = np.log(small), np.log1p(-small)
        log_q, log_q_rest = np.where(q < q_complement, logs, logs[::-1])
        return cls(log_q, log_q_rest, log_q - log_q_rest)

    def divergence(self, order: Array, logit: Array) -> Array:
        """Return the larger of D_a(p‖q) and D_a(q‖p), ≥ 0, for log-odds of p ≥ q; all arguments broadcast."""
        parts, excess = self._parts(logit), order - 1.0
        return np.asarray(np.maximum(parts.ratio + _log_sum(parts, excess * parts.apart) / excess, 0.0))

    def most(self, order: Array, divergence: Array) -> Array:
        """Return an upper bound on the log-odds of the largest p with both divergences at most τ; all broadcast."""
        divergence = np.minimum(divergence, LARGEST)
        high, start = self._cap(order, divergence), self._near(divergence / order)
        return _solve(partial(self._beyond, order, divergence), self.logit, high, start)

    def most_at_any_order(self, rho: float) -> tuple[Array, Array]:
        """Return an upper bound on the log-odds of the largest p with D_a ≤ ρa for every order a, and its last order.

        Every order gives a valid bound, and a small error in it costs only its square. Where Newton's method does not
        converge, each order is replaced by the most informative one for the p that it allows.
        """
        rho = min(rho, LARGEST)
        found, order, is_settled = self._by_newton(rho)
        for _ in range(_ROUNDS):
            if np.all(is_settled):
                break
            order, before = self.telling_order(found), found
            found = np.minimum(self.most(order, rho * order), before)
            is_settled = before - found <= 1e-9 * (1.0 + np.abs(found))
        return found, order

    def _by_newton(self, rho: float) -> tuple[Array, Array, Bools]:
        """Return log-odds, order and convergence of Newton's method, which refines the order as it refines p."""
        anywhere = _LOG_ORDERS.reshape(-1, *([1] * self.logit.ndim))
        some = np.exp(anywhere)
        high = self._cap(some, np.minimum(rho * some, LARGEST)).min(axis=0)
        low, at = self.logit, np.minimum(self._near(np.asarray(rho)), high)
        tried = np.broadcast_to(anywhere, (len(anywhere), *at.shape))
        for step in range(_ROUNDS):
            best, reach = self._most_telling(tried, at)
            order = np.exp(best)
            value, slope = self._beyond(order, rho * order, at)
            is_far_below = value < -0.1 * rho * order  # and so most likely below at the best order
            low, high = np.where(is_far_below, at, low), np.where(value > 0.0, at, high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                aim = at - value / slope
            is_outside = (aim < low) | (is_far_below & ~(aim < high))
            aim = np.where(is_outside, 0.5 * (low + high), np.fmin(aim, high))
            moved, at = np.abs(aim - at), aim
            is_settled = (moved < 1e-3) & (reach < np.minimum(np.maximum(best, 1e-3), 1e-2))
            if np.all(is_settled):
                break
            tried = np.where((moved > 0.5) & (step < _ROUNDS // 2), anywhere, _nearby(best, reach))
        return _solve(partial(self._beyond, order, rho * order), self.logit, high, at), order, is_settled

    def telling_order(self, logit: Array) -> Array:
        """Return the order a with the largest D_a/a for log-odds of p ≥ q, which requires the largest ρ."""
        tried = np.broadcast_to(_LOG_ORDERS.reshape(-1, *([1] * logit.ndim)), (len(_LOG_ORDERS), *logit.shape))
        for _ in range(4):
            best, reach = self._most_telling(tried, logit)
            tried = _nearby(best, reach)
        return np.exp(best)

    def _most_telling(self, log_orders: Array, logit: Array) -> tuple[Array, Array]:
        """Return ln a of the most informative order, by a parabola through the best orders, and the reach to search.

        `log_orders` ascend and have the shape (tried, …).
        """
        orders, last, size = np.exp(log_orders), len(log_orders) - 1, logit.size
        tried, found = log_orders.ravel(), (self.divergence(orders, logit) / orders).ravel()
        top = np.clip(found.reshape(last + 1, size).argmax(axis=0), 1, last - 1) * size + np.arange(size)
        (x, f), (y, g), (z, h) = ((tried[at], found[at]) for at in (top - size, top, top + size))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rise, fall = (g - f) / (y - x), (h - g) / (z - y)
            best = 0.5 * (x + y + (z - x) * rise / (rise - fall))
        is_inside = (rise > fall) & (best >= x) & (best <= z)
        best = np.where(is_inside, best, np.where(f > h, x, z))
        is_near = is_inside | (best < _LOG_ORDERS[0] + 1e-9) | (best > _LOG_ORDERS[-1] - 1e-9)
        reach = np.where(is_near, 0.5 * (z - x), np.minimum(tried[last * size :] - tried[:size] + 0.1, _WIDEST))
        return best.reshape(logit.shape), reach.reshape(logit.shape)

    def _beyond(self, order: Array, divergence: Array, logit: Array) -> tuple[Array, Array]:
        """Return the divergence minus τ and a bound on rounding errors, and its slope in the log-odds of p."""
        parts, excess = self._parts(logit), order - 1.0
        fall = excess * parts.apart
        log_sum = _log_sum(parts, fall)
        size = 1.0 + np.abs(logit) - parts.log_p_rest - (self.log_q + self.log_q_rest)
        share = parts.log_p - log_sum
        slope = np.where(
            parts.is_forward,
            np.exp(share + parts.log_p_rest) * -np.expm1(-fall) * (order / excess),
            np.exp(share + self.log_q_rest) * -np.expm1(-order * parts.apart),
        )
        return parts.ratio + log_sum / excess - _ROUNDING * size - divergence, slope

    def _parts(self, logit: Array) -> _Parts:
        """Return the parts of the larger divergence: D(p‖q) with w = p where p + q ≤ 1, else D(q‖p) with w = 1 − q."""
        log_p, log_p_rest = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
        is_forward = logit <= -self.logit
        ratio = np.where(is_forward, log_p - self.log_q, self.log_q_rest - log_p_rest)
        log_w, log_v = np.where(is_forward, log_p, self.log_q_rest), np.where(is_forward, log_p_rest, self.log_q)
        return _Parts(log_p, log_p_rest, is_forward, ratio, log_w, log_v, logit - self.logit)

    def _cap(self, order: Array, divergence: Array) -> Array:
        """Bound the log-odds by Proposition 10 of Mironov (2017), p ≤ (e^τ q)^{(a−1)/a}, and its mirror image."""
        share = (order - 1.0) / order
        cap = (divergence + self.log_q + _ROUNDING * (divergence - self.log_q)) * share
        below = np.minimum(cap, -1e-300)
        mirror = np.minimum(self.log_q_rest / share - divergence, -1e-300)
        capped = np.where(cap < 0.0, below - np.log(-np.expm1(below)), np.inf)
        found: Array = np.maximum(np.minimum(capped, np.log(-np.expm1(mirror)) - mirror), self.logit)
        return found + WIDTH * (1.0 + np.abs(found))

    def _near(self, rho: Array) -> Array:
        """Approximate the log-odds with D_a = ρa for coins near each other, where D_a is about a q (1 − q) Δ² / 2."""
        return self.logit + np.exp(0.5 * (np.log(2.0 * rho) - self.log_q - self.log_q_rest))


def probabilities(logit: Array) -> tuple[Array, Array]:
    """Return p and 1 − p for log-odds enlarged by the rounding slack."""
    logit = logit + _ROUNDING * (1.0 + np.abs(logit))
    return np.exp(-np.logaddexp(0.0, -logit)), np.exp(-np.logaddexp(0.0, logit))


def _nearby(log_orders: Array, reach: Array) -> Array:
    """Return a grid within `reach` of these orders, of the shape (tried, …)."""
    middle = np.minimum(np.maximum(log_orders, _LOG_ORDERS[0] + reach), _LOG_ORDERS[-1] - reach)
    return np.asarray(middle + np.multiply.outer(_AROUND, reach))


def _log_sum(parts: _Parts, fall: Array) -> Array:
    """Return ln(w + v e^{−fall}), without cancellation where the fall is small."""
    is_small = fall < 1.0
    if not is_small.any():
        return np.logaddexp(parts.log_w, parts.log_v - fall)
    near = np.log1p(np.exp(parts.log_v) * np.expm1(-np.minimum(fall, 1.0)))
    return near if is_small.all() else np.where(is_small, near, np.logaddexp(parts.log_w, parts.log_v - fall))


def _solve(function: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array) -> Array:
    """Return upper ends of tight brackets around the roots of an increasing function, or `high` if it has no root.

    Newton steps aim half a bracket past the root, so that the bracket closes. A step that does not halve the value is
    followed by a bisection, and after `_NEWTON_STEPS` steps, every step is one.
    """
    at = np.minimum(np.maximum(start, low), high)
    best, best_value, best_slope = at, np.full(at.shape, np.inf), np.ones(at.shape)
    was_newton = np.zeros(at.shape, dtype=bool)
    for step in count():
        value, slope = function(at)
        is_above, size, least = value > 0.0, np.abs(value), np.abs(best_value)
        low, high = np.where(is_above, low, at), np.where(is_above, at, high)
        width = WIDTH * (1.0 + np.minimum(np.abs(low), np.abs(high)))
        if np.all(high - low <= width):
            break
        is_best = size < least
        best, best_value = np.where(is_best, at, best), np.where(is_best, value, best_value)
        best_slope = np.where(is_best, slope, best_slope)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            aim = best - best_value / best_slope + np.copysign(0.5 * width, -best_value)
        was_newton = ((size <= 0.5 * least) | ~was_newton) & ~np.isnan(aim) & (step < _NEWTON_STEPS)
        inside = np.minimum(np.maximum(aim, low + 0.5 * width), high - 0.5 * width)
        at = np.where(was_newton, inside, 0.5 * (low + high))
    return high


_ORDERS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
"""Orders whose divergences are tested. They are dense enough: D_a increases in a, and (a − 1) D_a is convex."""
_ROUGH_ORDERS = 1.0 + np.geomspace(3e-5, 1e4, 19)


def _coins(p: Array, p_complement: Array, q: Array, q_complement: Array) -> tuple[Coins, Array]:
    """Return the coins of q, and the larger of the log-odds of p and of q."""
    coins = Coins.of(q, q_complement)
    return coins, np.maximum(Coins.of(p, p_complement).logit, coins.logit)


@dataclass(frozen=True, slots=True)
class RenyiDP(ParametricClaim):
    """Claim of (a, τ)-Rényi DP: the Rényi divergence of order a of M(x) and M(y) is at most τ, in both directions.

    Parameters
    ----------
    order : float
        At least 1 + 1e-6 and below 1e6; the limit of infinite order is `PureDP`.
    divergence : float
        In nats, ≥ 0.

    See Also
    --------
    ZeroConcentratedDP : A limit at every order.
    claims.ProbabilityPreservation : The inequality that the claim implies for every event.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Definition 4.

    Examples
    --------
    >>> from dpaudit import RenyiDP
    >>> claim = RenyiDP(order=2, divergence=0.25)
    >>> claim.parameter, claim.parameter_name
    (0.25, 'divergence')
    """

    order: float
    divergence: float

    def __post_init__(self) -> None:
        self._store_number("order", 1 + 1e-6, 1e6, "use PureDP(epsilon) for order infinity")
        self._store_number("divergence", 0, math.inf, "0 claims equal distributions")

    def __str__(self) -> str:
        return f"({self.order:g}, {self.divergence:g})-Rényi DP"

    parameter_name = "divergence"

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

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        coins, logit = _coins(p, p_complement, q, q_complement)
        return coins.divergence(np.asarray(self.order), logit)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDP(ParametricClaim):
    """Claim of ρ-zero-concentrated DP: the Rényi divergence of every order a > 1 is at most ρ a.

    The boundary is the minimum over orders, here from 1.00003 to 10⁶. Every order gives a valid boundary, so an
    inaccurate search for the best order costs power but not validity.

    Parameters
    ----------
    rho : float
        Finite and ≥ 0; Gaussian noise of standard deviation σ has ρ = sensitivity²/(2σ²).

    See Also
    --------
    RenyiDP : A limit at one order.
    GaussianDP : The stronger claim that Gaussian noise keeps.

    References
    ----------
    Bun & Steinke (2016), Concentrated differential privacy, Definition 1.1.

    Examples
    --------
    >>> from dpaudit import ZeroConcentratedDP
    >>> print(ZeroConcentratedDP(0.5))
    0.5-zCDP
    """

    rho: float

    def __post_init__(self) -> None:
        self._store_number("rho", 0, math.inf, "rho=0 claims equal distributions")

    def __str__(self) -> str:
        return f"{self.rho:g}-zCDP"

    parameter_name = "rho"

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

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        coins, logit = _coins(*np.broadcast_arrays(p, p_complement, q, q_complement))
        order = coins.telling_order(logit)
        return coins.divergence(order, logit) / order

    def rough_parameter_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            coins, logit = _coins(*np.broadcast_arrays(p, p_complement, q, q_complement))
            orders = _ROUGH_ORDERS.reshape(-1, *([1] * logit.ndim))
            found = (coins.divergence(orders, logit) / orders).max(axis=0)
        return np.where((p == 0.0) | (q_complement == 0.0), -np.inf, found)
