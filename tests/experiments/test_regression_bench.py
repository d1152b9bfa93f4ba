"""The benchmark of regression testing: its cases are what they say, and its quick form runs from end to end."""

from __future__ import annotations

import pytest

from dpaudit.experiments.cli import main
from dpaudit.experiments.regression_bench import REGRESSION
from dpaudit.experiments.regression_cases import BUGS, bugs, right
from dpaudit.experiments.regression_sessions import _session


def test_there_are_thirty_right_ones_and_twenty_bugs():
    assert len(right()) == 30
    assert list(bugs()) == list(BUGS)
    assert len(BUGS) == 20


def test_every_row_has_a_name_of_its_own():
    for bench in REGRESSION.benches:
        assert len(set(bench.names)) == len(bench.names) > 0


def test_a_session_says_what_its_audits_found():
    status, (found,) = _session("bugs", "['scale-epsilon']", "--dp-audit-runs=2_000")
    assert (status, found.verdict.value, found.test.rpartition("::")[2]) == (1, "refuted", "test_audit[scale-epsilon]")
    status, (found,) = _session("right", "['laplace, sequential']", "--dp-audit-runs=1_000")
    assert (status, found.runs) == (0, 1_000)


@pytest.mark.parametrize("rows", [("1e-05", "scale-epsilon", "Laplace, 2% less", "Laplace, right")])
def test_the_quick_form(rows, capsys, monkeypatch):
    options = [part for row in rows for part in ("--only", row)]
    monkeypatch.setattr(
        "sys.argv", ["dpaudit", "bench", "regression", "--quick", "--jobs", "1", "--sessions", "1", *options]
    )
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert "Red sessions over correct mechanisms" in shown
    assert "| scale-epsilon | 2 | 100% |" in shown
    assert "met" in shown
    assert "MISSED" not in shown
