"""Claims for datasets further apart than neighbours: composed boundaries, or functions of the distance.

Proof: docs/proofs/group.md
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias, cast

import numpy as np

from ..errors import ClaimError
from ..printing import shorten
from .claim import Claim, GroupClaim
from .pure_approx_gaussian import ApproxDP, PureDP

ClaimAtDistance: TypeAlias = Callable[[float], Claim]
"""A function from the distance between the datasets to a claim, such as OpenDP's privacy map."""


def as_claim(claim: Any) -> Claim | ClaimAtDistance:
    """Return a claim or a function that makes claims; a number stands for `PureDP` and a pair for `ApproxDP`.

    Raises
    ------
    ClaimError
        For anything else, with the object to write.

    Examples
    --------
    >>> as_claim(1), as_claim((1, 1e-5))
    (PureDP(epsilon=1.0), ApproxDP(epsilon=1.0, delta=1e-05, bound_on='epsilon'))
    """
    if isinstance(claim, Claim) or (callable(claim) and not isinstance(claim, type)):
        return cast(Claim | ClaimAtDistance, claim)
    if _is_number(claim):
        return PureDP(_as_float(claim))
    if isinstance(claim, (tuple, list)) and len(claim) == 2 and all(map(_is_number, claim)):
        epsilon, delta = map(_as_float, claim)
        return ApproxDP(epsilon, delta) if delta != 0.0 else PureDP(epsilon)
    shown = claim.__name__ if isinstance(claim, type) else shorten(claim)
    raise ClaimError(f"claim={shown} is not a claim; {_remedy(claim)}.", claim=claim)


def _remedy(claim: Any) -> str:
    """Return what to write instead of a value that is not a claim."""
    if isinstance(claim, type):
        return f"it is a class, so write {claim.__name__}(…) with its parameters"
    if isinstance(claim, str):
        try:
            return f"it is text, so write claim=PureDP({float(claim):g})"
        except ValueError:
            pass
    if isinstance(claim, dict) and (known := {"epsilon", "delta", "mu", "rho"} & {*claim}):
        kind = "GaussianDP" if "mu" in known else "ZeroConcentratedDP" if "rho" in known else "ApproxDP"
        kind = "PureDP" if known == {"epsilon"} else kind
        return f"write {kind}({', '.join(f'{name}={shorten(claim[name])}' for name in claim if name in known)})"
    return "use PureDP(epsilon), ApproxDP(epsilon, delta), … or a function of the distance that returns one"


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, (bool, np.bool_))


def claim_at(claim: Any, distance: float) -> Claim:
    """Return the claim for datasets `distance` apart, by calling the function or with `Claim.group`.

    `claim` is what `as_claim` accepts.
    """
    claim = as_claim(claim)
    if isinstance(claim, GroupClaim) and distance != 1:
        raise ClaimError(
            f"claim={claim} already holds at a distance, and distance={distance:g} would group it again; pass the "
            "claim for neighbours.",
            claim=claim,
            distance=distance,
        )
    if isinstance(claim, Claim):
        return claim.group(cast(int, distance))
    found = claim(distance)
    if not isinstance(found, Claim):
        raise ClaimError(
            f"the claim function returned {shorten(found)} at distance {distance:g}; it must return a claim.",
            claim=found,
        )
    return found
