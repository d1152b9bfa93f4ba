"""What an audit is about: the claim, the caller's or the mechanism's own, and the pair of neighbouring datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..claims.claim import Claim, ClaimAtDistance, as_claim
from ..datasets.adjacency import Adjacency, as_adjacency
from ..datasets.description import contents_in_words, difference_and_rows, is_empty, summarise
from ..errors import ClaimError, DatasetError
from ..options import Options, checked
from ..sampling.sampler import Sampler
from .audit_result import Pair


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim with its source and its neighbour relation, which may be None."""

    claim: Claim | ClaimAtDistance
    source: str
    adjacency: Adjacency | None


def stated(mechanism: Any, claim: Any, adjacency: Any, claim_source: str) -> Stated:
    """What the caller states, completed by the mechanism's attributes `claim`, `claim_source` and `adjacency`.

    Raise a `ClaimError` if neither states a claim.
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


def pair_of(sampler: Sampler, x: Any, y: Any, adjacency: Adjacency | None, options: Options) -> Pair:
    """Return the pair as text; raise an error unless the datasets are neighbours at the distance of the options."""
    if is_empty(x) and is_empty(y):
        raise DatasetError("both datasets are empty, so they cannot differ; pass two neighbouring datasets.")
    if adjacency is not None:
        adjacency.check(x, y, options.distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, options.distance)
    words, rows = difference_and_rows(x, y) if adjacency is None else (adjacency.difference(x, y), None)
    is_doubtful = rows is not None and rows > options.distance and sampler.check_pair is None
    return Pair(
        x=summarise(x),
        y=summarise(y),
        difference=words,
        doubt=f"x and y differ in {rows:,} rows, and no adjacency makes them neighbours" if is_doubtful else "",
        adjacency="declared neighbours by the caller" if adjacency is None else str(adjacency),
        unit="" if adjacency is None else adjacency.unit,
        distance=options.distance,
        contents=(contents_in_words(x), contents_in_words(y)) if options.keep_datasets else None,
    )
