"""Tracebacks of the library's errors without its own frames, so that a failure shows the line of the test."""

from __future__ import annotations

from types import TracebackType

import pytest

from ...audit.errors import AuditError

_PACKAGE = __name__.partition(".")[0]


def ending_in_the_test(caught: pytest.ExceptionInfo[BaseException]) -> pytest.ExceptionInfo[BaseException]:
    """Return what was caught without the last frames, those within the library, if the library raised on purpose.

    Other errors keep every frame: they come from the mechanism, or are bugs.
    """
    if not isinstance(caught.value, AuditError):
        return caught
    frames: list[TracebackType] = []
    traceback: TracebackType | None = caught.tb
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    while frames and frames[-1].tb_frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frames.pop()
    if not frames:
        return caught
    end: TracebackType | None = None
    for frame in reversed(frames):
        end = TracebackType(end, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return pytest.ExceptionInfo.from_exception(caught.value.with_traceback(end))
