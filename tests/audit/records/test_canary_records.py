"""Results of canaries in files, tables and comparisons with a baseline."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import jsonschema
import pytest

from dpaudit import Entry, GaussianDP, PureDP, Suite, Verdict, load, save
from dpaudit.audit.errors import RecordError
from dpaudit.audit.records.baseline_comparison import compare
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.json_schema import json_schema
from dpaudit.audit.records.suite import Accepted, rows

from .by_hand import CANARIES as REFUTED

KEPT = replace(REFUTED, bound=0.8, p_value=0.3)
HALVES = tuple(replace(test, alpha=test.alpha / 2) for test in KEPT.tests)
STRICTER = replace(KEPT, alpha=KEPT.alpha / 2, tests=HALVES, carried=HALVES[1])


def suite(result, **options):
    return Suite(title="t", entries=(Entry(name="a", result=result, **options),))


@pytest.mark.parametrize(
    "changes",
    [{}, {"sketch": None, "resolution": math.inf}, {"coins": "fixed", "adjacency": "replace", "notes": ("n",)}],
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
    body["suite"]["entries"][0]["result"]["guesses"]["right"] = [11, 96, 700]
    with pytest.raises(RecordError, match="impossible"):
        from_json(json.dumps(body))


def test_a_row_and_a_flat_dict_have_bound_ceiling_and_guesses():
    expected = {
        "kind": "canaries", "bound": 1.9345, "ceiling": 5.6, "claimed_strength": 1.0, "canaries": 1_000,
        "included": 489, "guesses": 100, "right_guesses": 96, "runs": 1, "coins": "independent",
    }  # fmt: skip
    (row,) = rows(suite(REFUTED, expected=Verdict.REFUTED))
    assert row.items() >= (expected | {"is_met": True}).items()
    assert REFUTED.to_dict().items() >= expected.items()


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (KEPT, KEPT, None),
        (KEPT, replace(KEPT, p_value=0.5, bound=0.7), None),
        (KEPT, REFUTED, "the verdict was not refuted and is refuted"),
        (KEPT, replace(KEPT, claim=PureDP(2.0)), "the claim was (1, 1e-05)-DP and is 2-DP"),
        (KEPT, replace(KEPT, canaries=500, included=250), "the canaries fell from 1,000 to 500"),
        (KEPT, STRICTER, "alpha was 0.05 and is 0.025, so smaller deviations go undetected"),
        (KEPT, replace(KEPT, coins="fixed", adjacency="replace"), "the adjacency was add-remove and is replace"),
        (KEPT, replace(KEPT, claim=GaussianDP(1.0)), "the claim was (1, 1e-05)-DP and is 1-GDP"),
    ],
    ids=["equal", "bound", "verdict", "claim", "canaries", "alpha", "adjacency", "kind of claim"],
)
def test_changes_since_a_baseline(before, after, change):
    (found,) = compare(suite(before), suite(after))
    if change is None:
        assert not found.has_changed
    else:
        assert change in found.changes
    assert found.p_value is None
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
