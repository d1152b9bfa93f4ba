"""Which findings at calls are excesses: those of values that the output shows.

A value that is drawn and does not show (the largest of several is released, a threshold is passed, a draw is rejected)
costs less than its distribution says. So does noise on a sample of rows, noise to which other noise is added, and a
value that is folded or sorted among others before it is released.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from .distributions import Array, Distribution, moved
from .output_values import difference, same_form, same_output
from .replay_findings import NOT_NOISE, beyond_sensitivity, call_findings, is_noise, matched, sum_finding
from .replay_result import Finding, FindingKind, Line, ReplayedCall, calls_of, paired
from .reruns import DRAWS, MOST_NUMBERS, SIDES, Calls, Changes, Reruns, nudged, one_of, outcomes_of, stepped, typed
from .tape import Drawn, Tape

_HIDDEN: Final = "; the output does not show the value, or not by itself"
_UNTRIED: Final = "; so many numbers are drawn that it was not tried whether the output shows this value"
_PROMISED: Final = "; that is what the primitive allows at most, which its noise need not cost"
_CHOSEN: Final = "; a draw that may choose rows, or among answers, is made as well"
_REORDERED: Final = "; the calls of this line may correspond in another order, in which no input moves too far"
_NOT_ALL: Final = "; the output does not show all of their values, as far as these were tried"
_UNRECORDED: Final = "; what is not recorded, or noise that is not drawn anew, may hide the value"


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
    """Return the findings at the calls and of their sum, as excesses only where the output shows the values.

    An input that moves beyond its declared sensitivity is an excess regardless of the output, unless what the
    primitives are given varies by itself (not `is_determined`), or its line's calls may correspond in another order.
    """
    chooses = any(map(_may_choose, calls))
    determined = _Determined(calls, reruns, is_pure=claim is None or claim.log_ratio is not None)

    @cache
    def parts_shown(number: int) -> Calls:
        call = calls[number]
        return () if call.is_promise else (call,) if call.is_inferred else determined.parts(number)

    @cache
    def is_reordered(line: Line) -> bool:
        return _may_correspond_otherwise(line, *tapes, distance)

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
                    words = "" if _exceeds(parts_shown(number), claim, distance) else hidden
            is_excess = each.is_excess and not words and is_determined
            found.append(replace(each, message=each.message + words, is_excess=is_excess, call=number))
    noise = [number for number, call in enumerate(calls) if is_noise(call) and call.worst_loss != 0.0]
    total = sum_finding(calls, claim)
    if total is None or any(each.is_excess for each in found) or (found and len(noise) == 1):
        return found  # of one call, the sum is its loss
    words = _CHOSEN if chooses else "" if is_recorded else _UNRECORDED
    shown = None if words else sum_finding(tuple(part for number in noise for part in parts_shown(number)), claim)
    if shown is None:
        shown = replace(total, message=total.message + (words or _NOT_ALL), is_excess=False)
    return [*found, shown]


def _exceeds(parts: Calls, claim: Claim | None, distance: float) -> bool:
    """Whether what the output shows of a call exceeds the claim, a part or all parts together."""
    is_beyond = any(found.is_excess for part in parts for found in call_findings(part, claim, distance))
    return is_beyond or (len(parts) > 1 and sum_finding(parts, claim) is not None)


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
    if call.declared_on_x is not None:
        return False
    name = call.distribution_on_x.name
    return name in NOT_NOISE or name == "binomial" or (name == "discrete" and call.is_unmoved)


def _at_places(call: ReplayedCall, flags: npt.NDArray[np.bool_]) -> Calls:
    """Return the call with those of its independent numbers that are flagged; none if it has no numbers by place."""
    if np.all(flags):
        return (call,)
    x, y = call.distribution_on_x, call.distribution_on_y
    if not np.any(flags) or not (x.is_known and x.name == y.name) or call.declared_on_x is not None:
        return ()
    value = np.asarray(call.value).reshape(-1)[flags]
    return (replace(call, distribution_on_x=x.at(flags), distribution_on_y=y.at(flags), value=value),)


class _Determined:
    """Which drawn numbers the output determines, near the recorded values and as far as some others tell.

    A number is determined if the output moves with it in a way that no other draws can undo, in coordinates that are
    the same on x and on y, also at other values of the other draws, and if it does not forget which number is which.
    How far it is determined, its own values decide: the output shows between which of them it rises or falls. Under
    claims other than pure ones (`is_pure`), its distribution must not depend on other draws.
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
        tried = {place for i, place in self._tried if i == number}
        return tried.issuperset(_moved_places(self.calls[number]))

    def parts(self, number: int) -> Calls:
        """Return what the output shows of a call: its numbers, or the sets of values that it tells apart."""
        call = self.calls[number]
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
                    parts.append(
                        replace(
                            call,
                            distribution_on_x=distributions[0],
                            distribution_on_y=distributions[1],
                            value=0,
                            declared_on_x=None,
                        )
                    )
        return (*_at_places(call, flags), *parts)

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
            number = min(len(self._agreeing), MOST_NUMBERS) + 1
            found = [
                self._column(dict(zip(rest, self._rng.normal(size=len(rest)), strict=True))) for _ in range(number)
            ]
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
        """Return the distributions of the sets of values that the output tells apart; `_WHOLE` if it tells all apart.

        At cuts between values, some coordinate of the output that only rises, or only falls, does so strictly. What
        is above a cut is an event of the output, and its probabilities under both distributions are those of the value.
        """
        call = self.calls[number]
        if not (call.distribution_on_x.is_known and call.distribution_on_y.is_known):
            return None
        flags = np.arange(max(int(np.size(call.value)), 1)) == place
        distributions = [distribution.at(flags) for distribution in (call.distribution_on_x, call.distribution_on_y)]
        if not all(distribution.has_noise for distribution in distributions):
            at = [
                float(distribution.location.reshape(-1)[0])
                for distribution in distributions
                if distribution.location is not None
            ]
            ends = [self._output_at(number, place, each) for each in at]
            is_seen = len(ends) == 2 and all(end is not None for end in ends) and bool(np.any(ends[0] != ends[1]))
            return _WHOLE if is_seen else None
        x, y = (distribution.frozen() for distribution in distributions)
        grid = _quantiles(*distributions)
        if len(grid) < 2:
            return None
        far, is_whole = grid[-1] - grid[0], call.distribution_on_x.is_integer_valued
        beyond = (
            far * np.array([-31.0, -1.7, 2.3, 37.0]) + grid[0] if call.distribution_on_x.is_shifted else np.empty(0)
        )
        tried = np.concatenate([grid, np.round(beyond) if is_whole else beyond])
        outputs = {at: self._output_at(number, place, at) for at in tried.tolist()}
        near = 1.0 if is_whole else _STRICT * far
        points = np.array(sorted(at for at, out in outputs.items() if out is not None))
        if len(points) < 2:
            return None
        rows = np.array([outputs[at] for at in points])
        slack = np.max([self._reruns.rounding(each, each) for each in rows], axis=0)
        with np.errstate(invalid="ignore"):
            steps = np.diff(rows, axis=0)
            signs = np.where(np.all(steps >= -slack, axis=0), 1.0, np.where(np.all(steps <= slack, axis=0), -1.0, 0.0))
        found = [
            self._cuts(number, place, points, rows[:, k] * signs[k], k, signs[k], near)
            for k in np.flatnonzero(signs).tolist()
        ]
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
"""Pairs of calls of a line that are compared; with more, the order counts where both runs made as many calls."""
_MOST_DRAWN: Final = 2_000
_WORK: Final = 4_000
"""With more numbers than the first, none is determined; with more calls than a 64th of the second, fewer are tried."""
_MIXED: Final = 0.01
"""A change that others undo but for so much of it does not show by itself."""
_LARGE: Final = 3.0
_TAILS: Final = (1e-9, 1e-6, 1e-3, 0.02, 0.15, 0.5)
"""Both tails of the values that are tried; rarer ones would show in no audit."""
_STRICT: Final = 1e-9
_WHOLE: Final = True
_SWAPPED: Final = 4


def _quantiles(*distributions: Distribution) -> Array:
    """Return values in both tails of distributions and between them."""
    with np.errstate(all="ignore"):
        held = [
            np.ravel(end)
            for distribution in map(Distribution.frozen, distributions)
            for end in (distribution.ppf(_TAILS), distribution.isf(_TAILS))
        ]
    found = np.unique(np.concatenate(held))
    return np.asarray(found[np.isfinite(found)], dtype=np.float64)


def _of_sets(distribution: Any, cuts: Array) -> Distribution:
    """Return the distribution of the sets between cuts, by the tail in which a set loses no digits."""
    with np.errstate(all="ignore"):
        low, high = (
            np.concatenate([[0.0], distribution.cdf(cuts).reshape(-1), [1.0]]),
            distribution.sf(cuts).reshape(-1),
        )
        high = np.concatenate([[1.0], high, [0.0]])
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
    apart = moved(call.distribution_on_x, call.distribution_on_y)
    is_same_scale = "scale" not in call.distribution_on_x.differing(call.distribution_on_y)
    if apart is None or not is_same_scale or apart.size != _size(call):
        return list(range(_size(call)))
    return np.flatnonzero(apart.reshape(-1) != 0.0).tolist()
