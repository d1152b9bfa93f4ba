"""Copies among outputs drawn elsewhere, kept apart because all other checks look at runs that the audit drew.

A passage occurs again, or many outputs occur equally often. The copies come from a file that was read twice, files
that overlap, or runs with the same seed.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.outputs import Outputs, merge, outcome_key, row_keys
from ..inference.binomial_tails import clopper_pearson
from ..inference.dependence import MOST_COPIES, copies_pvalue
from ..sampling.output_hashes import mixed
from .findings import Finding, HealthCheck

_CAUSE = "A file was read twice, files overlap, or runs had the same seed, so the runs are not independent."

Codes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of successive outputs that occurs at two places."""

    first: int  # where it begins, from 0 on
    second: int
    length: int
    copies: int  # outputs in passages that occur before


@dataclass(frozen=True, slots=True)
class _Side:
    """The outputs on one dataset, by their `codes_of`."""

    name: str
    codes: Codes
    times: npt.NDArray[np.int64]  # how often each different output occurs

    def likeliest(self, alpha: float) -> float:
        """Return an upper confidence limit for the probability of every single output."""
        return min(1.0, clopper_pearson(int(self.times.max()), len(self.codes), alpha=2.0 * alpha)[1][0])


def copied_outputs(
    x: Outputs, y: Outputs, *, in_order: tuple[bool, bool], alpha: float
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of copies on one side, and of outputs on y that are copies of those on x.

    Each of the five checks raises a false alarm with probability at most `alpha`. Passages mean something on a side
    whose outputs are `in_order` of the runs; how often outputs occur means something on any side.
    """
    if len(x) == 0 or len(y) == 0:
        return [], []
    sides = _sides(x, y)
    limits = [side.likeliest(alpha / 4) for side in sides]  # a check of both sides uses both
    own: list[Finding] = []
    for side, is_in_order, limit in zip(sides, in_order, limits, strict=True):
        own += (_repeats(side, limit, alpha) if is_in_order else []) or _equal_counts(side, alpha)
    return own, _shared(*sides, min(limits), alpha) if all(in_order) else []


def _repeats(side: _Side, likeliest: float, alpha: float) -> list[Finding]:
    """Find outputs on one dataset that repeat earlier ones in the same order."""
    runs = len(side.codes)
    length = passage_length(runs * (runs - 1) / 2, agreement(likeliest), alpha / 2)
    if length is None or (found := first_passage(side.codes, side.codes, length)) is None:
        return []
    message = (
        f"{found.copies:,} of {runs:,} outputs on {side.name} repeat earlier ones in the same order: "
        f"{_runs(found.second, found.length)} equal {_runs(found.first, found.length)}. {_CAUSE} Remove the "
        "copies."
    )
    return [Finding(HealthCheck.DUPLICATE_OUTPUTS, message)]


def _shared(x: _Side, y: _Side, likeliest: float, alpha: float) -> list[Finding]:
    """Find outputs on y that repeat those on x in the same order."""
    runs = len(y.codes)
    length = passage_length(len(x.codes) * runs, likeliest, alpha / 2)
    if length is None or (found := first_passage(x.codes, y.codes, length)) is None:
        return []
    message = (
        f"{found.copies:,} of {runs:,} outputs on y repeat outputs on x in the same order: "
        f"{_runs(found.second, found.length)} on y equal {_runs(found.first, found.length)} on x. The same outputs "
        "were passed for both datasets, or runs on x and y had the same seed, and the test needs independent runs. "
        "Remove the copies."
    )
    return [Finding(HealthCheck.SHARED_RANDOMNESS, message)]


def _equal_counts(side: _Side, alpha: float) -> list[Finding]:
    """Find many outputs that occur equally often, in any order."""
    numbers = np.bincount(side.times[side.times <= MOST_COPIES + 1], minlength=MOST_COPIES + 2)
    pvalue, copies = copies_pvalue(numbers, len(side.codes))
    if pvalue > alpha:
        return []
    fewer, same, more = (f"{number:,}" for number in numbers[copies - 1 : copies + 2].tolist())
    message = (
        f"on {side.name}, {fewer} different outputs occur {_times(copies - 1)}, {same} {_times(copies)}, and {more} "
        f"{_times(copies + 1)}, which independent runs do not give. A file was read twice, files overlap, or noise was "
        "used in several runs. Remove the copies."
    )
    return [Finding(HealthCheck.DUPLICATE_OUTPUTS, message)]


def _runs(start: int, length: int) -> str:
    return f"runs {start + 1:,} to {start + length:,}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def agreement(likeliest: float) -> float:
    """Return the largest probability that two runs on one dataset agree, if `likeliest` is the largest of an output."""
    return likeliest if likeliest <= 0.5 else likeliest**2 + (1.0 - likeliest) ** 2


def passage_length(pairs: float, agreement: float, alpha: float) -> int | None:
    """Return the least length at which two windows of any of `pairs` pairs are equal with probability ≤ `alpha`."""
    if agreement >= 1.0 or pairs < 1:
        return None
    return max(1, math.ceil((math.log(pairs) - math.log(alpha)) / -math.log(agreement)))


def first_passage(x: Codes, y: Codes, length: int) -> Passage | None:
    """Return the first passage of at least `length` outputs on y that occurs on x.

    If both are the same array, it repeats an earlier one without overlap.
    """
    on_x = _marks(x, length)
    on_y = on_x if x is y else _marks(y, length)
    if min(len(on_x), len(on_y)) == 0:
        return None
    order = np.argsort(on_x)
    ordered = on_x[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))  # of each different mark
    earliest = np.minimum.reduceat(order, starts)
    # Where the windows on y occur first on x, if they do.
    if x is y:
        first = np.empty_like(order)
        first[order] = np.repeat(earliest, np.diff(starts, append=len(order)))
        again = np.flatnonzero(np.arange(len(first)) - first >= length)
    else:
        first = earliest[np.minimum(np.searchsorted(ordered[starts], on_y), len(starts) - 1)]
        again = np.flatnonzero(on_x[first] == on_y)
    if len(again) == 0:
        return None
    second = int(again[0])
    start = int(first[second])
    longest = min(len(x) - start, len(y) - second, second - start if x is y else len(y))
    differ = np.flatnonzero(x[start : start + longest] != y[second : second + longest])
    found = int(differ[0]) if len(differ) else longest
    if found < length:  # different windows with equal marks
        return None
    change = np.zeros(len(y) + 1, np.int64)
    change[again] += 1
    change[again + length] -= 1
    return Passage(start, second, found, int(np.count_nonzero(np.cumsum(change))))


def _sides(x: Outputs, y: Outputs) -> tuple[_Side, _Side]:
    """Return both sides with codes that can be compared."""
    codes = codes_of(np.concatenate(merge([x], [y])))
    first, second = (
        _Side(name, part, np.unique(part, return_counts=True)[1])
        for name, part in (("x", codes[: len(x)]), ("y", codes[len(x) :]))
    )
    return first, second


def codes_of(outputs: Outputs) -> Codes:
    """Return a code for each output: equal outputs have equal codes, different vectors nearly always not."""
    if outputs.dtype == object:
        places: dict[Any, int] = {}
        keys = map(outcome_key, outputs.tolist())
        return np.fromiter((places.setdefault(key, len(places)) for key in keys), np.uint64, len(outputs))
    return row_keys(outputs if outputs.ndim == 2 else outputs[:, None])


def _marks(codes: Codes, length: int) -> Codes:
    """Return a hash for each window of `length` successive codes, none if there are fewer codes."""
    if len(codes) < length:
        return codes[:0]
    marks, done = mixed(codes), 1
    while done < length:
        step = min(done, length - done)  # two windows of length `done` cover one of length `done + step`
        marks = mixed(3 * marks[:-step] + marks[step:])
        done += step
    return marks
