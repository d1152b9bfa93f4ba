"""Nested events by a number: the output itself, a coordinate, or a learned score.

Half-lines need no learning and a fitted curve hardly any, so they are counted on the whole pilot; the values of scores
that were learned on one half of the pilot are those of the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..events.events import Event, Intervals, Scored
from ..events.scores import Number, Score
from .pilot_split import PilotSplit
from .quantile_cells import (
    CELL_RUNS_LEAST,
    CELLS,
    Cells,
    count_cells,
    distinct,
    merged,
    quantile_cells,
    ratio_by_cell,
)

Array = npt.NDArray[np.float64]
E = TypeVar("E", bound=Event)

_CELLS = 128  # quantile cells of the likelihood-ratio histogram, fewer where the pilot is small
_CELL_RUNS = 100  # pilot runs per cell
_SLOPED_CELLS = 64  # cells of the curve of a learned score
_INTERVALS = 8  # most intervals in an event: each costs two passes over the outputs
_LEVELS = 129  # thresholds of half-lines on the logistic scale (dense in both tails); four times as many evenly
TABLE = 512
"""Most values that are compared one by one."""
_ATOM_RUNS = 5  # occurrences of a value in the pilot that make it an atom of a continuous output
_MOST_ATOMS = 64  # in a column; more of them are the grid of a sampler
_LEAST_OTHERS = 0.05  # share of the other outputs; with fewer, all values are compared in a table


@dataclass(frozen=True, slots=True)
class Family(Generic[E]):
    """Nested events {score ≥ t}, from the smallest to the largest.

    Attributes
    ----------
    hits_x, hits_y : ndarray, shape (events,)
        Pilot runs, of `runs`, inside each event.
    runs : int
    build : callable
        ``build(i, inside)`` makes the event {score ≥ t_i}, or its complement.
    fitted : tuple of ndarray, optional
        Hits on x and y expected by a fitted curve; events are compared on them because they lack the counts' noise.
    margin : float
        Required advantage over events of earlier families, in units of the claim's strength.
    is_learned : bool
        Whether the score was learned from other pilot runs and is one of many.
    for_intervals : bool
        Whether only the intervals between these thresholds are worth trying, not the half-lines themselves.
    """

    hits_x: Array
    hits_y: Array
    runs: int
    build: Callable[[int, bool], E]
    fitted: tuple[Array, Array] | None = None
    margin: float = 1e-3
    is_learned: bool = False
    for_intervals: bool = False


def value_families(score: Score, values: PilotSplit, *, fit: bool) -> Iterator[Family[Any]]:
    """Events by a score with these values on the pilot outputs."""
    yield from ordered_families(score, values.ordered, fit=fit)


def ordered_families(score: Score, ordered: PilotSplit, *, fit: bool) -> Iterator[Family[Any]]:
    """Events by a score with these sorted values on the pilot outputs."""
    if np.isfinite(ordered.learn_x).any() or np.isfinite(ordered.learn_y).any():
        for family in number_families(ordered, fit=fit):
            yield named(score, family)


def recurring_values(score: Score, ordered: PilotSplit) -> Iterator[Family[Any]]:
    """Each value of a score that recurs among others that do not, alone: a coordinate is 0 in some runs, or clipped."""
    if not any(len(atoms(part)) for part in ordered):  # nearly always, and quick to see
        return
    learn_x, learn_y, held_x, held_y = ordered
    all_x, all_y = merged(learn_x, held_x), merged(learn_y, held_y)
    pooled = merged(all_x, all_y)
    pooled = pooled[np.isfinite(pooled)]
    values = atoms(pooled)
    if 0 < len(values) <= _MOST_ATOMS:
        hits_x, hits_y = (
            (np.searchsorted(side, values, side="right") - np.searchsorted(side, values)).astype(np.float64)
            for side in (all_x, all_y)
        )
        if hits_x.sum() + hits_y.sum() <= (1.0 - _LEAST_OTHERS) * len(pooled):
            others = bool(np.isnan(all_x[-1]) or np.isnan(all_y[-1]))
            yield named(
                score, Family(hits_x, hits_y, len(all_x), OneInterval(np.stack([values, values], axis=1), others))
            )


def atoms(ordered: Array) -> Array:
    """The sorted values that occur a few times, each once."""
    later = ordered[_ATOM_RUNS - 1 :]
    return distinct(later[later == ordered[: len(later)]])


def of_learned(score: Score, held_x: Array, held_y: Array) -> Iterator[Family[Any]]:
    """Events by a score learned on one half of the pilot, from its values on the other half."""
    if np.isfinite(held_x).any() and np.isfinite(held_y).any():
        for family in number_families(PilotSplit.in_half(held_x, held_y).ordered, learned=True):
            yield named(score, replace(family, is_learned=True))


def named(score: Score, family: Family[Intervals]) -> Family[Any]:
    """The same events as events of the score; events of the output itself need no change."""
    if isinstance(score, Number):
        return family
    build = OfScore(score, family.build)
    return Family(family.hits_x, family.hits_y, family.runs, build, family.fitted, family.margin, family.is_learned)


def number_families(split: PilotSplit, *, fit: bool = True, learned: bool = False) -> Iterator[Family[Intervals]]:
    """From sorted values: cells that a fitted curve ranks highest, half-lines both ways, cells of largest raw ratio.

    A learned score is already a rough log-likelihood ratio: its ratio has a slope, and no single cell stands out.
    """
    learn_x, learn_y, held_x, held_y = split
    pooled = merged(learn_x, learn_y)
    pooled = pooled[: np.searchsorted(pooled, math.nan)]
    if len(pooled) == 0:
        return
    # Half-lines are not learned, so they are counted on the whole pilot. Sorting puts NaN last.
    n = len(learn_x) + len(held_x)
    all_x, all_y = merged(learn_x, held_x), merged(learn_y, held_y)
    levels = 1.0 / (1.0 + np.exp(-np.linspace(-1, 1, _LEVELS) * math.log(len(pooled))))
    levels = np.concatenate([levels, np.linspace(0.0, 1.0, 4 * _LEVELS)])
    values = distinct(pooled[:: max(1, len(pooled) // 10_000)])
    discrete = len(values) <= TABLE
    if discrete:  # perhaps: check all values
        values = distinct(merged(all_x, all_y))
        values = values[~np.isnan(values)]
        discrete = len(values) <= TABLE
    spread = pooled[np.minimum((levels * len(pooled)).astype(np.int64), len(pooled) - 1)]
    cuts = values if discrete else distinct(spread)
    others = bool(np.isnan(all_x[-1]) or np.isnan(all_y[-1]))
    if fit:
        repeats = discrete and len(values) * CELL_RUNS_LEAST <= len(pooled)
        yield from _fitted_family(all_x, all_y, values if repeats else None, others, sloped=learned)
    below = [np.searchsorted(part, cuts, side="right").astype(np.float64) for part in (all_x, all_y)]
    yield Family(below[0], below[1], n, HalfLines(cuts, True, discrete, others))
    above = [
        (n - np.isnan(part).sum() - np.searchsorted(part, cuts, side="left"))[::-1].astype(np.float64)
        for part in (all_x, all_y)
    ]
    yield Family(above[0], above[1], n, HalfLines(cuts[::-1], False, discrete, others))
    wanted = int(np.clip(len(pooled) // _CELL_RUNS, 1, _CELLS))
    # A few values are compared one by one in a table.
    cells = [] if discrete or learned else quantile_cells(pooled, np.linspace(0.0, 1.0, wanted + 1))
    if len(cells) > 2:
        counts = [count_cells(cells, part) for part in (learn_x, learn_y)]
        order = np.argsort(-np.log((counts[0] + 0.5) / (counts[1] + 0.5)), kind="stable")
        held = [count_cells(cells, part)[order].cumsum() for part in (held_x, held_y)]
        simple = np.flatnonzero(_numbers_of_runs(order)[:-1] <= _INTERVALS)
        if len(simple):
            build = _Cells(cells, order, tuple(simple.tolist()), others)
            yield Family(held[0][simple], held[1][simple], len(held_x), build)


def _fitted_family(
    all_x: Array, all_y: Array, values: Array | None, others: bool, *, sloped: bool
) -> Iterator[Family[Intervals]]:
    """Unions of cells by a fitted log-likelihood ratio."""
    found = ratio_by_cell(all_x, all_y, values, most=_SLOPED_CELLS if sloped else CELLS, sloped=sloped)
    if found is None:
        return
    cells, ratio, hits_x, hits_y = found
    if np.ptp(ratio) == 0:  # no two cells differ
        return
    order = _from_the_inside(ratio)
    share, hits = expit(ratio), hits_x + hits_y
    ends = np.flatnonzero(_numbers_of_runs(order)[:-1] <= _INTERVALS)
    if values is not None:  # a plateau of several values is taken whole
        ends = ends[np.diff(ratio[order])[ends] < 0]
    if len(ends):
        counted = [part[order].cumsum()[ends] for part in (hits_x, hits_y)]
        sums = [(part * hits)[order].cumsum()[ends] for part in (share, 1.0 - share)]
        fitted = [np.minimum(part, float(len(all_x))) for part in sums]  # the fit may exceed the runs
        yield Family(
            counted[0],
            counted[1],
            len(all_x),
            _Cells(cells, order, tuple(ends.tolist()), others, ratio),
            (fitted[0], fitted[1]),
        )


def _from_the_inside(ratio: Array) -> npt.NDArray[np.int64]:
    """Cells by decreasing ratio; ties by the distance to a cell of larger ratio."""
    place = np.arange(len(ratio))
    away = np.abs(place[:, None] - place).astype(np.float64)
    to_less, to_more = (
        np.min(away, axis=1, initial=len(ratio), where=beyond)
        for beyond in (ratio < ratio[:, None], ratio > ratio[:, None])
    )
    return np.lexsort((to_more - to_less, -ratio))


def _runs(indices: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The indices as runs of neighbours: (first, last) each."""
    ordered = np.sort(indices)
    breaks = np.flatnonzero(np.diff(ordered) > 1)
    return list(zip(ordered[np.r_[0, breaks + 1]].tolist(), ordered[np.r_[breaks, -1]].tolist(), strict=True))


def _numbers_of_runs(order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of runs of neighbours among the first 1, 2, … cells in the given order, shape (cells,)."""
    place = np.full(len(order) + 2, len(order))
    place[order + 1] = np.arange(len(order))
    joined = (place[order] < place[order + 1]).astype(np.int64) + (place[order + 2] < place[order + 1])
    return np.cumsum(1 - joined)


@dataclass(frozen=True, slots=True)
class HalfLines:
    """Builds the half-lines {number ≤ cut}, or {number ≥ cut}, and their complements."""

    cuts: Array
    below: bool
    discrete: bool  # whether the cuts are all values seen; the complement then starts at the next one
    others: bool  # whether some pilot outputs are not numbers; the complement then contains them

    def between(self, first: int, last: int) -> tuple[float, float]:
        """The ends of the interval above the first cut, up to and including the last."""
        low = float(self.cuts[first + 1]) if self.discrete else math.nextafter(float(self.cuts[first]), math.inf)
        return low, float(self.cuts[last])

    def __call__(self, index: int, inside: bool) -> Intervals:
        cut = float(self.cuts[index])
        if inside:
            return Intervals(((-math.inf, cut) if self.below else (cut, math.inf),))
        if math.isinf(cut) and (cut > 0) == self.below:  # nothing lies beyond
            return Intervals((), self.others)
        if self.discrete and index + 1 < len(self.cuts):
            edge = float(self.cuts[index + 1])
        else:
            edge = math.nextafter(cut, math.inf if self.below else -math.inf)
        return Intervals(((edge, math.inf) if self.below else (-math.inf, edge),), self.others)


@dataclass(frozen=True, slots=True)
class OneInterval:
    """Builds single intervals, each with its low and its high end, shape (events, 2), and their complements."""

    ends: Array
    others: bool  # whether some pilot outputs are not numbers; the complement then contains them

    def __call__(self, index: int, inside: bool) -> Intervals:
        low, high = self.ends[index].tolist()
        if inside:
            return Intervals(((low, high),))
        below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        parts = ((-math.inf, below), low > -math.inf), ((above, math.inf), high < math.inf)
        return Intervals(tuple(part for part, is_left in parts if is_left), self.others)


def fitted_curve(families: Iterable[Family[Any]]) -> Callable[[Array], Array] | None:
    """The log ratio of numbers according to the fit among the families of the output itself; None without a fit."""
    for family in families:
        if isinstance(family.build, _Cells) and family.build.ratio is not None:
            lows, ratio = np.array([low for low, _ in family.build.cells]), family.build.ratio
            return lambda values: ratio[np.maximum(np.searchsorted(lows, values, side="right") - 1, 0)]
    return None


@dataclass(frozen=True, slots=True)
class _Cells:
    cells: Cells
    order: npt.NDArray[np.int64]
    prefixes: tuple[int, ...]
    others: bool
    ratio: Array | None = None  # of each cell, if fitted

    def __call__(self, index: int, inside: bool) -> Intervals:
        cut = self.prefixes[index] + 1
        chosen = self.order[:cut] if inside else self.order[cut:]
        return Intervals(
            tuple((self.cells[a][0], self.cells[b][1]) for a, b in _runs(chosen)), self.others and not inside
        )


@dataclass(frozen=True, slots=True)
class OfScore:
    """Builds events of a number as events of a score."""

    score: Score
    build: Callable[[int, bool], Intervals]

    def __call__(self, index: int, inside: bool) -> Scored:
        return Scored(self.score, self.build(index, inside))
