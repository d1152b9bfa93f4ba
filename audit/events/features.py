"""Outputs of any kind as columns of numbers, for scores that are sums over the parts of an output.

A vector has a column for each coordinate, for the differences of neighbouring coordinates, or for sorted coordinates
and the gaps between them. Any other output is split into leaves, which are the parts of nested tuples and the values of
dictionaries by key. A numeric leaf fills one column; any other leaf (a string, an Enum, None) fills another column with
a code, and one with the number that it states if it is the text of a number. Whole numbers beyond 2⁵³ fill a second
column with their last digits. The form of the output (lengths of tuples and kinds of leaves) is a code as well. Missing
parts are NaN.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from .canonical import Foreign, key_part
from .dictionaries import Dictionary
from .last_digits import EXACT, MODULO_WORDS, last_digits
from .outputs import (
    Outputs,
    Raised,
    as_vectors,
    coordinate_words,
    is_real,
    number_of,
    outcome_key,
    outcome_list,
    outcome_words,
    output_words,
)

Matrix = npt.NDArray[np.float64]
Path = tuple[int | str | Foreign, ...]
"""Position of a leaf in nested tuples and dictionaries: places and what stands for keys, and perhaps `SIZE` or `READ`
at the end."""

SIZE, READ, LAST = "len()", "float()", MODULO_WORDS
"""Ends of paths: to the number of entries of a dictionary, the number that a text states, and the last digits of a
whole number that doubles may not hold."""

_NOTHING = object()
MOST_PATHS = 64
"""Most paths with a column, the most frequent ones."""
_MOST_CODES = 256  # most leaves at one path, and most forms, with their own code
_LEARNED = 20_000  # outputs on each side from which paths and codes are learned
_NAMED = 6  # columns of a parity that its name spells out
_REMEMBERED = 100_000  # distinct outputs of a block whose rows are cached


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


@dataclass(frozen=True, slots=True)
class OrderStatistics(Columns):
    """The sorted coordinates of vectors, smallest first, and the gaps between neighbours among them."""

    width: int

    @property
    def names(self) -> tuple[str, ...]:
        gaps = (f"(sorted coordinate {i} − sorted coordinate {i - 1})" for i in range(1, self.width))
        return (*(f"sorted coordinate {i}" for i in range(self.width)), *gaps)

    def read(self, outputs: Outputs) -> Matrix:
        columns = np.sort(as_vectors(outputs, self.width).astype(np.float64), axis=1).T  # NaN last
        with np.errstate(invalid="ignore", over="ignore"):
            return np.concatenate([columns, columns[1:] - columns[:-1]])


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
        return np.array([np.where(columns[key] == at, columns[read], np.nan) for key, at, read in self.cases])

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
        with np.errstate(invalid="ignore", over="ignore"):
            return np.array([(columns[a] - at) * (columns[b] - bt) for a, at, b, bt in self.factors])


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

    def of_columns(self, columns: Matrix) -> Matrix:
        """Return the parities for columns of shape (columns, runs)."""
        found = np.zeros((len(self.sets), columns.shape[1]))
        for parity, members in zip(found, self.sets, strict=True):
            for column, at in members:
                parity += columns[column] >= at
            parity %= 2.0
            for column, _ in members:
                parity[np.isnan(columns[column])] = np.nan
        return found


@dataclass(frozen=True, slots=True)
class Leaves(Columns):
    """The leaves of outputs that may be nested, of different lengths, and not only numbers.

    Attributes
    ----------
    builds : tuple
        Forms of the outputs, by code.
    paths : tuple of Path
        Paths of the numeric leaves.
    coded : tuple of (Path, tuple)
        Paths of the other leaves, each with its values by code.
    """

    builds: tuple[Any, ...]
    paths: tuple[Path, ...]
    coded: tuple[tuple[Path, tuple[Any, ...]], ...]
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        paths = (*self.paths, *(path for path, _ in self.coded))
        return ("form of the output", *(place_words(path, self.column_names) for path in paths))

    @property
    def kinds(self) -> list[int]:
        """Columns of codes that do more than name the whole outcome."""
        coded = enumerate((path for path, _ in self.coded), start=1 + len(self.paths))
        return [0] * (len(self.builds) > 1) + [column for column, path in coded if path]

    def codes(self, column: int) -> list[str] | None:
        if column == 0:
            return [_build_words(build, self.column_names) for build in self.builds]
        place = column - 1 - len(self.paths)
        return None if place < 0 else list(map(outcome_words, self.coded[place][1]))

    def can_be_absent(self, column: int) -> bool:
        return column != 0  # every output has a form

    def read(self, outputs: Outputs) -> Matrix:
        builds = {build: float(code) for code, build in enumerate(self.builds)}
        numbered = {path: 1 + place for place, path in enumerate(self.paths)}
        start = 1 + len(self.paths)
        coded = {
            path: (start + place, {outcome_key(leaf): float(code) for code, leaf in enumerate(known)})
            for place, (path, known) in enumerate(self.coded)
        }
        rows: list[list[float]] = []
        seen: dict[Any, list[float]] = {}
        empty = [np.nan] * (start + len(self.coded))
        for output in outcome_list(outputs):
            key = outcome_key(output)
            row = seen.get(key)
            if row is None:
                row = empty.copy()
                row[0] = builds.get(_build(output), -1.0)
                for path, leaf in leaves_of(output):
                    if is_real(leaf):
                        if path in numbered:
                            row[numbered[path]] = number_of(leaf)
                        if (*path, LAST) in numbered:
                            row[numbered[*path, LAST]] = last_digits(leaf)
                    elif path in coded:
                        column, codes = coded[path]
                        row[column] = codes.get(outcome_key(leaf), -1.0)
                if len(seen) < _REMEMBERED:
                    seen[key] = row
            rows.append(row)
        return np.ascontiguousarray(np.array(rows, dtype=np.float64).reshape(len(rows), len(empty)).T)


def learn_leaves(x: Outputs, y: Outputs) -> Leaves:
    """Learn the columns from outputs on x and on y.

    Outputs are taken in turns, so that the codes of equally frequent leaves do not tell the datasets apart.
    """
    builds: Counter[Any] = Counter()
    paths: Counter[Path] = Counter()
    leaves: dict[Path, Counter[Any]] = {}
    beyond: set[Path] = set()
    in_turns = zip_longest(outcome_list(x[:_LEARNED]), outcome_list(y[:_LEARNED]), fillvalue=_NOTHING)
    for output in (each for pair in in_turns for each in pair if each is not _NOTHING):
        builds[_build(output)] += 1
        for path, leaf in leaves_of(output):
            if is_real(leaf):
                paths[path] += 1
                if isinstance(leaf, numbers.Integral) and abs(int(leaf)) > EXACT:
                    beyond.add(path)
            else:
                leaves.setdefault(path, Counter())[outcome_key(leaf)] += 1
    for path in [path for path in paths if path in beyond]:
        paths[*path, LAST] = paths[path]
    coded = sorted(leaves, key=lambda path: -leaves[path].total())[:MOST_PATHS]
    return Leaves(
        tuple(build for build, _ in builds.most_common(_MOST_CODES)),
        tuple(sorted((path for path, _ in paths.most_common(MOST_PATHS)), key=_order)),
        tuple(
            (path, tuple(leaf for leaf, _ in leaves[path].most_common(_MOST_CODES)))
            for path in sorted(coded, key=_order)
        ),
    )


def leaves_of(output: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the leaves of an output, each with its path."""
    if type(output) is tuple:
        for place, part in enumerate(output):
            yield from leaves_of(part, (*path, place))
    elif type(output) is Dictionary:
        yield (*path, SIZE), len(output.entries)
        for key, part in output.entries:
            yield from leaves_of(part, (*path, key_part(key)))
    else:
        yield path, output
        if isinstance(output, str) and (number := _read(output)) is not None:
            yield (*path, READ), number


def _read(text: str) -> float | None:
    """The number that a text states; None if it states none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _order(path: Path) -> tuple[tuple[bool, int, str], ...]:
    """Return what sorts paths, places before keys."""
    return tuple((False, part, "") if isinstance(part, int) else (True, 0, str(part)) for part in path)


def _build(output: Any) -> Any:
    """Return the form of an output: nested tuples of whether each leaf is a number; what else may be told in a word."""
    if type(output) is Dictionary:
        return "a dictionary"
    if isinstance(output, Raised):
        return "an exception"
    return tuple(map(_build, output)) if type(output) is tuple else is_real(output)


def _build_words(build: Any, names: tuple[str, ...] = ()) -> str:
    if names and build == "a dictionary":
        return "a record with other parts"
    if names and build == (True,) * len(names):
        return output_words(names)
    if type(build) is not tuple:
        return build if isinstance(build, str) else "a number" if build else "not a number"
    parts = "numbers" if all(part is True for part in build) else ", ".join(map(_build_words, build))
    return f"a tuple of {len(build)}{f' ({parts})' if build else ''}"


def place_words(path: Path, names: tuple[str, ...] = ()) -> str:
    """Return what names the leaf at a path in outputs whose columns have these names."""
    if path and path[-1] == LAST:
        return f"{place_words(path[:-1], names)} {LAST}"
    if path and path[-1] in (SIZE, READ):
        return str(path[-1]).replace("()", f"({place_words(path[:-1], names)})")
    column = path[0] if path and len(names) > 1 else None
    if isinstance(column, int) and column < len(names):
        start, path = names[column], path[1:]
    else:
        start = names[0] if len(names) == 1 else "output"
    return start + "".join(f"[{place}]" for place in path)
