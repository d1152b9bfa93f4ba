"""`dp_audit.check` with `check_sensitivity`: it fails with the pair, and costs no alpha."""

from __future__ import annotations

from .test_plugin import _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

TESTS = """
from dpaudit import LaplaceNoise, Rows, check_noise, check_sensitivity
from mechanisms import good

WIDE = Rows(low=-5.0, high=5.0, finite=True)

def clipped_sum(rows):
    return sum(min(max(row, -1.0), 1.0) for row in rows)

def test_right(dp_audit):
    for _ in range(9):
        result = dp_audit.check(check_sensitivity, clipped_sum, WIDE, adjacency="replace", bound=2.0, evaluations=200)
    assert result.seed > 0 and result.seed != 7

def test_wrong(dp_audit):
    dp_audit.check(check_sensitivity, clipped_sum, WIDE, adjacency="replace", bound=1.0, evaluations=200, seed=7)

def test_unsteady(dp_audit):
    calls = []
    def query(rows):
        calls.append(rows)
        return len(calls)
    dp_audit.check(check_sensitivity, query, WIDE, adjacency="replace", bound=1.0, evaluations=200)

def test_a_check_behind_another_function(dp_audit):
    def noise(rows):
        return check_noise(good, rows, noise=LaplaceNoise(scale=1.0), answer=len, runs=2_000, alpha=1e-5)
    dp_audit.check(noise, [1, 1])
    dp_audit.check(noise, [1, 1])
"""


def test_sensitivities_cost_no_alpha(project):
    project.makepyfile(test_sensitivities=TESTS)
    found = run(project, "--dp-audit-budget=4e-5")
    shown = text_of(found)
    assert "REFUTED: the l1 sensitivity is at least 2, stated 1; x = [-5.0], y = [5.0]" in shown
    assert "  seed    7" in shown
    assert "INCONCLUSIVE: the query is not deterministic: 1.0, then 2.0" in shown
    assert "the rest of the error budget 4e-05 is too small for a further alpha of 1e-05" in shown
    found.assert_outcomes(passed=1, failed=3)
