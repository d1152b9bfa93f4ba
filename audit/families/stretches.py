"""Stretches of neighbouring values of a score, from one end of its half-lines to another.

A small excess in an interval amid other values shows in no half-line, and the cells of largest raw ratio are mostly
chance finds. The stretch that lies farthest above a line p = slope·q + intercept, in standard errors, adds up what many
neighbouring values show a little of. Its counts are those of the pilot that found it, as the best of thousands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.events import Intervals, Scored
from ..events.scores import Number, Score
from ..inference.direction import Direction
from ..inference.supporting_lines import Line
from .number_families import Family, HalfLines, OfScore

Array = npt.NDArray[np.float64]

_PAIRS = 2_000_000  # pairs of ends that are compared with a line, of all scores together
_RUNS = 10  # pilot runs for each end
_LEAST_VARIANCE = 10.0  # of the hits of a stretch; some ten hits


def stretch_families(families: Sequence[Family[Any]], lines: Sequence[tuple[Direction, Line]]) -> Iterator[Family[Any]]:
    """For each score with half-lines, the stretches that lie farthest above these lines in these directions."""
    with_ends = [(family, *read) for family in families if (read := _half_lines(family)) is not None]
    most = math.isqrt(_PAIRS // max(len(with_ends), 1))
    for family, score, half_lines in with_ends:
        ordered = np.argsort(half_lines.cuts, kind="stable")
        ends_wanted = min(most, family.runs // _RUNS)
        places = ordered[np.unique(np.linspace(0, len(ordered) - 1, ends_wanted).astype(np.int64))]
        hits = {"x": family.hits_x[places], "y": family.hits_y[places]}
        found = {
            _farthest(hits[direction], hits["y" if direction == "x" else "x"], family.runs, line)
            for direction, line in lines
        }
        if stretches := sorted(pair for pair in found if pair is not None):
            first, last = np.array(stretches).T
            pairs = zip(places[first].tolist(), places[last].tolist(), strict=True)
            ends = tuple(half_lines.between(*pair) for pair in pairs)
            hits_x, hits_y = (side[last] - side[first] for side in hits.values())
            build = _Stretches(score, ends, half_lines.others)
            yield Family(hits_x, hits_y, family.runs, build, is_learned=True)


def _half_lines(family: Family[Any]) -> tuple[Score, HalfLines] | None:
    """A score and its half-lines {score ≤ t}; None if these are not the family's events."""
    score: Score = Number()
    build: object = family.build
    if isinstance(build, OfScore):
        score, build = build.score, build.build
    return (score, build) if isinstance(build, HalfLines) and build.below else None


def _farthest(p: Array, q: Array, runs: int, line: Line) -> tuple[int, int] | None:
    """Between which two places cumulated hits p lie farthest above the line, in standard errors; None if nowhere."""
    above, variance = p - line.slope * q, p + line.slope**2 * q
    spread = variance - variance[:, None]
    spread[spread < _LEAST_VARIANCE] = math.inf
    excess = above - above[:, None] - line.intercept * runs
    first, last = divmod(int(np.argmax(excess / np.sqrt(spread))), len(p))
    return (first, last) if excess[first, last] > 0.0 and first < last else None


@dataclass(frozen=True, slots=True)
class _Stretches:
    score: Score
    ends: tuple[tuple[float, float], ...]
    others: bool  # whether some pilot outputs are not numbers; the complement then contains them

    def __call__(self, index: int, inside: bool) -> Intervals | Scored:
        low, high = self.ends[index]
        event = Intervals(((low, high),))
        if not inside:
            below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
            event = Intervals(((-math.inf, below), (above, math.inf)), self.others)
        return event if isinstance(self.score, Number) else Scored(self.score, event)
