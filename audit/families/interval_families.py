"""Intervals between two thresholds of a score.

A small excess in an interval amid other values shows in no half-line, and the cells of largest raw ratio are mostly
chance finds. The interval that lies farthest above a line p = slope·q + intercept, in standard errors, adds up what
many neighbouring values show a little of. It is the best of many thousands, and the same pilot counts it, so its excess
looks larger than it is.

Statistics of several columns are scores too. A total that is kept exact, a norm that is clipped, or two values with the
same noise show in no single column, and a learned sum over columns shows a change of the whole law, not of one place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import OF_ALL, Columns, Statistics
from ..events.outputs import Outputs
from ..events.scores import Column, Number, Score
from ..inference.betting_test import Line
from ..inference.boundary_test import Direction
from .number_families import Family, HalfLines, OfScore, OneInterval, named, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_PAIRS = 2_000_000  # pairs of thresholds that are compared with a line, of all scores together: some 10 ms
_RUNS = 10  # fewest pilot runs for each threshold: more thresholds than that only separate single outputs
# Fewest hits of an interval on both datasets together, for a slope of 1: with fewer, its standard error is not known.
_LEAST_VARIANCE = 10.0
_MOST_COMPARED = 64  # columns whose differences are statistics too


def interval_families(
    families: Sequence[Family[Any]], lines: Sequence[tuple[Direction, Line]]
) -> Iterator[Family[Any]]:
    """For each score with half-lines, the intervals that lie farthest above these lines in these directions."""
    with_cuts = [(family, *read) for family in families if (read := _half_lines(family)) is not None]
    most = math.isqrt(_PAIRS // max(len(with_cuts), 1))
    for family, score, half_lines in with_cuts:
        ordered = np.argsort(half_lines.cuts, kind="stable")  # cuts of two ladders, one after the other
        wanted = min(most, family.runs // _RUNS)
        places = ordered[np.unique(np.linspace(0, len(ordered) - 1, wanted).astype(np.int64))]
        hits = {"x": family.hits_x[places], "y": family.hits_y[places]}
        found = {
            _farthest(hits[direction], hits["y" if direction == "x" else "x"], family.runs, line)
            for direction, line in lines
        }
        if intervals := sorted(pair for pair in found if pair is not None):
            first, last = np.array(intervals).T
            pairs = zip(places[first].tolist(), places[last].tolist(), strict=True)
            ends = np.array([half_lines.between(*pair) for pair in pairs])
            hits_x, hits_y = (side[last] - side[first] for side in hits.values())
            yield named(score, Family(hits_x, hits_y, family.runs, OneInterval(ends, half_lines.others)))


def statistic_families(columns: Columns, read: PilotSplit, places: Sequence[int]) -> Iterator[Family[Any]]:
    """The half-lines of each statistic of the columns at these places; none for one column.

    Many columns have no differences of two.

    Parameters
    ----------
    columns : Columns
    read : PilotSplit
        Columns of the pilot outputs, shape (columns, runs).
    places : sequence of int
    """
    if len(places) < 2:
        return
    statistics = Statistics(columns, tuple(places))
    for statistic in range(len(statistics.names) if len(places) <= _MOST_COMPARED else OF_ALL):

        def values(part: Outputs, statistic: int = statistic) -> Array:
            return statistics.of_columns(part, statistic)

        half_lines = next(value_families(Column(statistics, statistic), read.map(values), fit=False), None)
        if half_lines is not None:
            yield replace(half_lines, for_intervals=True)


def _half_lines(family: Family[Any]) -> tuple[Score, HalfLines] | None:
    """A score and its half-lines {score ≤ t}; None if these are not the family's events."""
    score: Score = Number()
    build: object = family.build
    if isinstance(build, OfScore):
        score, build = build.score, build.build
    return (score, build) if isinstance(build, HalfLines) and build.below else None


def _farthest(p: Array, q: Array, runs: int, line: Line) -> tuple[int, int] | None:
    """The two places between which cumulative hits p lie farthest above the line, in standard errors, if any do."""
    above, variance = p - line.slope * q, p + line.slope**2 * q
    spread = variance - variance[:, None]
    spread[spread < _LEAST_VARIANCE] = math.inf
    excess = above - above[:, None] - line.intercept * runs
    first, last = divmod(int(np.argmax(excess / np.sqrt(spread))), len(p))
    return (first, last) if excess[first, last] > 0.0 else None
