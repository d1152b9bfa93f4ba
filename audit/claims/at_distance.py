"""Claims for datasets further apart than neighbours: composed boundaries, or functions of the distance.

Proof: docs/proofs/group.md
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from ..errors import ClaimError
from .claim import Claim, GroupClaim

ClaimAtDistance: TypeAlias = Callable[[float], Claim]
"""A function from the distance between the datasets to a claim, such as OpenDP's privacy map."""


def claim_at(claim: Claim | ClaimAtDistance, distance: float) -> Claim:
    """Return the claim for datasets `distance` apart, by calling the function or with `Claim.group`."""
    if isinstance(claim, GroupClaim) and distance != 1:
        raise ClaimError(
            f"claim={claim} already holds at a distance, and distance={distance:g} would group it again; pass the "
            "claim for neighbours.",
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
