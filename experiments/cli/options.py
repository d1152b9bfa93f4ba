"""Options that several commands share."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...audit.printing import did_you_mean
from .known_names import DOCUMENTS, EXPERIMENTS, REFERENCE_CASES

if TYPE_CHECKING:
    from ..cases.experiment import Experiment

_AUDITOR = ("DPAUDIT_AUDITOR", "GITHUB_ACTOR", "GITLAB_USER_LOGIN")
"""Environment variables that name who audits, the first one that is set."""


_MOST_DIGITS = 100
"""Of a whole number with an exponent, since one of a billion digits would fill the memory."""


def optional(text: str, *names: str, metavar: str | None = None, complete: Sequence[str] = ()) -> Any:
    """Return an option whose help does not show its default, and which the shell completes from the given values."""
    return typer.Option(
        *names,
        metavar=metavar,
        help=text,
        show_default=False,
        autocompletion=completion(complete) if complete else None,
    )


def whole(text: str, *names: str, show_default: bool | str = True) -> Any:
    """Return an option whose value is a whole number in any of the forms of `whole_number`."""
    return typer.Option(*names, help=text, show_default=show_default, parser=whole_number)


def whole_number(text: str | int) -> int:
    """Return a whole number that may have underscores or an exponent.

    Examples
    --------
    >>> whole_number("100_000"), whole_number("1e5"), whole_number("2.5e3"), whole_number("-1")
    (100000, 100000, 2500, -1)
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = Decimal(text)
        if value.adjusted() < _MOST_DIGITS and value == value.to_integral_value():
            return int(value)
    except (InvalidOperation, ValueError, OverflowError):  # letters, NaN, infinity
        pass
    raise typer.BadParameter(f"{text!r} is not a whole number, such as 100000, 100_000 or 1e5")


def completion(values: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the function by which typer completes a value."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


Runs = Annotated[int, whole("Executions on each dataset.")]
Seed = Annotated[int, whole("Random seed; results do not depend on the number of workers.")]
Epsilon = Annotated[float | None, optional("Claimed ε.")]
Delta = Annotated[float, typer.Option(help="Claimed δ.")]
Mu = Annotated[float | None, optional("Claimed μ, for Gaussian DP.")]
Rho = Annotated[float | None, optional("Claimed ρ, for zero-concentrated DP.")]
Alpha = Annotated[float, typer.Option(help="Allowed probability of refuting a correct mechanism.")]
CaseAlpha = Annotated[float, typer.Option(help="Allowed false-alarm probability of each case.")]
Power = Annotated[float, typer.Option(help="Power of the audit at its detectable excess.")]
Resolution = Annotated[
    float | None, optional("Required detectable excess; an audit with a larger one is inconclusive.")
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Ids such as E2, names of cases, or all.",
        show_default=False,
        autocompletion=completion((*EXPERIMENTS, *REFERENCE_CASES)),
    ),
]
Documents = Annotated[
    list[str] | None, optional("Select all experiments of a document.", "--document", complete=DOCUMENTS)
]
Jobs = Annotated[
    int | None, whole("Number of workers; by default every core, or one for a sampler of blocks.", show_default=False)
]
RunsOfCases = Annotated[
    int | None, whole("Executions on each dataset; by default the number of each case.", show_default=False)
]


def check_choices(given: Sequence[str], known: Sequence[str], option: str) -> None:
    """Raise an `OptionError` for a value that is not one of the known ones."""
    from ...audit.errors import OptionError

    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or "."
            raise OptionError(f"{option} {name!r} is unknown; use one of {', '.join(known)}{hint}", name=name)


def chosen_experiments(names: list[str] | None, documents: list[str] | None) -> list[Experiment]:
    """Return the requested experiments, by default the reference suite."""
    from ..cases.experiment import select
    from ..suite.registry import all_experiments

    if not names and not documents:
        documents = ["reference"]
    return select(all_experiments(), names or [], documents or [])


def say(text: str) -> None:
    """Write a line to standard error."""
    typer.echo(text, err=True)


def environment_of_command() -> dict[str, Any]:
    """Return the command line without its datasets, the machine, the time, and the auditor if one is named."""
    words, shown = sys.argv[1:], ["dpaudit"]
    for before, word in zip(["", *words], words, strict=False):
        option, equals, value = word.partition("=")
        if before in ("--x", "--y") and not word.startswith("@") and "--keep-datasets" not in words:
            shown.append("…")
        elif option in ("--x", "--y") and equals and not value.startswith("@") and "--keep-datasets" not in words:
            shown.append(f"{option}=…")
        else:
            shown.append(word)
    from ...audit.records.json_codec import this_moment

    by = next((name for variable in _AUDITOR if (name := os.environ.get(variable))), None)
    told = {"command": " ".join(shown), "machine": platform.platform(), "started": this_moment()}
    return told if by is None else {**told, "by": by}
