"""`dpaudit audit --exact`: exit statuses, what it prints, and its report."""

import pytest

from dpaudit import load

BITS = ["--x", "0", "--y", "1"]


@pytest.fixture
def audited(run):
    return lambda name, *options: run("audit", f"mine:{name}", "--exact", *options)


def test_the_exit_status_is_that_of_the_verdict(audited):
    status, out, _ = audited("respond", *BITS, "--epsilon", "1.1")
    assert (status, out.splitlines()[0]) == (0, "VERIFIED  respond: 1.1-DP holds on this pair for ideal coins")
    status, out, _ = audited("respond", "--search", "mine:bits", "--adjacency", "local", "--epsilon", "1")
    assert (status, out[:7]) == (1, "REFUTED")
    status, out, _ = audited("walk", *BITS, "--epsilon", "1", "--delta", "0.34", "--seconds", "0.000001")
    assert (status, out[:12]) == (3, "UNDETERMINED")
    assert "next: " in out
    status, _, err = audited("single", "--x", "[1]", "--y", "[]", "--epsilon", "1")
    assert status == 2
    assert "draws from laplace" in err
    assert "mine.py:23 in single" in err


def test_options_of_sampling_are_refused(audited):
    for option in (["--runs", "1000"], ["--bins", "8"], ["--sequential"], ["--guide", "replay"], ["--resume"]):
        status, _, err = audited("respond", *BITS, "--epsilon", "1", *option)
        assert (status, option[0] in err) == (2, True), err


def test_the_report_has_the_table_and_the_curve(audited, tmp_path):
    status, out, _ = audited("respond", *BITS, "--epsilon", "1", "--out", "report")
    assert (status, "results: report/results.json" in out) == (1, True)
    assert load(tmp_path / "report" / "results.json").checks[0].exact.n_outputs == 2
    assert "Privacy profile" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
