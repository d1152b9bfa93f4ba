"""The verdicts of all results, and how a bound and an event are worded in them."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from ..claims.claim import ApproxDP, Claim, GroupClaim, PureDP
from ..events.events import Event
from ..health.findings import Finding
from ..inference.event_test import Counts, Direction
from ..printing import rounded_down

_LONGEST = 60  # characters of a claim in a call
_MOST_DIGITS = 12  # of a bound that exceeds the claim by little


class Verdict(enum.Enum):
    """Verdict of an audit that samples, which never verifies a claim.

    Attributes
    ----------
    REFUTED
        The bound exceeds the claim, and no health check failed.
    NOT_REFUTED
        The audit detects an excess as small as requested, and found none.
    INCONCLUSIVE
        A health check failed, or only a larger excess is detectable.

    See Also
    --------
    results.AuditResult : The result with a verdict.
    results.Result.raise_if_refuted : An exception instead of a verdict.

    Examples
    --------
    >>> from dpaudit import Verdict, check_outputs
    >>> result = check_outputs([0, 1] * 50, [0, 1] * 50, claim=0.1)
    >>> result.verdict is Verdict.INCONCLUSIVE  # a hundred outputs cannot show an excess over 0.1
    True
    """

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    INCONCLUSIVE = "inconclusive"


class Equivalence(enum.Enum):
    """Verdict on two versions and a margin."""

    SHOWN = "equivalent within the margin"
    DIFFERENT = "different by more than the margin"
    INCONCLUSIVE = "inconclusive"


class ReplayVerdict(enum.Enum):
    """What a replay says; it never says that a claim is refuted, nor that it holds."""

    EXCESS = "excess"
    """A call, or all calls together, exceed the claim or a declared sensitivity, on this path."""
    BOUNDED = "bounded on this path"
    """All recorded calls together stay within the claim, on this path."""
    UNDETERMINED = "undetermined"
    """Neither: a loss is unknown, or the output depends on more than the recorded values."""


class ExactVerdict(enum.Enum):
    """Verdict of an exact audit; it holds for this pair and for ideal coins."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    UNDETERMINED = "undetermined"


def verdict_of(
    claim: Claim,
    bound: float,
    min_detectable_excess: float | None,
    requested: float | None,
    findings: Sequence[Finding],
) -> Verdict:
    """REFUTED if and only if the bound exceeds the claim and no health check failed.

    INCONCLUSIVE without a detectable excess. The bound is found from below to 0.4% of its gap, so it may not exceed
    the claim although the p-value equals alpha up to rounding. The claim is that in the direction tested.
    """
    if findings:
        return Verdict.INCONCLUSIVE
    if bound > claim.parameter:
        return Verdict.REFUTED
    assert min_detectable_excess is not None  # results that refute nothing have one
    if math.isinf(min_detectable_excess) or min_detectable_excess > required_excess(claim, requested):
        return Verdict.INCONCLUSIVE
    return Verdict.NOT_REFUTED


def required_excess(claim: Claim, requested: float | None) -> float:
    """The excess that an audit has to detect: the requested one, or by default `largest_excess`."""
    return largest_excess(claim) if requested is None else requested


def largest_excess(claim: Claim) -> float:
    """The largest detectable excess with which an audit has tested the claim: the claim itself.

    An audit that detects only more would let twice the claimed loss pass. A claim of 0 has no such scale: its audit
    must detect half of the largest privacy parameter that its family allows (a δ of 1/2), or a parameter of 1, which is
    a likelihood ratio of e, if the family has no largest.
    """
    if claim.parameter > 0.0:
        return claim.parameter
    return 0.5 * claim.max_parameter if math.isfinite(claim.max_parameter) else 1.0


def untested_in_words(claim: Claim, min_detectable_excess: float, on: str = "") -> str:
    """For example "no epsilon below 5.97 could have been found on this pair, against a claim of 1"."""
    least = "" if claim.parameter > 0.0 else f" (an audit must find {largest_excess(claim):g} above it)"
    found = f"no {claim.parameter_name} below {claim.parameter + min_detectable_excess:.3g} could have been found{on}"
    return f"{found}, against a claim of {claim.parameter:.4g}{least}"


def steps_of(claim: Claim) -> tuple[Claim, int]:
    """Return the claim for neighbours, and the distance for which it is made."""
    return (claim.base, claim.distance) if isinstance(claim, GroupClaim) else (claim, 1)


def claim_in_call(claim: Claim) -> str:
    """Return a claim as a short argument of a call, such as "1"; a name in place of a long one."""
    match claim:
        case PureDP():
            return f"{claim.epsilon:g}"
        case ApproxDP(bound_on="epsilon"):
            return f"({claim.epsilon:g}, {claim.delta:g})"
    return repr(claim) if len(repr(claim)) <= _LONGEST else "claim"


def bound_beside_claim(claim: Claim, bound: float) -> str:
    """Describe a lower bound and the claim's privacy parameter, for example "epsilon >= 1.244, claimed 1"."""
    sign, least, claimed = least_beside(bound, claim.parameter)
    return f"{claim.describe_bound(f'{sign} {least}')}, claimed {claimed}"


def least_beside(bound: float, claimed: float) -> tuple[str, str, str]:
    """A sign, a lower bound and a claimed number, to as many digits as show which of them is larger."""
    if not bound > claimed:
        return ">=", f"{rounded_down(bound):g}", f"{claimed:.4g}"
    for digits in range(4, _MOST_DIGITS + 1):
        least, beside = rounded_down(bound, digits), float(f"{claimed:.{digits}g}")
        if least > beside:
            return ">=", f"{least:.{max(digits, 6)}g}", f"{beside:.{max(digits, 6)}g}"
    whole = repr(float(claimed)).removesuffix(".0")
    return ">", whole, whole


def rough(estimate: float) -> str:
    """A point estimate after an early stop, which is biased upward: two digits of it, such as "1.0" or "13"."""
    return f"{estimate:#.2g}".rstrip(".") if estimate < 99.5 else f"{estimate:.0f}"


def event_in_words(event: Event, counts: Counts, more_likely_on: Direction, *, is_learned_here: bool = False) -> str:
    """How much more likely an event is on one dataset, the one in whose direction it is tested if neither is clear.

    If the event was learned on the counted runs, the ratio describes these runs, and is larger than in others.
    """
    p, q = counts.count_x / counts.runs_x, counts.count_y / counts.runs_y
    if p == q == 0.0:
        return f"{event} never occurred"
    is_on_x = p > q or (p == q and more_likely_on == "x")
    more, less = ("x", "y") if is_on_x else ("y", "x")
    larger, smaller, seen = (p, q, counts.count_x) if is_on_x else (q, p, counts.count_y)
    if smaller == 0.0:
        times = "once" if seen == 1 else f"{seen:,} times"
        return f"{event} occurred {times} on {more} and never on {less}"
    ratio = f"{larger / smaller:.3g}"
    if ratio == "1":
        return f"{event} is about as likely on x as on y"
    how = f"occurred {ratio} times as often" if is_learned_here else f"is {ratio} times as likely"
    return f"{event} {how} on {more}"
