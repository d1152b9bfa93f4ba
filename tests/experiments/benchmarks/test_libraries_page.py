"""The benchmark of the libraries that people use: its rows, its targets, and what it says without the libraries."""

from __future__ import annotations

import sys

import pytest

from dpaudit import Answers, Within
from dpaudit.audit.errors import OptionError
from dpaudit.experiments.benchmarks.core.page import Effort
from dpaudit.experiments.benchmarks.libraries import libraries_page
from dpaudit.experiments.benchmarks.libraries.libraries_page import LIBRARIES
from dpaudit.experiments.libraries.defects import Defect, Searched
from dpaudit.experiments.libraries.target import Subject, is_installed
from dpaudit.mechanisms import LaplaceMechanism

BENCHES = {bench.name: bench for bench in LIBRARIES.benches}
QUICK = Effort(is_quick=True, jobs=1)


def rows_of(name, effort=QUICK):
    return [row for task in BENCHES[name].tasks(effort) for row in task.measure(None)]


def test_every_mechanism_of_diffprivlib_has_a_row():
    assert len(BENCHES["diffprivlib"].names) == 21


@pytest.mark.parametrize("library", ["opendp", "diffprivlib", "pydp"])
def test_the_quick_form_meets_its_targets(library):
    if not is_installed(library):
        pytest.skip(f"{library} cannot be imported")
    rows = rows_of(library)
    assert len(rows) >= 2
    for row in rows:
        assert all(target.is_met for target in row.targets), row
        assert row.cells["refuted"] == 0


def test_a_defect_is_found_and_its_twin_is_not():
    name = "private_mean of DP-Auditorium, by its definition"
    (row,) = rows_of("defects", Effort(is_quick=True, jobs=1, only=frozenset({name})))
    assert all(target.is_met for target in row.targets), row
    assert (row.cells["refuted"], row.cells["twin_refuted"]) == (1, 0)


def test_a_guided_search_finds_it_in_a_tenth_of_the_executions():
    """Its noise is not handed the data, and decides by its sign, so no line is at fault."""
    (row,) = rows_of("guided")
    assert all(target.is_met for target in row.targets), row
    assert (row.cells["few"], row.cells["executions"]) == (2_000, 20_000)
    assert (row.cells["searches"], row.cells["excess"], row.cells["line"]) == (1, 0, "none")


@pytest.mark.parametrize("library", ["opendp", "diffprivlib", "pydp"])
def test_a_library_that_is_missing_is_left_out_or_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    assert rows_of(library) == []
    only = Effort(is_quick=True, jobs=1, only=frozenset(BENCHES[library].names[:1]))
    with pytest.raises(OptionError, match=f"{library} cannot be imported"):
        rows_of(library, only)


def test_targets_are_missed_where_they_should_be(monkeypatch):
    """The wrong twins: a subject that breaks its claim, a defect that is none."""
    broken = Subject(name="broken", make=lambda: LaplaceMechanism(1.0, sensitivity=0.5), pair=(0.0, 1.0), runs=5_000)
    monkeypatch.setitem(libraries_page._SUBJECTS, "opendp", lambda: [broken])
    cells, targets = libraries_page._library_cells("opendp", "broken", 0, QUICK)
    assert cells["refuted"] == 1
    assert not targets[0].is_met
    sound = Searched(
        words="sound",
        make=lambda: LaplaceMechanism(1.0),
        domain=Answers(),
        adjacency=Within("l1"),
        runs=2_000,
        search_runs=400,
    )
    none = Defect(name="none", library="", by="values", broken=sound, twin=sound)
    monkeypatch.setattr(libraries_page, "defects", lambda: [none])
    assert not libraries_page._defect_cells("none", 0, QUICK)[1][0].is_met
