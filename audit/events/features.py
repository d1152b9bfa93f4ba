"""Outputs as columns of numbers, for scores that are sums over columns.

A vector has a column for each coordinate, for the differences of neighbouring coordinates, or for sorted coordinates
and the gaps between them; the columns of any other output are its leaves (`leaves.py`). Columns are also made of
columns: of one where another has a value, of products of two, of parities and statistics of many.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from .named_parts import EXACT
from .outputs import Outputs, as_vectors, coordinate_words, is_real, number_of, output_words

# Last digits of whole numbers that doubles may not hold: above 2⁵³ a double loses parity and the last digits.

MODULUS = 720_720 * 10**9
"""A number below 2⁵³ that 2¹³, 9, 7, 11, 13 and 10⁹ divide, so that it keeps the last digits and many remainders."""

_BEYOND = 10**400  # a decimal beyond it may have billions of digits

LAST_WORDS = "(last digits)"
"""What names the digits of a number that a double does not hold."""


def last_digits(number: Any) -> float:
    """Return a whole number below 10⁴⁰⁰ modulo `MODULUS`, or what the double of a fraction leaves out of it.

    NaN for anything else. Equal numbers have equal last digits.
    """
    is_finite = is_real(number) and number == number and -_BEYOND < number < _BEYOND  # a decimal NaN has no order
    if not is_finite:
        return math.nan
    if number == math.trunc(number):
        return float(math.trunc(number) % MODULUS)
    return float(Fraction(number) - Fraction(number_of(number))) if exceeds_a_double(number) else math.nan


def exceeds_a_double(number: Any) -> bool:
    """Return whether a double does not hold a number of another type, or may not: a whole number above 2⁵³."""
    if isinstance(number, Integral):
        return abs(int(number)) > EXACT
    if isinstance(number, Decimal):
        is_finite = number.is_finite() and number.adjusted() > -400  # a fraction below it may have billions of digits
    else:
        is_finite = isinstance(number, Fraction)
    return is_finite and -_BEYOND < number < _BEYOND and number != number_of(number)


def last_digits_of(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return each number of a numeric array modulo `MODULUS`, as `last_digits` does."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return np.where(values == np.rint(values), np.mod(values, float(MODULUS)), np.nan)
    wide = values if values.dtype == np.uint64 else values.astype(np.int64)
    return np.asarray(np.mod(wide, wide.dtype.type(MODULUS)), dtype=np.float64)


Matrix = npt.NDArray[np.float64]

ALONG_ROWS = 10_000
"""Number of columns above which a loop over columns takes longer than the arithmetic of a block."""

_NAMED = 6  # columns of a parity that its name spells out, in a line
LISTED = 3
"""Columns that the name of a score or statistic of several lists."""

_ALL_PAIRS = 10  # most columns of which all pairs are compared, 45 of them; of more, neighbours only


_LEFT_OUT: ContextVar[dict[str, str] | None] = ContextVar("left_out", default=None)


@contextmanager
def noting_left_out() -> Iterator[dict[str, str]]:
    """Collect what the body leaves out of outputs where it makes columns, scores and events: a note for each kind."""
    notes: dict[str, str] = {}
    token = _LEFT_OUT.set(notes)
    try:
        yield notes
    finally:
        _LEFT_OUT.reset(token)


def leave_out(kind: str, note: str) -> None:
    """Note what is not looked at, in the body of `noting_left_out`; the last note of a kind counts."""
    if (notes := _LEFT_OUT.get()) is not None:
        notes[kind] = note


class Columns(ABC):
    """A representation of outputs as columns of numbers."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Description of each column."""

    @abstractmethod
    def read(self, outputs: Outputs) -> Matrix:
        """Return the columns, shape (columns, runs)."""

    def codes(self, column: int) -> list[str] | None:
        """Return descriptions of the codes 0, 1, … of a column; None for a column of numbers."""
        return None

    def subject(self, column: int) -> str:
        """Return what is said to be one of the codes of a column."""
        return self.names[column]

    def can_be_absent(self, column: int) -> bool:
        """Whether an output may lack a column of codes."""
        return True


@dataclass(frozen=True, slots=True)
class Coordinates(Columns):
    """The coordinates of vectors, or the first coordinate and the differences of neighbouring coordinates."""

    width: int
    differences: bool = False
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        names = tuple(coordinate_words(place, self.column_names) for place in range(self.width))
        if self.differences:
            return (names[0], *(f"({after} − {before})" for before, after in pairwise(names)))
        return names

    def read(self, outputs: Outputs) -> Matrix:
        vectors = as_vectors(outputs, self.width)
        if self.width > ALONG_ROWS:  # copying them into columns takes longer than reading them
            columns = np.ascontiguousarray(vectors, dtype=np.float64).T
        else:
            columns = np.ascontiguousarray(vectors.T, dtype=np.float64)
        if not self.differences:
            return columns
        # A new array, because `columns` may share memory with the caller's outputs.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.concatenate([columns[:1], columns[1:] - columns[:-1]])


REACH = 3.0
"""Deviations from the centre at which a standardised column is clipped, so that no tail outweighs the rest."""


@dataclass(frozen=True, slots=True)
class Standardised(Columns):
    """The coordinates of vectors less their centres, in units of their spreads, from −3 to 3.

    A coordinate without a spread is 0, and so is a missing one unless all are missing.
    """

    centres: tuple[float, ...]
    spreads: tuple[float, ...]
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(coordinate_words(place, self.column_names) for place in range(len(self.centres)))

    def read(self, outputs: Outputs) -> Matrix:
        rows = as_vectors(outputs, len(self.centres)).astype(np.float64, order="C")
        centres, spreads = _in_arrays(self.centres, self.spreads)
        missing = np.isnan(rows)
        with np.errstate(over="ignore"):
            rows -= centres
            rows /= np.where(spreads > 0.0, spreads, np.inf)
            np.clip(rows, -REACH, REACH, out=rows)
        rows[missing & ~missing.all(axis=1, keepdims=True)] = 0.0
        return rows.T


@lru_cache(maxsize=8)  # every block of an audit asks for the same numbers
def _in_arrays(*numbers: tuple[float, ...]) -> tuple[Matrix, ...]:
    return tuple(map(np.array, numbers))


@dataclass(frozen=True, slots=True)
class OrderStatistics(Columns):
    """The sorted coordinates of vectors, smallest first, and the gaps to those before them."""

    width: int
    ranks: tuple[int, ...] = ()  # the places in the order that are read, increasing; empty for all

    @property
    def names(self) -> tuple[str, ...]:
        ranks = self.ranks or range(self.width)
        gaps = (f"(sorted coordinate {i} − sorted coordinate {i - 1})" for i in ranks if i > 0)
        return (*(f"sorted coordinate {i}" for i in ranks), *gaps)

    def read(self, outputs: Outputs) -> Matrix:
        columns = np.sort(as_vectors(outputs, self.width).astype(np.float64), axis=1).T  # NaN last
        with np.errstate(invalid="ignore", over="ignore"):
            if not self.ranks:
                return np.concatenate([columns, columns[1:] - columns[:-1]])
            ranks = np.array(self.ranks)
            after = ranks[ranks > 0]
            return np.concatenate([columns[ranks], columns[after] - columns[after - 1]])


@dataclass(frozen=True, slots=True)
class Derived(Columns):
    """Columns that are computed from a few columns of others."""

    of: Columns

    @abstractmethod
    def from_columns(self, columns: Matrix, column: int) -> Matrix:
        """Return a column, shape (runs,), for the other columns of shape (columns, runs)."""

    def read(self, outputs: Outputs) -> Matrix:
        return self.of_columns(self.of.read(outputs))

    def of_columns(self, columns: Matrix) -> Matrix:
        """Return all columns, for the other columns of shape (columns, runs)."""
        return np.array([self.from_columns(columns, column) for column in range(len(self.names))])


@dataclass(frozen=True, slots=True)
class Statistics(Derived):
    """What some columns say together: sum, Euclidean norm, largest size, smallest, largest, and differences of two.

    NaN if one of the columns is NaN. Up to ten columns have a difference for each two, more columns only neighbours.
    """

    places: tuple[int, ...]  # the columns, two or more

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        used = [names[place] for place in self.places]
        what = ", ".join(used) if len(used) <= LISTED else f"{len(used)} columns"
        return (*(f"{word} of {what}" for word in _TOGETHER), *(f"({names[b]} − {names[a]})" for a, b in self._pairs))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(self.places, 2) if len(self.places) <= _ALL_PAIRS else pairwise(self.places))

    def from_columns(self, columns: Matrix, column: int) -> Matrix:
        with np.errstate(invalid="ignore", over="ignore"):
            if column < OF_ALL:
                used = columns if len(self.places) == len(columns) else columns[list(self.places)]
                return np.asarray(list(_TOGETHER.values())[column](used))
            a, b = self._pairs[column - OF_ALL]
            return np.asarray(columns[b] - columns[a])


def sum_of(columns: Matrix) -> Matrix:
    """Return the sum of the columns, shape (runs,), with a rounding that does not depend on the number of runs.

    In a matrix product and along the first axis it does. Column by column, or along a contiguous row, it does not.
    """
    if len(columns) > ALONG_ROWS:
        return np.asarray(np.add.reduce(np.ascontiguousarray(columns.T), axis=1))
    return reduce(np.add, columns)


_TOGETHER: dict[str, Callable[[Matrix], Matrix]] = {
    "sum": sum_of,
    "Euclidean norm": lambda columns: np.sqrt(sum_of(np.square(columns))),
    "largest size": lambda columns: np.maximum(columns.max(axis=0), -columns.min(axis=0)),
    "smallest": lambda columns: columns.min(axis=0),
    "largest": lambda columns: columns.max(axis=0),
}
OF_ALL = len(_TOGETHER)
"""Number of statistics of all columns, which come first."""


@dataclass(frozen=True, slots=True)
class Released(Columns):
    """What vectors with missing numbers say wherever the others are: how many and at which places, and their size.

    A vector without a number has its first and last number beyond its end.
    """

    width: int
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        what = output_words(self.column_names)
        return tuple(f"{words} in {what}" for words in _RELEASED)

    def read(self, outputs: Outputs) -> Matrix:
        vectors = as_vectors(outputs, self.width).astype(np.float64)
        has = ~np.isnan(vectors)
        is_any = has.any(axis=1)
        first = np.where(is_any, has.argmax(axis=1), self.width)
        last = np.where(is_any, self.width - 1 - has[:, ::-1].argmax(axis=1), self.width)
        smallest = np.where(is_any, np.where(has, vectors, np.inf).min(axis=1), np.nan)
        largest = np.where(is_any, np.where(has, vectors, -np.inf).max(axis=1), np.nan)
        return np.array([has.sum(axis=1), first, last, smallest, largest], dtype=np.float64)


_RELEASED = (
    "number of numbers",
    "place of the first number",
    "place of the last number",
    "smallest number",
    "largest number",
)


@dataclass(frozen=True, slots=True)
class Conditional(Derived):
    """Columns where another column has a given value, NaN elsewhere: what a key goes with."""

    # A column, the value or code that it must have, and the column that is then read.
    cases: tuple[tuple[int, float, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        return tuple(f"({names[read]} where {names[key]} = {self._words(key, at)})" for key, at, read in self.cases)

    def from_columns(self, columns: Matrix, column: int) -> Matrix:
        key, at, wanted = self.cases[column]
        return np.where(columns[key] == at, columns[wanted], np.nan)

    def _words(self, key: int, at: float) -> str:
        codes = self.of.codes(key)
        return f"{at:g}" if codes is None else codes[int(at)] if at >= 0 else "anything else"


@dataclass(frozen=True, slots=True)
class Products(Derived):
    """Products of two columns, each less its centre: positive if both are on the same side of their centres."""

    factors: tuple[tuple[int, float, int, float], ...]  # a column and its centre, and another one and its centre

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        return tuple(f"({names[a]} − {at:.3g})·({names[b]} − {bt:.3g})" for a, at, b, bt in self.factors)

    def from_columns(self, columns: Matrix, column: int) -> Matrix:
        a, at, b, bt = self.factors[column]
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((columns[a] - at) * (columns[b] - bt))


@dataclass(frozen=True, slots=True)
class Parities(Derived):
    """Whether an odd number of columns are at or above their centres: 1 or 0, NaN if one of them is NaN."""

    sets: tuple[tuple[tuple[int, float], ...], ...]  # for each parity, its columns and their centres

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        return tuple(
            "parity of "
            + " + ".join(f"[{names[column]} ≥ {at:.3g}]" for column, at in members[:_NAMED])
            + (f" + … {len(members)} in all" if len(members) > _NAMED else "")
            for members in self.sets
        )

    def from_columns(self, columns: Matrix, column: int) -> Matrix:
        members = [(columns[place], at) for place, at in self.sets[column]]
        above = sum((values >= at).astype(np.float64) for values, at in members) % 2.0
        return np.where(np.any([np.isnan(values) for values, _ in members], axis=0), np.nan, above)
