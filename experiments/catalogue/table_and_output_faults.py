"""The catalogue of bugs in tables and outputs: histograms, trees, keys, metadata, missing values and exceptions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms import GeometricMechanism, HistogramMechanism, LaplaceMechanism, ParallelComposition
from ...mechanisms.composition.parallel_composition import IntervalOf
from ...mechanisms.faulty import (
    BesideExact,
    CheckedCount,
    ConsistentWithTheTotal,
    GroupMeans,
    HalfNoiseHistogram,
    JsonReport,
    KeyedCounts,
    LaplaceOfScale,
    OverlappingPartCounts,
    PartCountsForReplace,
    SmallCount,
)
from ...mechanisms.faulty.answers import CountsBetween, CountsOverTheRange, interval_tree, prefix_counts
from ...mechanisms.faulty.composition.faulty_parallel import counts_of_parts
from ...mechanisms.faulty.noise.data_scale import mean
from .fault import Fault, FaultMaker, fault

_HISTOGRAM: Final[FaultMaker] = partial(fault, "histogram")
_VECTOR: Final[FaultMaker] = partial(fault, "vector of answers")
_OUTPUT: Final[FaultMaker] = partial(fault, "output")
_ROWS: Final = AddRemove()
_EPSILON: Final = 1.0
_CLAIM: Final = PureDP(_EPSILON)


def table_faults() -> list[Fault]:
    """All of them."""
    return [*_histograms(), *_vectors(), *_metadata(), *_missing()]


def _histograms() -> list[Fault]:
    categories = Rows(values=(0, 1, 2))
    counts = LaplaceOfScale(1.0, _CLAIM)
    numbers = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]
    over_range = LaplaceOfScale(1.0, _CLAIM, CountsOverTheRange(2))
    return [
        _HISTOGRAM(
            "histogram-for-replaced-rows",
            HalfNoiseHistogram(0.5, 3),
            ([0, 2], [0, 1]),
            Replace(),
            correct=HistogramMechanism(0.5, 3, sensitivity=2),
            domain=categories,
            cause="noise for an added row, where a row is replaced and two counts change",
            practice="each row is in one bin only, so the sensitivity is 1 (Dwork & Roth 2014, Example 3.2)",
            runs=50_000,
        ),
        _HISTOGRAM(
            "parts-overlap",
            OverlappingPartCounts(0.5, (0, 18, 65)),
            ([18], []),
            _ROWS,
            correct=counts_of_parts(0.5, 2, IntervalOf((18,))),
            domain=Rows(high=65.0),
            cause="parts that share an edge are taken for disjoint",
            practice="BETWEEN includes both ends",
            runs=50_000,
        ),
        _HISTOGRAM(
            "parts-for-replaced-rows",
            PartCountsForReplace(0.5, (18,)),
            ([18, 40], [17, 40]),
            Replace(),
            correct=ParallelComposition([LaplaceMechanism(0.25, query=len)] * 2, IntervalOf((18,))),
            domain=Rows(high=65.0),
            cause="counts of disjoint parts cost the most of theirs, where a row moves from part to part",
            practice="parallel composition is free is said without saying what neighbours are",
            runs=50_000,
        ),
        _HISTOGRAM(
            "empty-bins-without-noise",
            LaplaceOfScale(1.0, _CLAIM, spared="zeros"),
            ((2.0, 1.0, 0.0), (2.0, 1.0, 1.0)),
            Within("l1"),
            correct=counts,
            truth=None,
            exact=math.inf,
            domain=Answers(3, integer=True),
            cause="a bin without rows gets no noise",
            practice="a sparse table has no entry to add it to",
            runs=10_000,
        ),
        _HISTOGRAM(
            "last-bin-without-noise",
            LaplaceOfScale(1.0, _CLAIM, spared="last"),
            ((2.0, 1.0, 0.0), (2.0, 1.0, 1.0)),
            Within("l1"),
            correct=counts,
            truth=None,
            domain=Answers(3, integer=True),
            cause="the loop that adds the noise ends one bin too early",
            practice="k edges make k - 1 bins, and range(k - 1) is written for the bins",
            runs=10_000,
        ),
        _HISTOGRAM(
            "edges-from-the-data",
            over_range,
            (numbers, [*numbers, 40.0]),
            _ROWS,
            correct=LaplaceOfScale(1.0, _CLAIM, CountsBetween(2, 0.0, 10.0)),
            truth=None,
            domain=Rows(high=40.0, most=12),
            cause="the bins cut the range that the rows span, and one row moves the edges of all",
            practice="it is what plotting and histogram functions do by default",
            runs=10_000,
        ),
        _HISTOGRAM(
            "total-kept-exact",
            ConsistentWithTheTotal(1.0),
            ((2.0, 1.0, 0.0), (2.0, 1.0, 1.0)),
            Within("l1"),
            correct=counts,
            domain=Answers(3, integer=True),
            exact=math.inf,
            cause="noisy counts are shifted so that they add up to the exact total",
            practice="tables have to add up; the shift is a post-processing that looks at the data",
            runs=10_000,
        ),
    ]


def _vectors() -> list[Fault]:
    four, ones = (0.0,) * 4, (1.0,) * 4
    cube, start = Answers(4), (0, 0, 0, 0)
    first = (1, 0, 0, 0)
    leaves = Answers(4, integer=True)
    return [
        _VECTOR(
            "one-coordinate-for-all",
            LaplaceOfScale(1.0, _CLAIM),
            (four, ones),
            Within("linf"),
            correct=LaplaceOfScale(4.0, _CLAIM),
            truth=PureDP(4.0),
            domain=cube,
            cause="noise for the sensitivity of one of four coordinates, all of which move",
            practice="the sensitivity is taken by the dimension instead of in all",
            runs=10_000,
        ),
        _VECTOR(
            "euclidean-for-laplace",
            LaplaceOfScale(2.0, _CLAIM),
            (four, ones),
            Within("linf"),
            correct=LaplaceOfScale(4.0, _CLAIM),
            truth=PureDP(2.0),
            domain=cube,
            cause="Laplace noise for the Euclidean sensitivity of four answers, 2, instead of their sum, 4",
            practice="the code for normal noise is given another noise",
            runs=50_000,
        ),
        _VECTOR(
            "prefixes-with-noise-for-bins",
            LaplaceOfScale(1.0, _CLAIM, prefix_counts),
            (start, first),
            Within("l1"),
            correct=LaplaceOfScale(4.0, _CLAIM, prefix_counts),
            truth=PureDP(4.0),
            domain=leaves,
            cause="cumulated counts get the noise of single ones, and a row raises all from its own on",
            practice="the order of cumsum and noise is exchanged",
            runs=10_000,
        ),
        _VECTOR(
            "tree-not-split",
            LaplaceOfScale(1.0, _CLAIM, interval_tree),
            (start, first),
            Within("l1"),
            correct=LaplaceOfScale(3.0, _CLAIM, interval_tree),
            truth=PureDP(3.0),
            domain=leaves,
            cause="every level of a tree of counts spends epsilon",
            practice="a level is a partition, so it costs epsilon; there are three (Hay, Rastogi, Miklau & Suciu 2010)",
            runs=10_000,
        ),
        _VECTOR(
            "tree-one-level-short",
            LaplaceOfScale(2.0, _CLAIM, interval_tree),
            (start, first),
            Within("l1"),
            correct=LaplaceOfScale(3.0, _CLAIM, interval_tree),
            truth=PureDP(1.5),
            domain=leaves,
            cause="noise for log2(T) levels of a tree of T leaves, here 4, which has one level more",
            practice="levels are counted from 0 (Chan, Shi & Song 2011, the binary mechanism)",
            runs=50_000,
        ),
    ]


def _metadata() -> list[Fault]:
    count = GeometricMechanism(_EPSILON, query=sum)
    average = LaplaceMechanism(_EPSILON, query=_clipped_mean)
    scatter = LaplaceMechanism(_EPSILON, query=_clipped_variance)
    bits, unit = Rows(values=(0, 1)), Rows()
    pair: tuple[list[int], list[int]] = ([1, 0, 1], [1, 1])
    numbers = ([0.0, 1.0, 1.0], [0.0, 1.0])
    exact: dict[str, Any] = {"exact": math.inf, "runs": 10_000}
    return [
        _OUTPUT(
            "rows-beside-the-count",
            BesideExact(count, len),
            pair,
            _ROWS,
            correct=count,
            domain=bits,
            cause="the exact number of rows is released beside a noisy count",
            practice="how many there are is not thought sensitive, and is in the tuple that is returned",
            **exact,
        ),
        _OUTPUT(
            "rows-in-the-report",
            JsonReport(_EPSILON),
            pair,
            _ROWS,
            correct=JsonReport(_EPSILON, has_rows=False),
            domain=bits,
            cause="a JSON text with the noisy count has the number of rows too",
            practice="a response carries numbers for debugging",
            **exact,
        ),
        _OUTPUT(
            "error-bar-from-the-data",
            BesideExact(average, _standard_error),
            numbers,
            _ROWS,
            correct=average,
            domain=unit,
            cause="a noisy mean comes with its exact standard error",
            practice="a statistic is not reported without an error bar",
            **exact,
        ),
        _OUTPUT(
            "variance-beside-the-mean",
            BesideExact(scatter, mean),
            numbers,
            _ROWS,
            correct=scatter,
            domain=unit,
            cause="a noisy variance comes with the exact mean that it is taken around",
            practice="the mean is an intermediate result, and is kept",
            **exact,
        ),
        _OUTPUT(
            "keys-that-occur",
            KeyedCounts(_EPSILON, 0.01, "none"),
            (["a", "a", "b"], ["a", "a"]),
            _ROWS,
            correct=KeyedCounts(_EPSILON, 0.01),
            domain=Rows(values=("a", "b", "c")),
            cause="every key that occurs is released with a noisy count, and no threshold",
            practice="GROUP BY gives a row for each group (Korolova, Kenthapadi, Mishra & Ntoulas 2009)",
            **exact | {"exact": 1.0},
        ),
        _OUTPUT(
            "keys-above-an-exact-threshold",
            KeyedCounts(_EPSILON, 0.01, "exact"),
            (["a"] * 6 + ["b"] * 5, ["a"] * 6 + ["b"] * 6),
            _ROWS,
            correct=KeyedCounts(_EPSILON, 0.01),
            domain=Rows(values=("a", "b"), most=14),
            cause="keys are released when their exact count reaches the threshold",
            practice="small groups are left out before the noise, so that less is computed",
            **exact | {"exact": 1.0},
        ),
    ]


def _missing() -> list[Fault]:
    group = SmallCount(_EPSILON, 5, is_noisy=True)
    right = CheckedCount(_EPSILON, "nothing")
    exact: dict[str, Any] = {"exact": math.inf, "runs": 10_000}
    return [
        _OUTPUT(
            "none-for-small-groups",
            SmallCount(_EPSILON, 5),
            ([1] * 5, [1] * 4),
            _ROWS,
            correct=group,
            domain=Rows(values=(1,), most=7),
            cause="None is released where the exact count is below 5",
            practice="small groups are suppressed, by their size as it is",
            **exact,
        ),
        _OUTPUT(
            "zero-for-no-rows",
            SmallCount(_EPSILON, 1, 0.0),
            ([1], []),
            _ROWS,
            correct=LaplaceMechanism(_EPSILON, query=len),
            domain=Rows(values=(1,)),
            cause="a count of no rows returns early, with a zero that has no noise",
            practice="an early exit for an empty table",
            **exact,
        ),
        _OUTPUT(
            "nan-for-an-empty-group",
            GroupMeans(_EPSILON, ("a", "b")),
            ([("a", 1.0), ("b", 0.0)], [("a", 1.0)]),
            _ROWS,
            correct=GroupMeans(_EPSILON, ("a", "b"), is_filled=True),
            cause="the mean of a group without rows is NaN, with or without noise",
            practice="0/0 is NaN in numpy, and a table prints it",
            **exact,
        ),
        _OUTPUT(
            "raises-for-no-rows",
            CheckedCount(_EPSILON, "no rows"),
            ([0.5], []),
            _ROWS,
            correct=right,
            domain=Rows(),
            cause="an exception for a dataset without rows",
            practice="a mean divides by zero; an adversary sees an exception as he sees an output",
            **exact,
        ),
        _OUTPUT(
            "raises-for-an-outlier",
            CheckedCount(_EPSILON, "outliers"),
            ([0.5, 0.5], [0.5, 0.5, 2.0]),
            _ROWS,
            correct=right,
            domain=Rows(high=2.0),
            cause="an exception for a row beyond its range",
            practice="inputs are validated, as if the caller were to blame",
            **exact,
        ),
    ]


def _clipped(rows: Any) -> list[float]:
    return [min(max(float(row), 0.0), 1.0) for row in rows]


def _clipped_mean(rows: Any) -> float:
    return math.fsum(_clipped(rows)) / max(len(rows), 1)


def _clipped_variance(rows: Any) -> float:
    values, centre = _clipped(rows), _clipped_mean(rows)
    return math.fsum((value - centre) ** 2 for value in values) / max(len(values), 1)


def _standard_error(rows: Any) -> float:
    return math.sqrt(_clipped_variance(rows) / max(len(rows), 1))
