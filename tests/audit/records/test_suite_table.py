"""Rows and data frames hold what the results hold, under the same columns in any suite."""

import dataclasses
import math
import sys
import time

import pandas as pd
import pytest

from dpaudit import ApproxDP, Verdict
from dpaudit.audit.errors import AuditError
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.suite import COLUMNS, Accepted, Entry, Suite, rows

from .by_hand import AUDIT as RESULT
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
        "claim_type": "PureDP", "strength_name": "epsilon", "claimed_strength": 1.0, "adjacency": "add/remove",
        "distance": 1.0, "difference": "row 2 removed", "verdict": "refuted", "expected": "not refuted",
        "is_met": False, "bound": 1.25, "estimate": RESULT.estimate, "exact": 1.5, "alpha": 0.05, "p_value": 0.01,
        "adjusted_p_value": 0.02, "resolution": 0.5, "power": 0.95, "event": RESULT.event_in_words,
        "likelier_on": "x", "hits_x": 600, "runs_x": 950, "hits_y": 200, "runs_y": 951, "runs": 1_000,
        "pilot_runs": 49, "seed": 7, "is_replayable": True, "notes": "one; two", "accepted": str(ACCEPTED),
        "seconds": 1.5, "versions": "dpaudit 0.1.0, numpy 2.0.0",
    }  # fmt: skip


def test_the_row_of_a_statement_is_about_its_worst_number():
    row = rows(SUITE)[1]
    assert {name: value for name, value in row.items() if value is not None} == {
        "name": "slope", "kind": "statement", "claim": "The error halves.", "verdict": "refuted", "estimate": 3.0,
        "alpha": 0.01, "p_value": 0.01, "adjusted_p_value": 0.02, "quantity": "slope", "at": "t = 2", "lower": 2.5,
        "upper": 3.5, "low": -math.inf, "high": 2.0, "runs": 500, "seed": 8,
    }  # fmt: skip


def test_an_exact_value_is_that_of_the_only_number():
    one = dataclasses.replace(STATEMENT, points=STATEMENT.points[:1])
    assert rows(Suite(title="t", entries=(Entry(name="slope", result=one, exact=9.0),)))[0]["exact"] == 9.0
    assert rows(SUITE)[1]["exact"] is None


def test_the_wrong_twins_of_an_audit():
    finding = Finding(HealthCheck.UNSTEADY_HITS, "the hits vary")
    assert changed(findings=(finding,))["findings"] == "unsteady-hits: the hits vary"
    assert changed(findings=(finding,))["verdict"] == "inconclusive"
    assert changed(is_replayable=False)["is_replayable"] is False
    sequential = stopped(RESULT, stopped="time")
    assert rows(Suite(title="t", entries=(Entry(name="a", result=sequential),)))[0]["stopped"] == "time"
    group = changed(claim=ApproxDP(1.0, 1e-5, bound_on="delta").group(2))
    assert (group["claim_type"], group["strength_name"], group["claimed_strength"]) == ("GroupClaim", "delta", 1e-5)


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


def test_the_frame_holds_the_rows():
    found = SUITE.to_frame()
    for name in COLUMNS:
        values = [None if pd.isna(value) else value for value in found[name]]
        assert values == [row[name] for row in rows(SUITE)]
    assert found.loc[found.kind == "audit", "hits_x"].sum() == 600


@pytest.mark.parametrize(("seed", "dtype"), [(2**63 - 1, "Int64"), (2**63, "object"), (2**80, "object")])
def test_a_seed_of_more_than_64_bits_stays_whole(seed, dtype):
    entries = tuple(Entry(name="a", result=dataclasses.replace(RESULT, seed=each)) for each in (1, seed))
    column = Suite(title="t", entries=entries).to_frame()["seed"]
    assert (column.tolist(), str(column.dtype)) == ([1, seed], dtype)


def test_text_that_is_no_unicode_has_a_frame():
    assert Suite(title="t", entries=(Entry(name="\ud800", result=RESULT),)).to_frame()["name"][0] == "\ud800"


def test_without_pandas_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AuditError, match=r"pip install 'dpaudit\[pandas\]'"):
        SUITE.to_frame()
    assert len(rows(SUITE)) == 2


def test_a_row_takes_at_most_a_millisecond():
    """Looking for an attribute that a result lacks must not look for names that were meant."""
    suite = Suite(title="t", entries=(Entry(name="a", result=STATEMENT),) * 1_000)
    started = time.process_time()
    assert len(rows(suite)) == 1_000
    assert time.process_time() - started < 1.0
