"""The table of Google's test cases: its quick form, its sums by file, and what it says without PyDP."""

from __future__ import annotations

import sys

import pytest

from dpaudit.experiments.benchmarks.core.bench_json import Record
from dpaudit.experiments.benchmarks.core.page import Effort, document
from dpaudit.experiments.benchmarks.libraries import libraries_page
from dpaudit.experiments.benchmarks.libraries.libraries_page import ALPHA, GOOGLE, SUITE_ALPHA, needs_pydp, summary
from dpaudit.experiments.libraries.target import is_installed
from dpaudit.experiments.published.google_cases.all_cases import closeness_cases, dp_cases

(BENCH,) = GOOGLE.benches
BOUNDS = "approximate bounds: basic (bounding failure)"
LAW = "Gaussian closeness: Default parameters"


def rows_of(*only, quick=True):
    effort = Effort(is_quick=quick, jobs=1, only=frozenset(only))
    return [row for task in BENCH.tasks(effort) for row in task.measure(None)]


def test_alpha_is_shared_by_all_audits_of_right_mechanisms():
    audits = 2 * len(list(dp_cases())) + len(list(closeness_cases()))
    assert len(BENCH.names) == 296
    assert audits * ALPHA == pytest.approx(SUITE_ALPHA)


def test_a_case_without_pydp_meets_its_targets():
    (row,) = rows_of(BOUNDS)
    assert row.is_met, row
    assert (row.cells["on"], row.cells["why"]) == ("reference approximate bounds", "PyDP has no approximate bounds")
    assert (row.cells["their_samples"], row.cells["release"]) == (9_000_000, "–")


@pytest.mark.skipif(not is_installed("pydp"), reason="pydp cannot be imported")
def test_the_quick_form_meets_its_targets():
    rows = rows_of()
    assert len(rows) == 4
    assert all(row.is_met for row in rows), rows


def test_without_pydp_only_cases_of_reference_mechanisms_are_left(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydp", None)
    assert [row.cells["file"] for row in rows_of()] == ["bounded mean", "approximate bounds"]
    assert rows_of(LAW) == []
    assert sum(not needs_pydp(case) for case in dp_cases()) == 14 + 25 + 24
    assert list(GOOGLE.left_out()) == ["pydp cannot be imported: its rows are left out"]


def test_a_twin_that_is_not_found_misses_its_target(monkeypatch):
    """The wrong twin: it has all of the noise."""
    monkeypatch.setattr(libraries_page, "TWIN_SHARE", 1.0)
    right = libraries_page.noise
    monkeypatch.setattr(libraries_page, "release", lambda case: right(case, alpha=ALPHA))
    (row,) = rows_of(BOUNDS, quick=False)
    assert [target.what for target in row.targets if not target.is_met] == ["refuted twins"]


def test_sums_by_file_precede_the_cases():
    (row,) = rows_of(BOUNDS)
    record = Record().with_row("google", row)
    line = next(line for line in summary(record).splitlines() if line.startswith("| approximate bounds"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:8] == ["approximate bounds", "1", "0", "0", "0 of 1", "2,000", "2,000", "9,000,000"]
    assert cells[10:] == ["1.01 ε", "–", "–"]
    text = document(GOOGLE, record)
    assert text.index("## By file") < text.index("## Cases")
    assert summary(Record()) == ""
    assert "By file" not in document(GOOGLE, Record())


@pytest.mark.skipif(not is_installed("pydp"), reason="pydp cannot be imported")
@pytest.mark.parametrize(("share", "is_refuted"), [(1.0, False), (0.7, True)])
def test_the_law_of_noise_is_checked(share, is_refuted):
    case = next(case for case in closeness_cases() if case.key == LAW)
    found = libraries_page.closeness_check(case, share, runs=2_000, seed=1)
    assert found.is_refuted == is_refuted
