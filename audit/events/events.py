"""Events: sets of outputs that can be counted quickly, described as text, and stored.

The main phase only draws outputs and counts them, so half-lines and unions of intervals are counted by comparisons.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .last_digits import EXACT
from .outputs import (
    Outputs,
    Raised,
    as_numbers,
    is_vector,
    number_of,
    outcome_key,
    outcome_words,
    output_words,
    row_keys,
)
from .scores import Score

Mask = npt.NDArray[np.bool_]

_FEW_NUMBERS, _FEW_ROWS = 8, 4  # at most as many are compared one by one
_BITS = 18  # of a key; the bitmap of 256 kB fits into a cache of the processor
_MOST_SHOWN, _EXAMPLES = 20, 3  # outcomes of a list that is shown in part, and of a long list that is only named


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
    column_names: tuple[str, ...] = ()

    def contains(self, outputs: Outputs) -> Mask:
        if outputs.ndim != 1:
            return np.full(len(outputs), self.others)
        values = as_numbers(outputs)
        parts = [_between(values, low, high) for low, high in self.intervals]
        if self.others:
            parts.append(values != values)
        inside = parts[0] if parts else np.zeros(len(values), dtype=np.bool_)
        for part in parts[1:]:
            inside |= part
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
        output = output_words(self.column_names)
        parts = [_interval_words(output, low, high) for low, high in self.intervals]
        return " or ".join(parts + [f"{output} is NaN or non-numeric"] * self.others) or "no output"


def _between(values: Outputs, low: float, high: float) -> Mask:
    """Whether numbers lie in a closed interval, by one comparison for a half-line; a NaN lies in none."""
    if low == -math.inf:
        return values <= high
    return values >= low if high == math.inf else (values >= low) & (values <= high)


def _interval_words(output: str, low: float, high: float) -> str:
    if low == high:
        return f"{output} = {_edge(low)}"
    is_bounded = low > -math.inf and high < math.inf
    below, from_ = _edge_words(low, -math.inf, outwards=is_bounded)
    above, to = _edge_words(high, math.inf, outwards=is_bounded)
    if low == -math.inf:
        return f"{output} {above} {to}" if high < math.inf else f"{output} is a number"
    if high == math.inf:
        return f"{output} {'>' if below == '<' else '≥'} {from_}"
    return f"{from_} {below} {output} {above} {to}"


def _edge_words(edge: float, away: float, *, outwards: bool) -> tuple[str, str]:
    """Return a comparison and an edge: strict, with the adjacent double, if that double has a shorter repr.

    Edges of a bounded interval, which are often outputs, are rounded outwards, so that it still holds them.
    """
    beside = math.nextafter(edge, away)
    strict = math.isfinite(edge) and len(repr(beside)) < len(repr(edge))
    if strict:
        return "<", _edge(beside)
    text = _edge(edge)
    if outwards and (float(text) - edge) * away < 0.0:
        text = f"{Context(prec=6, rounding=ROUND_CEILING if away > 0.0 else ROUND_FLOOR).create_decimal(edge):.6g}"
    return "≤", text


def _edge(number: float) -> str:
    """Return six digits of a number, or all of a whole number that a double holds exactly."""
    return f"{int(number)}" if abs(number) < EXACT and number == int(number) else f"{number:.6g}"


@dataclass(frozen=True, slots=True)
class Outcomes(Event):
    """Outputs equal to one of the listed values; with `others`, outputs equal to none of them."""

    values: tuple[Any, ...]
    others: bool = False
    column_names: tuple[str, ...] = ()

    def contains(self, outputs: Outputs) -> Mask:
        if outputs.dtype == object:
            keys = {outcome_key(value) for value in self.values}
            listed = np.fromiter((outcome_key(o) in keys for o in outputs), dtype=np.bool_, count=len(outputs))
        elif outputs.ndim == 2:
            listed = _rows_among(outputs, self.values)
        else:
            outputs = as_numbers(outputs)
            listed = _numbers_among(outputs, self.values)
        return ~listed if self.others else listed

    def __str__(self) -> str:
        output = output_words(self.column_names)
        if len(self.values) > _MOST_SHOWN:
            some = ", ".join(outcome_words(value) for value in self.values[:_EXAMPLES])
            return f"{output} {'not among' if self.others else 'among'} {len(self.values):,} outcomes such as {some}"
        shown = [outcome_words(value) for value in self.values[:6]]
        if len(self.values) > 6:
            shown.append(f"… ({len(self.values)} values)")
        if len(shown) == 1 and isinstance(self.values[0], Raised):
            name = f"the exception {self.values[0].exception}"
            return f"{output} other than {name}" if self.others else name
        if len(shown) == 1:
            return f"{output} {'≠' if self.others else '='} {shown[0]}"
        return f"{output} {'not in' if self.others else 'in'} {{{', '.join(shown)}}}"


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


def _numbers_among(outputs: Outputs, values: tuple[Any, ...]) -> Mask:
    """Return whether each number is among the values."""
    wanted = _wanted(_hashable(values), outputs.dtype, None)
    if isinstance(wanted, RowLookup):
        return wanted.holds(outputs[:, None])
    listed = np.zeros(len(outputs), dtype=np.bool_)
    for (value,) in wanted:
        listed |= outputs == value if value == value else outputs != outputs
    return listed


def _rows_among(outputs: Outputs, values: tuple[Any, ...]) -> Mask:
    """Return whether each row of a matrix is among the values."""
    wanted = _wanted(_hashable(values), outputs.dtype, outputs.shape[1])
    if isinstance(wanted, RowLookup):
        return wanted.holds(outputs)
    listed = np.zeros(len(outputs), dtype=np.bool_)
    for value in wanted:
        listed |= are_same_rows(outputs, value)
    return listed


def _hashable(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values that can be outputs; a file may hold others."""
    try:
        hash(values)
    except TypeError:
        return tuple(value for value in values if isinstance(value, Hashable))
    return values


@lru_cache(maxsize=8)  # every block of an audit asks for the same list
def _wanted(values: tuple[Any, ...], dtype: np.dtype[Any], width: int | None) -> Outputs | RowLookup:
    """Return the vectors of this width among the values, or the numbers, as rows that an array of this type can hold.

    More rows than are worth comparing one by one are a lookup.
    """
    if width is None:
        rows = [(value,) for value in values if isinstance(value, numbers.Real)]
    else:
        rows = [value for value in values if is_vector(value, width)]
    held = _held_by(dtype, rows)
    return held if len(held) <= (_FEW_NUMBERS if width is None else _FEW_ROWS) else RowLookup.of(held)


@dataclass(frozen=True, slots=True)
class Scored(Event):
    """Outputs whose score lies in a union of intervals."""

    score: Score
    event: Intervals

    def contains(self, outputs: Outputs) -> Mask:
        return self.event.contains(self.score.values(outputs))

    def count(self, outputs: Outputs) -> int:
        return self.event.count(self.score.values(outputs))

    def __str__(self) -> str:
        named = self.score.names(lambda score: bool(self.event.contains(np.array([score]))[0]))
        if named is None:
            return str(self.event).replace("output", str(self.score))
        if "anything else" not in named:
            text = f"{self.score.subject} is {_listed(named, 'or')}"
            return text.replace(" is raises ", " raises ") if named else "no output"
        rest = self.score.names(lambda score: not self.event.contains(np.array([score]))[0])
        if not rest:
            return "any output"
        text = f"{self.score.subject} is {'not' if len(rest) == 1 else 'neither'} {_listed(rest, 'nor')}"
        return text.replace(" is not raises ", " does not raise ")


def _listed(names: list[str], conjunction: str) -> str:
    shown = [*names[:6], *([f"… ({len(names)} kinds)"] if len(names) > 6 else [])]
    return f" {conjunction} ".join(shown)


@dataclass(frozen=True, slots=True)
class ExceptFor(Event):
    """Outputs whose score lies in a union of intervals, except that the listed outcomes are the other way round.

    A list of all outcomes in the event would take megabytes for a vector; a score and its exceptions do not.
    """

    event: Scored
    exceptions: Outcomes

    def contains(self, outputs: Outputs) -> Mask:
        return self.event.contains(outputs) ^ self.exceptions.contains(outputs)

    def __str__(self) -> str:
        some = ", ".join(outcome_words(value) for value in self.exceptions.values[:_EXAMPLES])
        return f"{self.event} except for {len(self.exceptions.values):,} outcomes such as {some}"


@dataclass(frozen=True, slots=True)
class RowLookup:
    """A list of rows of numbers, ordered by their keys.

    Most outputs are not in the list. A bitmap of the first bits of the keys rejects them in a few nanoseconds, and only
    the rest are looked up in the sorted keys and compared with the vector that has their key.

    Attributes
    ----------
    rows : ndarray, shape (listed, n_coords)
    keys : ndarray of uint64, shape (listed,)
    bitmap : ndarray of bool
        Whether a key of the list has these first bits.
    """

    rows: Outputs
    keys: npt.NDArray[np.uint64]
    bitmap: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Outputs) -> RowLookup:
        """Return the lookup of these rows, at least one."""
        keys = row_keys(rows)
        order = np.argsort(keys)
        bitmap = np.zeros(1 << _BITS, dtype=np.bool_)
        bitmap[_first_bits(keys)] = True
        return cls(rows[order], keys[order], bitmap)

    def holds(self, outputs: Outputs) -> npt.NDArray[np.bool_]:
        """Return whether each row of a matrix equals a listed one, shape (runs,); NaN equals NaN.

        Examples
        --------
        >>> RowLookup.of(np.array([[1, 2], [3, 4]])).holds(np.array([[3, 4], [4, 3]])).tolist()
        [True, False]
        """
        keys = row_keys(outputs)
        found = self.bitmap[_first_bits(keys)]
        maybe = np.flatnonzero(found)
        place = np.minimum(np.searchsorted(self.keys, keys[maybe]), len(self.keys) - 1)
        found[maybe] = are_same_rows(outputs[maybe], self.rows[place])
        return found


def are_same_rows(rows: Outputs, wanted: Outputs) -> npt.NDArray[np.bool_]:
    """Return whether each row equals the wanted one, or the one at its place; NaN equals NaN."""
    same, has_nan = np.ones(len(rows), dtype=np.bool_), bool((wanted != wanted).any())
    for own, other in zip(rows.T, wanted.T, strict=True):  # a reduction along short rows takes three times as long
        same &= (own == other) | ((own != own) & (other != other)) if has_nan else own == other
    return same


def _first_bits(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)
