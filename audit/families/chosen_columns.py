"""Events by columns that were chosen on the first half of the pilot, counted on the other half."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..events.features import Columns
from ..events.scores import Column
from .learned_scores import additive_scores
from .number_families import Family, of_learned, ordered_families
from .pilot_split import PilotSplit


def chosen_columns(columns: Columns, read: PilotSplit, *, single: int) -> Iterator[Family[Any]]:
    """Events by each of the first columns alone, and by sums over all of them.

    Parameters
    ----------
    columns : Columns
        Columns chosen on the learning half, the clearest first.
    read : PilotSplit
        These columns of the pilot outputs, shape (columns, runs).
    single : int
        Most columns that have events of their own.
    """
    for place in range(min(single, len(read.held_x))):
        held = PilotSplit.in_half(read.held_x[place], read.held_y[place]).ordered
        yield from ordered_families(Column(columns, place), held, fit=True)
    if len(read.held_x) > 1:
        for score in additive_scores(columns, read.learn_x, read.learn_y, together=False):
            yield from of_learned(score, score.add_up(read.held_x), score.add_up(read.held_y))
