"""Everyday sessions: short tracebacks, interrupted sessions, training runs, sensitivities and replays in tests."""

import re
import shutil
import sys

import pytest

from dpaudit import load
from dpaudit.reports import html, markdown

from .sessions import HEAD, run, text_of

pytest_plugins = ["pytester"]
ERRORS = """
from mechanisms import *

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
    ):
        assert line in shown, line
    assert not list((project.path / "kept").iterdir())
    assert "audit_pair" not in shown
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


TRAINING = """
import numpy as np
import pytest
from dpaudit import PureDP

included = np.random.default_rng(0).random(600) < 0.5
noise = np.random.default_rng(1).normal(size=600)

def test_right(dp_audit):
    result = dp_audit.canaries(noise, included, claim=PureDP(1.0))
    assert result.alpha == 1e-5
    assert result.seed > 0

def test_wrong(dp_audit):
    dp_audit.canaries(noise + 9.0 * included, included, claim=PureDP(1.0), name="forgetful training")

def test_few(dp_audit):
    dp_audit.canaries(noise[:20], included[:20], claim=PureDP(3.0))
"""


def test_a_training_run_in_a_test(project):
    project.makepyfile(test_training=TRAINING)
    found = run(project, "--dp-audit-report=report.json", "--dp-audit-save=main")
    shown = text_of(found)
    found.assert_outcomes(passed=1, failed=2)
    assert "REFUTED  forgetful training: epsilon >= " in shown
    assert "  meaning    the claim is refuted: the training reveals more of its canaries than claimed" in shown
    assert "  meaning    the audit is inconclusive" in shown
    assert "  repeat     pytest test_training.py::test_wrong" in shown
    assert "600 canaries" in shown, "the table at the end"
    entries = {entry.name.rpartition("::")[2]: entry.result for entry in load(project.path / "report.json").entries}
    assert sorted(entries) == ["test_few", "test_right", "test_wrong"]
    assert entries["test_right"].sketch is not None
    (baseline,) = (project.path / "dp_audit_baselines").glob("main.json")
    assert all(entry.result.sketch is None for entry in load(baseline).entries)


SENSITIVITIES = """
from dpaudit import Rows, check_noise, check_sensitivity
from dpaudit.noise import LaplaceNoise
from mechanisms import good

WIDE = Rows(low=-5.0, high=5.0, finite=True)
OPTIONS = {"adjacency": "replace", "evaluations": 50}

def clipped_sum(rows):
    return sum(min(max(row, -1.0), 1.0) for row in rows)

def test_right(dp_audit):
    result = dp_audit.check(check_sensitivity, clipped_sum, WIDE, bound=2.0, **OPTIONS)
    assert result.seed > 0 and result.seed != 7

def test_wrong(dp_audit):
    dp_audit.check(check_sensitivity, clipped_sum, WIDE, bound=1.0, seed=7, **OPTIONS)

def test_a_check_behind_another_function(dp_audit):
    def noise(rows):
        return check_noise(good, rows, noise=LaplaceNoise(scale=1.0), answer=len, runs=500, alpha=1e-5)
    dp_audit.check(noise, [1, 1])
    dp_audit.check(noise, [1, 1])
"""


def test_sensitivities_cost_no_alpha(project):
    project.makepyfile(test_sensitivities=SENSITIVITIES)
    found = run(project, "--dp-audit-budget=3e-5")
    shown = text_of(found)
    assert "REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-5.0], y = [5.0]" in shown
    assert "  seed    7" in shown
    assert "the rest of the error budget 3e-05 is too small for a further alpha of 1e-05" in shown
    found.assert_outcomes(passed=1, failed=2)


STEPS = """
import numpy as np
import pytest
from dpaudit import GaussianDP
from dpaudit.training import check_step

GRADIENTS = np.random.default_rng(1).normal(size=(6, 40))

def step(gradients, rng):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients / np.maximum(norms, 1.0)).sum(axis=0) + rng.normal(size=40)

@pytest.mark.parametrize("mu", [1.0, 0.5])
def test_step(dp_audit, mu):
    dp_audit.check(check_step, step, GRADIENTS, claim=GaussianDP(mu), ignore="not-finite", tolerance=0.1)
"""


def test_steps_of_training(project):
    project.makepyfile(test_steps=STEPS)
    found = run(project, "--dp-audit-report=report.json")
    shown = text_of(found)
    assert "REFUTED  step: mu >= " in shown
    assert "isolation" in shown, "the rows"
    found.assert_outcomes(passed=1, failed=1)
    checks = {check.name.rpartition("::")[2]: check for check in load(project.path / "report.json").checks}
    assert {name: (check.kind, check.verdict) for name, check in checks.items()} == {
        "test_step[1.0]": ("step", "NOT_REFUTED"),
        "test_step[0.5]": ("step", "REFUTED"),
    }


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


NAMES = """
from functools import partial

import pytest
from mechanisms import *

def noisy(answer, size, rng, scale):
    return answer + rng.laplace(scale=scale, size=size)

FORMS = [partial(noisy, scale=0.1), lambda answer, rng: answer + rng.laplace(scale=0.1)]

@pytest.mark.parametrize("form", FORMS, ids=["partial", "lambda"])
def test_bad(dp_audit, form):
    dp_audit(form, 0, 1, claim=1.0)

def test_named(dp_audit):
    dp_audit(FORMS[0], 0, 1, claim=1.0, name="a name")

@pytest.mark.parametrize("scale", [1.0, 1.1, 1.2])
def test_leak(dp_audit, scale):
    dp_audit(partial(noisy, scale=scale), 1.0, 0.0, claim=1.0, runs=20_000, sequential=False)
"""


def test_lambdas_have_the_name_of_their_test_and_one_leak_is_told_in_full(project):
    project.makepyfile(test_names=NAMES)
    found = run(project, "--dp-audit-report=audits.json")
    found.assert_outcomes(failed=3, passed=3)
    shown = text_of(found)
    for name in ("  noisy", "", "  a name"):
        assert f"E       Failed: REFUTED{name}: epsilon" in shown
    assert shown.count(": a floating-point leak breaks the claim: ") == 1
    assert "floating_point='ignore' silences this." in shown
    others = "test_names.py::test_leak[1.1], test_names.py::test_leak[1.2]"
    assert f"WARNING 2 more audits have floating-point leaks: {others}" in shown
    results = [entry.result for entry in load(project.path / "audits.json").entries]
    assert sum(result.floating_point_leak is not None for result in results) == 3


def test_an_undetermined_replay_passes_with_a_warning(project):
    project.makepyfile(
        """
        import pytest

        @pytest.mark.dp_audit(audits=0)
        def test_unseen(dp_audit):
            dp_audit.replay(lambda rows: len(rows), [1], [1], claim=1.0)
        """
    )
    found = run(project, "-Wdefault")
    found.assert_outcomes(passed=1)
    assert "UserWarning: replay of lambda at test_an_undetermined_replay_passes_with_a_warning.py:5: UNDET" in text_of(
        found
    )


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


OTHER_CHECKS = f"""{HEAD}
def too_little(rows, rng):
    return rng.laplace(sum(rows), 0.5)

@pytest.mark.dp_audit(audits=3)
def test_versions(dp_audit):
    dp_audit.check(check_equivalence, good, good, X, margin=0.3, runs=2_000)
    dp_audit.check(check_equivalence, good, bad, X, margin=0.05, runs=1_000, expect="refuted")
    dp_audit.check(check_equivalence, good, bad, X, margin=0.06, runs=1_000)

@pytest.mark.dp_audit(audits=0)
def test_replayed(dp_audit):
    dp_audit.replay(too_little, [1.0, 1.0], [1.0], claim=1.0)

@pytest.mark.dp_audit(audits=0)
def test_sensitivity(dp_audit):
    dp_audit.check(check_sensitivity, sum, Rows([0.0, 1.0]), bound=1.0, norm="l1", adjacency="add-remove",
                   evaluations=100)
"""


def test_replays_and_comparisons_have_a_row_a_message_and_a_card(project):
    project.makepyfile(test_checks=OTHER_CHECKS)
    found = run(project, "--dp-audit-report=audits.json", "--dp-audit-budget=5e-5")
    found.assert_outcomes(passed=1, failed=2)
    rows = [line.split("  ") for line in text_of(found).splitlines() if line.startswith("test_checks.py::")]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [(row[0].removeprefix("test_checks.py::test_"), row[-1]) for row in rows] == [
        ("sensitivity", "■ not refuted"),
        ("versions", "■ equivalent within the margin"),
        ("replayed", "✖ excess"),
        ("versions #2", "✖ different by more than the margin, as expected"),
        ("versions #3", "✖ different by more than the margin"),
    ]
    shown = messages(found)
    assert "  check   test_checks.py::test_versions #3\n" in shown, "which of the calls shows a difference"
    assert "  repeat  pytest test_checks.py::test_versions" in shown
    suite = load(project.path / "audits.json")
    assert [(check.kind, check.claim, check.found) for check in suite.checks if check.kind != "equivalence"] == [
        ("replay", "1-DP", "loss at most 2"),
        ("sensitivity", "l1 sensitivity 1", "change 1"),
    ]
    page, text = html(suite), markdown(suite)
    assert page.count('id="check-') == page.count('<details class="audit"') == 5
    assert '<span aria-hidden="true">✖</span> excess</span>' in page
    assert "<code>return rng.laplace(sum(rows), 0.5)</code>" in page
    assert "0 audits" not in page + text
    assert "- **test\\_checks.py::test\\_replayed** (replay): ✖ excess; 1-DP; loss at most 2\n" in text


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


def test_tests_that_forget_rng_are_named_in_one_line(project):
    project.makepyfile(
        test_rng="""
        import numpy as np

        def own(rows):
            return len(rows) + np.random.default_rng().laplace()

        def test_own(dp_audit):
            dp_audit(own, [1, 1], [1], claim=1.5, runs=700, sequential=False)

        def test_other(dp_audit):
            dp_audit(own, [1, 1], [1], claim=1.5, runs=700, sequential=False)

        def test_fixed(dp_audit):
            dp_audit(lambda rows, rng: len(rows) + rng.laplace(), [1, 1], [1], claim=1.5, runs=700, sequential=False)
        """
    )
    (line,) = [line for line in text_of(run(project)).splitlines() if line.startswith("note not reproducible")]
    assert line.startswith("note not reproducible, as the seed does not fix all randomness, so the bounds differ")
    assert {word.strip(",") for word in line.split() if "::" in word} == {
        "test_rng.py::test_own",
        "test_rng.py::test_other",
    }


def test_a_mistake_in_a_call_shows_no_lines_of_the_library(project):
    project.makepyfile(
        """
        from functools import partial
        from dpaudit import check

        def noisy(scale, rng):
            return rng.laplace(scale=scale)

        def crash(rows, rng):
            raise KeyError("age")

        def test_claim(dp_audit):
            dp_audit(noisy, [1, 1], [1])

        def test_binding(dp_audit):
            dp_audit(partial(noisy, 1.0, rng=3), [1, 1], [1], claim=1.0)

        def test_crash():
            check(crash, [1, 1], [1], claim=1.0, runs=1_000, jobs=1)
        """
    )
    shown = text_of(run(project))
    assert "no claim given, and noisy has no attribute claim" in shown
    assert "raise KeyError" in shown
    for internal in ("_own_claim", "refuse_if_all_raised", "plan.sampler", "audit/"):
        assert internal not in shown


EXACT = """
import pytest
from mechanisms import *
from dpaudit import Values

def respond(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit

def test_verified(dp_audit):
    assert dp_audit(respond, 0, 1, claim=1.1, exact=True).verdict.value == "verified"

def test_refuted(dp_audit):
    dp_audit(respond, neighbours=Values((0, 1)), adjacency="local", claim=1.0, exact=True)

@pytest.mark.dp_audit(exact=True, expect="refuted")
def test_expected(dp_audit):
    dp_audit(respond, 0, 1, claim=1.0)

def test_undetermined(dp_audit):
    dp_audit(respond, 0, 1, claim=1.0, exact=True, expect="undetermined")
"""


def test_exact_audits_cost_no_alpha(project):
    project.makepyfile(test_exact=EXACT)
    result = run(project, "--dp-audit-report=report.html")
    result.assert_outcomes(passed=2, failed=2)
    shown = text_of(result)
    assert "REFUTED  respond: 1-DP is exceeded by 0.0704 in delta (certain)" in shown
    assert "expected: inconclusive, and the audit came out otherwise" in shown
    page = (project.path / "report.html").read_text(encoding="utf-8")
    assert page.count("Largest certain loss</th>") == 4
