"""Bugs in sums, means, medians and graph statistics, kept apart because each subject has a module."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ... import mechanisms as m
from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, EdgeNeighbours, Local, NodeNeighbours, Replace, Within
from ...audit.datasets.domains import Answers, Domain, Graphs, Rows, Values
from ...audit.extras import require
from ...mechanisms import faulty
from ...mechanisms.faulty.composition import Sampling
from ...mechanisms.faulty.flaw import (
    ClippedColumnTotals,
    ClippedTotal,
    RoundedAnswer,
    WrappingTotal,
    column_totals,
    half_precision_total,
    n_triangles,
    squared_rows,
    standardised,
    total,
)
from ...mechanisms.faulty.noise import gap_at_the_median, largest_degree, mean, median, n_edges, share_of_a_row, spread
from ...mechanisms.faulty.selection import LargestNoisyCount
from ..documents.named_mechanisms import rise_and_fall
from .fault import Fault, FaultMaker, NeighbouringPair, fault

# The catalogue of bugs in composition, group privacy and subsampling.

_COMPOSITION: Final[FaultMaker] = partial(fault, "composition")
_GROUP: Final[FaultMaker] = partial(fault, "group privacy")
_ROWS: Final = AddRemove()


def composition_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_compositions(), *_groups(), *_samples()]


def _compositions() -> list[Fault]:
    both = m.SequentialComposition((m.LaplaceMechanism(0.5, query=len), m.LaplaceMechanism(0.5, query=total)))
    ones = NeighbouringPair([1.0, 0.0], [1.0], _ROWS, Rows(values=(0.0, 1.0)))
    bit = NeighbouringPair(0, 1, Local(), Values((0, 1)))
    hundred = m.RandomisedResponseFold(0.1, 100)
    advanced = ApproxDP(*m.advanced_composition(0.1, 0.0, 10, 0.01), "delta")
    exposed, row = m.NameAndShame(0.01), NeighbouringPair([7], [8], Replace(), Rows(values=(7, 8), most=1))
    return [
        _COMPOSITION("noise-shared-by-queries", faulty.SharedNoiseLaplace(0.5, (len, total)), ones, correct=both,
            exact=math.inf,
            cause="Two Laplace mechanisms whose claims are added, with the same noise in both: no finite ε"),
        _COMPOSITION("loop-charged-once", m.composed(m.LaplaceMechanism(0.5, query=len), 3),
            NeighbouringPair([1] * 3, [1] * 2, _ROWS, Rows(values=(1,))), claim=PureDP(0.5),
            correct=m.composed(m.LaplaceMechanism(0.5 / 3, query=len), 3), cause="Three answers charged as one",
            practice="A release in a loop, a retry after a time-out or an answer for each group is charged once.",
            runs=50_000),
        _COMPOSITION("root-without-delta", m.composed(m.RandomisedResponse(0.5), 16), bit, claim=PureDP(4.0 * 0.5),
            correct=m.composed(m.RandomisedResponse(2.0 / 16), 16),
            cause="Sixteen answers charged as √16, without a δ",
            practice="Advanced composition is remembered as its root (Dwork & Roth 2014, Theorem 3.20).", runs=50_000),
        _COMPOSITION("advanced-with-wrong-k", hundred, bit, correct=m.RandomisedResponseFold(0.1, 10), claim=advanced,
            truth=ApproxDP(advanced.epsilon,
                m.exact_delta(hundred.distribution(0), hundred.distribution(1), advanced.epsilon)),
            cause="Advanced composition of 10 mechanisms where 100 are run",
            practice="Epochs are counted instead of steps, or calls instead of queries.", runs=20_000),
        _COMPOSITION("delta-of-one-query", m.composed(exposed, 3), row, correct=exposed, claim=exposed.claim,
            bound_on="delta", truth=ApproxDP(0.0, 0.03), exact=1 - 0.99**3,
            cause="The δ of one of three queries as that of all",
            practice="ε is divided among the queries and δ is not.", runs=20_000),
        _COMPOSITION("delta-for-each-half", m.NameAndShame(0.02), row, correct=exposed, claim=exposed.claim,
            bound_on="delta", runs=50_000,
            cause="Each row exposed with probability 2δ where δ is claimed: (0, 2δ)-DP",
            practice="δ is taken for a constant of the program and spent on each of the two halves of a report. The "
            "bug shows where a row is replaced, and in the number of people exposed."),
    ]  # fmt: skip


def _groups() -> list[Fault]:
    empty_and_two = NeighbouringPair([0], [0, 0], _ROWS, Rows(values=(0,), most=2))
    return [
        _GROUP("delta-grows-linearly", m.GroupTightMechanism(1.0, 0.01),
            NeighbouringPair(0, 2, Within("l1", 2.0), Answers(integer=True)),
            correct=m.GroupTightMechanism(1.0, 0.02 / (1 + math.e)), claim=ApproxDP(2.0, 0.02, "delta"),
            truth=ApproxDP(2.0, 0.01 * (1 + math.e)), cause="kδ for a group of k, where δ grows with e^((k − 1)ε)",
            practice="Group privacy is remembered as k times both (Dwork & Roth 2014, Theorem 2.2 is of pure DP).",
            runs=50_000),
        _GROUP("local-sensitivity", m.LaplaceMechanism(0.5, query=squared_rows), empty_and_two,
            correct=m.LaplaceMechanism(0.5, 3.0, squared_rows), truth=PureDP(1.5),
            cause="The squared number of rows with noise for the sensitivity at the empty dataset: (2m − 1)·ε for up "
            "to m rows",
            practice="The sensitivity is measured on the dataset at hand and its neighbours, where the answer moves by "
            "1, and used for all datasets. The bug does not show between 0 rows and 1. It shows at distance 2 from the "
            "empty dataset, where the answer moves by 4 instead of 2, and between 1 row and 2, where it moves by 3."),
    ]  # fmt: skip


def _samples() -> list[Fault]:
    def sampled(
        name: str,
        sampling: Sampling,
        x: list[float],
        y: list[float],
        exact: float,
        epsilon: float = 1.0,
        rate: float = 0.5,
        runs: int = 20_000,
        **texts: Any,
    ) -> Fault:
        wrong, right = faulty.SampledTotal(epsilon, rate, sampling), faulty.SampledTotal(epsilon, rate)
        pair = NeighbouringPair(x, y, _ROWS, Rows(low=-1.0))
        return fault("subsampling", name, wrong, pair, correct=right, exact=exact, runs=runs, **texts)

    zeros = [0.0] * 2
    return [
        sampled("sampling-not-done", "none", zeros, [*zeros, 1.0], 1.0,
            cause="All rows used, with the ε of a sample of half",
            practice="The sampler is switched off, or replaced by the loader of a test."),
        sampled("sampling-not-shuffled", "first", zeros, [1.0, *zeros], 1.0,
            cause="The first half of the rows taken for a random half",
            practice="Batches are cut from data in the order in which they are stored."),
        sampled("fixed-batches", "fixed", [-1.0] * 2, [-1.0, -1.0, 1.0], math.log(2 / 3 + math.exp(2) / 3),
            cause="Batches of fixed size, where an added row displaces another, with the ε of Poisson sampling",
            practice="Batches have one size on every machine (Balle, Barthe & Gaboardi 2018 on the true guarantee)."),
        sampled("drawn-with-replacement", "replacement", [0.0] * 3, [0.0] * 3 + [1.0],
            3 * math.log(0.75 + 0.25 * math.exp(2)), epsilon=2.0, rate=0.75, runs=100_000,
            cause="Rows drawn with replacement, so that a row may be in the sample more than once",
            practice="choice() draws with replacement by default in numpy."),
    ]  # fmt: skip


# The catalogue of bugs in selections: exponential mechanism, noisy max and sparse vector.

_EXPONENTIAL: Final[FaultMaker] = partial(fault, "exponential mechanism")
_NOISY_MAX: Final[FaultMaker] = partial(fault, "noisy max")
_SPARSE: Final[FaultMaker] = partial(fault, "sparse vector")


def _answers(x: tuple[float, ...], y: tuple[float, ...], domain: Domain | None = None) -> NeighbouringPair:
    """Answers that each move by 1 at most."""
    return NeighbouringPair(x, y, Within("linf"), Answers(len(x)) if domain is None else domain)


_FLAT: Final = (0.0,) * 50
_APART: Final = _answers((0.0, -3.0), (-1.0, -2.0), Answers(2, -3.0, 0.0))


def selection_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_weights(), *_winners(), *_thresholds()]


def _weights() -> list[Fault]:
    right, empty = m.ExponentialMechanism(1.0), [(0.0, 0.0)]
    one_up = _answers(_FLAT, (1.0,) + (-1.0,) * 49)
    bids = NeighbouringPair([1.0, 3.0], [1.0, 2.0], Replace(), Rows(values=(1.0, 2.0, 3.0)))
    far_below = _answers((-1490.0, -1490.0), (-1491.0, -1490.0), Answers(2, -1492.0, -1488.0, integer=True))
    first_falls = _answers((0.0, 0.0), (-1.0, 0.0))
    auction = m.PostedPriceAuction(1.0, [1.0, 2.0, 3.0])
    return [
        _EXPONENTIAL("exponential-without-two", m.ExponentialMechanism(1.0, monotone=True), one_up, correct=right,
            truth=PureDP(2.0), runs=20_000,
            cause="Pr[r] ∝ exp(ε u/Δ) instead of exp(ε u/(2Δ)) for utilities that are not monotone: 2ε instead of ε",
            practice="The 2 is left out, or the saving for monotone utilities is taken where a row is replaced "
            "(McSherry & Talwar 2007). The bug shows only if one utility rises while the others fall. Utilities (0, …, "
            "0) against (1, −1, …, −1), K = 50, ε = 1: exact loss 1.880, and .966 with the 2. If only one utility "
            "moves, the loss stays below ε."),
        _EXPONENTIAL("utility-sensitivity-halved", m.ExponentialMechanism(1.0, 0.5), _APART, correct=right,
            truth=PureDP(2.0), runs=50_000,
            cause="The exponential mechanism with half of the utilities' sensitivity: 2ε instead of ε",
            practice="The sensitivity is read off one candidate, or one kind of neighbour, and not taken as the "
            "maximum over all. The bug shows where one utility rises while the others fall by as much. If utilities "
            "are monotone, the 2 in the exponent makes up for the half and the claim holds."),
        _EXPONENTIAL("range-from-the-data", faulty.PricesFromTheBids(1.0), bids, correct=auction),
        _EXPONENTIAL("powers-of-ten", m.ExponentialMechanism(math.log(10)), _APART, correct=right, claim=right.claim,
            runs=50_000, cause="The exponential mechanism with weights 10^(ε u/(2Δ)): ε ln 10 = 2.3ε instead of ε",
            practice="Utilities are in decimal logarithms, as decibels and orders of magnitude are."),
        _EXPONENTIAL("utilities-not-bounded", m.ExponentialMechanism(1.0, utilities=column_totals),
            NeighbouringPair(empty, [*empty, (8.0, 0.0)], AddRemove(), Rows(low=(0.0, 0.0), high=(8.0, 8.0))),
            correct=m.ExponentialMechanism(1.0, utilities=ClippedColumnTotals()), truth=None,
            cause="Utilities that are sums of unclipped values, with sensitivity 1",
            practice="The values are ratings from 0 to 1 until somebody sends an 8."),
        _EXPONENTIAL("utilities-standardised", m.ExponentialMechanism(1.0, utilities=standardised),
            _answers(_FLAT, (1.0,) + (0.0,) * 49), correct=right, truth=None,
            cause="Utilities divided by their standard deviation, with sensitivity 1",
            practice="Scores are brought to a common scale before a softmax, but the scale depends on the data."),
        _EXPONENTIAL("weights-underflow", faulty.UnderflowingExponential(1.0), far_below, correct=right),
        _EXPONENTIAL("flip-without-permuting", faulty.FlipWithoutPermuting(1.0), first_falls,
            correct=m.PermuteAndFlip(1.0)),
    ]  # fmt: skip


def _winners() -> list[Fault]:
    right, both = m.ReportNoisyMax(1.0), faulty.WinnerWithNoisyCount(1.0, parts=2)
    counts = Answers(2, 0.0, 3.0)
    swapped = _answers((1.0, 0.5), (0.5, 1.0), counts)
    tied, apart = _answers((1.0, 1.0), (0.0, 1.0), counts), _answers((0.0, 0.0), (1.0, -1.0), counts)
    top_two = _answers((0.0,) * 4, (1.0, 1.0, -1.0, -1.0))
    beside = faulty.WinnerWithNoisyCount(1.0)
    top = faulty.TopCandidates(1.0)
    return [
        _NOISY_MAX("noisy-max-without-two", m.ReportNoisyMax(1.0, monotone=True), _APART, correct=right,
            truth=PureDP(2.0), runs=50_000,
            cause="Report noisy max with noise of scale Δ/ε, enough for monotone counts only: 2ε instead of ε",
            practice="The saving for counting queries (Dwork & Roth 2014, Claim 3.9) is taken where a row is replaced, "
            "or for scores that can fall when a row is added. The bug shows where one count rises while the others "
            "fall."),
        _NOISY_MAX("noisy-max-value", LargestNoisyCount(1 / 0.5, PureDP(0.5)),
            _answers((0.0,) * 5, (1.0,) * 5), correct=LargestNoisyCount(5 / 0.5, PureDP(0.5)),
            exact=2.5, truth=PureDP(2.5),
            cause="The largest noisy count released, with noise that suffices for its index: Kε instead of ε for K "
            "counts",
            practice="The maximum comes for free with its index and is printed with it (Ding, Wang, Wang, Zhang & "
            "Kifer 2018, Section 4). When a row can raise all K counts, the lower tail of the released value falls by "
            "e^{−Kε} for a shift of 1, as all K noises must be low. The bug shows on counts (0, …, 0) and (1, …, 1), "
            "at values below both."),
        _NOISY_MAX("one-noise-for-all", faulty.OneNoiseForAll(1.0), swapped, correct=right),
        _NOISY_MAX("winner-with-exact-count", faulty.WinnerWithExactCount(1.0), tied, correct=both, exact=math.inf),
        _NOISY_MAX("budget-spent-twice", beside, apart, correct=both,
            exact=1.0 + abs(float(beside.winners((1.0, -1.0)).log_probabilities[1]) - math.log(0.5)), runs=50_000),
        _NOISY_MAX("top-two-for-one", top, top_two, correct=faulty.TopCandidates(1.0, charged=2),
            exact=_largest_loss(top.log_probabilities(top_two.x), top.log_probabilities(top_two.y)), runs=50_000,
            cause="The two best candidates in order, with Gumbel noise for the best: 2ε instead of ε"),
    ]  # fmt: skip


def _largest_loss(log_p: dict[Any, float], log_q: dict[Any, float]) -> float:
    return max(abs(log_p[outcome] - log_q[outcome]) for outcome in log_p)


def _thresholds() -> list[Fault]:
    right, released = m.SparseVector(1.0), faulty.SparseVectorReleasingValue(1.0)
    half_rise, most_rise = (_answers(*rise_and_fall(n, 6 - n)) for n in (3, 5))
    unscaled, endless = faulty.SparseVectorUnscaledNoise(1.0, cutoff=3), faulty.SparseVectorWithoutCutoff(1.0)
    swapped = _answers((0.0, 1.0), (1.0, 0.0))
    return [
        _SPARSE("sparse-vector-value", released, _answers((0.0,) * 10, (1.0,) * 10), correct=right,
            exact=10 / released.runs_as.query_scale, runs=500_000),
        _SPARSE("sparse-vector-unscaled", unscaled, half_rise, correct=m.SparseVector(1.0, 3), runs=100_000),
        _SPARSE("sparse-vector-no-query-noise", faulty.SparseVectorWithoutQueryNoise(1.0), swapped,
            correct=m.SparseVector(1.0, 2)),
        _SPARSE("sparse-vector-no-cutoff", endless, half_rise, correct=m.SparseVector(1.0, 6), runs=100_000),
        _SPARSE("sparse-vector-epsilon-twice", m.NoisyThreshold(PureDP(1.0), 1.0, 2.0, cutoff=1), most_rise,
            correct=right, truth=PureDP(2.0), cause="Threshold and answers with noise for ε each instead of ε/2",
            practice="The split of the budget is written twice, or not written.", runs=100_000),
        _SPARSE("sparse-vector-monotone", m.SparseVector(1.0, monotone=True), most_rise, correct=right,
            truth=PureDP(1.5), cause="Half the noise on the answers, although some rise and some fall",
            practice="The saving for counts under add/remove is kept when a row is replaced.", runs=200_000),
    ]  # fmt: skip


_SUM: Final[FaultMaker] = partial(fault, "sum")
_MEAN: Final[FaultMaker] = partial(fault, "mean")
_QUANTILE: Final[FaultMaker] = partial(fault, "quantile")
_GRAPH: Final[FaultMaker] = partial(fault, "graph")


def statistic_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_sums(), *_means(), *_graphs()]


def _sums() -> list[Fault]:
    unit = ClippedTotal(0.0, 1.0)
    exact_sum = m.LaplaceMechanism(1.0, query=unit)
    outlier = NeighbouringPair([1.0], [1.0, 6.0], _ROWS, Rows(high=6.0))
    up_and_down, sixteens = [1.25, -0.75] * 60, [16.0] * 127
    return [
        _SUM("sum-not-clipped", m.LaplaceMechanism(1.0, query=total), outlier, correct=exact_sum, truth=None,
            cause="Rows that are not clipped to the range for which there is noise",
            practice="The range is what the data should have, or had when somebody looked at them."),
        _SUM("clipped-after-noise", faulty.ClippedAfterNoise(1.0, 8.0), outlier, correct=exact_sum, exact=6.0),
        _SUM("noise-of-a-mean", m.LaplaceMechanism(0.5, 0.25, unit),
            NeighbouringPair([0.0] * 4, [0.0] * 3 + [1.0], Replace(), Rows(most=4)),
            correct=m.LaplaceMechanism(0.5, query=unit), truth=PureDP(2.0),
            cause="A sum of four rows with the noise for their mean",
            practice="The sensitivity 1/n is looked up, and the division comes later or never."),
        _SUM("sum-wraps-around", m.LaplaceMechanism(1.0, query=WrappingTotal(8)),
            NeighbouringPair([1] * 127, [1] * 128, _ROWS), correct=m.LaplaceMechanism(1.0, query=total),
            truth=PureDP(255.0), cause="Whole rows added in eight bits, where 127 + 1 is −128",
            practice="numpy sums in the type of the data (Casacuberta, Shoemate, Vadhan & Wagaman 2022)."),
        _SUM("rounding-accumulates", m.LaplaceMechanism(1.0, 16.75, half_precision_total),
            NeighbouringPair([*sixteens, 8.0, *up_and_down], [*sixteens, 16.0, *up_and_down], Replace()),
            correct=m.LaplaceMechanism(1.0, 16.75, total), truth=None,
            cause="A replaced row decides how all later rows are rounded, and the sum moves 120 farther than the row",
            practice="Sums are in half precision; doubles show the same later (Casacuberta et al. 2022)."),
        _SUM("order-of-the-rows", m.LaplaceMechanism(1.0, 16.0, half_precision_total),
            NeighbouringPair([16.0] * 128 + [1.0] * 100, [*[1.0] * 100, *[16.0] * 128, 0.0], _ROWS),
            correct=m.LaplaceMechanism(1.0, 16.0, total), truth=None,
            cause="A sum in half precision that depends on the order of the rows",
            practice="Addition is taken for associative, and datasets for sets (Casacuberta et al. 2022)."),
        _SUM("rounded-before-noise", m.LaplaceMechanism(0.5, 0.5, RoundedAnswer()),
            NeighbouringPair(0.4, 0.6, Within("l1", 0.5), Answers()), correct=m.LaplaceMechanism(0.5, 0.5),
            truth=PureDP(1.0), cause="An answer of sensitivity ½ rounded to a whole number, which may move by 1",
            practice="Rounding is taken for harmless before the noise as it is after it."),
    ]  # fmt: skip


def _means() -> list[Fault]:
    right = faulty.FlooredScaleMean(1.0, least_count=1.0)
    return [
        _MEAN("mean-by-exact-count", faulty.ScaleFromTheData(1.0, mean, share_of_a_row),
            NeighbouringPair([0.0], [0.0, 0.0], _ROWS), correct=right, exact=math.inf,
            cause="A sum and its noise divided by the exact number of rows",
            practice="The number of rows is not thought sensitive, but the tails of the noise reveal it.", runs=20_000),
        _MEAN("noise-floored", faulty.FlooredScaleMean(1.0), NeighbouringPair([0.0], [0.0, 1.0], _ROWS), correct=right,
            exact=math.inf),
        _SUM("range-from-the-values", faulty.ScaleFromTheData(1.0, total, spread),
            NeighbouringPair([0.0, 1.0], [0.0, 1.0, 5.0], _ROWS),
            correct=m.LaplaceMechanism(1.0, 5.0, ClippedTotal(0.0, 5.0)), exact=math.inf,
            cause="The range of the values in the data as the sensitivity of their sum",
            practice="Bounds are optional, and the default is the minimum and maximum of the data."),
        _QUANTILE("median-by-local-sensitivity", faulty.ScaleFromTheData(1.0, median, gap_at_the_median),
            NeighbouringPair([0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0], Replace()),
            correct=m.LaplaceMechanism(1.0, query=median), exact=math.inf,
            cause="A median with noise for its local sensitivity, which may be 0",
            practice="The global sensitivity of a median is hopeless (Nissim, Raskhodnikova & Smith 2007)."),
        _QUANTILE("median-with-noise-of-a-mean", m.LaplaceMechanism(0.5, 1 / 3, median),
            NeighbouringPair([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], Replace()), truth=PureDP(1.5),
            correct=m.LaplaceMechanism(0.5, query=median), cause="A median of three rows with the noise for their mean",
            practice="Aggregates share the code that computes a sensitivity."),
    ]  # fmt: skip


def _graphs() -> list[Fault]:
    require("graphs", "mechanisms of graphs need", "networkx")
    import networkx as nx  # takes long to import

    nodes, edges = NodeNeighbours(), EdgeNeighbours()
    centre = NeighbouringPair(nx.star_graph(3), nx.empty_graph([1, 2, 3]), nodes, Graphs(4))
    wide_centre = NeighbouringPair(nx.star_graph(4), nx.empty_graph([1, 2, 3, 4]), nodes, Graphs(5))
    one_edge = NeighbouringPair(nx.empty_graph(2), nx.path_graph(2), edges, Graphs(4))
    complete, without_one = nx.complete_graph(5), nx.complete_graph(5)
    without_one.remove_edge(0, 1)
    histogram, three_edges = m.DegreeHistogramMechanism(0.5, 3), m.EdgeCountMechanism(0.5, nodes, 3)
    return [
        _GRAPH("edge-noise-for-nodes", m.EdgeCountMechanism(0.5), centre, correct=three_edges, truth=PureDP(1.5),
            cause="An edge count with noise for one edge, claimed to hide a node of up to three edges: "
            "3ε instead of ε",
            practice='"The graph is private" does not say whether edges or nodes are (Hay, Li, Miklau & Jensen 2009). '
            "The bug shows on graphs that differ by a node with its edges (`NodeNeighbours`). For graphs that differ "
            "by an edge the claim holds."),
        _GRAPH("one-end-of-an-edge", m.DegreeHistogramMechanism(2 * 0.5, 3), one_edge, correct=histogram,
            claim=histogram.claim, runs=50_000,
            cause="A degree histogram with noise for one end of an edge, sensitivity 2: 2ε instead of ε",
            practice='One node moves from one count to another, "so two counts change", and the other end is '
            "forgotten. The bug shows on graphs that differ by an edge, unless the degrees of its ends differ by 1: "
            "then one node leaves the count that the other enters."),
        _GRAPH("triangles-of-one-edge", m.GeometricMechanism(0.5, query=n_triangles),
            NeighbouringPair(complete, without_one, edges, Graphs(5)), truth=PureDP(1.5),
            correct=m.GeometricMechanism(0.5, 3, n_triangles),
            cause="A count of triangles with noise for one, where an edge of a graph of five nodes closes three",
            practice="Counts are said to have sensitivity 1 (Nissim, Raskhodnikova & Smith 2007 on triangles)."),
        _GRAPH("degree-from-the-graph", faulty.ScaleFromTheData(0.5, n_edges, largest_degree), wide_centre,
            correct=m.EdgeCountMechanism(0.5, nodes, 4), exact=math.inf,
            cause="A count of edges with noise for the largest degree of the graph at hand",
            practice="A bound on the degree is needed, and the graph has one."),
    ]  # fmt: skip
