"""Audits of slow mechanisms: within the time allowed, with the running bound shown, honest at the end.

Time is a clock that a run of the mechanism moves on, so the tests take none and say the same everywhere.
"""

from __future__ import annotations

import importlib
import math
import time

import numpy as np
import pytest

from dpaudit import AddRemove, PureDP, Rows, Verdict, check, find_worst_pair
from dpaudit.audit.errors import OptionError
from dpaudit.audit.procedures import sequential


@pytest.fixture
def slow(monkeypatch):
    """A count that takes a tenth of a second, and the seconds that it has taken so far."""
    spent = [0.0]

    def slow_count(rows, rng):
        spent[0] += 0.1
        return len(rows) + rng.laplace(scale=1.0)

    monkeypatch.setattr(time, "clock_gettime", lambda _: spent[0])
    return slow_count, spent


def audited(mechanism, **options):
    options = {"claim": PureDP(1.0), "adjacency": AddRemove(), "sequential": True, "jobs": 1, "bits": False} | options
    return check(mechanism, [1, 1], [1], **options)


@pytest.mark.parametrize("seconds", [12, 60, 61.7, 400])
def test_the_time_is_used_and_kept(slow, seconds):
    mechanism, spent = slow
    result = audited(mechanism, seconds=seconds)
    assert result.stopped == "time"
    assert 0.2 * result.runs <= seconds
    # A first run and the first block once more are part of it; no more is left than the shortest batch takes.
    assert seconds - 0.2 * 17 < spent[0] < seconds + 1


def test_as_many_runs_without_an_end_are_the_same_audit(slow):
    mechanism, _ = slow
    limited = audited(mechanism, seconds=150)
    free = audited(mechanism, runs=limited.runs, seconds=math.inf)
    assert free.stopped == "runs"
    assert not free.is_closed
    assert (free.looks, free.counts, free.event, free.bound) == (
        limited.looks, limited.counts, limited.event, limited.bound,
    )  # fmt: skip


def test_an_audit_without_an_end_needs_runs(slow):
    with pytest.raises(OptionError, match="would never end"):
        audited(slow[0], seconds=math.inf)


def test_the_running_bound_is_told_after_every_batch(slow):
    mechanism, _ = slow
    seen = []
    result = audited(mechanism, seconds=100, on_look=seen.append)
    assert tuple(seen) == result.looks
    assert len(seen) > 10


def test_a_resolution_that_is_out_of_reach_is_inconclusive(slow):
    mechanism, spent = slow
    result = audited(mechanism, seconds=200, resolution=0.1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.stopped == "time"
    assert "requested: 0.1" in str(result)
    assert "time limit reached" in str(result)
    assert spent[0] < 203


def test_a_resolution_within_reach_ends_it_before_the_time(slow):
    mechanism, spent = slow
    result = audited(mechanism, seconds=10_000, resolution=1.0)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.stopped == "runs"
    assert 0.6 < result.resolution <= 1.0
    assert spent[0] < 1_000


def test_without_a_limit_on_runs_a_time_limit_is_the_only_one(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "clock_gettime", lambda _: clock[0])
    for kept in ("_KEPT", "_KEPT_NUMBERS"):  # so that events are learned from few runs
        monkeypatch.setattr(sequential, kept, 2_000)

    def quick(rows, size, rng):
        clock[0] += 1e-5 * size
        return np.round(len(rows) + rng.laplace(scale=1.0, size=size), 2)

    module = importlib.import_module("dpaudit.audit.procedures.check")
    assert module._RUNS == 1_000_000
    monkeypatch.setattr(module, "_RUNS", 10_000)
    assert audited(quick).runs == 10_000
    assert 11_000 < audited(quick, seconds=0.25).runs <= 12_500


def test_a_broken_claim_is_refuted_before_the_time_is_up(slow):
    mechanism, spent = slow
    result = audited(mechanism, claim=PureDP(0.2), seconds=1_000)
    assert result.is_refuted
    assert result.stopped == "refuted"
    assert spent[0] < 500


def test_a_search_with_a_time_limit_says_how_long_it_may_look(slow):
    mechanism, _ = slow
    options = {"claim": PureDP(1.0), "adjacency": AddRemove(), "sequential": True, "seconds": 60, "jobs": 1}
    with pytest.raises(OptionError, match="search_runs="):
        find_worst_pair(mechanism, Rows(), **options)
    found = find_worst_pair(mechanism, Rows(), search_runs=400, **options)
    assert found.audit.stopped == "time"
