"""What two runs with the same returned values show: findings at calls and of the whole path, and how much leaks.

The worst-case loss of a call does not rank pairs: it is infinite for Gaussian noise that moves by a hair, and for
scales that differ in their last digit. The *visible loss* is finite, and grows with what a statistical audit would see:
the largest log ratio at values that one run in a thousand goes beyond. It proposes pairs and proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
from scipy.special import ndtri

from ..claims.claim import Claim
from ..claims.renyi import ZeroConcentratedDP
from ..printing import counted
from .distributions import SLACK, Array, Distribution, directed_loss, number_words, parameter_needed, shown
from .output_values import difference, numbers_of, same_output
from .recorded_run import RecordedRun
from .replay_result import Finding, FindingKind, Line, ReplayedCall, calls_of, paired, paired_calls, total_loss
from .tape import Drawn, Tape

NOT_NOISE: Final = frozenset({"integers", "uniform", "bits", "permutation", "choice without replacement", "randrange"})
"""Distributions by which code usually picks rows, or a point between two rows. Their loss is an excess only if a
primitive
declares it: the output may hide what was drawn, such as the row of a sample or the interval of a quantile."""

_INPUTS = frozenset({"location", "probabilities", "input"})
"""Parameters that hold what a primitive protects."""


def is_noise(call: ReplayedCall) -> bool:
    """Whether the loss of a call counts as that of noise."""
    return call.distribution_on_x.name not in NOT_NOISE or call.declared_on_x is not None


def call_findings(call: ReplayedCall, claim: Claim | None, distance: float) -> Iterator[Finding]:
    """Yield what is found at one call, for datasets at this distance; at most one finding of each kind."""
    x, y, worst = call.distribution_on_x, call.distribution_on_y, call.worst_loss
    needed = None if claim is None else _needed(call, claim)
    loss = _stated_loss(worst, call.mu, needed, claim)
    is_beyond = worst == math.inf and call.mu is None if claim is None else _is_beyond(needed, claim)
    is_beyond = is_beyond and is_noise(call)

    def found(kind: FindingKind, text: str, loss: float | None = worst, is_excess: bool = True) -> Finding:
        return Finding(kind=kind, place=call.place, message=text, loss=loss, is_excess=is_excess)

    if call.differing is None:
        if call.place == call.place_on_y:  # else they are two primitives: that the paths part says it
            realised = call.realised_loss
            known = "" if realised is None else f"; loss {number_words(realised)} at the value returned"
            yield found(FindingKind.DISTRIBUTION_DIFFERS, f"{x} on x, {y} on y{known}", realised, is_excess=False)
        return
    differing = call.differing - _INPUTS
    if "scale" in differing:
        text = f"the scale of {x.name} noise is {_parameter(x, 'scale')} on x and {_parameter(y, 'scale')} on y{loss}"
        yield found(FindingKind.SCALE_DIFFERS, text, is_excess=is_beyond)
    elif differing:
        text = f"{call.primitive} has other parameters: {x} on x, {y} on y{loss or '; loss unknown'}"
        yield found(FindingKind.PARAMETERS_DIFFER, text, is_excess=is_beyond)
    sensitivity = beyond_sensitivity(call, distance)
    if sensitivity is not None:
        text = f"the input of {call.primitive} moved {_far(call.moved)}, and its sensitivity is {sensitivity:.6g}{loss}"
        yield found(FindingKind.BEYOND_SENSITIVITY, text)
    elif is_beyond and not differing:
        yield found(FindingKind.LOSS_ABOVE_CLAIM, f"{call.primitive}: {_moved_words(call)}{loss}")


def _moved_words(call: ReplayedCall) -> str:
    x, y = call.distribution_on_x, call.distribution_on_y
    scale = "" if x.scale is None else f", with {x.name} noise of scale {_parameter(x, 'scale')}"
    if call.is_inferred:
        return f"the number that it is added to moved {_far(call.moved)} (in units of the noise as drawn){scale}"
    if call.moved is not None:
        return f"its {'input' if x.location is None else 'location'} moved {_far(call.moved)}{scale}"
    return _both(x, y)


def _both(x: Distribution, y: Distribution) -> str:
    """Return two distributions as text; of outcomes, the one whose probability changes by the largest factor."""
    if x.name == y.name == "discrete":
        p, q = x.probabilities, y.probabilities
        if p.ndim == 1 and p.shape == q.shape:
            with np.errstate(all="ignore"):
                ratios = np.abs(np.log(p) - np.log(q))
            most = int(np.nanargmax(ratios))
            return f"outcome {most} has probability {p[most]:.4g} on x and {q[most]:.4g} on y"
    return f"{x} on x, {y} on y"


def _needed(call: ReplayedCall, claim: Claim) -> float | None:
    """Return the parameter that the claim must have for the call, from its distributions or its primitive's promise."""
    needed, promised = parameter_needed(claim, call.distribution_on_x, call.distribution_on_y), call.promised
    if needed is None and promised is not None and claim.log_ratio is not None:
        return promised.log_ratio
    if needed is None and promised is not None and type(promised) is type(claim) is ZeroConcentratedDP:
        return promised.parameter
    return needed


def beyond_sensitivity(call: ReplayedCall, distance: float) -> float | None:
    """Return the declared sensitivity if the input moved further at this distance, but for rounding."""
    stated, moved = call.sensitivity, call.moved
    if stated is None or moved is None or not moved > distance * stated * (1.0 + SLACK):
        return None
    return stated


def _is_beyond(needed: float | None, claim: Claim) -> bool:
    # The locations inferred from outputs, and those of rounded noise, are known to about 1e-5 scales.
    return needed is not None and needed > claim.parameter * (1.0 + 1e-5) + 1e-9


def _stated_loss(worst: float | None, mu: float | None, needed: float | None, claim: Claim | None) -> str:
    if claim is not None and claim.log_ratio is None and needed is not None and needed > 0.0:
        return (
            f"; {claim.describe_parameter(needed)}, claimed {claim}"
            if math.isfinite(needed)
            else f"; no {claim.parameter_name} covers it"
        )
    stated = "" if claim is None else f", claimed {claim.parameter:.6g}"
    if mu is not None and 0.0 < mu < math.inf:
        return f"; mu {mu:.6g}, pure loss infinite{stated}"
    return "" if worst is None else f"; worst-case loss {number_words(worst)}{stated}"


def _parameter(distribution: Distribution, name: str) -> str:
    return shown(distribution.parameters[name])


def _far(value: float | None) -> str:
    return "by an unknown amount" if value is None else "infinitely far" if math.isinf(value) else f"by {value:.6g}"


def path_findings(x: Tape, y: Tape, end_on_x: str, end_on_y: str) -> Iterator[Finding]:
    """Yield where the runs took different paths; only the first place is named, because the rest follows from it."""
    for number, (a, b) in enumerate(zip_longest(x.calls, y.calls)):
        parted = y.parted_at is not None and number >= y.parted_at
        if a is None or b is None:
            place = (b if a is None else a).place
            calls, only = counted(len(x.calls), "call"), "y" if a is None else "x"
            text = f"{calls} on x and {len(y.calls)} on y; this is the first that only {only} makes"
            yield Finding(kind=FindingKind.CALLS_DIFFER, place=place, message=text)
            break
        if a.place != b.place or parted:
            text = f"{_drawn(a)} on x, {_drawn(b)} at {b.place} on y"
            yield Finding(kind=FindingKind.CALLS_DIFFER, place=a.place, message=text)
            break
    for one, other in zip_longest(x.seeds, y.seeds):
        if one is not None and other is not None and one[1] == other[1]:
            continue
        place, seed = one or other
        on = f"{seed} on {'x' if other is None else 'y'} only"
        if one is not None and other is not None:
            on = f"{seed} on x and {other[1]} on y"
        text = f"a generator is seeded with {on}, so what it draws is not noise"
        yield Finding(kind=FindingKind.SEED_DIFFERS, place=place, message=text)
        break
    if end_on_x != end_on_y:
        text = f"the run on x {end_on_x}, the run on y {end_on_y}"
        yield Finding(kind=FindingKind.RAISES, place=None, message=text)


def _drawn(call: Drawn) -> str:
    shape = f" of shape {call.distribution.shape}" if call.distribution.shape else ""
    return f"{call.primitive} with {call.distribution}{shape}"


def sum_finding(calls: tuple[ReplayedCall, ...], claim: Claim | None) -> Finding | None:
    """Return a finding if all noise together exceeds the claim, where that is certain: pure or Gaussian losses only."""
    noise = tuple(filter(is_noise, calls))
    loss = total_loss(noise)
    if claim is None or loss.epsilon is None:
        return None
    if claim.log_ratio is not None:
        # what is likeliest on x in one call and on y in another does not add up
        pairs = [(c.distribution_on_x, c.distribution_on_y) for c in noise]
        sides = [[directed_loss(x, y) for x, y in pairs], [directed_loss(y, x) for x, y in pairs]]
        rest = sum(c.worst_loss or 0.0 for c, one in zip(noise, sides[0], strict=True) if one is None)
        needed: float | None = max(math.fsum(each or 0.0 for each in side) for side in sides) + rest
    elif loss.epsilon == 0.0 and 0.0 < loss.mu < math.inf:
        normals = [Distribution("normal", {"location": at, "scale": 1.0}) for at in (0.0, loss.mu)]
        needed = parameter_needed(claim, normals[0], normals[1])
    else:
        return None
    if needed is None or not _is_beyond(needed, claim):
        return None
    text = f"{counted(len(noise), 'call')} together: {claim.describe_parameter(needed)} on this path, claimed {claim}"
    return Finding(kind=FindingKind.SUM_ABOVE_CLAIM, place=None, message=text, loss=loss.worst, is_excess=True)


# The visible loss.

_RARE: Final = 1e-3
_DEVIATIONS: Final = -float(ndtri(_RARE))
_QUANTILES: Final = np.concatenate([np.geomspace(_RARE, 0.5, 20), 1.0 - np.geomspace(_RARE, 0.5, 20)[-2::-1]])
_CERTAIN: Final = 20.0  # of what every run shows; far beyond the losses that claims allow
_MOST_MATCHED: Final = 16  # calls of a line
_OTHERWISE: Final = 1.0  # of another path, or of a call of which nothing is known: worth a interim analysis


def visible_loss(
    on_x: RecordedRun,
    on_y: RecordedRun,
    hides: Callable[[int], bool] = lambda number: False,
    *,
    otherwise: float = _OTHERWISE,
) -> float:
    """Return the sum over the calls, and over what moved without them; finite, and 0 for equal runs.

    The run on y had the values of the run on x put back. A call whose value the output hides counts little, and
    another path as `otherwise`.
    """
    parted, calls = on_y.tape.parted_at, paired_calls(on_x.tape, on_y.tape)
    losses, is_reordered = _of_calls(calls, on_x.tape, on_y.tape)
    loss = math.fsum(min(each, _OTHERWISE) if each and hides(number) else each for number, each in losses)
    if on_x.end != on_y.end:
        return loss + _CERTAIN
    if is_reordered or parted is not None or len(on_x.tape.calls) != len(on_y.tape.calls):
        return loss + otherwise
    return loss + _of_outputs([call.distribution_on_x for call in calls if call.is_bare], on_x.output, on_y.output)


def matched(on_x: Sequence[Drawn], on_y: Sequence[Drawn], cost: Callable[[Drawn, Drawn], float]) -> Array:
    """Return the costs of as many pairs of calls as both runs have, in the order whose sum is the least."""
    from scipy.optimize import linear_sum_assignment  # takes a tenth of a second; rarely needed

    costs = np.array([[cost(x, y) for y in on_y] for x in on_x], dtype=np.float64)
    return np.asarray(costs[linear_sum_assignment(costs)])


def _of_calls(calls: Sequence[ReplayedCall], x: Tape, y: Tape) -> tuple[list[tuple[int, float]], bool]:
    """Return the visible losses of calls, each line's in the order that loses least, and whether it is another."""
    lines: dict[Line, list[tuple[int, float]]] = {}
    for number, call in enumerate(calls):
        lines.setdefault(call.line, []).append((number, _of_call(call)))
    found, is_reordered = [], False
    for line, losses in lines.items():
        on_x, on_y = calls_of(line, x), calls_of(line, y)
        if 1 < max(len(on_x), len(on_y)) <= _MOST_MATCHED and any(loss > 0.0 for _, loss in losses):
            least = matched(on_x, on_y, lambda a, b: _of_call(paired(a, b))).tolist()
            is_reordered = is_reordered or sum(least) < sum(loss for _, loss in losses) - 1e-9
            found += [(losses[0][0], loss) for loss in least]
        else:
            found += losses
    return found, is_reordered


def _of_call(call: ReplayedCall) -> float:
    """Return the visible loss of a call that is given something of the data."""
    x, y, worst, mu = call.distribution_on_x, call.distribution_on_y, call.worst_loss, call.mu
    if call.is_bare or worst == 0.0:
        return 0.0
    if mu is not None and math.isfinite(mu):
        return mu * (_DEVIATIONS + mu / 2.0)
    if worst is not None and math.isfinite(worst):
        return worst
    promise, moved = call.declared_on_x, call.moved
    if promise is not None and promise.sensitivity is not None and moved is not None:
        far = moved / promise.sensitivity if promise.sensitivity and math.isfinite(moved) else math.inf
        return min((promise.epsilon or 1.0) * far, _CERTAIN) if moved else 0.0
    if not (x.is_known and x.name == y.name and x.shape == y.shape):
        return _OTHERWISE
    return _log_ratio(x, y)


def _log_ratio(x: Distribution, y: Distribution) -> float:
    """Return the largest log ratio at values that are not rare under either distribution, the sum over independent
    draws.
    """
    with np.errstate(all="ignore"):
        if x.name == "discrete":
            p, q = x.probabilities, y.probabilities
            if p.shape != q.shape:
                return _CERTAIN
            return float(np.max(np.abs(np.log(np.maximum(p, _RARE)) - np.log(np.maximum(q, _RARE))), initial=0.0))
        first, second = x.frozen(), y.frozen()
        levels = _QUANTILES.reshape(-1, *(1,) * len(x.shape))
        values = np.concatenate([np.asarray(distribution.ppf(levels), np.float64) for distribution in (first, second)])
        name = "logpmf" if x.is_integer_valued else "logpdf"
        ratios = np.abs(getattr(first, name)(values) - getattr(second, name)(values))
    ratios = np.minimum(np.where(np.isnan(ratios), 0.0, ratios), _CERTAIN)
    return float(np.sum(ratios.max(axis=0)))


def _of_outputs(noise: Sequence[Distribution], x: object, y: object) -> float:
    """Return how far the outputs moved, in scales of the noise that was not handed the data."""
    if same_output(x, y):
        return 0.0
    a, b = numbers_of(x), numbers_of(y)
    if a is None or b is None or a.shape != b.shape:
        return _OTHERWISE
    moved = np.abs(difference(a, b))
    # distributions without a scale (uniform numbers, coins, permutations) count as if it were 1
    of_each = (
        np.ones(distribution.shape) if distribution.scale is None else distribution.scale for distribution in noise
    )
    scales = np.concatenate([np.empty(0), *map(np.ravel, of_each)])
    if not len(scales):
        return _CERTAIN if np.any(moved > 0.0) else 0.0
    with np.errstate(all="ignore"):
        relative = moved / (scales if len(scales) == len(moved) else np.max(scales))
    return float(np.sum(np.minimum(np.nan_to_num(relative, nan=_CERTAIN), 1e6)))
