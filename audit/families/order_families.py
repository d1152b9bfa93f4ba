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

_MOST_COORDINATES = 64  # longest vector that is sorted
_CLEAR, _BETTER = 3.0, 1.1  # distance that sorted columns need, and its ratio to that of the best other column
_SINGLE = 3  # sorted columns and gaps that have half-lines of their own
_LOOKED_AT = 20_000


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
    if not 2 <= width <= _MOST_COORDINATES:
        return
    columns = OrderStatistics(width)
    found = screened(*(columns.read(side[:_LOOKED_AT]) for side in (vectors.learn_x, vectors.learn_y)))
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
    sides = vectors.learn_x[:_LOOKED_AT], vectors.learn_y[:_LOOKED_AT]
    for columns in (Coordinates(width), Coordinates(width, differences=True)):
        largest = max(largest, float(screened(*(columns.read(side) for side in sides)).max()))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = (side.astype(np.float64).sum(axis=1)[None] for side in sides)
        return max(largest, float(screened(*sums).max()))
