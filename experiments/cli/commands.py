"""The commands by name; the module of a command is imported when the command is used.

The help of ``dpaudit`` alone has the form of typer's, without its modules for Markdown and tracebacks. They take as
long to import as typer and rich together, and the help of a command still uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ...audit.errors import MechanismError
from .usage import check_usage, unknown_command


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


_COMMANDS = {
    "run": (
        "run_command",
        "run",
        "Run experiments: by default the reference mechanisms and their faulty twins, or `all`.",
    ),
    "list": (
        "run_command",
        "list_experiments",
        "Show the experiments and their statements; experiments named by id, or `all`, are shown with their cases.",
    ),
    "plan": (
        "plan_command",
        "plan",
        "Runs that detect an excess over a claim, and the excess that a number of runs detects.",
    ),
    "audit": (
        "audit_command",
        "audit",
        "Audit a mechanism on a pair of datasets, or on the worst pair that a search finds.",
    ),
    "canaries": (
        "canaries_command",
        "canaries",
        "Audit one training run, from the scores of canaries that coins put in or left out.",
    ),
    "suite": (
        "suite_command",
        "suite",
        "Audit every public mechanism, tool and model of the installed version of a library.",
    ),
    "report": (
        "report_commands",
        "report",
        "Write reports from saved results, by default report.html and report.md.",
    ),
    "compare": (
        "report_commands",
        "compare",
        "Changes between two files of results, by a test on the counts of the earlier events.",
    ),
    "schema": ("report_commands", "schema", "Print the JSON Schema of files of results."),
    "bench": ("bench_command", "bench", "Measure, and print a table in Markdown."),
}
"""Module, function and first sentence of the help of each command."""


class DeferredGroup(TyperGroup):
    """Commands that are imported on use; the list of commands shows their first sentences only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=words) for name, (_, _, words) in _COMMANDS.items()}
        self._loaded: dict[str, Any] = {}
        self._is_listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            return None
        if self._is_listing:
            return self.commands[cmd_name]
        if cmd_name not in self._loaded:
            self._loaded[cmd_name] = _load(cmd_name)
        return self._loaded[cmd_name]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_help(ctx, self.commands)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            check_usage(self, ctx, args)
        for param in self.get_params(ctx):
            if getattr(param, "is_flag", False) and param.default is None:
                param.default = False  # typer imports pydantic to convert None, which takes a quarter of a second
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            raise unknown_command(self, ctx, args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # commands that keep work say how to continue
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None
        except SystemExit as error:  # of the audited code, whose exit status would be taken for a verdict
            raise MechanismError(
                f"the audited code called exit({error.code!r}), so there is no verdict; remove that call."
            ) from error


def _load(name: str) -> Any:
    module, function, _ = _COMMANDS[name]
    found = getattr(import_module(f".{module}", __package__), function)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    name="dpaudit",
    cls=DeferredGroup,
    help="Empirical privacy auditing: does this code have the differential privacy it claims?",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """`debug` is read by `main`, which also accepts it after the command."""
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"dpaudit {installed('dpaudit')}")
        raise typer.Exit


def command_line() -> Any:
    """Return the group of all commands."""
    return typer.main.get_command(app)
