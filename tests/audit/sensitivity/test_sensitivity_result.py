"""Queries that raise, return NaN, are not deterministic or change their dataset; what results say; wrong arguments."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import dpaudit
from dpaudit import AddRemove, Answers, Graphs, Rows, SensitivityResult, Values, Verdict, check_sensitivity
from dpaudit.audit.errors import (
    AdjacencyError,
    AuditError,
    InconclusiveError,
    MechanismError,
    OptionError,
    RefutedError,
)

WIDE = Rows(finite=True, low=-5.0, high=5.0)
FEW = {"adjacency": "add-remove", "evaluations": 300}


def clipped_sum(rows):
    return sum(min(max(row, -1.0), 1.0) for row in rows)


def mean(rows):
    return clipped_sum(rows) / len(rows)


def checked(query, domain=WIDE, bound=1.0, **options):
    return check_sensitivity(query, domain, bound=bound, **FEW | options)


def test_a_query_with_noise_is_inconclusive():
    rng = np.random.default_rng(0)
    found = checked(lambda rows: len(rows) + rng.laplace(), bound=100)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.sentence.startswith("INCONCLUSIVE: the query is not deterministic: ")
    assert ", then " in found.unsteady
    assert found.evaluations < 20
    with pytest.raises(InconclusiveError):
        found.raise_if_refuted()


def test_noise_that_starts_late_is_seen_on_the_pair_found():
    calls = []

    def drifting(rows):
        calls.append(rows)
        return len(rows) + (0.0 if len(calls) < 100 else len(calls))

    found = checked(drifting, bound=1e9)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.evaluations > 250


def test_rounding_is_not_taken_for_noise():
    calls = []

    def reordered(rows):
        calls.append(rows)
        return len(rows) + 1e-13 * (len(calls) % 3)

    found = checked(reordered, bound=1.0)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.change == pytest.approx(1.0)


def test_a_query_that_changes_its_dataset_is_inconclusive():
    def in_place(rows):
        rows.sort()
        return clipped_sum(rows)

    found = checked(in_place)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the query changes its dataset" in found.sentence


def test_pairs_on_which_the_query_raises_are_counted():
    found = checked(mean, bound=0.4)
    assert found.is_refuted
    assert found.errors > 0
    assert found.first_error == "ZeroDivisionError: float division by zero on []" or "division by zero" in str(found)
    assert f"errors  {found.errors:,} pairs without an answer; the first: ZeroDivisionError" in str(found)
    assert min(len(found.x), len(found.y)) >= 1


def test_a_query_without_answers_is_an_error():
    for query, words in ((lambda rows: 1 / 0, "division by zero"), (lambda rows: None, "returned None")):
        with pytest.raises(MechanismError, match=words):
            checked(query, evaluations=5_000)
    with pytest.raises(MechanismError, match="failed on all of 500 pairs"):
        checked(lambda: 0, evaluations=5_000)


def test_nan_on_one_dataset_is_a_change_without_bound():
    found = checked(lambda rows: np.nan if not rows else mean(rows), bound=2.0)
    assert found.is_refuted
    assert found.change == math.inf
    assert "the l1 sensitivity has no bound (" in found.sentence
    assert "nan on y" in found.reason
    assert found.not_finite > 0
    assert [] in (found.x, found.y)
    assert found.evaluations < 50


def test_nan_everywhere_is_not_a_change_but_is_told():
    found = checked(lambda rows: {"bad": math.nan, "count": len(rows)})
    assert (found.verdict, found.change) == (Verdict.NOT_REFUTED, 1.0)
    assert "NaN or infinite numbers on" in str(found)


def test_vectors_of_other_lengths_have_no_bound():
    found = checked(lambda rows: sorted(rows))
    assert found.is_refuted
    assert found.reason.startswith("shape (")


def test_missing_keys_count_as_nothing_and_are_told():
    found = checked(Counter, Rows(finite=True, values=("a", "b")))
    assert (found.verdict, found.change) == (Verdict.NOT_REFUTED, 1.0)
    assert found.only_x == ("a",)
    assert "a only on x: counts as 0 elsewhere, but noise does not hide that it is missing" in str(found)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
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
    refuted = check_sensitivity(clipped_sum, WIDE, adjacency="replace", bound=1, evaluations=300)
    assert str(refuted).splitlines()[:2] == [
        "REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-5.0], y = [5.0]",
        "  answers -1.0 on x, 1.0 on y",
    ]
    assert repr(refuted) == "<SensitivityResult clipped_sum: refuted, l1 change 2, stated 1>"
    assert refuted.confidence_interval() == (2.0, math.inf)
    assert refuted.to_dict()["change"] == 2.0
    assert all(isinstance(value, (str, int, float)) for value in refuted.to_dict().values())
    assert "REFUTED: the l1 sensitivity is at least 2" in refuted._repr_html_()
    assert max(map(len, str(refuted).splitlines())) <= 160
    with pytest.raises(RefutedError, match="at least 2"):
        refuted.raise_if_refuted()
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(refuted)
    with pytest.raises(OptionError, match="cannot be drawn"):
        refuted.plot()
    other = checked(len)
    assert other.raise_if_refuted() is other
    assert (
        other.sentence
        == f"NOT REFUTED: largest change found 1 in {other.evaluations:,} evaluations, stated 1 (l1 sensitivity)"
    )
    assert str(other).endswith("other pairs may change the query more")


def test_digits_tell_the_change_from_the_bound():
    found = checked(lambda rows: 1.00001 * len(rows))
    assert "at least 1.00001, stated 1" in found.sentence


def test_each_dataset_is_evaluated_once():
    seen = Counter()

    def query(rows):
        seen[tuple(rows)] += 1
        return len(rows)

    found = check_sensitivity(query, Rows(finite=True, values=(1.0, 2.0), most=4), adjacency="add-remove", bound=1)
    assert found.pairs > len(seen)
    assert seen.total() == found.evaluations
    assert sum(times > 1 for times in seen.values()) <= 12


def test_a_time_limit_ends_the_search():
    found = check_sensitivity(clipped_sum, WIDE, adjacency="replace", bound=2, evaluations=10**7, seconds=0.3)
    assert found.end.name == "TIME"
    assert 10 < found.evaluations < 10**6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bound": -1.0}, "bound=-1.0 is not a sensitivity"),
        ({"bound": math.nan}, "bound=nan is not a sensitivity"),
        ({"bound": True}, "bound=True is not a sensitivity"),
        ({"bound": math.inf}, "bound=inf is not a sensitivity"),
        ({"norm": "l3"}, "norm='l3' is unknown"),
        ({"evaluations": 3}, "evaluations=3 is not a possible number"),
        ({"seconds": -1}, "seconds=-1 is not a time limit"),
        ({"seed": -1}, "seed=-1 is not a seed"),
        ({"distance": 0}, "distance=0 is not a distance"),
        ({"adjacency": "removal"}, "adjacency='removal' is unknown"),
        ({"adjacency": None}, "adjacency=None does not define neighbours"),
        ({"domain": 5}, "domain=5 describes no datasets"),
        ({"domain": Answers()}, "have no neighbours by"),
        ({"domain": [([1], [1, 2, 3])]}, "none of 1 pairs are neighbours"),
        ({"query": 5}, "query=5 is not a function"),
    ],
    ids=str,
)
def test_wrong_arguments(options, words):
    arguments = {"query": len, "domain": WIDE, "adjacency": AddRemove(), "bound": 1.0, **options}
    with pytest.raises(AuditError, match=words):
        check_sensitivity(arguments.pop("query"), arguments.pop("domain"), **arguments)


def test_a_distance_that_no_pair_has():
    with pytest.raises(AdjacencyError):
        check_sensitivity(len, Values(((1,), (2, 3, 4))), adjacency="replace", bound=1)
    with pytest.raises(AuditError):
        check_sensitivity(len, Graphs(3), adjacency="node", bound=1, distance=9)


def test_public_names():
    assert isinstance(checked(len), SensitivityResult)
    assert {"check_sensitivity", "SensitivityResult"} <= set(dpaudit.__all__)
