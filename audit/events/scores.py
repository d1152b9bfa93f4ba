"""Scores: numbers assigned to outputs, so that events of any output space become intervals.

Some scores are computed directly (a weighted sum of coordinates, the lowest bit). Others are learned estimates of the
log-likelihood ratio, for which an event is a half-line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .features import LAST_WORDS, LISTED, Columns, Derived, Matrix, Standardised, last_digits, last_digits_of
from .outputs import Outputs, as_numbers, as_vectors, coordinate_words, is_vector, output_words

Array = npt.NDArray[np.float64]
Piece = tuple[int, float, float, float]
"""Column, low, high, rise: adds 0 below low, `rise` above high, and a linear ramp between; a step if low = high."""


class Score(ABC):
    """A number for each output; `str` is a description that replaces "output" in that of an event."""

    @abstractmethod
    def values(self, outputs: Outputs) -> Array:
        """Return the score of each output, shape (runs,); NaN for an output without a score."""

    def names(self, is_inside: Callable[[float], bool]) -> list[str] | None:
        """Return descriptions of the codes that lie in a set; None if the scores are not codes."""
        return None

    @property
    def subject(self) -> str:
        """What is said to be one of these codes."""
        return str(self)


@dataclass(frozen=True, slots=True)
class Number(Score):
    """The output itself, if it is a number."""

    column_names: tuple[str, ...] = ()

    def values(self, outputs: Outputs) -> Array:
        if outputs.ndim != 1:
            return np.full(len(outputs), np.nan)
        return np.asarray(as_numbers(outputs), dtype=np.float64)

    def __str__(self) -> str:
        return output_words(self.column_names)


@dataclass(frozen=True, slots=True)
class Coordinate(Score):
    """A coordinate of vectors of one width."""

    place: int
    width: int
    column_names: tuple[str, ...] = ()

    def values(self, outputs: Outputs) -> Array:
        vectors = as_vectors(outputs, self.width)
        return np.ascontiguousarray(vectors[:, self.place], dtype=np.float64)  # each comparison reads it again

    def __str__(self) -> str:
        return coordinate_words(self.place, self.column_names)


@dataclass(frozen=True, slots=True)
class DifferentSizes(Score):
    """The number of different sizes |coordinate| in a vector: fewer if coordinates are equal or opposite."""

    width: int

    def values(self, outputs: Outputs) -> Array:
        sizes = np.sort(np.abs(as_vectors(outputs, self.width).astype(np.float64)), axis=1)
        found = 1.0 + np.count_nonzero(sizes[:, 1:] > sizes[:, :-1], axis=1)
        return np.where(np.isnan(sizes).any(axis=1), np.nan, found)

    def __str__(self) -> str:
        return f"number of different sizes among {self.width} coordinates"


@dataclass(frozen=True, slots=True)
class Column(Score):
    """One column of the outputs."""

    columns: Columns
    column: int

    def values(self, outputs: Outputs) -> Array:
        return Reading(outputs).values(self)

    def names(self, is_inside: Callable[[float], bool]) -> list[str] | None:
        codes = self.columns.codes(self.column)
        if codes is None:
            return None
        named = [word for code, word in enumerate(codes) if is_inside(float(code))]
        can_be_absent = self.columns.can_be_absent(self.column)
        return named + ["anything else"] * is_inside(-1.0) + ["absent"] * (can_be_absent and is_inside(np.nan))

    @property
    def subject(self) -> str:
        return self.columns.subject(self.column)

    def __str__(self) -> str:
        return self.columns.names[self.column]


@dataclass(frozen=True, slots=True)
class Additive(Score):
    """A sum of steps and ramps over the columns of an output."""

    columns: Columns
    pieces: tuple[Piece, ...]
    missing: tuple[tuple[int, float], ...] = ()  # column, and the amount that it adds if it is NaN

    def values(self, outputs: Outputs) -> Array:
        return self.add_up(self.columns.read(outputs))

    def add_up(self, columns: Array) -> Array:
        """Return the score for columns of shape (columns, runs)."""
        columns, score = columns.copy() if self.missing else columns, np.zeros(columns.shape[1])
        for column, weight in self.missing:
            absent = np.isnan(columns[column])
            columns[column, absent] = -np.inf
            score += weight * absent
        scratch = np.empty_like(score)
        for column, low, high, rise in self.pieces:
            if low == high:
                np.multiply(columns[column] >= low, rise, out=scratch)
            else:
                np.clip(columns[column], low, high, out=scratch)
                scratch -= low
                scratch *= rise / (high - low)
            score += scratch
        return score

    def __str__(self) -> str:
        size: Counter[int] = Counter()
        for column, _, _, rise in self.pieces:
            size[column] += abs(rise)  # type: ignore[assignment]  # a Counter can add floats
        for column, weight in self.missing:
            size[column] += abs(weight)  # type: ignore[assignment]
        names, most = self.columns.names, [column for column, _ in size.most_common()]
        named = ", ".join(names[column] for column in most[:LISTED])
        return f"score({named}{f', … {len(most)} in all' if len(most) > LISTED else ''})"


@dataclass(frozen=True, slots=True)
class Projection(Score):
    """A weighted sum of standardised coordinates, or of their squares, with weights in proportion to whole numbers.

    A file holds these in little space, and they barely depend on how a machine rounds.
    """

    columns: Standardised
    weights: tuple[int, ...]
    is_of_squares: bool = False

    def values(self, outputs: Outputs) -> Array:
        return self.add_up(self.columns.read(outputs))

    def add_up(self, columns: Array) -> Array:
        """Return the score for columns of shape (columns, runs)."""
        rows, weights = np.square(columns.T) if self.is_of_squares else columns.T, np.array(self.weights, np.float64)
        return np.asarray(np.add.reduce(np.ascontiguousarray(rows * weights), axis=1) / np.linalg.norm(weights))

    def __str__(self) -> str:
        names, used = self.columns.names, np.flatnonzero(self.weights).tolist()
        sizes = {abs(self.weights[place]) for place in used}
        what = "squared coordinates" if self.is_of_squares else "coordinates"
        if len(sizes) == 1 and len(used) > LISTED:
            return f"standardised sum of {len(used):,} {what}"
        most = sorted(used, key=lambda place: -abs(self.weights[place]))[:LISTED]
        named = ", ".join(names[place] for place in most)
        return f"weighted sum of {len(used):,} {what} ({named}{', …' if len(used) > LISTED else ''})"


# Scores by how a number is written: its lowest bit, remainders, decimals, last digits and the sign of zero.
#
# A leak may not depend on the size of a number: parity, rounding on one dataset only, a last decimal that is always 7.
# Whole numbers that a double cannot hold are read exactly.
#
# References
# ----------
# Mironov (2012), On significance of the least significant bits for differential privacy.

MOST_DIGITS = 10
"""The number of decimals that `Decimals` gives to numbers with more, and of zeros at the end that `TrailingZeros` gives
to 0 and to numbers with more."""

_ZERO_EXPONENT = 1024  # lowest bit assigned to 0, above that of every other double
_LEGIBLE, _NEAR = 1e9, 2e-14  # most units of the last decimal in a number, and the relative error of a decimal number


@dataclass(frozen=True, slots=True)
class OfScore(Score):
    """A number computed from another score."""

    of: Score
    words: ClassVar[str] = ""  # a format of the description

    @abstractmethod
    def of_values(self, values: Array) -> Array:
        """Return the score for values of the other one, shape (runs,)."""

    def values(self, outputs: Outputs) -> Array:
        return self.of_values(self.of.values(outputs))

    def __str__(self) -> str:
        return self.words.format(self)


@dataclass(frozen=True, slots=True)
class LowestBit(OfScore):
    """The exponent of the lowest set bit: the largest k such that the number is a whole multiple of 2ᵏ; 1024 for 0."""

    words = "exponent of the lowest set bit of {0.of}"

    def of_values(self, values: Array) -> Array:
        bits = values.astype(np.float64).view(np.int64)
        exponents = (bits >> 52) & 0x7FF
        whole = (bits & ((1 << 52) - 1)) | ((exponents > 0).astype(np.int64) << 52)
        lowest = ((whole & -whole).astype(np.float64).view(np.int64) >> 52) - 1023  # the exponent of a power of two
        found = np.where(whole == 0, _ZERO_EXPONENT, np.maximum(exponents, 1) - 1075 + lowest).astype(np.float64)
        return np.where(exponents < 0x7FF, found, np.nan)


@dataclass(frozen=True, slots=True)
class Residue(OfScore):
    """The residue of a number modulo 2^exponent; numbers on a grid have few residues."""

    exponent: int
    words = "{0.of} modulo 2^{0.exponent}"

    def of_values(self, values: Array) -> Array:
        step = float(np.ldexp(1.0, self.exponent))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            whole = np.trunc(values / step)  # exact, as the step is a power of two, unless it is infinite
            left = np.where(np.isinf(whole) & np.isfinite(values) & (step > 0.0), 0.0, values - whole * step)
        return np.where(left < 0.0, left + step, left)


@dataclass(frozen=True, slots=True)
class Remainder(OfScore):
    """The remainder of a number after division by a whole number, at least 0; the fractional part for 1."""

    divisor: int

    def of_values(self, values: Array) -> Array:
        with np.errstate(invalid="ignore"):
            left = np.mod(values.astype(np.float64), self.divisor)
        return np.where(left == self.divisor, 0.0, left)  # a tiny negative number is rounded up

    def __str__(self) -> str:
        of = str(self.of).removesuffix(f" {LAST_WORDS}")  # which has the same remainder
        return f"fractional part of {of}" if self.divisor == 1 else f"{of} modulo {self.divisor}"


@dataclass(frozen=True, slots=True)
class Decimals(OfScore):
    """The number of decimals of a number, up to 9; 10 if it has more, or more than nine digits.

    Numbers count as equal within a hundred units of the last bit, below 1 within 2e-14, so the score says nothing of
    low bits.
    """

    words = "number of decimals of {0.of}"

    def of_values(self, values: Array) -> Array:
        numbers = values.astype(np.float64)
        found = np.where(np.isfinite(numbers), MOST_DIGITS, np.nan)
        left = np.flatnonzero(np.abs(numbers) < _LEGIBLE)
        for decimals in range(MOST_DIGITS):
            number = numbers[left]
            size = np.abs(number)
            has = np.abs(np.round(number, decimals) - number) <= _NEAR * np.maximum(size, 1.0)
            found[left[has]] = decimals
            left = left[~has & (size * 10.0 ** (decimals + 1) < _LEGIBLE)]
        return found


@dataclass(frozen=True, slots=True)
class Units(OfScore):
    """A number in units of its last decimal, rounded to whole units."""

    decimals: int

    def of_values(self, values: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.rint(values * 10.0**self.decimals))

    def __str__(self) -> str:
        return f"({10**self.decimals:,}·{self.of})"


@dataclass(frozen=True, slots=True)
class TrailingZeros(OfScore):
    """The number of zeros at the end of a whole number, at most 10; NaN for any other number."""

    def of_values(self, values: Array) -> Array:
        found = np.full(len(values), np.nan)
        left = np.flatnonzero(np.isfinite(values) & (values == np.rint(values)))
        for zeros in range(MOST_DIGITS + 1):
            found[left] = zeros
            left = left[np.mod(values[left], 10.0 ** (zeros + 1)) == 0.0]
        return found

    def __str__(self) -> str:
        return f"number of zeros at the end of {str(self.of).removesuffix(f' {LAST_WORDS}')}"


@dataclass(frozen=True, slots=True)
class LastDigits(Score):
    """The digits of a number, or of a coordinate of vectors, that a double does not hold (`last_digits`)."""

    coordinate: int | None = None  # the coordinate of vectors that is read; None for outputs that are numbers
    column_names: tuple[str, ...] = ()

    def values(self, outputs: Outputs) -> Array:
        if outputs.dtype == object:
            wanted = (_part(output, self.coordinate) for output in outputs)
            return np.fromiter(map(last_digits, wanted), dtype=np.float64, count=len(outputs))
        if outputs.ndim != (1 if self.coordinate is None else 2):
            return np.full(len(outputs), np.nan)
        return last_digits_of(outputs if self.coordinate is None else outputs[:, self.coordinate])

    def __str__(self) -> str:
        names = self.column_names
        named = output_words(names) if self.coordinate is None else coordinate_words(self.coordinate, names)
        return f"{named} {LAST_WORDS}"


def _part(output: Any, coordinate: int | None) -> Any:
    if coordinate is None:
        return output
    is_long = type(output) is tuple and len(output) > coordinate
    return output[coordinate] if is_long and is_vector(output, len(output)) else None


@dataclass(frozen=True, slots=True)
class NegativeZero(OfScore):
    """1 for the floating-point number −0.0, which equals 0.0 but is printed with its sign; 0 for any other number."""

    words = "{0.of}"

    def of_values(self, values: Array) -> Array:
        return np.where(np.isnan(values), np.nan, (values == 0.0) & np.signbit(values))

    def names(self, is_inside: Callable[[float], bool]) -> list[str]:
        words = {0.0: "any number but −0.0", 1.0: "−0.0", np.nan: "NaN or non-numeric"}
        return [word for code, word in words.items() if is_inside(code)]


class Reading:
    """The scores of some outputs, whose columns are read once for all of them."""

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs
        self._read: dict[int, tuple[Columns, Matrix]] = {}  # with the columns, so that no id is used again

    def values(self, score: Score) -> Array:
        """Return the score of each output, as `score.values` does."""
        match score:
            case Column(columns, column) if isinstance(columns, Derived):
                return columns.from_columns(self.columns(columns.of), column)
            case Column(columns, column):
                return np.asarray(self.columns(columns)[column])
            case Additive() | Projection():
                return score.add_up(self.columns(score.columns))
            case OfScore():
                return score.of_values(self.values(score.of))
        return score.values(self.outputs)

    def columns(self, columns: Columns) -> Matrix:
        """Return the columns, shape (columns, runs), as `columns.read` does."""
        if id(columns) not in self._read:
            if isinstance(columns, Derived):
                read = columns.of_columns(self.columns(columns.of))
            else:
                read = columns.read(self.outputs)
            self._read[id(columns)] = columns, read
        return self._read[id(columns)][1]
