"""The verdicts of all results, and what decides between them."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence

from ..claims.claim import Claim, GroupClaim
from ..health.findings import Finding
from ..printing import least_beside


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
    min_detectable_excess: Callable[[], float | None],
    requested: float | None,
    findings: Sequence[Finding],
) -> Verdict:
    """REFUTED if and only if the bound exceeds the claim and no health check failed.

    INCONCLUSIVE without a detectable excess, which is computed only if it decides. The bound is found from below to
    0.4% of its gap, so it may not exceed the claim although the p-value equals alpha up to rounding. The claim is that
    in the direction tested.
    """
    if findings:
        return Verdict.INCONCLUSIVE
    if bound > claim.parameter:
        return Verdict.REFUTED
    excess = min_detectable_excess()
    assert excess is not None  # results that refute nothing have one
    if math.isinf(excess) or excess > required_excess(claim, requested):
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


def steps_of(claim: Claim) -> tuple[Claim, int]:
    """Return the claim for neighbours, and the distance for which it is made."""
    return (claim.base, claim.distance) if isinstance(claim, GroupClaim) else (claim, 1)


def bound_beside_claim(claim: Claim, bound: float) -> str:
    """Describe a lower bound and the claim's privacy parameter, for example "epsilon >= 1.244, claimed 1"."""
    sign, least, claimed = least_beside(bound, claim.parameter)
    return f"{claim.describe_bound(f'{sign} {least}')}, claimed {claimed}"
