"""Families of events to choose from, from half-lines to sets of outcomes, with their counts in the pilot.

A score is an estimate of the log-likelihood ratio of x against y; a family offers the nested events {score ≥ t} for
many t. Half-lines need no learning and a fitted curve hardly any, so the whole pilot is counted for them; other scores
are learned on one half of the pilot and counted on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from .events import Event, Intervals, Outcomes, Projected, project
from .outputs import Outputs, as_numbers, as_vectors, tally, vector_width
from .ramps import fit_log_ratio

Array = npt.NDArray[np.float64]
E = TypeVar("E", bound=Event)

_CELLS = 128  # quantile cells of the likelihood-ratio histogram, fewer where the pilot is small
_CELL_RUNS = 100  # pilot runs a cell should hold
_TAIL_CELLS, _TAIL_RUNS = 64, 8  # cells of a fitted curve that are dense in the tails, and the fewest runs in one
_FITTED_COORDINATES = 8  # in longer vectors a curve is fitted to the linear discriminant alone
_INTERVALS = 8  # intervals in an event at most: each costs two passes over the outputs
_LEVELS = 129  # thresholds tried for a half-line on the logistic scale (dense in both tails), and four times evenly
_ATOM_RUNS = 5  # times a value has to come in the pilot of a continuous output to be looked at by itself
TABLE = 512
"""Outcomes in a table at most; the rarest are left out, as neutral."""


@dataclass(frozen=True, slots=True)
class Family(Generic[E]):
    """Nested events {score ≥ t}, from the smallest to the largest.

    Attributes
    ----------
    hits_x, hits_y : ndarray, shape (events,)
        How many of `runs` pilot runs lie in each.
    runs : int
    build : callable
        ``build(i, inside)`` makes the event {score ≥ t_i}, or its complement.
    fitted : tuple of ndarray, optional
        Hits on x and y that a fitted curve expects: without the noise of the counts, so events are compared on them.
    """

    hits_x: Array
    hits_y: Array
    runs: int
    build: Callable[[int, bool], E]
    fitted: tuple[Array, Array] | None = None


def event_families(learn_x: Outputs, learn_y: Outputs, held_x: Outputs, held_y: Outputs) -> Iterator[Family[Any]]:
    """Every family of events worth trying for these outputs, simple ones first."""
    parts = (learn_x, learn_y, held_x, held_y)
    width = vector_width(learn_x)
    if width is not None:
        vectors = [as_vectors(part, width) for part in parts]
        for weights in _directions(vectors[0], vectors[1]):
            values = tuple(project(part, weights) for part in vectors)
            is_coordinate = sum(weight != 0.0 for weight in weights) == 1
            for family in _number_families(*values, fit=not is_coordinate or width <= _FITTED_COORDINATES):
                build = _Project(weights, family.build)
                yield Family(family.hits_x, family.hits_y, family.runs, build, family.fitted)
    else:
        numbers = tuple(as_numbers(part) for part in parts)
        if np.isfinite(np.concatenate(numbers[:2]).astype(np.float64)).any():
            yield from _number_families(*numbers)
    yield from _table_families(*parts)


def _number_families(
    learn_x: Outputs, learn_y: Outputs, held_x: Outputs, held_y: Outputs, *, fit: bool = True
) -> Iterator[Family[Intervals]]:
    """What a fitted curve ranks highest, half-lines in both directions, and the cells with the largest raw ratio."""
    # As doubles, as events compare them: integers beyond 2⁵³ may fall together, in the choice as in the counting.
    learn_x, learn_y, held_x, held_y = (part.astype(np.float64) for part in (learn_x, learn_y, held_x, held_y))
    pooled = np.sort(np.concatenate([learn_x, learn_y]))
    pooled = pooled[~np.isnan(pooled)]
    if len(pooled) == 0:
        return
    # Half-lines are not learned, so the whole pilot is held out for them. Sorting puts NaN last.
    n = len(learn_x) + len(held_x)
    all_x, all_y = np.sort(np.concatenate([learn_x, held_x])), np.sort(np.concatenate([learn_y, held_y]))
    levels = 1.0 / (1.0 + np.exp(-np.linspace(-1, 1, _LEVELS) * math.log(len(pooled))))
    levels = np.concatenate([levels, np.linspace(0.0, 1.0, 4 * _LEVELS)])
    values = np.unique(pooled[:: max(1, len(pooled) // 10_000)])
    discrete = len(values) <= TABLE
    if discrete:  # perhaps: look at all of them
        values = np.unique(np.concatenate([all_x, all_y]))
        values = values[~np.isnan(values)]
        discrete = len(values) <= TABLE
    spread = pooled[np.minimum((levels * len(pooled)).astype(np.int64), len(pooled) - 1)]
    cuts = values if discrete else np.unique(spread)
    others = bool(np.isnan(all_x[-1]) or np.isnan(all_y[-1]))
    if fit:
        repeats = discrete and len(values) * _TAIL_RUNS <= len(pooled)
        yield from _fitted_family(all_x, all_y, values if repeats else None, others)
    below = [np.searchsorted(part, cuts, side="right").astype(np.float64) for part in (all_x, all_y)]
    yield Family(below[0], below[1], n, _HalfLines(cuts, True, discrete, others))
    above = [
        (n - np.isnan(part).sum() - np.searchsorted(part, cuts, side="left"))[::-1].astype(np.float64)
        for part in (all_x, all_y)
    ]
    yield Family(above[0], above[1], n, _HalfLines(cuts[::-1], False, discrete, others))
    wanted = int(np.clip(len(pooled) // _CELL_RUNS, 1, _CELLS))
    # Few values are looked at one by one, in a table.
    cells = [] if discrete else _cells(pooled, np.linspace(0.0, 1.0, wanted + 1))
    if len(cells) > 2:
        counts = [_cell_counts(cells, np.sort(part)) for part in (learn_x, learn_y)]
        order = np.argsort(-np.log((counts[0] + 0.5) / (counts[1] + 0.5)), kind="stable")
        held = [_cell_counts(cells, part)[order].cumsum() for part in (np.sort(held_x), np.sort(held_y))]
        simple = [i for i in range(len(order) - 1) if len(_runs(order[: i + 1])) <= _INTERVALS]
        if simple:
            yield Family(held[0][simple], held[1][simple], len(held_x), _Cells(cells, order, tuple(simple), others))


def _fitted_family(all_x: Array, all_y: Array, values: Array | None, others: bool) -> Iterator[Family[Intervals]]:
    """Unions of cells by a fitted log-likelihood ratio."""
    found = ratio_by_cell(all_x, all_y, values)
    if found is None:
        return
    cells, ratio, hits_x, hits_y = found
    order = np.argsort(-ratio, kind="stable")
    share, hits = expit(ratio), hits_x + hits_y
    ends = np.flatnonzero(np.diff(ratio[order]) < 0)  # a plateau is taken whole
    ends = np.array([end for end in ends if len(_runs(order[: end + 1])) <= _INTERVALS], dtype=np.int64)
    if len(ends):
        counted = [part[order].cumsum()[ends] for part in (hits_x, hits_y)]
        sums = [(part * hits)[order].cumsum()[ends] for part in (share, 1.0 - share)]
        fitted = [np.minimum(part, float(len(all_x))) for part in sums]  # a fit is not exact
        yield Family(
            counted[0],
            counted[1],
            len(all_x),
            _Cells(cells, order, tuple(ends.tolist()), others),
            (fitted[0], fitted[1]),
        )


def ratio_by_cell(
    all_x: Array, all_y: Array, values: Array | None = None
) -> tuple[list[tuple[float, float]], Array, Array, Array] | None:
    """Cells that hold all numbers, their fitted log ratio of counts, and the outputs on x and on y in each.

    Takes sorted outputs, and the values among them if those are few; None where there are not two cells.
    """
    pooled = np.sort(np.concatenate([all_x, all_y]))
    pooled = pooled[~np.isnan(pooled)]
    if values is None:
        wanted = int(np.clip(len(pooled) // _TAIL_RUNS, 2, _CELLS))
        tails = expit(np.linspace(-1, 1, _TAIL_CELLS + 1) * math.log(max(len(pooled) / _TAIL_RUNS, 2.0)))
        cells = _cells(pooled, np.union1d(np.linspace(0.0, 1.0, wanted + 1)[1:-1], tails))
    else:
        edges = [-math.inf, *values[1:-1].tolist(), math.inf] if len(values) > 1 else []
        cells = list(zip(edges, edges, strict=True))
        if cells:
            cells[0], cells[-1] = (-math.inf, float(values[0])), (float(values[-1]), math.inf)
    if len(cells) < 2:
        return None
    hits_x, hits_y = _cell_counts(cells, all_x), _cell_counts(cells, all_y)
    middles = np.searchsorted(pooled, np.array([low for low, _ in cells])) + (hits_x + hits_y).astype(np.int64) // 2
    at = pooled[np.minimum(middles, len(pooled) - 1)]
    if not (np.isfinite(at).all() and (hits_x + hits_y > 0).all()):
        return None
    return cells, fit_log_ratio(at, hits_x, hits_y).round(9), hits_x, hits_y


def _cells(pooled: Array, levels: Array) -> list[tuple[float, float]]:
    """Closed intervals that hold all numbers, in order, cut at quantiles; a value with a cell's mass is its own."""
    edges, repeats = np.unique(pooled[((len(pooled) - 1) * levels).astype(np.int64)], return_counts=True)
    cells: list[tuple[float, float]] = []
    start = -math.inf
    for edge, repeat in zip(edges.tolist(), repeats.tolist(), strict=True):
        if repeat > 1:  # an atom
            if start < edge:
                cells.append((start, math.nextafter(edge, -math.inf)))
            cells.append((edge, edge))
            start = math.nextafter(edge, math.inf)
        elif start <= edge:
            cells.append((start, edge))
            start = math.nextafter(edge, math.inf)
    if start < math.inf:
        cells.append((start, math.inf))
    return cells


def _cell_counts(cells: list[tuple[float, float]], values: Array) -> Array:
    """Sorted values in each cell, shape (cells,)."""
    low, high = np.array(cells).T
    counts = np.searchsorted(values, high, side="right") - np.searchsorted(values, low, side="left")
    return np.asarray(counts, dtype=np.float64)


def _runs(indices: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The indices as runs of neighbours: (first, last) each."""
    ordered = np.sort(indices)
    breaks = np.flatnonzero(np.diff(ordered) > 1)
    return list(zip(ordered[np.r_[0, breaks + 1]].tolist(), ordered[np.r_[breaks, -1]].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _HalfLines:
    cuts: Array
    below: bool
    discrete: bool  # whether these are all the values seen: then the complement starts at the next one
    others: bool  # whether some pilot outputs are not numbers: then the complement holds them

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
    cells: list[tuple[float, float]]
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
class _Project:
    weights: tuple[float, ...]
    build: Callable[[int, bool], Intervals]

    def __call__(self, index: int, inside: bool) -> Projected:
        return Projected(self.weights, self.build(index, inside))


@dataclass(frozen=True, slots=True)
class _Table:
    values: list[Any]

    def __call__(self, index: int, inside: bool) -> Outcomes:
        return Outcomes(tuple(self.values[: index + 1]), others=not inside)


def _directions(x: Outputs, y: Outputs) -> Iterator[tuple[float, ...]]:
    """Weights to project vectors on: each coordinate (the first 64), and Fisher's linear discriminant of x and y."""
    width = x.shape[1]
    for i in range(min(width, 64)):
        yield tuple(1.0 if j == i else 0.0 for j in range(width))
    weights = fisher_direction(x, y)
    if weights is not None:
        yield weights


def fisher_direction(x: Outputs, y: Outputs) -> tuple[float, ...] | None:
    """Weights of Fisher's linear discriminant of x and y, the largest ±1; None where there is none."""
    width = x.shape[1]
    x, y = (side[np.isfinite(side).all(axis=1)].astype(np.float64) for side in (x, y))
    both = np.concatenate([x, y])
    if width > 1 and min(len(x), len(y)) > width and np.abs(both).max() < 1e100:  # squares are taken
        spread = np.cov(both, rowvar=False) + 1e-12 * np.eye(width) * max(float(both.var()), 1e-300)
        weights = np.linalg.lstsq(spread, x.mean(axis=0) - y.mean(axis=0), rcond=None)[0]
        size = float(np.abs(weights).max())
        if size > 0 and math.isfinite(size):
            return tuple((weights / size).tolist())
    return None


def _table_families(learn_x: Outputs, learn_y: Outputs, held_x: Outputs, held_y: Outputs) -> Iterator[Family[Any]]:
    """Sets of single outcomes by their estimated likelihood ratio, from either end; none if nearly every one is new."""
    runs = len(held_x)
    if learn_x.dtype.kind == "f" and len(np.unique(learn_x[:2000], axis=0)) > 1000:
        if learn_x.ndim == 2:
            return
        # Continuous, but for values that come again and again, if there are any.
        values, counts = np.unique(np.concatenate([learn_x, learn_y]), return_counts=True)
        atoms = values[counts >= _ATOM_RUNS]
        if not 0 < len(atoms) <= TABLE:
            return
        learn_x, learn_y, held_x, held_y = (part[np.isin(part, atoms)] for part in (learn_x, learn_y, held_x, held_y))
    tallies, found = zip(*map(tally, (learn_x, learn_y, held_x, held_y)), strict=True)
    names, seen = found[1] | found[0], tallies[0] + tallies[1]
    keys = [key for key, count in seen.most_common(TABLE) if count >= 3]
    if not keys:
        return
    ratio = {key: math.log((tallies[0][key] + 0.5) / (tallies[1][key] + 0.5)) for key in keys}
    for sign in (-1, 1):
        keys.sort(key=lambda key: sign * ratio[key])
        hits_x, hits_y = (np.cumsum([float(counts[key]) for key in keys]) for counts in tallies[2:])
        yield Family(hits_x, hits_y, runs, _Table([names[key] for key in keys]))
