"""Events by parts of texts that hardly recur: a word, a number, the length, the start, the end or the template.

The columns in which the first half of the pilot differs most have events of their own, and all of them a sum. Both are
counted on the other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.scores import Column
from ..events.text_columns import learn_texts
from .column_screen import screened
from .digit_families import remainder_families
from .learned_scores import MOST_LEARNED, additive_scores
from .number_families import Family, of_learned, value_families
from .pilot_split import PilotSplit

Array = npt.NDArray[np.float64]

_SINGLE = 6  # columns that have events of their own
_RUNS = 20_000  # most runs on each dataset that show which columns differ
_MARGIN = 0.02  # a sum has all columns read for each output, so it has to be better than a single column


def text_families(split: PilotSplit) -> Iterator[Family[Any]]:
    """Events by columns of texts; none for outputs without texts that hardly recur."""
    columns = learn_texts(split.learn_x, split.learn_y)
    if columns is None:
        return
    read = split.map(columns.read)
    looked_at = [side[:, :_RUNS] for side in (read.learn_x, read.learn_y)]
    distances = np.maximum(screened(*looked_at), _of_values(*looked_at))
    for place in np.argsort(-distances, kind="stable")[:_SINGLE].tolist():
        score = Column(columns.only([place]), 0)
        # The column was chosen on the first half, so the other half alone is counted.
        held = PilotSplit.in_half(read.held_x[place], read.held_y[place])
        yield from value_families(score, held, fit=True)
        if not columns.columns[place].is_code:
            yield from remainder_families(score, read.map(itemgetter(place)))
    learned = [side[:, :MOST_LEARNED] for side in (read.learn_x, read.learn_y)]
    for sums in additive_scores(columns, *learned, together=False):
        for family in of_learned(sums, sums.add_up(read.held_x), sums.add_up(read.held_y)):
            yield replace(family, margin=_MARGIN)


def _of_values(x: Array, y: Array) -> Array:
    """Largest difference of the counts of a value in each column, in standard errors, shape (columns,)."""
    found = np.zeros(len(x))
    for place, sides in enumerate(zip(x, y, strict=True)):
        known, codes = np.unique(np.concatenate(sides), return_inverse=True)
        on_x, on_y = (np.bincount(part, minlength=len(known)) for part in np.split(codes, [len(sides[0])]))
        found[place] = (np.abs(on_x - on_y) / np.sqrt(on_x + on_y)).max()
    return found
