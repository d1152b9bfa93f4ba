"""Ways in which a test session could be green for no reason, or red for none. Seeds follow from names."""

from __future__ import annotations

import re

import pytest

from dpaudit import load

from .test_baselines import ONLY_BAD
from .test_plugin import ONE_OF_EACH, _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

TWO_FILES = {
    "test_a": """
from mechanisms import *

def test_one(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(1.0), runs=700, sequential=False)
""",
    "test_b": """
from mechanisms import *

def test_two(dp_audit):
    dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)
""",
}


def baseline(project):
    return project.path / "dp_audit_baselines" / "main.json"


def names(project):
    return [entry.name for entry in load(baseline(project)).entries]


def test_saving_a_part_keeps_the_rest(project):
    project.makepyfile(**TWO_FILES)
    run(project, "--dp-audit-save=main")
    result = run(project, "test_b.py", "--dp-audit-save=main")
    assert "1 from this session (0 new), 1 kept" in text_of(result)
    run(project, "-k", "one", "--dp-audit-save=main")
    assert names(project) == ["test_a.py::test_one", "test_b.py::test_two"]
    # A test that failed before its audit is not gone; one that is gone goes, where all is green.
    project.makepyfile(test_b=TWO_FILES["test_b"].replace("    dp_audit", "    assert False\n    dp_audit"))
    run(project, "--dp-audit-save=main")
    assert len(names(project)) == 2
    project.makepyfile(test_b="def test_three(): pass")
    assert "1 removed" in text_of(run(project, "--dp-audit-save=main"))
    assert names(project) == ["test_a.py::test_one"]


def test_tests_left_out_are_not_missed(project):
    project.makepyfile(**TWO_FILES)
    run(project, "--dp-audit-save=main")
    for options in (["--ignore=test_b.py"], ["--dp-audit-skip"], ["-k", "one"]):
        assert run(project, "--dp-audit-compare=main", *options).ret == pytest.ExitCode.OK, options
    project.makepyfile(
        test_b=TWO_FILES["test_b"].replace("def", "import pytest\n@pytest.mark.skipif(True, reason='')\ndef")
    )
    assert run(project, "--dp-audit-compare=main").ret == pytest.ExitCode.OK


def test_a_baseline_of_other_tests_is_no_pass(project):
    project.makepyfile(**TWO_FILES)
    run(project, "test_a.py", "--dp-audit-save=main")
    result = run(project, "test_b.py", "--dp-audit-compare=main")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "baseline main has no audit of this session, so nothing was compared" in text_of(result)


def test_a_baseline_without_counts_is_no_pass(project):
    project.makepyfile(**TWO_FILES)
    run(project, f"--dp-audit-report={baseline(project)}")
    result = run(project, "--dp-audit-compare=main")
    result.assert_outcomes(failed=2)
    assert "nothing to compare" in text_of(result)


@pytest.mark.parametrize("option", ["save", "compare"])
@pytest.mark.parametrize("name", ["../../main", "/main", "a//main", "..", "C:\\main", "..\\main"])
def test_a_baseline_that_would_leave_its_folder_is_refused(project, option, name):
    project.makepyfile(**TWO_FILES)
    result = run(project, f"--dp-audit-{option}={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "would not lie in" in text_of(result)


def test_a_baseline_in_a_folder_of_the_baselines_stays_there(project):
    project.makepyfile(**TWO_FILES)
    run(project, "--dp-audit-save=linux/main").assert_outcomes(passed=2)
    assert (project.path / "dp_audit_baselines" / "linux" / "main.json").is_file()
    run(project, "--dp-audit-compare=linux/main").assert_outcomes(passed=2)


def test_what_was_compared_is_said(project):
    project.makepyfile(**TWO_FILES)
    run(project, "--dp-audit-save=main")
    project.makepyfile(test_c=TWO_FILES["test_a"])
    text = text_of(run(project, "--dp-audit-compare=main"))
    assert "compared with baseline main: 2 by counts, 1 new" in text
    assert (
        "3 tests, 3 audits × alpha 2e-05 = 6e-05 of error budget 0.01 (half of each alpha for the comparison)" in text
    )


RUN_TWICE = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
AGAIN = "failed earlier in this session; a rerun does not audit again"


def test_a_rerun_is_no_second_chance(project):
    project.makepyfile(ONE_OF_EACH)
    project.makeconftest(RUN_TWICE)
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    assert AGAIN in text_of(result)


@pytest.mark.parametrize(
    ("first", "said"),
    [("bad", "DIFFERENT: total variation distance at least"), ("few", "INCONCLUSIVE")],
)
def test_nor_is_it_where_two_versions_were_not_shown_to_be_equivalent(project, first, said):
    """The second run has versions that are the same, and enough runs: it would pass if it were made."""
    project.makepyfile(
        f"""
        from mechanisms import *
        from dpaudit import check_equivalence

        CALLS = []

        def test_versions(dp_audit):
            CALLS.append("{first}" if not CALLS else "good")
            new, runs = (bad if CALLS[-1] == "bad" else good), (200 if CALLS[-1] == "few" else 20_000)
            dp_audit.check(check_equivalence, good, new, X, margin=0.2, runs=runs)

        def test_the_second_run_alone(dp_audit):
            dp_audit.check(check_equivalence, good, good, X, margin=0.2, runs=20_000)
        """
    )
    project.makeconftest(RUN_TWICE)
    result = run(project, "--dp-audit-budget=0.1")
    result.assert_outcomes(passed=1, failed=1)
    assert AGAIN in text_of(result)
    assert said in text_of(result)


def test_a_check_that_passed_may_be_made_again(project):
    """A rerun because of something else: the same draws, the same result."""
    project.makepyfile(
        """
        from mechanisms import *
        from dpaudit import check_equivalence

        CALLS = []

        def test_versions(dp_audit):
            dp_audit.check(check_equivalence, good, good, X, margin=0.2, runs=20_000)
            CALLS.append(1)
            assert len(CALLS) == 2
        """
    )
    project.makeconftest(RUN_TWICE)
    run(project).assert_outcomes(passed=1)


def test_a_test_without_an_audit_is_no_pass(project):
    project.makepyfile(
        """
        import pytest

        def test_nothing(dp_audit):
            pass

        def test_skipped(dp_audit):
            pytest.skip()
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, skipped=1, errors=1)
    assert "requests dp_audit and makes no audit" in text_of(result)


def test_alpha_hidden_in_a_wrapper_is_charged(project):
    project.makepyfile(
        """
        from mechanisms import *
        from dpaudit import LaplaceNoise, check_noise

        def test_hidden(dp_audit):
            noise = LaplaceNoise(1.0)
            dp_audit.check(lambda: check_noise(good, X, noise=noise, answer=3.0, runs=500, alpha=0.05))

        def test_passed_on(dp_audit):
            def wrapper(*arguments, **options):
                return check_noise(*arguments, **options)
            result = dp_audit.check(wrapper, good, X, noise=LaplaceNoise(1.0), answer=3.0, runs=500)
            assert result.alpha == 1e-5 and result.seed > 0
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    assert "the rest of the error budget 0.01 is too small for a further alpha" in text_of(result)


def test_versions_are_compared_by_the_fixture(project):
    project.makepyfile(
        """
        from mechanisms import *
        from dpaudit import check_equivalence, check_same_distribution

        def test_same(dp_audit):
            dp_audit.check(check_same_distribution, good, good, X, runs=5_000)
            dp_audit.check(check_equivalence, good, good, X, margin=0.2, runs=20_000)

        def test_other(dp_audit):
            dp_audit.check(check_equivalence, good, bad, X, margin=0.05, runs=20_000)
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    assert "DIFFERENT: total variation distance at least" in text_of(result)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("dp_audit(good, claim=PureDP(1.0))", "the audit needs a pair of datasets; pass x and y, or neighbours="),
        (
            "dp_audit(good, X, Y, claim=PureDP(1.0), run=1000)",
            "run is not an option of dp_audit; did you mean",
        ),
    ],
)
def test_what_is_forgotten_or_misspelt_is_said(project, call, words):
    project.makepyfile(f"from mechanisms import *\ndef test_it(dp_audit):\n    {call}\n")
    assert words in text_of(run(project))


def test_what_must_not_be_missed_is_in_the_summary(project):
    project.makepyfile(
        """
        from mechanisms import *

        def test_textbook(dp_audit):
            dp_audit(lambda answer, size, rng: answer + rng.laplace(size=size), 1.0, 0.0, claim=PureDP(1.0))
        """
    )
    result = run(project, "--dp-audit-runs=50_000")
    result.assert_outcomes(passed=1)
    assert "::test_textbook: the low bits break" in text_of(result)


def test_what_a_test_patches_is_audited(project):
    """A looped mechanism in worker processes would be imported there as it is in its file."""
    project.makepyfile(looped="SCALE = 1.0\ndef noisy(answer, rng):\n    return answer + rng.laplace(scale=SCALE)\n")
    project.makepyfile(
        """
        import looped
        from mechanisms import *

        def test_it(dp_audit, monkeypatch):
            monkeypatch.setattr(looped, "SCALE", 0.2)
            dp_audit(looped.noisy, 1.0, 0.0, claim=PureDP(1.0))
        """
    )
    run(project).assert_outcomes(failed=1)


def test_an_accepted_finding_has_a_limit(project):
    marked = "@pytest.mark.dp_audit(accepted='known', until='2999-01-01', up_to={})\ndef test_bad"
    for limit, outcome in (("3.0", {"passed": 2}), ("1.0", {"passed": 1, "failed": 1})):
        project.makepyfile("import pytest\n" + ONE_OF_EACH.replace("def test_bad", marked.format(limit)))
        run(project).assert_outcomes(**outcome)


def test_the_limit_is_one_of_the_loss(project):
    """The bound of a sequential audit would lie just above the claim, however large the loss is."""
    marked = "@pytest.mark.dp_audit(accepted='known', until='2999-01-01', up_to={})\ndef test_bad"
    project.makepyfile("import pytest\n" + ONLY_BAD.replace("def test_bad", marked.format("1.3")))
    result = run(project, "--dp-audit-seconds=60")
    result.assert_outcomes(failed=1)
    assert re.search(r"acceptance accepted up to 1.3 until 2999-01-01: known; the bound >= 1\.[4-9]", text_of(result))
    assert "refuted, acceptance: bound above the accepted one" in text_of(result)
    sequential = "claim=PureDP(1.0), sequential=True"
    for change, words in (
        (("claim=PureDP(1.0)", sequential), "sequential=True stops the audit as soon as its bound exceeds the claim"),
        (("accepted='known', ", ""), "needs accepted= and until="),
        (("up_to=1.3", "up_to='a'"), "up_to='a' is not a number"),
    ):
        project.makepyfile("import pytest\n" + ONLY_BAD.replace("def test_bad", marked.format("1.3")).replace(*change))
        assert words in text_of(run(project))


def test_alphas_of_audits_without_a_row_are_counted(project):
    project.makepyfile(
        """
        from mechanisms import *
        from dpaudit import check_equivalence

        def crash(rows, rng):
            raise KeyError("age")

        def test_crash(dp_audit):
            dp_audit(crash, X, Y, claim=PureDP(1.0))

        def test_equal(dp_audit):
            dp_audit.check(check_equivalence, good, good, X, margin=0.5, runs=2_000)

        def test_two(dp_audit):
            dp_audit(good, X, Y, claim=PureDP(1.0), runs=700, sequential=False)
            dp_audit(good, X, Y, claim=PureDP(2.0), runs=700, sequential=False)
        """
    )
    result = run(project)
    result.assert_outcomes(passed=2, failed=1)
    assert (
        "2 audits, 2 more outside the table (checks without a row, audits that raised an error or ran again); "
        "probability of any false alarm at most 4e-05, error budget 0.01"
    ) in text_of(result)
    assert "\n2 audits; probability of any false alarm at most 2e-05" in text_of(run(project, "-k", "two"))
    assert "\n1 outside the table (" in text_of(run(project, "-k", "equal"))


def test_an_acceptance_that_is_no_longer_needed_is_told(project):
    marked = "@pytest.mark.dp_audit(accepted='known', until='2999-01-01')\ndef test_good"
    project.makepyfile("import pytest\n" + ONE_OF_EACH.replace("def test_good", marked))
    result = run(project, "-k", "good")
    result.assert_outcomes(passed=1)
    assert "no longer refuted, so the acceptance can be withdrawn" in text_of(result)


@pytest.mark.parametrize("name", ["r.txt", "r"])
def test_a_report_of_unknown_kind_is_refused(project, name):
    project.makepyfile(ONE_OF_EACH)
    result = run(project, f"--dp-audit-report={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ends in .json, .html or .md" in text_of(result)
