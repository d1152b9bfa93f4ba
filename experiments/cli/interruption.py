"""Ctrl-C: the first stops after the current batch and keeps it, the second stops immediately."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import typer

from ...audit.progress import Shown
from ...audit.results.audit_result import Look

STATUS = 130
"""Exit status of an interrupted command."""


class Interrupted(KeyboardInterrupt):
    """Interruption after a finished batch."""


@dataclass(slots=True)
class Interruption:
    """State of Ctrl-C in a command."""

    is_asked: bool = False
    finished: int = 0

    def progress(self, shown: Shown) -> Callable[[int], None]:
        """Return `progress` for an audit of fixed size, which is stopped without a verdict."""

        def advance(finished: int) -> None:
            shown.advance(finished)
            self.finished += finished
            if self.is_asked:
                raise Interrupted

        return advance

    def look(self, shown: Shown) -> Callable[[Look], bool]:
        """Return `on_look` for a sequential audit, whose verdict is valid at every look."""

        def look(seen: Look) -> bool:
            shown.look(seen)
            self.finished = 2 * seen.runs
            return self.is_asked

        return look


@contextmanager
def interruptible(say: Callable[[str], None], way_on: str) -> Iterator[Interruption]:
    """Handle Ctrl-C in the block; an interrupted command says how to continue and exits with `STATUS`."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield interruption
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if interruption.is_asked:
            raise KeyboardInterrupt
        interruption.is_asked = True
        say("finishing the current batch; Ctrl-C again stops immediately")

    former = signal.signal(signal.SIGINT, ask)
    try:
        yield interruption
    except KeyboardInterrupt:
        after = f" after {interruption.finished:,} runs" if interruption.finished else ""
        say(f"interrupted{after}; {way_on}")
        raise typer.Exit(STATUS) from None
    finally:
        signal.signal(signal.SIGINT, former)
