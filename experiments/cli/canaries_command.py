"""``dpaudit canaries``: one training run, from the scores of canaries that coins put in or left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .display import on_terminal
from .known_names import CANARY_ADJACENCIES, CANARY_ANSWERS, CANARY_COINS, CANARY_METHODS
from .options import (
    Alpha,
    Delta,
    Epsilon,
    Mu,
    Resolution,
    Rho,
    check_choices,
    completion,
    environment_of_command,
    optional,
    whole,
)
from .report_commands import print_lines, write_reports


def canaries(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Scores and coins: .csv, .npy or .npz; a file for each training run."),
    ],
    score: Annotated[str, typer.Option(help="Column of the scores, large where the canary seems to be in.")] = "score",
    included: Annotated[
        str, typer.Option(help="Column that says whether the canary was in: 1 or 0, true or false.")
    ] = "included",
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    alpha: Alpha = 0.05,
    resolution: Resolution = None,
    probability: Annotated[float, typer.Option(help="Probability with which each coin included its canary.")] = 0.5,
    coins: Annotated[
        str | None,
        optional(
            "independent, or fixed for a random split into fixed numbers; by default independent, unless exactly half "
            "of the canaries are in.",
            complete=CANARY_COINS,
        ),
    ] = None,
    adjacency: Annotated[
        str | None,
        optional("Neighbours of the claim: add-remove (default) or replace.", complete=CANARY_ADJACENCIES),
    ] = None,
    answers: Annotated[
        str | None,
        optional("What is guessed: both, in or out; by default both for fair coins.", "--say", complete=CANARY_ANSWERS),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="Tests: auto, betting, counts, steinke or f-dp.", autocompletion=completion(CANARY_METHODS)),
    ] = "auto",
    guesses: Annotated[
        list[int] | None,
        whole(
            "Number of guesses, chosen without a look at the scores; can be given several times.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, whole("Random seed of the order of equal scores.")] = 0,
    name: Annotated[str, typer.Option(help="Name of the training in the results.")] = "training run",
    out: Annotated[Path | None, optional("Folder for results.json and the report; by default none.")] = None,
) -> None:
    """Audit one training run, from the scores of canaries that coins put in or left out.

    Before training, a coin decides for each canary whether it is in the training data. Afterwards each canary gets a
    score from what the training releases. A .csv has a line of names; an .npz has arrays with these names; an .npy has
    shape (canaries, 2), score first. Several files are independent runs with new coins. Exit status: 0 if the claim is
    not refuted, 1 if it is refuted, 2 for invalid input or an error, 3 if so few canaries could not show an excess as
    large as the claim.

    Example: `dpaudit canaries scores.csv --epsilon 1 --delta 1e-5 --out report`
    """
    from ...audit.canaries.check_canaries import check_canaries
    from ...audit.records.json_codec import save
    from ...audit.records.suite import Entry, Suite
    from ...audit.results.audit_result import Verdict
    from ...reports.libraries import require_for_html
    from ...reports.plain_text import canary_facts
    from .claim_options import claim_from_options
    from .dataset_arguments import read_scores
    from .verdict_lines import in_shell, next_steps_for_canaries

    claim = claim_from_options(epsilon, delta, mu, rho)
    given = ((coins, CANARY_COINS, "--coins"), (adjacency, CANARY_ADJACENCIES, "--adjacency"))
    for value, known, option in (*given, (answers, CANARY_ANSWERS, "--say"), (method, CANARY_METHODS, "--method")):
        check_choices([] if value is None else [value], known, option)
    if out is not None:
        require_for_html()
    scores, flags = read_scores(paths, score, included)
    options: dict[str, Any] = {"coins": coins, "adjacency": adjacency, "say": answers, "method": method}
    result = check_canaries(
        scores, flags, claim=claim, alpha=alpha, resolution=resolution, probability=probability,
        guesses=guesses or None, seed=seed, name=name, **options,
    )  # fmt: skip
    written: list[str] = []
    try:  # a verdict is printed even if its report cannot be written
        if out is not None:
            entries = (Entry(name=name, result=result),)
            suite = Suite(title=f"Audit of {name}", entries=entries, environment=environment_of_command())
            save(suite, out / "results.json")
            written = [f"results: {out / 'results.json'}", *write_reports(suite, out)]
    finally:
        typer.echo(in_shell(str(result), result))
        for label, fact in canary_facts(result):
            typer.echo(f"  {label:<8} {fact}")
    print_lines(written)
    if on_terminal():
        typer.echo("\n".join(next_steps_for_canaries(result, out=out)))
    raise typer.Exit({Verdict.NOT_REFUTED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}[result.verdict])
