"""Which findings at calls are excesses: those of values that the output shows.

A value that is drawn and does not show (the largest of several is released, a threshold is passed, a draw is rejected)
costs less than its law says. So does noise on a sample of rows, noise to which other noise is added, and a value that
is folded or sorted among others before it is released.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from .comparison import NOT_NOISE, beyond_sensitivity, call_findings, is_noise, sum_finding
from .laws import Array, Law, moved
from .other_values import (
    MOST_NUMBERS,
    Calls,
    Changes,
    Reruns,
    is_shifted,
    is_unmoved,
    moved_by,
    nudged,
    outcomes_of,
    stepped,
    typed,
)
from .output_values import difference, same_form, same_output
from .replayed_call import Finding, FindingKind, Line, ReplayedCall, calls_of, line_of, paired
from .tape import Tape

_HIDDEN: Final = "; the output does not show the value, or not by itself"
_PROMISED: Final = "; that is what the primitive allows at most, which its noise need not cost"
_CHOSEN: Final = "; a draw that may choose rows, or among answers, is made as well"
_REORDERED: Final = "; the calls of this line may correspond in another order, in which no input moves too far"
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

    An input that moves beyond the sensitivity that its primitive declares is an excess regardless of the output,
    unless what the primitives are given varies by itself (not `is_determined`), or the calls of its line may
    correspond in another order.
    """
    chooses = any(map(_may_choose, calls))
    determined = _Determined(calls, reruns)
    reordered: dict[Line, bool] = {}
    shown: dict[int, ReplayedCall | None] = {}

    def part_shown(number: int) -> ReplayedCall | None:
        if calls[number].is_promise:
            return None
        if number not in shown:
            call = calls[number]
            shown[number] = call if call.is_inferred else _shown_part(call, determined.numbers(number))
        return shown[number]

    found = []
    for number, call in enumerate(calls):
        for each in call_findings(call, claim, distance):
            words = ""
            if each.is_excess and each.kind is FindingKind.BEYOND_SENSITIVITY:
                line = line_of(call)
                if line not in reordered:
                    reordered[line] = _may_correspond_otherwise(line, *tapes, distance)
                words = _REORDERED if reordered[line] else ""
            elif each.is_excess:
                words = _CHOSEN if chooses else _PROMISED if call.is_promise else "" if is_recorded else _UNRECORDED
                if not words:
                    part = part_shown(number)
                    is_shown = part is not None and any(more.is_excess for more in call_findings(part, claim, distance))
                    words = "" if is_shown else _HIDDEN
            is_excess = each.is_excess and not words and is_determined
            found.append(replace(each, message=each.message + words, is_excess=is_excess, call=number))
    if any(each.is_excess for each in found) or sum_finding(calls, claim) is None:
        return found
    if found and sum(is_noise(call) and call.worst_loss != 0.0 for call in calls) == 1:
        return found  # the sum is the loss of this call
    if chooses or not is_recorded:
        return [*found, *_no_excess(sum_finding(calls, claim), _CHOSEN if chooses else _UNRECORDED)]
    parts = [part_shown(number) for number, call in enumerate(calls) if is_noise(call) and call.worst_loss != 0.0]
    total = sum_finding(tuple(part for part in parts if part is not None), claim)
    return [*found, total] if total is not None else [*found, *_no_excess(sum_finding(calls, claim), _NOT_ALL)]


_NOT_ALL: Final = "; the output does not show all of their values, as far as these were tried"


def _may_correspond_otherwise(line: Line, x: Tape, y: Tape, distance: float) -> bool:
    """Whether the calls of a line can be matched such that no input moves beyond its sensitivity.

    Where groups come and go with the rows (leaves of a tree, keys of a dictionary), the first call on x may be for
    another group than the first on y. As many calls are matched as both runs made; the others are for groups that are
    in one dataset only, which the paths show. Each move must be within the sensitivities of both calls, so that a call
    with a large one covers no move of another query.
    """
    on_x, on_y = calls_of(line, x), calls_of(line, y)
    if len(on_x) == len(on_y) == 1:
        return False
    if len(on_x) * len(on_y) > _MOST_MATCHED:
        return len(on_x) != len(on_y)
    from scipy.optimize import linear_sum_assignment  # takes a tenth of a second; rarely needed

    beyond = [[_is_beyond(paired(a, b), distance) or _is_beyond(paired(b, a), distance) for b in on_y] for a in on_x]
    rows, columns = linear_sum_assignment(np.array(beyond, dtype=np.float64))
    return not any(beyond[row][column] for row, column in zip(rows, columns, strict=True))


def _is_beyond(call: ReplayedCall, distance: float) -> bool:
    return call.moved is None or beyond_sensitivity(call, distance) is not None


def _no_excess(total: Finding | None, words: str) -> Iterator[Finding]:
    if total is not None:
        yield replace(total, message=total.message + words, is_excess=False)


def _may_choose(call: ReplayedCall) -> bool:
    """Whether a call may choose rows or flip an answer, so that the noise of others costs less than its law says."""
    if call.declared_on_x is not None:
        return False
    name = call.law_on_x.name
    return name in NOT_NOISE or name == "binomial" or (name == "discrete" and is_unmoved(call))


def _shown_part(call: ReplayedCall, flags: npt.NDArray[np.bool_]) -> ReplayedCall | None:
    """Return the call with those of its independent numbers that show; None if none does."""
    if np.all(flags):
        return call
    x, y = call.law_on_x, call.law_on_y
    if not np.any(flags) or not (x.is_shifted and x.name == y.name) or call.declared_on_x is not None:
        return None
    laws = []
    for law in (x, y):
        if law.location is None or law.scale is None:
            return None
        held = {"location": law.location.reshape(-1)[flags], "scale": law.scale.reshape(-1)[flags]}
        laws.append(Law(law.name, held, (int(flags.sum()),), law.after, law.beside))
    value = np.asarray(call.value).reshape(-1)[flags]
    return replace(call, law_on_x=laws[0], law_on_y=laws[1], value=value)


class _Determined:
    """Which drawn numbers the output determines, near the recorded values and as far as some others tell.

    A number is determined if the output moves with it in a way that no other draws can undo, in coordinates that are
    the same on x and on y, if it only rises or only falls with it, and if it does not forget which number is which.
    """

    def __init__(self, calls: Calls, reruns: Reruns) -> None:
        self.calls, self._reruns = calls, reruns
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

    def numbers(self, number: int) -> npt.NDArray[np.bool_]:
        """Return which numbers of a call's value are determined; one flag for a place."""
        places = [place for i, place in self._tried if i == number]
        if not places:
            return np.zeros(max(_size(self.calls[number]), 1), dtype=bool)
        flags = self._reruns.shown(number)
        for place in places:
            if place < len(flags) and flags[place]:
                flags[place] = self._is_determined(number, place)
        return flags

    def _is_determined(self, number: int, place: int) -> bool:
        call = self.calls[number]
        is_place = call.law_on_x.name == "discrete"
        if is_place and not self._tells_apart(number):
            return False
        if any(self._is_symmetric((number, place), other) for other in self._alike(number, place)):
            return False
        if not len(self._agreeing):
            return is_place and len(self._tried) + len(self._rest) == 1
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
        return is_place or self._is_monotone(number, place, column != 0.0)

    def _other_place(self, number: int) -> Any:
        """Return another value of a call that draws an index; its own if it has no other."""
        return next(iter(self._reruns.other_values(number)), self.calls[number].value)

    def _tells_apart(self, number: int) -> bool:
        """Whether all values of a call that draws an index give different outputs, the same on x and on y."""
        outputs: list[Any] = []
        for value in outcomes_of(self.calls[number]) or [None]:
            if value is None:
                return False
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
        base = self._reruns.numbers("x", {})
        for is_small in (True, False):
            out = self._reruns.numbers("x", self._changed(sizes, is_small))
            if out is None or base is None or out.shape != base.shape:
                return np.full(len(self._agreeing), np.nan)
            column = difference(out, base)[self._agreeing]
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
            if call.law_on_x.name == "discrete":
                changed[number] = self._other_place(number)
            elif is_small or not is_shifted(call):
                changed[number] = nudged(call, np.asarray(call.value), direction)
            else:
                changed[number] = stepped(call, _LARGE * direction)
        return changed

    def _is_monotone(self, number: int, place: int, shows: npt.NDArray[np.bool_]) -> bool:
        call, found = self.calls[number], []
        if call.law_on_x.is_known and not is_shifted(call):
            return True  # values on one side of 0
        direction = np.zeros(np.shape(call.value))
        direction.reshape(-1)[place] = 1.0
        if not is_shifted(call):
            direction = direction * self._reruns.spread(call)
        for step in _FAR:
            value = stepped(call, step * direction) if is_shifted(call) else moved_by(call, step * direction)
            out = self._reruns.numbers("x", {number: value} if step else {})
            if out is not None and out.shape >= (len(self._agreeing),):
                found.append(out[self._agreeing][shows])
        if len(found) < len(_FAR) // 2:
            return False
        slack = np.max([self._reruns.rounding(each, each) for each in found], axis=0)
        with np.errstate(invalid="ignore"):
            steps = np.diff(np.array(found), axis=0)
        return bool(np.any(np.all(steps >= -slack, axis=0) | np.all(steps <= slack, axis=0)))

    def _alike(self, number: int, place: int) -> list[tuple[int, int]]:
        """Return some other numbers of the same law, those that moved first."""
        own = self.calls[number].law_on_x
        found = []
        for other in (*self._tried, *self._rest[: 4 * _SWAPPED]):
            law = self.calls[other[0]].law_on_x
            if other != (number, place) and law.name == own.name and law.name not in NOT_NOISE:
                found.append(other)
        return found[:_SWAPPED]

    def _is_symmetric(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether the output is the same with the two numbers exchanged."""
        values = {i: np.array(self.calls[i].value) for i in (one[0], other[0])}
        if any(value.dtype.kind not in "iuf" for value in values.values()):
            return False
        a, b = (values[i].reshape(-1)[place] for i, place in (one, other))
        if a == b:
            others = self._other_place(one[0]) if self.calls[one[0]].law_on_x.name == "discrete" else a + 1
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
_FAR: Final = (-1000.0, -40.0, -8.0, -3.0, -1.0, 0.0, 1.0, 3.0, 8.0, 40.0, 1000.0)
_SWAPPED: Final = 4


def _size(call: ReplayedCall) -> int:
    """Return how many numbers a call drew; 0 if its value is none."""
    value = call.value
    if isinstance(value, (str, bytes, dict)) or np.asarray(value).dtype.kind not in "biuf":
        return 0
    return int(np.size(value))


def _moved_places(call: ReplayedCall) -> list[int]:
    """Return the numbers of a call whose law is another one on y."""
    if call.worst_loss == 0.0 or call.is_inferred:
        return []
    if call.law_on_x.name == "discrete" or _size(call) == 0:
        return [0]
    apart = moved(call.law_on_x, call.law_on_y)
    is_same_scale = "scale" not in call.law_on_x.differing(call.law_on_y)
    if apart is None or not is_same_scale or apart.size != _size(call):
        return list(range(_size(call)))
    return np.flatnonzero(apart.reshape(-1) != 0.0).tolist()
