"""Events by sorted coordinates and the gaps between them, where these tell more than the coordinates themselves.

A vector whose coordinates are exchangeable, such as a shuffled list, tells nothing by single coordinates. What differs
may be its largest coordinate, or the gap between two neighbours in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import Coordinates, OrderStatistics
from ..events.outputs import Outputs
from ..events.scores import Column
from .column_screen import screened
from .learned_scores import MOST_LEARNED, additive_scores
from .number_families import Family, of_learned, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_ALL_RANKS, _ENDS, _BETWEEN = 64, 16, 32  # longest vector with all ranks; ranks of others at each end, and between
_CLEAR, _BETTER = 3.0, 1.1  # distance that sorted columns need, and its ratio to that of the best other column
_SINGLE = 3  # sorted columns and gaps that have half-lines of their own
_LOOKED_AT, _NUMBERS = 20_000, 4_000_000  # runs that are looked at first, and numbers in them


def order_families(vectors: PilotSplit, width: int, *, together: bool) -> Iterator[Family[Any]]:
    """Events by order statistics and gaps of vectors; none if a quick look shows that coordinates tell as much.

    Parameters
    ----------
    vectors : PilotSplit
        Vectors of one width.
    width : int
    together : bool
        Whether to fit sums over all columns jointly, which takes longest.
    """
    if width < 2:
        return
    ranks: tuple[int, ...] = ()
    if width > _ALL_RANKS:
        between = np.linspace(_ENDS, width - 1 - _ENDS, _BETWEEN).round().astype(int).tolist()
        ranks = tuple(sorted({*range(_ENDS), *between, *range(width - _ENDS, width)}))
    columns, looked_at = OrderStatistics(width, ranks), max(min(_LOOKED_AT, _NUMBERS // width), 1)
    found = screened(*(columns.read(side[:looked_at]) for side in (vectors.learn_x, vectors.learn_y)))
    if found.max() < _CLEAR or found.max() < _BETTER * _distance_without_order(vectors, width):
        return
    read = vectors.map(columns.read)
    for place in np.argsort(-found, kind="stable")[:_SINGLE].tolist():

        def column(part: Outputs, place: int = place) -> Array:
            return np.asarray(part[place])

        yield from value_families(Column(columns, place), read.map(column), fit=True)
    learned = [side[:, :MOST_LEARNED] for side in (read.learn_x, read.learn_y)]
    scores = additive_scores(columns, *learned, together=together)
    for score in scores:
        yield from of_learned(score, score.add_up(read.held_x), score.add_up(read.held_y))


def _distance_without_order(vectors: PilotSplit, width: int) -> float:
    """Largest distance of a coordinate, a difference of neighbours, or the sum of all coordinates."""
    largest = 0.0
    looked_at = max(min(_LOOKED_AT, _NUMBERS // width), 1)
    sides = vectors.learn_x[:looked_at], vectors.learn_y[:looked_at]
    for columns in (Coordinates(width), Coordinates(width, differences=True)):
        largest = max(largest, float(screened(*(columns.read(side) for side in sides)).max()))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = (side.astype(np.float64).sum(axis=1)[None] for side in sides)
        return max(largest, float(screened(*sums).max()))
