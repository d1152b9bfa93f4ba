"""A column of the pilot's outputs, cut into cells: every event is a set of neighbouring cells of one column.

Values that recur have cells of their own; the others are cut at quantiles, densely in both tails. A fitted curve gives
the log ratio of each cell, and orders the cells; half-lines and runs of 1, 2, 4, … cells are the events of the net.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from ..events.events import Event, Intervals, Scored, counts_in_cells
from ..events.scores import Number, Score
from ..inference.event_test import Direction
from .curve import expected_log_ratio, shrunken_log_ratios

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Curve = Literal["ramps", "each"]

FINE, RECURS, HALF_LINE = -2, -1, 0
"""Kinds of events: runs of fine cells, values that recur among many and clusters, half-lines."""

_TAILS, EVEN = 129, 63  # quantiles on the logistic scale, dense in both tails, and even ones
# Most fine cells of a number, and the pilot's values in each: of 100,000 runs one has some eighty counts, and sixty on
# one dataset with none on the other refute a claim of 1.
_FINE, _PER_FINE = 4095, 4
ATOMS = 512
"""Most values that have a cell of their own."""

REPEATED = 3
"""Times that such a value occurs at least, and all do on average."""

FIRST, SINGLY = 2_000, 64
"""Runs on each dataset that show of what kind values are, and parts of outputs that are looked at singly."""

# Spacings in a narrow stretch, values on either side that show how dense they are there, the expected number of
# stretches as narrow or as empty as one that counts if values are spread evenly, and stretches that count at most.
_SPACINGS = (3, 5, 8, *(13 << power for power in range(15)))
_BESIDE, _BY_CHANCE, RANKED = 32, 1e-4, 32  # the last is also the number of places of a list of the net
_CURVE = 700  # cells of a curve at most, whose fit takes the square of their number; more are joined
_JOINED = _TAILS - 1  # as many as lie between the quantiles of a column without single values
_LONG = 4 * (EVEN + 1) ** 2  # runs from which √runs even cells are twice as fine, and locate a kink better
ROUNDED = 9
"""Digits of a log ratio or a value, so that errors of rounding neither order a plateau nor distinguish machines."""


class Listed(Score):
    """A score whose events are lists of outcomes."""

    __slots__ = ()

    @abstractmethod
    def event(self, where: Intervals) -> Event:
        """The event that the score lies in the intervals."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A score of outputs with its values on the pilot, equally many on x and on y.

    A curve of ramps gives the log ratio of the cells, or each cell has its own; a column without either is only in the
    net, as one of many.
    """

    score: Score
    x: Array
    y: Array
    first: int = 0  # run of the pilot that the values begin with: the column was learned or picked on the runs before
    is_output: bool = False  # the output itself, the only number there is
    is_part: bool = False  # a part of the output, not computed from several
    is_ratio: bool = False  # learned as a log ratio, so its own ratio has a slope
    curve: Curve | None = "ramps"


@dataclass(frozen=True, eq=False)
class Cut:
    """A column cut into cells, runs of which are the events of the net.

    Cell k lies from edge k - 1 up to edge k, the first and the last but one are unbounded, and the last cell holds
    outputs without a number.
    """

    column: Column
    edges: Array
    count_x: Array
    count_y: Array
    ratio: Array | None  # log ratio of each cell according to the curve, if there is one
    low: Integers  # first cell of each event
    high: Integers  # the cell after its last
    kind: Integers  # of each event: `HALF_LINE`, `RECURS`, or for a run of cells the number of coarse ones in it
    fine: Array  # edges of finer cells, which are events of the net only
    below_fine: Integers  # values on x and on y below each of them, shape (2, fine)

    @classmethod
    def of(cls, column: Column) -> Cut | None:
        """Cut a column; None if its finite values and missing ones do not vary."""
        ordered = [np.sort(side[~np.isnan(side)]) for side in (column.x, column.y)]
        sides = [side[np.isfinite(side)] for side in ordered]
        values = np.sort(np.concatenate(sides), kind="stable")  # merges what is sorted
        coarse, apart = _edges(column, sides, values)
        edges, fine = coarse, np.zeros(0)
        if column.is_output and len(column.x) > _LONG:
            edges = np.union1d(coarse, _at(values, _even_levels(math.isqrt(len(column.x)))))
        if column.is_part and column.curve == "ramps" and len(coarse) < len(_first_of_each(values)):
            fine = np.unique(_at(values, _even_levels(min(_FINE, len(values) // _PER_FINE))))
        without = [len(side) - len(known) for side, known in zip((column.x, column.y), ordered, strict=True)]
        if len(edges) == 0 or (len(edges) == 1 and not any(without)):
            return None
        count_x, count_y = (
            np.diff(np.searchsorted(known, edges), prepend=0, append=[len(known), len(known) + rest]).astype(np.float64)
            for known, rest in zip(ordered, without, strict=True)
        )
        ratio = None
        if column.curve == "ramps" and len(edges):
            ratio = _curve(_positions(values, edges), count_x, count_y, is_ratio=column.is_ratio)
        elif column.curve == "each":
            pairs, same, times = np.unique(count_x + 1j * count_y, return_inverse=True, return_counts=True)
            ratio = shrunken_log_ratios(pairs.real, pairs.imag, times).round(ROUNDED)[same]
        count = len(count_x)
        ends = np.concatenate([[0], 1 + np.searchsorted(edges, coarse), [count - 1, count]])
        low, high, kind = runs_of_cells(len(ends) - 1)
        low, high = ends[low], ends[high]
        first, after = np.searchsorted(edges, apart, side="right").T
        is_cell = after == first + 1
        kind = np.where((kind == 1) & np.isin(low, first[is_cell]), RECURS, kind)
        low, high = np.append(low, first[~is_cell]), np.append(high, after[~is_cell])
        kind = np.append(kind, np.full(len(low) - len(kind), RECURS))
        below_fine = np.array([np.searchsorted(known, fine) for known in ordered])
        return cls(column, edges, count_x, count_y, ratio, low, high, kind, fine, below_fine)

    @property
    def runs(self) -> int:
        """Runs on each dataset."""
        return len(self.column.x)

    @cached_property
    def fitted_cells(self) -> tuple[Array, Array]:
        """Counts in each cell on x and on y as the curve expects them; those of the pilot without a curve."""
        if self.ratio is None:
            return self.count_x, self.count_y
        counts, share = self.count_x + self.count_y, scipy.special.expit(self.ratio)
        return np.minimum(counts * share, self.count_x.sum()), np.minimum(counts * (1.0 - share), self.count_y.sum())

    @cached_property
    def order(self) -> Integers:
        """Cells by decreasing ratio; on a curve those of equal ratio by their distance to a cell of larger ratio."""
        assert self.ratio is not None
        return from_the_inside(self.ratio) if self.column.curve == "ramps" else np.argsort(-self.ratio, kind="stable")

    def counts(self, cells: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Counts in these cells on x and on y."""
        return float(self.count_x[cells].sum()), float(self.count_y[cells].sum())

    def fitted(self, cells: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """The same as the curve expects them, at most all runs."""
        on_x, on_y = (min(float(side[cells].sum()), float(self.runs)) for side in self.fitted_cells)
        return on_x, on_y

    def in_events(self, counts: Array, events: Integers | slice = slice(None)) -> Array:
        """Counts in each event of the net, or in some events, of counts in each cell."""
        up_to = np.concatenate([[0.0], np.cumsum(counts)])
        return np.asarray(up_to[self.high[events]] - up_to[self.low[events]])

    def with_edges(self, more: Array) -> Cut:
        """The same column with further edges, as the cells of events that need no curve and no net."""
        edges = np.union1d(self.edges, more)
        count_x, count_y = (counts_in_cells(side, edges).astype(np.float64) for side in (self.column.x, self.column.y))
        return replace(self, edges=edges, count_x=count_x, count_y=count_y, ratio=None)

    @np.errstate(over="ignore")  # distances beyond the largest number
    def lies_far(self, more_likely_on: Direction) -> npt.NDArray[np.bool_]:
        """Whether each half-line is farther from all numbers of the other dataset than these from each other."""
        own, other = (
            np.sort(side[np.isfinite(side)])
            for side in (self.column.x, self.column.y)[:: 1 if more_likely_on == "x" else -1]
        )
        if len(other) == 0 or len(own) == 0:
            return np.ones(len(self.low), np.bool_)
        bounds = np.concatenate([[-math.inf], self.edges, [math.inf, math.inf]])  # outputs without a number are far
        nearest = own[np.maximum(np.searchsorted(own, bounds[self.high]) - 1, 0)]
        away = np.where(self.low > 0, bounds[self.low] - other[-1], other[0] - nearest)
        return np.asarray(away > other[-1] - other[0])

    def directed(self, more_likely_on: Direction) -> tuple[Array, Array]:
        """Counts in each cell, those on the more likely dataset first."""
        return (self.count_x, self.count_y) if more_likely_on == "x" else (self.count_y, self.count_x)

    def places(self, event: int) -> Integers:
        """The cells of an event of the net."""
        return np.arange(self.low[event], self.high[event])

    def event(self, cells: npt.NDArray[np.bool_]) -> Event:
        """The event that the score lies in one of these cells."""
        return event_of(self.column.score, self.edges, cells)


def as_spread(scores: tuple[Array, Array], others: tuple[Array, Array]) -> tuple[Array, Array]:
    """Scores on x and on y with the order that they have and the distribution, on both together, of others.

    A score that half of the pilot taught is smaller or larger than one that all of it taught, so a threshold on the one
    means little to the other; places in the order do.
    """
    ordered, wanted = np.sort(np.concatenate(scores)), np.sort(np.concatenate(others))
    on_x, on_y = (np.searchsorted(ordered, side) + np.searchsorted(ordered, side, side="right") for side in scores)
    return wanted[(on_x - 1) // 2], wanted[(on_y - 1) // 2]  # equal scores have the middle of their places


S = TypeVar("S", bound=Score)


def scored_crosswise(
    whole: S, taught: tuple[S, S], halves: Sequence[tuple[Any, Any]], values: Callable[[S, Any], Array]
) -> Column:
    """A score that the whole pilot taught, with each half of the pilot scored by what the other half taught."""
    sides = [
        as_spread((values(score, x), values(score, y)), (values(whole, x), values(whole, y)))
        for score, (x, y) in zip(taught[::-1], halves, strict=True)
    ]
    on_x, on_y = (np.concatenate([part[side] for part in sides]) for side in (0, 1))
    return Column(whole, on_x, on_y, is_ratio=True)


def cut_columns(columns: Iterable[Column]) -> list[Cut]:
    """The columns that vary, cut into cells."""
    return [cut for column in columns if (cut := Cut.of(column)) is not None]


def event_of(score: Score, edges: Array, cells: npt.NDArray[np.bool_]) -> Event:
    """The event that a score lies in one of the cells between these edges."""
    numbers = cells[:-1]
    starts = np.flatnonzero(numbers & ~np.concatenate([[False], numbers[:-1]]))
    ends = np.flatnonzero(numbers & ~np.concatenate([numbers[1:], [False]]))
    bounds = np.concatenate([[-math.inf], edges, [math.inf]])
    intervals = tuple(
        (float(bounds[start]), math.nextafter(bounds[end + 1], -math.inf) if end + 2 < len(bounds) else math.inf)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    )
    where = Intervals(intervals, others=bool(cells[-1]))
    return (
        where
        if isinstance(score, Number)
        else score.event(where)
        if isinstance(score, Listed)
        else Scored(score, where)
    )


def _even_levels(count: int) -> Array:
    return np.linspace(0.0, 1.0, count + 2)[1:-1]


def _at(values: Array, levels: Array) -> Array:
    """The quantiles of sorted values at these levels."""
    return np.asarray(values[np.rint(levels * (len(values) - 1)).astype(np.int64)])


def _first_of_each(values: Array) -> Integers:
    """The places of sorted values at which a new one begins."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])


def _edges(column: Column, sides: Sequence[Array], values: Array) -> tuple[Array, Array]:
    """Edges of the cells, and of each value that recurs among many and each odd stretch the first and the next edge.

    `sides` are the finite values on x and on y, `values` those of both, all sorted.
    """
    first = _first_of_each(values)
    different, times = values[first], np.diff(first, append=len(values))
    if len(different) <= min(ATOMS, len(values) // REPEATED):
        return different, np.zeros((0, 2))
    levels = scipy.special.expit(np.linspace(-1.0, 1.0, _TAILS) * math.log(len(values)))
    at = _at(values, np.union1d(levels, _even_levels(EVEN)))
    recurring, times = different[times >= REPEATED], times[times >= REPEATED]
    first, after = (np.searchsorted(sides[0], recurring, side=side) for side in ("left", "right"))
    # A curve of each cell by itself believes its counts, so those must not be the oddest of many.
    wanted = times if column.curve == "each" else np.abs(2 * (after - first) - times) / np.sqrt(times)
    atoms = recurring[np.argsort(-wanted, kind="stable")[:ATOMS]]
    is_grid = 2 * times.sum() > len(values)  # then a value that recurs is one like any other
    is_smooth = not is_grid and not column.is_ratio  # a learned sum of steps is not
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # distances may be infinite or 0
        distinct = [side[_first_of_each(side)] for side in sides if is_smooth]
        stretches = [stretch for side in distinct for stretch in _odd_stretches(side)]
        ends = np.array([*zip(atoms, atoms, strict=True), *stretches]).reshape(-1, 2)
        ends[:, 1] = np.nextafter(ends[:, 1], math.inf)
    return np.unique(np.append(at, ends)), ends[:0] if is_grid else ends


def _odd_stretches(values: Array) -> list[tuple[float, float]]:
    """First and last number of stretches of increasing values far denser or emptier than their neighbourhood.

    In an evenly spread stretch the length of k spacings, in units of the mean spacing, is at most r with probability at
    most rᵏ/k!, and one spacing is at least r times m others together with probability (1 + r)⁻ᵐ. Stretches of more
    values than an even cell need no cells of their own.
    """
    found: list[tuple[float, float, float]] = []
    least = math.log(_BY_CHANCE / max(len(values), 1))
    for k in (1, *(k for k in _SPACINGS if k * (EVEN + 1) <= len(values))):
        beside = max(_BESIDE, k)
        if len(values) <= k + 2 * beside:
            break
        low, high = values[beside : len(values) - k - beside], values[beside + k : len(values) - beside]
        before, after = low - values[: len(low)], values[k + 2 * beside :] - high
        length = high - low
        # Most lengths are seen to be likely without a logarithm, which would take a third of the choice.
        if k == 1:
            is_near = length > (1.0 - 1e-9) * 2.0 * math.expm1(-least / (2 * beside)) * np.maximum(before, after)
        else:
            most = (1.0 + 1e-9) * math.exp((least + math.lgamma(k + 1.0)) / k) / beside
            is_near = length < most * np.minimum(before, after)
        near = np.flatnonzero(is_near & (length > 0.0))
        low, high, before, after, length = (each[near] for each in (low, high, before, after, length))
        if k == 1:
            chance = -2 * beside * np.log1p(length / np.maximum(before, after) / 2)
            low, high = np.nextafter(low, math.inf), np.nextafter(high, -math.inf)
        else:
            chance = k * np.log(length / np.minimum(before, after) * beside) - math.lgamma(k + 1.0)
        odd = np.flatnonzero(chance < least)
        found += zip(chance[odd].tolist(), low[odd].tolist(), high[odd].tolist(), strict=True)
    kept: list[tuple[float, float]] = []
    for _, low_end, high_end in sorted(found):
        if len(kept) < RANKED and all(high_end < start or end < low_end for start, end in kept):
            kept.append((low_end, high_end))
    return kept


@lru_cache(maxsize=16)  # most columns have equally many cells
def runs_of_cells(count: int) -> tuple[Integers, Integers, Integers]:
    """First cell, cell after the last, and width of half-lines both ways (0) and of runs of 1, 2, 4, … cells."""
    inner = np.arange(1, count)
    low, high = [0 * inner, inner], [inner, np.full(count - 1, count)]
    widths = [np.full(2 * len(inner), HALF_LINE)]
    width = 1
    while width < count - 1:
        starts = np.arange(0, count - width + 1, max(width // 2, 1))
        starts = starts[(starts > 0) & (starts + width < count)]
        low.append(starts)
        high.append(starts + width)
        widths.append(np.full(len(starts), width))
        width *= 2
    return np.concatenate(low), np.concatenate(high), np.concatenate(widths)


def _positions(values: Array, edges: Array) -> Array:
    """The mean of the sorted finite values in each cell but the last; its lower edge if there is none."""
    starts = np.concatenate([[0], np.searchsorted(values, edges)])
    counts = np.diff(starts, append=len(values))
    means = np.append(edges[0], edges)
    with np.errstate(over="ignore"):  # a sum may be rounded beyond the largest number
        means[counts > 0] = np.add.reduceat(values / np.repeat(counts, counts), starts[counts > 0])
    return np.maximum.accumulate(np.clip(means, -sys.float_info.max, sys.float_info.max))


def _curve(at: Array, count_x: Array, count_y: Array, *, is_ratio: bool) -> Array | None:
    """The log ratio of each cell; cells without counts have that of their neighbours. None for fewer than two cells."""
    hit = np.flatnonzero(count_x[:-1] + count_y[:-1] > 0)
    if len(hit) < 2:
        return None
    group = np.arange(len(hit))
    if len(hit) > _CURVE:
        counts = (count_x + count_y)[hit]
        group = np.minimum(np.cumsum(counts) * _JOINED // (counts.sum() + 1), _JOINED - 1).astype(np.int64)
        group = np.unique(group, return_inverse=True)[1]
    first = hit[np.unique(group, return_index=True)[1]]
    on_x, on_y = (np.bincount(group, side[hit]).astype(np.float64) for side in (count_x, count_y))
    if len(first) < 3:
        fitted = np.log((on_x + 0.5) / (on_y + 0.5))
    else:
        fitted = expected_log_ratio(at[first], on_x, on_y, sloped=is_ratio)
    ratio = np.interp(np.arange(len(count_x)), hit, fitted.round(ROUNDED)[group])
    without = count_x[-1] + count_y[-1] > 0
    ratio[-1] = math.log((count_x[-1] + 0.5) / (count_y[-1] + 0.5)) if without else ratio[hit].mean()
    return np.asarray(ratio)


def from_the_inside(ratio: Array) -> Integers:
    """Cells by decreasing ratio; cells of equal ratio by their distance to a cell of larger ratio."""
    less, more = _to_a_smaller(ratio), _to_a_smaller(-ratio)
    return np.lexsort((more - less, -ratio))


def _to_a_smaller(ratio: Array) -> Integers:
    """The distance of each cell to the nearest one of smaller ratio; outputs without a number are next to nothing."""
    ratios, nearest = ratio.tolist(), [len(ratio)] * len(ratio)
    for step in (1, -1):
        smaller: list[int] = []  # the cells before that may be the nearest smaller one of a later cell
        for place in range(len(ratios) - 1)[::step]:
            while smaller and ratios[smaller[-1]] >= ratios[place]:
                smaller.pop()
            if smaller:
                nearest[place] = min(nearest[place], abs(place - smaller[-1]))
            smaller.append(place)
    return np.array(nearest)
