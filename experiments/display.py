"""The terminal: a console for tables, and the progress of long audits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Watch = Callable[[str, int | None], Callable[[int], None]]


def console() -> Any:
    """A rich console, 120 columns wide where it is no terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


@contextmanager
def progress() -> Iterator[Watch | None]:
    """A progress display with runs per second and time left; None where standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if not task.speed else f"{task.speed / 1e6:.3g} million runs/s")

    columns = (TextColumn("{task.description}"), BarColumn(), Speed(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:

        def watch(name: str, total: int | None) -> Callable[[int], None]:
            task = display.add_task(escape(name), total=total)
            return lambda finished: display.update(task, advance=finished)

        yield watch
