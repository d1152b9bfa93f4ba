"""Resumed sequential audits with a time limit: no block is drawn twice, and interim analyses only continue.

Draws advance a simulated clock, so the tests are fast. The mechanisms' randomness is not fixed by a seed.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from dpaudit import PureDP, check
from dpaudit.audit.errors import StoreError
from dpaudit.audit.procedures import sequential
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.sampling.pilot_and_batch_sizes import batch_sizes
from dpaudit.audit.store.sqlite_store import FILE, Store

from .conftest import recorded

CLAIM = PureDP(30.0)  # noise of scale 1 never violates it on neighbours
SESSIONS = (135.0, 1e-6, 300.0)  # time limits; the second session has no time left


def fresh(dataset, size, rng):
    return dataset + np.random.default_rng(int.from_bytes(os.urandom(16))).laplace(size=size)


def one_fresh(dataset, rng):
    return float(fresh(dataset, 1, rng)[0])


def half_a_second_each(drawn, patch):
    patch.setattr(Plan, "check_heads", lambda plan: None)  # tested elsewhere; it draws before the first batch
    patch.setattr(time, "clock_gettime", lambda _: 0.5 * sum(size for *_, size in drawn))
    return drawn


@pytest.fixture
def drawn(drawn, monkeypatch):
    """Each run takes half a second of the clock."""
    return half_a_second_each(drawn, monkeypatch)


def audited(mechanism, folder, **options):
    return check(mechanism, 0.0, 1.0, **{"claim": CLAIM, "sequential": True, "jobs": 1, "store": folder} | options)


def of_the_audit(drawn):
    """Omit the extra draws of each session: one run for the shape, and the repeated first blocks."""
    found = [each for each in drawn if each[2] > 0]
    first = {each for each in drawn if each[2] == 0 and each[3] > 1}
    return found + sorted(first)


def kept_blocks(folder):
    with contextlib.closing(sqlite3.connect(folder / FILE)) as file:
        has_begun = file.execute("SELECT 1 FROM sqlite_master WHERE name = 'blocks'").fetchone()
        return set(file.execute("SELECT key, value FROM blocks")) if has_begun else set()


@pytest.mark.parametrize(("mechanism", "most_kept"), [(fresh, 200_000), (one_fresh, 150)])
def test_a_batch_that_was_cut_goes_on_where_it_was(tmp_path, drawn, monkeypatch, mechanism, most_kept):
    monkeypatch.setattr(sequential, "KEPT", most_kept)
    monkeypatch.setattr(sequential, "_KEPT_NUMBERS", most_kept)
    before, blocks = (), set()
    for seconds in SESSIONS:
        result = audited(mechanism, tmp_path, seconds=seconds)
        assert result.stopped == "time"
        assert result.interim_analyses[: len(before)] == before
        assert blocks <= kept_blocks(tmp_path)
        before, blocks = result.interim_analyses, kept_blocks(tmp_path)
        own = of_the_audit(drawn)
        assert len(own) == len({each[:3] for each in own})  # no block is drawn twice
        assert sum(size for *_, size in own) == 2 * result.runs
        assert len(drawn) < len(own) + 20
    runs = [look.runs for look in before]
    assert not set(runs) <= set(np.cumsum(batch_sizes(10**6)).tolist())  # some batch was interrupted
    whole = audited(mechanism, tmp_path, seconds=1e6, detect=None, on_interim=lambda look: look.runs > 700)
    assert whole.interim_analyses[: len(before)] == before
    assert whole.stopped == "request"


def killed(call, mechanism, folder, monkeypatch, *, is_lost, **options):
    """Kill a session during a draw; with `is_lost`, unwritten values of the store are lost."""
    left, draw = iter(range(call)), Plan.draw

    def until_killed(plan, *arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return draw(plan, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "draw", until_killed)
        if is_lost:
            patch.setattr(Store, "close", Store._release)
        with pytest.raises(KeyboardInterrupt):
            audited(mechanism, folder, **options)


class Sessions(RuleBasedStateMachine):
    """Sessions of an audit whose noise no seed fixes: each ends at its time, or is killed in a draw."""

    def __init__(self):
        super().__init__()
        self.patch, self.folder = pytest.MonkeyPatch(), Path(tempfile.mkdtemp())
        self.drawn = half_a_second_each(recorded(self.patch), self.patch)
        self.shown, self.blocks = [], set()

    def teardown(self):
        self.patch.undo()
        shutil.rmtree(self.folder)

    @rule(seconds=st.sampled_from((1e-6, 60.0, 135.0)))
    def ends(self, seconds):
        n_drawn = len(self.drawn)
        result = audited(one_fresh, self.folder, seconds=seconds)
        assert list(result.interim_analyses[: len(self.shown)]) == self.shown
        self.shown = list(result.interim_analyses)
        self.keeps_what_was_saved(n_drawn)
        sizes = [int(key.split()[-2]) for key, _ in self.blocks if "runs on x" in key]
        assert sum(sizes) == result.runs, "no block is unused"

    @rule(call=st.integers(1, 16), is_lost=st.booleans())
    def is_killed(self, call, is_lost):
        n_drawn, shown = len(self.drawn), []
        killed(call, one_fresh, self.folder, self.patch, is_lost=is_lost, seconds=135.0, on_interim=shown.append)
        self.shown += [look for look in shown if look not in self.shown]
        self.keeps_what_was_saved(n_drawn)

    def keeps_what_was_saved(self, n_drawn):
        """Nothing saved is gone, or was drawn again but the first blocks, which are checked to repeat."""
        saved = {key for key, _ in self.blocks}
        for phase, side, number, size in self.drawn[n_drawn:]:
            assert number == 0 or f"block {number} of the {phase} runs on {side}, {size} outputs" not in saved
        assert self.blocks <= kept_blocks(self.folder)
        self.blocks = kept_blocks(self.folder)


Sessions.TestCase.settings = settings(max_examples=12, stateful_step_count=6, deadline=None, derandomize=True)
TestSessions = Sessions.TestCase


def test_a_batch_that_was_cut_and_killed_keeps_its_size(tmp_path, drawn, monkeypatch):
    """The session is killed in the last batch."""
    whole = audited(fresh, tmp_path / "whole", seconds=135.0)
    killed(len(drawn) - 3, fresh, tmp_path, monkeypatch, is_lost=False, seconds=135.0)
    result = audited(fresh, tmp_path, seconds=200.0)
    assert [look.runs for look in result.interim_analyses[: len(whole.interim_analyses)]] == [
        look.runs for look in whole.interim_analyses
    ]


def test_an_audit_without_planned_runs_gets_no_final_test_later(tmp_path):
    """Its bets have all of alpha, so a final test would spend half of it again."""
    limited = audited(fresh, tmp_path, seconds=1e6, on_interim=lambda look: look.runs > 400)
    assert limited.final_alpha == 0.0
    for options in ({}, {"runs": limited.runs}):
        with pytest.raises(StoreError, match="a final test is planned in one of the two audits"):
            audited(fresh, tmp_path, **options)


def test_a_session_without_a_limit_goes_on_from_the_total_that_was_reached(tmp_path, drawn):
    limited = audited(fresh, tmp_path, runs=500, seconds=135.0)
    free = audited(fresh, tmp_path, runs=500)
    assert free.interim_analyses[: len(limited.interim_analyses)] == limited.interim_analyses
    assert (free.runs, free.stopped) == (500, "runs")
    assert sum(size for *_, size in of_the_audit(drawn)) == 1_000


def test_a_resumed_session_keeps_to_its_time(tmp_path, drawn):
    """Recalling takes no time here, so its pace must not count as the pace of the mechanism."""
    audited(fresh, tmp_path, seconds=300.0)
    n_drawn = len(drawn)
    audited(fresh, tmp_path, seconds=100.0)
    taken = sum(0.5 * size for *_, size in drawn[n_drawn:])
    assert 80.0 < taken < 100.0 + 0.5 * 32 + 1  # plus the repeated first block
