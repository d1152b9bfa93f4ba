"""The benchmark of reports: its quick form runs from end to end, and the sample has one of each kind."""

import pytest

from dpaudit.audit.results.audit_result import AuditResult, Verdict
from dpaudit.experiments.benchmarks.reports import reports_page
from dpaudit.experiments.benchmarks.reports.reports_page import REPORTS, _sample, suite_of
from dpaudit.reports import kinds_of
from dpaudit.reports.cli.main import main


@pytest.mark.usefixtures("learned_seldom", "looked_seldom")
def test_the_quick_form_and_its_sample(capsys, monkeypatch):
    """One test, as the sample takes seconds to make and is kept; of half the runs."""
    monkeypatch.setattr(reports_page, "_RUNS", 50_000)
    assert set(REPORTS.benches[0].names) >= {"HTML", "CSV"}
    monkeypatch.setattr("sys.argv", ["dpaudit", "bench", "reports", "--quick", "--jobs", "1"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    shown = capsys.readouterr().out
    for form in REPORTS.benches[0].names:
        assert f"| {form} | 4 | " in shown
    assert "bytes <= 5e+06: met" in shown
    assert "MISSED" not in shown
    suite = _sample(1)
    has_every_verdict_and_every_kind_of_figure(suite)
    larger = suite_of(50, suite)
    assert len({entry.name for entry in larger.entries}) == len(larger.entries) == 50


def has_every_verdict_and_every_kind_of_figure(suite):
    assert all(entry.is_met for entry in suite.entries)
    assert {entry.result.verdict for entry in suite.entries} == set(Verdict)
    kinds = {kind for entry in suite.entries for kind in kinds_of(entry)} | set(kinds_of(suite))
    assert kinds >= {"outputs", "ratio", "ratios", "profile", "trade-off", "bound", "series", "points", "forest"}
    audits = [entry.result for entry in suite.entries if isinstance(entry.result, AuditResult)]
    assert any(result.low_bits for result in audits)
    assert any(result.findings for result in audits)
    assert any(entry.accepted for entry in suite.entries)
