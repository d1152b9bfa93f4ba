"""Exact strength of a pair, from the laws of a mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, ClaimAtDistance, GroupClaim, PureDP
from ...audit.errors import ClaimError, OptionError
from ...mechanisms import FiniteLaw, GroupPrivacy, LaplaceLaw, Law, exact_delta, exact_epsilon
from ...mechanisms.laws.divergences import no_closed_form

Floats = npt.NDArray[np.float64]


def check_bounded(name: str, claim: Claim | ClaimAtDistance) -> None:
    """Raise a `ClaimError` if the claim has ε = 0 and a δ, but an audit would bound ε."""
    base = claim.base if isinstance(claim, GroupClaim) else claim
    if isinstance(base, (ApproxDP, GroupPrivacy)) and base.bound_on == "epsilon" and base.epsilon == 0.0 < base.delta:
        raise ClaimError(
            f"{name}: {claim} is a claim on delta alone; use {replace(base, bound_on='delta')!r}.", claim=claim
        )


def strength_by_laws(mechanism: Any, pair: tuple[Any, Any], claim: Claim) -> float | None:
    """Return the exact strength on the pair, in the unit of the claim's; None where the laws have no closed form."""
    base = claim.base if isinstance(claim, GroupClaim) else claim
    if not hasattr(mechanism, "law") or not isinstance(base, (PureDP, ApproxDP)):
        return None
    try:
        return exact_strength(claim, *(mechanism.law(dataset) for dataset in pair))
    except OptionError:
        return None


def exact_strength(claim: Claim, law_x: Law, law_y: Law) -> float:
    """Return the smallest strength of the claim whose boundary no event crosses, in both directions.

    The strength is exact delta where the claim bounds delta, and per step where it is a group claim.

    Raises
    ------
    OptionError
        If the laws have no closed form; for claims other than (ε, δ)-DP, unless both are finite or both are Laplace
        laws of one scale.
    """
    match claim:
        case PureDP():
            return exact_epsilon(law_x, law_y)
        case ApproxDP(bound_on="delta"):
            return exact_delta(law_x, law_y, claim.epsilon)
        case ApproxDP():
            return exact_epsilon(law_x, law_y, claim.delta)
        case GroupClaim(base=PureDP() | ApproxDP() as base, distance=steps) if steps > 1:
            return _strength_per_step(base, steps, law_x, law_y)
    return max(
        float(side.strength_of(p, q, p_rest, q_rest).max())
        for side, (p, p_rest, q, q_rest) in (
            (claim, best_events(law_x, law_y)),
            (claim.reversed(), best_events(law_y, law_x)),
        )
    )


def _strength_per_step(base: PureDP | ApproxDP, steps: int, law_x: Law, law_y: Law) -> float:
    """Return the least strength per step, by bisection: the boundary is the least of lines that rise with it.

    No event crosses the line e^a q + b if the hockey-stick divergence at a is at most b.
    """

    def is_kept(strength: float) -> bool:
        for slope, height, rest in _lines_of_group(base.with_strength(strength), steps):
            found = exact_delta(law_x, law_y, slope)
            # The slack is for the rounding of a line that is attained; a divergence of 1 crosses every line below 1.
            if found > height + 1e-12 * min(height, rest) or found >= 1.0:
                return False
        return True

    low = 0.0
    if base.log_ratio is not None:  # without a δ, the steepest line limits the loss and nothing else
        low = exact_epsilon(law_x, law_y) / steps
    if math.isinf(low) or is_kept(low):
        return low
    high = min(2 * low or 1.0, base.max_strength)
    while math.isinf(base.max_strength) and not is_kept(high):
        low, high = high, 2 * high
        if high > 700.0:  # e^−ε is nearly 0: only laws without a common output are left
            return math.inf
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_kept(middle) else (middle, high)
    return high


def _lines_of_group(member: PureDP | ApproxDP, steps: int) -> list[tuple[float, float, float]]:
    """Return (a, b, 1 − b) of lines e^a q + b, a ≥ 0, whose least is the boundary of the claim composed with itself.

    The boundary for neighbours is the lesser of e^ε q + δ and its mirror image 1 − e^{−ε}(1 − δ − q). Among the
    compositions with equally many of each, the lowest applies the first line first. Lines with a < 0 are mirror images.
    Lines that reach 1 at once are left out, and so is a line that states only the limit on the loss.
    """
    epsilon, delta = member.epsilon, member.delta if isinstance(member, ApproxDP) else 0.0
    factor, shrink = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)
    lines = []
    for rising in range((steps + 1) // 2, steps + 1):
        height = 0.0
        for _ in range(rising):
            height = min(1.0, factor * height + delta)
        rest = 1.0 - height
        for _ in range(steps - rising):
            height, rest = shrink * (height + delta) - math.expm1(-epsilon), shrink * (rest - delta)
        if rest > 0.0 and (rising < steps or member.log_ratio is None):
            lines.append(((2 * rising - steps) * epsilon, height, rest))
    return lines


def best_events(law_x: Law, law_y: Law) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (p, 1 − p, q, 1 − q) of the most powerful events of x against y (Neyman-Pearson), without the sure event.

    For finite laws the events collect the outcomes by decreasing ratio of x to y. For Laplace laws of one scale the
    events are 4001 half-lines that end between the locations; outside, p/q is constant.

    Raises
    ------
    OptionError
        For other laws.
    """
    match law_x, law_y:
        case FiniteLaw(), FiniteLaw():
            with np.errstate(invalid="ignore"):  # an outcome that neither law allows goes last, as NaN
                loss = np.asarray(law_x.log_probabilities) - np.asarray(law_y.log_probabilities)
            order = np.argsort(-loss, kind="stable")
            p, q = law_x.probabilities[order], law_y.probabilities[order]
            (p_sum, q_sum), (p_rest, q_rest) = (
                [np.cumsum(values) for values in (p, q)],
                [np.cumsum(values[::-1])[::-1] for values in (p, q)],
            )
            return p_sum[:-1], p_rest[1:], q_sum[:-1], q_rest[1:]
        case LaplaceLaw(), LaplaceLaw() if law_x.scale == law_y.scale:
            ends = np.linspace(law_x.location, law_y.location, 4001)
            if law_x.location <= law_y.location:
                return law_x.cdf(ends), law_x.sf(ends), law_y.cdf(ends), law_y.sf(ends)
            return law_x.sf(ends), law_x.cdf(ends), law_y.sf(ends), law_y.cdf(ends)
    raise no_closed_form(law_x, law_y)
