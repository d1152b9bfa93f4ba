"""Faulty generators of synthetic tables, apart, as each family of the catalogue has a file."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ...audit.claims.claim import PureDP
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
    not_split, claim = NoisyMarginals(2 * _EPSILON, two, _DRAWN), PureDP(_EPSILON)
    both = NeighbouringPair([(0, 0), (1, 1)], [(0, 0)], _ADDED, pairs)
    new_value = NeighbouringPair([(0,), (1,)], [(0,)], _ADDED, bits)
    undeclared = NeighbouringPair([(0,), (7,)], [(0,)], _ADDED, Rows(values=((0,), (1,), (7,))))
    third_row = NeighbouringPair([(0,)] * 3, [(0,)] * 2, _ADDED, bits)
    few = NeighbouringPair([(None,)] * 9 + [(1,)], [(None,)] * 9 + [(0,)], _REPLACED)
    outlier = NeighbouringPair([1.0, 2.0, 50.0], [1.0, 2.0], _ADDED, Rows(high=50.0))
    return [
        _TABLE("marginals-for-replaced-rows", added, other_row, correct=replaced, truth=PureDP(2 * _EPSILON),
            exact=exact_loss(added, other_row.x, other_row.y), runs=50_000,
            cause="Histograms of columns with noise for an added row, claimed for a replaced one: 2ε",
            practice="A row in one cell of a marginal makes the sensitivity 1 for add/remove only, where the number of "
            "rows is not public."),
        _TABLE("marginals-not-split", not_split, both, correct=NoisyMarginals(_EPSILON, two, _DRAWN), claim=claim,
            exact=exact_loss(not_split, both.x, both.y), runs=50_000,
            cause="Histograms of k columns, each with noise for all of ε although a row is in each of them: kε",
            practice="The columns are synthesised in a loop, and each call gets the epsilon of the caller."),
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
