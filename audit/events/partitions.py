"""Partitions of all outputs into cells by likelihood ratio, learned on the pilot and counted in the main phase.

A verdict rests on one event; a partition gives the ratio of every outcome, the privacy profile, the trade-off curve and
divergences. Cells are ordered from the likeliest on x to the likeliest on y, so that every event {ratio ≥ t} is a union
of the first cells.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .events import Event, Intervals, Outcomes
from .outputs import Outputs, as_numbers, outcome_key, outcome_list, outcome_words, output_words, tally
from .scores import Number, Score

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
    def labels(self, outputs: Outputs) -> Labels:
        """Return the cell of each output, shape (runs,)."""

    def count(self, outputs: Outputs) -> Labels:
        """Return the number of outputs in each cell, shape (cells,)."""
        return np.bincount(self.labels(outputs), minlength=len(self.names))

    def fits(self, counts: Labels, runs: int) -> bool:
        """Whether these are possible counts of `runs` outputs."""
        return bool((counts >= 0).all()) and int(counts.sum()) == runs


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

    def labels(self, outputs: Outputs) -> Labels:
        place = {outcome_key(value): index for index, value in enumerate(self.values)}
        if outputs.dtype != object and outputs.ndim == 1:  # look up each distinct number once
            found, inverse = np.unique(outputs, return_inverse=True)
            places = np.array(
                [place.get(outcome_key(v), len(self.values)) for v in outcome_list(found)], dtype=np.int64
            )
            return places[inverse]
        keys = (place.get(outcome_key(value), len(self.values)) for value in outcome_list(outputs))
        return np.fromiter(keys, dtype=np.int64, count=len(outputs))


@dataclass(frozen=True, slots=True)
class PlainEvents:
    """Events that need no model of the outputs: single outcomes, and runs of neighbouring cells of a number.

    Attributes
    ----------
    outcomes : OutcomeCells, optional
        Each outcome is an event, and so are all others together.
    edges : tuple of float
        Increasing; cell i holds the numbers above edge i − 1 and up to edge i. One, two, four, … neighbouring cells are
        an event, up to half of them.
    """

    outcomes: OutcomeCells | None
    edges: tuple[float, ...] = ()
    column_names: tuple[str, ...] = ()

    @property
    def _stretches(self) -> list[tuple[int, int]]:
        """First cell of each stretch, and the cell after its last."""
        cells = len(self.edges) + 1
        widths = [1 << power for power in range((cells // 2).bit_length())]
        return [(start, start + width) for width in widths for start in range(cells - width + 1)]

    @property
    def n_outcomes(self) -> int:
        """Number of single outcomes; all others together count as one."""
        return 0 if self.outcomes is None else self.outcomes.n_cells

    @property
    def n_cells(self) -> int:
        """Number of events."""
        return self.n_outcomes + len(self._stretches)

    def event(self, index: int) -> Event:
        """Return one of the events."""
        if self.outcomes is not None and index < self.n_outcomes:
            return self.outcomes.event(index)
        start, end = self._stretches[index - self.n_outcomes]
        ends = (-math.inf, *self.edges, math.inf)
        low = ends[start] if start == 0 else math.nextafter(ends[start], math.inf)
        return Intervals(((low, ends[end]),), column_names=self.column_names)

    def count(self, outputs: Outputs) -> Labels:
        """Return the number of outputs in each event, shape (events,)."""
        found = np.zeros(0, np.int64) if self.outcomes is None else self.outcomes.count(outputs)
        if not self._stretches:
            return found
        numbers = as_numbers(outputs) if outputs.ndim == 1 else np.zeros(0)
        numbers = numbers[numbers == numbers]
        places = np.searchsorted(np.array(self.edges), numbers, side="left")
        below = np.concatenate([[0], np.bincount(places, minlength=len(self.edges) + 1).cumsum()])
        starts, ends = np.array(self._stretches).T
        return np.concatenate([found, below[ends] - below[starts]])

    def fits(self, counts: Labels, runs: int) -> bool:
        """Whether these are possible counts of `runs` outputs."""
        is_whole = self.outcomes is None or self.outcomes.fits(counts[: self.n_outcomes], runs)
        return is_whole and bool(((counts >= 0) & (counts <= runs)).all())


Counted: TypeAlias = Partition | PlainEvents


@dataclass(frozen=True, slots=True)
class NumberCells(Partition):
    """Unions of intervals of a number or of a score, and a last cell for other outputs.

    Attributes
    ----------
    edges : tuple of float
        Increasing; interval i holds the numbers above edge i − 1 and up to edge i.
    group : tuple of int
        The cell of each of the len(edges) + 1 intervals.
    score : Score
    """

    edges: tuple[float, ...]
    group: tuple[int, ...]
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
        return f"these {self.n_known} cells only; finer events may have larger ratios"

    @property
    def n_known(self) -> int:
        return max(self.group) + 1 + self.has_others

    def labels(self, outputs: Outputs) -> Labels:
        values = self.score.values(outputs)
        group = np.array((*self.group, max(self.group) + 1), dtype=np.int64)
        found = group[np.searchsorted(np.array(self.edges), values, side="left")]
        return np.where(np.isnan(values), group[-1], found)
