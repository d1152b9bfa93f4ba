"""Families of candidate events, from half-lines to sets of outcomes, with their counts in the pilot.

A score is an estimate of the log-likelihood ratio of x against y, and a family is the nested events {score ≥ t} for
many t. Half-lines need no learning and a fitted curve hardly any, so they are counted on the whole pilot; other scores
are learned on one half of the pilot and counted on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..events.events import Event, Intervals, Outcomes, Scored
from ..events.features import Columns, Coordinates, learn_leaves
from ..events.outputs import Outputs, as_vectors, row_keys, tally, vector_width
from ..events.scores import Column, Number, Score, Weighted
from .learned_scores import MOST_LEARNED, additive_scores, forest
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
Effort = Literal["quick", "sums", "trees"]
"""Scores learned from several columns: those that take milliseconds, all sums over columns, or trees as well."""

_CELLS = 128  # quantile cells of the likelihood-ratio histogram, fewer where the pilot is small
_CELL_RUNS = 100  # pilot runs per cell
_MOST_COORDINATES = 64  # largest number of coordinates that are looked at singly
_MOST_COLUMNS = 20_000  # beyond it only weighted sums are learned: other scores take 0.2 ms per column
_FITTED_COORDINATES = 8  # longest vector whose single coordinates are fitted with a curve
_SLOPED_CELLS = 64  # cells of the curve of a learned score
_TREES_MARGIN = 0.02  # trees cost twenty times as much as an additive score, so they have to be better
_INTERVALS = 8  # most intervals in an event: each costs two passes over the outputs
_LEVELS = 129  # thresholds of half-lines on the logistic scale (dense in both tails); four times as many evenly
_FEW_OUTCOMES, _LOOKED_AT = 8, 2_000  # with so few outcomes in the first runs, a table learns everything
_ATOM_RUNS = 5  # occurrences of a value in the pilot that make it an atom of a continuous output
_MOSTLY = 0.5  # share of the runs in outcomes that occur at least three times
TABLE = 512
"""Most outcomes in a table; rarer ones are left out as neutral."""


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
    """

    hits_x: Array
    hits_y: Array
    runs: int
    build: Callable[[int, bool], E]
    fitted: tuple[Array, Array] | None = None
    margin: float = 1e-3
    is_learned: bool = False


def event_families(split: PilotSplit, *, effort: Effort = "sums") -> Iterator[Family[Any]]:
    """All families of events worth trying for these outputs, simple ones first."""
    learn_x, learn_y = split.learn_x, split.learn_y
    width = vector_width(*split)
    if width:
        vectors = split.map(lambda part: as_vectors(part, width))
        for place in range(min(width, _MOST_COORDINATES)):
            alone = Weighted(tuple(float(place == other) for other in range(width)))
            yield from score_families(alone, vectors, fit=width <= _FITTED_COORDINATES and effort != "quick")
        if width > _MOST_COLUMNS:
            for direction in _directions(vectors.learn_x, vectors.learn_y):
                linear = Weighted(direction)
                yield from _of_learned(linear, linear.values(vectors.held_x), linear.values(vectors.held_y))
        elif width > 1 and not _are_few(learn_x, learn_y):
            both = Coordinates(width), Coordinates(width, differences=True)
            for columns, own in zip(both, (effort, "sums" if effort == "trees" else effort), strict=True):
                yield from _learned_families(columns, vectors.map(columns.read), own)
            weights = fisher_direction(vectors.learn_x, vectors.learn_y)
            if weights is not None:
                linear = Weighted(weights)
                yield from _of_learned(linear, linear.values(vectors.held_x), linear.values(vectors.held_y))
    elif learn_x.dtype == object:
        leaves = learn_leaves(learn_x, learn_y)
        read = split.map(leaves.read)  # once, because reading takes longest
        for column, path in enumerate(leaves.paths, start=1):
            score = Column(leaves, column) if path else Number()
            fit = len(leaves.paths) <= _FITTED_COORDINATES
            yield from _value_families(score, read.map(itemgetter(column)), fit=fit)
        for column in leaves.kinds:
            yield from _value_families(Column(leaves, column), read.map(itemgetter(column)), fit=True)
        if len(leaves.names) > 2 and not _are_few(learn_x, learn_y):
            yield from _learned_families(leaves, read, effort)
    elif learn_x.ndim == 1:
        ordered = split.map(_ordered)
        yield from _ordered_families(Number(), ordered, fit=True)
        if _is_continuous(learn_x):
            yield from _atom_families(split, merged(ordered.learn_x, ordered.learn_y))
            return
    if learn_x.ndim == 1 or not _is_continuous(learn_x):
        yield from _table_families(split, runs=split.held_runs)


def _are_few(x: Outputs, y: Outputs) -> bool:
    """Whether there are so few different outcomes that a table learns everything."""
    return len(tally(x[:_LOOKED_AT])[0] | tally(y[:_LOOKED_AT])[0]) <= _FEW_OUTCOMES


def score_families(score: Score, split: PilotSplit, *, fit: bool = True) -> Iterator[Family[Any]]:
    """Events by a score that was not learned from the pilot."""
    yield from _value_families(score, split.map(score.values), fit=fit)


def _value_families(score: Score, values: PilotSplit, *, fit: bool) -> Iterator[Family[Any]]:
    """Events by a score with these values on the pilot outputs."""
    yield from _ordered_families(score, values.map(_ordered), fit=fit)


def _ordered(values: Outputs) -> Array:
    """Values as the doubles that events compare, sorted, NaN last; integers beyond 2⁵³ may coincide, as in events."""
    return np.sort(values.astype(np.float64))


def _ordered_families(score: Score, ordered: PilotSplit, *, fit: bool) -> Iterator[Family[Any]]:
    """Events by a score with these sorted values on the pilot outputs."""
    if np.isfinite(ordered.learn_x).any() or np.isfinite(ordered.learn_y).any():
        for family in _number_families(ordered, fit=fit):
            yield _named(score, family)


def _learned_families(columns: Columns, read: PilotSplit, effort: Effort) -> Iterator[Family[Any]]:
    """Events by sums over columns, and trees; `read` holds the outputs' columns, shape (columns, runs)."""
    learn_x, learn_y = read.learn_x[:, :MOST_LEARNED], read.learn_y[:, :MOST_LEARNED]
    for score in additive_scores(columns, learn_x, learn_y, together=effort != "quick"):
        yield from _of_learned(score, score.add_up(read.held_x), score.add_up(read.held_y))
    if effort == "trees" and (trees := forest(columns, learn_x, learn_y)) is not None:
        for family in _of_learned(trees, trees.add_up(read.held_x), trees.add_up(read.held_y)):
            yield replace(family, margin=_TREES_MARGIN)


def _of_learned(score: Score, held_x: Array, held_y: Array) -> Iterator[Family[Any]]:
    """Events by a score learned on one half of the pilot, from its values on the other half."""
    if np.isfinite(held_x).any() and np.isfinite(held_y).any():
        for family in _number_families(PilotSplit.in_half(held_x, held_y).map(_ordered), learned=True):
            yield _named(score, replace(family, is_learned=True))


def _named(score: Score, family: Family[Intervals]) -> Family[Any]:
    """The same events as events of the score; events of the output itself need no change."""
    if isinstance(score, Number):
        return family
    build = _OfScore(score, family.build)
    return Family(family.hits_x, family.hits_y, family.runs, build, family.fitted, family.margin, family.is_learned)


def _number_families(split: PilotSplit, *, fit: bool = True, learned: bool = False) -> Iterator[Family[Intervals]]:
    """From sorted values: cells that a fitted curve ranks highest, half-lines both ways, cells of largest raw ratio.

    A learned score is already a rough log-likelihood ratio: its ratio has a slope, and no single cell stands out.
    """
    learn_x, learn_y, held_x, held_y = split
    pooled = merged(learn_x, learn_y)
    pooled = pooled[~np.isnan(pooled)]
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
    yield Family(below[0], below[1], n, _HalfLines(cuts, True, discrete, others))
    above = [
        (n - np.isnan(part).sum() - np.searchsorted(part, cuts, side="left"))[::-1].astype(np.float64)
        for part in (all_x, all_y)
    ]
    yield Family(above[0], above[1], n, _HalfLines(cuts[::-1], False, discrete, others))
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
            _Cells(cells, order, tuple(ends.tolist()), others),
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
class _HalfLines:
    cuts: Array
    below: bool
    discrete: bool  # whether the cuts are all values seen; the complement then starts at the next one
    others: bool  # whether some pilot outputs are not numbers; the complement then contains them

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
class _Cells:
    cells: Cells
    order: npt.NDArray[np.int64]
    prefixes: tuple[int, ...]
    others: bool

    def __call__(self, index: int, inside: bool) -> Intervals:
        cut = self.prefixes[index] + 1
        chosen = self.order[:cut] if inside else self.order[cut:]
        return Intervals(
            tuple((self.cells[a][0], self.cells[b][1]) for a, b in _runs(chosen)), self.others and not inside
        )


@dataclass(frozen=True, slots=True)
class _OfScore:
    score: Score
    build: Callable[[int, bool], Intervals]

    def __call__(self, index: int, inside: bool) -> Scored:
        return Scored(self.score, self.build(index, inside))


@dataclass(frozen=True, slots=True)
class _Table:
    values: list[Any]

    def __call__(self, index: int, inside: bool) -> Outcomes:
        return Outcomes(tuple(self.values[: index + 1]), others=not inside)


def fisher_direction(x: Outputs, y: Outputs) -> tuple[float, ...] | None:
    """Weights of Fisher's linear discriminant of x and y, the largest ±1; None if it is undefined."""
    width = x.shape[1]
    x, y = (side[np.isfinite(side).all(axis=1)].astype(np.float64) for side in (x, y))
    both = np.concatenate([x, y])
    if width > 1 and min(len(x), len(y)) > width and np.abs(both).max() < 1e100:  # the values are squared
        spread = np.cov(both, rowvar=False) + 1e-12 * np.eye(width) * max(float(both.var()), 1e-300)
        weights = np.linalg.lstsq(spread, x.mean(axis=0) - y.mean(axis=0), rcond=None)[0]
        size = float(np.abs(weights).max())
        if size > 0 and math.isfinite(size):
            return tuple((weights / size).tolist())
    return None


def _directions(x: Outputs, y: Outputs) -> Iterator[tuple[float, ...]]:
    """Weights for a sum over very many coordinates: equal ones, and weights by the difference of the means."""
    yield (1.0,) * x.shape[1]
    with np.errstate(all="ignore"):  # a coordinate may be infinite or constant
        apart = (x.mean(axis=0) - y.mean(axis=0)) / (x.var(axis=0) + y.var(axis=0))
    apart = np.where(np.isfinite(apart), apart, 0.0)
    largest = float(np.abs(apart).max())
    if largest > 0.0:
        yield tuple((apart / largest).tolist())


def _is_continuous(outputs: Outputs) -> bool:
    """Whether nearly all of the first outputs are different; for long vectors half of them is enough."""
    if outputs.dtype.kind != "f":
        return False
    first = outputs[:2000]
    if outputs.ndim == 1:
        return len(np.unique(first)) > 1000
    return len(np.unique(row_keys(first))) > (1000 if outputs.shape[1] <= _MOST_COORDINATES else len(first) // 2)


def _atom_families(split: PilotSplit, pooled: Array) -> Iterator[Family[Any]]:
    """Sets of atoms: values that recur among the continuous ones in the sorted `pooled`."""
    atoms = distinct(pooled[_ATOM_RUNS - 1 :][pooled[_ATOM_RUNS - 1 :] == pooled[: len(pooled) - _ATOM_RUNS + 1]])
    if 0 < len(atoms) <= TABLE:
        yield from _table_families(split.map(lambda part: part[np.isin(part, atoms)]), runs=split.held_runs)


def _table_families(split: PilotSplit, *, runs: int) -> Iterator[Family[Any]]:
    """Sets of outcomes ordered by their estimated likelihood ratio, from either end; `runs` are held out."""
    tallies, found = zip(*map(tally, split), strict=True)
    names, seen = found[1] | found[0], tallies[0] + tallies[1]
    common = seen.most_common(TABLE)
    # If few outcomes occur three times, rare outcomes are all there is to learn from. A floating-point number that
    # occurs once, however, says nothing about other runs.
    is_common = sum(count for _, count in common if count >= 3) >= _MOSTLY * seen.total()
    least = 3 if is_common or split.learn_x.dtype.kind == "f" else 1
    keys = [key for key, count in common if count >= least]
    if not keys:
        return
    ratio = {key: math.log((tallies[0][key] + 0.5) / (tallies[1][key] + 0.5)) for key in keys}
    for sign in (-1, 1):
        keys.sort(key=lambda key: sign * ratio[key])
        hits_x, hits_y = (np.cumsum([float(counts[key]) for key in keys]) for counts in tallies[2:])
        yield Family(hits_x, hits_y, runs, _Table([names[key] for key in keys]))
