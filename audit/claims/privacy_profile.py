"""Claims given as curves: a privacy profile δ(ε), or a trade-off curve.

These claims have no parameter to bound. Their privacy parameter is an excess: the least amount to add to every δ of the
profile, or to every power of the curve, so that the counts no longer refute the claim. The claim itself has excess 0.

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..errors import ClaimError
from ..printing import shorten
from .claim import Array, ParametricClaim, excess_delta, pure_lines

_LINES_AT_ONCE = 64  # bounds the memory for profiles of thousands of lines


def _curve(name: str, values: Sequence[float], low: float, high: float) -> tuple[float, ...]:
    """Return `values` as a non-empty tuple of numbers in [low, high]; else raise a `ClaimError`."""
    try:
        given: Sequence[object] = values
        points = tuple(math.nan if isinstance(v, (str, bytes)) else float(cast(float, v)) for v in given)
    except (TypeError, ValueError, OverflowError):  # refused like no numbers
        points = ()
    if not points or not all(low <= v <= high for v in points):  # NaN fails
        raise ClaimError(
            f"{name} must be a non-empty sequence of numbers from {low:g} to {high:g}; got {shorten(values)}.",
            name=name,
            values=values,
        )
    return points


@dataclass(frozen=True, slots=True)
class PrivacyProfile(ParametricClaim):
    """Claim of (ε_i, δ_i)-DP for every i together: the boundary is the minimum of all their lines, in both directions.

    Parameters
    ----------
    epsilons, deltas : sequence of float, same length
        Points of the profile; epsilon in nats and ≥ 0, delta in [0, 1].
    excess : float
        Added to every delta; 0 for the claim itself.

    See Also
    --------
    TradeOffCurve : The same information as a trade-off function.
    ApproxDP : A single point.
    adapters.claim_from_event : The profile that dp_accounting derives.

    References
    ----------
    Balle, Barthe & Gaboardi (2018), Privacy amplification by subsampling, Section 2 (privacy profiles).

    Examples
    --------
    >>> from dpaudit import PrivacyProfile
    >>> claim = PrivacyProfile(epsilons=(0.0, 1.0), deltas=(0.3, 0.05))
    >>> float(claim.max_power(0.1)[0].round(3))  # the smaller of 0.1 + 0.3 and 0.1 e + 0.05
    0.322
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    excess: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilons", _curve("epsilons", self.epsilons, 0.0, 1e6))
        object.__setattr__(self, "deltas", _curve("deltas", self.deltas, 0.0, 1.0))
        self._store_number("excess", 0, 1, "0 is the claim itself")
        if len(self.epsilons) != len(self.deltas):
            raise ClaimError(
                f"a profile of {len(self.epsilons)} epsilons and {len(self.deltas)} deltas does not pair up; give one "
                "delta for each epsilon.",
                epsilons=len(self.epsilons),
                deltas=len(self.deltas),
            )

    @classmethod
    def from_pld(cls, pld: Any, *, points: int = 401, max_epsilon: float = 50.0) -> PrivacyProfile:
        """Return the profile of a `dp_accounting` privacy loss distribution on a grid of `points` epsilons from 0.

        A grid can only raise the boundary, so the claim is never stricter than the distribution.
        """
        epsilons = np.concatenate(
            [np.linspace(0.0, 4.0, points - points // 4), np.linspace(4.0, max_epsilon, points // 4 + 1)[1:]]
        )
        deltas = np.clip([float(pld.get_delta_for_epsilon(float(e))) for e in epsilons], 0.0, 1.0)
        return cls(tuple(epsilons.tolist()), tuple(deltas.tolist()))

    def __str__(self) -> str:
        return f"privacy profile of {len(self.epsilons)} points"

    parameter_name, _parameter_field, max_parameter = "excess delta", "excess", 1.0

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        epsilons = np.array(self.epsilons)
        deltas = np.minimum(np.array(self.deltas) + self.excess, 1.0)
        value, rest = np.ones_like(q), np.zeros_like(q)
        for start in range(0, len(epsilons), _LINES_AT_ONCE):
            part = slice(start, start + _LINES_AT_ONCE)
            shape = (-1, *([1] * q.ndim))
            lines, rests = pure_lines(epsilons[part].reshape(shape), deltas[part].reshape(shape), q, q_complement)
            value, rest = np.minimum(value, lines.min(axis=0)), np.maximum(rest, rests.max(axis=0))
        return value, rest

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        found = np.zeros(np.broadcast_shapes(p.shape, q.shape))
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            found = np.maximum(found, excess_delta(epsilon, p, p_complement, q, q_complement) - delta)
        return found


@dataclass(frozen=True, slots=True)
class TradeOffCurve(ParametricClaim):
    """Claim of a trade-off curve f: no test of false-positive rate a has a false-negative rate below f(a).

    The claim holds for both orders of the datasets, so it includes the inverse curve: the boundary is the smaller of
    one minus f and one minus its inverse. The curve is linear between the points, (0, 1) and (1, 0). If the points
    sample a curved function, the chords claim slightly more than the function: sample the function finely, or claim its
    privacy profile, whose grid errs on the safe side.

    Parameters
    ----------
    false_positive, false_negative : sequence of float, same length, in [0, 1]
        Increasing false-positive rates; decreasing and convex false-negative rates.
    excess : float
        Added to the power at every rate, in both orders of the datasets; 0 for the claim itself.

    See Also
    --------
    PrivacyProfile : The same information as δ(ε).
    GaussianDP : The curve of Gaussian noise.

    References
    ----------
    Dong, Roth & Su (2022), Gaussian differential privacy, Definition 2.1, Propositions 2.2 and 2.4 (the inverse).

    Examples
    --------
    >>> from dpaudit import TradeOffCurve
    >>> claim = TradeOffCurve(false_positive=(0.0, 0.25, 1.0), false_negative=(1.0, 0.25, 0.0))
    >>> float(claim.max_power(0.25)[0])  # the power of the best test
    0.75
    """

    false_positive: tuple[float, ...]
    false_negative: tuple[float, ...]
    excess: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "false_positive", _curve("false_positive", self.false_positive, 0.0, 1.0))
        object.__setattr__(self, "false_negative", _curve("false_negative", self.false_negative, 0.0, 1.0))
        self._store_number("excess", 0, 1, "0 is the claim itself")
        a, b = (np.array(v) for v in (self.false_positive, self.false_negative))
        if len(a) != len(b) or np.any(np.diff(a) <= 0) or np.any(np.diff(b) > 0) or np.any(a + b > 1 + 1e-12):
            raise ClaimError(
                "the points do not form a trade-off curve; use strictly increasing values of false_positive and as "
                "many nonincreasing values of false_negative, with false_positive + false_negative <= 1.",
                points=len(a),
            )
        rates, misses = self._knots()
        slopes = -np.diff(misses) / np.diff(rates)
        if np.any(np.diff(slopes) > 1e-9 * (1 + np.abs(slopes[:-1]))):
            raise ClaimError("the trade-off curve is not convex; use its convex hull.", slopes=slopes.tolist())

    def _knots(self) -> tuple[Array, Array]:
        """Return false-positive rates from 0 to 1 and their false-negative rates; a jump at rate 0 stays a jump."""
        return _with_ends(np.array(self.false_positive), np.array(self.false_negative))

    def _inverse_knots(self) -> tuple[Array, Array]:
        """Return the knots of the inverse b ↦ inf{a: f(a) ≤ b}; a flat end becomes a jump, and a jump a flat end."""
        a, b = self._knots()
        is_first = np.append(True, np.diff(b) < 0)
        return _with_ends(b[is_first][::-1], a[is_first][::-1])

    def __str__(self) -> str:
        return f"trade-off curve of {len(self.false_positive)} points"

    parameter_name, _parameter_field, max_parameter = "excess power", "excess", 1.0

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        value, rest = _power(*self._knots(), q, q_complement)
        shifted = np.minimum(q + self.excess, 1.0), np.maximum(q_complement - self.excess, 0.0)
        other, other_rest = _power(*self._inverse_knots(), *shifted)
        value, rest = np.minimum(value + self.excess, other), np.maximum(rest - self.excess, other_rest)
        return np.minimum(value, 1.0), np.maximum(rest, 0.0)

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        value, rest = _power(*self._knots(), q, q_complement)
        mirrored, mirrored_rest = _power(*self._knots(), p_complement, p)
        excess = np.where(value < 0.5, p - value, rest - p_complement)
        return np.maximum(excess, np.where(mirrored < 0.5, q_complement - mirrored, mirrored_rest - q))


def _with_ends(rates: Array, misses: Array) -> tuple[Array, Array]:
    """Add the points (0, 1) and (1, 0) where the rates do not reach 0 and 1."""
    if rates[0] > 0:
        rates, misses = np.concatenate([[0.0], rates]), np.concatenate([[1.0], misses])
    if rates[-1] < 1:
        rates, misses = np.concatenate([rates, [1.0]]), np.concatenate([misses, [0.0]])
    return rates, misses


def _power(rates: Array, misses: Array, q: Array, q_complement: Array) -> tuple[Array, Array]:
    """Return (1 − f(q), f(q)) for the curve f through the points, both with a small relative error."""
    near, far = (
        _mixed(at, knots, np.stack([1.0 - misses, misses])[:, order])
        for at, knots, order in ((q, rates, slice(None)), (q_complement, (1.0 - rates)[::-1], slice(None, None, -1)))
    )
    value, rest = np.where(q < q_complement, near, far)
    return value, rest


def _mixed(at: Array, knots: Array, heights: Array) -> Array:
    """Interpolate rows of heights at `at`, shape (rows, …), as mixtures of neighbours, so that nothing cancels."""
    left = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    with np.errstate(divide="ignore", invalid="ignore"):  # coinciding knots; `_power` then uses the other complement
        share = np.clip((at - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
        rest = np.clip((knots[left + 1] - at) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    return np.asarray(heights[:, left] * rest + heights[:, left + 1] * share)
