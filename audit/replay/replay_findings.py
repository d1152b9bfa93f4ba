"""What two runs with the same returned values show: findings at calls and of the whole path, and how much leaks.

A value that does not show in the output (the largest of several is released, a threshold is passed) costs less than its
distribution says; so does noise on a sample of rows, or to which other noise is added.

The worst-case loss does not rank pairs: it is infinite for Gaussian noise that moves by a hair. The *visible loss* is
finite: the largest log ratio at values that one run in a thousand goes beyond. It proves nothing.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import zip_longest
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..claims.claim import Array, Claim
from ..claims.renyi import ZeroConcentratedDP
from ..datasets.contents import difference, numbers_of, same_form, same_output
from ..printing import counted, rounded_up, shorten
from .distributions import SLACK, Distribution, directed_loss, moved, number_words, parameter_needed, shown
from .recorded_run import RecordedRun
from .replay_result import (
    Finding,
    FindingKind,
    ReplayedCall,
    calls_of,
    paired,
    paired_calls,
    total_loss,
)
from .reruns import DRAWS, MOST_NUMBERS, SIDES, Calls, Changes, Reruns, nudged, one_of, outcomes_of, stepped, typed
from .tape import FAR, Drawn, Line, Place, Tape

NOT_NOISE: Final = frozenset({"integers", "uniform", "bits", "permutation", "choice without replacement", "randrange"})
"""Distributions by which code picks rows: the output may hide which, so the loss is an excess only if declared."""

_INPUTS = frozenset({"location", "probabilities", "input"})
"""Parameters that hold what a primitive protects."""


def is_noise(call: ReplayedCall) -> bool:
    """Whether the loss of a call counts as that of noise."""
    return call.distribution_on_x.name not in NOT_NOISE or call.declared_on_x is not None


def call_findings(call: ReplayedCall, claim: Claim | None, distance: float) -> Iterator[Finding]:
    """Yield what is found at one call, for datasets at this distance; at most one finding of each kind."""
    x, y, worst = call.distribution_on_x, call.distribution_on_y, call.worst_loss
    needed = None if claim is None else _needed(call, claim)
    cost = _stated_loss(worst, call.mu, needed, claim)
    is_beyond = worst == math.inf and call.mu is None if claim is None else _is_beyond(needed, claim)
    is_beyond = is_beyond and is_noise(call)

    found = partial(Finding, place=call.place, loss=worst)
    if call.differing is None:
        if call.place == call.place_on_y:  # else they are two primitives: that the paths part says it
            realised = call.realised_loss
            cost = "" if realised is None else f"loss {number_words(realised)} at the value returned"
            seen = f"{x} on x, {y} on y"
            yield found(kind=FindingKind.DISTRIBUTION_DIFFERS, seen=seen, cost=cost, loss=realised)
        return
    differing = call.differing - _INPUTS
    if "scale" in differing:
        scales = [shown(each.parameters["scale"]) for each in (x, y)]
        seen = f"the scale of {x.name} noise is {scales[0]} on x and {scales[1]} on y"
        remedy = "make the scale the same for neighbouring datasets"
        yield found(kind=FindingKind.SCALE_DIFFERS, seen=seen, cost=cost, remedy=remedy, is_excess=is_beyond)
    elif differing:
        seen = f"{call.primitive} has other parameters: {x} on x, {y} on y"
        yield found(kind=FindingKind.PARAMETERS_DIFFER, seen=seen, cost=cost or "loss unknown", is_excess=is_beyond)
    sensitivity = beyond_sensitivity(call, distance)
    if sensitivity is not None:
        seen = f"the input of {call.primitive} moved {_far(call.moved)}, and its sensitivity is {sensitivity:.6g}"
        seen, remedy = f"{seen}{cost and '; '}{cost}", f"limit the moves of the input to {distance * sensitivity:.6g}"
        yield found(kind=FindingKind.BEYOND_SENSITIVITY, seen=seen, remedy=remedy, is_excess=True)
    elif is_beyond and not differing:
        seen = f"{call.primitive}: {_moved_words(call)}"
        yield found(kind=FindingKind.LOSS_ABOVE_CLAIM, seen=seen, cost=cost, is_excess=True)


def _moved_words(call: ReplayedCall) -> str:
    x, y = call.distribution_on_x, call.distribution_on_y
    scale = "" if x.scale is None else f", with {x.name} noise of scale {shown(x.parameters['scale'])}"
    if call.is_inferred:
        return f"the number that it is added to moved {_far(call.moved)} (in units of the noise as drawn){scale}"
    if call.moved is not None:
        return f"its {'input' if x.location is None else 'location'} moved {_far(call.moved)}{scale}"
    if x.name == y.name == "discrete" and x.probabilities.shape == y.probabilities.shape:
        p, q = x.probabilities.reshape(-1), y.probabilities.reshape(-1)
        with np.errstate(all="ignore"):
            most = int(np.nanargmax(np.abs(np.log(p) - np.log(q))))
        return f"outcome {most} has probability {p[most]:.4g} on x and {q[most]:.4g} on y"
    return f"{x} on x, {y} on y"


def _needed(call: ReplayedCall, claim: Claim) -> float | None:
    """Return the parameter that the claim must have for the call, from its distributions or its primitive's promise."""
    needed, promised = parameter_needed(claim, *call.both), call.promised
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
        if math.isinf(needed):
            return f"no {claim.parameter_name} covers it"
        return f"{claim.describe_parameter(needed)}, claimed {claim}"
    stated = "" if claim is None else f", claimed {claim.parameter:.6g}"
    if mu is not None and 0.0 < mu < math.inf:
        return f"mu {mu:.6g}, pure loss infinite{stated}"
    return "" if worst is None else f"worst-case loss {number_words(worst)}{stated}"


def _scale_needed(calls: Calls, number: int, claim: Claim) -> str:
    """Return the least scale with which an excess is none, beside the other calls, or that all must share the claim."""
    call, others = calls[number], [each for each in calls if each is not calls[number] and each.worst_loss]
    left, beside = claim.parameter, ""
    if others:
        lost = total_loss(tuple(others)).worst
        if not claim.log_ratio or lost is None:
            return _SHARE
        left -= lost * claim.parameter / claim.log_ratio
        if left <= claim.parameter * SLACK:
            total = lost + (call.worst_loss or 0.0)
            said = "are infinite" if math.isinf(total) else f"add up to {total:.6g}"
            return f"the losses of {len(others) + 1} calls {said}, claimed {claim.parameter:.6g}; {_SHARE}"
        verb = "call loses" if len(others) == 1 else f"{len(others)} calls lose"
        beside = f", as the other {verb} {number_words(lost)}"
    scale = call.distribution_on_x.scale
    if scale is None or call.moved is None or not 0.0 < call.moved < math.inf or not np.all(scale > 0.0):
        return ""

    def needs(factor: float) -> float:
        wide = (replace(each, parameters={**each.parameters, "scale": factor * scale}) for each in call.both)
        needed = parameter_needed(claim, *wide)
        return math.inf if needed is None else needed

    high = 2.0
    while needs(high) > left:
        high *= 2.0
        if high > 2.0**20:  # a claim that so much noise does not keep is kept by no noise: it forbids the move
            return ""
    low = high / 2.0
    for _ in range(36):  # to less than the rounding of losses, a relative 1e-9
        middle = (low + high) / 2.0
        low, high = (middle, high) if needs(middle) > left else (low, middle)
    high *= 1.0 - SLACK  # so that a whole number stays one when it is rounded up
    is_one = np.ptp(scale) == 0.0
    wanted = rounded_up(high * float(scale.flat[0]) if is_one else high, 3)
    return f"{f'scale {wanted:.6g}' if is_one else f'{wanted:.6g} times this scale'} is needed for {claim}{beside}"


_SHARE: Final = "give each line a share of the claim"


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
            yield Finding(kind=FindingKind.CALLS_DIFFER, place=place, seen=text)
            break
        if a.place != b.place or parted:
            text = f"{_drawn(a)} on x, {_drawn(b)} at {b.place} on y"
            yield Finding(kind=FindingKind.CALLS_DIFFER, place=a.place, seen=text)
            break
    for one, other in zip_longest(x.seeds, y.seeds):
        if one is not None and other is not None and one[1] == other[1]:
            continue
        place, seed = one or other
        on = f"{seed} on {'x' if other is None else 'y'} only"
        if one is not None and other is not None:
            on = f"{seed} on x and {other[1]} on y"
        text = f"a generator is seeded with {on}, so what it draws is not noise"
        yield Finding(kind=FindingKind.SEED_DIFFERS, place=place, seen=text)
        break
    if end_on_x != end_on_y:
        text = f"the run on x {end_on_x}, the run on y {end_on_y}"
        yield Finding(kind=FindingKind.RAISES, place=None, seen=text)


def public_findings(x: Tape, y: Tape, *, is_recorded: bool) -> Iterator[Finding]:
    """Yield the values stated to be public that are not the same on x and on y, once for each line."""
    found: dict[tuple[str, Place], Finding] = {}
    kind = FindingKind.PUBLIC_DIFFERS
    bare = [i for i, call in enumerate(paired_calls(x, y)) if call.is_bare or (call.is_shared and call.is_shifted)]
    last = min([len(x.calls), *bare, *([] if y.parted_at is None else [y.parted_at])])
    # Noise that is not put back as a sum may be part of a later value.

    for one, other in zip_longest(x.public, y.public):
        first = one or other
        if one is None or other is None or (one.name, one.place) != (other.name, other.place):
            where = "x" if one is not None else "y"
            yield Finding(
                kind=kind, place=first.place, seen=f"only the run on {where} states {first.name!r} to be public here"
            )
            break
        is_same = same_output(one.value, other.value)
        if is_same is not True:
            values = f"{shorten(one.value)} on x and {shorten(other.value)} on y"
            said = f"{one.name!r} is stated to be public, and is {values}"
            if is_same is None:
                said = f"{one.name!r} is stated to be public, and its values cannot be compared"
            remedy = "take it from something public" if is_same is False else ""
            is_excess = is_same is False and is_recorded and one.after <= last
            made = Finding(kind=kind, place=one.place, seen=said, remedy=remedy, is_excess=is_excess)
            found.setdefault((one.name, one.place), made)
    yield from found.values()


def _drawn(call: Drawn) -> str:
    shape = f" of shape {call.distribution.shape}" if call.distribution.shape else ""
    return f"{call.primitive} with {call.distribution}{shape}"


def sum_finding(calls: tuple[ReplayedCall, ...], claim: Claim | None) -> Finding | None:
    """Return a finding if all noise together exceeds the claim, if that is certain: pure or Gaussian losses only."""
    noise = tuple(filter(is_noise, calls))
    loss = total_loss(noise)
    if claim is None or loss.epsilon is None:
        return None
    if claim.log_ratio is not None:
        # what is likeliest on x in one call and on y in another does not add up
        sides = [[directed_loss(*call.both[::step]) for call in noise] for step in (1, -1)]
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
    lines: dict[Line, Calls] = {}
    for call in noise:
        lines[call.line] = (*lines.get(call.line, ()), call)
    losses = {line: total_loss(own) for line, own in lines.items()}
    (_, place), most = max(losses.items(), key=lambda one: (one[1].epsilon or 0.0) + one[1].mu)
    remedy = f"{_SHARE}; the largest is at {place}: {most}"
    return Finding(
        kind=FindingKind.SUM_ABOVE_CLAIM, place=None, seen="", cost=text, remedy=remedy, loss=loss.worst, is_excess=True
    )


# Which findings at calls are excesses.

_HIDDEN: Final = "the output does not show the value, or not by itself"
_UNTRIED: Final = "so many numbers are drawn that it was not tried whether the output shows this value"
_PROMISED: Final = "that is what the primitive allows at most, which its noise need not cost"
_CHOSEN: Final = "a draw that may choose rows, or among answers, is made as well"
_REORDERED: Final = "the calls of this line may correspond in another order, in which no input moves too far"
_NOT_ALL: Final = "the output does not show all of their values, as far as these were tried"
_UNRECORDED: Final = "what is not recorded, or noise that is not drawn anew, may hide the value"


def judged(
    calls: Calls,
    claim: Claim | None,
    distance: float,
    reruns: Reruns,
    tapes: tuple[Tape, Tape],
    *,
    is_recorded: bool,
    is_determined: bool,
) -> list[Finding]:
    """Return the findings at the calls and of their sum, as excesses only if the output shows the values."""
    chooses = any(map(_may_choose, calls))
    determined = _Determined(calls, reruns, is_pure=claim is None or claim.log_ratio is not None)

    @cache
    def parts_shown(number: int) -> Calls:
        call = calls[number]
        return () if call.is_promise else (call,) if call.is_inferred else determined.parts(number)

    def exceeds(parts: Calls) -> bool:
        is_beyond = any(found.is_excess for part in parts for found in call_findings(part, claim, distance))
        return is_beyond or (len(parts) > 1 and sum_finding(parts, claim) is not None)

    is_reordered = cache(partial(_may_correspond_otherwise, x=tapes[0], y=tapes[1], distance=distance))
    found = []
    for number, call in enumerate(calls):
        for each in call_findings(call, claim, distance):
            words = ""
            if each.is_excess and each.kind is FindingKind.BEYOND_SENSITIVITY:
                words = _REORDERED if is_reordered(call.line) else ""
            elif each.is_excess:
                words = _CHOSEN if chooses else _PROMISED if call.is_promise else "" if is_recorded else _UNRECORDED
                if not words:
                    hidden = _HIDDEN if call.is_inferred or determined.is_tried(number) else _UNTRIED
                    words = "" if exceeds(parts_shown(number)) else hidden
            is_excess = each.is_excess and not words and is_determined
            remedy = each.remedy if is_excess else ""
            if is_excess and each.kind is FindingKind.LOSS_ABOVE_CLAIM and claim is not None:
                remedy = _scale_needed(calls, number, claim)
            cost = "; ".join(filter(None, (each.cost, words)))
            found.append(replace(each, cost=cost, remedy=remedy, is_excess=is_excess, call=number))
    found = _by_line(found, calls)
    noise = [number for number, call in enumerate(calls) if is_noise(call) and call.worst_loss != 0.0]
    total = sum_finding(calls, claim)
    if total is None or any(each.is_excess for each in found) or (found and len(noise) == 1):
        return found  # of one call, the sum is its loss
    words = _CHOSEN if chooses else "" if is_recorded else _UNRECORDED
    shown = None if words else sum_finding(tuple(part for number in noise for part in parts_shown(number)), claim)
    if shown is None:
        shown = replace(total, cost=f"{total.cost}; {words or _NOT_ALL}", remedy="", is_excess=False)
    return [*found, shown]


def _by_line(found: list[Finding], calls: Calls) -> list[Finding]:
    """Return one finding of each kind for a line that adds noise in every step of a loop: the one that loses most."""
    lines: dict[tuple[Line, FindingKind, bool], list[Finding]] = {}
    rest = []
    for each in found:
        call = calls[each.call or 0]
        if call.is_added:
            lines.setdefault((call.line, each.kind, each.is_excess), []).append(each)
        else:
            rest.append(each)
    for same in lines.values():
        worst = max(same, key=lambda each: (each.loss or 0.0, calls[each.call or 0].mu or 0.0))
        more = "" if len(same) == 1 else f"; the largest loss of {len(same)} calls"
        rest.append(replace(worst, cost=f"{worst.cost}{more}"))
    return sorted(rest, key=lambda each: each.call or 0)


def _may_correspond_otherwise(line: Line, x: Tape, y: Tape, distance: float) -> bool:
    """Whether the calls of a line can be matched such that no input moves beyond the sensitivities of both calls."""
    on_x, on_y = calls_of(line, x), calls_of(line, y)
    if len(on_x) == len(on_y) == 1:
        return False
    if len(on_x) * len(on_y) > _MOST_MATCHED:
        return len(on_x) != len(on_y)

    def is_beyond(a: Drawn, b: Drawn) -> bool:
        calls = paired(a, b), paired(b, a)
        return any(call.moved is None or beyond_sensitivity(call, distance) is not None for call in calls)

    return not matched(on_x, on_y, is_beyond).any()


def _may_choose(call: ReplayedCall) -> bool:
    """Whether a call may choose rows or flip an answer, so that the noise of others costs less than it says."""
    name = call.distribution_on_x.name
    is_choice = name in NOT_NOISE or name == "binomial" or (call.is_unmoved and not call.is_shifted)
    return is_choice and call.declared_on_x is None


def _at_places(call: ReplayedCall, flags: npt.NDArray[np.bool_]) -> Calls:
    """Return the call with those of its independent numbers that are flagged; none if it has no numbers by place."""
    if np.all(flags):
        return (call,)
    x, y = call.distribution_on_x, call.distribution_on_y
    if not np.any(flags) or not (x.is_known and x.name == y.name) or call.declared_on_x is not None:
        return ()
    value = np.asarray(call.value).reshape(-1)[flags]
    return (call.given(x.at(flags), y.at(flags), value=value),)


class _Determined:
    """Which drawn numbers the output determines, near the recorded values and as far as some others show.

    The output moves with such a number in a way that no other draws can undo, where it is the same on x and on y, also
    at other values of the others, and does not forget which number is which. Under claims other than pure ones, its
    distribution must not depend on other draws.
    """

    def __init__(self, calls: Calls, reruns: Reruns, *, is_pure: bool) -> None:
        self.calls, self._reruns, self._is_pure = calls, reruns, is_pure
        self._rng = np.random.default_rng(29)
        self._tried: list[tuple[int, int]] = []
        self._rest: list[tuple[int, int]] = []
        if sum(map(_size, calls)) > _MOST_DRAWN:
            return
        order = sorted(range(len(calls)), key=lambda number: -(calls[number].worst_loss or 0.0))
        found = [(number, place) for number in order for place in _moved_places(calls[number])]
        self._tried = found[: min(MOST_NUMBERS, max(_WORK // max(len(calls), 1), 4))]
        drawn = {(number, place) for number, call in enumerate(calls) for place in range(_size(call))}
        self._rest = sorted({*found, *drawn} - set(self._tried))

    def is_tried(self, number: int) -> bool:
        """Whether the output was run with other values of all numbers of a call that moved."""
        if self.calls[number].is_added:
            return True
        tried = {place for i, place in self._tried if i == number}
        return tried.issuperset(_moved_places(self.calls[number]))

    def parts(self, number: int) -> Calls:
        """Return what the output shows of a call: its numbers, or the sets of values that it distinguishes."""
        call = self.calls[number]
        if call.is_added and self._is_released(number):
            return (call,)
        places = [place for i, place in self._tried if i == number]
        if not places:
            return ()
        flags, parts = self._reruns.shown(number), []
        for place in range(len(flags)):
            flags[place] = flags[place] and place in places and self._is_determined(number, place)
            if flags[place] and call.distribution_on_x.name != "discrete":
                distributions = self._told_apart(number, place)
                flags[place] = distributions is _WHOLE
                if isinstance(distributions, tuple):
                    parts.append(call.given(*distributions, value=0, declared_on_x=None))
        return (*_at_places(call, flags), *parts)

    def _is_released(self, number: int) -> bool:
        """Whether an output or a public value has the numbers of a sum, in their order, times a constant plus another.

        A public value is seen as released: the code says that it depends on the data by the draws only.
        """
        call, scale = self.calls[number], np.ravel(self.calls[number].distribution_on_x.scale)  # type: ignore[arg-type]
        others = {each: value for each, value in self._reruns.anew().items() if each != number}
        shape = np.shape(call.value)
        changes = [s * self._rng.choice([-1.0, 1.0], shape) * self._rng.uniform(0.5, 1.0, shape) for s in (1.0, *FAR)]
        open_blocks: set[int] | None = None
        for side in SIDES:
            base = self._reruns.released(side, {})
            drawn = self._reruns.released(side, others) if others else base
            moved_to = [self._reruns.released(side, {number: stepped(call, steps)}) for steps in changes]
            if any(len(each) != len(base) for each in (drawn, *moved_to)):
                return False
            found = set()
            for block, start in enumerate(base):
                ends, units = [each[block] for each in moved_to], [np.ravel(steps) * scale for steps in changes]
                if all(len(each) == len(start) for each in (drawn[block], *ends)):
                    found |= {block} if self._is_multiple(start, drawn[block], ends, units) else set()
            open_blocks = found if open_blocks is None else open_blocks & found
        return bool(open_blocks)

    def _is_multiple(self, start: Array, drawn: Array, ends: list[Array], units: list[Array]) -> bool:
        """Whether numbers change by one multiple of the units, and not with other draws."""
        moves = [difference(end, start) for end in ends]
        slack = [self._reruns.rounding(end, start) for end in ends]
        places = np.flatnonzero(np.abs(moves[0]) > slack[0])
        if len(places) != len(units[0]) or np.any(difference(drawn, start)[places] != 0.0):
            return False
        factor = moves[-1][places[0]] / units[-1][0]
        errors = (np.abs(move[places] - factor * unit) for move, unit in zip(moves, units, strict=True))
        allowed = (4.0 * s[places] + SLACK * np.abs(move[places]) for s, move in zip(slack, moves, strict=True))
        return all(bool(np.all(error <= most)) for error, most in zip(errors, allowed, strict=True))

    def _is_determined(self, number: int, place: int) -> bool:
        call = self.calls[number]
        is_place = call.distribution_on_x.name == "discrete"
        if is_place and not self._tells_apart(number):
            return False
        if any(self._is_symmetric((number, place), other) for other in self._alike(number, place)):
            return False
        if not len(self._agreeing):
            return is_place and len(self._tried) + len(self._rest) == 1  # a text, which a single draw decides
        at = self._tried.index((number, place))
        column = self._columns[:, at]
        others = np.concatenate([np.delete(self._columns, at, axis=1), self._others], axis=1)
        if not (np.isfinite(column).all() and np.isfinite(others).all() and np.any(column != 0.0)):
            return False
        if others.shape[1]:
            sizes = np.maximum(np.linalg.norm(others, axis=0), np.finfo(float).tiny)
            found = np.linalg.lstsq(others / sizes, column, rcond=1e-4)[0]
            if np.linalg.norm(column - others / sizes @ found) <= _MIXED * np.linalg.norm(column):
                return False
        return self._is_shown_elsewhere(number, place)

    def _other_place(self, number: int) -> Any:
        """Return another value of a call that draws an index; its own if it has no other."""
        return next(iter(self._reruns.other_values(number)), self.calls[number].value)

    def _tells_apart(self, number: int) -> bool:
        """Whether all values of a call that draws an index give different outputs, the same on x and on y."""
        outputs: list[Any] = []
        outcomes = outcomes_of(self.calls[number])
        if outcomes is None:
            return False
        for value in outcomes:
            output = self._reruns.output("x", {number: value})[0]
            if same_output(output, self._reruns.output("y", {number: value})[0]) is not True:
                return False
            if any(same_output(output, other) is not False for other in outputs):
                return False
            outputs.append(output)
        return True

    @cached_property
    def _agreeing(self) -> npt.NDArray[np.intp]:
        """The places of the output's numbers that are the same on x and on y."""
        x, y = self._reruns.numbers("x", {}), self._reruns.numbers("y", {})
        if x is None or y is None or not same_form(self._reruns.output("x", {})[0], self._reruns.output("y", {})[0]):
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.abs(difference(y, x)) <= self._reruns.rounding(x, y))

    @cached_property
    def _columns(self) -> Array:
        """How the output changes with each number that is tried, a column each; NaN if that cannot be seen."""
        return np.array([self._column({each: 1.0}) for each in self._tried]).T

    @cached_property
    def _others(self) -> Array:
        """How it changes with the other numbers: one by one if these are few, else with some of their mixtures."""
        rest = self._rest
        if len(rest) <= MOST_NUMBERS:
            found = [self._column({each: 1.0}) for each in rest]
        else:
            mixtures = self._rng.normal(size=(min(len(self._agreeing), MOST_NUMBERS) + 1, len(rest)))
            found = [self._column(dict(zip(rest, sizes, strict=True))) for sizes in mixtures]
        return np.array(found).reshape(len(found), len(self._agreeing)).T

    def _column(self, sizes: dict[tuple[int, int], float]) -> Array:
        for is_small in (True, False):
            moves = self._reruns.moves("x", self._changed(sizes, is_small))
            if moves is None:
                return np.full(len(self._agreeing), np.nan)
            column = moves[0][self._agreeing]
            if np.any(column != 0.0):
                break
        return np.asarray(column)

    def _changed(self, sizes: dict[tuple[int, int], float], is_small: bool) -> Changes:
        directions: dict[int, Array] = {}
        for (number, place), size in sizes.items():
            direction = directions.setdefault(number, np.zeros(np.shape(self.calls[number].value)))
            direction.reshape(-1)[place] = size
        changed = {}
        for number, direction in directions.items():
            call = self.calls[number]
            if call.distribution_on_x.name == "discrete":
                changed[number] = self._other_place(number)
            elif is_small or not call.is_shifted:
                changed[number] = nudged(call, np.asarray(call.value), direction)
            else:
                changed[number] = stepped(call, _LARGE * direction)
        return changed

    def _is_shown_elsewhere(self, number: int, place: int) -> bool:
        """Whether the output moves with the number at other values of all other draws too."""
        if len(self._tried) + len(self._rest) == 1:
            return True
        call = self.calls[number]
        for _ in range(DRAWS):
            changed = self._reruns.anew()
            value = np.array(changed.get(number, call.value)).reshape(np.shape(call.value))
            value.reshape(-1)[place] = np.asarray(call.value).reshape(-1)[place]
            base = {**changed, number: typed(call.value, value)}
            out = self._reruns.numbers("x", base)
            if out is None or not (self._is_pure or self._reruns.has_distribution_of(call, number, base)):
                return False
            moved = [self._reruns.numbers("x", {**base, number: each}) for each in self._steps(number, value, place)]
            moves = [difference(each, out)[self._agreeing] for each in moved if each is not None]
            if not np.any(np.array(moves) != 0.0):
                return False
        return True

    def _steps(self, number: int, value: Array, place: int) -> list[Any]:
        """Return the value with one number a little and three scales away, or exchanged for another place."""
        call = self.calls[number]
        if call.distribution_on_x.name == "discrete":
            return [self._other_place(number)]
        direction = one_of(call, place)
        far = 1.0 if call.distribution_on_x.scale is None else _LARGE * call.distribution_on_x.scale.reshape(-1)[place]
        return [nudged(call, value, direction), typed(call.value, value + max(far, 1.0) * direction)]

    def _told_apart(self, number: int, place: int) -> tuple[Distribution, Distribution] | bool | None:
        """Return the distributions of the sets of values that the output distinguishes; `_WHOLE` for all values."""
        call = self.calls[number]
        if not all(distribution.is_known for distribution in call.both):
            return None
        flags = np.arange(max(int(np.size(call.value)), 1)) == place
        x, y = (distribution.at(flags) for distribution in call.both)
        if not (x.has_noise and y.has_noise):
            at = [each.location for each in (x, y)]
            ends = [None if each is None else self._output_at(number, place, float(each.flat[0])) for each in at]
            is_seen = ends[0] is not None and ends[1] is not None and bool(np.any(ends[0] != ends[1]))
            return _WHOLE if is_seen else None
        grid = np.unique(np.concatenate([x.quantiles(_TAILS), y.quantiles(_TAILS)]))
        if len(grid) < 2:
            return None
        far, is_whole = grid[-1] - grid[0], call.distribution_on_x.is_integer_valued
        beyond = far * np.array([-31.0, -1.7, 2.3, 37.0] if call.distribution_on_x.is_shifted else []) + grid[0]
        tried = np.concatenate([grid, np.round(beyond) if is_whole else beyond])
        outputs = {at: self._output_at(number, place, at) for at in tried.tolist()}
        near = 1.0 if is_whole else SLACK * far
        points = np.array(sorted(at for at, out in outputs.items() if out is not None))
        if len(points) < 2:
            return None
        rows = np.array([outputs[at] for at in points])
        slack = np.max([self._reruns.rounding(each, each) for each in rows], axis=0)
        with np.errstate(invalid="ignore"):
            steps = np.diff(rows, axis=0)
            signs = np.where(np.all(steps >= -slack, axis=0), 1.0, np.where(np.all(steps <= slack, axis=0), -1.0, 0.0))
        rising = np.flatnonzero(signs).tolist()
        found = (self._cuts(number, place, points, rows[:, k] * signs[k], k, signs[k], near) for k in rising)
        cuts, is_all = max(found, key=lambda one: len(one[0]), default=(np.empty(0), False))
        if is_all and len(points) == len(outputs):
            return _WHOLE
        cuts = cuts[(cuts >= grid[0]) & (cuts <= grid[-1])]
        return None if not len(cuts) else (_of_sets(x, cuts), _of_sets(y, cuts))

    def _output_at(self, number: int, place: int, at: float) -> Array | None:
        """Return the agreeing numbers of the output where a number has this value; None if they do not agree there."""
        call = self.calls[number]
        value = np.array(call.value, dtype=np.float64)
        value.reshape(-1)[place] = at
        changed = {number: typed(call.value, value)}
        x, y = (self._reruns.numbers(side, changed) for side in SIDES)
        if x is None or y is None:
            return None
        x, y = x[self._agreeing], y[self._agreeing]
        return x if np.all(np.abs(difference(y, x)) <= self._reruns.rounding(x, y)) else None

    def _cuts(
        self, number: int, place: int, points: Array, levels: Array, k: int, sign: float, near: float
    ) -> tuple[Array, bool]:
        """Return values beyond which a coordinate that never falls is larger, and whether each point is one."""

        def level(at: float) -> float:
            out = self._output_at(number, place, at)
            return math.nan if out is None else float(out[k] * sign)

        cuts, is_all = [], True
        for low, high, below, above in zip(points, points[1:], levels, levels[1:], strict=False):
            slack = 4.0 * float(self._reruns.rounding(below, above))
            if high - low <= near or (above > below + slack and level(low + near) > below + slack):
                cuts += [low] if above > below + slack else []
                continue
            is_all = False
            if above > below + slack:
                while high - low > near:
                    middle = low + (high - low) / 2.0
                    middle = math.floor(middle) if near == 1.0 else middle
                    low, high = (middle, high) if level(middle) <= below + slack else (low, middle)
                cuts.append(low)
        return np.array(cuts), is_all

    def _alike(self, number: int, place: int) -> list[tuple[int, int]]:
        """Return some other numbers of the same distribution, those that moved first."""
        own = self.calls[number].distribution_on_x
        found = []
        for other in (*self._tried, *self._rest[: 4 * _SWAPPED]):
            distribution = self.calls[other[0]].distribution_on_x
            if other != (number, place) and distribution.name == own.name and distribution.name not in NOT_NOISE:
                found.append(other)
        return found[:_SWAPPED]

    def _is_symmetric(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether the output is the same with the two numbers exchanged."""
        values = {i: np.array(self.calls[i].value) for i in (one[0], other[0])}
        if any(value.dtype.kind not in "iuf" for value in values.values()):
            return False
        a, b = (values[i].reshape(-1)[place] for i, place in (one, other))
        if a == b:
            others = self._other_place(one[0]) if self.calls[one[0]].distribution_on_x.name == "discrete" else a + 1
            a = np.ravel(others)[0]
        outputs = []
        for first, second in ((a, b), (b, a)):
            held = {i: value.copy() for i, value in values.items()}
            held[one[0]].reshape(-1)[one[1]] = first
            held[other[0]].reshape(-1)[other[1]] = second
            changed = {i: typed(self.calls[i].value, value) for i, value in held.items()}
            outputs.append(self._reruns.output("x", changed)[0])
        return same_output(*outputs) is True


_MOST_MATCHED: Final = 40_000
"""Pairs of calls of a line that are compared; with more, the order counts if both runs made as many calls."""
# Numbers, beyond which none is determined: each takes some dozens of reruns of all calls
# (docs/decisions/0025-limits.md).
_MOST_DRAWN: Final = 2_000
# Calls in the reruns for one change of each number: with many calls, fewer numbers are tried
# (docs/decisions/0025-limits.md).
_WORK: Final = 4_000
_MIXED: Final = 0.01
"""A change that others undo but for so much of it does not show by itself."""
# Scales: an answer that is only rounded or clamped nearby changes with such a step (docs/decisions/0025-limits.md).
_LARGE: Final = 3.0
_TAILS: Final = (1e-9, 1e-6, 1e-3, 0.02, 0.15, 0.5)
"""Both tails of the values that are tried; rarer ones would show in no audit."""
_WHOLE: Final = True
# Other numbers that are exchanged with one; a sorted output forgets the order of all of them
# (docs/decisions/0025-limits.md).
_SWAPPED: Final = 4


def _of_sets(distribution: Distribution, cuts: Array) -> Distribution:
    """Return the distribution of the sets between cuts, by the tail in which a set loses no digits."""
    frozen = distribution.frozen()
    with np.errstate(all="ignore"):
        low = np.concatenate([[0.0], frozen.cdf(cuts).reshape(-1), [1.0]])
        high = np.concatenate([[1.0], frozen.sf(cuts).reshape(-1), [0.0]])
    odds = np.where(low[1:] < 0.5, np.diff(low), -np.diff(high))
    return Distribution("discrete", {"probabilities": np.maximum(odds, 0.0)})


def _size(call: ReplayedCall) -> int:
    """Return how many numbers a call drew; 0 if its value is none."""
    value = np.asarray(call.value)
    return value.size if value.dtype.kind in "biuf" else 0


def _moved_places(call: ReplayedCall) -> list[int]:
    """Return the numbers of a call whose distribution is another one on y."""
    if call.worst_loss == 0.0 or call.is_inferred:
        return []
    if call.distribution_on_x.name == "discrete" or _size(call) == 0:
        return [0]
    apart, is_same_scale = moved(*call.both), "scale" not in (call.differing or ())
    if apart is None or not is_same_scale or apart.size != _size(call):
        return list(range(_size(call)))
    return np.flatnonzero(apart.reshape(-1) != 0.0).tolist()


# The visible loss.

_RARE: Final = 1e-3  # of values beyond which no loss is looked for; docs/decisions/0019-record-and-replay.md
_DEVIATIONS: Final = -float(ndtri(_RARE))
_QUANTILES: Final = np.concatenate([np.geomspace(_RARE, 0.5, 20), 1.0 - np.geomspace(_RARE, 0.5, 20)[-2::-1]])
_CERTAIN: Final = 20.0  # of what every run shows; far beyond the losses that claims allow
_MOST_REORDERED: Final = 16  # calls of a line
_OTHERWISE: Final = 1.0  # of another path, or of a call of which nothing is known: worth a closer look


def visible_loss(
    on_x: RecordedRun,
    on_y: RecordedRun,
    hides: Callable[[int], bool] = lambda number: False,
    *,
    otherwise: float = _OTHERWISE,
) -> float:
    """Return the sum over the calls, and over what moved without them; another path counts as `otherwise`."""
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
        if 1 < max(len(on_x), len(on_y)) <= _MOST_REORDERED and any(loss > 0.0 for _, loss in losses):
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
    """Return the largest log ratio at values that are not rare under either, the sum over independent draws."""
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
    of_each = (np.ones(each.shape) if each.scale is None else each.scale for each in noise)
    scales = np.concatenate([np.empty(0), *map(np.ravel, of_each)])
    if not len(scales):
        return _CERTAIN if np.any(moved > 0.0) else 0.0
    with np.errstate(all="ignore"):
        relative = moved / (scales if len(scales) == len(moved) else np.max(scales))
    return float(np.sum(np.minimum(np.nan_to_num(relative, nan=_CERTAIN), 1e6)))
