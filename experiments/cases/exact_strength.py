"""Exact strength of a pair, from the laws of a mechanism."""

from __future__ import annotations

from typing import Any

from ...audit.claims.claim import Claim
from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.errors import OptionError
from ...mechanisms import exact_delta, exact_epsilon


def strength_by_laws(mechanism: Any, pair: tuple[Any, Any], claim: Claim) -> float | None:
    """Return the exact strength on the pair, in the unit of the claim's; None where the laws have no closed form."""
    if not hasattr(mechanism, "law") or not isinstance(claim, (PureDP, ApproxDP)):
        return None
    try:
        law_x, law_y = (mechanism.law(dataset) for dataset in pair)
        if claim.strength_name == "delta":
            return exact_delta(law_x, law_y, claim.epsilon)
        return exact_epsilon(law_x, law_y, claim.delta if isinstance(claim, ApproxDP) else 0.0)
    except OptionError:
        return None
