"""The pytest plugin, run as its users run it. All audits have alpha 1e-5 and fixed seeds unless said otherwise."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpaudit.reports.cli.main
import dpaudit.reports.pytest_plugin.fixture
import dpaudit.reports.pytest_plugin.session
from dpaudit import load

pytest_plugins = ["pytester"]

MECHANISMS = """
import numpy as np
from dpaudit import AddRemove, PureDP, Rows

X, Y = np.ones(3), np.ones(2)

def good(rows, size, rng):
    return len(rows) + rng.laplace(scale=1.0, size=size)

def bad(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.5, size=size)
"""
ONE_OF_EACH = """
from mechanisms import *

def test_good(dp_audit):
    result = dp_audit(good, X, Y, claim=PureDP(1.0), adjacency=AddRemove())
    assert not result.is_refuted

def test_bad(dp_audit):
    dp_audit(bad, X, Y, claim=PureDP(1.0), adjacency=AddRemove())
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """All that a session loads, before pytester notes which modules to forget: to load it anew takes seconds."""
    names = [getattr(module, name) for module in (dpaudit, dpaudit.reports) for name in module.__all__]
    assert names
    importlib.import_module("hypothesis.strategies")
    rng = np.random.default_rng(0)
    result = dpaudit.check_outputs(*rng.normal(size=(2, 100)), claim=dpaudit.PureDP(1.0))
    suite = dpaudit.Suite(title="", entries=(dpaudit.Entry(name="one", result=result),))
    dpaudit.reports.html(suite)
    dpaudit.audit.records.baseline_comparison.compare(suite, suite)


@pytest.fixture
def full_project(pytester, monkeypatch):
    """A project with a mechanism that keeps its claim and one that does not."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # A file that is written again within a second, as long as before, would be read from what it was compiled to.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    pytester.makepyfile(mechanisms=MECHANISMS)
    pytester.syspathinsert()
    yield pytester
    sys.modules.pop("mechanisms", None)


@pytest.fixture
def project(full_project, without_resolution, learned_seldom, looked_seldom):
    """The project, whose sessions in this process take less time: they look seldom, and state no detectable excess."""
    return full_project


def run(project, *options):
    sys.modules.pop("mechanisms", None)
    return project.runpytest_inprocess("-p", "no:hypothesispytest", "--dp-audit-runs=1_500", *options)


def text_of(result):
    return result.stdout.str() + result.stderr.str()


def test_a_broken_mechanism_fails_and_a_good_one_passes(project):
    project.makepyfile(ONE_OF_EACH)
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    text = text_of(result)
    for wanted in (
        "2 tests, 2 audits × alpha 1e-05 = 2e-05 of error budget 0.01",
        "REFUTED: epsilon >= ",
        "claim      1-DP, add/remove one row, distance 1",
        "bound      ε ≥ ",
        "confidence 99.999%",
        "times as often on",
        "1 row only in x",
        "seed       ",
        "repeat     pytest test_a_broken_mechanism_fails_and_a_good_one_passes.py::test_bad",
        "2 audits; probability of any false alarm at most 2e-05, error budget 0.01",
    ):
        assert wanted in text, wanted
    # In milliseconds: it stops when the claim is refuted.
    refuted = next(line for line in text.splitlines() if line.endswith("✖ refuted"))
    assert int(refuted.split()[-4].replace(",", "")) < 5_000


def test_the_seed_follows_from_the_name_alone(project):
    project.makepyfile(ONE_OF_EACH)
    first = re.findall(r"E +seed +(\d+)", text_of(run(project)))
    assert first == re.findall(r"E +seed +(\d+)", text_of(run(project, "-k", "bad"))) != []
    assert first != re.findall(r"E +seed +(\d+)", text_of(run(project, "-k", "bad", "--dp-audit-seed=1")))


def test_a_random_seed_is_printed_and_repeats(project):
    project.makepyfile(ONE_OF_EACH)
    text = text_of(run(project, "-k", "bad", "--dp-audit-seed=random"))
    (drawn,) = re.findall(r"--dp-audit-seed=(\d+) repeats the draws", text)
    assert f"--dp-audit-seed={drawn}" in next(line for line in text.splitlines() if "repeat  " in line)
    seed = re.findall(r"E +seed +(\d+)", text)
    assert seed == re.findall(r"E +seed +(\d+)", text_of(run(project, "-k", "bad", f"--dp-audit-seed={drawn}")))


def test_a_search_finds_the_pair(project):
    project.makepyfile(
        """
        from mechanisms import *

        def test_it(dp_audit):
            dp_audit(bad, neighbours=Rows(high=1.0), claim=PureDP(1.0), adjacency=AddRemove())

        def test_either_or(dp_audit):
            dp_audit(good, X, Y, neighbours=Rows(high=1.0), claim=PureDP(1.0))
        """
    )
    text = text_of(run(project))
    assert "search     of " in text
    assert re.search(r"pair       x = .*, y = .*: 1 row only in", text)
    assert "pass x and y or neighbours=, not both" in text


def test_a_hypothesis_strategy_finds_the_pair(project):
    project.makepyfile(
        """
        from hypothesis import strategies as st
        from mechanisms import *

        def test_it(dp_audit):
            rows = st.lists(st.booleans().map(float), min_size=1, max_size=3)  # few, so that all are soon drawn
            dp_audit(bad, neighbours=rows, claim=PureDP(1.0), adjacency=AddRemove())
        """
    )
    run(project).assert_outcomes(failed=1)


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
            assert dp_audit(good, X, Y, claim=PureDP(1.0)).runs == 1_200

        def test_fixed_size(dp_audit):
            assert not dp_audit(good, X, Y, claim=PureDP(1.0), sequential=False).looks
        """
    )
    project.makeini("[pytest]\ndp_audit_runs = 1_300\ndp_audit_alpha = 1e-4\n")
    result = run(project, "--dp-audit-runs=1_200")
    result.assert_outcomes(passed=3)
    assert "3 audits × alpha 0.0001" in text_of(result)
    project.runpytest_inprocess("-p", "no:hypothesispytest").assert_outcomes(passed=2, failed=1)


def test_a_resolution_sizes_the_audit(full_project):
    full_project.makepyfile(
        """
        from mechanisms import *

        def test_it(dp_audit):
            result = dp_audit(good, X, Y, claim=PureDP(1.0), resolution=0.2, sequential=False)
            assert abs(result.resolution - 0.2) < 0.01 and result.runs < 30_000
            dp_audit(good, X, Y, claim=PureDP(1.0), resolution=0.01, runs=2_000)
        """
    )
    assert "INCONCLUSIVE: too few runs for 99.999% confidence (2,000 per dataset)" in text_of(run(full_project))


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ("--dp-audit-alpha=0", "use a probability, 0 < alpha < 1"),
        ("--dp-audit-alpha=nan", "use a probability, 0 < alpha < 1"),
        ("--dp-audit-budget=2", "use a probability, 0 < budget < 1"),
        ("--dp-audit-runs=3", "use a whole number of runs, 40 or more"),
        ("--dp-audit-runs=inf", "use a whole number of runs"),
        ("--dp-audit-seed=-1", "use a whole number >= 0"),
        ("--dp-audit-seconds=soon", "use a positive number of seconds"),
        ("--dp-audit-resolution=0", "use a positive number"),
    ],
)
def test_a_wrong_option_is_an_error_at_once(project, option, rule):
    project.makepyfile(ONE_OF_EACH)
    result = run(project, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert rule in text_of(result)


@pytest.mark.parametrize("option", ["audits=-1", "alpha=2", "audits=True", "alpha='small'"])
def test_a_wrong_marker_is_an_error(project, option):
    project.makepyfile(f"import pytest\n@pytest.mark.dp_audit({option})\ndef test_it(dp_audit): pass\n")
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "use " in text_of(result)


def test_a_session_above_its_budget_is_refused(project):
    project.makepyfile(ONE_OF_EACH)
    result = run(project, "--dp-audit-alpha=0.01")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "2 tests add up to 0.02, above the error budget 0.01" in text_of(result)
    assert "--dp-audit-budget=0.02" in text_of(result)
    run(project, "--dp-audit-alpha=0.01", "--dp-audit-budget=0.02").assert_outcomes(passed=1, failed=1)


def test_what_has_a_budget_of_its_own(project):
    """A session with its workers; shards are sessions, so that each needs its part of the whole."""
    budget = "--dp-audit-budget=2e-5"
    two = "def test_one(dp_audit): dp_audit()\ndef test_two(dp_audit): dp_audit()"  # planned before it is made
    project.makepyfile(two, test_more=two)
    refused = project.runpytest_subprocess("-n", "1", "-p", "no:hypothesispytest", budget)
    refused.assert_outcomes(errors=4)
    assert "the alphas of 4 tests add up to 4e-05, above the error budget" in text_of(refused)
    assert "2e-05 of error budget 2e-05" in text_of(run(project, budget, "test_more.py"))
    assert "2e-05 of error budget 2e-05" in text_of(run(project, budget, "--ignore=test_more.py"))
    assert run(project, "--dp-audit-budget=1e-5", "test_more.py").ret == pytest.ExitCode.USAGE_ERROR


def test_the_nightly_run_of_the_page_works(project):
    """As it is written there, with fewer runs; and every option that the page names is one."""
    page = Path(__file__).parents[3] / "docs" / "how-to" / "pytest.md"
    text, known = page.read_text(encoding="utf-8"), text_of(run(project, "--help"))
    assert {option for option in re.findall(r"--dp-audit-[a-z]+", text) if option not in known} == set()
    (nightly,) = re.findall(r"- run: >-\n\s+pytest ((?:.*\n)+?)      - uses", text)
    assert "--dp-audit-seed=random" in nightly
    project.makepyfile(ONE_OF_EACH)
    result = run(project, *nightly.split())
    result.assert_outcomes(passed=1, failed=1)
    assert "2 tests, 2 audits × alpha 1e-07 = 2e-07 of error budget 2.7e-05" in text_of(result)
    assert re.search(r"dp_audit: seed \d+ \(--dp-audit-seed=\d+ repeats the draws\)", text_of(result))
    assert re.search(r"repeat     pytest .*--dp-audit-seed=\d+", text_of(result))
    assert (project.path / "audits.html").exists()


def test_audits_that_no_test_has_announced_take_what_is_left(project):
    project.makepyfile(
        """
        from mechanisms import *

        def test_it(dp_audit):
            for _ in range(4):
                dp_audit(good, X, Y, claim=PureDP(1.0), runs=700, sequential=False)
        """
    )
    run(project).assert_outcomes(passed=1)
    text = text_of(run(project, "--dp-audit-budget=3e-5"))
    assert "the rest of the error budget 3e-05 is too small for a further alpha of 1e-05" in text
    assert "3 audits; probability of any false alarm" in text


def test_a_script_shows_the_violation_alone(project):
    project.makepyfile(ONE_OF_EACH)
    run(project, "--dp-audit-scripts=alone")
    (script,) = (project.path / "alone").iterdir()
    text = script.read_text(encoding="utf-8")
    assert "dpaudit" not in text
    assert len(text.splitlines()) <= 20
    for mechanism, status in ((MECHANISMS, 1), (MECHANISMS.replace("0.5", "1.5"), 0)):  # and of a good one it says so
        project.makepyfile(mechanisms=mechanism)
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, cwd=project.path)
        assert done.returncode == status, done.stderr
        assert "standard errors beyond the claim" in done.stdout


def test_reports(project):
    project.makepyfile(ONE_OF_EACH)
    for suffix, name in (("json", "test_bad"), ("html", "test_bad"), ("md", r"test\_bad")):
        some = () if suffix == "json" else ("-k", "bad")
        run(project, f"--dp-audit-report=out/audits.{suffix}", *some)
        assert name in (project.path / "out" / f"audits.{suffix}").read_text(encoding="utf-8")
    entries = load(project.path / "out" / "audits.json").entries
    assert [entry.result.is_refuted for entry in entries] == [True, False]


def test_without_the_fixture_nothing_is_said(project):
    project.makepyfile("def test_it(): pass")
    text = text_of(run(project))
    assert "dp_audit" not in text
    assert "privacy audits" not in text


def test_skip_help_and_switching_off(project):
    project.makepyfile(ONE_OF_EACH)
    run(project, "--dp-audit-skip").assert_outcomes(skipped=2)
    assert "--dp-audit-seed" in text_of(run(project, "--help"))
    assert "dp_audit(audits=1" in text_of(run(project, "--markers"))
    result = project.runpytest_inprocess("-p", "no:hypothesispytest", "-p", "no:dpaudit")
    assert "fixture 'dp_audit' not found" in text_of(result)
    project.makepyfile("import pytest\n@pytest.mark.dp_audit(runs=100)\ndef test_it(): pass")
    run(project, "--strict-markers").assert_outcomes(passed=1)


def test_a_mechanism_with_entropy_of_its_own(project):
    project.makepyfile(
        """
        import random
        from mechanisms import *

        def own(rows):
            return len(rows) + random.choice([-1, 1]) * random.expovariate(2.0)

        def test_it(dp_audit):
            dp_audit(own, [1, 1], [1], claim=PureDP(1.0))
        """
    )
    assert "not reproducible" in text_of(run(project))


def test_other_checks_take_part(project):
    project.makepyfile(
        """
        import numpy as np
        from mechanisms import *
        from dpaudit import check_outputs, epsilon_lower

        def test_it(dp_audit):
            rng = np.random.default_rng(0)
            x, y = rng.laplace(0, 1, 20_000), rng.laplace(1, 1, 20_000)
            assert dp_audit.check(check_outputs, x, y, claim=PureDP(1.5)).alpha == 1e-5
            dp_audit.check(check_outputs, x, y, claim=PureDP(0.5))

        def test_no_check(dp_audit):
            dp_audit.check(lambda alpha: 3.0)
        """
    )
    text = text_of(run(project))
    assert "REFUTED: epsilon >= 0.9" in text
    assert "returned a float; use a check that returns" in text


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
    light = {"dpaudit.audit.errors", "dpaudit.audit.printing", "dpaudit.audit.results", "dpaudit.audit.results.result"}
    light |= {"dpaudit.audit.replay", "dpaudit.audit.replay.registered"}
    assert {name for name in loaded if name.startswith("dpaudit.audit.")} <= light
