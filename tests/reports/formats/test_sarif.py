"""SARIF: valid by its schema and by the rules of code scanning, stable from run to run, and safe with any name."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft4Validator

from dpaudit import PureDP
from dpaudit.audit.errors import OptionError
from dpaudit.audit.records.merge import merge
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.reports import sarif
from dpaudit.reports.formats.sarif import ResultsFile, rule
from dpaudit.reports.pages.audit_facts import place_of_mechanism, place_of_row, uri_of

SOURCE = {"file": "my lib/counts.py", "line": 12, "sha256": "ab" * 32, "below": "working directory"}
DAY = datetime.date(2027, 6, 30)
SCHEMA = json.loads((Path(__file__).parent / "schemas/sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
VALIDATOR = Draft4Validator(SCHEMA)


def written(*entries, **options):
    """The run of a file that satisfies the schema and the rules that a schema cannot state."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    text = sarif(Suite(title="t", entries=entries), today=DAY, **options)
    body = json.loads(text, parse_constant=refuse)
    VALIDATOR.validate(body)
    (run,) = body["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert (one["kind"] == "fail") == (one["level"] != "none")  # section 3.27.10
        assert len(one["locations"]) == 1
        ids = {place["id"] for place in one["relatedLocations"]}
        assert len(ids) == len(one["relatedLocations"])
    assert len(set(rules)) == len(rules)
    return run


def only(entry, **options):
    (found,) = written(entry, **options)["results"]
    return found


def test_every_kind_of_result_is_valid(suite, entries):
    run = written(*suite.entries)
    assert len(run["results"]) == len(entries) + 1  # the low bits have a result of their own
    elsewhere = {"name", "experiment", "is_met", "exact", "seconds"}
    assert not any(elsewhere & one["properties"].keys() for one in run["results"])
    ids = [one["partialFingerprints"]["auditedClaim/v1"] for one in run["results"]]
    assert len(set(ids)) == len(ids)
    run = written(*(replace(entries["refuted"], name=f"audit {number}") for number in range(50)))
    assert len({one["partialFingerprints"]["auditedClaim/v1"] for one in run["results"]}) == 50
    assert len(run["tool"]["driver"]["rules"]) == len(run["artifacts"]) == 1


@pytest.mark.parametrize(
    ("name", "kind", "level", "is_suppressed"),
    [
        ("refuted", "fail", "error", False), ("held", "pass", "none", False), ("no p", "fail", "warning", False),
        ("sick", "fail", "warning", False), ("doubt", "review", "none", False), ("accepted", "fail", "error", True),
        ("variant", "fail", "error", True), ("surprise", "fail", "warning", False), ("stopped", "fail", "error", False),
        ("training", "pass", "none", False), ("leaky", "fail", "error", False), ("slope", "pass", "none", False),
        ("steep", "fail", "error", False),
    ],
)  # fmt: skip
def test_kind_and_level_follow_the_verdict(name, kind, level, is_suppressed, entries):
    found = only(entries[name])
    assert (found["kind"], found["level"], bool(found["suppressions"])) == (kind, level, is_suppressed)
    if name == "accepted":
        later = json.loads(sarif(Suite(title="t", entries=(entries[name],)), today=DAY.replace(year=2028)))
        assert later["runs"][0]["results"][0]["suppressions"] == [], "the acceptance has ended"


def test_a_refutation_says_where_what_and_how_sure(entries):
    run = written(entries["refuted"])
    (found,) = run["results"]
    assert found["ruleId"] == "PureDP"
    assert found["message"]["text"].startswith(
        "tests/test_it.py::test_noisy: REFUTED: epsilon >= 1.5, claimed 1 (95% confidence). Claim: 1-DP (add/remove "
        "one row)."
    )
    (place,) = found["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "my%20lib/counts.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 12},
    }
    assert place["logicalLocations"] == [{"fullyQualifiedName": "mylib.counts.noisy_count", "name": "noisy_count"}]
    known = found["properties"]
    names = ("seed", "runs", "alpha", "bound", "pvalue", "verdict")
    assert [known[name] for name in names] == [7, 1_000, 0.05, 1.5, 0.5, "refuted"]
    assert known["repeat"] == "check(noisy_count, x, y, claim=1.0, adjacency='add-remove', runs=1000, seed=7)"
    (source,) = run["artifacts"]
    assert (source["hashes"], source["roles"]) == ({"sha-256": SOURCE["sha256"]}, ["analysisTarget"])


def test_the_lines_of_a_replay_are_linked_from_the_message(entries):
    found = only(entries["refuted"])
    (place,) = found["relatedLocations"]
    assert place["physicalLocation"]["region"] == {
        "startLine": 14, "snippet": {"text": "return len(rows) + rng.laplace()"},
    }  # fmt: skip
    assert place["message"]["text"] == (
        "Generator.laplace: moves by 2, which costs 2; [more] (9) than {{claimed}}"  # neither link nor placeholder
    )
    assert found["message"]["text"].endswith("Replay: EXCESS: 1 finding in 1 call. [my lib/counts.py:14](1)")
    entry = entries["refuted"]
    row = replace(entry.replay.rows[0], place="a[1]\\{b}.py:3 in f")
    text = only(replace(entry, replay=replace(entry.replay, rows=(row,))))["message"]["text"]
    assert text.endswith(r" [a\[1\]/{{b}}.py:3](1)"), "the text of a link is escaped"


def test_properties_and_results_that_only_some_audits_have(entries):
    """Bets leave no estimate, and a failed health check no bound; low bits are a warning of their own rule."""
    known = {name: only(entries[name])["properties"].keys() for name in ("stopped", "sick", "refuted")}
    assert not {"estimate", "min_detectable_excess"} & known["stopped"]
    assert {"bound", "pvalue"} <= known["stopped"]
    assert {"estimate", "min_detectable_excess"} <= known["refuted"]
    assert not {"bound", "estimate", "pvalue", "min_detectable_excess"} & known["sick"]
    assert "counts vary" in only(entries["sick"])["message"]["text"]
    first, second = written(entries["low"])["results"]
    assert (first["kind"], first["ruleId"]) == ("pass", "PureDP")
    assert (second["level"], second["ruleId"]) == ("warning", "FloatingPointLeak")
    assert "a floating-point leak breaks the claim" in second["message"]["text"]
    assert "floating-point leak" not in first["message"]["text"]
    assert rule("MyClaim")["shortDescription"]["text"] == "Claim of the type MyClaim"


def test_code_scanning_gets_problems_alone_and_each_in_a_file(suite):
    run = written(*suite.entries, code_scanning=True)
    names = [one["message"]["text"].partition(": ")[0] for one in run["results"]]
    wanted = ["tests/test_it.py::test_noisy", "held #2", "sick", "low", "surprise", "stopped", "leaky", "steep"]
    assert names == wanted
    for one in run["results"]:
        assert one["kind"] == "fail"
        (place,) = one["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert one["partialFingerprints"]["primaryLocationLineHash"].endswith(":1")


@pytest.mark.parametrize(
    ("source", "name", "file"),
    [
        (SOURCE, "tests/a.py::test", "my%20lib/counts.py"),
        ({**SOURCE, "below": "installed packages"}, "tests/a.py::test", "tests/a.py"),
        (None, "june.json: tests/a b.py::test_x[1] #2", "tests/a%20b.py"),
        (None, "../a.py::test", "in/r.json"),
        (None, "a name", "in/r.json"),
    ],
)
def test_where_no_source_is_known_code_scanning_gets_the_test_or_the_results(source, name, file, audit):
    entry = Entry(name=name, result=audit(bound=2.0, environment={"source": source}))
    files = (ResultsFile(name="in/r.json", sha256="0" * 64, entries=1),)
    (place,) = only(entry, files=files, code_scanning=True)["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": file, "uriBaseId": "SRCROOT"}
    assert ("message" in place) == (source != SOURCE)
    (shown,) = only(entry, files=files)["locations"]
    assert ("physicalLocation" in shown) == (source is not None)


def test_a_finding_keeps_its_identity_from_run_to_run(entries):
    entry = entries["refuted"]
    (before,) = only(entry)["partialFingerprints"].values()
    moved = {"source": {**SOURCE, "line": 99, "sha256": "cd" * 32}, "seconds": 3.0}
    again = replace(
        entry.result, seed=8, runs=5_000, bound=1.7, pvalue=0.01, alpha=0.01, environment=moved,
        versions=(("dpaudit", "9"),),
    )  # fmt: skip
    (after,) = only(replace(entry, result=again, replay=None))["partialFingerprints"].values()
    assert after == before
    for other in (
        replace(entry, name="another"),
        replace(entry, result=replace(entry.result, claim=PureDP(1.1))),
        replace(entry, result=replace(entry.result, pair=replace(entry.result.pair, adjacency="replace one row"))),
    ):
        assert only(other)["partialFingerprints"] != {"auditedClaim/v1": before}


def test_files_are_artifacts_and_must_be_those_of_the_suite(entries):
    pair = [entries[name] for name in ("held", "leaky")]
    files = [ResultsFile(name=f"{name}.json", sha256=name * 64, entries=1) for name in "ab"]
    run = written(*pair, files=files)
    assert [one["hashes"]["sha-256"] for one in run["artifacts"]] == ["a" * 64, "b" * 64]
    merged = merge([Suite(title="t", entries=(one,)) for one in pair], ["a.json", "b.json"])
    (found,) = written(*merged.entries, files=files, code_scanning=True)["results"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "b.json"
    with pytest.raises(OptionError, match="have 1 entries, and the suite has 2"):
        written(*pair, files=files[:1])


HOSTILE = ["a\x00\x1b[31m lone \ud800 right\u202eleft", "[x](1) {0} }", "", "x" * 9_000, "{{7*7}}"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(name, audit):
    found = written(Entry(name=name, result=audit(mechanism=name, bound=2.0, claim_source=name)))["results"][0]
    text = found["message"]["text"]
    assert "](" not in text
    assert text.count("{") % 2 == 0
    assert not any(ord(char) < 32 or "\ud800" <= char <= "\udfff" or char == "\u202e" for char in text)


NO_SOURCES = [
    "text", {}, *({**SOURCE, "file": file} for file in ("../up.py", "/root/a.py", "C:/a.py", "a\\b.py", "", 3)),
    *({**SOURCE, "line": line} for line in (0, True, "3", 2**40)), {**SOURCE, "sha256": "x"},
    {**SOURCE, "below": "the moon"},
]  # fmt: skip


def test_a_source_that_is_not_a_path_below_its_root_is_not_told(audit):
    for source in NO_SOURCES:
        entry = Entry(name="a", result=audit(environment={"source": source}))
        assert place_of_mechanism(entry) is None, source
    assert "physicalLocation" not in only(entry)["locations"][0]


PLACES = {
    "lib/a.py:3 in f": ("lib/a.py", 3),
    "C:\\code dir\\a.py:30 in <lambda>": ("file:///C:/code%20dir/a.py", 30),
    "a b.py:1 in f in g": ("a%20b.py", 1),
    **dict.fromkeys(["<stdin>:3 in f", "nowhere", "a.py:0 in f"]),
}
IN_URIS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/[]@!$&'()*+,;=%")


def test_places_of_a_replay_are_uris(entries):
    for place, wanted in PLACES.items():
        found = place_of_row(replace(entries["refuted"].replay.rows[0], place=place))
        assert (found and (found.uri, found.line)) == wanted, place
    for path in ("a b#c?d%e.py", "ü/日本.py", "x:y.py", "lone \ud800.py", "\\\\server\\share\\a.py"):
        assert set(uri_of(path)) <= IN_URIS
