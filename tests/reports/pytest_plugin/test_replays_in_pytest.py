"""`dp_audit.replay`, and the replay that `--dp-audit-explain` adds to a failed audit."""

from __future__ import annotations

from dpaudit import load

from .test_plugin import _loaded, full_project, project, run, text_of

pytest_plugins = ["pytester"]
__all__ = ["_loaded", "full_project", "project"]

TESTS = """
import numpy as np
import pytest
from dpaudit import Rows

def noisy_mean(rows, rng):
    count = rng.laplace(len(rows), 2.0)
    total = rng.laplace(np.clip(rows, 0, 5).sum(), 2.0)  # the noise is for rows in [0, 1]
    return {"mean": total / max(count, 1.0), "total": total}

def outside(rows, size, rng):
    return np.frombuffer(np.random.SeedSequence().generate_state(size).tobytes(), np.uint32) % 2 + len(rows)

@pytest.mark.dp_audit(audits=0)
def test_replayed(dp_audit):
    assert dp_audit.replay(noisy_mean, [0.5, 1.0], [0.5], claim=1.0).loss.epsilon == 1.0
    dp_audit.replay(noisy_mean, [0.5, 4.0], [0.5], claim=1.0, seed=7)

def test_audited(dp_audit):
    dp_audit(noisy_mean, [5.0], [], claim=1.0, output="total", runs=4_000)

def test_searched(dp_audit):
    options = {"claim": 1.0, "adjacency": "add-remove", "output": "total", "runs": 4_000, "search_runs": 1_000}
    dp_audit(noisy_mean, neighbours=Rows(high=9.0), guide="replay", **options)

def test_not_explained(dp_audit):
    dp_audit(outside, [1], [], claim=1.0, runs=4_000)
"""


def messages(session):
    """The failure messages; with CI=true pytest repeats them in its summary."""
    return "\n".join(line.removeprefix("E") for line in text_of(session).splitlines() if line.startswith("E "))


def test_a_failure_names_the_line(project):
    project.makepyfile(test_lines=TESTS)
    plain = messages(run(project, "--dp-audit-budget=3e-5"))
    found = run(project, "--dp-audit-explain", "--dp-audit-budget=3e-5")
    found.assert_outcomes(failed=4)
    shown = messages(found)
    line = "test_lines.py:7 in noisy_mean: Generator.laplace: its location moved by "
    source = "total = rng.laplace(np.clip(rows, 0, 5).sum(), 2.0)  # the noise is for rows in [0, 1]"
    assert shown.count("EXCESS: 1 finding in 2 calls, claimed 1-DP (one path; confirm with check)") == 3
    assert f"  finding: {line}4, with laplace noise of scale 2; worst-case loss 2, claimed 1" in shown
    assert shown.count(f"{line}5, with laplace noise of scale 2; worst-case loss 2.5, claimed 1") == 2
    assert shown.count(source) == 3
    assert "  seed    7" in shown
    assert "replay     OPEN: neither an excess nor a bound" in shown, "what is not recorded is said"
    assert plain.count(line) == 1, "only the replay that was asked for"
    assert "  seed    7" in plain


def test_a_report_has_the_table_of_calls(project):
    project.makepyfile(test_lines=TESTS)
    for name in ("audits.html", "audits.md", "audits.json"):
        run(project, "--dp-audit-explain", f"--dp-audit-report={name}", "-k", "test_audited or test_not_explained")
    page = (project.path / "audits.html").read_text(encoding="utf-8")
    assert page.count("<h4>Replay</h4>") == 2
    source = "total = rng.laplace(np.clip(rows, 0, 5).sum(), 2.0)  # the noise is for rows in [0, 1]"
    assert f"<bdi>test_lines.py:7 in noisy_mean</bdi><br><code>{source}</code>" in page
    assert 'class="unmet"><bdi>Generator.laplace: its location moved by 5' in page
    text = (project.path / "audits.md").read_text(encoding="utf-8")
    assert "\n    - test\\_lines.py:7 in noisy\\_mean: Generator.laplace: its location moved by 5" in text
    audited, other = load(project.path / "audits.json").entries
    assert [(row.moved, row.loss, bool(row.finding)) for row in audited.replay.rows] == [
        ("1", "0.5", False),
        ("5", "2.5", True),
    ]
    assert audited.replay.n_calls == 2
    assert other.replay.rows == ()
    assert other.replay.remarks, "what was not recorded"
