"""A test whose audit failed is never green, whatever becomes of the exception; expected refutations are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from dpaudit import load

from .test_plugin import _loaded, full_project, project, run, text_of
from .test_traps import RUN_TWICE

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

HEAD = """
import asyncio, concurrent.futures, contextlib, os, threading, unittest
import numpy as np
import pytest
from mechanisms import *

BAD = (bad, X, Y, PureDP(1.0))
Failed = pytest.fail.Exception

def audit(dp_audit, mechanism, x, y, claim, **options):
    return dp_audit(mechanism, x, y, claim=claim, bits=False, **options)

def constant(rows, size, rng): return np.full(size, 3.0)
def crash(rows, size, rng): raise KeyError("age")
"""
UNITTEST = """
class TestOne(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def keep(self, dp_audit): self.dp_audit = dp_audit
"""
LOST = """
def test_thread(dp_audit):
    def quietly():
        with contextlib.suppress(BaseException): audit(dp_audit, *BAD)
    thread = threading.Thread(target=quietly)
    thread.start()
    thread.join()

def test_inconclusive(dp_audit):
    with concurrent.futures.ThreadPoolExecutor() as pool: pool.submit(audit, dp_audit, constant, *BAD[1:])

def test_error(dp_audit):
    with concurrent.futures.ThreadPoolExecutor() as pool: pool.submit(audit, dp_audit, crash, *BAD[1:])

def test_task(dp_audit):
    async def main():
        await asyncio.gather(asyncio.to_thread(audit, dp_audit, *BAD), return_exceptions=True)
    asyncio.run(main())

def test_suppressed(dp_audit):
    with contextlib.suppress(BaseException): audit(dp_audit, *BAD)

def test_finally(dp_audit):
    try: audit(dp_audit, *BAD)
    finally: return

def test_replay(dp_audit):
    with contextlib.suppress(BaseException):
        dp_audit.replay(lambda rows, rng: rng.laplace(5.0 * len(rows)), [1, 1], [1], claim=PureDP(1.0))

def test_other_exception_expected(dp_audit):
    with contextlib.suppress(BaseException): audit(dp_audit, *BAD)
    with pytest.raises(ValueError): int("x")

def test_another_message_expected(dp_audit):
    with contextlib.suppress(BaseException), pytest.raises(Failed, match="nonsense"): audit(dp_audit, *BAD)

@pytest.mark.xfail(raises=ValueError)
def test_fails_otherwise(dp_audit):
    with contextlib.suppress(BaseException): audit(dp_audit, *BAD)

def test_skipped(dp_audit):
    try: audit(dp_audit, *BAD)
    except BaseException: pytest.skip("flaky")

@pytest.fixture
def made_before(dp_audit):
    with contextlib.suppress(BaseException): audit(dp_audit, *BAD)

def test_of_a_fixture(made_before): pass
"""
N_LOST = LOST.count("def test_")


def test_a_lost_failure_fails_the_test(project):
    project.makepyfile(test_lost=HEAD + LOST)
    result = run(project)
    result.assert_outcomes(failed=N_LOST)
    assert text_of(result).count("\nthe test lost the failure of its audit") == N_LOST
    assert "WARNING the test lost" not in text_of(result)


AFTERWARDS = """
@pytest.fixture
def made_later():
    held = []
    yield held
    with contextlib.suppress(BaseException): audit(held[0], *BAD)

def test_in_a_teardown(made_later, dp_audit):
    audit(dp_audit, good, *BAD[1:])
    made_later.append(dp_audit)

def test_outlasted(dp_audit):
    audit(dp_audit, good, *BAD[1:])
    go = threading.Event()
    def waits(rows, size, rng):
        go.wait()
        return good(rows, size, rng)
    threading.Thread(target=lambda: audit(dp_audit, waits, *BAD[1:])).start()
    threading.Timer(1.0, go.set).start()
"""


def test_what_happens_after_the_test_is_an_error(project):
    project.makepyfile(test_after=HEAD + AFTERWARDS)
    result = run(project)
    result.assert_outcomes(passed=2, errors=2)
    assert re.search(r"test_outlasted #\d{7}: the test ended before its audit", text_of(result))


def test_a_failure_that_no_test_shows_fails_the_session(project):
    text = """
        HELD = []

        def test_one(dp_audit):
            audit(dp_audit, good, *BAD[1:])
            HELD.append(dp_audit)

        def test_two():
            with contextlib.suppress(BaseException): audit(HELD[0], *BAD)
    """
    project.makepyfile(test_held=HEAD + "\n".join(line.removeprefix("        ") for line in text.splitlines()))
    result = run(project)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "WARNING the test lost the failure of its audit" in text_of(result)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")
def test_a_failure_in_a_child_process_is_found(project):
    text = """
def test_it(dp_audit):
    audit(dp_audit, good, *BAD[1:])
    if os.fork() == 0:
        with contextlib.suppress(BaseException): audit(dp_audit, *BAD)
        os._exit(0)
    os.wait()
"""
    project.makepyfile(test_child=HEAD + text)
    run(project, "-W", "ignore::DeprecationWarning").assert_outcomes(failed=1)


def test_unittest(project):
    methods = """
    def test_lost(self):
        try: audit(self.dp_audit, *BAD)
        except BaseException: pass
    def test_skipped(self):
        try: audit(self.dp_audit, *BAD)
        except BaseException: self.skipTest("flaky")
    def test_expected(self):
        with self.assertRaisesRegex(Failed, "REFUTED"): audit(self.dp_audit, *BAD)
"""
    project.makepyfile(test_unittest=HEAD + UNITTEST + methods)
    run(project).assert_outcomes(failed=1, passed=1, skipped=1, errors=1)


EXPECTED = """
def test_raises(dp_audit):
    with pytest.raises(Failed, match="REFUTED"): audit(dp_audit, *BAD)

def test_raises_in_a_thread(dp_audit):
    with concurrent.futures.ThreadPoolExecutor() as pool, pytest.raises(Failed):
        pool.submit(audit, dp_audit, *BAD).result()

def test_cause(dp_audit):
    with pytest.raises(ValueError):
        try: audit(dp_audit, *BAD)
        except BaseException as error: raise ValueError from error

def test_option(dp_audit):
    assert audit(dp_audit, *BAD, expect="refuted").is_refuted

@pytest.mark.dp_audit(expect="inconclusive")
def test_marker(dp_audit):
    audit(dp_audit, constant, *BAD[1:])

@pytest.mark.xfail(strict=True)
def test_known(dp_audit):
    audit(dp_audit, *BAD)

def test_without_a_library(dp_audit):
    try: audit(dp_audit, crash, *BAD[1:])
    except Exception: pytest.skip("not installed")
"""


def test_an_expected_refutation_is_green(project):
    project.makepyfile(test_expected=HEAD + EXPECTED)
    result = run(project, "--dp-audit-report=r.json")
    result.assert_outcomes(passed=5, xfailed=1, skipped=1)
    expected = {
        re.sub(r" #\d{7}$", "", entry.name.partition("::")[2]): entry.expected
        for entry in load(project.path / "r.json").entries
    }
    assert {name: each and each.value for name, each in expected.items()} == {
        "test_raises": "refuted",
        "test_raises_in_a_thread": "refuted",
        "test_cause": "refuted",
        "test_option": "refuted",
        "test_marker": "inconclusive",
        "test_known": None,
    }
    assert "✖ refuted, as expected" in text_of(result)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('good, *BAD[1:], expect="refuted"', "expected: refuted, and the audit came out otherwise"),
        ('constant, *BAD[1:], expect="refuted"', "INCONCLUSIVE"),
        ('*BAD, expect="not refuted"', "REFUTED"),
        ('*BAD, expect="wrong"', "expect='wrong' is not a verdict; use 'refuted', 'not refuted', 'inconclusive'"),
    ],
)
def test_another_verdict_than_the_expected_one_fails(project, call, words):
    project.makepyfile(test_it=f"{HEAD}\ndef test_it(dp_audit): audit(dp_audit, {call})\n")
    result = run(project)
    result.assert_outcomes(failed=1)
    assert words in text_of(result)


def test_a_rerun_with_fewer_audits_fails(project):
    text = """
CALLS = []

def test_fewer(dp_audit):
    CALLS.append(1)
    audit(dp_audit, good, *BAD[1:])
    if len(CALLS) == 1: audit(dp_audit, *BAD)

def test_expected(dp_audit):
    CALLS.append(1)
    with pytest.raises(Failed): audit(dp_audit, *BAD)
    assert len(CALLS) == 4
"""
    project.makepyfile(test_rerun=HEAD + text)
    project.makeconftest(RUN_TWICE)
    run(project).assert_outcomes(failed=1, passed=1)


CRASH = """
def test_1_refuted(dp_audit): audit(dp_audit, *BAD)
def test_2_expected(dp_audit):
    with pytest.raises(Failed): audit(dp_audit, *BAD)
def test_3_crashes_later(dp_audit):
    audit(dp_audit, *BAD, expect="refuted")
    os._exit(3)
def test_4_crashes_before(dp_audit): os._exit(3)
"""


def test_audits_of_a_worker_that_crashes_are_in_the_report(project):
    project.makepyfile(test_crash=HEAD + CRASH)
    result = project.runpytest_subprocess("-n1", "-p", "no:hypothesispytest", "--dp-audit-report=r.json")
    result.assert_outcomes(passed=1, failed=3)
    suite = load(project.path / "r.json")
    names = [entry.name.partition("::")[2] for entry in suite.entries]
    assert names == ["test_1_refuted", "test_2_expected", "test_3_crashes_later"]
    assert [entry.expected is None for entry in suite.entries] == [True, False, False]
    assert suite.environment == {"missing": ["test_crash.py::test_4_crashes_before"]}
    assert "1 planned without a finished audit: test_crash.py::test_4_crashes_before" in text_of(result)
    assert "WARNING the test lost" not in text_of(result)


def test_planned_audits_without_a_result_are_named_in_every_report(project):
    text = "def test_before(dp_audit): assert False\ndef test_skipped(dp_audit): pytest.skip()\n"
    project.makepyfile(test_it=HEAD + text)
    run(project, "--dp-audit-report=r.json")
    named = "test_it.py::test_before"
    for options, name in ((["--markdown"], "report.md"), (["--junit"], "junit.xml"), ([], "report.html")):
        command = [sys.executable, "-m", "dpaudit", "report", "r.json", *options, "--out", "out"]
        subprocess.run(command, check=True, capture_output=True, cwd=project.path)
        shown = (project.path / "out" / name).read_text(encoding="utf-8").replace("\\_", "_")
        assert named in shown
        assert "test_skipped" not in shown
    assert json.loads((project.path / "r.json").read_text())["environment"]["suite"] == {"missing": [named]}


@pytest.mark.parametrize("suffix", [".json", ".md", ".html"])
@pytest.mark.parametrize("place", ["file/r", "folder"])
def test_a_report_that_cannot_be_written_costs_the_report_alone(project, suffix, place):
    (project.path / "file").touch()
    (project.path / f"folder{suffix}").mkdir()
    project.makepyfile(test_it=HEAD + "def test_it(dp_audit): audit(dp_audit, *BAD)\n")
    result = run(project, f"--dp-audit-report={place}{suffix}", "--dp-audit-save=file/main", "--dp-audit-scripts=file")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "REFUTED" in text_of(result)
    assert f"WARNING --dp-audit-report={project.path / place}{suffix} not written" in text_of(result)


ROWS = """
from dpaudit import Local, Values
A, B = "private A", "private B"
PAIRS = [([A, B], [A]), ([A, B, B], [A, B])]

def fails(rows, size, rng):
    if len(rows) > 2: raise KeyError(str(rows))
    return good(rows, size, rng)

def local(value, size, rng): return (value == A) + rng.laplace(scale=0.5, size=size)
def search(dp_audit, mechanism, space, **more):
    options = {"search_runs": 400, "adjacency": AddRemove(), **more}
    dp_audit(mechanism, neighbours=space, claim=PureDP(1.0), bits=False, **options)

def test_explicit(dp_audit): audit(dp_audit, bad, *PAIRS[0], PureDP(1.0))
def test_listed(dp_audit): search(dp_audit, bad, PAIRS)
def test_failing(dp_audit): search(dp_audit, fails, PAIRS)
def test_drawn(dp_audit): search(dp_audit, bad, lambda rng: PAIRS[rng.integers(2)])
def test_values(dp_audit): search(dp_audit, local, Values((A, B)), adjacency=Local())
def test_rows(dp_audit): search(dp_audit, fails, Rows(values=(A, B)))

@pytest.mark.dp_audit(keep_datasets=True)
def test_kept(dp_audit): audit(dp_audit, bad, ["asked for"], [], PureDP(1.0))
"""


def test_rows_are_shown_if_asked_for(project):
    project.makepyfile(test_rows=HEAD + ROWS)
    options = ["--dp-audit-report=r.json", "--dp-audit-save=main", "--junitxml=junit.xml", "--tb=short"]
    run(project, *options)
    assert len(load(project.path / "r.json").entries) == 7
    for name in ("r.json", "dp_audit_baselines/main.json", "junit.xml"):
        text = (project.path / name).read_text(encoding="utf-8")
        assert "private" not in text, name
        assert "asked for" in text, name
