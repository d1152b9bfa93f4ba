"""Everyday sessions: short tracebacks, interrupted sessions, training runs, sensitivities and replays in tests."""

import re
import shutil
import sys
from dataclasses import replace

import pytest

from dpaudit import load
from dpaudit.reports import html, markdown

from .sessions import HEAD, has_outcomes, run, text_of

pytest_plugins = ["pytester"]
ERRORS = """
from functools import partial
from dpaudit import check
from mechanisms import *

def scaled(scale, rng):
    return rng.laplace(scale=scale)

def crash(rows, rng):
    raise KeyError("age")

def test_misspelt(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), run=700)

def test_crash(dp_audit):
    dp_audit(crash, X, Y, claim=PureDP(1.0))

def test_doubt(dp_audit):
    dp_audit(good, [1, 2, 3], [1], claim=PureDP(9.0), sequential=False, runs=700)

def test_of_the_users_own():
    assert False, "as ever"

def test_claim(dp_audit):
    dp_audit(scaled, [1, 1], [1])

def test_binding(dp_audit):
    dp_audit(partial(scaled, 1.0, rng=3), [1, 1], [1], claim=1.0)

def test_without_the_fixture():
    check(crash, [1, 1], [1], claim=1.0, runs=1_000, jobs=1)
"""


def test_failures_end_in_the_lines_of_the_test(project):
    """Nothing is kept of audits that cannot be continued, and a pair in doubt is named in the summary."""
    project.makepyfile(test_errors=ERRORS)
    shown = text_of(run(project, "--dp-audit-store=kept"))
    for line in (
        "E       dpaudit.audit.errors.UnknownOptionError: run is not an option of dp_audit",
        "E       dpaudit.audit.errors.MechanismError: crash raised in every one of",
        "E       KeyError: 'age'",
        "E       AssertionError: as ever",
        "dp_audit = <dp_audit of test_errors.py::test_crash>",
        "WARNING test_errors.py::test_doubt: x and y differ in 2 rows",
        "no claim given, and scaled has no attribute claim",
        "raise KeyError",
    ):
        assert line in shown, line
    assert not list((project.path / "kept").iterdir())
    for internal in ("audit_pair", "_own_claim", "refuse_if_all_raised", "plan.sampler", "audit/"):
        assert internal not in shown
    assert "audit_pair" in text_of(run(project, "--full-trace", "-k", "crash"))


CTRL_C = """
import pathlib, signal
from mechanisms import *

def slow(rows, size, rng):
    with open("calls.txt", "a") as calls:
        calls.write("c")
    if not pathlib.Path("patient").exists() and len(pathlib.Path("calls.txt").read_text()) > 9:
        signal.raise_signal(signal.SIGINT)
    return len(rows) + rng.laplace(size=size)

def test_slow(dp_audit):
    result = dp_audit(slow, X, Y, claim=PureDP(1.0), runs=1_000)
    pathlib.Path("bound.txt").write_text(repr(result.bound))
"""


def test_an_interrupted_session_is_continued(project, interruptible):
    """By another with the same code alone; one with other code leaves the former draws."""
    project.makepyfile(test_slow=CTRL_C)
    kept, of_former_code, calls = (project.path / name for name in ("kept", "former", "calls.txt"))

    def session(status):
        calls.unlink(missing_ok=True)
        result = project.runpytest_inprocess("-p", "no:hypothesispytest", no_reraise_ctrlc=True)
        sys.modules.pop("mechanisms", None)
        assert result.ret == status
        return text_of(result), len(calls.read_text())

    shown, _ = session(pytest.ExitCode.INTERRUPTED)
    assert "test_slow.py::test_slow: interrupted; with --dp-audit-store=DIR, the next session" in shown
    project.makeini("[pytest]\ndp_audit_store = kept\n")
    shown, _ = session(pytest.ExitCode.INTERRUPTED)
    assert f"test_slow.py::test_slow: interrupted; its draws are kept in {kept}, and the same" in shown
    (folder,) = kept.iterdir()
    assert folder.name.startswith("test-slow-py--test-slow-")
    shutil.copytree(kept, of_former_code)
    (project.path / "patient").touch()
    shown, rest = session(pytest.ExitCode.OK)
    assert "note test_slow.py::test_slow: continued with the draws of an earlier session" in shown
    bound = (project.path / "bound.txt").read_text()
    assert not list(kept.iterdir()), "nothing is left of a finished audit"
    shown, whole = session(pytest.ExitCode.OK)
    assert "earlier session" not in shown
    assert (project.path / "bound.txt").read_text() == bound
    assert rest < whole
    project.makeini("[pytest]\ndp_audit_store = former\n")
    project.makepyfile(test_slow=CTRL_C.replace("return len(rows)", "return 0.0 + len(rows)"))
    shown, _ = session(pytest.ExitCode.OK)
    assert "test_slow: made anew, because the code has changed since the kept draws" in shown
    assert not list(of_former_code.iterdir())


OF_CHECKS = f"""{HEAD}
from dpaudit.training import check_step

INCLUDED = np.random.default_rng(0).random(600) < 0.5
SCORES = np.random.default_rng(1).normal(size=600)
WIDE = Rows(low=-5.0, high=5.0, finite=True)
REPLACED = {{"adjacency": "replace", "evaluations": 50}}
GRADIENTS = np.random.default_rng(1).normal(size=(6, 40))

def clipped_sum(rows):
    return sum(min(max(row, -1.0), 1.0) for row in rows)

def step(gradients, rng):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients / np.maximum(norms, 1.0)).sum(axis=0) + rng.normal(size=40)

def step_of(dp_audit, mu):
    dp_audit.check(check_step, step, GRADIENTS, claim=GaussianDP(mu), ignore="not-finite", tolerance=0.1)

def too_little(rows, rng):
    return rng.laplace(sum(rows), 0.5)

def respond(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit

"""
FREE = "@pytest.mark.dp_audit(audits=0)\n"
CHECKS = {
    "training": (
        """
        result = dp_audit.canaries(SCORES, INCLUDED, claim=PureDP(1.0))
        assert result.alpha == 1e-5
        assert result.seed > 0
        """,
        "PASSED", "600 canaries",
    ),
    "leaky_training": (
        "dp_audit.canaries(SCORES + 9.0 * INCLUDED, INCLUDED, claim=PureDP(1.0), name='forgetful training')", "FAILED",
        "REFUTED  forgetful training: epsilon >= ", "  repeat     pytest test_rows.py::test_leaky_training",
        "  meaning    the claim is refuted: the training reveals more of its canaries than claimed",
    ),
    "few": (
        "dp_audit.canaries(SCORES[:20], INCLUDED[:20], claim=PureDP(3.0))", "FAILED",
        "  meaning    the audit is inconclusive",
    ),
    "sensitivity": (
        f"{FREE}assert dp_audit.check(check_sensitivity, clipped_sum, WIDE, bound=2.0, **REPLACED).seed > 7", "PASSED",
    ),
    "large_sensitivity": (
        f"{FREE}dp_audit.check(check_sensitivity, clipped_sum, WIDE, bound=1.0, seed=7, **REPLACED)", "FAILED",
        "REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-5.0], y = [5.0]", "  seed    7",
    ),
    "step": ("step_of(dp_audit, 1.0)", "PASSED"),
    "leaky_step": ("step_of(dp_audit, 0.5)", "FAILED", "REFUTED  step: mu >= ", "isolation"),
    "versions": (
        """
        @pytest.mark.dp_audit(audits=3)
        dp_audit.check(check_equivalence, good, good, X, margin=0.3, runs=2_000)
        dp_audit.check(check_equivalence, good, bad, X, margin=0.05, runs=1_000, expect="refuted")
        dp_audit.check(check_equivalence, good, bad, X, margin=0.06, runs=1_000)
        """,
        "FAILED", "  check   test_rows.py::test_versions #3\n", "  repeat  pytest test_rows.py::test_versions",
    ),
    "replayed": (f"{FREE}dp_audit.replay(too_little, [1.0, 1.0], [1.0], claim=1.0)", "FAILED"),
    "unseen": (
        f"{FREE}dp_audit.replay(lambda rows: len(rows), [1], [1], claim=1.0)", "PASSED",
        "UserWarning: replay of lambda at test_rows.py:",
    ),
    "verified": ("assert dp_audit(respond, 0, 1, claim=1.1, exact=True).verdict.value == 'verified'", "PASSED"),
    "exceeded": (
        "dp_audit(respond, neighbours=Values((0, 1)), adjacency='local', claim=1.0, exact=True)", "FAILED",
        "REFUTED  respond: 1-DP is exceeded by 0.0704 in delta (certain)",
    ),
    "foreseen": (
        "@pytest.mark.dp_audit(exact=True, expect='refuted')\ndp_audit(respond, 0, 1, claim=1.0)", "PASSED",
    ),
    "undetermined": (
        "dp_audit(respond, 0, 1, claim=1.0, exact=True, expect='undetermined')", "FAILED",
        "expected: inconclusive, and the audit came out otherwise",
    ),
}  # fmt: skip
VERDICTS = {
    "step": "■ not refuted", "sensitivity": "■ not refuted", "versions": "■ equivalent within the margin",
    "verified": "■ verified", "leaky_step": "✖ refuted", "large_sensitivity": "✖ refuted", "replayed": "✖ excess",
    "unseen": "◆ undetermined", "versions #2": "✖ different by more than the margin, as expected",
    "versions #3": "✖ different by more than the margin", "exceeded": "✖ refuted", "undetermined": "✖ refuted",
    "foreseen": "✖ refuted, as expected",
}  # fmt: skip


def test_checks_of_every_kind_have_a_message_a_row_and_a_card(project):
    """Training runs, sensitivities, steps, versions, replays and exact audits; those without alpha cost none."""
    options = ("--dp-audit-report=audits.json", "--dp-audit-save=main", "--dp-audit-budget=1.1e-4", "-Wdefault")
    shown = has_outcomes(project, CHECKS, *options, head=OF_CHECKS)
    assert "8 audits; probability of any false alarm at most 8e-05, error budget 0.00011" in shown
    rows = [re.split(r"\s{2,}", line) for line in shown.splitlines() if re.match(r"test_rows\.py::.*  [■◆✖] ", line)]
    verdicts = {row[0].removeprefix("test_rows.py::test_"): row[-1] for row in rows}
    assert {name: verdicts[name] for name in VERDICTS} == VERDICTS
    marks = [verdict[0] for verdict in verdicts.values()]
    assert marks == sorted(marks, key="■◆✖".index), "what is refuted stands next to the end of the output"
    suite = load(project.path / "audits.json")
    entries = {entry.name.partition("::test_")[2]: entry.result for entry in suite.entries}
    assert sorted(entries) == ["few", "leaky_training", "training"]
    assert entries["training"].sketch is not None
    assert all(entry.result.sketch is None for entry in load(project.path / "dp_audit_baselines/main.json").entries)
    checks = {check.name.partition("::test_")[2]: check for check in suite.checks}
    assert checks.keys() == VERDICTS.keys()
    told = {name: (checks[name].kind, checks[name].claim, checks[name].found) for name in ("replayed", "sensitivity")}
    assert told == {
        "replayed": ("replay", "1-DP", "loss at most 2"),
        "sensitivity": ("sensitivity", "l1 sensitivity 2", "change 2"),
    }
    assert [checks[name].kind for name in ("step", "versions", "verified")] == ["step", "equivalence", "exact"]
    page, text = html(suite), markdown(suite)
    assert page.count('<details class="audit" id="check-') == len(VERDICTS)
    assert page.count("Largest certain loss</th>") == 4
    assert '<span aria-hidden="true">✖</span> excess</span>' in page
    assert "<code>return rng.laplace(sum(rows), 0.5)</code>" in page
    assert "- **test\\_rows.py::test\\_replayed** (replay): ✖ excess; 1-DP; loss at most 2\n" in text
    alone = replace(suite, entries=())
    assert "0 audits" not in html(alone) + markdown(alone)


REPLAYED = """
import numpy as np
import pytest


def noisy_mean(rows, rng):
    count = rng.laplace(len(rows), 2.0)
    total = rng.laplace(np.clip(rows, 0, 5).sum(), 2.0)  # the noise is for rows in [0, 1]
    return {"count": count, "total": total}

def outside(rows, size, rng):
    return np.frombuffer(np.random.SeedSequence().generate_state(size).tobytes(), np.uint32) % 2 + len(rows)

@pytest.mark.dp_audit(audits=0)
def test_replayed(dp_audit):
    assert dp_audit.replay(noisy_mean, [0.5, 1.0], [0.5], claim=1.0).loss.epsilon == 1.0
    dp_audit.replay(noisy_mean, [0.5, 4.0], [0.5], claim=1.0, seed=7)

def test_audited(dp_audit):
    dp_audit(noisy_mean, [5.0], [], claim=1.0, output="total", runs=600, sequential=False)

def test_not_explained(dp_audit):
    dp_audit(outside, [1], [], claim=1.0, runs=600, sequential=False)
"""
LINE = "test_lines.py:7 in noisy_mean"
SOURCE = "total = rng.laplace(np.clip(rows, 0, 5).sum(), 2.0)  # the noise is for rows in [0, 1]"


def messages(session):
    """The failure messages; with CI=true pytest repeats them in its summary."""
    return "\n".join(line.removeprefix("E") for line in text_of(session).splitlines() if line.startswith("E "))


EXPLAINED = """
import os
import pytest

def vectorised(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.5, size=size)

def stops(rows, rng, made=[]):
    made.append(0)
    if len(made) > 1_300:
        pytest.skip("used up")
    return len(rows) + rng.laplace(scale=0.5)

def breaks(rows, rng):
    if type(rng).__module__.startswith("dpaudit"):
        raise SystemExit("not recorded")
    return len(rows) + rng.laplace(scale=0.5)

def slow(rows, rng):
    if type(rng).__module__.startswith("dpaudit"):
        import dpaudit.audit.replay.recorded_run as recorded
        recorded.now = lambda: 1e9
    return len(rows) + rng.laplace(scale=0.5)

def outside(rows):
    return int.from_bytes(os.urandom(1), "big") % 2 + len(rows)

@pytest.mark.parametrize("mechanism", [vectorised, stops, breaks, outside, slow])
def test_it(dp_audit, mechanism):
    dp_audit(mechanism, [1], [], claim=1.0, runs=600, sequential=False, alpha=1e-6)

@pytest.mark.parametrize("options", [{"jobs": 2}, {"keep_datasets": False}, {"expect": "refuted"}])
def test_not_replayed(dp_audit, options):
    dp_audit(vectorised, [1], [], claim=1.0, runs=600, sequential=False, alpha=1e-6, **options)
"""


def test_a_failure_explains_itself_if_a_replay_takes_no_longer_than_the_audit(project, monkeypatch):
    project.makepyfile(test_explained=EXPLAINED)
    monkeypatch.setattr("dpaudit.audit.replay.recorded_run.now", lambda: 0.0)
    found = run(project)
    found.assert_outcomes(failed=7, passed=1)
    shown = re.sub(r"finished in \S+ s", "finished in time", messages(found))
    assert re.findall("^ +replay +(.*)$", shown, re.MULTILINE) == [
        "EXCESS  vectorised: worst-case loss 2, claimed 1 (one path)",
        "not made: Skipped: used up",
        "not made: SystemExit: not recorded",
        "UNDETERMINED: neither an excess nor a bound in 0 calls, claimed 1-DP; unrecorded: entropy of the operating "
        "system is read",
        "not finished in time; --dp-audit-explain waits for it",
        "not made with jobs=2; --dp-audit-explain replays the pair, and names the line",
        "not made with keep_datasets=False; --dp-audit-explain replays the pair, and names the line",
    ]
    assert messages(found).count("next: replay(") == 5  # not where a replay is told already
    assert messages(found).count("REFUTED") == 7


def test_a_failure_names_the_line_and_a_report_has_the_table_of_calls(project):
    project.makepyfile(test_lines=REPLAYED)
    found = run(project, "--dp-audit-explain", "--dp-audit-budget=3e-5", "--dp-audit-report=audits.json")
    found.assert_outcomes(failed=3)
    shown = messages(found)
    line = f"{LINE}: Generator.laplace: its location moved by "
    assert "EXCESS  noisy_mean: worst-case loss 2, claimed 1 (one path)" in shown
    assert 'EXCESS  noisy_mean, output "total": worst-case loss 2.5, claimed 1 (one path)' in shown
    assert f"  {line}4, with laplace noise of scale 2\n" in shown
    assert shown.count(f"{line}5, with laplace noise of scale 2\n") == 1
    assert "next: scale 8 is needed for 1-DP, as the other call loses 0.5" in shown
    assert shown.count(SOURCE) == 2
    assert "  seed    7" in shown
    assert "replay     UNDETERMINED: neither an excess nor a bound" in shown, "what is not recorded is said"
    suite = load(project.path / "audits.json")
    page, text = html(suite), markdown(suite)
    assert page.count("<h4>Replay</h4>") == 2
    assert f"<bdi>{LINE}</bdi><br><code>{SOURCE}</code>" in page
    assert 'class="unmet"><bdi>Generator.laplace: its location moved by 5' in page
    assert "\n    - test\\_lines.py:7 in noisy\\_mean: Generator.laplace: its location moved by 5" in text
    entries = {entry.name.rpartition("::")[2]: entry.replay for entry in suite.entries}
    assert [(row.moved, row.loss, bool(row.finding)) for row in entries["test_audited"].rows] == [
        ("1", "0.5", False),
        ("5", "2.5", True),
    ]
    assert entries["test_audited"].n_calls == 2
    assert entries["test_not_explained"].rows == ()
    assert entries["test_not_explained"].remarks, "what was not recorded"


LONG = """
import time
from mechanisms import *

spent = [time.clock_gettime(time.CLOCK_MONOTONIC)]
time.spent = spent

def slow(rows, rng):
    time.spent[0] += 2.0
    return len(rows) + rng.laplace()

def test_long(dp_audit, monkeypatch):
    monkeypatch.setattr(time, "clock_gettime", lambda _: spent[0])
    for seed in (1, 2):
        dp_audit(slow, X, Y, claim=PureDP(1.0), runs=700, alpha=0.05, seed=seed)
"""


def test_a_long_audit_says_so_past_the_capture_once_a_test(project):
    project.makepyfile(test_long=LONG)
    result = project.runpytest_inprocess("-p", "no:hypothesispytest", "--dp-audit-budget=0.2")
    shown = result.stderr.str()
    assert result.ret == pytest.ExitCode.OK, text_of(result)
    said = "test_long.py::test_long: slow: at most about 47 minutes (1,400 runs, 2 s each)"
    assert shown.count("each)") == 1
    assert said in shown, shown
