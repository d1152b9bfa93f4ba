"""Progress of audits on standard error: a bar on a terminal, one line in a notebook, a line now and then elsewhere.

The bar needs rich (`pip install 'dpaudit[cli]'`); without it a terminal shows one line, as a notebook does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from .options import Progress
from .printing import rounded_down

_EVERY = 10.0  # seconds between two lines of a log
_CLEARED, _WIDTH = "\r\x1b[K", 120  # control characters that clear the line; the longest line
_OFTEN = 0.5  # seconds between two states of a line that replaces itself


class AuditState(Protocol):
    """Part of an interim look that is shown."""

    @property
    def runs(self) -> int: ...
    @property
    def bound(self) -> float: ...
    @property
    def p_value(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """Callbacks of an audit on display.

    Attributes
    ----------
    advance : callable
        Receives the number of runs finished since the last call, on both datasets together.
    look : callable
        Receives each interim look of a sequential audit.
    lead : callable
        Receives the leading pair of a search.
    """

    advance: Callable[[int], None]
    look: Callable[[AuditState], None]
    lead: Callable[[object], None]


Watch = Callable[[str, int | None], Shown]
Told = tuple[Callable[[int], None] | None, Shown | None]
"""The function that is told of finished runs, and the display, either of which may be missing."""


@contextmanager
def told(progress: Progress, name: str, total: int | None) -> Iterator[Told]:
    """Provide the function that is told of finished runs, and the display if `progress` is True.

    Parameters
    ----------
    progress : bool, callable or None
        As in `check`.
    name : str
        Name of the audit.
    total : int or None
        Runs on both datasets together, if they are known.
    """
    if progress is True:
        with display() as watch:
            shown = watch(name, total)
            yield shown.advance, shown
    else:
        yield (progress if callable(progress) else None), None


@contextmanager
def display() -> Iterator[Watch]:
    """Show the progress of audits; a terminal also shows runs per second and the remaining time."""
    is_terminal = sys.stderr.isatty()
    if is_terminal and find_spec("rich") is not None:
        with _bars() as watch:
            yield watch
        return
    is_replaced = is_terminal or _in_notebook()
    try:
        yield _Line.watch(is_replaced=is_replaced)
    finally:
        if is_replaced:
            print(end=_CLEARED, file=sys.stderr, flush=True)


@contextmanager
def _bars() -> Iterator[Watch]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if not task.speed else f"{_amount(task.speed)} runs/s")

    words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (words, BarColumn(bar_width=12), Speed(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bars:

        def watch(name: str, total: int | None) -> Shown:
            task = bars.add_task(escape(name), total=total)
            return Shown(
                advance=lambda finished: bars.update(task, advance=finished),
                look=lambda look: bars.update(task, description=escape(f"{_words(look)}: {name}")),
                lead=lambda pair: bars.update(task, description=escape(f"leading: {pair}")),
            )

        yield watch


class _Line:
    """One audit told in lines: each replaces the last one, or they follow each other ten seconds apart."""

    def __init__(self, name: str, total: int | None, *, is_replaced: bool) -> None:
        self._name, self._total, self._is_replaced = name, total, is_replaced
        self._last, self._done = time.monotonic(), 0  # a short audit writes no line

    @classmethod
    def watch(cls, *, is_replaced: bool) -> Watch:
        def watch(name: str, total: int | None) -> Shown:
            line = cls(name, total, is_replaced=is_replaced)
            return Shown(
                advance=line.advance,
                look=lambda look: line.say(_words(look)),
                lead=lambda pair: line.say(f"leading pair: {pair}"),
            )

        return watch

    def advance(self, finished: int) -> None:
        self._done += finished
        if self._total is not None or self._is_replaced:
            self.say(f"{self._done:,}{'' if self._total is None else f' of {self._total:,}'} runs")

    def say(self, text: str) -> None:
        if time.monotonic() - self._last < (_OFTEN if self._is_replaced else _EVERY):
            return
        self._last = time.monotonic()
        if self._is_replaced:
            print(end=f"{_CLEARED}{self._name}: {text}"[:_WIDTH], file=sys.stderr, flush=True)
        else:
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)


def _in_notebook() -> bool:
    """Whether standard error is the output of a notebook's cell."""
    return type(sys.stderr).__module__.startswith("ipykernel")


def _words(look: AuditState) -> str:
    return f"{look.runs:,} runs on each dataset, bound {rounded_down(look.bound):g}, p {look.p_value:.2g}"


def _amount(number: float) -> str:
    return f"{number / 1e6:.3g} million" if number >= 1e5 else f"{number:,.3g}"
