"""Curves of a claim: the boundary of its trade-off curve, and the privacy profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ...audit.claims.claim import Claim
from ...audit.inference.confidence_bands import concave_hull

Array = npt.NDArray[np.float64]

_LOG_ODDS = np.linspace(-28.0, 12.0, 161)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedCurve:
    """Concave increasing curve that bounds the power of every test under the claim, by false-positive rate."""

    rate: Array
    power: Array

    @classmethod
    def of(cls, claim: Claim) -> ClaimedCurve:
        """Return the vertices of a polygon just outside the claim's boundary; exact for few straight pieces.

        Between two points of a concave curve, the extended chords on either side meet above the curve.
        """
        rates = expit(_LOG_ODDS)
        powers = claim.max_power(rates, expit(-_LOG_ODDS))[0]
        inner = concave_hull([0.0, *rates], [float(claim.max_power(0.0)[0]), *powers])
        more = _meetings(*inner)[0]  # refine where the boundary bends most
        inner = concave_hull(np.append(inner[0], more), np.append(inner[1], claim.max_power(more)[0]))
        rate, power = (np.concatenate(parts) for parts in zip(inner, _meetings(*inner), strict=True))
        order = np.argsort(rate, kind="stable")
        return cls(rate[order], np.maximum.accumulate(power[order]))

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """Return δ(ε) = sup of p − e^ε q over the curve, the smallest δ at which the claim implies (ε, δ)-DP."""
        factor = np.exp(np.asarray(epsilon, dtype=np.float64))[..., None]
        found: Array = (self.power - factor * self.rate).max(axis=-1)
        return found.clip(0.0, 1.0)


def _meetings(rate: Array, power: Array) -> tuple[Array, Array]:
    """Points where the chords on either side of each inner piece of a concave polygon meet."""
    slope = np.diff(power) / np.diff(rate)
    before, after = slope[:-2], slope[2:]
    left, right, low, high = rate[1:-2], rate[2:-1], power[1:-2], power[2:-1]
    bend = before - after
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = left + (high - low - after * (right - left)) / bend
    meet = np.where(bend > 0, np.clip(meet, left, right), left)
    return meet, np.minimum(low + before * (meet - left), 1.0)
