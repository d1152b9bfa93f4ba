"""F⁻¹ of a claim: the least rate of wrong guesses for a rate of right ones, by canary.

The inverse of a boundary is one minus the reversed claim's boundary at one minus the power. A boundary that is not a
simple formula is evaluated once on a grid. F⁻¹ is convex, so between two points it lies above the chords on both sides,
continued: the larger of them is used, which never refutes more than F⁻¹ itself, and is exact for polygons.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from ..claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ..guesses.canary_guesses import CanaryGuesses
from ..inference.binomial_tails import Array

_SPACING, _LEAST, _MOST = 0.01, 256, 1 << 12  # of the grid in log-odds, and its size
_NEAR_ONE = 1.0 - 1e-6  # powers nearer to 1 are computed one by one


def least_wrong(claim: Claim, guesses: CanaryGuesses, lowest: float, highest: float = 1.0) -> Callable[[float], float]:
    """Return F⁻¹, fast for rates of right guesses from `lowest` to `highest`."""
    prior = 1.0 if guesses.said == "both" else guesses.prior
    reverse = claim if guesses.said == "out" else claim.reversed()
    least = _formula(claim) or _on_grid(reverse, min(lowest / prior, 0.5), min(highest / prior, _NEAR_ONE))
    if guesses.said == "both":
        return least
    return lambda rate: (1.0 - prior) * least(min(rate / prior, 1.0))


def _formula(claim: Claim) -> Callable[[float], float] | None:
    """The inverse of a boundary with a simple formula, the same in both directions; subclasses may have another one."""
    if type(claim) is GaussianDP:
        mu = claim.mu
        return lambda power: float(ndtr(ndtri(power) - mu))
    if type(claim) is PureDP or type(claim) is ApproxDP:
        delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
        more, less = math.exp(min(claim.epsilon, 700.0)), math.exp(-claim.epsilon)
        return lambda power: max(less * (power - delta), 1.0 - delta - more * (1.0 - power), 0.0)
    return None


def _on_grid(reverse: Claim, lowest: float, highest: float) -> Callable[[float], float]:
    low, high = float(logit(lowest)) - _SPACING, float(logit(highest)) + 2.0 * _SPACING
    size = int(min(max((high - low) / _SPACING, _LEAST), _MOST))
    odds = np.linspace(low, high, size)
    power, rest = expit(odds), expit(-odds)
    values: Array = reverse.max_power(rest, power)[1]
    steps = np.where(power[:-1] < 0.5, np.diff(power), -np.diff(rest))
    slopes: list[float] = (np.diff(values) / steps).tolist()
    at: list[float] = power.tolist()
    least: list[float] = values.tolist()

    def found(rate: float) -> float:
        left = bisect_right(at, rate) - 1
        if not 1 <= left < size - 2:
            return float(reverse.max_power(max(1.0 - rate, 0.0), min(rate, 1.0))[1])
        below = least[left] + slopes[left - 1] * (rate - at[left])
        return max(below, least[left + 1] - slopes[left + 1] * (at[left + 1] - rate))

    return found
