"""A test whose audit failed is never green, whatever becomes of the exception; expected refutations are."""

from __future__ import annotations

import json
import os
import re

import pytest

from dpaudit import load
from dpaudit.reports import html, junit, markdown
from dpaudit.reports.pytest_plugin.session import AuditSession, Settings

from .sessions import HEAD, ONE_OF_EACH, RUN_TWICE, has_outcomes, run, sections, text_of

pytest_plugins = ["pytester"]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks")
IN_A_CHILD = """
def test_child(dp_audit):
    audit(dp_audit, good, *BAD[1:])
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException): audit(dp_audit, *BAD)
        os._exit(0)
    os.waitpid(child, 0)
"""


OF_CHILDREN = """
import time

OUT, INTO = os.pipe()
def ends(rows, size, rng): os._exit(0)

def slow(rows, size, rng):
    os.write(INTO, b"1")
    time.sleep(2.0)
    os._exit(0)

def in_child(dp_audit, mechanism):
    audit(dp_audit, good, *BAD[1:])
    child = os.fork()
    if child == 0:
        try: audit(dp_audit, mechanism, *BAD[1:])
        finally: os._exit(0)
    return child

def test_ends(dp_audit):
    os.waitpid(in_child(dp_audit, ends), 0)

def test_outlasted(dp_audit):
    in_child(dp_audit, slow)
    os.read(OUT, 1)
"""


@forks
def test_an_audit_in_a_child_process_that_did_not_end_is_an_error(project):
    project.makepyfile(test_children=HEAD + OF_CHILDREN)
    result = run(project, "-W", "ignore::DeprecationWarning")
    result.assert_outcomes(passed=2, errors=2)
    for name in ("ends", "outlasted"):
        said = rf"test_{name} #\d{{7}}: the test ended before its audit, which began in process \d+"
        assert re.search(said, sections(text_of(result))[f"test_{name}"])


DELETED = """
import shutil, tempfile
from pathlib import Path

def test_bad(dp_audit): audit(dp_audit, *BAD)
def test_deletes():
    for path in Path(tempfile.gettempdir()).glob("dp-audit-*"): shutil.rmtree(path)
def test_good(dp_audit): audit(dp_audit, good, *BAD[1:])
def test_deletes_within(dp_audit):
    test_deletes()
    test_good(dp_audit)
"""


def test_a_test_that_deletes_the_journal_fails_and_results_stay(project, monkeypatch):
    folder = project.path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    project.makepyfile(test_deletes=HEAD + DELETED)
    result = run(project, "--dp-audit-report=r.json")
    result.assert_outcomes(passed=1, failed=3)
    assert {entry.name.partition("::test_")[2] for entry in load("r.json").entries} == {"bad", "good", "deletes_within"}
    shown = sections(text_of(result))
    assert "REFUTED" in shown["test_bad"]
    for name in ("deletes", "deletes_within"):
        assert "\nthe journal of the session" in shown[f"test_{name}"]
    assert list(folder.glob("dp-audit-*")) == []


@forks
def test_a_failure_in_a_child_process_is_found(project):
    project.makepyfile(test_child=HEAD + IN_A_CHILD)
    run(project, "-W", "ignore::DeprecationWarning").assert_outcomes(failed=1)


CHILDREN = """
from pathlib import Path

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
    project.makepyfile(test_children=HEAD + CHILDREN)
    result = run(project, "-W", "ignore::DeprecationWarning")
    result.assert_outcomes(failed=1)  # the child whose audit was refused
    assert (project.path / "said").read_text().count("further alpha of 0.004") == 1
    assert "probability of any false alarm at most 0.00801, error budget 0.01" in text_of(result)


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
    "task": """
        async def main():
            await asyncio.gather(asyncio.to_thread(audit, dp_audit, *BAD), return_exceptions=True)
        asyncio.run(main())
    """,
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
        re.sub(r" #\d{7}$", "", entry.name.partition("::test_")[2]): entry.expected and entry.expected.value
        for entry in load(project.path / "r.json").entries
    }
    assert {name: words[name] for name in EXPECTED} == {**dict.fromkeys(EXPECTED, "refuted"), "marker": "inconclusive"}
    assert words["known"] is None


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
    project.makepyfile(test_held=HEAD + text)
    result = run(project)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "WARNING the test lost the failure of its audit" in text_of(result)


def test_an_audit_after_all_tests_fails_the_session(project):
    hook = """
import contextlib, pytest

HELD = []

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    audit, *rest = HELD
    with contextlib.suppress(BaseException): audit(*rest)
"""
    text = """
import conftest

def test_one(dp_audit):
    audit(dp_audit, good, *BAD[1:])
    conftest.HELD[:] = audit, dp_audit, *BAD
"""
    project.makeconftest(hook)
    project.makepyfile(test_held=HEAD + text)
    assert run(project).ret == pytest.ExitCode.TESTS_FAILED


AGAIN = "failed earlier in this session; a rerun does not audit again"
RERUNS = """
CALLS = []

def versions(dp_audit, first):
    CALLS.append(first if first not in CALLS else "good")
    new, runs = (bad if CALLS[-1] == "bad" else good), (200 if CALLS[-1] == "few" else 20_000)
    dp_audit.check(check_equivalence, good, new, X, margin=0.2, runs=runs)

def test_different(dp_audit): versions(dp_audit, "bad")
def test_few(dp_audit): versions(dp_audit, "few")

def test_the_second_run_alone(dp_audit):  # a check that passed may be made again
    dp_audit.check(check_equivalence, good, good, X, margin=0.2, runs=20_000)
    CALLS.append("alone")
    assert CALLS.count("alone") == 2

def test_fewer(dp_audit):
    CALLS.append("fewer")
    audit(dp_audit, good, *BAD[1:])
    if CALLS.count("fewer") == 1: audit(dp_audit, *BAD)

def test_expected(dp_audit):
    CALLS.append("expected")
    with pytest.raises(Failed): audit(dp_audit, *BAD)
    assert CALLS.count("expected") == 2
"""


def test_a_rerun_is_no_second_chance(project):
    """The second runs have right mechanisms, versions that are the same, and enough runs: they would pass if made."""
    project.makepyfile(test_both=ONE_OF_EACH, test_reruns=HEAD + RERUNS)
    project.makeconftest(RUN_TWICE)
    result = run(project, "--dp-audit-budget=0.1")
    result.assert_outcomes(passed=3, failed=4)
    shown = sections(text_of(result))
    assert AGAIN in shown["test_bad"]
    for name, said in (("different", "DIFFERENT: total variation distance at least"), ("few", "INCONCLUSIVE")):
        assert AGAIN in shown[f"test_{name}"], name
        assert said in shown[f"test_{name}"], name


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
    result = project.runpytest_inprocess(
        "-n1",
        "--max-worker-restart=1",
        "-p",
        "no:hypothesispytest",
        "--dp-audit-runs=1_500",
        "--dp-audit-report=r.json",
    )
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
    for form in (html, markdown, junit):
        shown = form(load(project.path / "r.json")).replace("\\_", "_")
        assert "test_it.py::test_before" in shown, form
        assert "test_skipped" not in shown, form
    written = json.loads((project.path / "r.json").read_text())["environment"]["suite"]
    assert written == {"missing": ["test_it.py::test_before"]}


@pytest.mark.parametrize("place", ["file/r.json", "folder.md", "folder.html"])
def test_a_report_that_cannot_be_written_costs_the_report_alone(project, place):
    (project.path / "file").touch()
    (project.path / "folder.md").mkdir()
    (project.path / "folder.html").mkdir()
    project.makepyfile(test_it=HEAD + "def test_it(dp_audit): audit(dp_audit, *BAD)\n")
    result = run(project, f"--dp-audit-report={place}", "--dp-audit-save=file/main", "--dp-audit-scripts=file")
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "REFUTED" in text_of(result)
    assert f"WARNING --dp-audit-report={project.path / place} not written" in text_of(result)


ROWS = """
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
def test_sensitivity(dp_audit):
    dp_audit.check(check_sensitivity, len, Rows(values=(A, B)), adjacency="replace", bound=0.0, evaluations=100)
def test_steep(dp_audit):
    dp_audit.check(check_sensitivity, lambda rows: 5.0 * rows.count(B), PAIRS, bound=1.0, evaluations=100)
def test_raising(dp_audit):
    dp_audit.check(check_sensitivity, lambda rows: {}[str(rows)], PAIRS, bound=1.0, evaluations=100)

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

def scaled(scale):
    def noisy(rows, size, rng): return len(rows) + rng.laplace(scale=scale, size=size)
    return noisy

def spread(dp_audit, jobs):
    def one(late, scale, x):
        time.sleep(late)
        audit(dp_audit, scaled(scale), x, x[1:], PureDP(9.0))
    delays = [0.0, 0.2, 0.4][:: int(os.environ.get("STEP", 1))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(one, late, *job) for late, job in zip(delays, jobs)]: done.result()

def test_it(dp_audit): spread(dp_audit, [(1.0, [1]), (1.5, [1]), (1.0, [1, 1])])
def test_twins(dp_audit): spread(dp_audit, [(1.0, [1]), (1.0, [1]), (1.0, [1, 1])])
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
