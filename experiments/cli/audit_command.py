"""``dpaudit audit``: a mechanism of the user's own, on a pair or on the worst that a search finds."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from ...audit.errors import OptionError
from .display import progress
from .options import Alpha, Delta, Epsilon, Jobs, Mu, Power, Rho, Seed, environment_of_command, say
from .report_commands import write_reports


def audit(
    path: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:OBJECT]", help="The mechanism: package.module:object.", show_default=False),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(help="Instead: a program that is asked for outputs, with its arguments.", show_default=False),
    ] = None,
    x: Annotated[
        str | None, typer.Option(help="A dataset: JSON, or @file.json, @file.npy, @file.csv.", show_default=False)
    ] = None,
    y: Annotated[str | None, typer.Option(help="A neighbouring dataset.", show_default=False)] = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:OBJECT",
            help="Instead of a pair: a domain such as Rows(), or what makes pairs, to search for the worst.",
            show_default=False,
        ),
    ] = None,
    search_runs: Annotated[
        int | None,
        typer.Option(help="Executions that a search may take; by default as many as --runs.", show_default=False),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    adjacency: Annotated[
        str | None,
        typer.Option(
            help="add-remove, replace, edge, node, local, l1, l2 or linf; checks the pair.", show_default=False
        ),
    ] = None,
    distance: Annotated[int, typer.Option(help="Distance of the pair; beyond 1, group privacy is audited.")] = 1,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Executions on each dataset; by default what --resolution needs, or 1,000,000.", show_default=False
        ),
    ] = None,
    alpha: Alpha = 0.05,
    resolution: Annotated[
        float | None, typer.Option(help="Excess that has to be findable, else inconclusive.", show_default=False)
    ] = None,
    power: Power = 0.95,
    sequential: Annotated[bool, typer.Option(help="Stop as soon as the claim is refuted.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Time that the audit may take (a search comes before); makes it sequential.", show_default=False
        ),
    ] = None,
    cells: Annotated[int, typer.Option(help="Cells to count for ratios and curves; 0 for none.")] = 0,
    bits: Annotated[
        str, typer.Option(help='Low bits of floats: "warn" of them, "true" to audit them too, or "false".')
    ] = "warn",
    seed: Seed = 0,
    jobs: Jobs = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A health check to silence.", show_default=False)] = None,
    keep_datasets: Annotated[bool, typer.Option(help="Store the datasets in the results.")] = False,
    name: Annotated[
        str | None, typer.Option(help="Of the audit in the results; by default MODULE:OBJECT.", show_default=False)
    ] = None,
    block_seconds: Annotated[
        float | None,
        typer.Option(help="Time that a block of runs may take, for mechanisms that may hang.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json and the report; none by default.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the audit that was stopped in --out; repeat its options.")
    ] = False,
) -> None:
    """Audit a mechanism of your own on a pair of datasets, or on the worst that a search finds.

    The mechanism is a function f(dataset, size, rng) that draws `size` outputs, f(dataset, rng) or f(dataset) that
    draws one, or an object with sample(dataset, size, rng); where it has an attribute `claim`, none need be given. Exit
    status 0 if the claim is not refuted, 1 if it is, 3 if the audit is inconclusive, 2 for unusable input.

    Example: `dpaudit audit mycode.counts:noisy_count --x '[1, 1, 1]' --y '[1, 1]' --epsilon 1 --adjacency add-remove`

    With --search mycode.counts:domain, the pair is the worst of many that are tried. With --program "./count 0.5" the
    mechanism is a program in any language; docs/guides/program.md says what it is sent and answers.

    Ctrl-C ends the batch in hand: of a sequential audit the verdict so far holds, and is shown. With --out all that was
    drawn is kept, and the same command with --resume goes on.
    """
    from ...audit.procedures.check import check
    from ...audit.records.json_codec import save
    from ...audit.records.suite import Entry, Suite
    from ...audit.results.audit_result import Verdict
    from ...audit.search.find_worst_pair import find_worst_pair
    from .claim_options import adjacency_from_option, bits_from_option, claim_or_none
    from .dataset_arguments import import_object, read_dataset
    from .interruption import STATUS, interruptible
    from .resuming import store_for, telling_what_is_kept

    claim = claim_or_none(epsilon, delta, mu, rho)
    if (path is None) == (program is None):
        raise OptionError(
            "a mechanism is named as MODULE:OBJECT, or as --program 'name arguments'; use one of the two."
        )
    mechanism, label = _mechanism(path, program)
    label = label if name is None else name
    options: dict[str, Any] = {
        "claim": claim,
        "adjacency": adjacency_from_option(adjacency),
        "distance": distance,
        "runs": runs,
        "alpha": alpha,
        "seed": seed,
        "resolution": resolution,
        "power": power,
        "sequential": sequential or seconds is not None,
        "seconds": seconds,
        "cells": cells,
        "bits": bits_from_option(bits),
        "jobs": jobs,
        "ignore": ignore or (),
        "keep_datasets": keep_datasets,
        "name": name,
        "block_seconds": block_seconds,
    }
    if resume and out is None:
        raise OptionError("--resume goes on with the audit in a folder; name it with --out.")
    hint = "interrupted; " + (
        "the same command with --resume goes on" if out else "--out would have kept what is drawn"
    )
    with ExitStack() as stack:
        store = None if out is None else stack.enter_context(store_for(out, "audit", is_resumed=resume))
        with interruptible(say, hint) as asked, progress() as watch:
            shown_while = watch(label, None if runs is None or sequential or search else 2 * runs)
            if options["sequential"]:
                options |= {"progress": shown_while.advance, "on_look": asked.look(shown_while)}
            else:
                options["progress"] = asked.progress(shown_while)
            options["store"] = store
            if search is not None and x is None and y is None:
                found = find_worst_pair(mechanism, import_object(search), search_runs=search_runs, **options)
                result, shown = found.audit, str(found)
            elif search is None and x is not None and y is not None:
                result = check(mechanism, read_dataset(x), read_dataset(y), **options)
                pair = f"{result.pair.difference} ({result.pair.adjacency})"
                shown = f"{result}\n  event   {result.event_in_words}\n  pair    {pair}"
            else:
                raise OptionError("a pair is given by --x and --y, or looked for by --search; use one of the two.")
        typer.echo(f"{shown}\n  counts  {result.counts}\n  seed    {result.seed}\n  error   {result.ledger}")
        if result.cells is not None:
            typer.echo(f"  cells   {result.cells}")
        if out is not None:
            entries = (Entry(name=label, result=result),)
            suite = Suite(title=f"Audit of {label}", entries=entries, environment=environment_of_command())
            with telling_what_is_kept(store, "the same command with --resume"):
                save(suite, out / "results.json")
                typer.echo(f"results: {out / 'results.json'}")
                write_reports(suite, out)
        if result.stopped == "request":
            say(hint)
            raise typer.Exit(STATUS)
        if store is not None:
            store.discard()
    raise typer.Exit({Verdict.NOT_REFUTED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}[result.verdict])


def _mechanism(path: str | None, program: str | None) -> tuple[Any, str]:
    """The mechanism that is named, and what to call it."""
    from .dataset_arguments import import_object

    if program is None:
        return import_object(str(path)), str(path)
    from ...mechanisms.adapters import Program

    try:
        words = shlex.split(program)
    except ValueError as error:
        raise OptionError(f"--program {program!r} cannot be taken apart: {error}.", program=program) from error
    return Program(words), program
