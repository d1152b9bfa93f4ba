"""CSV: the rows come back from a reader, and no cell is a formula, wherever a spreadsheet begins one."""

import csv as library
import dataclasses
import io
import math
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import Verdict
from dpaudit.audit.events.events import Outcomes
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.records.suite import COLUMNS, Entry, Suite, rows
from dpaudit.audit.results.audit_result import Pair
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.reports.pages.junit_and_csv import csv
from dpaudit.reports.plain_text import visible

from ..examples import audit

RESULT = audit(
    counts=Counts(count_x=600, runs_x=950, count_y=0, runs_y=951), bound=1.25,
    min_detectable_excess=math.inf, runs=1_000,
    pilot_runs=49, seed=2**80,
)  # fmt: skip
SLOPE = StatementResult(
    statement="The error halves.", quantity="slope", alpha=0.01, method="bootstrap", runs=500, seed=8,
    points=(Point(estimate=-0.5, lower=-0.1 - 0.5, upper=-0.25, low=-math.inf),),
)  # fmt: skip


def parsed(text, **options):
    return list(library.DictReader(io.StringIO(text, newline=""), strict=True, **options))


def cells_of(name):
    """The cells of a suite of one entry in which every text that a caller chooses is this one."""
    pair = Pair(x=name, y=name, difference=name, adjacency=name, distance=1)
    result = dataclasses.replace(
        RESULT, mechanism=name, pair=pair, event=Outcomes((name,)), notes=(name, name), versions=((name, name),)
    )
    suite = Suite(title=name, entries=(Entry(name=name, result=result, experiment=name),))
    return csv(suite), rows(suite)[0]


def test_numbers_come_back_as_they_are():
    suite = Suite(title="t", entries=(Entry(name="a", result=RESULT, exact=math.nan), Entry(name="b", result=SLOPE)))
    found, wanted = parsed(csv(suite)), rows(suite)
    for row, expected in zip(found, wanted, strict=True):
        assert list(row) == list(COLUMNS)
        for name, value in expected.items():
            if isinstance(value, str):
                assert row[name] == value
            else:
                assert row[name] == ("" if value is None else str(value))
            if isinstance(value, float):
                assert float(row[name]) == value or math.isnan(value)
    assert (found[1]["estimate"], found[1]["low"], found[0]["estimate"]) == ("-0.5", "-inf", "inf")
    assert (found[0]["seed"], found[0]["exact"], found[0]["is_met"]) == (str(2**80), "nan", "")
    met = tuple(Entry(name="a", result=RESULT, expected=one) for one in (RESULT.verdict, Verdict.INCONCLUSIVE))
    assert [row["is_met"] for row in parsed(csv(Suite(title="t", entries=met)))] == ["True", "False"]
    assert csv(Suite(title="t", entries=())) == ",".join(COLUMNS) + "\r\n"


FORMULA = "=cmd|' /C calc'!A0"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        *((sign + "1", f"'{sign}1") for sign in "=+-@＝＋－＠"),
        (f"  {FORMULA}", f"'  {FORMULA}"),
        (f'"{FORMULA}', f"'\"{FORMULA}"),
        ("\ttab", "'\\ttab"),
        ("\nfeed", "'\\nfeed"),
        ("a;=1; +2;-", "a;'=1;' +2;'-"),
        ('a;"=1"', 'a;\'"=1"'),
        ("a\n=1", "a\\n=1"),
        ("bell\x07 null\x00 \u202e\ud800", "bell\\x07 null\\x00 \\u202e\\ud800"),
        ("a-b=c+d@e, f", "a-b=c+d@e, f"),
    ],
)
def test_text_is_guarded_and_visible(name, written):
    (row,) = parsed(cells_of(name)[0])
    assert row["name"] == row["mechanism"] == row["difference"] == written


def test_a_long_text_stays_within_a_cell():
    (row,) = parsed(cells_of("\U000e0001;=" * 20_000)[0])
    assert 2_900 < len(row["name"]) < 32_768


HOSTILE = st.lists(st.sampled_from(["=", "+", "-", "@", "＝", ";", ",", '"', "'", " ", "\t", "\r", "\n", "\x00", "a"]))


@given(st.one_of(HOSTILE.map("".join), st.text()))
@settings(derandomize=True, deadline=None, max_examples=12)
def test_a_reader_gets_the_text_with_guards(name):
    text, expected = cells_of(name)
    assert {char for char in text if unicodedata.category(char)[0] == "C"} <= {"\r", "\n"}
    (row,) = parsed(text)
    assert text.count("\n") == text.count("\r\n") == text.count("\r") == 2
    for column, value in expected.items():
        if isinstance(value, str):
            assert unguarded(row[column]) == unguarded(visible(value, 3_000))
            assert not re.match(r"\s*[=+\-@＝＋－＠]", row[column])


@given(HOSTILE.map("".join))
@settings(derandomize=True, deadline=None, max_examples=12)
def test_a_spreadsheet_that_splits_at_semicolons_finds_no_formula(name):
    for line in library.reader(io.StringIO(cells_of(name)[0], newline=""), delimiter=";"):
        for cell in line[1:]:
            assert not re.match(r"\s*[=+\-@＝＋－＠]", cell)


def unguarded(text):
    """The text without apostrophes at the beginning and behind semicolons."""
    return re.sub(r"(^|;)'+", r"\1", text)
