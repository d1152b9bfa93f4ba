"""Options that several commands share."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..cases.experiment import Experiment

Runs = Annotated[int, typer.Option(help="Executions on each dataset.")]
Seed = Annotated[int, typer.Option(help="Fixes every number, whatever the number of workers.")]
Epsilon = Annotated[float | None, typer.Option(help="Claimed epsilon.", show_default=False)]
Delta = Annotated[float, typer.Option(help="Claimed delta.")]
Mu = Annotated[float | None, typer.Option(help="Claimed mu, for Gaussian DP.", show_default=False)]
Rho = Annotated[float | None, typer.Option(help="Claimed rho, for zero-concentrated DP.", show_default=False)]
Alpha = Annotated[float, typer.Option(help="Allowed probability of refuting a correct mechanism.")]
Power = Annotated[float, typer.Option(help="Probability with which an excess has to be found.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(help="Ids, such as E2, names of cases, or all.", show_default=False),
]
Documents = Annotated[
    list[str] | None, typer.Option("--document", help="All experiments of a document.", show_default=False)
]
Jobs = Annotated[int | None, typer.Option(help="Workers; by default every core.", show_default=False)]


def chosen_experiments(names: list[str] | None, documents: list[str] | None) -> list[Experiment]:
    """The experiments asked for; the reference suite where nothing is."""
    from ..cases.experiment import select
    from ..suite.registry import all_experiments

    if not names and not documents:
        documents = ["reference"]
    return select(all_experiments(), names or [], documents or [])


def say(text: str) -> None:
    """A line on standard error."""
    typer.echo(text, err=True)


def environment_of_command() -> dict[str, Any]:
    """The command line, without datasets given in it, and the machine."""
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

    return {"command": " ".join(shown), "machine": platform.platform(), "started": this_moment()}
