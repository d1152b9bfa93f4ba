"""The pytest plugin, run as its users run it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit import load
from dpaudit.reports.pytest_plugin.session import AuditSession, Settings, setting_from_text

from .sessions import HEAD, ONE_OF_EACH, has_outcomes, run, text_of

pytest_plugins = ["pytester"]
SEED = re.compile(r"E +seed +(\d+)")


def test_a_broken_mechanism_fails_and_a_good_one_passes_with_seeds_that_follow_from_names(project):
    project.makepyfile(test_both=ONE_OF_EACH)
    result = run(project, "--dp-audit-report=out/audits.json", "--dp-audit-scripts=alone")
    result.assert_outcomes(passed=1, failed=1)
    text = text_of(result)
    (script,) = (project.path / "alone").iterdir()  # that it runs is tested beside its text
    assert f"script     python {script}" in text
    assert "dpaudit" not in script.read_text(encoding="utf-8")
    for wanted in (
        "2 tests, 2 audits × alpha 1e-05 = 2e-05 of error budget 0.01",
        "REFUTED  bad: epsilon ",
        "(99.999% confidence)",
        " incorrect guesses in ",
        "claim      1-DP, add/remove one row, distance 1",
        " times on ",
        "1 row only in x",
        "seed       ",
        "repeat     pytest test_both.py::test_bad",
        "2 audits; probability of any false alarm at most 2e-05, error budget 0.01",
    ):
        assert wanted in text, wanted
    entries = load(project.path / "out" / "audits.json").entries
    assert [entry.result.is_refuted for entry in entries] == [True, False]
    # The nightly run of the page, with fewer runs; and every option that the page names is one.
    page = (Path(__file__).parents[3] / "docs/how-to/pytest.md").read_text(encoding="utf-8")
    (nightly,) = re.findall(r"- run: >-\n\s+pytest ((?:.*\n)+?)      - uses", page)
    drawn_text, known = text_of(run(project, *nightly.split())), text_of(run(project, "--help"))
    assert {option for option in re.findall(r"--dp-audit-[a-z]+", page) if option not in known} == set()
    assert "2 tests, 2 audits × alpha 1e-07 = 2e-07 of error budget 2.7e-05" in drawn_text
    (drawn,) = re.findall(r"--dp-audit-seed=(\d+) repeats the draws", drawn_text)
    assert f"--dp-audit-seed={drawn}" in next(line for line in drawn_text.splitlines() if "repeat  " in line)
    again = text_of(run(project, "-k", "bad", f"--dp-audit-seed={drawn}", "--dp-audit-report=out/audits.md"))
    assert SEED.findall(text) != SEED.findall(drawn_text) == SEED.findall(again) != []
    assert "test_bad" in (project.path / "audits.html").read_text(encoding="utf-8")
    assert r"test\_bad" in (project.path / "out" / "audits.md").read_text(encoding="utf-8")


CALLS = {
    "search": (
        "dp_audit(bad, neighbours=Rows(high=1.0), claim=PureDP(1.0), adjacency=AddRemove())", "FAILED",
        "search     of ", ": 1 row only",
    ),
    "simpler": (
        """
        pairs = [([3, 1, 2], [3, 1])]
        dp_audit(bad, neighbours=pairs, claim=PureDP(1.0), adjacency=AddRemove(), keep_datasets=True)
        """,
        "FAILED", "  simpler    x = [2]", "             y = []",
        "refuted on this simpler pair too, with 99.999% confidence",
    ),
    "both": ("dp_audit(good, X, Y, neighbours=Rows(), claim=BAD[3])", "FAILED", "pass x and y or neighbours=, not"),
    "pair": ("dp_audit(good, claim=BAD[3])", "FAILED", "the audit needs a pair of datasets; pass x and y, or"),
    "y": ("dp_audit(good, X, claim=BAD[3])", "FAILED", "to search for a pair (missing: y)."),
    "domain": ("dp_audit(good, Rows(), claim=BAD[3])", "FAILED", "is a domain of datasets; pass it as neighbours="),
    "tables": ('dp_audit(good, {"a": Rows()}, claim=BAD[3])', "FAILED", "is a domain of datasets; pass it as"),
    "search_tables": (  # rows that the search made up are shown, as those of one table
        """
        of_a = lambda tables, size, rng: bad(tables["a"], size, rng)
        dp_audit(of_a, neighbours={"a": Rows(high=1.0)}, claim=PureDP(1.0), adjacency=AddRemove())
        """,
        "FAILED", "rows       x = {'a': [",
    ),
    "strategy": (
        """
        from hypothesis import strategies as st
        rows = st.lists(st.booleans().map(float), min_size=1, max_size=3)  # few, so that all are soon drawn
        dp_audit(bad, neighbours=rows, claim=PureDP(1.0), adjacency=AddRemove())
        """,
        "FAILED", "REFUTED", "pairs; keep_datasets=True shows the rows",
    ),
    "partial": ("dp_audit(partial(scaled, scale=0.1), 0, 1, claim=1.0)", "FAILED", "Failed: REFUTED  scaled: epsilon"),
    "lambda": (  # which has the name of its test, that pytest prints
        "dp_audit(lambda answer, rng: answer + rng.laplace(scale=0.1), 0, 1, claim=1.0)", "FAILED",
        "Failed: REFUTED: epsilon",
    ),
    "named": (
        "dp_audit(partial(scaled, scale=0.1), 0, 1, claim=1.0, name='a name')", "FAILED",
        "Failed: REFUTED  a name: epsilon",
    ),
    "patched": (  # in worker processes the mechanism would be imported as it is in its file
        """
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(globals(), "SCALE", 0.2)
            audit(dp_audit, looped, 1.0, 0.0, PureDP(1.0))
        """,
        "FAILED", "REFUTED",
    ),
    "own_rng": ("audit(dp_audit, own_rng, [1, 1], [1], PureDP(1.5))", "PASSED", "note not reproducible, as the seed"),
    "entropy": ("dp_audit(own, [1, 1], [1], claim=PureDP(1.0))", "FAILED", "not reproducible"),
    "outputs": ("assert dp_audit.check(check_outputs, *OUTPUTS, claim=PureDP(1.5)).alpha == 1e-5", "PASSED"),
    "refuted": ("dp_audit.check(check_outputs, *OUTPUTS, claim=PureDP(0.5))", "FAILED", ": epsilon >= 0.9"),
    "float": ("dp_audit.check(lambda alpha: 3.0)", "FAILED", "returned a float; use a check that returns"),
    "misspelt": ("dp_audit(good, X, Y, claim=BAD[3], run=9)", "FAILED", "run is not an option of dp_audit; did you"),
    "of_marker": (
        '@pytest.mark.dp_audit(expects="refuted")\ndp_audit.check(check_noise, good, X, None)', "FAILED",
        "did you mean 'expect'?",
    ),
    "wrong": (
        'audit(dp_audit, *BAD, expect="wrong")', "FAILED",
        "expect='wrong' is not a verdict; use 'refuted', 'not refuted', 'inconclusive'",
    ),
    "good_not": (
        'audit(dp_audit, good, *BAD[1:], expect="refuted")', "FAILED",
        "expected: refuted, and the audit came out otherwise",
    ),
    "bad_not": ('audit(dp_audit, *BAD, expect="not refuted")', "FAILED", "REFUTED"),
    "hidden": (  # a wrapper with another alpha is charged, too
        "dp_audit.check(lambda: check_noise(good, X, noise=LaplaceNoise(1.0), answer=3.0, runs=500, alpha=0.15))",
        "FAILED", "the rest of the error budget 0.1 is too small for a further alpha",
    ),
    "behind": (
        "dp_audit.check(lambda: check_noise(good, X, noise=LaplaceNoise(1.0), answer=len, runs=500, alpha=1e-5))",
        "PASSED",
    ),
    "passed_on": (
        """
        def wrapper(*arguments, **options):
            return check_noise(*arguments, **options)
        result = dp_audit.check(wrapper, good, X, noise=LaplaceNoise(1.0), answer=3.0, runs=500)
        assert result.alpha == 1e-5 and result.seed > 0
        """,
        "PASSED",
    ),
    "equivalent": ("dp_audit.check(check_equivalence, good, good, X, margin=0.3, runs=2_000)", "PASSED"),
    "other": (
        "dp_audit.check(check_equivalence, good, bad, X, margin=0.05, runs=1_000)", "FAILED",
        "DIFFERENT: total variation distance at least",
    ),
    "nothing": ("pass", "ERROR", "requests dp_audit and makes no audit"),
    "skipped": ("pytest.skip('for now')", "SKIPPED"),
    "floating_point_leak": ("dp_audit(plain, 1.0, 0.0, claim=PureDP(1.0), runs=20_000, sequential=False)", "PASSED",
                 "::test_outputs: a floating-point leak breaks the claim",
                 "more audits have floating-point leaks: test_rows.py::test_refuted, test_rows.py::test_float"),
}  # fmt: skip
OWN = """
from functools import partial
SCALE = 1.0
OUTPUTS = [np.random.default_rng(place).laplace(place, 1, 20_000) for place in (0, 1)]

def own(rows):
    return len(rows) + random.choice([-1, 1]) * random.expovariate(5.0)

def plain(answer, size, rng): return answer + rng.laplace(size=size)
def scaled(answer, size, rng, scale): return answer + rng.laplace(scale=scale, size=size)
def looped(answer, rng): return answer + rng.laplace(scale=SCALE)
DRAWS = np.random.default_rng(7)
def own_rng(rows): return len(rows) + DRAWS.laplace()

"""


def test_calls_and_how_they_come_out(project):
    """One floating-point leak is told in full, and all audits that the seed does not fix in one line."""
    shown = has_outcomes(project, CALLS, "--dp-audit-budget=0.1", head=HEAD + OWN)
    assert len(re.findall("^WARNING .*: a floating-point leak breaks the claim: ", shown, flags=re.M)) == 1
    assert "floating_point='ignore' silences this." in shown
    (line,) = re.findall("^note not reproducible.*$", shown, flags=re.M)
    assert set(re.findall(r"::(\w+)", line)) == {"test_entropy", "test_own_rng"}


def test_options_of_call_marker_command_line_and_file(project):
    """The nearest comes first."""
    project.makepyfile(
        """
        import pytest
        from mechanisms import *

        @pytest.mark.dp_audit(runs=1_100)
        def test_them(dp_audit):
            assert dp_audit(good, X, Y, claim=PureDP(1.0), runs=1_000, sequential=False).runs == 1_000
            assert dp_audit(good, X, Y, claim=PureDP(1.0), sequential=False).runs == 1_100

        def test_others(dp_audit):
            assert dp_audit(good, X, Y, claim=PureDP(1.0), sequential=False).runs == 1_200
        """
    )
    project.makeini("[pytest]\ndp_audit_runs = 1_300\ndp_audit_alpha = 1e-4\n")
    result = run(project, "--dp-audit-runs=1_200", "--dp-audit-seed=3")
    result.assert_outcomes(passed=2)
    assert "2 audits × alpha 0.0001 = 0.0002 of error budget 0.01; at most 1,200 runs, seed 3" in text_of(result)
    result = project.runpytest_inprocess("-p", "no:hypothesispytest", "-k", "others")
    assert "assert 1300 == 1200" in text_of(result)


def test_an_excess_to_detect_sizes_the_audit(project):
    project.makepyfile(
        """
        from mechanisms import *

        def test_it(dp_audit):
            result = dp_audit(good, X, Y, claim=PureDP(1.0), detect=0.5, sequential=False)
            assert abs(result.min_detectable_excess - 0.5) < 0.05
            dp_audit(good, X, Y, claim=PureDP(1.0), detect=0.01, runs=2_000, sequential=False)
        """
    )
    shown = text_of(run(project, "--dp-audit-detect=0.5", "--dp-audit-seconds=60"))
    assert "INCONCLUSIVE  good: too few runs for 99.999% confidence (2,000 per dataset)" in shown
    assert "; runs to detect 0.5, 60 s each, seed 0" in shown


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("alpha", "nan", "use 0 < alpha < 1"), ("runs", "3", "use a whole number from 40"),
        ("runs", "inf", "use a whole number from 40"), ("seed", "-1", "use a whole number >= 0"),
        ("seconds", "soon", "use a positive number"), ("detect", "0", "use a positive finite number"),
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_refused(name, text, rule):
    with pytest.raises(ValueError, match=f"--dp-audit-{name} .* is '{text}'; {rule}"):
        setting_from_text(name, text)


def test_a_name_or_marker_out_of_range_is_refused(tmp_path):
    session = AuditSession(settings=Settings(), baselines=tmp_path)
    for name in ("../../main", "/main", "a//main", "C:\\main", "..\\main"):
        with pytest.raises(ValueError, match="would not lie in"):
            session.baseline_path(name)
    for audits, alpha in ((-1, 0.01), (True, 0.01), (1, 2), (1, "small")):
        with pytest.raises(ValueError, match="; use "):
            session.plan("test", audits, alpha)


REFUSED = {
    "--dp-audit-alpha=0": "use 0 < alpha < 1",
    "--dp-audit-report=r.txt": "ends in .json, .html or .md",
    "--dp-audit-compare=a//main": "would not lie in",
    "--dp-audit-alpha=0.01": "2 tests add up to 0.02, above the error budget 0.01",
    "--dp-audit-report=r.html": "r.html: reports need jinja2; pip install 'dpaudit[report]'",
}


def test_a_wrong_option_or_marker_is_an_error_at_once(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    project.makepyfile(ONE_OF_EACH)
    for option, rule in REFUSED.items():
        result = run(project, option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, option
        assert rule in text_of(result), option
    project.makepyfile("import pytest\n@pytest.mark.dp_audit(audits=-1)\ndef test_it(dp_audit): pass\n")
    result = run(project)
    assert (result.ret, "use a whole number >= 0" in text_of(result)) == (pytest.ExitCode.USAGE_ERROR, True)


def test_what_has_a_budget_of_its_own(project):
    """A session with its workers; shards are sessions, so that each needs its part of the whole."""
    budget = "--dp-audit-budget=2e-5"
    two = "def test_one(dp_audit): dp_audit()\ndef test_two(dp_audit): dp_audit()"  # planned before it is made
    project.makepyfile(two, test_more=two)
    refused = project.runpytest_inprocess("-n", "1", "-p", "no:hypothesispytest", budget)
    refused.assert_outcomes(errors=4)
    assert "the alphas of 4 tests add up to 4e-05, above the error budget" in text_of(refused)
    assert "2e-05 of error budget 2e-05" in text_of(run(project, budget, "test_more.py"))


def test_audits_that_no_test_has_announced_take_what_is_left(project):
    """Those that raised an error are counted too."""
    project.makepyfile(
        f"""{HEAD}
def test_many(dp_audit):
    for _ in range(4):
        audit(dp_audit, good, *BAD[1:])

def test_crash(dp_audit): audit(dp_audit, crash, *BAD[1:])
def test_equal(dp_audit): dp_audit.check(check_equivalence, good, good, X, margin=0.5, runs=1_000)
"""
    )
    text = text_of(run(project, "--dp-audit-budget=5e-5"))
    assert "the rest of the error budget 5e-05 is too small for a further alpha of 1e-05" in text
    assert (
        "4 audits, 1 more outside the table (audits that raised an error or ran again); "
        "probability of any false alarm at most 5e-05, error budget 5e-05"
    ) in text
    assert "\n1 outside the table (" in text_of(run(project, "-k", "crash"))


AT_RUN_TIME = """
import pytest
from mechanisms import *

@pytest.fixture
def asks(request): return lambda: request.getfixturevalue("dp_audit")
def test_at_run_time(request): request.getfixturevalue("dp_audit")(bad, X, Y, claim=PureDP(1.0))
def test_by_a_fixture(asks): asks()(bad, X, Y, claim=PureDP(1.0))
@pytest.mark.dp_audit
def test_marked(): pass
def test_plain(): pass
"""


def test_only_skip_and_switching_off(project):
    project.makepyfile("def test_it(): pass")
    text = text_of(run(project))
    assert "dp_audit" not in text
    assert "privacy audits" not in text
    project.makepyfile(ONE_OF_EACH, test_more=AT_RUN_TIME)
    run(project, "--dp-audit-skip").assert_outcomes(skipped=4, passed=2)
    result = run(project, "--dp-audit-only", "--strict-markers", "test_more.py")
    result.assert_outcomes(failed=2, passed=1, deselected=1)
    assert "dp_audit: 1 of 4 tests cannot request dp_audit and are deselected" in text_of(result)
    result = project.runpytest_inprocess("-p", "no:hypothesispytest", "-p", "no:dpaudit")
    assert "fixture 'dp_audit' not found" in text_of(result)


def test_importing_the_plugin_needs_nothing_heavy():
    """Neither does a worker that has made no audit."""
    code = (
        "import pytest, sys; before = set(sys.modules); from dpaudit.reports.pytest_plugin.plugin import AuditSession; "
        "AuditSession(settings=None, baselines=None).packed(); "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", "import json; " + code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert {name.split(".")[0] for name in loaded} <= {"dpaudit", "secrets", "hmac", "_hashlib", "random", "bisect"} | {
        name for name in loaded if name in sys.stdlib_module_names
    }
    light = {
        "dpaudit.audit.errors", "dpaudit.audit.options", "dpaudit.audit.printing", "dpaudit.audit.results",
        "dpaudit.audit.results.result",
    }  # fmt: skip
    light |= {"dpaudit.audit.files", "dpaudit.audit.replay", "dpaudit.audit.replay.registered"}
    assert {name for name in loaded if name.startswith("dpaudit.audit.")} <= light
