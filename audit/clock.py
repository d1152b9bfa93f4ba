"""The clock of time limits and of measured seconds, and calls with a time limit.

Tests freeze the clock by replacing `time.monotonic`, `time.perf_counter` and the like, also where modules have imported
them. A limit must hold there, so this clock asks the operating system.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

R = TypeVar("R")

_clock = (time.perf_counter,)  # in a tuple, where nobody who freezes the clock looks for functions


def now() -> float:
    """Return the seconds of a clock that never goes back, and that nothing in this process can stop."""
    if hasattr(time, "clock_gettime"):
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return _clock[0]()  # Windows


class _Helper:
    """A thread that makes calls for the thread that owns it, and ends with it."""

    def __init__(self) -> None:
        self.todo: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self.done: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        threading.Thread(target=_serve, args=(self.todo, self.done), daemon=True, name="dpaudit: time limit").start()

    def __del__(self) -> None:
        self.todo.put(None)


def _serve(todo: SimpleQueue[Callable[[], Any] | None], done: SimpleQueue[tuple[bool, Any]]) -> None:
    while (call := todo.get()) is not None:
        try:
            result = True, call()
        except BaseException as error:  # for the thread that waits
            result = False, error
        done.put(result)
        del call, result


_helpers = threading.local()


def within(seconds: float | None, call: Callable[[], R]) -> R:
    """Return what a call returns, or raise what it raises; a `TimeoutError` if it takes longer than the limit.

    With a limit the call is made in another thread, the same for all calls of a thread; one that is late goes on there
    and is abandoned. A call that holds Python's lock all the time is not seen to be late before it ends.
    """
    if seconds is None or seconds > threading.TIMEOUT_MAX:  # no wait can be longer
        return call()
    helper = getattr(_helpers, "held", None)
    if helper is None:
        helper = _helpers.held = _Helper()
    context = contextvars.copy_context()  # numpy's answers to floating-point errors, among others
    helper.todo.put(lambda: context.run(call))
    try:
        is_returned, result = helper.done.get(timeout=seconds)
    except BaseException as error:  # late, or interrupted: its answer would be taken for that of another call
        del _helpers.held
        if isinstance(error, Empty):
            raise TimeoutError from None
        raise
    if is_returned:
        return result  # type: ignore[no-any-return]
    raise result
