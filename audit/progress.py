"""Progress of audits: a bar on a terminal, a line below a notebook's cell, a line now and then in a log.

The bar needs rich (`pip install 'dpaudit[cli]'`); without it a terminal shows one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from .clock import now
from .printing import rounded_down

if TYPE_CHECKING:
    from .options import Progress

_EVERY = 10.0  # seconds between two lines of a log
_WIDTH = 120  # characters of such a line
_OFTEN = 0.5  # seconds between two states of a line that replaces itself


class AuditState(Protocol):
    """Part of an interim analysis that is shown."""

    @property
    def runs(self) -> int: ...
    @property
    def bound(self) -> float: ...
    @property
    def pvalue(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """Callbacks of an audit on display.

    Attributes
    ----------
    advance : callable
        Receives the number of runs finished since the last call, on both datasets together.
    interim : callable
        Receives each interim analysis of a sequential audit.
    lead : callable
        Receives the leading pair of a search.
    """

    advance: Callable[[int], None]
    interim: Callable[[AuditState], None]
    lead: Callable[[object], None]


Watch = Callable[[str, int | None], Shown]
Told = tuple[Callable[[int], None] | None, Shown | None]
"""The function that is notified of finished runs, and the display, either of which may be missing."""


@contextmanager
def told(progress: Progress, name: str, total: int | None) -> Iterator[Told]:
    """Provide the function that is notified of finished runs, and the display if `progress` is True.

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
    if _in_notebook():
        write = _notebook_line()
        yield _Line.watch(write, every=_OFTEN)
        write("")
    elif not _on_terminal():
        yield _Line.watch(lambda text: _to_stderr(f"{text}\n"), every=_EVERY)
    elif find_spec("rich") is not None:
        with _bars() as watch:
            yield watch
    else:
        try:
            yield _Line.watch(_replace_line, every=_OFTEN)
        finally:
            _replace_line("")


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
    with Progress(*columns, console=Console(file=sys.stderr), transient=True, expand=True) as bars:

        def watch(name: str, total: int | None) -> Shown:
            task = bars.add_task(escape(name), total=total)
            return Shown(
                advance=lambda finished: bars.update(task, advance=finished),
                interim=lambda at: bars.update(task, description=escape(f"{_words(at)}: {name}")),
                lead=lambda pair: bars.update(task, description=escape(f"leading: {pair}")),
            )

        yield watch


class _Line:
    """One audit reported in lines, at most one in `every` seconds."""

    def __init__(self, write: Callable[[str], object], every: float, name: str, total: int | None) -> None:
        self._write, self._every, self._name, self._total = write, every, name, total
        self._last, self._done = now(), 0  # a short audit writes no line

    @classmethod
    def watch(cls, write: Callable[[str], object], *, every: float) -> Watch:
        def watch(name: str, total: int | None) -> Shown:
            line = cls(write, every, name, total)
            return Shown(
                advance=line.advance,
                interim=lambda at: line.say(_words(at)),
                lead=lambda pair: line.say(f"leading pair: {pair}"),
            )

        return watch

    def advance(self, finished: int) -> None:
        self._done += finished
        if self._total is not None:  # otherwise interim analyses or leading pairs are told
            self.say(f"{self._done:,} of {self._total:,} runs")

    def say(self, text: str) -> None:
        if now() - self._last >= self._every:
            self._last = now()
            self._write(f"{self._name}: {text}")


def _replace_line(text: str) -> None:
    _to_stderr(f"\r\x1b[K{text}"[:_WIDTH])


def _to_stderr(text: str) -> None:
    """Write the text to standard error if anybody reads it; a reader who left does not end an audit of hours."""
    if (stream := getattr(sys, "stderr", None)) is None:  # a program without a console
        return
    with suppress(Exception):  # a broken pipe, a closed stream, or what the audited code has put there
        print(end=text, file=stream, flush=True)


def _on_terminal() -> bool:
    stream = getattr(sys, "stderr", None)
    return not getattr(stream, "closed", True) and stream.isatty()  # type: ignore[union-attr]


def _notebook_line() -> Callable[[str], object]:
    """Return a function that replaces the text below a notebook's cell."""
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


def _in_notebook() -> bool:
    """Whether standard error is the output of a notebook's cell."""
    return type(getattr(sys, "stderr", None)).__module__.startswith("ipykernel")


def _words(at: AuditState) -> str:
    return f"{at.runs:,} runs on each dataset, bound {rounded_down(at.bound):g}, p {at.pvalue:.2g}"


def _amount(number: float) -> str:
    return f"{number / 1e6:.3g} million" if number >= 1e5 else f"{number:,.3g}"
