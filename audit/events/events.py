"""Events: sets of outputs that can be counted quickly, described as text, and stored.

The main phase only draws outputs and counts them, so half-lines and unions of intervals are counted by comparisons.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .named_parts import EXACT
from .outputs import (
    Outputs,
    Raised,
    as_numbers,
    is_vector,
    n_different,
    number_of,
    outcome_key,
    outcome_words,
    output_words,
    row_keys,
    tally,
)
from .scores import Number, Reading, Score

Mask = npt.NDArray[np.bool_]

_FEW = 16  # numbers in all rows, up to which comparing the rows one by one is faster than a lookup
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
        else:
            listed = _among(as_numbers(outputs) if outputs.ndim == 1 else outputs, self.values)
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
    """Return the rows of real numbers that an array of this type holds exactly; the others equal no output."""
    if dtype.kind == "f":
        held = [row for row in rows if all(value != value or number_of(value) == value for value in row)]
        return np.array([[number_of(value) for value in row] for row in held], dtype=np.float64)
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    held = [row for row in rows if all(low <= value <= high and value == int(value) for value in row)]
    return np.array([[int(value) for value in row] for row in held], dtype=dtype)


def _among(outputs: Outputs, values: tuple[Any, ...]) -> Mask:
    """Return whether each number, or each row of a matrix, is among the values."""
    try:
        hash(values)
    except TypeError:  # a file may hold values that cannot be outputs
        values = tuple(value for value in values if isinstance(value, Hashable))
    wanted = _wanted(values, outputs.dtype, outputs.shape[1] if outputs.ndim == 2 else None)
    rows = outputs if outputs.ndim == 2 else outputs[:, None]
    if isinstance(wanted, RowLookup):
        return wanted.holds(rows)
    listed = np.zeros(len(rows), dtype=np.bool_)
    for row in wanted:
        listed |= _are_same_rows(rows, row)
    return listed


@lru_cache(maxsize=8)  # every block of an audit asks for the same list
def _wanted(values: tuple[Any, ...], dtype: np.dtype[Any], width: int | None) -> Outputs | RowLookup:
    """Return the vectors of this width among the values, or the numbers, as rows; as a lookup if they are many."""
    if width is None:
        rows = [(value,) for value in values if isinstance(value, numbers.Real)]
    else:
        rows = [value for value in values if is_vector(value, width)]
    held = _held_by(dtype, rows)
    return held if held.size <= _FEW else RowLookup.of(held)


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
class RowLookup:
    """A list of rows of numbers, ordered by their keys.

    Most outputs are not in the list. A bitmap of the first bits of the keys rejects them in a few nanoseconds, and only
    the rest are looked up in the sorted keys and compared with the vector that has their key.
    """

    rows: Outputs  # shape (listed, n_coords)
    keys: npt.NDArray[np.uint64]  # shape (listed,)
    bitmap: npt.NDArray[np.bool_]  # whether a key of the list has these first bits

    @classmethod
    def of(cls, rows: Outputs) -> RowLookup:
        """Return the lookup of these rows, at least one."""
        keys = row_keys(rows)
        order = np.argsort(keys)
        bitmap = np.zeros(1 << _BITS, dtype=np.bool_)
        bitmap[_first_bits(keys)] = True
        return cls(rows[order], keys[order], bitmap)

    def holds(self, outputs: Outputs) -> npt.NDArray[np.bool_]:
        """Return whether each row of a matrix equals a listed one, shape (runs,); NaN equals NaN."""
        keys = row_keys(outputs)
        found = self.bitmap[_first_bits(keys)]
        maybe = np.flatnonzero(found)
        place = np.minimum(np.searchsorted(self.keys, keys[maybe]), len(self.keys) - 1)
        found[maybe] = _are_same_rows(outputs[maybe], self.rows[place])
        return found


def _are_same_rows(rows: Outputs, wanted: Outputs) -> Mask:
    """Return whether each row equals the wanted one, or the one at its place; NaN equals NaN."""
    same, has_nan = np.ones(len(rows), dtype=np.bool_), bool((wanted != wanted).any())
    for own, other in zip(rows.T, wanted.T, strict=True):  # a reduction along short rows takes three times as long
        same &= (own == other) | ((own != own) & (other != other)) if has_nan else own == other
    return same


def _first_bits(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)


# Partitions of all outputs into cells by likelihood ratio, learned on the pilot and counted in the main phase.
#
# A verdict rests on one event; a partition gives the ratio of every outcome, the privacy profile, the trade-off curve
# and divergences. Cells are ordered from the likeliest on x to the likeliest on y, so that every event {ratio ≥ t} is
# a union of the first cells.

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class Partition(ABC):
    """Disjoint cells that together hold every output."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Description of each cell, in order."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.names)

    @property
    @abstractmethod
    def scope(self) -> str:
        """Scope of an upper limit for these cells."""

    @property
    @abstractmethod
    def n_known(self) -> int:
        """Number of leading cells that the pilot observed: all cells, or all but the last."""

    @abstractmethod
    def count(self, outputs: Outputs) -> Labels:
        """Return the number of outputs in each cell, shape (cells,)."""


@dataclass(frozen=True, slots=True)
class OutcomeCells(Partition):
    """One cell for each listed outcome, and a last cell for all other outcomes."""

    values: tuple[Any, ...]
    n_seen: int  # different outcomes in the pilot, listed or not
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*map(outcome_words, self.values), "any other outcome")

    @property
    def n_cells(self) -> int:
        return len(self.values) + 1

    @property
    def scope(self) -> str:
        listed = len(self.values)
        if listed < self.n_seen:
            return f"{listed:,} of the {self.n_seen:,} outcomes observed in the pilot, and all others together"
        return f"the {listed:,} outcomes observed in the pilot; nothing is known about other outcomes"

    @property
    def n_known(self) -> int:
        return len(self.values) + (len(self.values) < self.n_seen)

    def event(self, cell: int) -> Outcomes:
        """Return the event that an output lies in this cell."""
        if cell < len(self.values):
            return Outcomes((self.values[cell],), column_names=self.column_names)
        return Outcomes(self.values, others=True, column_names=self.column_names)

    def count(self, outputs: Outputs) -> Labels:
        found = tally(outputs)[0]
        listed = [found[outcome_key(value)] for value in self.values]
        return np.array([*listed, len(outputs) - sum(listed)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ColumnCells:
    """The cells of several scores, one score after the other."""

    scores: tuple[Score, ...]
    # For each score, increasing. Its first cell lies below all of them, the next ones begin at an edge each, and
    # outputs without a score are in one more.
    edges: tuple[tuple[float, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each score."""
        return tuple(len(edges) + 2 for edges in self.edges)

    @property
    def n_cells(self) -> int:
        """Number of cells of all scores together."""
        return sum(self.sizes)

    def count(self, outputs: Outputs) -> Labels:
        """Return the number of outputs in each cell, shape (cells,)."""
        return self.of(Reading(outputs))

    def of(self, reading: Reading) -> Labels:
        """Return the same of outputs that are being read."""
        counted = (
            counts_in_cells(reading.values(score), np.array(edges))
            for score, edges in zip(self.scores, self.edges, strict=True)
        )
        return np.concatenate([np.zeros(0, np.int64), *counted])


def counts_in_cells(values: Array, edges: Array) -> Labels:
    """Return how many numbers are in each cell: below all edges, from each edge up to the next one, and NaN."""
    bounds = np.append(edges, math.nan)  # beyond every number
    if len(values) < len(edges):
        return np.bincount(np.searchsorted(bounds, values, side="right"), minlength=len(bounds) + 1)
    # numpy sorts several numbers at a time, and so takes a sixth of the time of a search for each of them.
    return np.diff(np.searchsorted(np.sort(values), bounds), prepend=0, append=len(values))


Counted: TypeAlias = Partition | ColumnCells


@dataclass(frozen=True, slots=True)
class NumberCells(Partition):
    """Unions of intervals of a number or of a score, and a last cell for other outputs."""

    edges: tuple[float, ...]  # increasing; interval i holds the numbers above edge i − 1 and up to edge i
    group: tuple[int, ...]  # the cell of each of the len(edges) + 1 intervals
    score: Score = field(default_factory=Number)
    has_others: bool = False  # whether the pilot observed outputs that are not numbers
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        count = max(self.group) + 1
        ends = (-math.inf, *self.edges, math.inf)
        words: list[list[str]] = [[] for _ in range(count)]
        start = 0
        for i, cell in enumerate(self.group):  # adjacent intervals of one cell are merged
            if i + 1 == len(self.group) or self.group[i + 1] != cell:
                words[cell].append(f"({ends[start]:.4g}, {ends[i + 1]:.4g}]")
                start = i + 1
        output, what = output_words(self.column_names), str(self.score)
        return (*(f"{what} in {' ∪ '.join(parts)}" for parts in words), f"{output} is NaN or non-numeric")

    @property
    def scope(self) -> str:
        return f"these {self.n_known} bins only; finer events may have larger ratios"

    @property
    def n_known(self) -> int:
        return max(self.group) + 1 + self.has_others

    def count(self, outputs: Outputs) -> Labels:
        values = self.score.values(outputs)
        group = np.array((*self.group, max(self.group) + 1), dtype=np.int64)
        found = np.where(np.isnan(values), group[-1], group[np.searchsorted(np.array(self.edges), values, side="left")])
        return np.bincount(found, minlength=self.n_cells)


# A small table of the pilot outputs for the figures of a report.

# The figure shows shares of these runs to .2%. As many bins, or named outcomes, can be told apart in its width; no
# verdict depends on them (docs/decisions/0025-limits.md).
_RUNS, _BINS, _OUTCOMES = 100_000, 40, 24


@dataclass(frozen=True, slots=True)
class Sketch:
    """Counts of the pilot outputs on x and on y, in bins or by outcome."""

    labels: tuple[str, ...]  # names of the outcomes; empty for numbers in bins
    # Inner edges of the bins, one fewer than the counts because the outer bins are open; empty for outcomes.
    edges: tuple[float, ...]
    counts_x: tuple[int, ...]  # pilot runs in each bin or with each outcome
    counts_y: tuple[int, ...]
    # Pilot runs on each dataset, including outputs that are in no bin, such as non-numbers; 0 if not recorded.
    runs: int = 0


def sketch(x: Outputs, y: Outputs) -> Sketch | None:
    """Return the table: by outcome if few outputs are distinct, in bins if most outputs are numbers, else None."""
    if x.ndim == 2:
        return None
    x, y = x[:_RUNS], y[:_RUNS]
    if n_different(np.concatenate([x[:1000], y[:1000]])) <= _OUTCOMES:
        (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
        names = names_x | names_y
        keys = [key for key, _ in (on_x + on_y).most_common(_OUTCOMES)]
        if all(isinstance(key, (int, float)) for key in keys):
            keys.sort()
        counts = [tuple(found[key] for key in keys) for found in (on_x, on_y)]
        return Sketch(tuple(outcome_words(names[key]) for key in keys), (), counts[0], counts[1], len(x))
    numbers = [as_numbers(part).astype(np.float64) for part in (x, y)]
    pooled = np.concatenate(numbers)
    pooled = pooled[np.isfinite(pooled)]
    if len(pooled) < len(x):  # mostly not numbers
        return None
    low, high = np.quantile(pooled, [0.002, 0.998])
    if not 0.0 < high / 2 - low / 2 < 1e300:
        return None
    edges = np.linspace(low, high, _BINS - 1)
    counts = [
        tuple(np.bincount(np.searchsorted(edges, part[~np.isnan(part)]), minlength=_BINS).tolist()) for part in numbers
    ]
    return Sketch((), tuple(edges.tolist()), counts[0], counts[1], len(x))


# Names of columns in events, scores and partitions: "mean_age ≥ 41.2" where outputs without names have coordinates.
#
# Only their texts depend on names. So events are learned and counted without them, and named when they are reported.

Named = TypeVar("Named")
_FIELD = "column_names"


def with_names(value: Named, names: tuple[str, ...]) -> Named:
    """Return a dataclass with names wherever it, or a dataclass in it, has the field `column_names`."""
    if not names or not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, Scored):  # the intervals are of the score, and not of a column
        return dataclasses.replace(value, score=with_names(value.score, names))
    changes: dict[str, Any] = {}
    for name in (one.name for one in dataclasses.fields(value)):
        part = getattr(value, name)
        if name == _FIELD:
            changes[name] = names
        elif dataclasses.is_dataclass(part):
            changes[name] = with_names(part, names)
        elif isinstance(part, tuple) and part and all(map(dataclasses.is_dataclass, part)):
            changes[name] = tuple(with_names(member, names) for member in part)
    return dataclasses.replace(value, **changes)


def names_in(value: Any) -> tuple[str, ...]:
    """Return the names of columns in a dataclass such as an event; empty if it has none."""
    if isinstance(value, tuple):
        return next(filter(None, map(names_in, value)), ()) if all(map(dataclasses.is_dataclass, value)) else ()
    if not dataclasses.is_dataclass(value):
        return ()
    own: tuple[str, ...] = getattr(value, _FIELD, ())
    held = (getattr(value, field.name) for field in dataclasses.fields(value))
    return own or next(filter(None, map(names_in, held)), ())
