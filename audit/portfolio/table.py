"""The outcomes of a pilot as a column: the log ratio of each, shrunk towards 0.

Each half of the pilot is scored by what the other half taught, and the main runs by what both did.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..events.events import Event, Intervals, Outcomes
from ..events.features import leave_out
from ..events.outputs import Outputs, outcome_key, outcome_list, row_keys
from .cells import ATOMS, REPEATED, Array, Column, Integers, Listed, scored_crosswise
from .curve import shrunken_log_ratios

FEW = 64
"""Outcomes that are compared on the whole pilot, whether or not they recur."""

_MOST_NUMBERS = 16_384  # numbers or words of known outcomes: at most 240 kB in a file of results, one line each
_RECURRING, _MOSTLY = 0.2, 0.5  # shares of runs in outcomes that recur (docs/decisions/0025-limits.md)
MOST_OUTCOMES = 100_000
"""Most different outcomes whose counts are kept, the commonest ones."""

_CLOSE = 1 << 20  # as many possible rows of integers are counted in an array


@dataclass(frozen=True, slots=True, eq=False)
class TableScore(Listed):
    """A number for each listed outcome, such as its log ratio; 0 for any other."""

    outcomes: Outputs
    numbers: Array
    column_names: tuple[str, ...] = ()
    _places: dict[object, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = {outcome_key(value): place for place, value in enumerate(outcome_list(self.outcomes))}
        object.__setattr__(self, "_places", places)

    def values(self, outputs: Outputs) -> Array:
        if outputs.dtype != object:
            different, inverse = _different(outputs)
            keys = (outcome_key(value) for value in outcome_list(different))
            places = np.array([self._places.get(key, -1) for key in keys], dtype=np.int64)[inverse]
        else:
            known = (self._places.get(outcome_key(value), -1) for value in outputs)
            places = np.fromiter(known, dtype=np.int64, count=len(outputs))
        return np.append(self.numbers, 0.0)[places]

    def event(self, where: Intervals) -> Event:
        others = bool(where.contains(np.zeros(1))[0])
        listed = self.outcomes[where.contains(self.numbers) != others]
        return Outcomes(tuple(outcome_list(listed)), others=others, column_names=self.column_names)

    def __str__(self) -> str:
        return f"log ratio of {len(self.numbers):,} outcomes"


def _different(outputs: Outputs) -> tuple[Outputs, Integers]:
    keys = row_keys(outputs) if outputs.ndim == 2 else outputs
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return outputs[first], inverse.reshape(-1)


def table_columns(x: Outputs, y: Outputs) -> Iterator[Column]:
    """Columns of outcomes; none for outputs that rarely recur.

    One has a place for each of the commonest outcomes. If there are many, which the whole pilot barely distinguishes,
    another column has the log ratios, scored crosswise.
    """
    are_floats = x.dtype.kind == y.dtype.kind == "f" and x.ndim == 1 and 2 * len(x) <= MOST_OUTCOMES
    # To sort them takes a fifth of the time of counting each one in every part.
    if are_floats and _rarely_recur(np.unique(np.concatenate([x, y]), return_counts=True)[1]):
        return
    half = len(x) // 2
    table = count_outcomes([x[:half], y[:half], x[half:], y[half:]])
    is_cut = x.dtype != object and x.ndim == 1 and bool(np.isfinite(table.values).all())
    seen = table.counts.sum(axis=0)
    if len(table) < 2 or _rarely_recur(seen):
        return
    most = min(ATOMS - 1, max(_MOST_NUMBERS // _width(table.values), 1))
    places = np.argsort(-seen, kind="stable")[:most]
    places = places[seen[places] >= REPEATED]  # those seen once say nothing of how much outcomes differ
    if len(places) == 0:
        return
    single = TableScore(table.values[places], np.arange(1.0, len(places) + 1.0))
    is_few = len(table) <= FEW
    yield Column(single, single.values(x), single.values(y), is_part=not is_cut, curve="each" if is_few else None)
    if is_few:
        return
    least = REPEATED if _recurring(seen) >= _MOSTLY or x.dtype.kind == "f" else 1
    parts = table.counts[:2], table.counts[2:], table.counts[:2] + table.counts[2:]
    first, second, whole = (_learned(table, counts, least) for counts in parts)
    halves = [(x[:half], y[:half]), (x[half:], y[half:])]
    yield scored_crosswise(whole, (first, second), halves, TableScore.values)


def _recurring(seen: Integers) -> float:
    """The share of runs whose outcome recurs, of how often each outcome was seen."""
    return float(seen[seen >= REPEATED].sum()) / max(int(seen.sum()), 1)


def _rarely_recur(seen: Integers) -> bool:
    return len(seen) > FEW and _recurring(seen) < _RECURRING


def _learned(table: OutcomeCounts, counts: Integers, least: int) -> TableScore:
    """The score that counts on x and on y teach, of outcomes with at least so many counts."""
    count_x, count_y = counts.astype(np.float64)
    known = np.flatnonzero(count_x + count_y >= least)
    ratios = shrunken_log_ratios(count_x[known], count_y[known])
    most = max(_MOST_NUMBERS // _width(table.values), 1)
    listed = np.argsort(-(count_x + count_y)[known] * np.abs(ratios), kind="stable")[:most]
    return TableScore(table.values[known[listed]], ratios[listed])


def _width(values: Outputs) -> int:
    """Numbers and words in an outcome, on average."""
    if values.dtype != object:
        return int(values.shape[1]) if values.ndim == 2 else 1
    some = values[:100].tolist()
    return max(sum(map(_words, some)) // len(some), 1)


def _words(value: object) -> int:
    return sum(map(_words, value)) if type(value) is tuple else 1


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Different outcomes and how often each occurred in the four parts of a pilot."""

    values: Outputs
    counts: Integers  # shape (4, outcomes): learned from on x and on y, held out on x and on y

    def __len__(self) -> int:
        return len(self.values)


def count_outcomes(parts: Sequence[Outputs]) -> OutcomeCounts:
    """Counts of the outcomes of the parts of a pilot; of more than 100,000 different ones, the commonest."""
    if any(part.dtype == object for part in parts):
        counted = _of_objects([outcome_list(part) for part in parts])
    else:
        counted = _of_numbers(np.concatenate(parts), [len(part) for part in parts])
    if len(counted) > MOST_OUTCOMES:
        common = np.argsort(-counted.counts.sum(axis=0), kind="stable")[:MOST_OUTCOMES]
        if np.count_nonzero(counted.counts.sum(axis=0) > 1) > MOST_OUTCOMES:
            leave_out("outcomes", f"of {len(counted):,} outcomes, the {MOST_OUTCOMES:,} commonest were counted singly")
        common.sort()
        return OutcomeCounts(counted.values[common], counted.counts[:, common])
    return counted


def _of_numbers(outputs: Outputs, sizes: list[int]) -> OutcomeCounts:
    ends = np.cumsum(sizes)[:-1]
    if outputs.dtype.kind in "iu" and outputs.size:
        rows = outputs.reshape(len(outputs), -1)
        least, most = rows.min(axis=0), rows.max(axis=0)
        ranges = [int(high) - int(low) + 1 for low, high in zip(least, most, strict=True)]
        if max(map(int, most)) < 1 << 62 and math.prod(ranges) < _CLOSE:
            codes, counts = _of_close(rows, least, ranges, ends)
            values = np.stack(np.unravel_index(codes, ranges), axis=1) + least.astype(np.int64)
            return OutcomeCounts(values.astype(outputs.dtype).reshape(-1, *outputs.shape[1:]), counts)
    values, place = _different(outputs)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in np.split(place, ends)])
    return OutcomeCounts(values, counts)


def _of_close(rows: Outputs, least: Outputs, ranges: list[int], ends: Integers) -> tuple[Integers, Integers]:
    """Codes of the integer rows that occur, in the order of an array with these ranges, and their counts."""
    codes = np.zeros(len(rows), dtype=np.int64)
    for column, (low, width) in enumerate(zip(least.tolist(), ranges, strict=True)):
        codes *= width
        codes += rows[:, column].astype(np.int64) - low
    counts = np.array([np.bincount(part, minlength=math.prod(ranges)) for part in np.split(codes, ends)])
    found = np.flatnonzero(counts.any(axis=0))
    return found, counts[:, found]


def _of_objects(parts: list[list[Any]]) -> OutcomeCounts:
    places: dict[Any, int] = {}
    values: list[Any] = []
    tallies = []
    for part in parts:
        found = Counter(part)  # a key is computed once for equal outputs
        seen: Counter[int] = Counter()
        for value, times in found.items():
            place = places.setdefault(outcome_key(value), len(values))
            if place == len(values):
                values.append(value)
            seen[place] += times
        tallies.append(seen)
    counts = np.zeros((len(parts), len(values)), dtype=np.int64)
    for row, seen in zip(counts, tallies, strict=True):
        row[list(seen)] = list(seen.values())
    return OutcomeCounts(np.fromiter(values, dtype=object, count=len(values)), counts)
