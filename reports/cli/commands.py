"""The commands by name, and mistakes in a command line, which are found before values are converted.

The module of a command is imported when the command is used. The help of ``dpaudit`` alone has the form of typer's,
without its modules for Markdown and tracebacks. They take as long to import as typer and rich together, and the help of
a command still uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ...audit.errors import MechanismError, OptionError
from ...audit.printing import did_you_mean
from .options import one_mechanism

UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]
"""The base class of the errors of typer's parser, wherever typer keeps it."""
_UsageError: Any = typer.BadParameter.__mro__[1]


def check_usage(command: Any, ctx: Any, arguments: list[str]) -> None:
    """Raise the first mistake of a command line that can be found from its words.

    An unknown command or option, an option without its value, a missing argument, or an argument too many.
    """
    values, rest, given = command.make_parser(ctx).parse_args(args=list(arguments))
    if any("--help" in param.opts for param in given):
        return
    if hasattr(command, "list_commands"):
        if rest:
            name, *others = rest
            found = command.get_command(ctx, name)
            if found is None:
                raise unknown_command(command, ctx, name)
            check_usage(found, type(ctx)(found, info_name=name, parent=ctx), others)
        elif ctx.parent is not None:
            typer.echo(ctx.get_help())
            raise typer.Exit
        return
    if rest:
        raise _UsageError(f"unexpected argument {rest[0]!r}; quote a value that contains spaces", ctx=ctx)
    for param in command.params:
        value = values.get(param.name)
        if param.required and not (isinstance(value, (str, list, tuple)) and value):
            raise _UsageError(f"the argument {str(param.metavar or param.name).upper()} is missing", ctx=ctx)
    if check := _CHECKS.get(command.name):
        check(values)


_ELSEWHERE = {
    "--claim": "--epsilon (with --delta), --mu or --rho",
    "--eps": "--epsilon",
    "--gdp": "--mu",
    "--scores": "--score",
    "--confidence": "--alpha",
    "--n": "--runs",
    "--samples": "--runs",
    "--workers": "--jobs",
    "--domain": "--search",
    "check": "audit",
    "test": "audit",
    "bench-all": "bench all",
}
"""Words that other tools use, and those that mean the same here."""


def _meant(word: str, known: Iterable[str]) -> str:
    return f"; use {_ELSEWHERE[word]}" if word in _ELSEWHERE else did_you_mean(word, known)


def unknown_command(group: Any, ctx: Any, name: str) -> Exception:
    """Return the error of a command that does not exist."""
    problem: Exception = _UsageError(f"{name!r} is not a command{_meant(name, group.list_commands(ctx))}", ctx=ctx)
    return problem


def usage_sentence(error: Any) -> str:
    """Return the mistake in a sentence that names the closest option, and where help is."""
    ctx, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
    path, said = ("dpaudit" if ctx is None else ctx.command_path), error.format_message().rstrip(".")
    if option is not None and hasattr(error, "possibilities"):
        known = [] if ctx is None else [name for param in ctx.command.get_params(ctx) for name in param.opts]
        said = f"{option} is not an option of `{path}`{_meant(option, known)}"
    else:
        said = said[:1].lower() + said[1:]
    listed = "commands" if ctx is not None and hasattr(ctx.command, "list_commands") else "options"
    return f"{said}{'' if said.endswith('?') else ';'} `{path} --help` lists the {listed}."


def _check_audit(values: dict[str, Any]) -> None:
    given = {name: values[name] if isinstance(values.get(name), str) else None for name in ("path", "program")}
    one_mechanism(**given)


_CHECKS = {"audit": _check_audit}
"""Checks of commands that hold for options together."""


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


_PACKAGE = str(__package__).rpartition(".reports")[0]
_REPORTS, _EXPERIMENTS = "reports.cli", "experiments.commands"
COMMANDS = {
    "run": (
        f"{_EXPERIMENTS}:run",
        "Run experiments: by default the reference mechanisms and their faulty twins, or `all`.",
    ),
    "list": (
        f"{_EXPERIMENTS}:list_experiments",
        "Show the experiments and their statements; experiments named by id, or `all`, are shown with their cases.",
    ),
    "plan": (
        f"{_REPORTS}.report_commands:plan",
        "Runs that detect an excess over a claim, and the excess that a number of runs detects.",
    ),
    "audit": (
        f"{_REPORTS}.audit_commands:audit",
        "Audit a mechanism on a pair of datasets, or on the worst pair that a search finds.",
    ),
    "canaries": (
        f"{_REPORTS}.audit_commands:canaries",
        "Audit one training run, from the scores of canaries that coins put in or left out.",
    ),
    "suite": (
        f"{_EXPERIMENTS}:suite",
        "Audit every public mechanism, tool and model of the installed version of a library.",
    ),
    "report": (
        f"{_REPORTS}.report_commands:report",
        "Write reports from saved results, by default report.html and report.md.",
    ),
    "compare": (
        f"{_REPORTS}.report_commands:compare",
        "Changes between two files of results, by a test on the counts of the earlier events.",
    ),
    "schema": (f"{_REPORTS}.report_commands:schema", "Print the JSON Schema of files of results."),
    "bench": ("experiments.benchmarks.command:bench", "Measure what the documents say of dpaudit."),
}
"""Module and function of each command, and the first sentence of its help.

They are named, not imported: `experiments` come after `reports`, and the benchmarks are not in the wheel.
"""


class DeferredGroup(TyperGroup):
    """Commands that are imported on use; the list of commands shows their first sentences only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=words) for name, (_, words) in COMMANDS.items()}
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
        return [name for name in self.commands if name != "bench" or _has_benchmarks()]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        print_help(ctx, {name: self.commands[name] for name in self.list_commands(ctx)})

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


def _has_benchmarks() -> bool:
    return find_spec(f"{_PACKAGE}.experiments.benchmarks") is not None


def _load(name: str) -> Any:
    if name == "bench" and not _has_benchmarks():
        raise OptionError(
            "the benchmarks are not installed with the package; run `make evidence` in a checkout of the repository, "
            "or one of them with PYTHONPATH=.venv/source python -m dpaudit bench."
        )
    module, _, function = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"{_PACKAGE}.{module}"), function)
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
