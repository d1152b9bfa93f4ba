"""Rows, data frames, files and comparisons hold what the results hold, those of canaries too."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from dataclasses import replace

import jsonschema
import pytest

from dpaudit import ApproxDP, PureDP, Verdict, load, save
from dpaudit.audit.errors import AuditError, RecordError
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.records.baseline_comparison import compare
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.json_schema import json_schema
from dpaudit.audit.records.suite import COLUMNS, Accepted, Entry, Suite, rows

from .by_hand import AUDIT as RESULT
from .by_hand import CANARIES as REFUTED
from .by_hand import STATEMENT, stopped

ACCEPTED = Accepted(reason="known", until="2027-06-30", up_to=2)
AUDIT = Entry(
    name="count", result=RESULT, expected=Verdict.NOT_REFUTED, exact=1.5, experiment="laplace", accepted=ACCEPTED
)
SUITE = Suite(title="t", entries=(AUDIT, Entry(name="slope", result=STATEMENT, exact=9.0)))


def changed(**changes):
    """The row of the audit with some fields changed."""
    result = dataclasses.replace(RESULT, **changes)
    return rows(Suite(title="t", entries=(Entry(name="a", result=result),)))[0]


def test_the_row_of_an_audit():
    row = rows(SUITE)[0]
    assert {name: value for name, value in row.items() if value is not None} == {
        "name": "count", "experiment": "laplace", "kind": "audit", "mechanism": "noisy count", "claim": "1-DP",
        "claim_type": "PureDP", "parameter_name": "epsilon", "claimed_parameter": 1.0, "adjacency": "add/remove",
        "distance": 1.0, "difference": "row 2 removed", "verdict": "refuted", "expected": "not refuted",
        "is_met": False, "bound": 1.25, "estimate": RESULT.estimate, "exact": 1.5, "alpha": 0.05, "pvalue": 0.01,
        "adjusted_pvalue": 0.02, "min_detectable_excess": 0.5, "power": 0.95, "event": RESULT.event_in_words,
        "more_likely_on": "x", "count_x": 600, "runs_x": 950, "count_y": 200, "runs_y": 951, "runs": 1_000,
        "pilot_runs": 49, "seed": 7, "is_reproducible": True, "notes": "one; two", "accepted": str(ACCEPTED),
        "seconds": 1.5, "versions": "dpaudit 0.1.0, numpy 2.0.0",
    }  # fmt: skip


def test_the_row_of_a_statement_is_about_its_worst_number():
    row = rows(SUITE)[1]
    assert {name: value for name, value in row.items() if value is not None} == {
        "name": "slope", "kind": "statement", "claim": "The error halves.", "verdict": "refuted", "estimate": 3.0,
        "alpha": 0.01, "pvalue": 0.01, "adjusted_pvalue": 0.02, "quantity": "slope", "at": "t = 2", "lower": 2.5,
        "upper": 3.5, "low": -math.inf, "high": 2.0, "runs": 500, "seed": 8,
    }  # fmt: skip


def test_an_exact_value_is_that_of_the_only_number():
    one = dataclasses.replace(STATEMENT, points=STATEMENT.points[:1])
    assert rows(Suite(title="t", entries=(Entry(name="slope", result=one, exact=9.0),)))[0]["exact"] == 9.0
    assert rows(SUITE)[1]["exact"] is None


def test_the_wrong_variants_of_an_audit():
    finding = Finding(HealthCheck.NONSTATIONARY, "the counts vary")
    assert changed(findings=(finding,))["findings"] == "nonstationary: the counts vary"
    assert changed(findings=(finding,))["verdict"] == "inconclusive"
    assert changed(is_reproducible=False)["is_reproducible"] is False
    sequential = stopped(RESULT, stopped="time")
    assert rows(Suite(title="t", entries=(Entry(name="a", result=sequential),)))[0]["stopped"] == "time"
    group = changed(claim=ApproxDP(1.0, 1e-5, bound_on="delta").group(2))
    assert (group["claim_type"], group["parameter_name"], group["claimed_parameter"]) == ("GroupClaim", "delta", 1e-5)


@pytest.mark.parametrize("spent", ["long", None, -1.0, math.nan, math.inf, 10**400, [1.0]])
def test_seconds_that_are_none(spent):
    assert changed(environment={"seconds": spent})["seconds"] is None
    assert changed(environment={})["seconds"] is None


def test_columns_and_their_types_are_the_same_in_any_suite():
    for suite in (SUITE, Suite(title="t", entries=()), from_json(to_json(SUITE))):
        for row in rows(suite):
            assert list(row) == list(COLUMNS)
            assert {name for name, value in row.items() if value is not None and type(value) is not COLUMNS[name]} == (
                set()
            )
        found = suite.to_frame()
        assert list(found.columns) == list(COLUMNS)
        assert len(found) == len(suite.entries)
        dtypes = {str: "string", int: "Int64", float: "float64", bool: "boolean"}
        assert {name: str(dtype) for name, dtype in found.dtypes.items()} == {
            name: dtypes[kind] for name, kind in COLUMNS.items()
        }


@pytest.mark.parametrize(("seed", "dtype"), [(2**63 - 1, "Int64"), (2**63, "object")])
def test_a_seed_of_more_than_64_bits_stays_whole(seed, dtype):
    entries = tuple(Entry(name="a", result=dataclasses.replace(RESULT, seed=each)) for each in (1, seed))
    column = Suite(title="t", entries=entries).to_frame()["seed"]
    assert (column.tolist(), str(column.dtype)) == ([1, seed], dtype)


def test_without_pandas_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AuditError, match=r"pip install 'dpaudit\[pandas\]'"):
        SUITE.to_frame()
    assert len(rows(SUITE)) == 2


KEPT = replace(REFUTED, bound=0.8, pvalue=0.3)
HALVES = tuple(replace(test, alpha=test.alpha / 2) for test in KEPT.tests)
STRICTER = replace(KEPT, alpha=KEPT.alpha / 2, tests=HALVES, deciding_test=HALVES[1])


def suite(result, **options):
    return Suite(title="t", entries=(Entry(name="a", result=result, **options),))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sketch": None, "min_detectable_excess": math.inf},
        {"inclusion": "fixed", "adjacency": "replace", "notes": ("n",)},
    ],
    ids=["all", "no sketch", "pairs"],
)
def test_a_file_restores_an_equal_result(changes, tmp_path):
    result = replace(REFUTED, **changes)
    save(result, tmp_path / "results.json")
    (entry,) = load(tmp_path / "results.json").entries
    assert entry.result == result
    assert entry.name == result.mechanism
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(to_json(suite(result))))


def test_an_impossible_table_of_guesses_is_refused():
    body = json.loads(to_json(suite(REFUTED)))
    body["suite"]["entries"][0]["result"]["guesses"]["correct"] = [11, 96, 700]
    with pytest.raises(RecordError, match="impossible"):
        from_json(json.dumps(body))


def test_a_row_and_a_flat_dict_have_bound_ceiling_and_guesses():
    expected = {
        "kind": "canaries", "bound": 1.9345, "max_attainable_bound": 5.6, "claimed_parameter": 1.0, "canaries": 1_000,
        "included": 489, "guesses": 100, "right_guesses": 96, "runs": 1, "inclusion": "independent",
    }  # fmt: skip
    (row,) = rows(suite(REFUTED, expected=Verdict.REFUTED))
    assert row.items() >= (expected | {"is_met": True}).items()
    assert REFUTED.to_dict().items() >= expected.items()


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (KEPT, KEPT, None),
        (KEPT, replace(KEPT, pvalue=0.5, bound=0.7), None),
        (KEPT, REFUTED, "the verdict was not refuted and is refuted"),
        (KEPT, replace(KEPT, claim=PureDP(2.0)), "the claim was (1, 1e-05)-DP and is 2-DP"),
        (KEPT, replace(KEPT, canaries=500, included=250), "the canaries fell from 1,000 to 500"),
        (KEPT, STRICTER, "alpha was 0.05 and is 0.025, so smaller deviations go undetected"),
        (KEPT, replace(KEPT, inclusion="fixed", adjacency="replace"), "the adjacency was add-remove and is replace"),
    ],
    ids=["equal", "bound", "verdict", "claim", "canaries", "alpha", "adjacency"],
)
def test_changes_since_a_baseline(before, after, change):
    (found,) = compare(suite(before), suite(after))
    if change is None:
        assert not found.has_changed
    else:
        assert change in found.changes
    assert found.pvalue is None
    assert found.not_compared is None


def test_a_new_refutation_is_a_change_unless_it_is_accepted():
    empty = Suite(title="t", entries=())
    (found,) = compare(empty, suite(REFUTED))
    assert found.changes == ("new, and refuted",)
    accepted = Accepted(reason="known", until="2999-01-01", up_to=2.0)
    (found,) = compare(empty, suite(REFUTED, accepted=accepted))
    assert not found.has_changed
    (found,) = compare(empty, suite(REFUTED, accepted=replace(accepted, up_to=1.5)))
    assert found.has_changed, "the acceptance ends at a smaller bound"
