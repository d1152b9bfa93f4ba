"""Known sensitivities: a right bound is never refuted, and a wrong one is, by a pair that anybody can check."""

from __future__ import annotations

import functools
import math
import statistics
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from dpaudit import AddRemove, Answers, Graphs, Replace, Rows, UserLevel, Values, Verdict, Within, check_sensitivity
from dpaudit.audit.datasets.named_adjacency import as_adjacency
from dpaudit.mechanisms import query_sensitivity

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
WIDE = Rows(finite=True, low=-5.0, high=5.0)
UNIT = Rows(finite=True, size=5)


def clip(rows, low=0.0, high=1.0):
    return np.clip(np.asarray(rows, dtype=float), low, high)


def clipped_sum(rows):
    return clip(rows).sum()


def mean(rows):
    return clip(rows).sum() / max(len(rows), 1)


def variance(rows):
    return float(np.var(rows))


def second_moments(rows):
    table = np.array(rows, dtype=float).reshape(-1, 2)
    return table.T @ table


def summary(rows):
    return {"count": len(rows), "sum": clipped_sum(rows)}


def totals(rows):
    return [sum(min(paid, 3.0) for _, paid in rows), len(rows)]


def triangles(graph):
    return sum(nx.triangles(graph).values()) // 3


KNOWN = [
    pytest.param(len, WIDE, "add-remove", "l1", 1.0, id="count"),
    pytest.param(len, WIDE, "replace", "l1", 0.0, id="count of a public size"),
    pytest.param(clipped_sum, WIDE, "add-remove", "l1", 1.0, id="sum, a row more"),
    pytest.param(lambda rows: clip(rows, -1.0).sum(), WIDE, "add-remove", "l1", 1.0, id="sum of signs, a row more"),
    pytest.param(lambda rows: clip(rows, -1.0).sum(), WIDE, "replace", "l1", 2.0, id="sum of signs, another row"),
    pytest.param(mean, Rows(finite=True, low=-5.0, high=5.0, size=5), "replace", "l1", 1 / 5, id="mean of five"),
    pytest.param(
        mean, Rows(finite=True, low=-5.0, high=5.0, least=1), "add-remove", "l1", 1 / 2, id="mean of one or more"
    ),
    pytest.param(mean, WIDE, "add-remove", "l1", 1.0, id="mean of any number"),
    pytest.param(variance, UNIT, "replace", "l1", 4 / 25, id="variance"),
    pytest.param(statistics.median, UNIT, "replace", "l1", 1.0, id="median"),
    pytest.param(lambda rows: np.quantile(rows, 0.75), UNIT, "replace", "l1", 1.0, id="quantile"),
    pytest.param(Counter, Rows(finite=True, values=tuple("abcd")), "add-remove", "l1", 1.0, id="histogram, a row more"),
    pytest.param(Counter, Rows(finite=True, values=tuple("abcd")), "replace", "l1", 2.0, id="histogram, another row"),
    pytest.param(Counter, Rows(finite=True, values=tuple("abcd")), "replace", "l2", math.sqrt(2), id="histogram in l2"),
    pytest.param(second_moments, Rows(low=(0.0, 0.0), high=(1.0, 1.0)), "add-remove", "l2", 2.0, id="matrix"),
    pytest.param(summary, WIDE, "add-remove", "l1", 2.0, id="dictionary"),
    pytest.param(summary, WIDE, "add-remove", "linf", 1.0, id="largest of a dictionary"),
    pytest.param(lambda a: np.minimum(a, 1.5), Answers(4), Within("l1", 0.5), "l1", 0.5, id="answers"),
    pytest.param(np.abs, Answers(3, -2.0, 2.0), "linf", "l2", math.sqrt(3), id="answers in l2"),
    pytest.param(lambda v: v * v, Values(range(20)), "local", "l1", 19.0**2, id="values"),
    pytest.param(totals, Rows(low=(0, 0.0), high=(9, 50.0), rows_per_user=2), UserLevel(0), "l1", 8.0, id="users"),
    pytest.param(nx.Graph.number_of_edges, Graphs(6), "edge", "l1", 1.0, id="edges"),
    pytest.param(nx.Graph.number_of_edges, Graphs(6), "node", "l1", 5.0, id="edges of a node"),
    pytest.param(triangles, Graphs(6), "node", "l1", 10.0, id="triangles of a node"),
    pytest.param(triangles, Graphs(6), "edge", "l1", 4.0, id="triangles of an edge"),
]


def is_really_apart(result, query, adjacency, norm):
    """Checks the pair without any of the search: neighbours, whose answers are as far apart as stated."""
    assert as_adjacency(adjacency).check(result.x, result.y, 1)
    answers = [query(side) for side in (result.x, result.y)]
    if isinstance(answers[0], dict):
        keys = sorted({*answers[0], *answers[1]})
        answers = [[answer.get(key, 0) for key in keys] for answer in answers]
    step = np.subtract(*(np.asarray(answer, dtype=float) for answer in answers))
    return np.linalg.norm(np.ravel(step), ORDERS[norm]) == pytest.approx(result.change)


@pytest.mark.parametrize(("query", "domain", "adjacency", "norm", "true"), KNOWN)
def test_known_sensitivities(query, domain, adjacency, norm, true):
    options = {"adjacency": adjacency, "norm": norm, "evaluations": 250}
    right = check_sensitivity(query, domain, bound=true, **options)
    assert not right.is_refuted
    assert right.change == pytest.approx(true)
    assert is_really_apart(right, query, adjacency, norm)
    assert right.evaluations <= 260
    if true > 0.0:
        wrong = check_sensitivity(query, domain, bound=0.99 * true, **options)
        assert wrong.is_refuted
        assert f"REFUTED: the {norm} sensitivity is at least " in wrong.sentence
        assert wrong.shown.summary in wrong.sentence


def spread(rows):
    return [max(rows, default=0) - min(rows, default=0), len(rows) ** 2, float(np.prod(rows))]


@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_enumerated_sensitivities_are_reached(adjacency, norm):
    """All pairs of small domains, one after the other."""
    for query, rows in ((spread, (-1.0, 0.5, 2.0)), (Counter, ("a", "b", "c")), (lambda r: sum(r) ** 3, (-2, 0, 1))):
        counted = (lambda r: [Counter(r)[each] for each in "abc"]) if query is Counter else query
        exact = query_sensitivity(counted, rows, 3, adjacency, norm=norm)
        options = {"adjacency": adjacency, "norm": norm, "bound": exact, "evaluations": 100}
        found = check_sensitivity(query, Rows(finite=True, values=rows, most=3), **options)
        assert found.change == pytest.approx(exact, rel=1e-12)
        assert not found.is_refuted


def of_some(is_wrong):
    """A sum of rows of at most 1, in which some values count as 5."""
    return lambda rows: sum(5.0 if is_wrong(row) else row for row in rows)


@pytest.mark.parametrize(
    "is_wrong",
    [
        pytest.param(lambda row: 0.40 < row < 0.41, id="window"),
        pytest.param(lambda row: 0.6170 < row < 0.6180, id="narrow window"),
        pytest.param(lambda row: row == 0.25, id="power of two"),
        pytest.param(lambda row: 0.999999 < row < 1.0, id="next to an end"),
        pytest.param(lambda row: 0.0 < row < 1e-300, id="next to the other end"),
        pytest.param(lambda row: row == 0.3, id="a tenth"),
    ],
)
@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()], ids=str)
def test_values_that_are_mishandled_are_found(is_wrong, adjacency):
    options = {"adjacency": adjacency, "evaluations": 3_000}
    found = check_sensitivity(of_some(is_wrong), Rows(finite=True), bound=1.0, **options)
    assert found.is_refuted
    assert found.change >= 4.9
    assert any(is_wrong(row) for row in (*found.x, *found.y))


def test_a_window_that_shows_among_three_rows_only():
    """Every number of a leading pair is swept, not only those of the initial pairs."""

    def query(rows):
        return sum(5.0 if 0.40 < row < 0.42 and len(rows) > 2 else row for row in rows)

    options = {"adjacency": "add-remove", "evaluations": 3_000}
    assert check_sensitivity(query, Rows(finite=True), bound=1.0, **options).change > 4.0


def test_an_overflow_of_int8_is_found():
    def total(rows):
        return np.array(rows, dtype=np.int8).sum(dtype=np.int8)

    domain = Rows(finite=True, low=0, high=60, integer=True)
    found = check_sensitivity(total, domain, adjacency="add-remove", bound=60, evaluations=3_000)
    assert found.is_refuted
    assert found.change > 128
    assert is_really_apart(found, total, "add-remove", "l1")


def test_hill_climbing_finds_a_peak_that_no_pattern_has():
    """The change is that of a product of three rows, largest at 0.3, 0.6 and 0.9 in this order."""

    def query(rows):
        peaks = zip(rows, (0.3, 0.6, 0.9), strict=False)
        return math.prod(math.exp(-abs(row - peak)) for row, peak in peaks) if len(rows) == 3 else 0.0

    options = {"adjacency": "add-remove", "evaluations": 3_000}
    found = check_sensitivity(query, Rows(finite=True, most=4), bound=0.9, **options)
    assert found.is_refuted
    assert found.change > 0.98
    assert {len(found.x), len(found.y)} in ({2, 3}, {3, 4})


def test_pairs_listed_and_generated():
    def total(rows):
        return sum(rows)

    pairs = [([1, 2], [1]), ([3], []), ([1], [1])]
    with_strangers = check_sensitivity(total, pairs, adjacency="add-remove", bound=2)
    assert (with_strangers.change, with_strangers.found_by, with_strangers.pairs) == (3.0, "pair 2", 2)
    assert check_sensitivity(total, pairs, bound=3).verdict.name == "NOT_REFUTED"
    drawn = check_sensitivity(total, lambda rng: (rng.random(3), rng.random(3)), bound=2.0)
    assert drawn.is_refuted
    assert drawn.found_by.startswith("generated pair ")
    assert drawn.pairs > 4_000
    endless = check_sensitivity(total, (([n], []) for n in iter(int, 1)), bound=1, evaluations=100)
    assert endless.change == 0.0


def test_strategies():
    from hypothesis import strategies as st

    datasets = st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), max_size=4)
    assert check_sensitivity(sum, datasets, adjacency="add-remove", bound=1.0).change == 7.0


def test_distances():
    found = check_sensitivity(len, WIDE, adjacency="add-remove", bound=2, distance=3, evaluations=200)
    assert found.change == 3.0
    assert "the l1 sensitivity at distance 3 is at least 3, stated 2" in found.sentence


def test_a_seed_fixes_the_result():
    def once(seed):
        return check_sensitivity(
            variance, Rows(finite=True, size=4), adjacency="replace", bound=0.1, evaluations=300, seed=seed
        )

    assert once(3) == once(3)
    assert (once(3).x, once(3).y) == (once(3).x, once(3).y)


@pytest.mark.parametrize("kept", [np.zeros(2), {"n": 0}, [0.0]])
def test_a_query_that_fills_one_output_again_is_refuted_like_its_copy(kept):
    key = "n" if isinstance(kept, dict) else 0

    def query(rows):
        kept[key] = 3 * len(rows)
        return kept

    result = check_sensitivity(query, Rows(high=1.0), adjacency="add-remove", bound=1.0, evaluations=100)
    assert result.is_refuted
    assert result.change == 3.0
    assert abs(result.pair.answer_x[key] - result.pair.answer_y[key]) == 3.0


def test_a_query_that_never_changes_tests_nothing():
    """Unless it states just that."""
    search = functools.partial(check_sensitivity, lambda rows: 1.0, Rows(high=1.0), adjacency="add-remove")
    result = search(bound=1.0, evaluations=100)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the query never changed in" in str(result)
    assert search(bound=0.0, evaluations=100).verdict is Verdict.NOT_REFUTED
