"""The catalogue of bugs in statistics: sums, means, medians, and of graphs."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import networkx as nx

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...audit.datasets.domains import Answers, Graphs, Rows
from ...audit.datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ...mechanisms import DegreeHistogramMechanism, EdgeCountMechanism, GeometricMechanism, LaplaceMechanism
from ...mechanisms.faulty import (
    ClippedAfterNoise,
    EdgeNoiseForNodes,
    FlooredScaleMean,
    OneEndDegreeHistogram,
    ScaleFromTheData,
)
from ...mechanisms.faulty.answers import (
    ClippedTotal,
    RoundedAnswer,
    WrappingTotal,
    half_precision_total,
    n_triangles,
    total,
)
from ...mechanisms.faulty.noise.data_scale import (
    gap_at_the_median,
    largest_degree,
    mean,
    median,
    n_edges,
    share_of_a_row,
    spread,
)
from .fault import Fault, FaultMaker, fault

_SUM: Final[FaultMaker] = partial(fault, "sum")
_MEAN: Final[FaultMaker] = partial(fault, "mean")
_QUANTILE: Final[FaultMaker] = partial(fault, "quantile")
_GRAPH: Final[FaultMaker] = partial(fault, "graph")
_ROWS: Final = AddRemove()


def statistic_faults() -> list[Fault]:
    """All of them."""
    return [*_sums(), *_means(), *_graphs()]


def _sums() -> list[Fault]:
    unit, exact_sum = ClippedTotal(0.0, 1.0), LaplaceMechanism(1.0, query=ClippedTotal(0.0, 1.0))
    quarters, replaced = [0.0] * 4, [0.0] * 3 + [1.0]
    up_and_down = [1.25, -0.75] * 60
    sixteens = [16.0] * 127
    return [
        _SUM(
            "sum-not-clipped",
            LaplaceMechanism(1.0, query=total),
            ([1.0], [1.0, 6.0]),
            _ROWS,
            correct=exact_sum,
            truth=None,
            domain=Rows(high=6.0),
            cause="rows are not clipped to the range that the noise is for",
            practice="the range is what the data should be, or was when it was looked at",
            runs=10_000,
        ),
        _SUM(
            "clipped-after-noise",
            ClippedAfterNoise(1.0, 8.0),
            ([1.0], [1.0, 6.0]),
            _ROWS,
            correct=exact_sum,
            domain=Rows(high=6.0),
            exact=6.0,
            cause="the noisy sum is clipped, and the rows are not",
            practice="the bounds are given to the function that does everything, and it clips last",
            runs=10_000,
        ),
        _SUM(
            "noise-of-a-mean",
            LaplaceMechanism(0.5, 0.25, unit),
            (quarters, replaced),
            Replace(),
            correct=LaplaceMechanism(0.5, query=unit),
            truth=PureDP(2.0),
            domain=Rows(most=4),
            cause="a sum of four rows gets noise for their mean",
            practice="the sensitivity 1/n is looked up, and the division comes later or not at all",
            runs=10_000,
        ),
        _SUM(
            "sum-wraps-around",
            LaplaceMechanism(1.0, query=WrappingTotal(8)),
            ([1] * 127, [1] * 128),
            _ROWS,
            correct=LaplaceMechanism(1.0, query=total),
            truth=PureDP(255.0),
            cause="whole rows are added in eight bits, where 127 + 1 is -128",
            practice="numpy sums in the type of the data (Casacuberta, Shoemate, Vadhan & Wagaman 2022)",
            runs=10_000,
        ),
        _SUM(
            "rounding-accumulates",
            LaplaceMechanism(1.0, 16.75, half_precision_total),
            ([*sixteens, 8.0, *up_and_down], [*sixteens, 16.0, *up_and_down]),
            Replace(),
            correct=LaplaceMechanism(1.0, 16.75, total),
            truth=None,
            cause="a replaced row decides how all later rows are rounded, and the sum moves 120 farther than the row",
            practice="sums in half precision; doubles do the same later (Casacuberta et al. 2022)",
            runs=10_000,
        ),
        _SUM(
            "order-of-the-rows",
            LaplaceMechanism(1.0, 16.0, half_precision_total),
            ([16.0] * 128 + [1.0] * 100, [*[1.0] * 100, *[16.0] * 128, 0.0]),
            _ROWS,
            correct=LaplaceMechanism(1.0, 16.0, total),
            truth=None,
            cause="the same rows in another order have another sum in half precision",
            practice="addition is taken for associative, and datasets for sets (Casacuberta et al. 2022)",
            runs=10_000,
        ),
        _SUM(
            "rounded-before-noise",
            LaplaceMechanism(0.5, 0.5, RoundedAnswer()),
            (0.4, 0.6),
            Within("l1", 0.5),
            correct=LaplaceMechanism(0.5, 0.5),
            truth=PureDP(1.0),
            domain=Answers(),
            cause="an answer that moves by a half is rounded to a whole number, which may move by one",
            practice="rounding is taken for harmless before the noise as it is after it",
            runs=10_000,
        ),
    ]


def _means() -> list[Fault]:
    right = FlooredScaleMean(1.0, least_count=1.0)
    middle = LaplaceMechanism(1.0, query=median)
    thirds = ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    return [
        _MEAN(
            "mean-by-exact-count",
            ScaleFromTheData(1.0, mean, share_of_a_row),
            ([0.0], [0.0, 0.0]),
            _ROWS,
            correct=right,
            exact=math.inf,
            cause="the sum and its noise are divided by the exact number of rows",
            practice="the number of rows is not thought sensitive; the tails of the noise tell it",
            runs=20_000,
        ),
        _MEAN(
            "noise-floored",
            FlooredScaleMean(1.0),
            ([0.0], [0.0, 1.0]),
            _ROWS,
            correct=right,
            exact=math.inf,
            cause="the noise has the scale of a noisy count, or 1e-12 where that is negative",
            practice="a generator refuses a negative scale, and a clamp keeps it from complaining",
            runs=10_000,
        ),
        _SUM(
            "range-from-the-values",
            ScaleFromTheData(1.0, total, spread),
            ([0.0, 1.0], [0.0, 1.0, 5.0]),
            _ROWS,
            correct=LaplaceMechanism(1.0, 5.0, ClippedTotal(0.0, 5.0)),
            exact=math.inf,
            cause="the sensitivity is the range that the values happen to have",
            practice="bounds are optional, and the default is the minimum and maximum of the data",
            runs=10_000,
        ),
        _QUANTILE(
            "median-by-local-sensitivity",
            ScaleFromTheData(1.0, median, gap_at_the_median),
            ([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]),
            Replace(),
            correct=middle,
            exact=math.inf,
            cause="the noise is that for the neighbours of the dataset at hand, which may be none",
            practice="the global sensitivity of a median is hopeless (Nissim, Raskhodnikova & Smith 2007)",
            runs=10_000,
        ),
        _QUANTILE(
            "median-with-noise-of-a-mean",
            LaplaceMechanism(0.5, 1 / 3, median),
            thirds,
            Replace(),
            correct=LaplaceMechanism(0.5, query=median),
            truth=PureDP(1.5),
            cause="the median of three rows gets noise for their mean",
            practice="aggregates share the code that computes a sensitivity",
            runs=10_000,
        ),
    ]


def _graphs() -> list[Fault]:
    star, leaves = nx.star_graph(3), nx.empty_graph([1, 2, 3])
    wide, wide_leaves = nx.star_graph(4), nx.empty_graph([1, 2, 3, 4])
    complete, without_one = nx.complete_graph(5), nx.complete_graph(5)
    without_one.remove_edge(0, 1)
    apart, joined = nx.empty_graph(2), nx.path_graph(2)
    nodes, edges = NodeNeighbours(), EdgeNeighbours()
    return [
        _GRAPH(
            "edge-noise-for-nodes",
            EdgeNoiseForNodes(0.5),
            (star, leaves),
            nodes,
            correct=EdgeCountMechanism(0.5, nodes, 3),
            domain=Graphs(4),
            cause="a count of edges with noise for one edge, said to hide a person",
            practice="the graph is private leaves open what of it (Hay, Li, Miklau & Jensen 2009)",
            runs=10_000,
        ),
        _GRAPH(
            "one-end-of-an-edge",
            OneEndDegreeHistogram(0.5),
            (apart, joined),
            edges,
            correct=DegreeHistogramMechanism(0.5, 3),
            domain=Graphs(4),
            cause="a degree histogram with noise for one end of an edge",
            practice="one node moves from one count to another, and the other end is forgotten",
            runs=50_000,
        ),
        _GRAPH(
            "triangles-of-one-edge",
            GeometricMechanism(0.5, query=n_triangles),
            (complete, without_one),
            edges,
            correct=GeometricMechanism(0.5, 3, n_triangles),
            truth=PureDP(1.5),
            domain=Graphs(5),
            cause="a count of triangles with noise for one, where an edge of five nodes closes three",
            practice="counts have sensitivity 1 (Nissim, Raskhodnikova & Smith 2007 on triangles)",
            runs=10_000,
        ),
        _GRAPH(
            "degree-from-the-graph",
            ScaleFromTheData(0.5, n_edges, largest_degree),
            (wide, wide_leaves),
            nodes,
            correct=EdgeCountMechanism(0.5, nodes, 4),
            domain=Graphs(5),
            exact=math.inf,
            cause="the noise is for the largest degree of the graph at hand",
            practice="a bound on the degree is needed, and the graph has one",
            runs=10_000,
        ),
    ]
