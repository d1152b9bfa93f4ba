"""The claim to audit, with its source and its neighbour relation: the caller's, or the mechanism's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..claims.at_distance import ClaimAtDistance, as_claim
from ..claims.claim import Claim
from ..datasets.adjacency import Adjacency
from ..datasets.named_adjacency import as_adjacency
from ..errors import ClaimError
from ..options import checked


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim with its source and its neighbour relation, which may be None."""

    claim: Claim | ClaimAtDistance
    source: str
    adjacency: Adjacency | None


def stated(mechanism: Any, claim: Any, adjacency: Any, claim_source: str) -> Stated:
    """What the caller states, completed by the mechanism's attributes `claim`, `claim_source` and `adjacency`.

    Parameters
    ----------
    claim : Claim, float, (float, float), callable or None
        As in `check`; the attribute may have the same forms.
    adjacency : Adjacency, str or None
        As in `check`.

    Raises
    ------
    ClaimError
        If neither states a claim, or it is not a claim.
    OptionError
        For an invalid adjacency or source.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> class Noisy:
    ...     claim = PureDP(1.0)
    >>> stated(Noisy(), None, None, "")
    Stated(claim=PureDP(epsilon=1.0), source='the claim of Noisy', adjacency=None)
    """
    source, kind = checked("claim_source", claim_source), _name(mechanism)
    if claim is None:
        claim = _own_claim(mechanism, kind)
        own = getattr(mechanism, "claim_source", "")
        source = source or (own if isinstance(own, str) and own else f"the claim of {kind}")
    if adjacency is None:
        relation = getattr(mechanism, "adjacency", None)
        adjacency = relation if isinstance(relation, Adjacency) else None
    return Stated(as_claim(claim), source, None if adjacency is None else as_adjacency(adjacency))


def _own_claim(mechanism: Any, kind: str) -> Claim | ClaimAtDistance:
    """The mechanism's attribute `claim`, in any form that `check` takes."""
    remedy = "Pass claim=PureDP(epsilon) or another claim (shell: --epsilon)"
    try:
        claim = mechanism.claim
    except AttributeError as error:
        if hasattr(type(mechanism), "claim"):  # a property that failed
            raise ClaimError(f"the claim of {kind} cannot be read: {error}. {remedy}, or mend the property.") from error
        raise ClaimError(
            f"no claim given, and {kind} has no attribute claim. {remedy}, or an object that states its claim, such as "
            "an adapter."
        ) from error
    try:
        return as_claim(claim)
    except ClaimError as error:
        raise ClaimError(f"the attribute claim of {kind}: {error} {remedy}, which takes precedence.") from error


def _name(mechanism: Any) -> str:
    """The name of a function, and of the class of an object."""
    name = getattr(mechanism, "__name__", None)
    return name if isinstance(name, str) and name else type(mechanism).__name__
