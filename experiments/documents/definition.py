"""Supplements to the definition of differential privacy: rows D1 to D8."""

from __future__ import annotations

import math
from typing import Final

from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...audit.datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ...mechanisms import (
    DegreeHistogramMechanism,
    EdgeCountMechanism,
    GeometricMechanism,
    GroupPrivacy,
    HistogramMechanism,
    LaplaceMechanism,
    RandomisedResponse,
    RareLeakLaplace,
    exact_delta,
    exact_epsilon,
)
from ...mechanisms.faulty import EdgeNoiseForNodes, HalfNoiseHistogram, OneEndDegreeHistogram
from ..cases.experiment import AuditCase, Experiment, false_version, true_version
from ..cases.pure_cases import pure_version
from . import definition_delta, definition_group, definition_posterior

DOCUMENT: Final = "definition"
_RUNS: Final = 200_000


def experiments() -> list[Experiment]:
    """Rows D1 to D8."""
    return [
        definition_posterior.experiment(),
        Experiment(
            id="D2",
            document=DOCUMENT,
            statement="A mechanism is private for one kind of neighbours: noise for rows added or removed may be too "
            "little for rows replaced, and the other way round.",
            source="Dwork & Roth (2014), Section 2.3 (add/remove); Vadhan (2017), Section 1 (replace)",
            cases=tuple(_neighbours()),
        ),
        Experiment(
            id="D3",
            document=DOCUMENT,
            statement="Noise that hides an edge of a graph does not hide a node; with epsilon for each edge a person "
            "of at most 1/epsilon edges is hidden with 1 in all.",
            source="Dwork & Roth (2014), Section 2.3 (granularity of privacy)",
            cases=tuple(_graphs()),
        ),
        Experiment(
            id="D4",
            document=DOCUMENT,
            statement="1 + epsilon stands for e^epsilon only where epsilon is small; and without a delta the bound "
            "holds for the rarest event.",
            source="Vadhan (2017), Section 1; Dwork & Roth (2014), Definition 2.4",
            cases=tuple(_pure()),
        ),
        *definition_delta.experiments(),
        *definition_group.experiments(),
    ]


def total(rows: list[float]) -> float:
    """The sum of a list of numbers, as a query."""
    return float(sum(rows))


def _neighbours() -> list[AuditCase]:
    rows, removed, replaced = [0, 1, 1, 2], [0, 1, 1], [0, 1, 1, 0]
    added_or_removed, replace = AddRemove(), Replace()
    bits, no_bit, other_bit = [1, 1, 1], [1, 1], [1, 1, 0]
    count = GeometricMechanism(1.0, query=total)
    one_bin, two_bins = HistogramMechanism(1.0, k=3), HistogramMechanism(1.0, k=3, sensitivity=2)
    values, no_value, other_value = [3.5, 4.0, 4.0], [3.5, 4.0], [3.5, 4.0, 3.0]
    ranged = LaplaceMechanism(1.0, query=total)
    return [
        pure_version("D2-count-add-remove", True, count, (bits, no_bit), added_or_removed, "a count: sensitivity 1"),
        pure_version("D2-count-replace", True, count, (bits, other_bit), replace, "a count: sensitivity 1 again"),
        pure_version("D2-histogram-add-remove", True, one_bin, (rows, removed), added_or_removed, "one bin changes"),
        pure_version("D2-histogram-replace", True, two_bins, (rows, replaced), replace, "two bins change"),
        pure_version(
            "D2-histogram-half-noise",
            False,
            HalfNoiseHistogram(1.0, k=3),
            (rows, replaced),
            replace,
            "noise for one bin, where two change: 2 epsilon",
        ),
        pure_version("D2-sum-replace", True, ranged, (values, other_value), replace, "values from 3 to 4: moves by 1"),
        pure_version(
            "D2-sum-add-remove",
            False,
            ranged,
            (values, no_value),
            added_or_removed,
            "the same noise where a value may vanish: 4 epsilon",
        ),
    ]


def _graphs() -> list[AuditCase]:
    import networkx as nx

    edges, nodes = EdgeNeighbours(), NodeNeighbours()
    ring, path = nx.cycle_graph(6), nx.path_graph(6)
    person, nobody = nx.star_graph(4), nx.empty_graph(range(1, 5))  # node 0 knows the four others
    crowd, empty = nx.star_graph(8), nx.empty_graph(range(1, 9))
    knot, open_knot = nx.complete_graph(4), nx.complete_graph(4)
    open_knot.remove_edge(0, 1)
    quarter = EdgeCountMechanism(0.25)
    cases = [
        pure_version("D3-edges", True, EdgeCountMechanism(0.5), (ring, path), edges, "a count of edges, one fewer"),
        pure_version(
            "D3-nodes",
            True,
            EdgeCountMechanism(0.5, nodes, max_degree=4),
            (person, nobody),
            nodes,
            "noise for a node of up to 4 edges",
        ),
        pure_version(
            "D3-edge-noise-for-nodes",
            False,
            EdgeNoiseForNodes(0.5, max_degree=4),
            (person, nobody),
            nodes,
            "a person of 4 edges leaves: 4 epsilon",
        ),
        pure_version(
            "D3-degrees-edges", True, DegreeHistogramMechanism(1.0, 3), (knot, open_knot), edges, "two nodes move"
        ),
        pure_version(
            "D3-degrees-nodes",
            True,
            DegreeHistogramMechanism(1.0, 4, nodes),
            (person, nobody),
            nodes,
            "a node and its four friends move",
        ),
        pure_version(
            "D3-degrees-one-end",
            False,
            OneEndDegreeHistogram(1.0, 3),
            (knot, open_knot),
            edges,
            "sensitivity 2, as if an edge had one end: here 2 epsilon",
        ),
        pure_version(
            "D3-person-of-4",
            True,
            quarter,
            (person, nobody),
            nodes,
            "epsilon 1/4 for each edge, 4 edges: 1 in all",
            claim=PureDP(1.0),
        ),
        pure_version(
            "D3-person-of-8",
            False,
            quarter,
            (crowd, empty),
            nodes,
            "8 edges are more than 1/epsilon: 2 in all",
            claim=PureDP(1.0),
        ),
    ]
    lonely = nx.empty_graph(5)
    cases.append(
        true_version(
            "D3-four-edges",
            quarter,
            person,
            lonely,
            GroupPrivacy(0.25),
            edges,
            distance=4,
            exact=exact_epsilon(quarter.law(person), quarter.law(lonely)),
            runs=_RUNS,
            note="the same as four steps of one edge",
        )
    )
    return cases


def _pure() -> list[AuditCase]:
    """`1 + epsilon` as PureDP(ln(1 + epsilon)): p ≤ (1 + ε) q for every event and its complement."""
    answers, leaky = Within("l1"), RareLeakLaplace(1.0, 1e-3)
    large, small = RandomisedResponse(1.0), RandomisedResponse(math.log1p(0.01))
    pair = (0.0, 1.0)
    laws = leaky.law(0.0), leaky.law(1.0)
    return [
        pure_version("D4-e-to-epsilon", True, large, (0, 1), Local(), "p <= e q"),
        pure_version(
            "D4-one-plus-large", False, large, (0, 1), Local(), "p <= 2 q, for e q", claim=PureDP(math.log(2.0))
        ),
        pure_version(
            "D4-one-plus-small",
            True,
            small,
            (0, 1),
            Local(),
            f"p <= 1.01 q, and so p <= e^0.01 q, which allows {0.01 - math.log1p(0.01):.1g} more in epsilon",
            claim=PureDP(math.log1p(0.01)),
        ),
        pure_version(
            "D4-rare-leak-pure",
            False,
            leaky,
            pair,
            answers,
            "one run in a thousand leaks",
            claim=PureDP(1.0),
            runs=1_000_000,
        ),
        true_version(
            "D4-rare-leak-delta",
            leaky,
            *pair,
            leaky.claim,
            answers,
            exact=exact_epsilon(*laws, leaky.delta),
            note="the delta covers it",
        ),
        false_version(
            "D4-rare-leak-small-delta",
            leaky,
            *pair,
            ApproxDP(1.0, leaky.delta / 5, bound_on="delta"),
            answers,
            exact=exact_delta(*laws, 1.0),
            note="a fifth of that delta does not",
        ),
    ]
