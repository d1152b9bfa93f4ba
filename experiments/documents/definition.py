"""Supplements to the definition of differential privacy: experiments D1 to D8."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...audit.datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ...audit.extras import require
from ...mechanisms import (
    DegreeHistogramMechanism,
    EdgeCountMechanism,
    GeometricMechanism,
    GroupPrivacy,
    HistogramMechanism,
    LaplaceMechanism,
    RandomisedResponse,
    RareLeakLaplace,
)
from ...mechanisms.faulty import EdgeNoiseForNodes, HalfNoiseHistogram, OneEndDegreeHistogram
from ..cases.audits import fails, holds, stated
from ..cases.experiment import AuditCase, Experiment
from . import definition_delta, definition_group, definition_posterior

DOCUMENT: Final = "definition"


def experiments() -> list[Experiment]:
    """Return experiments D1 to D8."""
    about = partial(stated, DOCUMENT)
    return [
        definition_posterior.experiment(),
        about(
            "D2",
            "A mechanism is private for one adjacency: noise calibrated for add/remove can be too small for replace, "
            "and vice versa.",
            "Dwork & Roth (2014), Section 2.3 (add/remove); Vadhan (2017), Section 1 (replace)",
            _neighbours(),
        ),
        about(
            "D3",
            "Noise that hides an edge of a graph does not hide a node; at epsilon for each edge, a person with at "
            "most 1/epsilon edges is hidden at a total of 1.",
            "Dwork & Roth (2014), Section 2.3 (granularity of privacy)",
            _graphs(),
        ),
        about(
            "D4",
            "1 + epsilon replaces e^epsilon only for small epsilon; without a delta the bound also holds for the "
            "rarest event.",
            "Vadhan (2017), Section 1; Dwork & Roth (2014), Definition 2.4",
            _pure(),
        ),
        *definition_delta.experiments(),
        *definition_group.experiments(),
    ]


def total(rows: list[float]) -> float:
    """Return the sum of the rows."""
    return float(sum(rows))


def _neighbours() -> list[AuditCase]:
    rows, removed, replaced = [0, 1, 1, 2], [0, 1, 1], [0, 1, 1, 0]
    change, replace = AddRemove(), Replace()
    bits, no_bit, other_bit = [1, 1, 1], [1, 1], [1, 1, 0]
    count = GeometricMechanism(1.0, query=total)
    one_bin, two_bins = HistogramMechanism(1.0, k=3), HistogramMechanism(1.0, k=3, sensitivity=2)
    half = HalfNoiseHistogram(1.0, k=3)
    values, no_value, other_value = [3.5, 4.0, 4.0], [3.5, 4.0], [3.5, 4.0, 3.0]
    ranged = LaplaceMechanism(1.0, query=total)
    return [
        holds("D2-count-add-remove", count, (bits, no_bit), change, "count under add/remove, sensitivity 1"),
        holds("D2-count-replace", count, (bits, other_bit), replace, "count under replace, sensitivity 1"),
        holds(
            "D2-histogram-add-remove", one_bin, (rows, removed), change, "histogram under add/remove, one changed bin"
        ),
        holds("D2-histogram-replace", two_bins, (rows, replaced), replace, "histogram under replace, two changed bins"),
        fails(
            "D2-histogram-half-noise",
            half,
            (rows, replaced),
            replace,
            "histogram under replace, noise for one changed bin: 2 epsilon",
        ),
        holds(
            "D2-sum-replace",
            ranged,
            (values, other_value),
            replace,
            "sum of values in [3, 4] under replace, sensitivity 1",
        ),
        fails(
            "D2-sum-add-remove",
            ranged,
            (values, no_value),
            change,
            "sum of values in [3, 4] under add/remove, noise for replace: 4 epsilon",
        ),
    ]


def _graphs() -> list[AuditCase]:
    require("graphs", "experiments on graphs need", "networkx")
    import networkx as nx

    edges, nodes = EdgeNeighbours(), NodeNeighbours()
    cycle = nx.cycle_graph(6), nx.path_graph(6)
    person = nx.star_graph(4), nx.empty_graph(range(1, 5))  # node 0 knows the four others
    crowd = nx.star_graph(8), nx.empty_graph(range(1, 9))
    isolated = person[0], nx.empty_graph(5)
    knot = nx.complete_graph(4), nx.complete_graph(4)
    knot[1].remove_edge(0, 1)
    quarter, one = EdgeCountMechanism(0.25), PureDP(1.0)
    by_node, unscaled = EdgeCountMechanism(0.5, nodes, max_degree=4), EdgeNoiseForNodes(0.5, max_degree=4)
    degrees, one_end = DegreeHistogramMechanism(1.0, 4, nodes), OneEndDegreeHistogram(1.0, 3)
    degrees_by_edge, group = DegreeHistogramMechanism(1.0, 3), GroupPrivacy(0.25)
    return [
        holds("D3-edges", EdgeCountMechanism(0.5), cycle, edges, "edge count with one edge fewer"),
        holds("D3-nodes", by_node, person, nodes, "edge count with noise for a node of at most 4 edges"),
        fails(
            "D3-edge-noise-for-nodes",
            unscaled,
            person,
            nodes,
            "edge count with noise for one edge, person with 4 edges: 4 epsilon",
        ),
        holds(
            "D3-degrees-edges", degrees_by_edge, knot, edges, "degree histogram with one edge fewer, two moved nodes"
        ),
        holds("D3-degrees-nodes", degrees, person, nodes, "degree histogram without a node and its four edges"),
        fails(
            "D3-degrees-one-end",
            one_end,
            knot,
            edges,
            "degree histogram with sensitivity for one end of an edge: 2 epsilon",
        ),
        holds(
            "D3-person-of-4",
            quarter,
            person,
            nodes,
            "edge count, person with 4 edges at epsilon 1/4 each: total 1",
            claim=one,
        ),
        fails(
            "D3-person-of-8",
            quarter,
            crowd,
            nodes,
            "edge count, person with 8 edges at epsilon 1/4 each: total 2",
            claim=one,
        ),
        holds(
            "D3-four-edges",
            quarter,
            isolated,
            edges,
            "edge count, group claim for four steps of one edge",
            claim=group,
            distance=4,
        ),
    ]


def _pure() -> list[AuditCase]:
    """`1 + epsilon` as PureDP(ln(1 + epsilon)): p ≤ (1 + ε) q for every event and its complement."""
    answers, leaky = Within("l1"), RareLeakLaplace(1.0, 1e-3)
    large, small = RandomisedResponse(1.0), RandomisedResponse(math.log1p(0.01))
    bits, pair, many = (0, 1), (0.0, 1.0), 1_000_000
    two, percent = PureDP(math.log(2.0)), PureDP(math.log1p(0.01))
    fifth = ApproxDP(1.0, leaky.delta / 5, bound_on="delta")
    slack = (
        f"randomised response, p <= 1.01 q, hence p <= e^0.01 q with {0.01 - math.log1p(0.01):.1g} of slack in epsilon"
    )
    return [
        holds("D4-e-to-epsilon", large, bits, Local(), "randomised response, p <= e q"),
        fails("D4-one-plus-large", large, bits, Local(), "randomised response with p = e q, claim p <= 2 q", claim=two),
        holds("D4-one-plus-small", small, bits, Local(), slack, claim=percent),
        fails(
            "D4-rare-leak-pure",
            leaky,
            pair,
            answers,
            "Laplace noise with a leak in one run of 1000, claim without a delta",
            claim=PureDP(1.0),
            runs=many,
        ),
        holds("D4-rare-leak-delta", leaky, pair, answers, "Laplace noise with a leak covered by delta", runs=many),
        fails(
            "D4-rare-leak-small-delta",
            leaky,
            pair,
            answers,
            "Laplace noise with a leak, a fifth of the true delta",
            claim=fifth,
            runs=many,
        ),
    ]
