"""`dp_audit.canaries`: a training run audited in a test, with the session's alpha, report and baselines."""

from __future__ import annotations

from dpaudit import load

from .test_plugin import _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

TESTS = """
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

@pytest.mark.dp_audit(accepted="known", until="2999-01-01")
def test_accepted(dp_audit):
    assert dp_audit.canaries(noise + 9.0 * included, included, claim=PureDP(1.0)).is_refuted

def test_few(dp_audit):
    dp_audit.canaries(noise[:20], included[:20], claim=PureDP(3.0))
"""


def test_a_training_run_in_a_test(project):
    project.makepyfile(test_training=TESTS)
    found = run(project, "--dp-audit-report=report.json", "--dp-audit-save=main")
    shown = text_of(found)
    found.assert_outcomes(passed=2, failed=2)
    assert "  training   forgetful training" in shown
    assert "  meaning    the claim is refuted: the training reveals more of its canaries than claimed" in shown
    assert "  meaning    the audit is inconclusive" in shown
    assert "  repeat     pytest test_training.py::test_wrong" in shown
    assert "600 canaries" in shown, "the table at the end"
    entries = {entry.name.rpartition("::")[2]: entry.result for entry in load(project.path / "report.json").entries}
    assert sorted(entries) == ["test_accepted", "test_few", "test_right", "test_wrong"]
    assert entries["test_right"].sketch is not None
    (baseline,) = (project.path / "dp_audit_baselines").glob("main.json")
    assert all(entry.result.sketch is None for entry in load(baseline).entries)
    again = run(project, "--dp-audit-compare=main", "-k", "right")
    again.assert_outcomes(passed=1)
    assert "compared with baseline main: 1 by claims and settings only" in text_of(again)
