"""The benchmark of record and replay: its quick forms, its rows, and what it says without the libraries."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from dpaudit import Within
from dpaudit.experiments.benchmarks.core.page import Effort
from dpaudit.experiments.benchmarks.replays import noise_sources, replays_page
from dpaudit.experiments.benchmarks.replays.replays_page import REPLAYS, verdicts
from dpaudit.experiments.libraries.diffprivlib_fits import diffprivlib_fits
from dpaudit.experiments.libraries.target import is_installed
from dpaudit.mechanisms import LaplaceMechanism

BENCHES = {bench.name: bench for bench in REPLAYS.benches}
WRONG = LaplaceMechanism(1.0, sensitivity=0.5)


def rows_of(name, *only):
    effort = Effort(is_quick=True, jobs=1, only=frozenset(only))
    return [row for task in BENCHES[name].tasks(effort) for row in task.measure(None)]


@pytest.mark.parametrize(
    ("table", "library", "name"),
    [
        ("false-findings", "", "LaplaceMechanism"),
        ("false-findings", "", "SparseVector"),
        ("composites", "", "catalogue: scale-epsilon"),
        ("composites", "diffprivlib", "mean"),
        ("composites", "pydp", "Count"),
    ],
)
def test_the_quick_form_meets_its_targets(table, library, name):
    if library and not is_installed(library):
        pytest.skip(f"{library} cannot be imported")
    (row,) = rows_of(table, name)
    assert row.targets
    assert row.is_met, row


def test_a_false_finding_misses_its_target(monkeypatch):
    """The wrong twin: a mechanism that breaks its claim, among those that keep it."""
    monkeypatch.setitem(replays_page.REFERENCES, "LaplaceMechanism", (WRONG, lambda rng: (0.0, 1.0)))
    (row,) = rows_of("false-findings", "LaplaceMechanism")
    assert (row.cells["excess"], row.cells["bounded"], row.is_met) == (3, 0, False)


def test_more_pairs_are_added_to_a_former_row():
    (task,) = BENCHES["false-findings"].tasks(Effort(jobs=1, audits=2, only=frozenset({"RandomisedResponse"})))
    *_, former = task.measure(None)
    (more,) = BENCHES["false-findings"].tasks(Effort(jobs=1, audits=3, only=frozenset({"RandomisedResponse"})))
    *_, row = more.measure(former)
    assert (former.cells["pairs"], row.cells["pairs"], row.cells["bounded"]) == (2, 3, 3)


def test_an_excess_of_a_right_twin_misses_its_target(monkeypatch):
    side = replays_page.Side(make=lambda: WRONG, pair=(0.0, 1.0), adjacency=Within("l1"))
    monkeypatch.setattr(replays_page, "composites", lambda: (replays_page.Composite(name="none", right=side),))
    cells, targets = replays_page._composite_cells(Effort(is_quick=True, jobs=1), 0, "none")
    assert (cells["right_excess"], targets[0].is_met) == (1, False)
    assert (cells["call"], cells["moved"], cells["wrong_pairs"]) == ("laplace_on_grid", "1", None)


def test_what_raises_on_both_is_counted():
    def broken(rows, rng):
        raise ValueError("no rows")

    assert verdicts(broken, [([1], [])], 0, claim=1.0) == (0, 0, 0, 1, None, "raised")


def test_names_of_models_are_unique_and_their_rows_fit():
    fits = diffprivlib_fits()
    assert len({fit.name for fit in fits}) == len(fits) > 20
    assert {fit.name.partition(",")[0] for fit in fits} == {
        "LinearRegression", "LogisticRegression", "GaussianNB", "PCA", "StandardScaler", "KMeans",
        "DecisionTreeClassifier", "RandomForestClassifier",
    }  # fmt: skip
    for fit in fits:
        assert isinstance(fit.domain.corners()[0], tuple)


def test_rows_of_a_missing_library_are_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    assert rows_of("composites", "mean") == []
    assert any("diffprivlib cannot be imported" in line for line in REPLAYS.left_out())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of scipy, about what diffprivlib passes to it
def test_the_findings_say_what_replay_names(capsys):
    """A block of a page that needs diffprivlib, and takes a tenth of a second for each defect."""
    pytest.importorskip("diffprivlib", reason="diffprivlib cannot be imported")
    page = (Path(__file__).resolve().parents[3] / "docs" / "findings.md").read_text(encoding="utf-8")
    found = re.search(r"## What replay names.*?```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    exec(found[1], {"__name__": "__main__"})
    assert capsys.readouterr().out == found[2]


def test_programs_of_shared_noise_and_their_correct_variants(monkeypatch, capsys):
    """The first six of the table; and a program that is wrongly marked as faulty is a false verdict."""
    monkeypatch.setattr(sys, "argv", ["noise_sources", "400"])
    monkeypatch.setattr(noise_sources, "PROGRAMS", noise_sources.PROGRAMS[:6])
    assert noise_sources.main() == 0
    assert "6 programs, 3 correct: 0 false verdicts, 2 correct ones bounded" in capsys.readouterr().out
    marked = [each._replace(is_correct=False) for each in noise_sources.PROGRAMS[1:2]]
    monkeypatch.setattr(noise_sources, "PROGRAMS", marked)
    assert noise_sources.main() == 1
