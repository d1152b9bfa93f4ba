"""Bugs in histograms, keys, exceptions and other outputs, kept apart because each subject has a module."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms import (
    GeometricMechanism,
    HistogramMechanism,
    LaplaceMechanism,
    NoisyBins,
    NoisyMarginals,
    ParallelComposition,
    faulty,
)
from ...mechanisms.composition import IntervalOf
from ...mechanisms.faulty.flaw import (
    CountsBetween,
    CountsOfClosedIntervals,
    CountsOverTheRange,
    interval_tree,
    prefix_counts,
)
from ...mechanisms.faulty.noise import mean
from ...mechanisms.synthetic import exact_loss
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_HISTOGRAM: Final[FaultMaker] = partial(fault, "histogram")
_VECTOR: Final[FaultMaker] = partial(fault, "vector of answers")
_OUTPUT: Final[FaultMaker] = partial(fault, "output")
_TABLE: Final[FaultMaker] = partial(fault, "synthetic table")
_DRAWN: Final = 50  # rows of a synthetic table
_ROWS: Final = AddRemove()
_EPSILON: Final = 1.0
_CLAIM: Final = PureDP(_EPSILON)


def table_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_histograms(), *_vectors(), *_metadata(), *_missing()]


def _histograms() -> list[Fault]:
    replaced_row = NeighbouringPair([0, 2], [0, 1], Replace(), Rows(values=(0, 1, 2)))
    at_the_edge = NeighbouringPair([18], [], _ROWS, Rows(high=65.0))
    other_part = NeighbouringPair([18, 40], [17, 40], Replace(), Rows(high=65.0))
    last_bin = NeighbouringPair((2.0, 1.0, 0.0), (2.0, 1.0, 1.0), Within("l1"), Answers(3, integer=True))
    halves = ParallelComposition([LaplaceMechanism(0.25, query=len)] * 2, IntervalOf((18,)))
    disjoint, histogram = (
        ParallelComposition([LaplaceMechanism(0.5, query=len)] * 2, IntervalOf((18,))),
        HistogramMechanism(0.5, 3, sensitivity=2),
    )
    overlapping = faulty.LaplaceOfScale(1 / 0.5, PureDP(0.5), CountsOfClosedIntervals((0.0, 18.0, 65.0)))
    counts = faulty.LaplaceOfScale(1.0, _CLAIM)
    numbers = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]
    return [
        _HISTOGRAM("histogram-for-replaced-rows", HistogramMechanism(0.5, 3), replaced_row, correct=histogram,
            truth=PureDP(1.0), runs=50_000,
            cause="A histogram with noise for an added or removed row, claimed for a replaced row, which changes two "
            "counts: 2ε",
            practice='"Each row is in one bin only, so the sensitivity is 1" (Dwork & Roth 2014, Example 3.2) is said '
            "without naming the adjacency. The bug shows on datasets of equal size, one row of which is in another "
            "category."),
        _HISTOGRAM("parts-overlap", overlapping, at_the_edge, correct=disjoint, truth=PureDP(1.0), runs=50_000,
            cause="Counts of intervals that contain both their ends, taken for disjoint parts: 2ε instead of ε",
            practice='BETWEEN includes both ends, so "between 18 and 65" and "between 65 and 120" both count a person '
            "of 65. The bug shows on a row at an inner edge, added or removed."),
        _HISTOGRAM("parts-for-replaced-rows", disjoint, other_part, correct=halves, truth=PureDP(1.0), runs=50_000,
            cause="Counts of disjoint parts at ε each, claimed to be ε-DP for a replaced row, which moves between "
            "parts: 2ε",
            practice='"Parallel composition is free" is said without naming the adjacency. The bug shows on datasets '
            "of equal size, one row of which is in another part: one count falls and another rises."),
        _HISTOGRAM("empty-bins-without-noise", faulty.LaplaceOfScale(1.0, _CLAIM, spared="zeros"), last_bin,
            correct=counts, truth=None, exact=math.inf, cause="A histogram whose empty bins get no noise",
            practice="A sparse table has no entry to which noise could be added."),
        _HISTOGRAM("last-bin-without-noise", faulty.LaplaceOfScale(1.0, _CLAIM, spared="last"), last_bin,
            correct=counts, truth=None,
            cause="A histogram whose last bin gets no noise, as the loop ends one bin too early",
            practice="k edges make k − 1 bins, and range(k − 1) is written for the bins."),
        _HISTOGRAM("edges-from-the-data", faulty.LaplaceOfScale(1.0, _CLAIM, CountsOverTheRange(2)),
            NeighbouringPair(numbers, [*numbers, 40.0], _ROWS, Rows(high=40.0, most=12)),
            correct=faulty.LaplaceOfScale(1.0, _CLAIM, CountsBetween(2, 0.0, 10.0)), truth=None,
            cause="Bins that cut the range that the rows span, so that one row moves all edges",
            practice="Plotting and histogram functions do this by default."),
        _HISTOGRAM("total-kept-exact", faulty.ConsistentWithTheTotal(1.0), last_bin, correct=counts, exact=math.inf),
    ]  # fmt: skip


def _vectors() -> list[Fault]:
    all_move = NeighbouringPair((0.0,) * 4, (1.0,) * 4, Within("linf"), Answers(4))
    first_moves = NeighbouringPair((0, 0, 0, 0), (1, 0, 0, 0), Within("l1"), Answers(4, integer=True))
    four = faulty.LaplaceOfScale(4.0, _CLAIM)
    tree = faulty.LaplaceOfScale(3.0, _CLAIM, interval_tree)
    return [
        _VECTOR("one-coordinate-for-all", faulty.LaplaceOfScale(1.0, _CLAIM), all_move, correct=four, truth=PureDP(4.0),
            cause="Noise for the sensitivity of one of four coordinates, all of which move",
            practice="The sensitivity is computed per dimension instead of in total."),
        _VECTOR("euclidean-for-laplace", faulty.LaplaceOfScale(2.0, _CLAIM), all_move, correct=four, truth=PureDP(2.0),
            cause="Laplace noise for the Euclidean sensitivity of four answers, 2, instead of their sum, 4",
            practice="The code for Gaussian noise is given another noise.", runs=50_000),
        _VECTOR("prefixes-with-noise-for-bins", faulty.LaplaceOfScale(1.0, _CLAIM, prefix_counts), first_moves,
            correct=faulty.LaplaceOfScale(4.0, _CLAIM, prefix_counts), truth=PureDP(4.0),
            cause="Cumulative counts with the noise of single ones, although a row raises all from its bin on",
            practice="The order of cumsum and noise is exchanged."),
        _VECTOR("tree-not-split", faulty.LaplaceOfScale(1.0, _CLAIM, interval_tree), first_moves, correct=tree,
            truth=PureDP(3.0), cause="A tree of counts that spends ε on every level",
            practice="A level is a partition, so it costs ε; there are three (Hay, Rastogi, Miklau & Suciu 2010)."),
        _VECTOR("tree-one-level-short", faulty.LaplaceOfScale(2.0, _CLAIM, interval_tree), first_moves, correct=tree,
            truth=PureDP(1.5), cause="Noise for log2(T) levels of a tree of T leaves, here 4, which has one level more",
            practice="Levels are counted from 0 (Chan, Shi & Song 2011, the binary mechanism).", runs=50_000),
    ]  # fmt: skip


def _metadata() -> list[Fault]:
    count = GeometricMechanism(_EPSILON, query=sum)
    average = LaplaceMechanism(_EPSILON, query=_clipped_mean)
    scatter = LaplaceMechanism(_EPSILON, query=_clipped_variance)
    bits = NeighbouringPair([1, 0, 1], [1, 1], _ROWS, Rows(values=(0, 1)))
    unit = NeighbouringPair([0.0, 1.0, 1.0], [0.0, 1.0], _ROWS, Rows())
    without, keyed = faulty.JsonReport(_EPSILON, has_rows=False), faulty.KeyedCounts(_EPSILON, 0.01)
    return [
        _OUTPUT("rows-beside-the-count", faulty.BesideExact(count, len), bits, correct=count, exact=math.inf,
            cause="The exact number of rows released with a noisy count",
            practice="The number of rows is not thought sensitive, and is in the returned tuple."),
        _OUTPUT("rows-in-the-report", faulty.JsonReport(_EPSILON), bits, correct=without, exact=math.inf,
            cause="A noisy count as JSON text with the exact number of rows: no finite ε"),
        _OUTPUT("error-bar-from-the-data", faulty.BesideExact(average, _standard_error), unit, correct=average,
            exact=math.inf, cause="A noisy mean released with its exact standard error",
            practice="A statistic is not reported without an error bar."),
        _OUTPUT("variance-beside-the-mean", faulty.BesideExact(scatter, mean), unit, correct=scatter, exact=math.inf,
            cause="A noisy variance released with the exact mean around which it is computed",
            practice="The mean is an intermediate result, and is kept."),
        _OUTPUT("keys-that-occur", faulty.KeyedCounts(_EPSILON, 0.01, "none"),
            NeighbouringPair(["a", "a", "b"], ["a", "a"], _ROWS, Rows(values=("a", "b", "c"))), correct=keyed,
            bound_on="delta", exact=1.0, cause="A noisy count for every key that occurs, without a threshold",
            practice="GROUP BY gives a row for each group (Korolova, Kenthapadi, Mishra & Ntoulas 2009)."),
        _OUTPUT("keys-above-an-exact-threshold", faulty.KeyedCounts(_EPSILON, 0.01, "exact"),
            NeighbouringPair(["a"] * 6 + ["b"] * 5, ["a"] * 6 + ["b"] * 6, _ROWS, Rows(values=("a", "b"), most=14)),
            correct=keyed, bound_on="delta", exact=1.0,
            cause="A noisy count for every key whose exact count reaches the threshold",
            practice="Small groups are left out before the noise, so that less is computed."),
    ]  # fmt: skip


def _missing() -> list[Fault]:
    right, one = faulty.CheckedCount(_EPSILON, "nothing"), Rows(values=(1,))
    empty_group = NeighbouringPair([("a", 1.0), ("b", 0.0)], [("a", 1.0)], _ROWS)
    means, filled = faulty.GroupMeans(_EPSILON, ("a", "b")), faulty.GroupMeans(_EPSILON, ("a", "b"), is_filled=True)
    return [
        _OUTPUT("none-for-small-groups", faulty.SmallCount(_EPSILON, 5),
            NeighbouringPair([1] * 5, [1] * 4, _ROWS, Rows(values=(1,), most=7)),
            correct=faulty.SmallCount(_EPSILON, 5, is_noisy=True), exact=math.inf,
            cause="None released where the exact count is below 5",
            practice="Small groups are suppressed by their exact size."),
        _OUTPUT("zero-for-no-rows", faulty.SmallCount(_EPSILON, 1, 0.0), NeighbouringPair([1], [], _ROWS, one),
            correct=LaplaceMechanism(_EPSILON, query=len), exact=math.inf,
            cause="A count of no rows that returns early, with a zero that has no noise",
            practice="The code has an early exit for an empty table."),
        _OUTPUT("nan-for-an-empty-group", means, empty_group, correct=filled, exact=math.inf),
        _OUTPUT("raises-for-no-rows", faulty.CheckedCount(_EPSILON, "no rows"),
            NeighbouringPair([0.5], [], _ROWS, Rows()), correct=right, exact=math.inf,
            cause="An exception for a dataset without rows",
            practice="A mean divides by zero; an adversary sees an exception as he sees an output."),
        _OUTPUT("raises-for-an-outlier", faulty.CheckedCount(_EPSILON, "outliers"),
            NeighbouringPair([0.5, 0.5], [0.5, 0.5, 2.0], _ROWS, Rows(high=2.0)), correct=right, exact=math.inf,
            cause="An exception for a row outside its range",
            practice="Inputs are validated, as if the caller were to blame."),
    ]  # fmt: skip


def _clipped(rows: Any) -> list[float]:
    return [min(max(float(row), 0.0), 1.0) for row in rows]


def _clipped_mean(rows: Any) -> float:
    return math.fsum(_clipped(rows)) / max(len(rows), 1)


def _clipped_variance(rows: Any) -> float:
    values, centre = _clipped(rows), _clipped_mean(rows)
    return math.fsum((value - centre) ** 2 for value in values) / max(len(values), 1)


def _standard_error(rows: Any) -> float:
    return math.sqrt(_clipped_variance(rows) / max(len(rows), 1))


def synthetic_faults() -> list[Fault]:
    """Bugs of generators of synthetic tables."""
    one, two = (2,), (2, 2)
    added, replaced = NoisyMarginals(_EPSILON, one, _DRAWN), NoisyMarginals(_EPSILON, one, _DRAWN, 2)
    bits, pairs = Rows(values=((0,), (1,))), Rows(values=((0, 0), (1, 1)))
    other_row = NeighbouringPair([(1,)], [(0,)], Replace(), bits)
    not_split = NoisyMarginals(2 * _EPSILON, two, _DRAWN)
    both = NeighbouringPair([(0, 0), (1, 1)], [(0, 0)], _ROWS, pairs)
    new_value = NeighbouringPair([(0,), (1,)], [(0,)], _ROWS, bits)
    undeclared = NeighbouringPair([(0,), (7,)], [(0,)], _ROWS, Rows(values=((0,), (1,), (7,))))
    third_row = NeighbouringPair([(0,)] * 3, [(0,)] * 2, _ROWS, bits)
    few = NeighbouringPair([(None,)] * 9 + [(1,)], [(None,)] * 9 + [(0,)], Replace())
    outlier = NeighbouringPair([1.0, 2.0, 50.0], [1.0, 2.0], _ROWS, Rows(high=50.0))
    return [
        _TABLE("marginals-for-replaced-rows", added, other_row, correct=replaced, truth=PureDP(2 * _EPSILON),
            exact=exact_loss(added, other_row.x, other_row.y), runs=50_000,
            cause="Histograms of columns with noise for an added row, claimed for a replaced one: 2ε",
            practice="A row in one cell of a marginal makes the sensitivity 1 for add/remove only, where the number of "
            "rows is not public."),
        _TABLE("marginals-not-split", not_split, both, correct=NoisyMarginals(_EPSILON, two, _DRAWN), claim=_CLAIM,
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
