"""Resumed sequential audits with a time limit: no block is drawn twice, and interim analyses only continue.

Draws advance a simulated clock, so the tests are fast. The mechanisms' randomness is not fixed by a seed.
"""

import contextlib
import os
import sqlite3
import time

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import PureDP, check
from dpaudit.audit.errors import StoreError
from dpaudit.audit.procedures import sequential
from dpaudit.audit.procedures.sequential import draw_sequentially
from dpaudit.audit.results.audit_result import Pair, Settings
from dpaudit.audit.sampling.batches import Clock, batch_sizes, keep_begun, recall_begun
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.store.sqlite_store import FILE, Store

pytestmark = pytest.mark.usefixtures("learned_seldom")

CLAIM = PureDP(30.0)  # noise of scale 1 never violates it on neighbours
SESSIONS = (135.0, 135.0, 300.0, 700.0, 50.0)  # time limits; batches after 550 runs are blocks of more than one run


def fresh(dataset, size, rng):
    return dataset + np.random.default_rng(int.from_bytes(os.urandom(16))).laplace(size=size)


def one_fresh(dataset, rng):
    return float(fresh(dataset, 1, rng)[0])


@pytest.fixture
def drawn(monkeypatch):
    """Record the draws as (phase, side, number, size); each run takes half a second of the clock."""
    seen, clock, real = [], [0.0], Plan.draw

    def draw(plan, phase, side, number, size, shape=None, **options):
        outputs = real(plan, phase, side, number, size, shape, **options)
        clock[0] += 0.5 * size
        seen.append((phase, side, number, size))
        return outputs

    monkeypatch.setattr(Plan, "draw", draw)
    monkeypatch.setattr(Plan, "check_heads", lambda plan: None)  # tested elsewhere; it draws before the first batch
    monkeypatch.setattr(time, "clock_gettime", lambda _: clock[0])
    return seen


def audited(mechanism, folder, **options):
    return check(mechanism, 0.0, 1.0, **{"claim": CLAIM, "sequential": True, "jobs": 1, "store": folder} | options)


def of_the_audit(drawn):
    """Omit the extra draws of each session: one run for the shape, and the repeated first blocks."""
    found = [each for each in drawn if each[2] > 0]
    first = {each for each in drawn if each[2] == 0 and each[3] > 1}
    return found + sorted(first)


def kept_blocks(folder):
    with contextlib.closing(sqlite3.connect(folder / FILE)) as file:
        return set(file.execute("SELECT key, value FROM blocks"))


@pytest.mark.parametrize(("mechanism", "most_kept"), [(fresh, 200_000), (one_fresh, 300)])
def test_a_batch_that_was_cut_goes_on_where_it_was(tmp_path, drawn, monkeypatch, mechanism, most_kept):
    monkeypatch.setattr(sequential, "_KEPT", most_kept)
    monkeypatch.setattr(sequential, "_KEPT_NUMBERS", most_kept)
    before, blocks = (), set()
    for seconds in SESSIONS:
        result = audited(mechanism, tmp_path, seconds=seconds)
        assert result.stopped == "time"
        assert result.looks[: len(before)] == before
        assert blocks <= kept_blocks(tmp_path)
        before, blocks = result.looks, kept_blocks(tmp_path)
        own = of_the_audit(drawn)
        assert len(own) == len({each[:3] for each in own})  # no block is drawn twice
        assert sum(size for *_, size in own) == 2 * result.runs
        assert len(drawn) < len(own) + 20
    runs = [look.runs for look in before]
    assert not set(runs) <= set(np.cumsum(batch_sizes(10**6)).tolist())  # some batch was interrupted
    whole = audited(mechanism, tmp_path, seconds=1e6, resolution=None, on_look=lambda look: look.runs > 2_000)
    assert whole.looks[: len(before)] == before
    assert whole.stopped == "request"


def test_the_same_draws_are_redone_where_sizes_are_forgotten(tmp_path, drawn, monkeypatch):
    """Negative control of the test above: without the sizes an interrupted batch is discarded."""
    monkeypatch.setattr(sequential, "recall_begun", lambda *_: None)
    for seconds in SESSIONS:
        audited(fresh, tmp_path, seconds=seconds)
    own = of_the_audit(drawn)
    assert len(own) > len({each[:3] for each in own})


def killed(call, mechanism, folder, monkeypatch, *, is_lost, **options):
    """Kill a session during a draw; with `is_lost`, unwritten values of the store are lost."""
    left, draw = [call], Plan.draw

    def until_killed(plan, *arguments):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return draw(plan, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "draw", until_killed)
        if is_lost:
            patch.setattr(Store, "close", Store._release)
        with pytest.raises(KeyboardInterrupt):
            audited(mechanism, folder, **options)


@pytest.mark.parametrize(("call", "is_lost"), [(2, True), (5, False), (6, True), (12, False), (16, True)])
def test_after_a_kill_in_a_batch_no_look_changes_and_nothing_saved_is_redrawn(
    tmp_path, drawn, monkeypatch, call, is_lost
):
    shown = []
    killed(call, one_fresh, tmp_path, monkeypatch, is_lost=is_lost, seconds=135.0, on_look=shown.append)
    before = kept_blocks(tmp_path)
    drawn.clear()
    result = audited(one_fresh, tmp_path, seconds=1_000.0)
    assert result.looks[: len(shown)] == tuple(shown)
    assert before <= kept_blocks(tmp_path)
    keys = {key for key, _ in before}
    again = {f"block {number} of the pilot runs on {side}, {size} outputs" for _, side, number, size in drawn}
    assert again & keys <= {f"block 0 of the pilot runs on {side}, 16 outputs" for side in "xy"}  # checked to repeat
    blocks = [key for key, _ in kept_blocks(tmp_path) if "runs on x" in key]
    assert sum(int(key.split()[-2]) for key in blocks) == result.runs  # no block is unused


@pytest.mark.parametrize("calls_before_the_end", [1, 3])
def test_a_batch_that_was_cut_and_killed_keeps_its_size(tmp_path, drawn, monkeypatch, calls_before_the_end):
    """The session is killed in the last batch, on x or on y, or after it."""
    whole = audited(fresh, tmp_path / "whole", seconds=135.0)
    calls = len(drawn)
    killed(calls - calls_before_the_end, fresh, tmp_path, monkeypatch, is_lost=False, seconds=135.0)
    result = audited(fresh, tmp_path, seconds=1_000.0)
    assert [look.runs for look in result.looks[: len(whole.looks)]] == [look.runs for look in whole.looks]


def test_an_audit_without_planned_runs_gets_no_final_test_later(tmp_path):
    """Its bets have all of alpha, so a final test would spend half of it again."""
    limited = audited(fresh, tmp_path, seconds=1e6, on_look=lambda look: look.runs > 400)
    assert limited.final_alpha == 0.0
    for options in ({}, {"runs": limited.runs}):
        with pytest.raises(StoreError, match="a final test is planned in one of the two audits"):
            audited(fresh, tmp_path, **options)


def test_a_session_without_a_limit_goes_on_from_the_total_that_was_reached(tmp_path, drawn):
    limited = audited(fresh, tmp_path, runs=1_000, seconds=135.0)
    free = audited(fresh, tmp_path, runs=1_000)
    assert free.looks[: len(limited.looks)] == limited.looks
    assert (free.runs, free.stopped) == (1_000, "runs")
    assert sum(size for *_, size in of_the_audit(drawn)) == 2_000


def test_time_that_is_up_adds_nothing_to_a_store(tmp_path, drawn):
    first = audited(fresh, tmp_path, seconds=135.0)
    n_drawn = len(drawn)
    for _ in range(3):
        assert audited(fresh, tmp_path, seconds=1e-6).looks == first.looks
    assert len(drawn) == n_drawn + 3 * 2


def test_a_resumed_session_keeps_to_its_time(tmp_path, drawn):
    """Recalling takes no time here, so its pace must not count as the pace of the mechanism."""
    audited(fresh, tmp_path, seconds=2_000.0)
    n_drawn = len(drawn)
    audited(fresh, tmp_path, seconds=100.0)
    taken = sum(0.5 * size for *_, size in drawn[n_drawn:])
    assert 80.0 < taken < 100.0 + 0.5 * 32 + 1  # plus the repeated first block


class Remembered:
    """A memory whose recall takes as long as drawing, so that all sessions have equal times and runs."""

    def __init__(self, clock):
        self.values, self.clock = {}, clock

    def recall(self, key):
        value = self.values.get(key)
        if value is not None and "runs on x" in key:
            self.clock[0] += len(value)
        return value

    def keep(self, key, value):
        self.values[key] = value
        return value

    def save(self):
        pass


def test_false_alarms_of_somebody_who_resumes_until_it_pays(monkeypatch):
    """20 audits at alpha .3 of a mechanism on its boundary, in four sessions each; it fails with probability 1e-6.

    The noise comes from a generator that continues over sessions, which end in different batches.
    """
    clock, rng = [0.0], np.random.default_rng(8)
    monkeypatch.setattr(time, "clock_gettime", lambda _: clock[0])

    def bit(dataset, size):
        clock[0] += size * (dataset == 0)
        return (rng.random(size) < 1 / (1 + np.e)) ^ bool(dataset)

    alarms = 0
    settings = Settings(
        claim=PureDP(1.0), claim_source="", pair=Pair(x="0", y="1", difference="", adjacency="", distance=1.0),
        alpha=0.3, resolution=None, power=0.95, name="bit", provenance=None, seed=0, bits=False,
    )  # fmt: skip
    for _ in range(20):
        plan = Plan(as_sampler(bit), 0, 1, 0, 1 << 17, 1, memory=Remembered(clock))
        courses = (
            draw_sequentially(plan, settings, 10**6, clock[0] + 100.0 + 17 * i, has_final=False) for i in range(4)
        )
        alarms += any(course.stopped == "refuted" for course in courses)
    assert alarms <= binom.isf(1e-6, 20, 0.3)


@pytest.mark.parametrize(
    ("value", "can_be"),
    [
        *((value, False) for value in (7, "7", [], [0], [-1], [17], [16, -1], [16, 1, 1, 1], ["16"], [True], [16.5])),
        ([16, 0.5], False), *((value, True) for value in ([1], [16], [16, 1], [16, 1, 0])),
    ],
)  # fmt: skip
def test_only_what_can_be_a_size_after_280_runs_is_read(value, can_be):
    memory = Remembered([0.0])
    memory.keep("size of batch 1", value)
    if can_be:
        assert recall_begun(memory, 1, 280).size == value[0]
        return
    with pytest.raises(StoreError, match="its value for the size of batch 1 is impossible"):
        recall_begun(memory, 1, 280)


def test_a_size_comes_back_with_its_paces():
    memory = Remembered([0.0])
    keep_begun(memory, 9, 20, Clock(None, (1.5, 2e-9)))
    begun = recall_begun(memory, 9, 400)
    assert begun.size == 20
    assert begun.paces == pytest.approx((1.5, 2e-9))
    assert recall_begun(memory, 10, 400) is None
    assert recall_begun(None, 9, 400) is None


def test_the_blocks_of_a_batch_are_the_same_with_and_without_a_time_limit(tmp_path, drawn):
    options = {"claim": PureDP(1.0), "runs": 5_000, "seed": 7}
    cut = audited(fresh, tmp_path, seconds=600.0, **options)
    whole = audited(fresh, tmp_path, **options)
    assert cut.stopped == "time"
    assert len(whole.looks) > len(cut.looks) > 3
    assert whole.looks[: len(cut.looks)] == cut.looks
