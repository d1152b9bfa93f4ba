"""Families of candidate events, from half-lines to sets of outcomes, with their counts in the pilot.

A score is an estimate of the log-likelihood ratio of x against y, and a family is the nested events {score ≥ t} for
many t. Half-lines need no learning and a fitted curve hardly any, so they are counted on the whole pilot; other scores
are learned on one half of the pilot and counted on the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..events.features import Columns, Coordinates, leave_out
from ..events.leaves import Summaries, learn_leaves
from ..events.outputs import Outputs, as_vectors, row_keys, vector_width
from ..events.scores import Additive, Column, DifferentSizes, Forest, Number, Score, Weighted
from .column_screen import most_different
from .digit_families import last_digit_families, remainder_families
from .interval_families import statistic_families
from .key_families import key_families
from .keyed_value_families import keyed_value_families
from .learned_scores import MOST_LEARNED, additive_scores, forest
from .number_families import Family as Family
from .number_families import atoms, fitted_curve, of_learned, ordered_families, recurring_values, value_families
from .order_families import order_families
from .outcome_counts import count_outcomes
from .parity_families import parity_families
from .pilot_split import PilotSplit
from .product_families import product_families
from .quantile_cells import merged
from .released_families import released_families
from .shrunken_ratios import calibrated, log_likelihood
from .table_families import table_families
from .text_families import text_families

Array = npt.NDArray[np.float64]
Effort = Literal["quick", "sums", "trees"]
"""Scores learned from several columns: those that take milliseconds, all sums over columns, or trees as well."""

_MOST_COORDINATES = 64  # coordinates that are looked at singly, those that differ most
_TIE_NUMBERS = 4_000_000  # numbers in the runs that show whether coordinates are equal
_MOST_COLUMNS = 20_000  # beyond it only weighted sums are learned: other scores take 0.2 ms per column
_FITTED_COORDINATES = 8  # longest vector whose single coordinates are fitted with a curve
_TREES_MARGIN = 0.02  # trees cost twenty times as much as an additive score, so they have to be better
_JUDGED_ON = 5_000  # runs on each dataset that show whether trees are worth counting
_FEW_OUTCOMES, _LOOKED_AT = 8, 2_000  # with so few outcomes in the first runs, a table learns everything
TABLE = 512
"""Most atoms of a continuous output, and most outcomes in a set of outputs that were seen on one side."""


def event_families(
    split: PilotSplit, *, effort: Effort = "sums", with_statistics: bool = False
) -> Iterator[Family[Any]]:
    """All families of events worth trying for these outputs, simple ones first.

    With statistics also families that are `for_intervals`, of vectors and of outputs with several numbers.
    """
    width = vector_width(*split)
    if width:
        yield from _vector_families(split, width, effort, with_statistics)
    elif split.learn_x.dtype == object:
        yield from _object_families(split, effort, with_statistics)
    elif split.learn_x.ndim == 1:
        yield from _scalar_families(split)


def _scalar_families(split: PilotSplit) -> Iterator[Family[Any]]:
    """Events by the output itself, which is a number."""
    values = split.ordered
    families = list(ordered_families(Number(), values, fit=True))
    yield from families
    yield from remainder_families(Number(), split)
    yield from last_digit_families(split)
    if _is_continuous(split.learn_x):
        yield from _atom_families(split, merged(values.learn_x, values.learn_y))
    else:
        yield from table_families(split, split, curve=fitted_curve(families))


def _vector_families(split: PilotSplit, width: int, effort: Effort, with_statistics: bool) -> Iterator[Family[Any]]:
    """Events by coordinates, by sums over them, and sets of vectors."""
    _note_limits(width, "coordinates")
    vectors = split.map(lambda part: as_vectors(part, width))
    singly = vectors
    if width > _MOST_COORDINATES:  # chosen on the first half and counted on the other
        singly = PilotSplit.in_half(vectors.held_x, vectors.held_y)
    for place in most_different(vectors.learn_x.T, vectors.learn_y.T, _MOST_COORDINATES):
        alone = Weighted(tuple(float(place == other) for other in range(width)))
        values = singly.map(alone.values)
        yield from value_families(alone, values, fit=width <= _FITTED_COORDINATES and effort != "quick")
        yield from recurring_values(alone, values.ordered)
        if width <= _FITTED_COORDINATES and effort != "quick":
            yield from remainder_families(alone, values)
            yield from last_digit_families(split, place)
    if width > 1:
        yield from _tie_families(vectors, width)
    scores: list[Additive] = []
    if width > _MOST_COLUMNS:
        for direction in _directions(vectors.learn_x, vectors.learn_y):
            linear = Weighted(direction)
            yield from of_learned(linear, linear.values(vectors.held_x), linear.values(vectors.held_y))
        if with_statistics:
            columns = Coordinates(width)
            yield from statistic_families(columns, vectors.map(columns.read), range(width))
    elif width > 1 and not _are_few(split.learn_x, split.learn_y):
        both = Coordinates(width), Coordinates(width, differences=True)
        for columns, own in zip(both, (effort, "sums" if effort == "trees" else effort), strict=True):
            read = vectors.map(columns.read)
            scores += (found := _sums(columns, read, own))
            yield from _learned_families(columns, read, found, own)
            if not columns.differences:
                yield from key_families(columns, read)
                yield from product_families(columns, read)
                yield from parity_families(columns, read)
                if with_statistics:
                    yield from statistic_families(columns, read, range(width))
        yield from released_families(vectors, width, together=True)
        yield from order_families(vectors, width, together=effort != "quick")
        weights = fisher_direction(vectors.learn_x, vectors.learn_y)
        if weights is not None:
            linear = Weighted(weights)
            yield from of_learned(linear, linear.values(vectors.held_x), linear.values(vectors.held_y))
    if not _is_continuous(split.learn_x):
        yield from table_families(split, split, scores=scores)


def _tie_families(vectors: PilotSplit, width: int) -> Iterator[Family[Any]]:
    """Events by coordinates that are equal or opposite, if any of the learned outputs has such coordinates."""
    sizes, looked_at = DifferentSizes(width), max(_TIE_NUMBERS // width, 1)
    if any(np.any(sizes.values(side[:looked_at]) < width) for side in (vectors.learn_x, vectors.learn_y)):
        yield from score_families(sizes, vectors)


def _object_families(split: PilotSplit, effort: Effort, with_statistics: bool) -> Iterator[Family[Any]]:
    """Events by the parts of outputs of any kind, by sums over them, and sets of outcomes."""
    leaves = learn_leaves(split.learn_x, split.learn_y)
    _note_limits(len(leaves.paths) + len(leaves.coded), "parts of outputs")
    read = split.map(leaves.read)  # once, because reading takes longest
    singly, own = read, slice(1, 1 + len(leaves.paths))
    if len(leaves.paths) > _MOST_COORDINATES:
        held = [np.array_split(side, 2, axis=1) for side in (read.held_x, read.held_y)]
        singly = PilotSplit(held[0][0], held[1][0], held[0][1], held[1][1])
    for place in most_different(read.learn_x[own], read.learn_y[own], _MOST_COORDINATES):
        column, path = place + 1, leaves.paths[place]
        score = Column(leaves, column) if path else Number()
        fit = len(leaves.paths) <= _FITTED_COORDINATES
        values = singly.map(itemgetter(column))
        yield from value_families(score, values, fit=fit)
        yield from recurring_values(score, values.ordered)
        if fit and effort != "quick":
            yield from remainder_families(score, values)
    for column in leaves.kinds:
        yield from value_families(Column(leaves, column), read.map(itemgetter(column)), fit=True)
    scores: list[Additive] = []
    if len(leaves.names) > 2 and not _are_few(split.learn_x, split.learn_y):
        scores = _sums(leaves, read, effort)
        yield from _learned_families(leaves, read, scores, effort)
        yield from key_families(leaves, read)
        yield from product_families(leaves, read)
        yield from parity_families(leaves, read)
        if with_statistics:
            yield from statistic_families(leaves, read, leaves.numbers)
        if len(leaves.builds) > 1:
            yield from _summary_families(split, effort)
    yield from keyed_value_families(split)
    yield from text_families(split)
    yield from table_families(split, split, scores=scores)


def _note_limits(width: int, what: str) -> None:
    """Note what is left out because outputs have very many coordinates or parts."""
    if width <= _MOST_COORDINATES:
        return
    left_out = [
        f"the {_MOST_COORDINATES} that differ most in the pilot were examined singly",
        "pairs, products, parities and trees of them were not examined",
        f"low bits were looked for in the first {_MOST_COORDINATES}",
    ]
    if what == "coordinates":
        left_out[-1] = f"low bits, and outputs on one dataset only, were looked for in the first {_MOST_COORDINATES}"
        left_out.append("some ranks of sorted coordinates were read")
        if width > _MOST_COLUMNS:
            left_out[-1] = "of learned scores only weighted sums were tried"
    leave_out("width", f"of {width:,} {what}, {'; '.join(left_out)}")


def _summary_families(split: PilotSplit, effort: Effort) -> Iterator[Family[Any]]:
    """Events by what outputs of different forms have in common."""
    columns = Summaries()
    read = split.map(columns.read)
    for column in range(len(columns.names)):
        yield from value_families(Column(columns, column), read.map(itemgetter(column)), fit=True)
    sums: Effort = "sums" if effort == "trees" else effort
    yield from _learned_families(columns, read, _sums(columns, read, sums), sums)
    yield from key_families(columns, read)


def _are_few(x: Outputs, y: Outputs) -> bool:
    """Whether there are so few different outcomes that a table learns everything."""
    return len(count_outcomes(PilotSplit(x[:_LOOKED_AT], y[:_LOOKED_AT], x[:0], y[:0]))) <= _FEW_OUTCOMES


def score_families(score: Score, split: PilotSplit, *, fit: bool = True) -> Iterator[Family[Any]]:
    """Events by a score that was not learned from the pilot."""
    yield from value_families(score, split.map(score.values), fit=fit)


def _sums(columns: Columns, read: PilotSplit, effort: Effort) -> list[Additive]:
    """Sums over columns; `read` holds the outputs' columns, shape (columns, runs)."""
    learn_x, learn_y = read.learn_x[:, :MOST_LEARNED], read.learn_y[:, :MOST_LEARNED]
    return list(additive_scores(columns, learn_x, learn_y, together=effort != "quick"))


def _learned_families(
    columns: Columns, read: PilotSplit, scores: list[Additive], effort: Effort
) -> Iterator[Family[Any]]:
    """Events by these sums over columns, and by trees."""
    for score in scores:
        yield from of_learned(score, score.add_up(read.held_x), score.add_up(read.held_y))
    learn_x, learn_y = read.learn_x[:, :MOST_LEARNED], read.learn_y[:, :MOST_LEARNED]
    if effort == "trees" and (trees := forest(columns, learn_x, learn_y)) is not None:
        if not _gains_more(trees, scores, read):
            return
        for family in of_learned(trees, trees.add_up(read.held_x), trees.add_up(read.held_y)):
            yield replace(family, margin=_TREES_MARGIN)


def _gains_more(trees: Forest, scores: list[Additive], read: PilotSplit) -> bool:
    """Whether trees explain some held-out runs better than each sum over columns, so that they are worth counting."""
    x, y = read.held_x[:, :_JUDGED_ON], read.held_y[:, :_JUDGED_ON]
    rows = np.concatenate([x, y], axis=1)
    on_x = np.repeat([1.0, 0.0], [x.shape[1], y.shape[1]])
    judged: list[Additive | Forest] = [trees, *scores]
    gains = []
    for score in judged:
        values = score.add_up(rows)
        if np.isfinite(values).all():
            level, slope = calibrated(values, on_x, 1.0 - on_x)
            gains.append(log_likelihood(level + slope * values, on_x, 1.0 - on_x))
    return gains[0] >= max(gains)


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
    found = atoms(pooled)
    if 0 < len(found) <= TABLE:  # more of them are the grid of a sampler, which tells low bits and not values
        yield from table_families(split.map(lambda part: part[np.isin(part, found)]), split)
