"""Events: sets of outputs that can be counted quickly, described as text, and stored.

The main phase only draws outputs and counts them, so half-lines and unions of intervals are counted by comparisons.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .outputs import Outputs, as_numbers, is_vector, number_of, outcome_key, outcome_words, row_keys
from .scores import Score

Mask = npt.NDArray[np.bool_]


class Event(ABC):
    """A set of outputs; `str` describes it."""

    @abstractmethod
    def contains(self, outputs: Outputs) -> Mask:
        """Return whether each output lies in the event, shape (runs,)."""

    def count(self, outputs: Outputs) -> int:
        """Return the number of outputs in the event."""
        return int(np.count_nonzero(self.contains(outputs)))


@dataclass(frozen=True, slots=True)
class Intervals(Event):
    """Numbers in a union of closed, disjoint intervals; `others` adds NaN and outputs that are not numbers."""

    intervals: tuple[tuple[float, float], ...]
    others: bool = False

    def contains(self, outputs: Outputs) -> Mask:
        if outputs.ndim != 1:
            return np.full(len(outputs), self.others)
        values = as_numbers(outputs)
        inside = np.zeros(len(values), dtype=np.bool_)
        for low, high in self.intervals:
            inside |= (values >= low) & (values <= high)
        if self.others:
            inside |= values != values
        return inside

    def count(self, outputs: Outputs) -> int:
        if self.others or outputs.ndim != 1 or outputs.dtype == object:
            return int(np.count_nonzero(self.contains(outputs)))
        outputs = as_numbers(outputs)
        hits = 0
        for low, high in self.intervals:
            if low == high:
                hits += int(np.count_nonzero(outputs == low))
            elif high == math.inf:
                hits += int(np.count_nonzero(outputs >= low))
            else:
                hits += int(np.count_nonzero(outputs <= high))
                if low > -math.inf:
                    hits -= int(np.count_nonzero(outputs < low))
        return hits

    def __str__(self) -> str:
        parts = [_interval_words(low, high) for low, high in self.intervals]
        return " or ".join(parts + ["output is not a number"] * self.others) or "no output"


def _interval_words(low: float, high: float) -> str:
    if low == high:
        return f"output = {low:.6g}"
    below, from_ = _edge_words(low, -math.inf)
    above, to = _edge_words(high, math.inf)
    if low == -math.inf:
        return f"output {above} {to}" if high < math.inf else "output is a number"
    if high == math.inf:
        return f"output {'>' if below == '<' else '≥'} {from_}"
    return f"{from_} {below} output {above} {to}"


def _edge_words(edge: float, away: float) -> tuple[str, str]:
    """Return a comparison and an edge: strict, with the adjacent double, if that double has a shorter repr."""
    beside = math.nextafter(edge, away)
    strict = math.isfinite(edge) and len(repr(beside)) < len(repr(edge))
    return ("<", f"{beside:.6g}") if strict else ("≤", f"{edge:.6g}")


@dataclass(frozen=True, slots=True)
class Outcomes(Event):
    """Outputs equal to one of the listed values; with `others`, outputs equal to none of them."""

    values: tuple[Any, ...]
    others: bool = False

    def contains(self, outputs: Outputs) -> Mask:
        if outputs.dtype == object:
            keys = {outcome_key(value) for value in self.values}
            listed = np.fromiter((outcome_key(o) in keys for o in outputs), dtype=np.bool_, count=len(outputs))
        elif outputs.ndim == 2:
            listed = _rows_among(outputs, [value for value in self.values if is_vector(value, outputs.shape[1])])
        else:
            outputs = as_numbers(outputs)
            known = [value for value in self.values if isinstance(value, numbers.Real)]
            listed = _numbers_among(outputs, _held_by(outputs.dtype, [(value,) for value in known]).ravel())
            if any(value != value for value in known):
                listed |= outputs != outputs
        return ~listed if self.others else listed

    def __str__(self) -> str:
        shown = [outcome_words(value) for value in self.values[:6]]
        if len(self.values) > 6:
            shown.append(f"… ({len(self.values)} values)")
        if len(shown) == 1:
            return f"output {'≠' if self.others else '='} {shown[0]}"
        return f"output {'not in' if self.others else 'in'} {{{', '.join(shown)}}}"


def _held_by(dtype: np.dtype[Any], rows: list[tuple[Any, ...]]) -> Outputs:
    """Return an array of the rows of real numbers that an array of this type can hold exactly.

    All rows have one width. A number that the type cannot hold equals no output and must not be rounded to an output.
    """
    if dtype.kind == "f":
        held = [row for row in rows if all(value != value or number_of(value) == value for value in row)]
        return np.array([[number_of(value) for value in row] for row in held], dtype=np.float64)
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    held = [row for row in rows if all(low <= value <= high and value == int(value) for value in row)]
    return np.array([[int(value) for value in row] for row in held], dtype=dtype)


def _numbers_among(outputs: Outputs, wanted: Outputs) -> Mask:
    """Return whether each number is among the wanted numbers."""
    if len(wanted) > 8:
        return np.isin(outputs, wanted)
    listed = np.zeros(len(outputs), dtype=np.bool_)
    for value in wanted:
        listed |= outputs == value
    return listed


def _rows_among(outputs: Outputs, values: list[Any]) -> Mask:
    """Return whether each row of a matrix is among the vectors."""
    wanted = _held_by(outputs.dtype, values)
    if len(wanted) <= 4:
        listed = np.zeros(len(outputs), dtype=np.bool_)
        for value in wanted:
            listed |= _are_same_rows(outputs, value)
        return listed
    # A row is compared only with the vector of its key.
    order = np.argsort(wanted_keys := row_keys(wanted))
    place = np.minimum(np.searchsorted(wanted_keys[order], row_keys(outputs)), len(wanted) - 1)
    return _are_same_rows(outputs, wanted[order[place]])


def _are_same_rows(rows: Outputs, wanted: Outputs) -> Mask:
    return np.asarray(((rows == wanted) | ((rows != rows) & (wanted != wanted))).all(axis=1))


@dataclass(frozen=True, slots=True)
class Scored(Event):
    """Outputs whose score lies in a union of intervals."""

    score: Score
    event: Intervals

    def contains(self, outputs: Outputs) -> Mask:
        return self.event.contains(self.score.values(outputs))

    def __str__(self) -> str:
        named = self.score.names(lambda score: bool(self.event.contains(np.array([score]))[0]))
        if named is None:
            return str(self.event).replace("output", str(self.score))
        shown = [*named[:6], *([f"… ({len(named)} kinds)"] if len(named) > 6 else [])]
        return f"{self.score} is {' or '.join(shown)}".replace(" is raises ", " raises ") if named else "no output"


@dataclass(frozen=True, slots=True)
class Apart(Event):
    """Outputs in an event that are not in another one."""

    event: Event
    other: Event

    def contains(self, outputs: Outputs) -> Mask:
        return self.event.contains(outputs) & ~self.other.contains(outputs)

    def __str__(self) -> str:
        return f"{self.event}, but not {self.other}"


def set_apart(first: Event, second: Event) -> tuple[Event, Event]:
    """Return both events without the outputs that they share.

    Examples
    --------
    >>> low, high = Intervals(((-math.inf, 0.0),)), Intervals(((0.0, math.inf),))
    >>> str(set_apart(low, high)[0]), set_apart(low, Intervals(((1.0, math.inf),)))[0] == low
    ('output ≤ 0, but not output ≥ 0', True)
    """
    return (first, second) if _exclude_each_other(first, second) else (Apart(first, second), Apart(second, first))


def count_both(first: Event, second: Event, outputs: Outputs) -> tuple[int, int]:
    """Return the number of outputs in each of two events, reading a score that they share once."""
    if isinstance(first, Scored) and isinstance(second, Scored) and first.score == second.score:
        values = first.score.values(outputs)
        return first.event.count(values), second.event.count(values)
    if (
        isinstance(first, Apart)
        and isinstance(second, Apart)
        and (first.event, first.other)
        == (
            second.other,
            second.event,
        )
    ):
        in_first, in_second = first.event.contains(outputs), second.event.contains(outputs)
        return int(np.count_nonzero(in_first & ~in_second)), int(np.count_nonzero(in_second & ~in_first))
    return first.count(outputs), second.count(outputs)


def _exclude_each_other(first: Event, second: Event) -> bool:
    """Whether no output can lie in both events, as far as their form tells."""
    match first, second:
        case Scored(), Scored():
            return first.score == second.score and _exclude_each_other(first.event, second.event)
        case Intervals(), Intervals():
            ordered = sorted([*first.intervals, *second.intervals])
            are_disjoint = all(before[1] < after[0] for before, after in pairwise(ordered))
            return are_disjoint and not (first.others and second.others)
        case Outcomes(), Outcomes():
            listed, other = ({outcome_key(value) for value in event.values} for event in (first, second))
            if first.others or second.others:
                return first.others != second.others and (other <= listed if first.others else listed <= other)
            return not listed & other
    return False
