"""``dpaudit compare``: two files side by side, and what its exit status says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import Entry, PureDP, Suite, check, save
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.procedures.count_again import recount
from dpaudit.reports.cli.main import main

EVENT = Intervals(((1.0, math.inf),))


def entry(scale, stream="after"):
    def noisy(answer, size, rng):
        return answer + rng.laplace(scale=scale, size=size)

    result = check(noisy, 1.0, 0.0, claim=PureDP(1.0), runs=5_000, alpha=1e-5, name="noisy [bold]")
    again = recount(noisy, 1.0, 0.0, EVENT, stream=stream)
    return Entry(name="tests/test_it.py::test_noisy", result=result, recounts=(again,))


@pytest.fixture
def compared(tmp_path, monkeypatch, capsys):
    def call(before, after):
        paths = [tmp_path / "a.json", tmp_path / "b.json"]
        for path, entries in zip(paths, (before, after), strict=True):
            if entries is not None:
                save(Suite(title="", entries=tuple(entries)), path)
        monkeypatch.setattr("sys.argv", ["dpaudit", "compare", *map(str, paths)])
        with pytest.raises(SystemExit) as left:
            main()
        shown = capsys.readouterr()
        return left.value.code, " ".join(shown.out.split()), shown.err

    return call


ONE = entry(1.0, "before")


def test_the_same_is_the_same(compared):
    code, shown, _ = compared([ONE], [ONE])
    assert code == 0
    assert "1 audit, 0 changed" in shown
    assert "5,000 runs" in shown
    assert "no p-value: the counts are equal and come from" in shown
    code, shown, _ = compared([ONE], [entry(1.0)])
    assert (code, "1 audit, 0 changed" in shown, "random numbers" in shown) == (0, True, False)  # false alarm: 1e-5


def test_two_versions_saved_under_one_name(compared):
    code, shown, _ = compared([ONE], [entry(1.01, "before")])
    assert code == 1
    assert "save one of them again" in shown
    assert "(pytest --dp-audit-save=NAME)" in shown


def test_other_noise_and_what_is_missing(compared):
    code, shown, _ = compared([ONE, replace(ONE, name="gone")], [entry(1.3), replace(ONE, name="new")])
    assert code == 1
    assert "3 audits, 2 changed" in shown
    for words in ("Pr[output ≥ 1 | y] was", "the audit is missing", "new: it was not recorded before"):
        assert words in shown


def test_a_file_that_is_not_there(compared):
    code, _, said = compared([ONE], None)
    assert code == 2
    assert "b.json cannot be read" in said


def test_statements_are_shown_too(compared):
    from dpaudit import LaplaceNoise, check_noise

    def noisy(answer, size, rng):
        return answer + rng.laplace(size=size)

    result = check_noise(noisy, np.float64(1.0), noise=LaplaceNoise(1.0), answer=1.0, runs=2_000, alpha=1e-4)
    code, shown, _ = compared([Entry(name="noise", result=result)], [Entry(name="noise", result=result)])
    assert code == 0
    assert "1 audit, 0 changed" in shown


def test_what_cannot_be_compared_is_neither_changed_nor_a_pass(compared):
    none = replace(ONE, recounts=())
    code, shown, _ = compared([none], [none])
    assert code == 3
    assert "1 audit, 0 changed, 1 not compared" in shown
    assert "nothing to compare: neither file has" in shown
    assert compared([none, ONE], [none, replace(ONE, name="new")])[0] == 1
    assert compared([], [])[0] == 3
