"""A family of claims near one probability, read from tables: as cheap as a boundary with a closed form.

Counts near that probability are planned with the tables and tested with the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..claims.claim import Claim, ParametricClaim
from ..inference.binomial_tails import Array
from ..inference.boundary_test import arcsine_angle, table_angles

_NEAR = 24.0  # standard errors around q that a power needs


@dataclass(frozen=True, slots=True, eq=False)
class _Tabulated(ParametricClaim):
    """A claim's family near one q, on the arcsine scale: linear between grid points and between tabulated members."""

    claim: Claim
    angle: Array
    step: float  # of the strength between tabulated members
    own: float
    powers: dict[int, Array] = field(default_factory=dict)  # filled on demand; shared by the family

    strength_name, _strength_field = "strength", "own"
    has_closed_form = True  # the tables are as cheap as a formula

    @property
    def max_strength(self) -> float:
        return self.claim.max_strength

    def _member(self, number: int) -> Array:
        if number not in self.powers:
            strength = max(self.claim.strength + number * self.step, 0.0)
            member = self.claim.with_strength(min(strength, self.claim.max_strength * (1.0 - 1e-12)))
            self.powers[number] = arcsine_angle(*member.max_power(np.sin(self.angle) ** 2, np.cos(self.angle) ** 2))
        return self.powers[number]

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        place = (self.own - self.claim.strength) / self.step
        below = math.floor(place)
        table = self._member(below)
        if place > below:
            low = max(self.claim.strength + below * self.step, 0.0)
            high = min(self.claim.strength + (below + 1) * self.step, self.claim.max_strength)
            table = table + (self.own - low) / (high - low) * (self._member(below + 1) - table)
        found = np.interp(arcsine_angle(q, q_complement), self.angle, table)
        return np.sin(found) ** 2, np.cos(found) ** 2

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return self.claim.rough_strength_of(p, q, p_complement, q_complement)


def tabulated(claim: Claim, n: int, m: int, q: float) -> Claim:
    """Return the claim with a boundary that is cheap near `q`; a claim with a closed form is returned as it is."""
    if claim.has_closed_form:
        return claim
    middle, unit = math.asin(math.sqrt(q)), 0.5 / math.sqrt(m)
    angle = table_angles(max(middle - _NEAR * unit, 0.0), min(middle + _NEAR * unit, math.pi / 2), m)
    power = float(arcsine_angle(*claim.max_power(q, 1.0 - q)))
    above = min(power + 0.5 / math.sqrt(n), 0.5 * math.pi - 1e-9)  # a standard error of x
    step = min(max(rise(claim, q, power, above), 1e-6), 1.0, 0.5 * (claim.max_strength - claim.strength))
    return _Tabulated(claim, angle, step, claim.strength)


def rise(claim: Claim, q: float, low: float, high: float) -> float:
    """Return about how much the strength rises if the angle of p at q does so from `low` to `high`."""
    p, p_rest = (np.square(turn([low, high])) for turn in (np.sin, np.cos))
    strength = claim.rough_strength_of(p, np.full(2, q), p_rest, np.full(2, 1.0 - q))
    return float(strength[1] - max(strength[0], 0.0))
