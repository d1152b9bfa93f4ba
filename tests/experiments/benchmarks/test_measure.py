"""Rows are measured, kept, continued and judged; the summary and the gallery are what the commands write."""

import itertools
import json
import math
import re
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest

from dpaudit.audit.errors import OptionError, RecordError, UnknownNameError
from dpaudit.experiments.benchmarks.command import FILES, tables_of
from dpaudit.experiments.benchmarks.gallery import NAMES, exhibit, section
from dpaudit.experiments.benchmarks.measure import (
    Effort,
    Table,
    at_least,
    at_most,
    certainly_at_least,
    certainly_at_most,
    is_met,
    load_record,
    measure,
    save_record,
)
from dpaudit.experiments.benchmarks.summary import Measured, figures, misses, summary
from dpaudit.reports.cli.main import main


def even(effort, seeds):
    return Counter(audits=len(seeds), even=sum(seed % 2 == 0 for seed in seeds))


GROWING = Table(
    name="growing",
    number=90,
    rows={"all": ()},
    count=even,
    measure=lambda effort, counts: ({**counts, "share": counts["even"] / counts["audits"]}, []),
    counts=("audits", "even"),
    batch=3,
)
ONCE = Table(
    name="once",
    number=91,
    rows={"two": (2.0,), "one": (1.0,), "of a library": (0.0,)},
    measure=lambda effort, seeds, value: ({"value": value, "first": seeds(1)[0]}, [at_most("value", value, 1.5)]),
    quick=("one",),
    library=lambda value: "" if value else "none_of_this_name",
)
QUICK = Effort(is_quick=True)


def run(*tables, effort=QUICK, **options):
    lines = []
    return measure(tables, effort, tell=lines.append, **options), lines


def test_a_row_is_measured_written_and_judged(tmp_path):
    file = tmp_path / "r.json"
    met, lines = run(ONCE, effort=Effort(), file=file)
    assert not met
    assert [line.partition(" (")[0] for line in lines[:2]] == ["once: two", "once: one"]
    assert lines[0].endswith("MISSED: value 2, target <= 1.5")
    assert lines[2] == "none_of_this_name cannot be imported: its rows are left out"
    assert load_record(file)["once"]["two"]["cells"]["value"] == 2.0
    assert run(ONCE)[0]  # the quick form has the first row only
    assert len(run(ONCE, effort=Effort(), file=file, resume=True)[1]) == 1, "complete rows are kept"
    assert not run(ONCE, effort=Effort(), file=file, resume=True)[0], "and still miss their targets"


def test_a_row_that_is_continued_is_the_row_of_one_go(tmp_path):
    def grown(file, audits, **options):
        run(GROWING, effort=Effort(audits=audits), file=tmp_path / file, **options)
        return load_record(tmp_path / file)["growing"]["all"]

    whole = grown("whole", 8)
    assert grown("parts", 5)["cells"]["audits"] == 5
    assert grown("parts", 8, resume=True)["cells"] == whole["cells"] == {"audits": 8, "even": 4, "share": 0.5}
    assert grown("parts", 8, resume=True)["cells"] == whole["cells"], "nothing is left to do"
    assert grown("parts", 5)["cells"]["audits"] == 5, "without --resume it starts again"


def test_rows_are_chosen_by_a_part_of_their_name():
    assert len(run(ONCE, only=["tw"])[1]) == 1
    with pytest.raises(UnknownNameError, match="'tow' is in no row"):
        run(ONCE, only=["tow"])
    with pytest.raises(OptionError, match="none_of_this_name cannot be imported; install it to measure 'of a library'"):
        run(ONCE, only=["library"])
    with pytest.raises(OptionError, match="nothing to continue"):
        run(ONCE, resume=True)
    for sizes in ({"audits": 0, "jobs": 1}, {"audits": None, "jobs": 0}):
        with pytest.raises(OptionError):
            Effort.of(quick=False, **sizes)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (at_most("a", 1.0, 1.0), True),
        (at_least("a", 0.9, 1.0), False),
        (at_most("a", math.nan, 1.0), False),
        (certainly_at_most("a", 5, 50, 0.05), True),  # chance may do that
        (certainly_at_most("a", 20, 50, 0.05), False),
        (certainly_at_least("a", 45, 50, 0.95), True),
        (certainly_at_least("a", 30, 50, 0.95), False),
    ],
)
def test_targets(target, expected):
    assert is_met(target) is expected


def test_a_record_survives_the_way_to_a_file(tmp_path):
    path = tmp_path / "r.json"
    assert load_record(path) == {}
    run(ONCE, file=path)
    record = load_record(path)
    record["once"]["one"]["cells"] |= {"most": math.inf, "none": None}
    save_record(record, path)
    assert load_record(path) == record
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 2, "tables": {}}', '{"schema": 1}'])
def test_a_file_that_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(RecordError, match="is not a record of a benchmark"):
        load_record(tmp_path / "r.json")


def test_tables_have_names_seeds_and_quick_rows_of_their_own():
    tables = [table for name in FILES for table in tables_of(name)]
    assert len({table.name for table in tables}) == len({table.number for table in tables}) == len(tables)
    for table in tables:
        assert table.rows
        assert set(table.quick) <= set(table.rows), table.name
        assert len(table.rows) <= 1_000, "the seeds of a table reach into the next"
    starts = sorted((100 * table.number + place) for table in tables for place in range(min(len(table.rows), 100)))
    assert all(one < other for one, other in itertools.pairwise(starts))


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["dpaudit", "bench", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, *capsys.readouterr()


def test_the_command_measures_the_rows_that_it_is_asked_for(tmp_path, monkeypatch, capsys):
    chosen = ("--table", "sizes", "--only", "pure, 0.05", "--quick", "--jobs", "1", "--out", str(tmp_path))
    status, out, _ = call(monkeypatch, capsys, "inference", *chosen)
    assert (status, out.startswith("sizes: pure, 0.05 (")) == (0, True)
    assert list(load_record(tmp_path / "inference-quick.json")) == ["sizes"]
    for option, message in (("--table=none", "'none' is not a table; use false-alarms, sizes"), ("--audits=0", "0")):
        status, _, err = call(monkeypatch, capsys, "inference", option)
        assert status == 2
        assert message in err


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
    measured.tables["catalogue"]["scale-epsilon"]["targets"].append(at_most("runs", 7, 5))
    new = [line for line in misses(measured) if line not in before]
    assert [line.split(",")[0].split(":")[0] for line in new] == ["catalogue", "suites", "dp-sniper"]
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


DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_a_bug_is_refuted_and_shown_as_the_page_says():
    shown = exhibit("clamped-to-the-rows")
    committed = (DOCS / "pictures" / "gallery" / "clamped-to-the-rows.svg").read_text(encoding="utf-8")
    assert shown.result.is_refuted
    assert section(shown) in PAGE
    assert all(shown.result.event_in_words in picture for picture in (shown.picture, committed))


def test_the_page_shows_every_bug_with_its_picture():
    pictures = re.findall(r"\(pictures/gallery/([a-z-]+)\.svg\)", PAGE)
    assert tuple(pictures) == NAMES
    assert {path.stem for path in (DOCS / "pictures" / "gallery").iterdir()} == set(NAMES)
    assert PAGE.count("\n## ") == len(re.findall(r"^\| \[", PAGE, re.MULTILINE)) == len(NAMES) == 20


def test_a_bug_that_is_not_in_the_gallery_is_refused():
    with pytest.raises(OptionError, match="the gallery has no bug 'weights'"):
        exhibit("weights")
