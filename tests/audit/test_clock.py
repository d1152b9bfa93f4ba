"""Time limits: of a call, of a block of runs, and of an audit in a test that froze the clock."""

import threading
import time
from unittest import mock

import pytest

import dpaudit
from dpaudit import check, find_worst_pair
from dpaudit.audit.clock import now, within
from dpaudit.audit.errors import MechanismError

from .stand_ins import noisy

laplace = {"claim": 1.0, "jobs": 1, "floating_point": "ignore"}


def hangs_at(number):
    """A vectorised mechanism that hangs in one of its calls, until the test ends."""
    calls, end = [], threading.Event()

    def sampler(answer, size, rng):
        calls.append(size)
        if len(calls) == number:
            end.wait(20)
        return answer + rng.laplace(size=size)

    return sampler, end


def test_a_call_returns_raises_or_is_late():
    assert within(5.0, lambda: 3) == within(None, lambda: 3) == within(float("inf"), lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda: 1 // 0)
    end = threading.Event()
    with pytest.raises(TimeoutError):
        within(0.05, lambda: end.wait(20))
    end.set()
    assert within(5.0, threading.get_ident) != threading.get_ident(), "the next call has another helper"


def test_a_block_that_hangs_is_named_at_once_also_in_a_search_and_by_a_setting():
    started = time.monotonic()
    for number in (1, 200):
        sampler, end = hangs_at(number)
        with pytest.raises(MechanismError, match=r"took longer than 0.3 seconds for a chunk"):
            check(sampler, 0.0, 1.0, runs=20_000, chunk_seconds=0.3, **laplace)
        end.set()
    sampler, end = hangs_at(7)
    with dpaudit.settings(chunk_seconds=0.3):
        found = find_worst_pair(sampler, [(0.0, 1.0), (0.0, -1.0)], runs=400, search_runs=400, **laplace)
    end.set()
    assert [pair.error is None for pair in found.ranking].count(False) == 1
    assert time.monotonic() - started < 15


def test_a_frozen_clock_does_not_stop_a_time_limit():
    started = time.monotonic()
    real = time.monotonic
    with mock.patch("time.perf_counter", return_value=0.0), mock.patch("time.monotonic", return_value=0.0):
        assert now() > 0.0
        result = check(
            noisy, 0.0, 1.0, sequential=True, seconds=0.3, on_interim=lambda look: real() - started > 10, **laplace
        )
    assert result.runs >= 40
    assert real() - started < 10
