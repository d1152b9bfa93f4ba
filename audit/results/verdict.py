"""The verdict of an audit, and how a bound and an event are worded in it."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from ..claims.claim import Claim
from ..events.events import Event
from ..health.findings import Finding
from ..inference.counts import Counts
from ..inference.direction import Direction
from ..printing import rounded_down

_MOST_DIGITS = 12  # of a bound that exceeds the claim by little


class Verdict(enum.Enum):
    """What an audit can say; never that a claim is verified."""

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"


def verdict_of(
    claim: Claim, bound: float, resolution: float, requested: float | None, findings: Sequence[Finding]
) -> Verdict:
    """REFUTED if and only if the bound exceeds the claim and no health check failed.

    The bound is found from below to 0.4% of its gap, so the bound may not exceed the claim although the p-value equals
    alpha up to rounding.

    Parameters
    ----------
    claim : Claim
        In the direction tested.
    bound, resolution : float
        Lower bound on the claim's strength, and smallest detectable excess.
    requested : float or None
        Excess that the audit has to detect; without one it is `largest_excess`.
    """
    if findings:
        return Verdict.INCONCLUSIVE
    if bound > claim.strength:
        return Verdict.REFUTED
    if resolution > (largest_excess(claim) if requested is None else requested):
        return Verdict.INCONCLUSIVE
    return Verdict.NOT_REFUTED


def largest_excess(claim: Claim) -> float:
    """The largest detectable excess with which an audit has tested the claim: the claim itself.

    Beyond that twice the claimed loss may pass. A claim of 0 has no such scale. Its audit must detect half of the
    family's largest strength (a δ of 1/2), or a strength of 1 if there is no largest: a likelihood ratio of e.

    Examples
    --------
    >>> from dpaudit import GaussianDP, PureDP
    >>> largest_excess(GaussianDP(0.5)), largest_excess(PureDP(0.0))
    (0.5, 1.0)
    """
    if claim.strength > 0.0:
        return claim.strength
    return 0.5 * claim.max_strength if math.isfinite(claim.max_strength) else 1.0


def untested_in_words(claim: Claim, resolution: float) -> str:
    """Describe the smallest strength that an audit would have found, next to the claim.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> untested_in_words(PureDP(1.0), 4.97)
    'no epsilon below 5.97 would have been found, 1 claimed'
    """
    least = "claimed" if claim.strength > 0.0 else f"claimed; an audit must find {largest_excess(claim):g} above"
    found = f"no {claim.strength_name} below {claim.strength + resolution:.3g} would have been found"
    return f"{found}, {claim.strength:.4g} {least}"


def bound_beside_claim(claim: Claim, bound: float) -> str:
    """Describe a lower bound and the claim's strength, for example "epsilon >= 1.244, claimed 1"."""
    sign, least, claimed = least_beside(bound, claim.strength)
    return f"{claim.describe_bound(f'{sign} {least}')}, claimed {claimed}"


def least_in_words(claim: Claim, bound: float) -> str:
    """Describe a lower bound with as many digits as show that it exceeds the claim, if it does."""
    sign, least, _ = least_beside(bound, claim.strength)
    return claim.describe_bound(f"{sign} {least}")


def least_beside(bound: float, claimed: float) -> tuple[str, str, str]:
    """A sign, a lower bound and a claimed number, to as many digits as show which of them is larger.

    Examples
    --------
    >>> least_beside(1.24451, 1.0), least_beside(1.0000349, 1.0), least_beside(0.9966, 1.0)
    (('>=', '1.244', '1'), ('>=', '1.00003', '1'), ('>=', '0.9966', '1'))
    >>> least_beside(1.0 + 1e-13, 1.0)  # above the claim in none of twelve digits
    ('>', '1', '1')
    """
    if not bound > claimed:
        return ">=", f"{rounded_down(bound):g}", f"{claimed:.4g}"
    for digits in range(4, _MOST_DIGITS + 1):
        least, beside = rounded_down(bound, digits), float(f"{claimed:.{digits}g}")
        if least > beside:
            return ">=", f"{least:.{max(digits, 6)}g}", f"{beside:.{max(digits, 6)}g}"
    whole = repr(float(claimed)).removesuffix(".0")
    return ">", whole, whole


def event_in_words(event: Event, counts: Counts, likelier_on: Direction, *, is_learned_here: bool = False) -> str:
    """How much likelier an event is on one dataset, the one in whose direction it is tested if neither is clear.

    If the event was learned on the counted runs, the ratio describes these runs, and is larger than in others.
    """
    p, q = counts.hits_x / counts.runs_x, counts.hits_y / counts.runs_y
    if p == q == 0.0:
        return f"{event} never occurred"
    is_on_x = p > q or (p == q and likelier_on == "x")
    more, less = ("x", "y") if is_on_x else ("y", "x")
    larger, smaller, hits = (p, q, counts.hits_x) if is_on_x else (q, p, counts.hits_y)
    if smaller == 0.0:
        times = "once" if hits == 1 else f"{hits:,} times"
        return f"{event} occurred {times} on {more} and never on {less}"
    ratio = f"{larger / smaller:.3g}"
    if ratio == "1":
        return f"{event} is about as likely on x as on y"
    how = f"occurred {ratio} times as often" if is_learned_here else f"is {ratio} times likelier"
    return f"{event} {how} on {more}"
