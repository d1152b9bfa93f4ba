"""Baselines of the pytest plugin: saved, compared with, damaged, expired. Seeds follow from names."""

from __future__ import annotations

import json

import pytest

from dpaudit import load
from dpaudit.audit.records.baseline_comparison import compare

from .test_plugin import MECHANISMS, ONE_OF_EACH, _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

THREE = """
from mechanisms import *

def test_one(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), runs=1_500)

def test_two(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), runs=700, sequential=False)
    dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)
"""
ONLY_BAD = ONE_OF_EACH[: ONE_OF_EACH.index("def")] + ONE_OF_EACH[ONE_OF_EACH.index("def test_bad") :]


def baseline(project, name="main"):
    return project.path / "dp_audit_baselines" / f"{name}.json"


def edit(project, change):
    """Changes a saved baseline by hand."""
    body = json.loads(baseline(project).read_text(encoding="utf-8"))
    change(body)
    baseline(project).write_text(json.dumps(body), encoding="utf-8")


@pytest.fixture(scope="module")
def kept():
    """The baseline of three audits, as bytes, once a session has saved it."""
    return {}


@pytest.fixture
def three(project, kept):
    """A project with three audits and their baseline, saved by a single session for all tests of this module."""
    project.makepyfile(test_three=THREE)
    if "main" not in kept:
        run(project, "--dp-audit-save=main").assert_outcomes(passed=2)
        kept["main"] = baseline(project).read_bytes()
    baseline(project).parent.mkdir(exist_ok=True)
    baseline(project).write_bytes(kept["main"])
    return project


def test_what_has_not_changed_passes(three, kept):
    run(three, "--dp-audit-compare=main").assert_outcomes(passed=2)
    result = run(three, "--dp-audit-save=main")
    assert f"baseline written to {baseline(three)}" in text_of(result)
    assert [entry.name.partition("::")[2] for entry in load(baseline(three)).entries] == [
        "test_one",
        "test_two",
        "test_two #2",
    ]
    assert baseline(three).read_bytes() == kept["main"]  # nothing in it but what matters


def streams(project, name="main"):
    (first, *_) = load(baseline(project, name)).entries
    return [one.stream for one in first.recounts]


def test_code_rewritten_with_the_same_law_passes(three):
    """Noise subtracted instead of added, from independent random numbers; a false alarm has probability 3e-5."""
    three.makepyfile(mechanisms=MECHANISMS.replace("+ rng", "- rng"))
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(passed=2)
    assert "compared with baseline main: 3 by counts" in text_of(result)


def test_what_is_saved_and_what_is_compared_have_streams_of_their_own(three):
    """Where a session does both it counts twice, and files of either can be compared with each other."""
    assert streams(three) == ["baseline main"]
    first = load(baseline(three))
    assert {one.p_value for one in compare(first, first)} == {None}
    # A baseline that is renewed while it is compared with is compared by the counts that are its own.
    for name in ("branch", "main", "main"):
        run(three, "--dp-audit-compare=main", f"--dp-audit-save={name}").assert_outcomes(passed=2)
        assert streams(three, name) == ["comparison with main", f"baseline {name}"]
        found = compare(first, load(baseline(three, name)))
        assert [(one.has_changed, one.p_value is None) for one in found] == 3 * [(False, False)]


def test_a_baseline_of_the_same_random_numbers_is_no_pass(three):
    """Results of a comparison that were put in place of the baseline: other code gives other counts."""
    run(three, "--dp-audit-compare=main", f"--dp-audit-report={three.path / 'now.json'}")
    (three.path / "now.json").replace(baseline(three))
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(passed=2)
    assert "compared with baseline main: 3 by claims and settings only" in text_of(result)
    three.makepyfile(mechanisms=MECHANISMS.replace("+ rng", "- rng"))
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(failed=2)
    assert "save one of them again under another name" in text_of(result)


def test_other_noise_fails_with_the_counts(three):
    """Twice the noise keeps the claim, and is a change all the same."""
    three.makepyfile(mechanisms=MECHANISMS.replace("scale=1.0", "scale=2.0"))
    result = run(three, "--dp-audit-compare=main", "-k", "one")
    result.assert_outcomes(failed=1, deselected=1)
    text = text_of(result)
    assert "CHANGED since baseline main" in text
    assert "p-value" in text
    assert "--dp-audit-save=main" in text


def test_a_weaker_claim_and_fewer_runs_fail(three):
    three.makepyfile(test_three=THREE.replace("PureDP(2.0)", "PureDP(3.0)").replace("1_500", "900"))
    text = text_of(run(three, "--dp-audit-compare=main"))
    assert "the claim was 2-DP and is 3-DP" in text
    assert "the runs on each dataset fell from 1,500 to 900" in text


def test_a_baseline_counts_the_part_that_is_audited(project):
    """The other part of the outputs would give other counts, or none."""
    mechanism = """
from dpaudit import PureDP

def stats(answer, rng):
    return {"a": answer + SCALE * rng.laplace(), "told": answer}

def test_it(dp_audit):
    dp_audit(stats, 0.0, 1.0, claim=PureDP(4.0), runs=4_000, sequential=False, output="a")
"""
    project.makepyfile(test_part=mechanism.replace("SCALE", "1"))
    run(project, "--dp-audit-save=main").assert_outcomes(passed=1)
    (entry,) = load(baseline(project)).entries
    (counted,) = entry.recounts
    assert 0 < counted.counts.hits_x + counted.counts.hits_y < 8_000
    run(project, "--dp-audit-compare=main").assert_outcomes(passed=1)
    project.makepyfile(test_part=mechanism.replace("SCALE", "3"))
    run(project, "--dp-audit-compare=main").assert_outcomes(failed=1)


def test_an_audit_that_has_disappeared_fails_the_session(three):
    three.makepyfile(
        test_three=THREE.replace("    dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)\n", "")
    )
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "test_three.py::test_two #2: the audit of baseline main is missing" in text_of(result)
    # Not so where the test was left out on purpose.
    assert run(three, "--dp-audit-compare=main", "-k", "one").ret == pytest.ExitCode.OK
    assert run(three, "--dp-audit-compare=main", "test_three.py::test_one").ret == pytest.ExitCode.OK
    three.mkdir("elsewhere")
    three.makepyfile(**{"elsewhere/test_other": "def test_it(): pass"})
    assert run(three, "--dp-audit-compare=main", "elsewhere").ret == pytest.ExitCode.OK


def test_a_test_that_has_disappeared_fails_the_session(three):
    three.makepyfile(test_three=THREE.replace("test_one", "tast_one"))
    result = run(three, "--dp-audit-compare=main")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "::test_one: the audit of baseline main is missing" in text_of(result)


def test_a_new_audit_passes(three):
    three.makepyfile(test_three=THREE + "    dp_audit(good, X, Y, claim=PureDP(1.5), runs=700, sequential=False)\n")
    assert run(three, "--dp-audit-compare=main").ret == pytest.ExitCode.OK


def test_an_accepted_finding_passes_until_its_day(project):
    project.makepyfile(ONLY_BAD)
    run(project, "--dp-audit-save=main").assert_outcomes(failed=1)
    run(project, "--dp-audit-compare=main").assert_outcomes(failed=1)

    def accept(until, **limit):
        def change(body):
            body["suite"]["entries"][0]["accepted"] = {"type": "Accepted", "reason": "known", "until": until, **limit}

        edit(project, change)

    accept("2999-01-01")
    result = run(project, "--dp-audit-compare=main")
    result.assert_outcomes(passed=1)
    assert "refuted, accepted until 2999-01-01: known" in text_of(result)
    run(project, "--dp-audit-save=main")
    assert load(baseline(project)).entries[0].accepted is not None  # saving anew keeps it
    accept("2020-01-01")
    result = run(project, "--dp-audit-compare=main")
    result.assert_outcomes(failed=1)
    assert "acceptance expired after 2020-01-01: known" in text_of(result)
    assert "refuted, acceptance: expired" in text_of(result)
    assert "accepted until 2020" not in text_of(result)
    accept("2999-01-01", up_to=1.3)  # the audit then makes all runs
    assert "known; the bound >= 1." in text_of(run(project, "--dp-audit-compare=main"))


def test_a_marker_accepts_too(project):
    marked = "import pytest\n" + ONLY_BAD.replace(
        "def test_bad", "@pytest.mark.dp_audit(accepted='known', until='{}')\ndef test_bad"
    )
    project.makepyfile(marked.format("2999-01-01"), test_soon=marked.format("soon"))
    result = run(project)
    result.assert_outcomes(passed=1, errors=1)
    assert "is not a date" in text_of(result)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda body: body.update(schema=99), "schema=99 is of another version of dpaudit"),
        (lambda body: body["suite"]["entries"][0]["result"]["counts"].update(hits_x=-1), "an impossible value"),
        (lambda body: body.pop("suite"), "are not audit results"),
    ],
)
def test_a_damaged_baseline_is_an_error(three, damage, words):
    edit(three, damage)
    result = run(three, "--dp-audit-compare=main")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in text_of(result)


def test_a_missing_baseline_is_an_error(project):
    project.makepyfile(THREE)
    result = run(project, "--dp-audit-compare=nothing")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"nothing.json does not exist. Use an existing baseline (none in {baseline(project).parent})" in text_of(
        result
    )


def test_a_typo_in_the_name_of_a_baseline_lists_those_that_exist(project):
    project.makepyfile(THREE)
    for name in ("main", "linux/main"):
        baseline(project, name).parent.mkdir(parents=True, exist_ok=True)
        baseline(project, name).write_text("{}", encoding="utf-8")
    result = run(project, "--dp-audit-compare=mian")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "mian.json does not exist. Use an existing baseline (linux/main, main), or save one with" in text_of(result)


def test_a_session_that_breaks_off_saves_nothing(project):
    project.makepyfile(ONLY_BAD + "\nimport pytest\ndef test_stop():\n    pytest.exit('enough')\n")
    run(project, "--dp-audit-save=main")
    assert not baseline(project).exists()


WITH_WORKERS = """
import pytest
from mechanisms import *

def test_good(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), runs=700, sequential=False)
    dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)

def test_bad(dp_audit):
    with pytest.raises(pytest.fail.Exception, match="REFUTED"):
        dp_audit(bad, X, Y, claim=PureDP(1.0), sequential=False)
"""


def test_workers_compare_and_give_the_same(full_project):
    """What is left is what it is in one process, and what has disappeared fails the session, which is green."""
    project = full_project
    project.makepyfile(WITH_WORKERS)
    run(project, "--dp-audit-save=main").assert_outcomes(passed=2)
    project.makepyfile(
        WITH_WORKERS.replace("    dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)\n", "")
    )
    run(project, "--dp-audit-compare=main", "--dp-audit-report=alone.json").assert_outcomes(passed=2)
    options = ("--dp-audit-runs=1_500", "--dp-audit-compare=main", "--dp-audit-report=spread.json")
    result = project.runpytest_subprocess("-n", "2", "-p", "no:hypothesispytest", *options)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "#2: the audit of baseline main is missing" in text_of(result)
    assert "compared with baseline main: 2 by counts" in text_of(result)
    assert "2 audits; probability of any false alarm" in text_of(result)
    assert load(project.path / "alone.json") == load(project.path / "spread.json")
    assert [entry.result.is_refuted for entry in load(project.path / "spread.json").entries] == [True, False]
