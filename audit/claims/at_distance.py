"""Claims for datasets further apart than neighbours: a boundary composed with itself, or a function of the distance.

Proof: docs/proofs/group.md
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from ..errors import ClaimError
from .claim import Claim, GroupClaim

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
