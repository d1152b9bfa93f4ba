"""The privacy card: it claims no more than the audits did."""

import datetime
import json
import re
from dataclasses import replace

import pytest

from dpaudit import save
from dpaudit.audit.errors import RecordError
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.reports import privacy_card, privacy_card_markdown
from dpaudit.reports.formats.sarif import ResultsFile, results_file

DAY = datetime.date(2027, 6, 30)


def card(*entries, **options):
    return json.loads(privacy_card(Suite(title="t", entries=entries), today=DAY, **options))


def test_the_card_states_claim_unit_and_what_was_not_examined(entries, audit):
    (one,) = card(entries["held"])["audits"]
    assert (one["claim"], one["unit_of_privacy"], one["adjacency"]) == ("1-DP", "one row", "add/remove one row")
    assert one["claim_source"] == "not stated"
    assert one["accounting"] == "not examined"
    assert "every other pair of neighbours" in one["not_examined"]
    assert one["implementation"]["fingerprint"] == "00ff00ff00ff00ff"
    assert one["implementation"]["source"] == "not recorded"

    def not_examined(**changes):
        return card(Entry(name="a", result=audit(**changes)))["audits"][0]["not_examined"]

    assert "floating-point leaks of outputs" in not_examined(floating_point="ignore")
    assert "floating-point leaks of outputs" not in not_examined(floating_point="test")
    assert "every pair of neighbours other than the one that the search chose" in not_examined(searched=10)
    assert "losses of records that are not canaries" in card(entries["training"])["audits"][0]["not_examined"]
    assert "every privacy claim of the mechanism" in card(entries["slope"])["audits"][0]["not_examined"]


@pytest.mark.parametrize("name", ["refuted", "held", "no p", "sick", "low", "doubt", "training", "slope"])
def test_no_word_of_the_card_verifies_a_claim(name, entries):
    for text in (
        privacy_card(Suite(title="t", entries=(entries[name],)), today=DAY),
        privacy_card_markdown(Suite(title="t", entries=(entries[name],)), today=DAY),
    ):
        said = text.replace("never verify", "").lower()
        for word in ("verified", "verify", "certif", "guaranteed", "compliant", "is private", "proves"):
            assert word not in said
        if name == "sick":
            assert "a failed health check leaves no bound" in text
            assert "9.0" not in text
            assert "lower bound ε" not in text


def test_markdown_has_every_audit_and_names_are_literal(suite):
    files = [ResultsFile(name="a|b.json", sha256="a" * 64, entries=len(suite.entries))]
    text = privacy_card_markdown(suite, files=files, today=DAY)
    assert text.startswith("# Privacy card: All &lt;sorts>\n")
    assert text.count("\n### ") == len(suite.entries)
    assert "a\\|b.json, SHA-256 `" in text
    assert "- **Accepted:** accepted until 2027-06-30: known \\| old (status: accepted)" in text
    assert "source: my lib/counts.py:12, SHA-256 " in text
    hostile = replace(suite.entries[1], name="<script>|[x](http://a.example) @me")
    shown = privacy_card_markdown(Suite(title="t", entries=(hostile,)), today=DAY)
    assert "<script" not in shown
    assert re.search(r"(?<!\\)\]\(", shown) is None  # every bracket before a parenthesis is escaped
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1  # columns


def test_numbers_that_json_lacks_and_long_seeds_are_text(entries):
    (one,) = card(replace(entries["stopped"], exact=None))["audits"]
    assert one["recorded"]["seed"] == str(2**70)
    (one,) = card(entries["no p"])["audits"]
    assert one["recorded"]["min_detectable_excess"] == "inf"
    first, second = (one["recorded"] for one in card(entries["held"], entries["training"])["audits"])
    names = ("claim", "alpha", "runs", "seed", "adjacency", "verdict")
    assert [first[name] for name in names] == ["1-DP", 0.05, 1_000, 7, "add/remove one row", "not refuted"]
    assert second["repeat"] == "the same call, which was not recorded, with alpha=0.05, seed=7"


def test_files_are_named_from_the_working_directory(suite, tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    save(suite, folder / "r.json")
    monkeypatch.chdir(tmp_path)
    assert results_file(folder / "r.json", suite).name == "a folder/r.json"
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert results_file(folder / "r.json", suite).name == "r.json"
    with pytest.raises(RecordError, match="cannot be read"):
        results_file(folder / "none.json", suite)
