"""What two runs with the same returned values show: the findings at calls, and those of the whole path."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import numpy as np

from ..claims.claim import Claim
from ..claims.renyi import ZeroConcentratedDP
from .claim_excess import SLACK, strength_needed
from .laws import Law, directed_loss
from .parameters import shown
from .replayed_call import Finding, FindingKind, ReplayedCall, total_loss
from .tape import Drawn, Tape

NOT_NOISE: Final = frozenset({"integers", "uniform", "bits", "permutation", "choice without replacement", "randrange"})
"""Laws by which code usually picks rows, or a point between two rows. Their loss is an excess only if a primitive
declares it: the output may hide what was drawn, such as the row of a sample or the interval of a quantile."""

_INPUTS = frozenset({"location", "probabilities", "input"})
"""Parameters that hold what a primitive protects."""


def is_noise(call: ReplayedCall) -> bool:
    """Whether the loss of a call counts as that of noise."""
    return call.law_on_x.name not in NOT_NOISE or call.declared_on_x is not None


def call_findings(call: ReplayedCall, claim: Claim | None, distance: float) -> Iterator[Finding]:
    """Yield what is found at one call, for datasets at this distance; at most one finding of each kind."""
    x, y = call.law_on_x, call.law_on_y
    worst = call.worst_loss
    needed = None if claim is None else _needed(call, claim)
    loss = _stated_loss(worst, call.mu, needed, claim)
    is_beyond = _is_beyond(needed, claim) if claim is not None else worst == math.inf and call.mu is None
    is_beyond = is_beyond and is_noise(call)
    said = False
    if x.name != y.name:
        if call.place != call.place_on_y:
            return  # two primitives: that the paths part says it
        realised = call.realised_loss
        known = "" if realised is None else f"; loss {_loss(realised)} at the value returned"
        yield _found(FindingKind.LAW_DIFFERS, call, f"{x} on x, {y} on y{known}", realised)
        return
    differing = [name for name in x.differing(y) if name not in _INPUTS]
    if "scale" in differing:
        said = is_beyond
        text = f"the scale of {x.name} noise is {_parameter(x, 'scale')} on x and {_parameter(y, 'scale')} on y{loss}"
        yield _found(FindingKind.SCALE_DIFFERS, call, text, worst, is_beyond)
    elif differing:
        said = is_beyond
        text = f"{call.primitive} has other parameters: {x} on x, {y} on y{loss or '; loss unknown'}"
        yield _found(FindingKind.PARAMETERS_DIFFER, call, text, worst, is_beyond)
    beyond = beyond_sensitivity(call, distance)
    if beyond is not None:
        said = True
        text = f"the input of {call.primitive} moved {_far(call.moved)}, and its sensitivity is {beyond:.6g}{loss}"
        yield _found(FindingKind.BEYOND_SENSITIVITY, call, text, worst, True)
    if is_beyond and not said:
        what = "input" if call.law_on_x.location is None else "location"
        moved = "" if call.moved is None else f"its {what} moved {_far(call.moved)}"
        if call.is_inferred:
            moved = f"the number that it is added to moved {_far(call.moved)} (in units of the noise as drawn)"
        scale = f", with {x.name} noise of scale {_parameter(x, 'scale')}" if x.scale is not None else ""
        text = f"{call.primitive}: {moved}{scale}{loss}" if moved else f"{call.primitive}: {_both(x, y)}{loss}"
        yield _found(FindingKind.LOSS_ABOVE_CLAIM, call, text, worst, True)


def _both(x: Law, y: Law) -> str:
    """Return two laws as text; of outcomes, the one whose probability changes by the largest factor."""
    if x.name == y.name == "discrete":
        p, q = (np.asarray(law.parameters["probabilities"], np.float64) for law in (x, y))
        if p.ndim == 1 and p.shape == q.shape:
            with np.errstate(all="ignore"):
                ratios = np.abs(np.log(p) - np.log(q))
            most = int(np.nanargmax(ratios))
            return f"outcome {most} has probability {p[most]:.4g} on x and {q[most]:.4g} on y"
    return f"{x} on x, {y} on y"


def _needed(call: ReplayedCall, claim: Claim) -> float | None:
    """Return the strength that the claim must have for the call, from its laws or from what its primitive promises."""
    needed, promised = strength_needed(claim, call.law_on_x, call.law_on_y), call.promised
    if needed is None and promised is not None and claim.log_ratio is not None:
        return promised.log_ratio
    if needed is None and promised is not None and type(promised) is type(claim) is ZeroConcentratedDP:
        return promised.strength
    return needed


def _found(kind: FindingKind, call: ReplayedCall, text: str, loss: float | None, is_excess: bool = False) -> Finding:
    return Finding(kind=kind, place=call.place, message=text, loss=loss, is_excess=is_excess)


def beyond_sensitivity(call: ReplayedCall, distance: float) -> float | None:
    """Return the declared sensitivity if the input moved further at this distance, but for rounding."""
    stated, moved = call.sensitivity, call.moved
    if stated is None or moved is None or not moved > distance * stated * (1.0 + SLACK):
        return None
    return stated


def _is_beyond(needed: float | None, claim: Claim) -> bool:
    # The locations inferred from outputs, and those of rounded noise, are known to about 1e-5 scales.
    return needed is not None and needed > claim.strength * (1.0 + 1e-5) + 1e-9


def _stated_loss(worst: float | None, mu: float | None, needed: float | None, claim: Claim | None) -> str:
    if claim is not None and claim.log_ratio is None and needed is not None and needed > 0.0:
        return (
            f"; {claim.describe_strength(needed)}, claimed {claim}"
            if math.isfinite(needed)
            else f"; no {claim.strength_name} covers it"
        )
    stated = "" if claim is None else f", claimed {claim.strength:.6g}"
    if mu is not None and 0.0 < mu < math.inf:
        return f"; mu {mu:.6g}, pure loss infinite{stated}"
    return "" if worst is None else f"; worst-case loss {_loss(worst)}{stated}"


def _parameter(law: Law, name: str) -> str:
    return shown(law.parameters[name])


def _loss(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.6g}"


def _far(value: float | None) -> str:
    return "by an unknown amount" if value is None else "infinitely far" if math.isinf(value) else f"by {value:.6g}"


def path_findings(x: Tape, y: Tape, end_on_x: str, end_on_y: str) -> Iterator[Finding]:
    """Yield where the runs took different paths; only the first place is named, because the rest follows from it."""
    for number, (a, b) in enumerate(zip_longest(x.calls, y.calls)):
        parted = y.parted_at is not None and number >= y.parted_at
        if a is None or b is None:
            place = (b if a is None else a).place
            only = "y" if a is None else "x"
            text = f"{_calls(len(x.calls))} on x and {len(y.calls)} on y; this is the first that only {only} makes"
            yield Finding(kind=FindingKind.CALLS_DIFFER, place=place, message=text)
            break
        if a.place != b.place or parted:
            text = f"{_drawn(a)} on x, {_drawn(b)} at {b.place} on y"
            yield Finding(kind=FindingKind.CALLS_DIFFER, place=a.place, message=text)
            break
    for one, other in zip_longest(x.seeds, y.seeds):
        if one is None or other is None:
            place, seed = one or other
            side = "y" if one is None else "x"
            text = f"a generator is seeded with {seed} on {side} only, so what it draws is not noise"
        elif one[1] == other[1]:
            continue
        else:
            place = one[0]
            text = f"a generator is seeded with {one[1]} on x and {other[1]} on y, so what it draws is not noise"
        yield Finding(kind=FindingKind.SEED_DIFFERS, place=place, message=text)
        break
    if end_on_x != end_on_y:
        text = f"the run on x {end_on_x}, the run on y {end_on_y}"
        yield Finding(kind=FindingKind.RAISES, place=None, message=text)


def _calls(number: int) -> str:
    return f"{number} call{'s' * (number != 1)}"


def _drawn(call: Drawn) -> str:
    shape = f" of shape {call.law.shape}" if call.law.shape else ""
    return f"{call.primitive} with {call.law}{shape}"


def sum_finding(calls: tuple[ReplayedCall, ...], claim: Claim | None) -> Finding | None:
    """Return a finding if all noise together exceeds the claim, where that is certain: pure or Gaussian losses only."""
    noise = tuple(filter(is_noise, calls))
    loss = total_loss(noise)
    if claim is None or loss.epsilon is None:
        return None
    if claim.log_ratio is not None:
        # what is likeliest on x in one call and on y in another does not add up
        pairs = [(c.law_on_x, c.law_on_y) for c in noise]
        sides = [[directed_loss(x, y) for x, y in pairs], [directed_loss(y, x) for x, y in pairs]]
        rest = sum(c.worst_loss or 0.0 for c, one in zip(noise, sides[0], strict=True) if one is None)
        needed: float | None = max(math.fsum(each or 0.0 for each in side) for side in sides) + rest
    elif loss.epsilon == 0.0 and 0.0 < loss.mu < math.inf:
        normals = [Law("normal", {"location": at, "scale": 1.0}) for at in (0.0, loss.mu)]
        needed = strength_needed(claim, normals[0], normals[1])
    else:
        return None
    if needed is None or not _is_beyond(needed, claim):
        return None
    text = f"{_calls(len(noise))} together: {claim.describe_strength(needed)} on this path, claimed {claim}"
    return Finding(kind=FindingKind.SUM_ABOVE_CLAIM, place=None, message=text, loss=loss.worst, is_excess=True)
