"""A test whose audit failed is never green, whatever becomes of the exception; expected refutations are."""

import json
import re

import pytest

from dpaudit import load
from dpaudit.reports import html, junit, markdown

from .sessions import HEAD, ONLY_BAD, RUN_TWICE, has_outcomes, run, sections, text_of

pytest_plugins = ["pytester"]
QUIETLY = "with contextlib.suppress(BaseException): audit(dp_audit, *BAD)"
IN_A_POOL = "with concurrent.futures.ThreadPoolExecutor() as pool: pool.submit(audit, dp_audit, "
FAILS = "except BaseException: "
LOST = {
    "thread": f"""
        def quietly():
            {QUIETLY}
        thread = threading.Thread(target=quietly)
        thread.start()
        thread.join()
    """,
    "inconclusive": f"{IN_A_POOL}constant, *BAD[1:])",
    "error": f"{IN_A_POOL}crash, *BAD[1:])",
    "suppressed": QUIETLY,
    "finally": "try: audit(dp_audit, *BAD)\nfinally: return",
    "replay": """
        with contextlib.suppress(BaseException):
            dp_audit.replay(lambda rows, rng: rng.laplace(5.0 * len(rows)), [1, 1], [1], claim=PureDP(1.0))
    """,
    "other_exception_expected": f'{QUIETLY}\nwith pytest.raises(ValueError): int("x")',
    "another_message_expected": QUIETLY.replace(":", ', pytest.raises(Failed, match="nonsense"):', 1),
    "fails_otherwise": f"@pytest.mark.xfail(raises=ValueError)\n{QUIETLY}",
    "was_skipped": f'try: audit(dp_audit, *BAD)\n{FAILS}pytest.skip("flaky")',
    "of_a_fixture": "@pytest.mark.usefixtures('made_before')\npass",
}
EXPECTED = {
    "raises": 'with pytest.raises(Failed, match="REFUTED"): audit(dp_audit, *BAD)',
    "raises_in_a_thread": """
        with concurrent.futures.ThreadPoolExecutor() as pool, pytest.raises(Failed):
            pool.submit(audit, dp_audit, *BAD).result()
    """,
    "cause": """
        with pytest.raises(ValueError):
            try: audit(dp_audit, *BAD)
            except BaseException as error: raise ValueError from error
    """,
    "option": 'assert audit(dp_audit, *BAD, expect="refuted").is_refuted',
    "marker": '@pytest.mark.dp_audit(expect="inconclusive")\naudit(dp_audit, constant, *BAD[1:])',
}
UNITTEST = """
@pytest.fixture
def made_before(dp_audit):
    with contextlib.suppress(BaseException): audit(dp_audit, *BAD)

class TestOne(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def keep(self, dp_audit): self.dp_audit = dp_audit
    def test_expected(self):
        with self.assertRaisesRegex(Failed, "REFUTED"): audit(self.dp_audit, *BAD)
    def test_lost(self):
        try: audit(self.dp_audit, *BAD)
        except BaseException: pass
    def test_skipped(self):
        try: audit(self.dp_audit, *BAD)
        except BaseException: self.skipTest("flaky")

"""


def test_a_lost_failure_fails_the_test_and_an_expected_one_is_green(project):
    """Of a `TestCase`, too, where a lost failure is an error of a test that was skipped."""
    rows = {name: (code, "FAILED", "\nthe test lost the failure of its audit") for name, code in LOST.items()}
    rows |= {name: (code, "PASSED") for name, code in EXPECTED.items()}
    replaced = """
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(pytest, "fail", print)
            audit(dp_audit, *BAD)
    """
    rows["fail_replaced"] = (replaced, "FAILED", "REFUTED")
    rows["known"] = ("@pytest.mark.xfail(strict=True)\naudit(dp_audit, *BAD)", "XFAIL")
    rows["no_library"] = ('try: audit(dp_audit, crash, *BAD[1:])\nexcept Exception: pytest.skip("none")', "SKIPPED")
    shown = has_outcomes(project, rows, "--dp-audit-report=r.json", head=HEAD + UNITTEST)
    outcomes = dict(re.findall(r"^test_rows\.py::TestOne::test_(\w+) ([A-Z]+)", shown, flags=re.M))
    assert outcomes == {"expected": "PASSED", "lost": "FAILED", "skipped": "ERROR"}
    assert shown.count("\nthe test lost the failure of its audit") == len(LOST) + 2
    assert "WARNING the test lost" not in shown
    assert "✖ refuted, as expected" in shown
    words = {
        re.sub(r" #\d+$", "", entry.name.partition("::test_")[2]): entry.expected and entry.expected.value
        for entry in load(project.path / "r.json").entries
    }
    assert {name: words[name] for name in EXPECTED} == {**dict.fromkeys(EXPECTED, "refuted"), "marker": "inconclusive"}
    assert words["known"] is None


AFTERWARDS = """
HELD = []

@pytest.fixture
def made_later():
    yield
    with contextlib.suppress(BaseException): audit(HELD[0], *BAD)

def test_in_a_teardown(made_later, dp_audit):
    audit(dp_audit, good, *BAD[1:])
    HELD.append(dp_audit)

def test_outlasted(dp_audit):
    audit(dp_audit, good, *BAD[1:])
    go = threading.Event()
    def waits(rows, size, rng):
        go.wait()
        return good(rows, size, rng)
    threading.Thread(target=lambda: audit(dp_audit, waits, *BAD[1:])).start()
    threading.Timer(0.3, go.set).start()

@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")
def test_in_a_child(dp_audit):
    audit(dp_audit, good, *BAD[1:])
    child = os.fork()
    if child == 0:
        try: audit(dp_audit, *BAD)
        finally: os._exit(0)
    os.waitpid(child, 0)
"""


def test_what_happens_after_the_test_is_an_error(project):
    """An audit in a forked child is refused, and fails the test although the child hides it."""
    project.makepyfile(test_after=HEAD + AFTERWARDS)
    result = run(project, "-W", "ignore::DeprecationWarning")
    result.assert_outcomes(passed=2, failed=1, errors=2)
    assert "made in a child process of a test" in text_of(result)
    assert re.search(r"test_outlasted #\d{7}: the test ended before its audit", text_of(result))


@pytest.mark.parametrize("hook", [False, True])
def test_a_failure_that_no_test_shows_fails_the_session(project, hook):
    """Made in another test, or by a hook after all tests."""
    made = "with contextlib.suppress(BaseException): conftest.HELD[0](bad, X, Y, claim=PureDP(1.0))"
    project.makeconftest(
        "import conftest, contextlib, pytest\nfrom mechanisms import *\nHELD = []\n"
        + hook * f"@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish():\n    {made}\n"
    )
    project.makepyfile(
        test_held=f"{HEAD}import conftest\ndef test_one(dp_audit):\n    audit(dp_audit, good, *BAD[1:])\n"
        f"    conftest.HELD.append(dp_audit)\ndef test_two():\n    {'pass' if hook else made}\n"
    )
    result = run(project)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "2 passed" in text_of(result)
    assert "WARNING the test lost the failure of its audit" in text_of(result)


AGAIN = "failed earlier in this session; a rerun does not audit again"
RERUNS = """
CALLS = []

def test_different(dp_audit):
    CALLS.append(bad if not CALLS else good)
    dp_audit.check(check_equivalence, good, CALLS[-1], X, margin=0.3, runs=2_000)

def test_the_second_run_alone(dp_audit):  # a check that passed may be made again
    dp_audit.check(check_equivalence, good, good, X, margin=0.3, runs=2_000)
    CALLS.append("alone")
    assert CALLS.count("alone") == 2

def test_fewer(dp_audit):
    CALLS.append("fewer")
    audit(dp_audit, good, *BAD[1:])
    if CALLS.count("fewer") == 1: audit(dp_audit, *BAD)
"""


def test_a_rerun_is_no_second_chance(project):
    """The second runs would pass if made."""
    project.makepyfile(test_bad=ONLY_BAD, test_reruns=HEAD + RERUNS)
    project.makeconftest(RUN_TWICE)
    result = run(project, "--dp-audit-budget=0.1")
    result.assert_outcomes(passed=1, failed=3)
    shown = sections(text_of(result))
    assert AGAIN in shown["test_bad"]
    assert AGAIN in shown["test_different"]
    assert "\nthe test lost the failure of its audit" in shown["test_fewer"]


CRASH = """
def test_1_refuted(dp_audit): audit(dp_audit, *BAD)
def test_2_expected(dp_audit):
    with pytest.raises(Failed): audit(dp_audit, *BAD)
def test_3_before(dp_audit): assert False
def test_4_skipped(dp_audit): pytest.skip()
def test_5_crashes(dp_audit): os._exit(3)
"""


def test_audits_of_a_worker_that_crashes_are_in_the_report(project):
    """Planned audits without a result are named in every report."""
    project.makepyfile(test_crash=HEAD + CRASH)
    options = ("--max-worker-restart=0", "-p", "no:hypothesispytest", "--dp-audit-runs=600", "--dp-audit-report=r.json")
    result = project.runpytest_inprocess("-n1", *options)
    result.assert_outcomes(passed=1, failed=3, skipped=1)
    suite = load(project.path / "r.json")
    assert [entry.name.partition("::")[2] for entry in suite.entries] == ["test_1_refuted", "test_2_expected"]
    assert [entry.expected is None for entry in suite.entries] == [True, False]
    missing = ["test_crash.py::test_3_before", "test_crash.py::test_5_crashes"]
    assert suite.environment == {"missing": missing}
    assert json.loads((project.path / "r.json").read_text())["environment"]["suite"] == {"missing": missing}
    for form in (html, markdown, junit):
        shown = form(suite).replace("\\_", "_")
        assert all(name in shown for name in missing), form
        assert "test_4_skipped" not in shown, form
    assert f"2 planned without a finished audit: {', '.join(missing)}" in text_of(result)
    assert "2 audits; probability of any false alarm at most 2e-05" in text_of(result)
    assert "WARNING the test lost" not in text_of(result)


def test_a_report_that_cannot_be_written_costs_the_report_alone(project):
    (project.path / "folder.md").mkdir()
    project.makepyfile(test_it=HEAD + "def test_it(dp_audit): audit(dp_audit, *BAD)\n")
    options = ("--dp-audit-report=folder.md", "--dp-audit-save=test_it.py/main.json", "--dp-audit-scripts=test_it.py")
    result = run(project, *options)
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "REFUTED" in text_of(result)
    for option in ("report", "save"):
        assert re.search(rf"WARNING --dp-audit-{option}=\S+ not written", text_of(result)), option


ROWS = """
A, B = "private A", "private B"
PAIRS = [([A, B], [A]), ([A, B, B], [A, B])]

def fails(rows, size, rng):
    if len(rows) > 2: raise KeyError(str(rows))
    return good(rows, size, rng)

def search(dp_audit, mechanism, space):
    dp_audit(mechanism, neighbours=space, claim=PureDP(1.0), floating_point="ignore", search_runs=400,
    adjacency=AddRemove())

def test_explicit(dp_audit): audit(dp_audit, bad, *PAIRS[0], PureDP(1.0))
def test_listed(dp_audit): search(dp_audit, bad, PAIRS)
def test_drawn(dp_audit): search(dp_audit, bad, lambda rng: PAIRS[rng.integers(2)])
def test_rows(dp_audit): search(dp_audit, fails, Rows(values=(A, B)))
def test_steep(dp_audit):
    dp_audit.check(check_sensitivity, lambda rows: 5.0 * rows.count(B), PAIRS, bound=1.0, evaluations=20)

@pytest.mark.dp_audit(keep_datasets=True)
def test_kept(dp_audit): audit(dp_audit, bad, ["asked for"], [], PureDP(1.0))
"""


def test_rows_are_shown_if_asked_for(project):
    project.makepyfile(test_rows=HEAD + ROWS)
    options = ["--dp-audit-report=r.json", "--dp-audit-save=main", "--junitxml=junit.xml", "--tb=short"]
    run(project, *options)
    assert len(load(project.path / "r.json").entries) >= 4
    for name in ("r.json", "dp_audit_baselines/main.json", "junit.xml"):
        text = (project.path / name).read_text(encoding="utf-8")
        assert "private" not in text, name
        assert "asked for" in text, name


THREADS = """
import time

def scaled(scale):
    def noisy(rows, size, rng): return len(rows) + rng.laplace(scale=scale, size=size)
    return noisy

def spread(dp_audit, jobs):
    def one(late, scale, x):
        time.sleep(late)
        dp_audit(scaled(scale), x, x[1:], claim=PureDP(3.0), runs=1_000, detect=9.0, sequential=False)
    delays = [0.0, 0.1, 0.2][:: int(os.environ.get("STEP", 1))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(one, late, *job) for late, job in zip(delays, jobs)]: done.result()

def test_it(dp_audit): spread(dp_audit, [(1.0, [1]), (1.5, [1]), (1.0, [1, 1])])
def test_variants(dp_audit): spread(dp_audit, [(1.0, [1]), (1.0, [1]), (1.0, [1, 1])])
"""


def test_the_names_of_audits_in_threads_do_not_depend_on_their_order(project, monkeypatch):
    """Those with one description are named in a note."""
    project.makepyfile(test_threads=HEAD + THREADS)
    found = []
    for step in ("1", "-1"):
        monkeypatch.setenv("STEP", step)
        result = run(project, f"--dp-audit-report={step}.json")
        result.assert_outcomes(passed=2)
        assert text_of(result).count("with this description") == 1
        found.append(
            {
                entry.name: entry.result.counts
                for entry in load(project.path / f"{step}.json").entries
                if "::test_it" in entry.name
            }
        )
    assert found[0] == found[1]
    assert len(found[0]) == 3
