"""The in-toto statement: its form, its subjects, and that a passed test is never a refuted or undecided claim."""

import datetime
import hashlib
import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from dpaudit import Verdict, save
from dpaudit.audit.errors import OptionError, RecordError
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.reports import attestation
from dpaudit.reports.formats.results_files import HashedFile, ResultsFile, hashed_file, results_file
from dpaudit.reports.formats.standing import standing

DAY = datetime.date(2027, 6, 30)

# in-toto publishes no JSON schema. This one states the rules of spec/v1/statement.md, spec/v1/resource_descriptor.md,
# spec/v1/digest_set.md and spec/predicates/test-result.md of github.com/in-toto/attestation.
DIGESTS = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
}
DESCRIPTOR = {
    "type": "object",
    "anyOf": [{"required": ["uri"]}, {"required": ["digest"]}, {"required": ["content"]}],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "uri": {"type": "string"},
        "digest": DIGESTS,
        "content": {"type": "string"},
        "downloadLocation": {"type": "string"},
        "mediaType": {"type": "string"},
        "annotations": {"type": "object"},
    },
}
NAMES = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
VALIDATOR = Draft202012Validator(
    {
        "type": "object",
        "required": ["_type", "subject", "predicateType", "predicate"],
        "additionalProperties": False,
        "properties": {
            "_type": {"const": "https://in-toto.io/Statement/v1"},
            "subject": {
                "type": "array",
                "minItems": 1,
                "items": {"allOf": [DESCRIPTOR, {"required": ["digest"]}]},
            },
            "predicateType": {"const": "https://in-toto.io/attestation/test-result/v0.1"},
            "predicate": {
                "type": "object",
                "required": ["result", "configuration"],
                "additionalProperties": False,
                "properties": {
                    "result": {"enum": ["PASSED", "WARNED", "FAILED"]},
                    "configuration": {"type": "array", "items": DESCRIPTOR},
                    "url": {"type": "string"},
                    "passedTests": NAMES,
                    "warnedTests": NAMES,
                    "failedTests": NAMES,
                },
            },
        },
    }
)


def made(*entries, **options):
    """The statement of a suite, valid, with different names of the subjects and each test once."""
    body = json.loads(attestation(Suite(title="t", entries=entries), today=DAY, **options))
    VALIDATOR.validate(body)
    names = [one["name"] for one in body["subject"]]
    assert len(set(names)) == len(names)
    told = body["predicate"]
    tests = [*told["passedTests"], *told["warnedTests"], *told["failedTests"]]
    assert sorted(tests) == sorted(one["name"] for one in told["configuration"])
    assert len(tests) == len(entries)
    return body


def test_every_kind_of_result_has_its_standing(suite):
    told = made(*suite.entries)["predicate"]
    assert told["result"] == "FAILED"
    assert told["passedTests"] == ["held", "group", "training", "slope"]
    assert told["warnedTests"] == ["low", "doubt", "accepted", "twin"]
    assert told["failedTests"] == [
        "tests/test_it.py::test_noisy", "held #2", "sick", "surprise", "stopped", "leaky", "steep",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "result"), [(["held"], "PASSED"), (["held", "twin"], "WARNED"), (["held", "twin", "sick"], "FAILED")]
)
def test_the_result_is_that_of_the_worst_test(names, result, entries):
    assert made(*(entries[name] for name in names))["predicate"]["result"] == result


def test_only_a_claim_that_was_not_refuted_passes(entries):
    for entry in entries.values():
        for expected in (None, *Verdict):
            one = replace(entry, expected=expected)
            if standing(one, DAY) == "passed":
                assert one.result.verdict is Verdict.NOT_REFUTED
                assert one.is_met
            if expected is not None and expected is not one.result.verdict:
                assert standing(one, DAY) == "failed"


def test_an_acceptance_ends(entries):
    assert standing(entries["accepted"], DAY) == "warned"
    assert standing(entries["accepted"], DAY + datetime.timedelta(days=1)) == "failed"


def test_the_default_subject_is_the_file_that_save_writes(suite, tmp_path):
    save(suite, tmp_path / "results.json")
    digest = hashlib.sha256((tmp_path / "results.json").read_bytes()).hexdigest()
    whole = json.loads(attestation(suite, today=DAY))
    assert whole["subject"][0]["name"] == "results.json"
    assert whole["subject"][0]["digest"] == {"sha256": digest}
    assert {one["digest"]["sha256"] for one in whole["predicate"]["configuration"]} == {digest}
    assert whole["subject"][1]["name"] == "my lib/counts.py"


def test_sources_and_artifacts_are_subjects_once(entries, audit):
    first = entries["refuted"]
    other = {**first.result.environment["source"], "sha256": "cd" * 32}
    changed = Entry(name="later", result=audit(environment={"source": other}))
    artifacts = [HashedFile(name="dist/mylib.whl", sha256="e" * 64)]
    body = made(first, replace(first, name="again"), changed, artifacts=artifacts)
    assert [(one["name"], one["digest"]["sha256"][:2]) for one in body["subject"][1:]] == [
        ("my lib/counts.py", "ab"),
        (f"my lib/counts.py ({'cd' * 6})", "cd"),
        ("dist/mylib.whl", "ee"),
    ]


def test_a_configuration_names_its_file_and_what_repeats_it(entries):
    files = [ResultsFile(name=f"{name}.json", sha256=name * 64, entries=1) for name in "ab"]
    body = made(entries["held"], entries["training"], files=files)
    first, second = body["predicate"]["configuration"]
    assert (first["digest"]["sha256"], second["digest"]["sha256"]) == ("a" * 64, "b" * 64)
    known = first["annotations"]
    names = ("file", "standing", "claim", "alpha", "runs", "seed", "adjacency", "verdict")
    assert [known[name] for name in names] == [
        "a.json", "passed", "1-DP", 0.05, 1_000, 7, "add/remove one row", "not refuted",
    ]  # fmt: skip
    assert second["annotations"]["repeat"].startswith("check_canaries(")


def test_numbers_that_json_lacks_and_long_seeds_are_text(entries):
    (known,) = made(replace(entries["stopped"], exact=None))["predicate"]["configuration"]
    assert known["annotations"]["seed"] == str(2**70)
    (known,) = made(entries["no p"])["predicate"]["configuration"]
    assert known["annotations"]["resolution"] == "inf"


def test_nothing_is_attested_without_an_audit():
    with pytest.raises(OptionError, match="nothing to attest"):
        attestation(Suite(title="t", entries=()))


def test_files_are_named_from_the_working_directory(suite, tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    save(suite, folder / "r.json")
    monkeypatch.chdir(tmp_path)
    assert results_file(folder / "r.json", suite).name == "a folder/r.json"
    monkeypatch.chdir(folder.parent.parent)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert hashed_file(folder / "r.json").name == "r.json"
    with pytest.raises(RecordError, match="cannot be read"):
        hashed_file(folder / "none.json")


def test_the_same_results_give_the_same_bytes(suite):
    assert attestation(suite, today=DAY) == attestation(suite, today=DAY)
