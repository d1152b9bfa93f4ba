"""Terminal output: a console for tables, and the progress of long audits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...audit.printing import rounded_down

if TYPE_CHECKING:
    from ...audit.results.interim_look import Look
    from ...audit.search.find_worst_pair import TriedPair

_EVERY = 10.0  # seconds between two lines if standard error is not a terminal


@dataclass(frozen=True, slots=True)
class Shown:
    """Callbacks of an audit on display.

    Attributes
    ----------
    advance : callable
        `progress` of `check`; receives the number of runs finished since the last call, on both datasets together.
    look : callable
        `on_look` of `check`.
    lead : callable
        `on_round` of `find_worst_pair`.
    """

    advance: Callable[[int], None]
    look: Callable[[Look], None]
    lead: Callable[[TriedPair], None]


Watch = Callable[[str, int | None], Shown]


def console() -> Any:
    """Return a rich console, 120 columns wide if the output is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


@contextmanager
def progress() -> Iterator[Watch]:
    """Show progress on standard error.

    A terminal shows runs per second, the remaining time and the current bound of a sequential audit. Other outputs
    receive a line every ten seconds.
    """
    if not sys.stderr.isatty():
        yield _in_lines
        return
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
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as display:

        def watch(name: str, total: int | None) -> Shown:
            task = display.add_task(escape(name), total=total)
            return Shown(
                advance=lambda finished: display.update(task, advance=finished),
                look=lambda look: display.update(task, description=escape(f"{_words(look)}: {name}")),
                lead=lambda pair: display.update(task, description=escape(f"leading: {pair}")),
            )

        yield watch


def _in_lines(name: str, total: int | None) -> Shown:
    """Write lines for a log; a short audit writes no line."""
    last, done = time.monotonic(), 0

    def say(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            print(f"{name}: {text}", file=sys.stderr, flush=True)

    def advance(finished: int) -> None:
        nonlocal done
        done += finished
        if total is not None:
            say(f"{done:,} of {total:,} runs")

    return Shown(advance=advance, look=lambda look: say(_words(look)), lead=lambda pair: say(f"leading pair: {pair}"))


def _words(look: Look) -> str:
    return f"{look.runs:,} runs on each dataset, bound {rounded_down(look.bound):g}, p {look.p_value:.2g}"


def _amount(number: float) -> str:
    return f"{number / 1e6:.3g} million" if number >= 1e5 else f"{number:,.3g}"
