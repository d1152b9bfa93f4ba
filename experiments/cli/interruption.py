"""Ctrl-C: once ends the work in hand and keeps it, twice stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import typer

from ...audit.results.interim_look import Look
from .display import Shown

STATUS = 130
"""Exit status of a command that was interrupted."""


class Interrupted(KeyboardInterrupt):
    """The work in hand is finished, and no more is begun."""


@dataclass(slots=True)
class Interruption:
    """Whether Ctrl-C was pressed."""

    is_asked: bool = False

    def progress(self, shown: Shown) -> Callable[[int], None]:
        """For `progress` of an audit of fixed size, which has nothing to say before its end."""

        def advance(finished: int) -> None:
            shown.advance(finished)
            if self.is_asked:
                raise Interrupted

        return advance

    def look(self, shown: Shown) -> Callable[[Look], bool]:
        """For `on_look` of a sequential audit, which holds wherever it stops."""

        def look(seen: Look) -> bool:
            shown.look(seen)
            return self.is_asked

        return look


@contextmanager
def interruptible(say: Callable[[str], None], hint: str) -> Iterator[Interruption]:
    """Takes Ctrl-C while inside; a command that it ends says the hint and has a status of its own."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():  # which alone takes signals
        yield interruption
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if interruption.is_asked:
            raise KeyboardInterrupt
        interruption.is_asked = True
        say("finishing what is in hand; Ctrl-C again stops at once")

    former = signal.signal(signal.SIGINT, ask)
    try:
        yield interruption
    except KeyboardInterrupt:
        say(hint)
        raise typer.Exit(STATUS) from None
    finally:
        signal.signal(signal.SIGINT, former)
