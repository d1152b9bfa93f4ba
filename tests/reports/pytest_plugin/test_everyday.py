"""Everyday sessions: short tracebacks, the line of settings, and draws that an interrupted session leaves."""

from __future__ import annotations

import shutil
import signal
import sys

import pytest

from .test_plugin import _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

ERRORS = """
from mechanisms import *
from dpaudit import check

def crash(rows, rng):
    raise KeyError("age")

def test_misspelt(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), run=700)

def test_crash(dp_audit):
    dp_audit(crash, X, Y, claim=PureDP(1.0))

def test_without_the_fixture():
    check(good, X, Y, claim=PureDP(0.1), runs=4_000, jobs=1).raise_if_refuted()

def test_of_the_users_own():
    assert False, "as ever"
"""


def test_failures_end_in_the_lines_of_the_test(project):
    project.makepyfile(test_errors=ERRORS)
    shown = text_of(run(project))
    for line in (
        "E       dpaudit.audit.errors.UnknownOptionError: run is not an option of dp_audit",
        "E       dpaudit.audit.errors.MechanismError: crash raised in every one of",
        "E       KeyError: 'age'",
        "E       dpaudit.audit.errors.RefutedError: REFUTED: epsilon >= ",
        "E       AssertionError: as ever",
        "dp_audit = <dp_audit of test_errors.py::test_crash>",
    ):
        assert line in shown, line
    assert "audit_pair" not in shown
    assert "audit_pair" in text_of(run(project, "--full-trace"))


def test_the_line_of_settings(project):
    project.makepyfile(test_one=ERRORS)
    assert "error budget 0.01; at most 700 runs, seed 3" in text_of(
        run(project, "--dp-audit-runs=700", "--dp-audit-seed=3")
    )
    options = ["--dp-audit-resolution=0.5", "--dp-audit-seconds=60"]
    assert "; runs for resolution 0.5, 60 s each, seed 0" in text_of(run(project, *options))


INTERRUPTED = """
import os, pathlib, signal
from mechanisms import *

def slow(rows, size, rng):
    with open("calls.txt", "a") as calls:
        calls.write("call\\n")
    if pathlib.Path("kill").exists() and len(open("calls.txt").readlines()) > 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return len(rows) + rng.laplace(size=size)

def test_slow(dp_audit):
    result = dp_audit(slow, X, Y, claim=PureDP(1.0), runs=1_000)
    pathlib.Path("bound.txt").write_text(repr(result.bound))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the session is killed by a signal of POSIX")
def test_a_killed_session_is_continued(full_project):
    """By another with the same code alone; one with other code leaves the draws of the former."""
    project = full_project
    project.makepyfile(test_slow=INTERRUPTED)
    calls, kept, of_former_code = (project.path / name for name in ("calls.txt", "kept", "former"))

    def session(start, store):
        calls.unlink(missing_ok=True)
        done = start("-p", "no:cacheprovider", "-p", "no:hypothesispytest", f"--dp-audit-store={store.name}")
        sys.modules.pop("mechanisms", None)
        return done.ret, len(calls.read_text().splitlines()), text_of(done)

    (project.path / "kill").touch()
    status, killed_after, _ = session(project.runpytest_subprocess, kept)
    assert status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    (folder,) = kept.iterdir()
    assert folder.name.startswith("test-slow-py--test-slow-")
    (project.path / "kill").unlink()
    shutil.copytree(kept, of_former_code)
    status, rest, shown = session(project.runpytest_inprocess, kept)
    assert status == pytest.ExitCode.OK
    assert "note test_slow.py::test_slow: continued with the draws of an earlier session" in shown
    bound = (project.path / "bound.txt").read_text()
    assert not list(kept.iterdir()), "nothing is left of a finished audit"
    status, whole, shown = session(project.runpytest_inprocess, kept)
    assert "earlier session" not in shown
    assert (project.path / "bound.txt").read_text() == bound
    assert rest < whole <= killed_after + rest
    project.makepyfile(test_slow=INTERRUPTED.replace("return len(rows)", "return 0.0 + len(rows)"))
    status, _, shown = session(project.runpytest_inprocess, of_former_code)
    assert status == pytest.ExitCode.OK
    assert "test_slow: made anew, because the code has changed since the kept draws" in shown
    assert not list(of_former_code.iterdir())


CTRL_C = """
import pathlib, signal
from mechanisms import *

def slow(rows, size, rng):
    with open("calls.txt", "a") as calls:
        calls.write("c")
    if not pathlib.Path("patient").exists() and len(pathlib.Path("calls.txt").read_text()) > 8:
        signal.raise_signal(signal.SIGINT)
    return len(rows) + rng.laplace(size=size)

def test_slow(dp_audit):
    dp_audit(slow, X, Y, claim=PureDP(1.0), runs=20_000)
"""


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where the tests were started in the background or by nohup, which ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_says_how_to_continue(project, interruptible):
    """With the folder in the configuration too, where it is relative to the root."""
    project.makepyfile(test_slow=CTRL_C)
    options = ("-p", "no:hypothesispytest")
    result = project.runpytest_inprocess(*options, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "test_slow.py::test_slow: interrupted; with --dp-audit-store=DIR, the next session" in text_of(result)
    project.makeini("[pytest]\ndp_audit_store = kept\n")
    (project.path / "calls.txt").unlink()
    shown = text_of(project.runpytest_inprocess(*options, no_reraise_ctrlc=True))
    assert f"test_slow.py::test_slow: interrupted; its draws are kept in {project.path / 'kept'}, and the same" in shown
    assert len(list((project.path / "kept").iterdir())) == 1
    (project.path / "patient").touch()
    shown = text_of(project.runpytest_inprocess(*options))
    assert "test_slow: continued with the draws of an earlier session" in shown
    assert "interrupted" not in shown


def test_nothing_is_kept_of_audits_that_cannot_be(project):
    project.makepyfile(test_errors=ERRORS)
    run(project, "--dp-audit-store=kept")
    assert not list((project.path / "kept").iterdir())


def test_a_doubtful_pair_is_told_in_the_summary(project):
    test = "from mechanisms import *\n\ndef test_it(dp_audit):\n    dp_audit(good, [1, 2, 3], [1], claim=PureDP(9.0))\n"
    project.makepyfile(test_doubt=test)
    assert "WARNING test_doubt.py::test_it: x and y differ in 2 rows" in text_of(run(project))
