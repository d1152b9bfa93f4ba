"""Audits of one test in threads and child processes: one error budget, and names that do not depend on their order."""

from __future__ import annotations

import json
import os

import pytest

from dpaudit import load
from dpaudit.reports.pytest_plugin.session import AuditSession, Settings

from .test_lost_failures import HEAD
from .test_plugin import _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")

CHILDREN = """
def in_child(work):
    child = os.fork()
    if child == 0:
        try: work()
        except BaseException as error: Path("said").open("a").write(str(error) + "\\n")
        finally: os._exit(0)
    return child

def test_it(dp_audit):
    children = [in_child(lambda: audit(dp_audit, good, *BAD[1:], alpha=0.004)) for _ in range(3)]
    for child in children: os.waitpid(child, 0)
    audit(dp_audit, good, *BAD[1:], alpha=1e-5)
"""


@forks
def test_forked_audits_share_the_error_budget(project):
    """Two of three audits at 0.004 fit into 0.01; the third is refused, and the summary counts all alpha."""
    project.makepyfile(test_children="from pathlib import Path\n" + HEAD + CHILDREN)
    result = run(project, "-W", "ignore::DeprecationWarning")
    result.assert_outcomes(failed=1)  # the child whose audit was refused
    assert (project.path / "said").read_text().count("further alpha of 0.004") == 1
    assert "probability of any false alarm at most 0.00801, error budget 0.01" in text_of(result)


@forks
def test_a_line_that_a_child_appends_later_is_read_and_no_line_is_read_twice(tmp_path):
    session = AuditSession(settings=Settings(), baselines=tmp_path, journal=tmp_path)
    session.charge("t", 0.001)
    file, line = tmp_path / "other.jsonl", json.dumps({"charges": {"other": {"t": [0.002, 1]}}, "finished": ["a"]})
    file.write_text(f"{line}\n{line[:20]}")
    session.read_journal()
    assert (session.spent, session.finished) == ({"t": 0.003}, {"a"})
    session.finished.clear()
    with file.open("a") as opened:
        opened.write(line[20:].replace('"a"', '"b"') + "\n")
    session.read_journal()
    assert (session.spent, session.finished) == ({"t": 0.003}, {"b"})
    session.close_journal()
    assert not tmp_path.exists()


THREADS = """
import time
from dpaudit import PureDP

def scaled(scale):
    def noisy(rows, size, rng): return len(rows) + rng.laplace(scale=scale, size=size)
    return noisy

def test_it(dp_audit):
    def one(late, scale, x):
        time.sleep(late)
        audit(dp_audit, scaled(scale), x, x[1:], PureDP(9.0))
    jobs = [(1.0, [1]), (1.5, [1]), (1.0, [1, 1])]
    delays = [0.0, 0.2, 0.4][:: int(os.environ.get("STEP", 1))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(one, late, *job) for late, job in zip(delays, jobs)]: done.result()
"""


def test_the_names_of_audits_in_threads_do_not_depend_on_their_order(project, monkeypatch):
    project.makepyfile(test_threads=HEAD + THREADS)
    found = []
    for step in ("1", "-1"):
        monkeypatch.setenv("STEP", step)
        run(project, f"--dp-audit-report={step}.json").assert_outcomes(passed=1)
        found.append({entry.name: entry.result.counts for entry in load(project.path / f"{step}.json").entries})
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_audits_in_threads_with_one_description_are_named_in_a_note(project):
    text = THREADS.replace("(1.5, [1])", "(1.0, [1])")
    project.makepyfile(test_threads=HEAD + text)
    result = run(project)
    result.assert_outcomes(passed=1)
    assert text_of(result).count("with this description") == 1


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        ("dp_audit(*BAD[:3], claim=BAD[3], bits=False, expect=Verdict.REFUTED)", "passed", ""),
        (
            "dp_audit.check(check_equivalence, good, bad, [1], runs=20_000, margin=0.2, expect=Equivalence.DIFFERENT)",
            "passed",
            "",
        ),
        ("dp_audit(*BAD[:3], claim=BAD[3], expects='refuted')", "failed", "did you mean 'expect'?"),
        ("dp_audit(good, neighbors=X, claim=BAD[3])", "failed", "did you mean 'neighbours'?"),
        ("dp_audit.check(check_equivalence, good, bad, X, expects='refuted')", "failed", "did you mean 'expect'?"),
        ("dp_audit(*BAD[:3], claim=BAD[3], expect=object())", "failed", "is not a verdict; use 'refuted'"),
    ],
)
def test_expected_verdicts_are_verdicts_or_words_and_typos_are_named(project, text, outcome, said):
    imports = "from dpaudit import Verdict, Equivalence, check_equivalence\n"
    project.makepyfile(test_it=f"{imports}{HEAD}\ndef test_it(dp_audit): {text}\n")
    result = run(project, "--dp-audit-budget=0.1")
    result.assert_outcomes(**{outcome: 1})
    assert said in text_of(result)


def test_a_typo_in_a_marker_is_an_error_of_a_check_too(project):
    text = (
        '@pytest.mark.dp_audit(expects="refuted")\ndef test_it(dp_audit): dp_audit.check(check_noise, good, X, None)\n'
    )
    project.makepyfile(test_it=f"from dpaudit import check_noise\n{HEAD}\n{text}")
    result = run(project)
    result.assert_outcomes(failed=1)
    assert "did you mean 'expect'?" in text_of(result)
