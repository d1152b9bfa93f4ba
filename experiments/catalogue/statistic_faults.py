"""The catalogue of bugs in statistics: sums, means, medians, and graph statistics."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...audit.datasets.domains import Answers, Graphs, Rows
from ...audit.datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ...audit.extras import require
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
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_SUM: Final[FaultMaker] = partial(fault, "sum")
_MEAN: Final[FaultMaker] = partial(fault, "mean")
_QUANTILE: Final[FaultMaker] = partial(fault, "quantile")
_GRAPH: Final[FaultMaker] = partial(fault, "graph")
_ROWS: Final = AddRemove()


def statistic_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_sums(), *_means(), *_graphs()]


def _sums() -> list[Fault]:
    unit = ClippedTotal(0.0, 1.0)
    exact_sum = LaplaceMechanism(1.0, query=unit)
    outlier = NeighbouringPair([1.0], [1.0, 6.0], _ROWS, Rows(high=6.0))
    up_and_down, sixteens = [1.25, -0.75] * 60, [16.0] * 127
    return [
        _SUM(
            "sum-not-clipped",
            LaplaceMechanism(1.0, query=total),
            outlier,
            correct=exact_sum,
            truth=None,
            cause="Rows that are not clipped to the range for which there is noise",
            practice="The range is what the data should have, or had when somebody looked at them.",
        ),
        _SUM("clipped-after-noise", ClippedAfterNoise(1.0, 8.0), outlier, correct=exact_sum, exact=6.0),
        _SUM(
            "noise-of-a-mean",
            LaplaceMechanism(0.5, 0.25, unit),
            NeighbouringPair([0.0] * 4, [0.0] * 3 + [1.0], Replace(), Rows(most=4)),
            correct=LaplaceMechanism(0.5, query=unit),
            truth=PureDP(2.0),
            cause="A sum of four rows with the noise for their mean",
            practice="The sensitivity 1/n is looked up, and the division comes later or never.",
        ),
        _SUM(
            "sum-wraps-around",
            LaplaceMechanism(1.0, query=WrappingTotal(8)),
            NeighbouringPair([1] * 127, [1] * 128, _ROWS),
            correct=LaplaceMechanism(1.0, query=total),
            truth=PureDP(255.0),
            cause="Whole rows added in eight bits, where 127 + 1 is −128",
            practice="numpy sums in the type of the data (Casacuberta, Shoemate, Vadhan & Wagaman 2022).",
        ),
        _SUM(
            "rounding-accumulates",
            LaplaceMechanism(1.0, 16.75, half_precision_total),
            NeighbouringPair([*sixteens, 8.0, *up_and_down], [*sixteens, 16.0, *up_and_down], Replace()),
            correct=LaplaceMechanism(1.0, 16.75, total),
            truth=None,
            cause="A replaced row decides how all later rows are rounded, and the sum moves 120 farther than the row",
            practice="Sums are in half precision; doubles show the same later (Casacuberta et al. 2022).",
        ),
        _SUM(
            "order-of-the-rows",
            LaplaceMechanism(1.0, 16.0, half_precision_total),
            NeighbouringPair([16.0] * 128 + [1.0] * 100, [*[1.0] * 100, *[16.0] * 128, 0.0], _ROWS),
            correct=LaplaceMechanism(1.0, 16.0, total),
            truth=None,
            cause="A sum in half precision that depends on the order of the rows",
            practice="Addition is taken for associative, and datasets for sets (Casacuberta et al. 2022).",
        ),
        _SUM(
            "rounded-before-noise",
            LaplaceMechanism(0.5, 0.5, RoundedAnswer()),
            NeighbouringPair(0.4, 0.6, Within("l1", 0.5), Answers()),
            correct=LaplaceMechanism(0.5, 0.5),
            truth=PureDP(1.0),
            cause="An answer of sensitivity ½ rounded to a whole number, which may move by 1",
            practice="Rounding is taken for harmless before the noise as it is after it.",
        ),
    ]


def _means() -> list[Fault]:
    right = FlooredScaleMean(1.0, least_count=1.0)
    return [
        _MEAN(
            "mean-by-exact-count",
            ScaleFromTheData(1.0, mean, share_of_a_row),
            NeighbouringPair([0.0], [0.0, 0.0], _ROWS),
            correct=right,
            exact=math.inf,
            cause="A sum and its noise divided by the exact number of rows",
            practice="The number of rows is not thought sensitive, but the tails of the noise reveal it.",
            runs=20_000,
        ),
        _MEAN(
            "noise-floored",
            FlooredScaleMean(1.0),
            NeighbouringPair([0.0], [0.0, 1.0], _ROWS),
            correct=right,
            exact=math.inf,
        ),
        _SUM(
            "range-from-the-values",
            ScaleFromTheData(1.0, total, spread),
            NeighbouringPair([0.0, 1.0], [0.0, 1.0, 5.0], _ROWS),
            correct=LaplaceMechanism(1.0, 5.0, ClippedTotal(0.0, 5.0)),
            exact=math.inf,
            cause="The range of the values in the data as the sensitivity of their sum",
            practice="Bounds are optional, and the default is the minimum and maximum of the data.",
        ),
        _QUANTILE(
            "median-by-local-sensitivity",
            ScaleFromTheData(1.0, median, gap_at_the_median),
            NeighbouringPair([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0], Replace()),
            correct=LaplaceMechanism(1.0, query=median),
            exact=math.inf,
            cause="A median with noise for its local sensitivity, which may be 0",
            practice="The global sensitivity of a median is hopeless (Nissim, Raskhodnikova & Smith 2007).",
        ),
        _QUANTILE(
            "median-with-noise-of-a-mean",
            LaplaceMechanism(0.5, 1 / 3, median),
            NeighbouringPair([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], Replace()),
            correct=LaplaceMechanism(0.5, query=median),
            truth=PureDP(1.5),
            cause="A median of three rows with the noise for their mean",
            practice="Aggregates share the code that computes a sensitivity.",
        ),
    ]


def _graphs() -> list[Fault]:
    require("graphs", "mechanisms of graphs need", "networkx")
    import networkx as nx  # takes long to import

    nodes, edges = NodeNeighbours(), EdgeNeighbours()
    centre = NeighbouringPair(nx.star_graph(3), nx.empty_graph([1, 2, 3]), nodes, Graphs(4))
    wide_centre = NeighbouringPair(nx.star_graph(4), nx.empty_graph([1, 2, 3, 4]), nodes, Graphs(5))
    one_edge = NeighbouringPair(nx.empty_graph(2), nx.path_graph(2), edges, Graphs(4))
    complete, without_one = nx.complete_graph(5), nx.complete_graph(5)
    without_one.remove_edge(0, 1)
    histogram, three_edges = DegreeHistogramMechanism(0.5, 3), EdgeCountMechanism(0.5, nodes, 3)
    return [
        _GRAPH(
            "edge-noise-for-nodes",
            EdgeNoiseForNodes(0.5),
            centre,
            correct=three_edges,
            cause="An edge count with noise for one edge, claimed to hide a node of up to three edges: 3ε instead of ε",
        ),
        _GRAPH("one-end-of-an-edge", OneEndDegreeHistogram(0.5), one_edge, correct=histogram, runs=50_000),
        _GRAPH(
            "triangles-of-one-edge",
            GeometricMechanism(0.5, query=n_triangles),
            NeighbouringPair(complete, without_one, edges, Graphs(5)),
            correct=GeometricMechanism(0.5, 3, n_triangles),
            truth=PureDP(1.5),
            cause="A count of triangles with noise for one, where an edge of a graph of five nodes closes three",
            practice="Counts are said to have sensitivity 1 (Nissim, Raskhodnikova & Smith 2007 on triangles).",
        ),
        _GRAPH(
            "degree-from-the-graph",
            ScaleFromTheData(0.5, n_edges, largest_degree),
            wide_centre,
            correct=EdgeCountMechanism(0.5, nodes, 4),
            exact=math.inf,
            cause="A count of edges with noise for the largest degree of the graph at hand",
            practice="A bound on the degree is needed, and the graph has one.",
        ),
    ]
