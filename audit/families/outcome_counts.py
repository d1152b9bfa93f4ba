"""The different outcomes of a pilot, with counts instead of lists of outputs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import leave_out
from ..events.outputs import Outputs, outcome_key, outcome_list, row_keys
from .pilot_split import PilotSplit

Integers = npt.NDArray[np.int64]

MOST_OUTCOMES = 100_000
"""Most different outcomes whose counts are kept, the commonest ones."""

_CLOSE = 1 << 20  # as many possible rows of integers are counted in an array


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Different outcomes and how often each occurred in the four parts of a pilot.

    Attributes
    ----------
    values : ndarray, shape (outcomes,) or (outcomes, n_coords)
    counts : ndarray of int, shape (4, outcomes)
        Outputs of the parts in their order: learned from on x and on y, held out on x and on y.
    """

    values: Outputs
    counts: Integers

    def __len__(self) -> int:
        return len(self.values)

    def at(self, chosen: npt.NDArray[Any]) -> OutcomeCounts:
        """The chosen outcomes, by index or mask."""
        return OutcomeCounts(self.values[chosen], self.counts[:, chosen])


def count_outcomes(split: PilotSplit) -> OutcomeCounts:
    """Counts of the outcomes of a pilot; of more than 100,000 different ones, the commonest.

    Examples
    --------
    >>> counted = count_outcomes(PilotSplit.in_half(np.array([7, 7, 7, 3]), np.array([3, 7, 5, 5])))
    >>> counted.values.tolist(), counted.counts.tolist()
    ([3, 5, 7], [[0, 0, 2], [1, 0, 1], [1, 0, 1], [0, 2, 0]])
    """
    parts = list(split)
    if any(part.dtype == object for part in parts):
        counted = _of_objects([outcome_list(part) for part in parts])
    else:
        counted = _of_numbers(np.concatenate(parts), [len(part) for part in parts])
    if len(counted) > MOST_OUTCOMES:
        common = np.argsort(-counted.counts.sum(axis=0), kind="stable")[:MOST_OUTCOMES]
        if np.count_nonzero(counted.counts.sum(axis=0) > 1) > MOST_OUTCOMES:
            leave_out("outcomes", f"of {len(counted):,} outcomes, the {MOST_OUTCOMES:,} commonest were counted singly")
        counted = counted.at(np.sort(common))
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
    keys = row_keys(outputs) if outputs.ndim == 2 else outputs
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    counts = np.array([np.bincount(part, minlength=len(first)) for part in np.split(place.reshape(-1), ends)])
    return OutcomeCounts(outputs[first], counts)


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
        hits: Counter[int] = Counter()
        for value, times in found.items():
            place = places.setdefault(outcome_key(value), len(values))
            if place == len(values):
                values.append(value)
            hits[place] += times
        tallies.append(hits)
    counts = np.zeros((len(parts), len(values)), dtype=np.int64)
    for row, hits in zip(counts, tallies, strict=True):
        row[list(hits)] = list(hits.values())
    return OutcomeCounts(np.fromiter(values, dtype=object, count=len(values)), counts)
