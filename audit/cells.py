"""Cells: a partition of all outputs by likelihood ratio, learned on the pilot and counted in the main phase.

One event settles a verdict; a partition shows the whole: the ratio of every outcome, the privacy profile, the trade-off
curve, divergences. Cells are ordered from the likeliest on x to the likeliest on y, so that the events of interest,
{ratio ≥ t}, are the first few cells together.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .families import fisher_direction
from .number_cells import ratio_by_cell
from .outputs import Outputs, as_numbers, as_vectors, is_vector, outcome_key, outcome_list, outcome_words, tally
from .scores import Weighted

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_FEW = 64  # outcomes that get a cell each; beyond, the rarest share one
_LEAST_HITS = 3  # pilot runs that an outcome needs for a cell of its own


class Partition(ABC):
    """Disjoint cells that hold every output."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Each cell in words, in order."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """For what an upper limit for these cells holds."""

    @property
    @abstractmethod
    def n_known(self) -> int:
        """How many of the cells, the first ones, the pilot saw; all, or all but the last."""

    @abstractmethod
    def labels(self, outputs: Outputs) -> Labels:
        """The cell of each output, shape (runs,)."""

    def count(self, outputs: Outputs) -> Labels:
        """Outputs in each cell, shape (cells,)."""
        return np.bincount(self.labels(outputs), minlength=len(self.names))


@dataclass(frozen=True, slots=True)
class OutcomeCells(Partition):
    """A cell for each listed outcome, and a last one for all others."""

    values: tuple[Any, ...]
    n_seen: int  # different outcomes in the pilot, listed or not

    @property
    def names(self) -> tuple[str, ...]:
        return (*map(outcome_words, self.values), "any other outcome")

    @property
    def scope(self) -> str:
        listed = len(self.values)
        if listed < self.n_seen:
            return f"{listed:,} of the {self.n_seen:,} outcomes that the pilot saw, and all others together"
        return f"the outcomes that the pilot saw, {listed:,} in number; of others nothing is known"

    @property
    def n_known(self) -> int:
        return len(self.values) + (len(self.values) < self.n_seen)

    def labels(self, outputs: Outputs) -> Labels:
        place = {outcome_key(value): index for index, value in enumerate(self.values)}
        if outputs.dtype != object and outputs.ndim == 1:  # few different ones: look each up once
            found, inverse = np.unique(outputs, return_inverse=True)
            places = np.array(
                [place.get(outcome_key(v), len(self.values)) for v in outcome_list(found)], dtype=np.int64
            )
            return places[inverse]
        keys = (place.get(outcome_key(value), len(self.values)) for value in outcome_list(outputs))
        return np.fromiter(keys, dtype=np.int64, count=len(outputs))


@dataclass(frozen=True, slots=True)
class NumberCells(Partition):
    """Unions of intervals of numbers, or of a weighted sum of coordinates; a last cell for what is no number.

    Attributes
    ----------
    edges : tuple of float
        Increasing: interval i holds the numbers above edge i − 1 and up to edge i.
    group : tuple of int
        The cell of each of the len(edges) + 1 intervals.
    weights : tuple of float, optional
        Of the coordinates of a vector.
    """

    edges: tuple[float, ...]
    group: tuple[int, ...]
    weights: tuple[float, ...] | None = None
    has_others: bool = False  # whether the pilot saw outputs that are no numbers

    @property
    def names(self) -> tuple[str, ...]:
        count = max(self.group) + 1
        ends = (-math.inf, *self.edges, math.inf)
        words: list[list[str]] = [[] for _ in range(count)]
        start = 0
        for i, cell in enumerate(self.group):  # neighbouring intervals of one cell are said together
            if i + 1 == len(self.group) or self.group[i + 1] != cell:
                words[cell].append(f"({ends[start]:.4g}, {ends[i + 1]:.4g}]")
                start = i + 1
        what = "output" if self.weights is None else "weighted sum"
        return (*(f"{what} in {' ∪ '.join(parts)}" for parts in words), "output is not a number")

    @property
    def scope(self) -> str:
        return f"these {self.n_known} cells only; finer events may have larger ratios"

    @property
    def n_known(self) -> int:
        return max(self.group) + 1 + self.has_others

    def labels(self, outputs: Outputs) -> Labels:
        if self.weights is not None:
            values = Weighted(self.weights).values(outputs)
        elif outputs.ndim == 1:
            values = np.asarray(as_numbers(outputs), dtype=np.float64)
        else:
            values = np.full(len(outputs), np.nan)
        group = np.array((*self.group, max(self.group) + 1), dtype=np.int64)
        found = group[np.searchsorted(np.array(self.edges), values, side="left")]
        return np.where(np.isnan(values), group[-1], found)


def learn_cells(x: Outputs, y: Outputs, n_cells: int) -> Partition:
    """A partition of the outputs by estimated likelihood ratio.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, which the counts will not contain.
    n_cells : int
        Cells of a partition of numbers; few outcomes get a cell each, whatever their number up to 64.
    """
    width = _commonest_width(x)
    if width is None:
        seen = tally(x[:2000])[0] + tally(y[:2000])[0]
        is_finite = len(seen) <= max(n_cells, _FEW) and 4 * len(seen) <= seen.total()
        if is_finite or not np.isfinite(as_numbers(x).astype(np.float64)).any():
            return _outcome_cells(x, y, max(n_cells, _FEW))
        return _number_cells(as_numbers(x).astype(np.float64), as_numbers(y).astype(np.float64), n_cells, None)
    x, y = as_vectors(x, width), as_vectors(y, width)
    weights = fisher_direction(x, y) or (1.0,) + (0.0,) * (width - 1)
    score = Weighted(weights)
    return _number_cells(score.values(x), score.values(y), n_cells, weights)


def _commonest_width(outputs: Outputs) -> int | None:
    """The length of the vectors that most of the outputs are; None where most are no vectors of one length."""
    if outputs.ndim == 2:
        return int(outputs.shape[1]) or None
    lengths = [len(output) for output in outputs if type(output) is tuple and output] if outputs.dtype == object else []
    width = int(np.bincount(lengths).argmax()) if lengths else 0
    return width if sum(is_vector(output, width) for output in outputs) > len(outputs) / 2 else None


def _outcome_cells(x: Outputs, y: Outputs, most: int) -> OutcomeCells:
    (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
    names = names_y | names_x
    common = (on_x + on_y).most_common(most)
    kept = [key for place, (key, hits) in enumerate(common) if hits >= _LEAST_HITS or place == 0]
    kept.sort(key=lambda key: -math.log((on_x[key] + 0.5) / (on_y[key] + 0.5)))
    return OutcomeCells(tuple(names[key] for key in kept), len(on_x | on_y))


def _number_cells(x: Array, y: Array, n_cells: int, weights: tuple[float, ...] | None) -> NumberCells:
    """Fine intervals, put together in the order of their fitted ratio into cells of equal mass on the likelier side."""
    has_others = bool(np.isnan(x).any() or np.isnan(y).any())
    known_x, known_y = np.sort(x[~np.isnan(x)]), np.sort(y[~np.isnan(y)])
    found = ratio_by_cell(known_x, known_y)
    if found is not None:
        cells, ratio, hits_x, hits_y = found
        order = np.argsort(-ratio, kind="stable")
        position = np.maximum(hits_x / len(x), hits_y / len(y))[order].cumsum()
        rank = np.minimum((position / position[-1] * n_cells).astype(np.int64), n_cells - 1)
        different, rank = np.unique(rank, return_inverse=True)
        if len(different) > 1:
            group = np.empty(len(cells), dtype=np.int64)
            group[order] = rank
            return NumberCells(tuple(high for _, high in cells[:-1]), tuple(group.tolist()), weights, has_others)
    # An atom that holds most of them, or infinities: a single cell would tell nothing.
    edges = _equal_mass(np.sort(np.concatenate([known_x, known_y])), n_cells)
    return NumberCells(edges, tuple(range(len(edges) + 1)), weights, has_others)


def _equal_mass(values: Array, n_cells: int) -> tuple[float, ...]:
    """Edges of intervals with as many of the sorted values each, as far as they differ."""
    if len(values) == 0:
        return ()
    at = np.arange(1, n_cells) * (len(values) - 1) // n_cells
    return tuple(edge for edge in np.unique(values[at]).tolist() if edge < values[-1])
