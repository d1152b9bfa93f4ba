"""Baselines of the pytest plugin: saved, compared with, damaged, accepted, expired."""

import json

import pytest

from dpaudit import load
from dpaudit.audit.records.baseline_comparison import compare

from .sessions import MECHANISMS, ONLY_BAD, has_outcomes, run, text_of

pytest_plugins = ["pytester"]
ONE = """
from mechanisms import *

def test_one(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), runs=1_500, sequential=False)
"""
SECOND = "    dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)\n"
TWO = f"""
from mechanisms import *

def test_two(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), runs=700, sequential=False)
{SECOND}"""
NAMES = ["test_a.py::test_one", "test_b.py::test_two", "test_b.py::test_two #2"]


def baseline(project, name="main"):
    return project.path / "dp_audit_baselines" / f"{name}.json"


def names(project):
    return [entry.name for entry in load(baseline(project)).entries]


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
    project.makepyfile(test_a=ONE, test_b=TWO)
    if "main" not in kept:
        run(project, "--dp-audit-save=main").assert_outcomes(passed=2)
        kept["main"] = baseline(project).read_bytes()
    baseline(project).parent.mkdir(exist_ok=True)
    baseline(project).write_bytes(kept["main"])
    return project


def test_what_has_not_changed_is_saved_as_it_was(three, kept):
    assert names(three) == NAMES
    assert f"baseline written to {baseline(three)}" in text_of(run(three, "--dp-audit-save=main"))
    assert baseline(three).read_bytes() == kept["main"]  # nothing in it but what matters


def streams(project, name="main"):
    (first, *_) = load(baseline(project, name)).entries
    return [one.stream for one in first.recounts]


def test_code_rewritten_with_the_same_distribution_passes(three):
    """Noise subtracted instead of added, from independent random numbers; a false alarm has probability 3e-5."""
    three.makepyfile(mechanisms=MECHANISMS.replace("+ rng", "- rng"), test_c=ONE)
    result = run(three, "--dp-audit-compare=main")
    assert result.ret == pytest.ExitCode.OK, "a new audit passes, too"
    text = text_of(result)
    assert "compared with baseline main: 3 by counts, 1 new" in text
    halved = "3 audits × alpha 2e-05 = 6e-05 of error budget 0.01 (half of each alpha for the comparison)"
    assert f"3 tests, {halved}" in text


def test_what_is_saved_and_what_is_compared_have_streams_of_their_own(three):
    """Where a session does both it counts twice, and files of either can be compared with each other."""
    assert streams(three) == ["baseline main"]
    first = load(baseline(three))
    assert {one.pvalue for one in compare(first, first)} == {None}
    # A baseline that is renewed while it is compared with is compared by the counts that are its own.
    for name in ("linux/branch", "main"):
        run(three, "--dp-audit-compare=main", f"--dp-audit-save={name}").assert_outcomes(passed=2)
        assert streams(three, name) == ["comparison with main", f"baseline {name}"]
        found = compare(first, load(baseline(three, name)))
        assert [(one.has_changed, one.pvalue is None) for one in found] == 3 * [(False, False)]
    run(three, "--dp-audit-compare=main", "-k", "one").assert_outcomes(passed=1, deselected=1)


def test_a_baseline_of_the_same_random_numbers_is_no_pass(three):
    """Results of a comparison that were put in place of the baseline: other code gives other counts."""
    run(three, "--dp-audit-compare=main", f"--dp-audit-report={three.path / 'now.json'}")
    (three.path / "now.json").replace(baseline(three))
    assert "compared with baseline main: 1 by claims" in text_of(run(three, "--dp-audit-compare=main", "-k", "one"))
    three.makepyfile(mechanisms=MECHANISMS.replace("+ rng", "- rng"))
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(failed=2)
    assert "save one of them again under another name" in text_of(result)


def test_other_noise_a_weaker_claim_and_fewer_runs_fail(three):
    """Twice the noise keeps the claim, and is a change all the same."""
    three.makepyfile(mechanisms=MECHANISMS.replace("scale=1.0", "scale=3.0"))
    result = run(three, "--dp-audit-compare=main", "-k", "one")
    result.assert_outcomes(failed=1, deselected=1)
    for words in ("CHANGED since baseline main", "p-value", "--dp-audit-save=main"):
        assert words in text_of(result)
    three.makepyfile(
        mechanisms=MECHANISMS, test_a=ONE.replace("1_500", "900"), test_b=TWO.replace("PureDP(2.0)", "PureDP(3.0)")
    )
    text = text_of(run(three, "--dp-audit-compare=main"))
    assert "the claim was 2-DP and is 3-DP" in text
    assert "the runs on each dataset fell from 1,500 to 900" in text


def test_what_has_disappeared_fails_the_session(three):
    renamed = ONE.replace("test_one", "tast_one") + "\ndef test_plain(): pass\n"
    three.makepyfile(test_a=renamed, test_b=TWO.replace(SECOND, ""))
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for name in ("test_a.py::test_one", "test_b.py::test_two #2"):
        assert f"{name}: the audit of baseline main is missing" in text_of(result)
    # Not so where the test was left out on purpose.
    three.mkdir("elsewhere")
    three.makepyfile(**{"elsewhere/test_other": "def test_it(): pass", "test_a": ONE})
    for options in (["--ignore=test_b.py"], ["--dp-audit-skip"], ["-k", "one"], ["elsewhere"]):
        assert run(three, "--dp-audit-compare=main", *options).ret == pytest.ExitCode.OK, options
    three.makepyfile(test_b=TWO.replace("def", "import pytest\n@pytest.mark.skipif(True, reason='')\ndef"))
    assert run(three, "--dp-audit-compare=main").ret == pytest.ExitCode.OK


def test_saving_a_part_keeps_the_rest(three):
    assert "2 from this session (0 new), 1 kept" in text_of(run(three, "test_b.py", "--dp-audit-save=main"))
    run(three, "-k", "one", "--dp-audit-save=main")
    assert names(three) == NAMES
    # A test that failed before its audit is not gone; one that is gone goes, where all is green.
    three.makepyfile(test_b=TWO.replace("    dp_audit", "    assert False\n    dp_audit", 1))
    run(three, "--dp-audit-save=main")
    assert names(three) == NAMES
    three.makepyfile(test_b="def test_three(): pass")
    assert "2 removed" in text_of(run(three, "--dp-audit-save=main"))
    assert names(three) == NAMES[:1]
    three.makepyfile(test_b=ONE + "\nimport pytest\ndef test_stop():\n    pytest.exit('enough')\n")
    run(three, "test_b.py", "--dp-audit-save=broken")
    assert not baseline(three, "broken").exists(), "a session that breaks off saves nothing"


def test_a_baseline_of_other_tests_or_without_counts_is_no_pass(three):
    run(three, "test_a.py", "--dp-audit-save=other")
    result = run(three, "test_b.py", "--dp-audit-compare=other")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "baseline other has no audit of this session, so nothing was compared" in text_of(result)
    run(three, f"--dp-audit-report={baseline(three)}")
    result = run(three, "--dp-audit-compare=main")
    result.assert_outcomes(failed=2)
    assert "nothing to compare" in text_of(result)


PART = """
from dpaudit import PureDP

def stats(answer, rng):
    return {"a": answer + rng.laplace(), "told": answer}

def test_part(dp_audit):
    dp_audit(stats, 0.0, 1.0, claim=PureDP(1.5), sequential=False, output="a")
"""


def test_an_accepted_finding_passes_until_its_day(project):
    project.makepyfile(test_a=ONLY_BAD, test_part=PART)
    run(project, "--dp-audit-save=main").assert_outcomes(passed=1, failed=1)
    (counted,) = load(baseline(project)).entries[1].recounts
    assert 0 < counted.counts.count_x + counted.counts.count_y < 3_000, (
        "the other part would give other counts, or none"
    )
    (project.path / "test_part.py").unlink()

    def accept(until, **limit):
        def change(body):
            body["suite"]["entries"][0]["accepted"] = {"type": "Accepted", "reason": "known", "until": until, **limit}

        edit(project, change)

    accept("2999-01-01")
    result = run(project, "--dp-audit-compare=main", "--dp-audit-save=main")
    result.assert_outcomes(passed=1)
    assert "refuted, accepted until 2999-01-01: known" in text_of(result)
    assert load(baseline(project)).entries[0].accepted is not None  # saving anew keeps it
    accept("2020-01-01")
    result = run(project, "--dp-audit-compare=main")
    result.assert_outcomes(failed=1)
    assert "acceptance expired after 2020-01-01: known" in text_of(result)
    accept("2999-01-01", up_to=1.3)  # the audit then makes all runs
    assert "known; the bound >= " in text_of(run(project, "--dp-audit-compare=main"))


def accepted(options, call="audit(dp_audit, *BAD)"):
    return f"@pytest.mark.dp_audit({options})\n{call}"


KNOWN = "accepted='known', until='2999-01-01'"
STOPS = "sequential=True stops the audit as soon as its bound exceeds the claim"
MARKED = {
    "soon": (accepted("accepted='known', until='soon'"), "ERROR", "is not a date"),
    "no_longer": (
        accepted(KNOWN, "audit(dp_audit, good, *BAD[1:])"), "PASSED",
        "no longer refuted, so the acceptance can be withdrawn",
    ),
    "within": (accepted(f"{KNOWN}, up_to=9.0"), "PASSED"),
    # A limit is one of the loss: the bound of a sequential audit would lie just above the claim, however large that is.
    "loss": (
        accepted(f"{KNOWN}, up_to=1.3", "dp_audit(bad, X, Y, claim=PureDP(1.0))"), "FAILED",
        "acceptance accepted up to 1.3 until 2999-01-01: known; the bound >= ",
    ),
    "stops": (accepted(f"{KNOWN}, up_to=1.3", "audit(dp_audit, *BAD, sequential=True)"), "FAILED", STOPS),
    "alone": (accepted("until='2999-01-01', up_to=1.3"), "ERROR", "needs accepted= and until="),
    "text": (accepted(f"{KNOWN}, up_to='a'"), "ERROR", "up_to='a' is not a number"),
}  # fmt: skip


def test_a_marker_accepts_too(project):
    shown = has_outcomes(project, MARKED, "--dp-audit-seconds=60")
    assert "refuted, acceptance: bound above the accepted one" in shown


def test_a_damaged_or_missing_baseline_is_an_error(three):
    def refused(*options):
        result = run(three, *options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        return text_of(result)

    edit(three, lambda body: body["suite"]["entries"][0]["result"]["counts"].update(count_x=-1))
    for option in ("compare", "save"):
        assert "an impossible value" in refused(f"--dp-audit-{option}=main")
    baseline(three, "linux/main").parent.mkdir()
    baseline(three, "linux/main").write_text("{}", encoding="utf-8")
    remedy = "Use an existing baseline (linux/main, main), or save one with"
    assert f"mian.json does not exist. {remedy}" in refused("--dp-audit-compare=mian")


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


def test_workers_compare_and_give_the_same(project):
    """What is left is what it is in one process, and what has disappeared fails the session, which is green."""
    project.makepyfile(WITH_WORKERS)
    run(project, "--dp-audit-save=main").assert_outcomes(passed=2)
    project.makepyfile(WITH_WORKERS.replace(SECOND, ""))
    run(project, "--dp-audit-compare=main", "--dp-audit-report=alone.json").assert_outcomes(passed=2)
    options = ("--dp-audit-runs=1_500", "--dp-audit-compare=main", "--dp-audit-report=spread.json")
    result = project.runpytest_inprocess("-n", "1", "-p", "no:hypothesispytest", *options)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "#2: the audit of baseline main is missing" in text_of(result)
    assert "compared with baseline main: 2 by counts" in text_of(result)
    assert "2 audits; probability of any false alarm" in text_of(result)
    assert load(project.path / "alone.json") == load(project.path / "spread.json")
    assert [entry.result.is_refuted for entry in load(project.path / "spread.json").entries] == [True, False]
