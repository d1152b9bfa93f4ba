"""The largest change of a query between neighbours: found, stated, and stored."""

import collections
import dataclasses
import itertools
import math
from collections import Counter, UserDict
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dpaudit import AddRemove, Answers, Replace, Rows, UserLevel, Values, Verdict, check_sensitivity
from dpaudit.audit.datasets.adjacency import as_adjacency
from dpaudit.audit.errors import AuditError, DatasetError, InconclusiveError, MechanismError, RefutedError
from dpaudit.audit.sensitivity.check_sensitivity import answer_of, change_between
from dpaudit.domains import Graphs, Within
from dpaudit.mechanisms import query_sensitivity

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
WIDE = Rows(finite=True, low=-5.0, high=5.0)
UNIT = Rows(finite=True, size=5)


def clipped(rows, low=-1.0, high=1.0):
    return sum(min(max(row, low), high) for row in rows)


LETTERS, PAID = Rows(finite=True, values=tuple("abcd")), Rows(low=(0, 0.0), high=(9, 50.0), rows_per_user=2)
KNOWN = {
    "count of a public size": (len, WIDE, "replace", "l1", 0.0),
    "sum, a row more": (lambda rows: clipped(rows, 0.0), WIDE, "add-remove", "l1", 1.0),
    "sum of signs, another row": (clipped, WIDE, "replace", "l1", 2.0),
    "mean of five": (lambda rows: clipped(rows, 0.0) / 5, UNIT, "replace", "l1", 1 / 5),
    "variance": (np.var, UNIT, "replace", "l1", 4 / 25),
    "histogram, a row more": (Counter, LETTERS, "add-remove", "l1", 1.0),
    "histogram in l2": (Counter, LETTERS, "replace", "l2", math.sqrt(2)),
    "dictionary": (lambda rows: {"n": len(rows), "sum": clipped(rows, 0.0)}, WIDE, "add-remove", "l1", 2.0),
    "answers": (lambda a: np.minimum(a, 1.5), Answers(4), Within("l1", 0.5), "l1", 0.5),
    "answers in l2": (np.abs, Answers(3, -2.0, 2.0), "linf", "l2", math.sqrt(3)),
    "values": (lambda v: v * v, Values(range(20)), "local", "l1", 19.0**2),
    "users": (lambda rows: [sum(min(paid, 3.0) for _, paid in rows), len(rows)], PAID, UserLevel(0), "l1", 8.0),
    "edges of a node": (nx.Graph.number_of_edges, Graphs(6), "node", "l1", 5.0),
    "triangles of a node": (lambda graph: sum(nx.triangles(graph).values()) // 3, Graphs(6), "node", "l1", 10.0),
}


def is_really_apart(result, query, adjacency, norm):
    """Checks the pair without any of the search: neighbours, whose answers are as far apart as stated."""
    assert as_adjacency(adjacency).check(result.x, result.y, 1)
    answers = [query(side) for side in (result.x, result.y)]
    if isinstance(answers[0], dict):
        keys = sorted({*answers[0], *answers[1]})
        answers = [[answer.get(key, 0) for key in keys] for answer in answers]
    step = np.subtract(*(np.asarray(answer, dtype=float) for answer in answers))
    return np.linalg.norm(np.ravel(step), ORDERS[norm]) == pytest.approx(result.change)


@pytest.mark.parametrize(("query", "domain", "adjacency", "norm", "true"), KNOWN.values(), ids=KNOWN)
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
    for query, rows in (
        (spread, (-1.0, 0.5, 2.0)),
        (lambda rows: [rows.count(each) for each in "abc"], ("a", "b", "c")),
        (lambda rows: sum(rows) ** 3, (-2, 0, 1)),
    ):
        exact = query_sensitivity(query, rows, 3, adjacency, norm=norm)
        options = {"adjacency": adjacency, "norm": norm, "bound": exact, "evaluations": 50}
        found = check_sensitivity(query, Rows(finite=True, values=rows, most=3), **options)
        assert found.change == pytest.approx(exact, rel=1e-12)
        assert not found.is_refuted


@pytest.mark.parametrize(
    ("adjacency", "is_wrong"),
    [
        pytest.param(Replace(), lambda row: 0.40 < row < 0.41, id="window"),
        pytest.param(Replace(), lambda row: row == 0.25, id="power of two"),
        pytest.param(AddRemove(), lambda row: 0.999999 < row < 1.0, id="next to an end"),
    ],
)
def test_values_that_are_mishandled_are_found(adjacency, is_wrong):
    """A sum of rows of at most 1, in which some values count as 5."""

    def of_some(rows):
        return sum(5.0 if is_wrong(row) else row for row in rows)

    found = check_sensitivity(of_some, Rows(finite=True), bound=1.0, adjacency=adjacency, evaluations=3_000)
    assert found.is_refuted
    assert found.change >= 4.9
    assert any(is_wrong(row) for row in (*found.x, *found.y))


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
    pairs = [([1, 2], [1]), ([3], []), ([1], [1])]
    with_strangers = check_sensitivity(sum, pairs, adjacency="add-remove", bound=2)
    assert (with_strangers.change, with_strangers.found_by, with_strangers.pairs) == (3.0, "pair 2", 2)
    assert check_sensitivity(sum, pairs, bound=3).verdict.name == "NOT_REFUTED"
    drawn = check_sensitivity(sum, lambda rng: (rng.random(3), rng.random(3)), bound=2.0)
    assert drawn.is_refuted
    assert drawn.found_by.startswith("generated pair ")
    assert drawn.pairs > 4_000
    endless = check_sensitivity(sum, (([n], []) for n in iter(int, 1)), bound=1, evaluations=100)
    assert endless.change == 0.0


@pytest.mark.parametrize("kept", [np.zeros(2), {"n": 0}])
def test_a_query_that_fills_one_output_again_is_refuted_like_its_copy(kept):
    key = "n" if isinstance(kept, dict) else 0

    def query(rows):
        kept[key] = 3 * len(rows)
        return kept

    result = check_sensitivity(query, Rows(high=1.0), adjacency="add-remove", bound=1.0, evaluations=100)
    assert result.is_refuted
    assert result.change == 3.0
    assert abs(result.pair.answer_x[key] - result.pair.answer_y[key]) == 3.0


def test_numbers_that_the_query_refuses_are_named():
    def query(rows):
        if any(map(math.isnan, rows)):
            raise ValueError("no NaN")
        return sum(min(max(row, 0.0), 1.0) for row in rows)

    result = check_sensitivity(query, Rows(low=-1.0, high=2.0), adjacency="replace", bound=1.0, evaluations=200)
    assert "NaN not tried, because the query raises on it (ValueError: no NaN)" in str(result)


def mean_query(rows):
    return clipped(rows) / len(rows)


def checked(query, domain=WIDE, bound=1.0, **options):
    return check_sensitivity(query, domain, bound=bound, **{"adjacency": "add-remove", "evaluations": 300} | options)


def test_a_query_with_noise_is_inconclusive():
    rng = np.random.default_rng(0)
    found = checked(lambda rows: len(rows) + rng.laplace(), bound=100)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.sentence.startswith("INCONCLUSIVE: the query is not deterministic: ")
    assert ", then " in found.unsteady
    assert found.evaluations < 20
    with pytest.raises(InconclusiveError):
        found.raise_if_refuted()


def test_noise_that_starts_late_is_seen_on_the_pair_found_and_rounding_is_none():
    calls = itertools.count(1)
    drifting = checked(lambda rows: len(rows) + (call if (call := next(calls)) >= 100 else 0.0), bound=1e9)
    assert drifting.verdict is Verdict.INCONCLUSIVE
    found = checked(lambda rows: len(rows) + 1e-13 * (next(calls) % 3), bound=1.0)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.change == pytest.approx(1.0)


def test_a_query_that_changes_its_dataset_is_inconclusive():
    found = checked(lambda rows: [rows.sort(), clipped(rows)][1])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the query changes its dataset" in found.sentence


def test_pairs_on_which_the_query_raises_are_counted_and_no_answers_are_an_error():
    found = checked(mean_query, bound=0.4)
    assert found.is_refuted
    assert found.errors > 0
    assert f"errors  {found.errors:,} pairs without an answer; the first: ZeroDivisionError" in str(found)
    assert min(len(found.x), len(found.y)) >= 1
    with pytest.raises(MechanismError, match=r"failed on all of 200 pairs; .* returned None"):
        checked(lambda rows: None, evaluations=5_000)


def test_nan_on_one_dataset_is_a_change_without_bound():
    found = checked(lambda rows: np.nan if not rows else mean_query(rows), bound=2.0)
    assert found.is_refuted
    assert found.change == math.inf
    assert "the l1 sensitivity has no bound (" in found.sentence
    assert "nan on y" in found.reason
    assert found.not_finite > 0
    assert [] in (found.x, found.y)
    assert found.evaluations < 50
    found = checked(lambda rows: {"bad": math.nan, "count": len(rows)})
    assert (found.verdict, found.change) == (Verdict.NOT_REFUTED, 1.0)
    assert "NaN or infinite numbers on" in str(found)


def test_missing_keys_count_as_nothing_and_are_told():
    found = checked(Counter, Rows(finite=True, values=("a", "b")))
    assert (found.verdict, found.change) == (Verdict.NOT_REFUTED, 1.0)
    assert found.only_x == ("a",)
    assert "a only on x: counts as 0 elsewhere, but noise does not hide that it is missing" in str(found)


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_rounding_is_no_refutation(scale):
    """Sums of tenths are not exact: 0.1 + 0.2 changes by a little more than 0.2 from 0.1."""
    domain = Rows(finite=True, values=tuple(scale * part / 10 for part in range(8)))
    found = checked(sum, domain, bound=0.7 * scale, evaluations=1_000)
    assert not found.is_refuted
    assert found.change == pytest.approx(0.7 * scale)
    assert checked(sum, domain, bound=0.7 * scale * (1 - 1e-6)).is_refuted


def test_a_change_within_rounding_of_large_answers_is_not_refuted_but_told():
    found = checked(lambda rows: 1e10 + 3.0 * len(rows))
    assert not found.is_refuted
    assert found.change == 3.0
    assert "exceeds the bound by no more than rounding explains" in str(found)
    exact = checked(lambda rows: 10**10 + 3 * len(rows))
    assert exact.is_refuted


def test_a_simpler_pair_changes_nearly_as_much():
    def query(rows):
        return sum(3.0 * row for row in rows if len(rows) > 1)

    found = check_sensitivity(query, Rows(finite=True), adjacency="add-remove", bound=3.5, evaluations=2_000)
    assert found.is_refuted
    simple = found.simple or found.pair
    assert simple.change >= 0.97 * found.change
    assert simple.change > 3.5
    assert abs(query(simple.x) - query(simple.y)) == pytest.approx(simple.change)
    assert (simple.answer_x, simple.answer_y) == (query(simple.x), query(simple.y))


def test_what_a_result_says():
    never = checked(lambda rows: 1.0)
    assert never.verdict is Verdict.INCONCLUSIVE
    assert "the query never changed in" in str(never)
    assert checked(lambda rows: 1.0, bound=0.0).verdict is Verdict.NOT_REFUTED, "it states just that"
    refuted = checked(clipped, adjacency="replace", bound=1)
    assert str(refuted).splitlines()[:2] == [
        "REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-1.0], y = [1.0]",
        "  answers -1.0 on x, 1.0 on y",
    ]
    assert refuted.confidence_interval() == (2.0, math.inf)
    with pytest.raises(RefutedError, match="at least 2"):
        refuted.raise_if_refuted()
    far = checked(len, bound=2, distance=3)
    assert "the l1 sensitivity at distance 3 is at least 3, stated 2" in far.sentence
    assert "at least 1.00001, stated 1" in checked(lambda rows: 1.00001 * len(rows)).sentence


def test_a_time_limit_ends_the_search():
    found = checked(clipped, adjacency="replace", bound=2, evaluations=10**7, seconds=0.3)
    assert found.end.name == "TIME"
    assert 10 < found.evaluations < 10**6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bound": -1.0}, "bound=-1.0 is not a sensitivity"), ({"bound": math.nan}, "bound=nan is not a sensitivity"),
        ({"norm": "l3"}, "norm='l3' is unknown"), ({"evaluations": 3}, "evaluations=3 is not a possible number"),
        ({"domain": Values(((1,), (2, 3, 4))), "adjacency": "replace"}, "no pair of neighbours was found"),
        ({"domain": Graphs(3), "adjacency": "node", "distance": 9}, "cannot differ in 9 nodes"),
        ({"adjacency": None}, 'does not define neighbours; pass adjacency="add-remove", "replace", "zero-out" or U'),
        ({"domain": 5}, "domain=5 describes no datasets"), ({"domain": Answers()}, "have no neighbours by"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments(options, words):
    arguments = {"query": len, "domain": WIDE, "adjacency": AddRemove(), "bound": 1.0, **options}
    with pytest.raises(AuditError, match=words):
        check_sensitivity(arguments.pop("query"), arguments.pop("domain"), **arguments)


Summary = dataclasses.make_dataclass("Summary", ["mean", "counts"])
Row = collections.namedtuple("Row", "mean count")


def change(x, y, norm="l1"):
    return change_between(answer_of(x), answer_of(y), norm)


@pytest.mark.parametrize(
    ("x", "y", "l1", "l2", "linf"),
    [
        pytest.param([0.0, 0.0], [3.0, -4.0], 7, 5, 4, id="list"),
        pytest.param((1, [2, 3]), (1, [5, 7]), 7, 5, 4, id="tuple of parts"),
        pytest.param({"a": 3, "b": 4}, {}, 7, 5, 4, id="missing keys"),
        pytest.param(collections.Counter("aab"), collections.Counter("abc"), 2, math.sqrt(2), 1, id="counter"),
        pytest.param(Summary(1.0, [2, 3]), Summary(1.0, [5, 7]), 7, 5, 4, id="dataclass"),
        pytest.param(Row(3, 4), Row(0, 0), 7, 5, 4, id="named tuple"),
        pytest.param(
            pd.Series(list("aab")).value_counts(), pd.Series(list("abc")).value_counts(), 2, 2**0.5, 1, id="column"
        ),
        pytest.param(pd.DataFrame({"n": [3.0]}), pd.DataFrame({"n": [0.0, 4.0]}), 7, 5, 4, id="frame with a new row"),
        pytest.param(Decimal("0.5"), Fraction(1, 4), 0.25, 0.25, 0.25, id="decimal and fraction"),
        pytest.param([2**60, 2**60], [2**60 - 3, 2**60 + 4], 7, 5, 4, id="beyond doubles"),
        pytest.param(np.array([2**60]), np.array([2**60 + 1]), 1, 1, 1, id="beyond doubles, array"),
        pytest.param(
            {"a": 10**30 + 1, "b": 0.5}, {"a": 10**30, "b": 0.0}, 1.5, 1.25**0.5, 1, id="beyond doubles, by name"
        ),
        pytest.param(np.uint64(2**64 - 1), np.uint64(0), 2**64 - 1, 2**64 - 1, 2**64 - 1, id="unsigned"),
        pytest.param([1e200, 1e200], [0.0, 0.0], 2e200, 1e200 * math.sqrt(2), 1e200, id="squares too large"),
    ],
)
def test_changes_by_hand(x, y, l1, l2, linf):
    for norm, expected in (("l1", l1), ("l2", l2), ("linf", linf)):
        assert change(x, y, norm).size == pytest.approx(expected, rel=1e-14)
        assert change(y, x, norm).size == pytest.approx(expected, rel=1e-14)
        assert change(x, x, norm).size == 0.0


def test_what_has_no_bound_says_why():
    for x, y, reason in (
        (math.nan, 1.0, "nan on x, 1.0 on y"), ([1.0, math.inf], [1.0, 2.0], "inf on x, 2.0 on y"),
        (math.inf, -math.inf, "inf on x, -inf on y"), ([1, 2], [1, 2, 3], "shape (2,) on x, (3,) on y"),
        ({"a": [1, 2]}, {"a": [1]}, "shape (2,) on x, (1,) on y (a)"),
        ((1, [2, 3]), (1, [2, 3], [4, 5]), "2 parts on x, 3 on y"), ([2**60, 1], [2.5, math.nan], "1 on x, nan on y"),
    ):  # fmt: skip
        found = change(x, y)
        assert (found.size, found.reason) == (math.inf, reason)


def test_missing_parts_are_named():
    found = change({"a": 1, "b": {"c": 2}}, {"a": 1, "d": 4})
    assert (found.only_x, found.only_y, found.size) == (("b.c",), ("d",), 6.0)
    one, other = (pd.DataFrame({"n": [1.0, 2.0][:rows]}, index=["u", "v"][:rows]) for rows in (2, 1))
    assert change(one, other).only_x == ("n.v",)
    assert change({math.nan: 1}, {float("nan"): 1}).size == 0.0
    assert change(UserDict(a=1), SimpleNamespace(a=3)).size == 2.0


@pytest.mark.parametrize("output", [None, 1j, {"a": "b"}, np.array(["1"]), np.ma.ones(2)], ids=repr)
def test_other_outputs_are_refused(output):
    with pytest.raises(DatasetError, match="not made of numbers"):
        answer_of(output)
