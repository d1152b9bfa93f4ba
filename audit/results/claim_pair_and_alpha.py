"""What an audit is told before its first run: the claim, the pair of datasets, and how alpha is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..claims.claim import Claim, ClaimAtDistance, as_claim
from ..datasets.adjacency import Adjacency, as_adjacency
from ..datasets.description import contents_in_words, difference_and_rows, is_empty, summarise
from ..errors import ClaimError, DatasetError
from ..inference.event_test import LEAST_ALPHA, check_test_alpha
from ..options import FloatingPoint, Options, checked
from ..sampling.object_identity import Provenance
from ..sampling.sampler import Sampler


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The two datasets, summarised.

    Attributes
    ----------
    x, y : str
        Type and size of each.
    difference : str
        Description of the difference.
    adjacency : str
        The neighbour relation, or that the caller declared the pair neighbours.
    unit : str
        What a claim at distance 1 protects under that relation, such as "one row"; empty where no relation was given.
    distance : float
        The distance for which the claim was tested.
    doubt : str
        Why the pair may not be neighbours, if no relation was given and the datasets differ in more rows.
    contents : tuple of str, optional
        The datasets themselves as text, only where the caller asked to keep them: a data frame as CSV, any other on one
        line.
    """

    x: str
    y: str
    difference: str
    adjacency: str
    unit: str = ""
    distance: float
    doubt: str = ""
    contents: tuple[str, str] | None = None


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


# The settings of an audit, known before any output is drawn.

# Shares of alpha for the bins and for the net of plain events, if they are counted; the event test has the rest.
_BIN_SHARE, _NET_SHARE = 0.1, 0.2
_SMALLER_SHARE = 0.1  # of event and divergence test together, for the one that shows less in the pilot
FINAL_SHARE = 0.5  # share of alpha for the final test of a sequential audit; the bets have the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that do not depend on where the outputs come from."""

    claim: Claim
    claim_source: str
    pair: Pair
    alpha: float
    detect: float | None
    power: float
    name: str
    provenance: Provenance | None
    seed: int
    floating_point: FloatingPoint

    def check_shares(self, share: float = 1.0, bins: int = 0) -> None:
        """Refuse an alpha of which the exact test has too small a part, before the first run."""
        part = self.event_alpha(share, has_bins=bins > 0, net=1.0)
        if self.claim.divergence_slopes:
            part -= self.divergence_alpha(part, show_more=False)
        check_test_alpha(self.alpha, part / self.alpha)

    @property
    def bin_alpha(self) -> float:
        """Error probability of the intervals of the bins, if any are counted."""
        return _BIN_SHARE * self.alpha

    def net_alpha(self, part: float, share: float = 1.0) -> float:
        """Error probability of the tests of a net, of which it needs a `part`, in a `share` of alpha."""
        return _NET_SHARE * part * share * self.alpha

    def event_alpha(self, share: float = 1.0, *, has_bins: bool = False, net: float) -> float:
        """Error probability of the event test and, if there is one, the divergence test in a `share` of alpha.

        `net` is the part that the net needs, 0 without one.
        """
        return share * self.alpha * (1 - _BIN_SHARE * has_bins - _NET_SHARE * net)

    def divergence_alpha(self, alpha: float, *, show_more: bool) -> float:
        """Error probability of the divergence test, of the `alpha` that it has together with the event test.

        Nine tenths if the pilot's bins show more than its event, unless too little would be left for an exact test.
        """
        is_large = show_more and _SMALLER_SHARE * alpha > LEAST_ALPHA
        return alpha * (1 - _SMALLER_SHARE if is_large else _SMALLER_SHARE)

    def bet_alpha(self, *, has_final: bool) -> float:
        """Error probability of the bets of a sequential audit."""
        return self.alpha * (1 - FINAL_SHARE) if has_final else self.alpha
