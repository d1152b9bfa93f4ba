"""The summary is what the JSON files say, and names what they miss."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from dpaudit.audit.errors import RecordError
from dpaudit.experiments.benchmarks.command import FILES, tables_of
from dpaudit.experiments.benchmarks.measure import at_most
from dpaudit.experiments.benchmarks.summary import Measured, figures, misses, summary

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "benchmarks"


@pytest.fixture
def measured():
    return Measured(FOLDER)


def test_the_page_is_up_to_date():
    """`dpaudit bench summary --out docs/benchmarks/index.md` writes it."""
    assert (FOLDER / "index.md").read_text(encoding="utf-8") == summary(FOLDER)


def test_every_table_has_rows_in_the_files_and_no_other(measured):
    tables = {table.name: table for name in FILES for table in tables_of(name)}
    assert set(measured.tables) == {*tables, "fuzz"}
    for name, table in tables.items():
        assert set(measured.tables[name]) <= set(table.rows), name


def test_who_is_ahead_follows_from_the_records(measured):
    """A lower bound of ours falls behind, a verdict is wrong, and a target is missed."""
    before, ahead = misses(measured), figures(measured)["sniper_above"]
    measured.tables = deepcopy(measured.tables)
    bound = measured.tables["dp-sniper"]["PrefixSum"]["cells"]
    assert bound["expected"] > bound["published"]
    bound["expected"] = 0.5 * bound["published"]
    measured.tables["suites"]["iSVT3"]["cells"]["verdict"] = "not refuted"
    measured.tables["planted"]["scale-epsilon"]["targets"].append(at_most("runs", 7, 5))
    new = [line for line in misses(measured) if line not in before]
    assert [line.split(",")[0].split(":")[0] for line in new] == ["planted", "suites", "dp-sniper"]
    assert "iSVT3 (not refuted)" in new[1]
    assert "PrefixSum" in new[2]
    changed = figures(measured)
    assert (changed["sniper_above"], changed["statdp_right"]) == (ahead - 1, changed["statdp_count"] - 1)


def test_records_without_a_table_or_a_row_are_refused(measured):
    del measured.tables["sizes"], measured.tables["leaks"]["naive Laplace"]
    with pytest.raises(RecordError, match="rows naive Laplace of 'leaks'"):
        figures(measured)
    with pytest.raises(RecordError, match="table 'sizes'"):
        measured.rows("sizes")
