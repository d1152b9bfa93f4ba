"""Progress in a log: a line now and then, with the running bound."""

from __future__ import annotations

import pytest

from dpaudit.audit.results.interim_look import Look
from dpaudit.experiments.cli import display


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    return now


def test_a_look_is_a_line_at_most_every_ten_seconds(clock, capsys):
    with display.progress() as watch:
        shown = watch("count", None)
        for second in range(31):
            clock[0] = 100.0 + second
            shown.advance(2_000)
            shown.look(Look(1_000 * second, second / 100, 1 - second / 100))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "count: 10,000 runs on each dataset, bound 0.1, p 0.9",
        "count: 20,000 runs on each dataset, bound 0.2, p 0.8",
        "count: 30,000 runs on each dataset, bound 0.3, p 0.7",
    ]


def test_a_fixed_number_of_runs_is_counted_down(clock, capsys):
    with display.progress() as watch:
        shown = watch("count", 5_000)
        shown.advance(2_000)
        clock[0] += 11
        shown.advance(2_000)
    assert capsys.readouterr().err == "count: 4,000 of 5,000 runs\n"
