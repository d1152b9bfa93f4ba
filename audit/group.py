"""Claims for datasets further apart than neighbours: a boundary composed with itself, or a function of the distance.

Proof: docs/proofs/group.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from .claims import Array, Claim
from .errors import ClaimError

_MAX_DISTANCE = 1000  # of a group claim, whose boundary takes as many steps

ClaimAtDistance: TypeAlias = Callable[[float], Claim]
"""A claim as a function of the distance between the datasets, such as OpenDP's privacy map."""


def claim_at(claim: Claim | ClaimAtDistance, distance: float) -> Claim:
    """The claim for datasets `distance` apart: a function of the distance is called, a claim is taken as `group`."""
    if isinstance(claim, GroupClaim) and distance != 1:
        raise ClaimError(
            f"claim={claim} is for a distance already, and distance={distance:g} would group it again; pass the claim "
            "for neighbours.",
            claim=claim,
            distance=distance,
        )
    if isinstance(claim, Claim):
        return claim.group(cast(int, distance))
    if not callable(claim) or isinstance(claim, type):
        raise ClaimError(
            f"claim={claim!r} is not a claim; use PureDP(epsilon), ApproxDP(epsilon, delta), … or a function of the "
            "distance that returns one.",
            claim=claim,
        )
    found = claim(distance)
    if not isinstance(found, Claim):
        raise ClaimError(
            f"the claim function returned {found!r} at distance {distance:g}; it must return a claim.", claim=found
        )
    return found


@dataclass(frozen=True, slots=True)
class GroupClaim(Claim):
    """A claim made at distance 1, for datasets at distance k: the boundary composed k times.

    The strength stays that of the claim at distance 1, so a bound reads "epsilon per step".
    """

    base: Claim
    distance: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.distance, (int, np.integer))
        if not isinstance(self.base, Claim) or not is_whole or not 1 <= self.distance <= _MAX_DISTANCE:
            raise ClaimError(
                f"{self.base!r} at distance {self.distance!r} is no group claim; use a claim and a whole distance "
                f"from 1 to {_MAX_DISTANCE}.",
                distance=self.distance,
            )

    def __str__(self) -> str:
        return f"{self.base} at distance {self.distance}"

    @property
    def strength_name(self) -> str:
        return self.base.strength_name

    @property
    def caveat(self) -> str:  # type: ignore[override]
        return self.base.caveat

    @property
    def strength(self) -> float:
        return self.base.strength

    @property
    def max_strength(self) -> float:
        return self.base.max_strength

    @property
    def gaussian_mu(self) -> float | None:
        mu = self.base.gaussian_mu
        return None if mu is None else self.distance * mu

    def with_strength(self, strength: float) -> GroupClaim:
        return GroupClaim(self.base.with_strength(strength), self.distance)

    def reversed(self) -> Claim:
        return GroupClaim(self.base.reversed(), self.distance)

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        return self.base.rough_strength_of(p, q, p_complement, q_complement) / self.distance

    def describe_strength(self, strength: float) -> str:
        return f"{self.base.describe_strength(strength)} per step, at distance {self.distance}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        value, rest = q, q_complement
        for _ in range(self.distance):
            value, rest = self.base.max_power(value, rest)
        return value, rest

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        p, p_rest, q, q_rest = np.broadcast_arrays(p, p_complement, q, q_complement)
        found = np.empty(p.shape)
        for index in np.ndindex(p.shape):
            found[index] = self._scalar_strength(*(float(side[index]) for side in (p, p_rest, q, q_rest)))
        return found

    def _scalar_strength(self, p: float, p_rest: float, q: float, q_rest: float) -> float:
        """Bisection: the boundary grows with the strength.

        Its limits at 0 and 1 are asked of the claim for neighbours, as doubles next to them would be reached.
        """
        if p_rest == 0.0 and math.isinf(self.base.strength_of(1.0, q, 0.0, q_rest)):
            p, p_rest, q, q_rest = q_rest, q, 0.0, 1.0  # the mirror image

        def is_short(strength: float) -> bool:
            member = self.base.with_strength(strength)
            if q == 0.0 and math.isinf(member.strength_of(member.max_power(0.0)[0], 0.0)):
                return True  # what never is on y is never on x
            value, rest = self.with_strength(strength).max_power(q, q_rest)
            return bool(value < p) and bool(rest > p_rest)

        low, high = 0.0, min(1.0, self.max_strength / 2)
        while is_short(high):
            low, high = high, 0.5 * (high + self.max_strength) if math.isfinite(self.max_strength) else 2 * high
            if high > 1e4 or self.max_strength - high < 1e-12:
                return self.max_strength
        while high - low > 1e-10 * max(high, 1e-10):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_short(middle) else (low, middle)
        return high
