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
from functools import reduce
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from .outputs import Outputs, as_vectors, coordinate_words, is_real, number_of, output_words

# Last digits of whole numbers that doubles may not hold: above 2⁵³ a double loses parity and the last digits.

EXACT = 2.0**53
"""The largest size up to which doubles hold every whole number."""

MODULUS = 720_720 * 10**9
"""A number below 2⁵³ that 2¹³, 9, 7, 11, 13 and 10⁹ divide, so that it keeps the last digits and many remainders."""

_BEYOND = 10**400  # a decimal beyond it may have billions of digits

LAST_WORDS = "(last digits)"
"""What names the digits of a number that a double does not hold."""


def last_digits(number: Any) -> float:
    """Return a whole number below 10⁴⁰⁰ modulo `MODULUS`, or what the double of a fraction leaves out of it.

    NaN for anything else. Equal numbers have equal last digits.

    Examples
    --------
    >>> last_digits(10**30 + 1), last_digits(-1.0)
    (361360000000001.0, 720719999999999.0)
    >>> last_digits(3 + Fraction(1, 10**30))
    1e-30
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

_NAMED = 6  # columns of a parity that its name spells out
_LISTED, _ALL_PAIRS = 3, 10  # columns that the name of a statistic lists, and most of which all pairs are compared


_LEFT_OUT: ContextVar[dict[str, str] | None] = ContextVar("left_out", default=None)


@contextmanager
def noting_left_out() -> Iterator[dict[str, str]]:
    """Collect what the body leaves out of outputs where it makes columns, scores and events: a note for each kind.

    Examples
    --------
    >>> with noting_left_out() as notes:
    ...     leave_out("codes", "of 300 values, the 256 commonest were told apart")
    >>> list(notes.values())
    ['of 300 values, the 256 commonest were told apart']
    """
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

    def column(self, outputs: Outputs, column: int) -> Matrix:
        """Return one column, shape (runs,)."""
        return np.asarray(self.read(outputs)[column], dtype=np.float64)

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
        each = tuple(coordinate_words(place, self.column_names) for place in range(self.width))
        if self.differences:
            return (each[0], *(f"({each[place]} − {each[place - 1]})" for place in range(1, self.width)))
        return each

    def read(self, outputs: Outputs) -> Matrix:
        columns = np.ascontiguousarray(as_vectors(outputs, self.width).T, dtype=np.float64)
        if not self.differences:
            return columns
        # A new array, because `columns` may share memory with the caller's outputs.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.concatenate([columns[:1], columns[1:] - columns[:-1]])

    def column(self, outputs: Outputs, column: int) -> Matrix:
        vectors = as_vectors(outputs, self.width)
        values = vectors[:, column].astype(np.float64)
        if not self.differences or column == 0:
            return values
        with np.errstate(invalid="ignore", over="ignore"):
            return values - vectors[:, column - 1].astype(np.float64)


@dataclass(frozen=True, slots=True)
class OrderStatistics(Columns):
    """The sorted coordinates of vectors, smallest first, and the gaps to those before them.

    Attributes
    ----------
    width : int
    ranks : tuple of int
        The places in the order that are read, increasing; empty for all.
    """

    width: int
    ranks: tuple[int, ...] = ()

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
class Statistics(Columns):
    """What some columns say together: sum, Euclidean norm, largest size, smallest, largest, and differences of two.

    NaN where one of the columns is NaN. Of up to ten columns each two have a difference, of more only neighbours.

    Attributes
    ----------
    of : Columns
    places : tuple of int
        The columns, two or more.

    Examples
    --------
    >>> statistics = Statistics(Coordinates(2), (0, 1))
    >>> statistics.read(np.array([[3.0, -4.0]]))[:, 0].tolist()
    [-1.0, 5.0, 4.0, -4.0, 3.0, -7.0]
    """

    of: Columns
    places: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        own = [names[place] for place in self.places]
        what = ", ".join(own) if len(own) <= _LISTED else f"{len(own)} columns"
        return (*(f"{word} of {what}" for word in _TOGETHER), *(f"({names[b]} − {names[a]})" for a, b in self._pairs))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        each = self.places
        return list(combinations(each, 2) if len(each) <= _ALL_PAIRS else pairwise(each))

    def read(self, outputs: Outputs) -> Matrix:
        columns = self.of.read(outputs)
        return np.array([self.of_columns(columns, statistic) for statistic in range(len(self.names))])

    def column(self, outputs: Outputs, column: int) -> Matrix:
        if column < len(_TOGETHER):
            return self.of_columns(self.of.read(outputs), column)
        a, b = self._pairs[column - len(_TOGETHER)]
        return _difference(self.of.column(outputs, b), self.of.column(outputs, a))

    def of_columns(self, columns: Matrix, statistic: int) -> Matrix:
        """Return one of the statistics for columns of shape (columns, runs)."""
        if statistic < len(_TOGETHER):
            with np.errstate(invalid="ignore", over="ignore"):
                return list(_TOGETHER.values())[statistic]([columns[place] for place in self.places])
        a, b = self._pairs[statistic - len(_TOGETHER)]
        return _difference(columns[b], columns[a])


# Column by column: along an axis, the rounding of a sum can depend on the number of runs.
_TOGETHER: dict[str, Callable[[list[Matrix]], Matrix]] = {
    "sum": lambda columns: reduce(np.add, columns),
    "Euclidean norm": lambda columns: np.sqrt(reduce(np.add, map(np.square, columns))),
    "largest size": lambda columns: reduce(np.maximum, map(np.abs, columns)),
    "smallest": lambda columns: reduce(np.minimum, columns),
    "largest": lambda columns: reduce(np.maximum, columns),
}
OF_ALL = len(_TOGETHER)
"""Number of statistics of all columns, which come first."""


@dataclass(frozen=True, slots=True)
class Released(Columns):
    """What vectors with missing numbers say wherever the others are: how many and at which places, and their size.

    A vector without a number has its first and last number beyond its end.

    Examples
    --------
    >>> Released(3).read(np.array([[np.nan, 2.5, 1.0], [np.nan, np.nan, np.nan]])).tolist()
    [[2.0, 0.0], [1.0, 3.0], [2.0, 3.0], [1.0, nan], [2.5, nan]]
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
class Conditional(Columns):
    """Columns where another column has a given value, NaN elsewhere: what a key goes with.

    Attributes
    ----------
    of : Columns
    cases : tuple of (int, float, int)
        A column, the value or code that it must have, and the column that is then read.
    """

    of: Columns
    cases: tuple[tuple[int, float, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        return tuple(f"({names[read]} where {names[key]} = {self._words(key, at)})" for key, at, read in self.cases)

    def read(self, outputs: Outputs) -> Matrix:
        columns = self.of.read(outputs)
        return np.array([_where(columns[key], at, columns[read]) for key, at, read in self.cases])

    def column(self, outputs: Outputs, column: int) -> Matrix:
        key, at, read = self.cases[column]
        return _where(self.of.column(outputs, key), at, self.of.column(outputs, read))

    def _words(self, key: int, at: float) -> str:
        codes = self.of.codes(key)
        return f"{at:g}" if codes is None else codes[int(at)] if at >= 0 else "anything else"


@dataclass(frozen=True, slots=True)
class Products(Columns):
    """Products of two columns, each less its centre: positive where both are on the same side of their centres.

    Attributes
    ----------
    of : Columns
    factors : tuple of (int, float, int, float)
        A column and its centre, and another column and its centre.
    """

    of: Columns
    factors: tuple[tuple[int, float, int, float], ...]

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        return tuple(f"({names[a]} − {at:.3g})·({names[b]} − {bt:.3g})" for a, at, b, bt in self.factors)

    def read(self, outputs: Outputs) -> Matrix:
        columns = self.of.read(outputs)
        return np.array([_product(columns[a], at, columns[b], bt) for a, at, b, bt in self.factors])

    def column(self, outputs: Outputs, column: int) -> Matrix:
        a, at, b, bt = self.factors[column]
        return _product(self.of.column(outputs, a), at, self.of.column(outputs, b), bt)


@dataclass(frozen=True, slots=True)
class Parities(Columns):
    """Whether an odd number of columns are at or above their centres: 1 or 0, NaN where one of them is NaN.

    Attributes
    ----------
    of : Columns
    sets : tuple of tuple of (int, float)
        For each parity, its columns and their centres.

    Examples
    --------
    >>> parities = Parities(Coordinates(3), (((0, 0.0), (1, 0.0), (2, 0.5)),))
    >>> parities.read(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])).tolist()
    [[1.0, 0.0]]
    >>> parities.names
    ('parity of [coordinate 0 ≥ 0] + [coordinate 1 ≥ 0] + [coordinate 2 ≥ 0.5]',)
    """

    of: Columns
    sets: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        names = self.of.names
        return tuple(
            "parity of "
            + " + ".join(f"[{names[column]} ≥ {at:.3g}]" for column, at in members[:_NAMED])
            + (f" + … {len(members)} in all" if len(members) > _NAMED else "")
            for members in self.sets
        )

    def read(self, outputs: Outputs) -> Matrix:
        return self.of_columns(self.of.read(outputs))

    def column(self, outputs: Outputs, column: int) -> Matrix:
        return _parity([(self.of.column(outputs, place), at) for place, at in self.sets[column]])

    def of_columns(self, columns: Matrix) -> Matrix:
        """Return the parities for columns of shape (columns, runs)."""
        return np.array([_parity([(columns[place], at) for place, at in members]) for members in self.sets])


def _where(keys: Matrix, at: float, values: Matrix) -> Matrix:
    return np.where(keys == at, values, np.nan)


def _difference(a: Matrix, b: Matrix) -> Matrix:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(a - b)


def _product(a: Matrix, at: float, b: Matrix, bt: float) -> Matrix:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray((a - at) * (b - bt))


def _parity(members: list[tuple[Matrix, float]]) -> Matrix:
    above = sum((values >= at).astype(np.float64) for values, at in members) % 2.0
    return np.where(np.any([np.isnan(values) for values, _ in members], axis=0), np.nan, above)
