"""The display of progress: a bar, one line or a log, and silence where nothing is asked."""

import io
import sys
import time

import pytest

from dpaudit import check, find_worst_pair
from dpaudit.audit import progress
from dpaudit.audit.errors import OptionError
from dpaudit.audit.results.audit_result import InterimAnalysis

OPTIONS = {"claim": 1.0, "runs": 400, "jobs": 1}


def noisy(value, size, rng):
    return value + rng.laplace(size=size)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    monkeypatch.setattr(progress, "_OFTEN", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_log_gets_lines(capsys):
    check(noisy, 0, 1, progress=True, **OPTIONS)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "noisy: 800 of 800 runs"
    check(noisy, 0, 1, progress=True, sequential=True, **OPTIONS)
    assert "runs on each dataset, bound" in capsys.readouterr().err
    find_worst_pair(noisy, [(0, 1), (0, 2)], progress=True, **OPTIONS)
    assert "noisy: leading pair: " in capsys.readouterr().err


@pytest.mark.usefixtures("at_once")
def test_a_terminal_without_rich_gets_one_line(monkeypatch):
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    check(noisy, 0, 1, progress=True, **OPTIONS)
    text = shown.getvalue()
    assert "\n" not in text
    assert "\r\x1b[Knoisy: 800 of 800 runs" in text
    assert text.endswith("\r\x1b[K"), "the line is removed in the end"


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.usefixtures("at_once")
def test_an_audit_goes_on_if_nobody_reads_its_progress(monkeypatch, capsys):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, Broken()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert check(noisy, 0, 1, progress=True, **OPTIONS).runs == 400
    assert not capsys.readouterr().out, "what belongs to standard error goes nowhere else"


def test_nothing_is_shown_unless_asked_a_function_is_told_and_anything_else_refused(capsys):
    told: list[int] = []
    for quiet in (None, False, told.append):
        check(noisy, 0, 1, progress=quiet, **OPTIONS)
    assert capsys.readouterr().err == ""
    assert sum(told) == 800
    with pytest.raises(OptionError, match="progress='bar' is unknown"):
        check(noisy, 0, 1, progress="bar", **OPTIONS)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "clock_gettime", lambda _: now[0])
    return now


def test_a_look_is_a_line_at_most_every_ten_seconds(clock, capsys):
    with progress.display() as watch:
        shown = watch("count", None)
        for second in range(31):
            clock[0] = 100.0 + second
            shown.advance(2_000)
            shown.interim(InterimAnalysis(1_000 * second, second / 100, 1 - second / 100))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "count: 10,000 runs on each dataset, bound 0.1, p 0.9",
        "count: 20,000 runs on each dataset, bound 0.2, p 0.8",
        "count: 30,000 runs on each dataset, bound 0.3, p 0.7",
    ]
    with progress.display() as watch:
        shown = watch("count", 5_000)
        shown.advance(2_000)
        clock[0] += 11
        shown.advance(2_000)
    assert capsys.readouterr().err == "count: 4,000 of 5,000 runs\n", "a fixed number of runs is counted down"
