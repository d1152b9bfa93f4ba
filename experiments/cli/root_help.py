"""The help of ``dpaudit`` alone, in the form of typer's, without its modules for Markdown and tracebacks.

They take as long to import as typer and rich together, and the help of a command still uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def print_help(ctx: Any, commands: Mapping[str, Any]) -> None:
    """Print the usage, the purpose, the options and the commands with their first sentences."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    group, console = ctx.command, Console(highlight=False)
    usage = Text.assemble(("Usage:", "yellow"), ctx.get_usage().removeprefix("Usage:"), style="bold")
    console.print(Padding(usage, 1))
    console.print(Padding(Text(group.help), (0, 1, 1, 1)))
    options = [(", ".join(param.opts), param.help) for param in group.get_params(ctx)]
    console.print(_panel("Options", options))
    console.print(_panel("Commands", [(name, command.help) for name, command in commands.items()]))
    console.print()


def _panel(title: str, rows: Iterable[tuple[str, str]]) -> Any:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1), expand=True)
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(ratio=1)
    for name, words in rows:
        table.add_row(name, Text(words.replace("`", "")))
    return Panel(table, title=title, title_align="left", border_style="dim")
