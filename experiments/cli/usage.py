"""Mistakes in a command line: found before values are converted, which takes longer, and told in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

from ...audit.printing import did_you_mean

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


def one_mechanism(path: object, program: object) -> None:
    """Raise an `OptionError` unless exactly one of the two names the mechanism of an audit."""
    from ...audit.errors import OptionError

    if (path is None) == (program is None):
        raise OptionError(
            "a mechanism is named as MODULE:OBJECT or as --program 'name arguments'; give one of the two."
        )


def _check_audit(values: dict[str, Any]) -> None:
    given = {name: values[name] if isinstance(values.get(name), str) else None for name in ("path", "program")}
    one_mechanism(**given)


_CHECKS = {"audit": _check_audit}
"""Checks of commands that hold for options together."""
