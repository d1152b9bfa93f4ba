"""Rows, data frames, files and comparisons hold what the results hold, those of canaries too."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

import jsonschema
import pytest

from dpaudit import ApproxDP, Verdict, load, save
from dpaudit.audit.errors import AuditError, RecordError
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.records.baseline_comparison import compare
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.json_schema import json_schema
from dpaudit.audit.records.suite import COLUMNS, Accepted, Entry, Suite, rows
from dpaudit.audit.results.result import Result

from .by_hand import AUDIT as RESULT
from .by_hand import CANARIES as REFUTED
from .by_hand import STATEMENT, stopped

ACCEPTED = Accepted(reason="known", until="2027-06-30", up_to=2)
AUDIT = Entry(
    name="count", result=RESULT, expected=Verdict.NOT_REFUTED, exact=1.5, experiment="laplace", accepted=ACCEPTED
)
SUITE = Suite(title="t", entries=(AUDIT, Entry(name="slope", result=STATEMENT, exact=9.0)))


def suite(result, **options):
    return Suite(title="t", entries=(Entry(name="a", result=result, **options),))


def row_of(result, **options):
    """The row of an entry with this result."""
    (row,) = rows(suite(result, **options))
    return row


def changed(**changes):
    return row_of(replace(RESULT, **changes))


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


def test_a_row_asks_no_result_for_what_it_lacks(monkeypatch):
    """The error would look for the name that was meant, which takes longer than the row."""
    monkeypatch.setattr(Result, "__getattr__", lambda self, name: pytest.fail(f"{name} of a {type(self).__name__}"))
    assert len(rows(SUITE)) == 2
    assert row_of(REFUTED)["canaries"] == 1_000


def test_the_row_of_a_statement_is_about_its_worst_number():
    row = rows(SUITE)[1]
    assert {name: value for name, value in row.items() if value is not None} == {
        "name": "slope", "kind": "statement", "claim": "The error halves.", "verdict": "refuted", "estimate": 3.0,
        "alpha": 0.01, "pvalue": 0.01, "adjusted_pvalue": 0.02, "quantity": "slope", "at": "t = 2", "lower": 2.5,
        "upper": 3.5, "low": -math.inf, "high": 2.0, "runs": 500, "seed": 8,
    }  # fmt: skip

    one = replace(STATEMENT, points=STATEMENT.points[:1])
    assert row_of(one, exact=9.0)["exact"] == 9.0, "the exact value is that of the only number"


def test_the_wrong_variants_of_an_audit():
    finding = Finding(HealthCheck.NONSTATIONARY, "the counts vary")
    row = changed(findings=(finding,), is_reproducible=False)
    assert row["findings"] == "nonstationary: the counts vary"
    assert (row["verdict"], row["is_reproducible"]) == ("inconclusive", False)
    assert row_of(stopped(RESULT, stopped="time"))["stopped"] == "time"
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

    for seed, dtype in ((2**63 - 1, "Int64"), (2**63, "object")):  # a seed of more than 64 bits stays whole
        entries = tuple(Entry(name="a", result=replace(RESULT, seed=each)) for each in (1, seed))
        column = Suite(title="t", entries=entries).to_frame()["seed"]
        assert (column.tolist(), str(column.dtype)) == ([1, seed], dtype)


def test_without_pandas_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AuditError, match=r"pip install 'dpaudit\[pandas\]'"):
        SUITE.to_frame()
    assert len(rows(SUITE)) == 2


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
    for name, value in (("guesses", {"correct": [11, 96, 700]}), ("included", 1_001)):
        body = json.loads(to_json(suite(REFUTED)))
        result = body["suite"]["entries"][0]["result"]
        result[name] = result[name] | value if isinstance(value, dict) else value
        with pytest.raises(RecordError, match="impossible"):
            from_json(json.dumps(body))


def test_a_row_and_a_flat_dict_have_bound_ceiling_and_guesses():
    expected = {
        "kind": "canaries", "bound": 1.9345, "max_attainable_bound": 5.6, "claimed_parameter": 1.0, "canaries": 1_000,
        "included": 489, "guesses": 100, "right_guesses": 96, "runs": 1, "inclusion": "independent",
    }  # fmt: skip
    assert row_of(REFUTED, expected=Verdict.REFUTED).items() >= (expected | {"is_met": True}).items()
    assert REFUTED.to_dict().items() >= expected.items()


def test_a_new_refutation_is_a_change_unless_it_is_accepted():
    empty = Suite(title="t", entries=())
    (found,) = compare(empty, suite(REFUTED))
    assert found.changes == ("new, and refuted",)
    accepted = Accepted(reason="known", until="2999-01-01", up_to=2.0)
    (found,) = compare(empty, suite(REFUTED, accepted=accepted))
    assert not found.has_changed
    (found,) = compare(empty, suite(REFUTED, accepted=replace(accepted, up_to=1.5)))
    assert found.has_changed, "the acceptance ends at a smaller bound"
