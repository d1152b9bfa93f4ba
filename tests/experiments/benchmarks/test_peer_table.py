"""The comparison with other testers says what the records say, and its page is up to date."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpaudit.audit.errors import RecordError
from dpaudit.experiments.benchmarks.core.bench_json import Record
from dpaudit.experiments.benchmarks.peers.peer_table import STATDP_TRIALS, Measured, peer_page, short_table
from dpaudit.experiments.published.dp_sniper import PUBLISHED
from dpaudit.reports.cli.commands import app

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def measured():
    return Measured.read(ROOT / "docs" / "benchmarks")


def changed(measured: Measured, table: str, key: str, **cells: object) -> Measured:
    """The records with other figures in one row."""
    row = measured.detection.tables[table][key]
    return replace(measured, detection=measured.detection.with_row(table, replace(row, cells={**row.cells, **cells})))


def test_the_page_is_up_to_date(measured):
    """`dpaudit bench peers --out docs/benchmarks/peers.md` writes it."""
    assert (ROOT / "docs" / "benchmarks" / "peers.md").read_text(encoding="utf-8") == peer_page(measured)


def test_the_table_is_short_and_whole(measured):
    lines = short_table(measured).splitlines()
    assert len(lines) == 2 + 9
    assert {line.count(" | ") for line in lines} == {2}


def test_who_is_ahead_follows_from_the_records(measured):
    """A lower bound of ours is no longer ahead, and a wrong verdict is counted as one."""
    name = next(
        name for name, row in measured.detection.tables["dp-sniper"].items() if "dpaudit" in ahead(measured, name)
    )
    behind = changed(measured, "dp-sniper", name, expected=0.5 * float(PUBLISHED[name][0] or 0))
    assert "others" in ahead(behind, name)
    assert number_above(behind) == number_above(measured) - 1
    wrong = changed(measured, "suites", "iSVT3", verdict="not refuted")
    assert f"{len(STATDP_TRIALS)} of {len(STATDP_TRIALS)} right at" in short_table(measured)
    assert f"{len(STATDP_TRIALS) - 1} of {len(STATDP_TRIALS)} right at" in short_table(wrong)


def ahead(measured: Measured, name: str) -> str:
    """The last cell of a mechanism's row."""
    line = next(line for line in peer_page(measured).splitlines() if line.startswith(f"| {name} "))
    return line.split("|")[-2]


def number_above(measured: Measured) -> int:
    """How many published bounds are said to be exceeded."""
    return int(short_table(measured).split("above the best published bound on ")[1].split(",")[0])


def test_every_published_mechanism_is_in_the_page(measured):
    page = peer_page(measured)
    assert all(f"| {name} | " in page for name in [*PUBLISHED, *STATDP_TRIALS])


def test_records_without_a_table_are_refused(measured):
    with pytest.raises(RecordError, match="table 'tightness'"):
        short_table(replace(measured, inference=Record()))
    kept = {name: rows for name, rows in measured.detection.tables["leaks"].items() if name != "naive Laplace"}
    tables = {**measured.detection.tables, "leaks": kept}
    with pytest.raises(RecordError, match="rows naive Laplace of 'leaks'"):
        short_table(replace(measured, detection=Record(tables)))


def test_the_command_writes_the_page(tmp_path, measured):
    page = tmp_path / "peers.md"
    arguments = ["bench", "peers", "--records", str(ROOT / "docs" / "benchmarks"), "--out", str(page)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert page.read_text(encoding="utf-8") == peer_page(measured)
