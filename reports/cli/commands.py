"""The commands by name, whose modules are imported when they are used, and mistakes in a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ...audit.errors import MechanismError, OptionError
from ...audit.printing import did_you_mean

UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]
"""The base class of the errors of typer's parser, wherever typer keeps it."""
_UsageError: Any = typer.BadParameter.__mro__[1]


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
    if ":" in word or word.endswith(".py"):
        return f"; a mechanism is audited by `dpaudit audit {word} --x … --y …`"
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
    elif (split := _EXTRA.search(said)) is not None:
        said = f"{split[1]} belongs to no option: the shell splits at spaces, so quote JSON as in --x '[1, 1]'"
    else:
        said = said[:1].lower() + said[1:]
    listed = "commands" if ctx is not None and hasattr(ctx.command, "list_commands") else "options"
    return f"{said}{'' if said.endswith('?') else ';'} `{path} --help` lists the {listed}."


_EXTRA = re.compile(r"unexpected extra arguments?(?:\(s\))? \((.*)\)$", re.IGNORECASE)
_PACKAGE = str(__package__).rpartition(".reports")[0]
_MODULES = {
    "experiments.suite.run_suite": ("run", "list"),
    "experiments.library_suites.command": ("suite",),
    "reports.cli.report_commands": ("plan", "report", "compare", "schema"),
    "reports.cli.audit_commands": ("audit", "replay", "canaries"),
    "experiments.benchmarks.command": ("bench",),
}
"""The commands of each module, which is named, not imported: `experiments` come after `reports`, and those that
measure dpaudit itself are not in the wheel."""
COMMANDS = {
    "run": "Run experiments: by default the reference mechanisms and their buggy variants, or `all`.",
    "list": "Show the experiments and their statements; experiments named by id, or `all`, are shown with their cases.",
    "plan": "Runs that detect an excess over a claim, and the excess that a number of runs detects.",
    "audit": "Audit a mechanism on a pair of datasets, or on the worst pair that a search finds.",
    "replay": "Name the line that leaks: run a mechanism on x and on y with the same random values.",
    "canaries": "Audit one training run, from the scores of canaries that inclusion bits put in or left out.",
    "suite": "Audit every public mechanism, tool and model of the installed version of a library.",
    "report": "Write reports from saved results, by default report.html and report.md.",
    "compare": "Changes between two files of results, by a test on the counts of the earlier events.",
    "schema": "Print the JSON Schema of files of results.",
    "bench": "Measure what the documents say of dpaudit.",
}
"""The commands in the order of the help, and the first sentence of the help of each."""


class DeferredGroup(TyperGroup):
    """Commands that are imported on use; the list of commands shows their first sentences only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=words) for name, words in COMMANDS.items()}
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
        return [name for name in self.commands if _is_installed(name)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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


def _module_of(name: str) -> str:
    (module,) = (module for module, names in _MODULES.items() if name in names)
    return f"{_PACKAGE}.{module}"


def _is_installed(name: str) -> bool:
    return find_spec(_module_of(name).rpartition(".")[0]) is not None


def _load(name: str) -> Any:
    if not _is_installed(name):
        raise OptionError(
            f"`dpaudit {name}` measures dpaudit itself and is not installed with the package; run `make evidence` in a "
            f"checkout of the repository, or PYTHONPATH=.venv/source python -m dpaudit {name}."
        )
    found = getattr(import_module(_module_of(name)), "list_experiments" if name == "list" else name)
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
    rich_markup_mode=None,  # rich takes as long to import as all else that shows this help
)


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Both are read by `main`, without this module if only the version is asked for."""


def command_line() -> Any:
    """Return the group of all commands."""
    return typer.main.get_command(app)
