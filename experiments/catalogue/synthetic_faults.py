"""Faulty generators of synthetic tables, apart, as each family of the catalogue has a file."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.datasets.adjacency import AddRemove, Replace
from ...audit.datasets.domains import Rows
from ...mechanisms import NoisyBins, NoisyMarginals, faulty
from ...mechanisms.synthetic import exact_loss
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_TABLE: Final[FaultMaker] = partial(fault, "synthetic table")
_ADDED: Final = AddRemove()
_REPLACED: Final = Replace()
_EPSILON: Final = 1.0
_DRAWN: Final = 50  # rows of a synthetic table


def synthetic_faults() -> list[Fault]:
    """All bugs of this module."""
    one, two = (2,), (2, 2)
    added, replaced = NoisyMarginals(_EPSILON, one, _DRAWN), NoisyMarginals(_EPSILON, one, _DRAWN, 2)
    bits, pairs = Rows(values=((0,), (1,))), Rows(values=((0, 0), (1, 1)))
    other_row = NeighbouringPair([(1,)], [(0,)], _REPLACED, bits)
    for_replace = faulty.MarginalsForReplace(_EPSILON, one, _DRAWN)
    not_split = faulty.MarginalsNotSplit(_EPSILON, two, _DRAWN)
    both = NeighbouringPair([(0, 0), (1, 1)], [(0, 0)], _ADDED, pairs)
    new_value = NeighbouringPair([(0,), (1,)], [(0,)], _ADDED, bits)
    undeclared = NeighbouringPair([(0,), (7,)], [(0,)], _ADDED, Rows(values=((0,), (1,), (7,))))
    third_row = NeighbouringPair([(0,)] * 3, [(0,)] * 2, _ADDED, bits)
    few = NeighbouringPair([(None,)] * 9 + [(1,)], [(None,)] * 9 + [(0,)], _REPLACED)
    outlier = NeighbouringPair([1.0, 2.0, 50.0], [1.0, 2.0], _ADDED, Rows(high=50.0))
    return [
        _TABLE("marginals-for-replaced-rows", for_replace, other_row, correct=replaced,
            exact=_exact(for_replace, other_row), runs=50_000),
        _TABLE("marginals-not-split", not_split, both, correct=NoisyMarginals(_EPSILON, two, _DRAWN),
            exact=_exact(not_split, both), runs=50_000),
        _TABLE("categories-from-the-data", faulty.LearnedCategories(_EPSILON, one, _DRAWN), new_value, correct=added,
            exact=math.inf),
        _TABLE("undeclared-categories", faulty.LearnedCategories(_EPSILON, one, _DRAWN, "added"), undeclared,
            correct=added, exact=math.inf,
            cause="Categories of the data that are added to the declared ones: no finite ε"),
        _TABLE("rows-of-the-data", faulty.RowsOfTheData(_EPSILON, one), third_row,
            correct=NoisyMarginals(_EPSILON, one), exact=math.inf),
        _TABLE("leaked-row", faulty.LeakedRow(_EPSILON, one, _DRAWN), other_row, correct=replaced, exact=math.inf),
        _TABLE("shares-of-present-rows", faulty.SharesOfPresentRows(_EPSILON, 2, _DRAWN), few, correct=replaced),
        _TABLE("range-of-a-column-learned", faulty.LearnedRange(_EPSILON), outlier,
            correct=NoisyBins(_EPSILON, 0.0, 50.0), exact=math.inf),
    ]  # fmt: skip


def _exact(variant: Any, pair: NeighbouringPair) -> float:
    """Exact loss of a variant that runs as a right generator."""
    return exact_loss(variant.runs_as, pair.x, pair.y)
