"""One command measures every page, and the page of all says what was missed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpaudit.experiments.benchmarks.all_pages import PAGES, measure_all, overview
from dpaudit.experiments.benchmarks.core.bench_json import Column, Record, Row, Target, measured_on, save_record
from dpaudit.experiments.benchmarks.core.page import Bench, Page, effort_of, once


def bench(name, value):
    def cells(effort):
        return {"value": value, "audits": effort.audits}, [Target(what="value", value=value, sense="<=", limit=2.0)]

    return Bench(
        name=name,
        title=f"Table {name}",
        method="As said.",
        columns=(Column("value", "value"), Column("audits", "audits")),
        names=(name,),
        tasks=lambda effort: iter([once(name, cells, effort)]),
    )


GOOD, BAD = Page("good", "Good", (bench("one", 1.0),)), Page("bad", "Bad", (bench("two", 2.0), bench("three", 3.0)))


@pytest.mark.parametrize(("pages", "all_met"), [([GOOD], True), ([BAD, GOOD], False)])
def test_all_pages_are_measured(tmp_path, pages, all_met):
    shown, watched = [], []
    met = measure_all(
        quick=True, resume=False, jobs=1, out=tmp_path, show=shown.append, watch=watched.append, pages=pages
    )
    assert met is all_met
    assert [path.name for path in sorted(tmp_path.glob("*.json"))] == sorted(
        f"{page.name}-quick.json" for page in pages
    )
    measured = [line for line in watched if "left out" not in line]
    assert sum("Table" in text for text in shown) == sum(len(page.benches) for page in pages) == len(measured)
    assert "Cost of an audit" in shown[-1]


def test_each_page_has_its_own_numbers(tmp_path):
    pages = [replace(GOOD, audits=7), BAD]
    for quick, wanted in ((True, (30, 30)), (False, (7, 10_000))):
        for page, audits in zip(pages, wanted, strict=True):
            assert effort_of(page, quick=quick, jobs=1).audits == audits


def test_the_page_of_all_has_every_table_and_what_was_missed(tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.experiments.benchmarks.all_pages.short_table", lambda measured: "| beside |")
    record = Record()
    for name, value, day in (("two", 2.0, "2026-01-02"), ("three", 3.0, "")):
        target = Target(what="value", value=value, sense="<=", limit=2.0)
        record = record.with_row(
            name, Row(key=name, cells={}, targets=(target,), seconds=1800.0, date=day, machine="M.")
        )
    save_record(record, tmp_path / "bad.json")
    text = overview(tmp_path, [BAD, GOOD])
    assert "| [Bad](bad.md) | Table two | 1 | 1 | 0 | 0.50 | 2026-01-02 |" in text
    assert "| [Bad](bad.md) | Table three | 1 | 1 | 1 | 0.50 | – |" in text
    assert "| [Good](good.md) | Table one | 0 | 0 | 0 | 0.00 | – |" in text
    assert "- Table three, three: value <= 2: MISSED, 3" in text
    assert text.count("M.") == 1
    assert "| beside |" in text


def test_days_are_kept():
    assert measured_on([Row(key="a", cells={})]) == []
    rows = [Row(key=day, cells={}, date=day) for day in ("2026-02-01", "2026-01-31", "")]
    assert measured_on(rows) == ["Measured on 2026-01-31 to 2026-02-01."]
    assert measured_on(rows[:1]) == ["Measured on 2026-02-01."]


def test_names_are_unique():
    for bench in (bench for page in PAGES for bench in page.benches):
        assert len(set(bench.names)) == len(bench.names) > 0
    tables = [bench.name for page in PAGES for bench in page.benches]
    files = [page.name for page in PAGES]
    assert len(set(files)) == len(files)
    assert all(tables.count(name) == 1 or name == "cost" for name in tables)
