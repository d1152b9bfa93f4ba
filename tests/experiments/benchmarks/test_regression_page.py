"""The benchmark of regression testing: its cases are what they say, and its quick form runs from end to end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, pearsonr

from dpaudit import PureDP, check, check_same_distribution
from dpaudit.audit.procedures.count_again import recount
from dpaudit.experiments.benchmarks.core.page import Effort, finished, seeds_of
from dpaudit.experiments.benchmarks.regression import regression_page
from dpaudit.experiments.benchmarks.regression.regression_page import (
    _REWRITE_ALPHAS,
    _REWRITES,
    BUGS,
    _p_values,
    _rewrite_cells,
    _session,
    _tasks,
    bugs,
    right,
)
from dpaudit.reports.cli.main import main
from dpaudit.reports.pytest_plugin.session import compared_with, saved_as


def test_there_are_thirty_right_ones_and_twenty_bugs():
    assert len(right()) == 30
    assert list(bugs()) == list(BUGS)
    assert len(BUGS) == 20


def test_a_session_says_what_its_audits_found():
    status, (found,) = _session("bugs", "['scale-epsilon']", "--dp-audit-runs=2_000")
    assert (status, found.verdict.value, found.test.rpartition("::")[2]) == (1, "refuted", "test_audit[scale-epsilon]")
    status, (found,) = _session("right", "['laplace, sequential']", "--dp-audit-runs=1_000")
    assert (status, found.runs) == (0, 1_000)


@pytest.mark.parametrize("name", _REWRITES)
def test_a_rewrite_keeps_the_law(name):
    """On both datasets; false alarm 1e-6 for each."""
    for answer in (1.0, 0.0):
        result = check_same_distribution(*_REWRITES[name], answer, runs=50_000, alpha=5e-7, bits=False, jobs=1)
        assert not result.is_refuted
        assert not result.findings


def test_one_stream_makes_counts_depend_on_each_other():
    """Hits of old and new code of the coin: their correlation is -.82 with one stream, and 0 with two.

    A difference of the counts then has 1.8 times its variance, and is called a change too often; or never at all, as
    numpy's Laplace law is the inverse distribution of one uniform number. False alarm with two streams: 2e-6.
    """
    old, new = _REWRITES["coin, r >= 1 - p"]
    event = check(old, 1.0, 0.0, claim=PureDP(1.0), runs=1_000, bits=False, jobs=1).event

    def hits(draw, stream):
        """Differences from the mean over seeds, on x and on y."""
        counts = [
            recount(draw, 1.0, 0.0, event, stream=stream, runs=1_000, seed=seed, jobs=1).counts for seed in range(30)
        ]
        both = np.array([[each.hits_x, each.hits_y] for each in counts])
        return (both - both.mean(axis=0)).ravel()

    before = hits(old, saved_as("main"))
    one, two = (pearsonr(before, hits(new, stream)) for stream in (saved_as("main"), compared_with("main")))
    assert one.statistic < -0.6
    assert one.pvalue < 1e-6 < two.pvalue
    assert sum(p <= 0.05 for p in _p_values("coin, r >= 1 - p", False, range(15))) <= binom.isf(1e-6, 15, 0.05)
    assert set(_p_values("Laplace, by inverse distribution", True, range(3))) == {1.0}


def counts(repetitions, changed):
    return Counter(
        {"repetitions": repetitions, **{f"changed at {a:g}": n for a, n in zip(_REWRITE_ALPHAS, changed, strict=True)}}
    )


def test_the_target_of_baselines_sees_what_one_stream_does():
    """The figures are those of 2,000 rewrites with one stream, and with two."""
    for refuted, is_met in (([148, 52, 10, 0], False), ([70, 10, 1, 0], True), ([70, 10, 1, 2], False)):
        _, (target,) = _rewrite_cells("coin, r >= 1 - p", False, counts(2_000, refuted))
        assert target.is_met is is_met


def test_a_row_of_baselines_that_was_cut_goes_on():
    effort = Effort(is_quick=True, only=frozenset(["coin, r >= 1 - p"]))
    done = counts(20, [0, 0, 0, 0])
    cut = finished("coin, r >= 1 - p, two streams", *_rewrite_cells("coin, r >= 1 - p", False, done), 1.0)
    *_, resumed = next(iter(_tasks(effort))).measure(cut)
    last = _p_values("coin, r >= 1 - p", False, seeds_of(18, list(_REWRITES).index("coin, r >= 1 - p"), 20, 20))
    assert resumed.cells["repetitions"] == 40
    assert resumed.seconds > 1.0
    assert resumed.cells["changed at 0.05"] == sum(p <= 0.05 for p in last)


@pytest.mark.parametrize(
    "rows", [("1e-05", "scale-epsilon", "Laplace, 2% less", "Laplace, correct", "coin, r >= 1 - p")]
)
def test_the_quick_form(rows, capsys, monkeypatch):
    """With fewer audits of a session and fewer comparisons than on the command line."""
    monkeypatch.setattr(regression_page, "_QUICK_EVERY", 15)
    monkeypatch.setattr(regression_page, "_REWRITE_REPETITIONS", (10, 2_000))
    options = [part for row in rows for part in ("--only", row)]
    monkeypatch.setattr(
        "sys.argv", ["dpaudit", "bench", "regression", "--quick", "--jobs", "1", "--audits", "1", *options]
    )
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert "Failed sessions over correct mechanisms" in shown
    assert "| scale-epsilon | 2 | 100% |" in shown
    assert "met" in shown
    assert "MISSED" not in shown
