"""Scores: numbers assigned to outputs, so that events of any output space become intervals.

Some scores are computed directly (a weighted sum of coordinates, the lowest bit). Others are learned estimates of the
log-likelihood ratio, for which an event is a half-line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .features import Columns
from .outputs import Outputs, as_numbers, as_vectors, coordinate_words, output_words

Array = npt.NDArray[np.float64]
Piece = tuple[int, float, float, float]
"""Column, low, high, rise: adds 0 below low, `rise` above high, and a linear ramp between; a step if low = high."""

_NAMED = 3  # columns in the name of a learned score
_ALONG_ROWS = 10_000  # number of coordinates above which whole rows are summed


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
class Weighted(Score):
    """The weighted sum of the coordinates of a vector."""

    weights: tuple[float, ...]
    column_names: tuple[str, ...] = ()

    def values(self, outputs: Outputs) -> Array:
        vectors = as_vectors(outputs, len(self.weights))
        used = [i for i, w in enumerate(self.weights) if w != 0.0]
        if len(used) == 1 and self.weights[used[0]] == 1.0:
            return np.ascontiguousarray(vectors[:, used[0]], dtype=np.float64)  # each comparison reads it again
        # In a matrix product, the rounding of a row depends on the number of rows. In a sum along a row, or coordinate
        # by coordinate, it does not.
        if len(used) > _ALONG_ROWS:
            with np.errstate(invalid="ignore", over="ignore"):
                weighted = np.ascontiguousarray(vectors, dtype=np.float64) * np.array(self.weights)
            return np.asarray(np.add.reduce(weighted, axis=1))
        total = np.zeros(len(vectors))
        with np.errstate(invalid="ignore", over="ignore"):
            for place in used:
                total += self.weights[place] * vectors[:, place]
        return total

    def __str__(self) -> str:
        used = [(i, w) for i, w in enumerate(self.weights) if w != 0.0]
        if len(used) == 1 and used[0][1] == 1.0:
            return coordinate_words(used[0][0], self.column_names)
        if len(used) <= 6:
            return " + ".join(f"{w:.3g}·{coordinate_words(i, self.column_names)}" for i, w in used)
        return f"a weighted sum of {len(used)} coordinates"


@dataclass(frozen=True, slots=True)
class DifferentSizes(Score):
    """The number of different sizes |coordinate| in a vector: fewer if coordinates are equal or opposite.

    Examples
    --------
    >>> DifferentSizes(3).values(np.array([[1.5, -1.5, 2.0], [0.1, 0.2, 0.3]])).tolist()
    [2.0, 3.0]
    """

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
        return self.columns.column(outputs, self.column)

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
    """A sum of steps and ramps over the columns of an output.

    Attributes
    ----------
    columns : Columns
    pieces : tuple of Piece
    missing : tuple of (int, float)
        Column, and the amount that it adds where it is NaN.
    """

    columns: Columns
    pieces: tuple[Piece, ...]
    missing: tuple[tuple[int, float], ...] = ()

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
        named = ", ".join(names[column] for column in most[:_NAMED])
        return f"score({named}{f', … {len(most)} in all' if len(most) > _NAMED else ''})"


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree with numbered nodes: go to `lefts` if the column is at most the threshold, else to `rights`.

    A leaf has column −1 and adds its value.
    """

    columns: tuple[int, ...]
    thresholds: tuple[float, ...]
    lefts: tuple[int, ...]
    rights: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Forest(Score):
    """The sum of decision trees over the columns of an output; NaN is above every threshold."""

    columns: Columns
    trees: tuple[Tree, ...]

    def values(self, outputs: Outputs) -> Array:
        return self.add_up(self.columns.read(outputs))

    def add_up(self, columns: Array) -> Array:
        """Return the score for columns of shape (columns, runs)."""
        score, runs = np.zeros(columns.shape[1]), np.arange(columns.shape[1])
        for tree in self.trees:
            at, thresholds = np.array(tree.columns), np.array(tree.thresholds)
            lefts, rights = np.array(tree.lefts), np.array(tree.rights)
            node = np.zeros(len(runs), dtype=np.int64)
            while (at[node] >= 0).any():  # a leaf stays where it is
                goes_left = columns[at[node], runs] <= thresholds[node]
                node = np.where(at[node] < 0, node, np.where(goes_left, lefts[node], rights[node]))
            score += np.array(tree.values)[node]
        return score

    def __str__(self) -> str:
        used = {column for tree in self.trees for column in tree.columns if column >= 0}
        return f"score by {len(self.trees)} trees of {len(used)} columns"
