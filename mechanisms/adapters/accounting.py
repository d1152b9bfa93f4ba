"""Claims from `dp_accounting`: an event, composed or not, as the privacy profile of its privacy loss distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...audit.claims.claim import check_number
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.errors import AuditError, ClaimError


def claim_from_event(
    event: Any,
    *,
    neighbours: Literal["add_or_remove_one", "replace_one", "replace_special"] = "add_or_remove_one",
    discretization: float = 1e-4,
    points: int = 401,
    max_epsilon: float = 50.0,
) -> PrivacyProfile:
    """What `dp_accounting` says of an event, as a claim: never more than that, as every rounding enlarges its deltas.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Such as ``GaussianDpEvent(noise_multiplier=2.0)``, or a composition of events.
    neighbours : {"add_or_remove_one", "replace_one", "replace_special"}
        The relation that the accountant is to assume, by its name in `dp_accounting`. It matters for subsampling; the
        adjacency of the audit has to be the same.
    discretization : float
        Width of the grid of privacy losses.
    points, max_epsilon
        As of `PrivacyProfile.from_pld`.

    Raises
    ------
    ClaimError
        For an event that the accountant does not support, or that is not private, and for another relation.
    AuditError
        If dp-accounting is not installed.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
    >>> claim = claim_from_event(SelfComposedDpEvent(LaplaceDpEvent(noise_multiplier=4.0), 4))
    >>> round(claim.deltas[0], 3), round(min(claim.deltas), 9)
    (0.184, 0.0)
    """
    try:
        import dp_accounting
        from dp_accounting import pld
    except ImportError as error:
        raise AuditError(
            f"claims from events need dp-accounting ({error}); use pip install 'dpaudit[accounting]'."
        ) from error
    relations = {relation.name.lower(): relation for relation in dp_accounting.NeighboringRelation}
    relation = relations.get(neighbours.lower() if isinstance(neighbours, str) else "")
    if relation is None:
        raise ClaimError(
            f"neighbours={neighbours!r} is no relation of dp_accounting; use one of {', '.join(relations)}.",
            neighbours=neighbours,
        )
    if not isinstance(event, dp_accounting.DpEvent):
        raise ClaimError(
            f"event={event!r:.60} is no event of dp_accounting; use one such as GaussianDpEvent(noise_multiplier=2.0).",
            event=event,
        )
    width = check_number("discretization", discretization, 0, 1, "1e-4 is usual", closed=False)
    accountant = pld.PLDAccountant(relation, value_discretization_interval=width)
    try:
        accountant.compose(event)
    except (dp_accounting.UnsupportedEventError, NotImplementedError) as error:
        raise ClaimError(
            f"the event {type(event).__name__} has no privacy loss distribution in dp_accounting for neighbours by "
            f"{neighbours} ({' '.join(str(error).split())}); use another relation, or give a PrivacyProfile by hand.",
            event=event,
        ) from error
    claim = PrivacyProfile.from_pld(_Deltas(accountant), points=points, max_epsilon=max_epsilon)
    if min(claim.deltas) == 1.0:
        raise ClaimError(
            f"the event {type(event).__name__} is not private at all; leave it out of the claim.", event=event
        )
    return claim


@dataclass(frozen=True, slots=True)
class _Deltas:
    """An accountant under the name that a privacy loss distribution has for its deltas."""

    accountant: Any

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        return float(self.accountant.get_delta(epsilon))
