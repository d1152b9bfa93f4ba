"""Claims from `dp_accounting`: an event or a composition of events, as the privacy profile of its privacy loss."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

from ...audit.claims.claim import check_number
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.errors import ClaimError
from .library_calls import imported


def claim_from_event(
    event: Any,
    *,
    neighbours: Literal["add_or_remove_one", "replace_one", "replace_special"] = "add_or_remove_one",
    discretization: float = 1e-4,
    points: int = 401,
    max_epsilon: float = 50.0,
) -> PrivacyProfile:
    """Return the claim that `dp_accounting` derives for an event, never stronger: all rounding enlarges the deltas.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Such as ``GaussianDpEvent(noise_multiplier=2.0)``, or a composition of events.
    neighbours : {"add_or_remove_one", "replace_one", "replace_special"}
        The relation that the accountant assumes, by its name in `dp_accounting`. It matters for subsampling. The
        adjacency of the audit must be the same.
    discretization : float
        Grid width of the privacy losses.
    points, max_epsilon
        As for `PrivacyProfile.from_pld`.

    Raises
    ------
    ClaimError
        If the accountant does not support the event, the event is not private, or the relation is unknown.
    AuditError
        If dp-accounting is not installed.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
    >>> claim = claim_from_event(SelfComposedDpEvent(LaplaceDpEvent(noise_multiplier=4.0), 4))
    >>> round(claim.deltas[0], 3), round(min(claim.deltas), 9)
    (0.184, 0.0)
    """
    dp_accounting, pld = imported("dp_accounting", "accounting"), imported("dp_accounting.pld", "accounting")
    relations = {relation.name.lower(): relation for relation in dp_accounting.NeighboringRelation}
    relation = relations.get(neighbours.lower() if isinstance(neighbours, str) else "")
    if relation is None:
        raise ClaimError(
            f"neighbours={neighbours!r} is not a relation of dp_accounting; use one of {', '.join(relations)}.",
            neighbours=neighbours,
        )
    if not isinstance(event, dp_accounting.DpEvent):
        raise ClaimError(
            f"event={event!r:.60} is not an event of dp_accounting; use one such as "
            "GaussianDpEvent(noise_multiplier=2.0).",
            event=event,
        )
    width = check_number("discretization", discretization, 0, 1, "1e-4 is usual", closed=False)
    accountant = pld.PLDAccountant(relation, value_discretization_interval=width)
    try:
        accountant.compose(event)
    except (dp_accounting.UnsupportedEventError, NotImplementedError) as error:
        raise ClaimError(
            f"the event {type(event).__name__} has no privacy loss distribution in dp_accounting for neighbours by "
            f"{neighbours} ({' '.join(str(error).split())}); use another relation, or write a PrivacyProfile yourself.",
            event=event,
        ) from error
    deltas = SimpleNamespace(get_delta_for_epsilon=accountant.get_delta)
    claim = PrivacyProfile.from_pld(deltas, points=points, max_epsilon=max_epsilon)
    if min(claim.deltas) == 1.0:
        raise ClaimError(
            f"the event {type(event).__name__} has delta 1 at every epsilon; leave it out of the claim.", event=event
        )
    return claim
