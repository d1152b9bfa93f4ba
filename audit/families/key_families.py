"""Events by a part of the output where another part, such as a key, has one value.

In (key, value) pairs a leak of one key among hundreds changes neither the law of the keys nor, by much, that of the
values, and a sum over both cannot show it. Each key has its own comparison of the values that go with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import Columns, Conditional, leave_out
from .learned_scores import chosen_columns
from .number_families import Family
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_MOST_COLUMNS = 64  # most columns of outputs that are looked at, in pairs
_MOST_KEYS = 1_000
_LOOKED_AT, _PER_KEY = 2_000, 4  # runs that show whether a column repeats, and how often on average
_BINS = 16
_LEAST_HITS = 8
_CLEAR = 4.0  # standard errors; of 6,000 differences that are noise, the largest is 3.8 on average
_SINGLE, _TOGETHER = 3, 24  # cases with half-lines of their own, and those of a sum


def key_families(columns: Columns, read: PilotSplit) -> Iterator[Family[Any]]:
    """Events by one column given the value of another, for the values where the first half shows a difference.

    Parameters
    ----------
    columns : Columns
    read : PilotSplit
        Columns of the pilot outputs, shape (columns, runs).
    """
    if not 2 <= len(read.learn_x) <= _MOST_COLUMNS:
        return
    cases = _clear_cases(columns, read.learn_x, read.learn_y)
    if not cases:
        return
    chosen = Conditional(columns, tuple(case for _, case in cases[:_TOGETHER]))
    given = read.map(lambda part: np.array([np.where(part[k] == at, part[v], np.nan) for k, at, v in chosen.cases]))
    yield from chosen_columns(chosen, given, single=_SINGLE)


def _clear_cases(columns: Columns, x: Array, y: Array) -> list[tuple[float, tuple[int, float, int]]]:
    """Cases with a clear difference, the clearest first: the distance, and (key column, value, column)."""
    found: dict[tuple[int, float], tuple[float, tuple[int, float, int]]] = {}
    cells = [_binned(*both) for both in zip(x, y, strict=True)]
    for key, both in enumerate(zip(x, y, strict=True)):
        if not _repeats(both[0][:_LOOKED_AT]):
            continue
        known = np.unique(np.concatenate(both))
        known = known[~np.isnan(known)][: _MOST_KEYS + 1]
        if len(known) > _MOST_KEYS:
            name = columns.names[key]
            leave_out("values of keys", f"{name} has more than {_MOST_KEYS:,} values, which were not examined singly")
        if not 2 <= len(known) <= _MOST_KEYS:
            continue
        places = [np.minimum(np.searchsorted(known, side), len(known) - 1) for side in both]
        is_key = [~np.isnan(side) for side in both]
        for column in range(len(x)):
            if column == key:
                continue
            counts = [
                np.bincount(place[ok] * _BINS + cell[ok], minlength=len(known) * _BINS).reshape(-1, _BINS)
                for place, cell, ok in zip(places, cells[column], is_key, strict=True)
            ]
            for value, distance in zip(known.tolist(), _distances(*counts).tolist(), strict=True):
                if distance >= _CLEAR and distance > found.get((key, value), (0.0, None))[0]:
                    found[key, value] = distance, (key, value, column)
    return sorted(found.values(), reverse=True)


def _repeats(values: Array) -> bool:
    return 1 < len(np.unique(values)) <= len(values) / _PER_KEY


def _binned(x: Array, y: Array) -> list[npt.NDArray[np.int64]]:
    """The bin of each number among pooled quantiles; NaN is in the last bin."""
    pooled = np.sort(np.concatenate([x[:_LOOKED_AT], y[:_LOOKED_AT]]))
    pooled = pooled[~np.isnan(pooled)]
    if len(pooled) == 0:
        return [np.zeros(len(side), dtype=np.int64) for side in (x, y)]
    edges = np.unique(pooled[(np.linspace(0.0, 1.0, _BINS)[1:-1] * (len(pooled) - 1)).astype(np.int64)])
    return [np.searchsorted(edges, side, side="right") for side in (x, y)]


def _distances(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> Array:
    """Largest difference of the counts up to a bin, or beyond it, in standard errors, for each row of counts."""
    largest = np.zeros(len(x))
    for step in (1, -1):
        on_x, on_y = (side[:, ::step].cumsum(axis=1)[:, :-1] for side in (x, y))
        hits = on_x + on_y
        distance = np.where(hits >= _LEAST_HITS, np.abs(on_x - on_y) / np.sqrt(np.maximum(hits, 1)), 0.0)
        largest = np.maximum(largest, distance.max(axis=1))
    return largest
