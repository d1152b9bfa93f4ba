"""Events by the numbers in vectors that are partly missing: how many there are, at which places, and how large.

A sparse vector that releases what it found above the threshold has NaN for all other answers. Its loss grows with the
answers below before a number, and with how small that number is, wherever it stands. Coordinates of their own see a
tenth of the runs each, and a sum over them needs a curve for each place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import Released
from ..events.outputs import Outputs
from ..events.scores import Column
from .learned_scores import MOST_LEARNED, additive_scores
from .number_families import Family, of_learned, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_LOOKED_AT = 2_000


def released_families(vectors: PilotSplit, width: int, *, together: bool) -> Iterator[Family[Any]]:
    """Events by the numbers of vectors of one width; none if no number is missing, or all are.

    Parameters
    ----------
    vectors : PilotSplit
    width : int
    together : bool
        Whether to fit a sum over what is read jointly, which takes longest.
    """
    looked_at = np.concatenate([vectors.learn_x[:_LOOKED_AT], vectors.learn_y[:_LOOKED_AT]])
    missing = np.isnan(looked_at.astype(np.float64)).sum(axis=1)
    if not 0 < missing.sum() < looked_at.size:
        return
    columns = Released(width)
    read = vectors.map(columns.read)
    for place in range(len(columns.names)):

        def column(part: Outputs, place: int = place) -> Array:
            return np.asarray(part[place])

        yield from value_families(Column(columns, place), read.map(column), fit=True)
    learned = [side[:, :MOST_LEARNED] for side in (read.learn_x, read.learn_y)]
    for score in additive_scores(columns, *learned, together=together):
        yield from of_learned(score, score.add_up(read.held_x), score.add_up(read.held_y))
