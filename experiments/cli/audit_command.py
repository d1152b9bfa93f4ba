"""``dpaudit audit``: a mechanism of the user, on a pair of datasets or on the worst pair that a search finds."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from ...audit.errors import OptionError
from ...audit.files import path_of
from ...audit.progress import display
from .display import on_terminal
from .known_names import ADJACENCIES, BITS, HEALTH_CHECKS
from .options import (
    Alpha,
    Delta,
    Epsilon,
    Jobs,
    Mu,
    Power,
    Resolution,
    Rho,
    Seed,
    check_choices,
    completion,
    environment_of_command,
    optional,
    say,
    whole,
)
from .report_commands import print_lines, write_reports
from .usage import one_mechanism


def audit(
    path: Annotated[
        str | None,
        typer.Argument(metavar="[MODULE:OBJECT]", help="Mechanism, as package.module:object.", show_default=False),
    ] = None,
    program: Annotated[str | None, optional("Program to audit instead of an object, with its arguments.")] = None,
    x: Annotated[str | None, optional("Dataset x: JSON, @file.json, @file.npy or @file.csv.")] = None,
    y: Annotated[str | None, optional("Dataset y, a neighbour of x.")] = None,
    search: Annotated[
        str | None,
        optional("Domain such as Rows(), or source of pairs, to search for the worst pair.", metavar="MODULE:OBJECT"),
    ] = None,
    search_runs: Annotated[
        int | None, whole("Maximum executions of the search; by default --runs.", show_default=False)
    ] = None,
    guide: Annotated[
        str | None,
        optional('"replay" ranks the pairs of a search by what the noise is given.', complete=("replay",)),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    adjacency: Annotated[
        str | None,
        optional(
            "Neighbour relation of the pair: add-remove, replace, edge, node, local, l1, l2 or linf.",
            complete=ADJACENCIES,
        ),
    ] = None,
    distance: Annotated[int, whole("Distance of the pair; above 1, the audit tests group privacy.")] = 1,
    runs: Annotated[
        int | None,
        whole("Executions on each dataset; by default the number for --resolution, or 1,000,000.", show_default=False),
    ] = None,
    alpha: Alpha = 0.05,
    resolution: Resolution = None,
    power: Power = 0.95,
    sequential: Annotated[bool, typer.Option(help="Stop as soon as the claim is refuted.")] = False,
    seconds: Annotated[
        float | None, optional("Time limit of the audit, without the search; makes the audit sequential.")
    ] = None,
    cells: Annotated[int, whole("Number of cells for ratios and curves; 0 for none.")] = 0,
    bits: Annotated[
        str,
        typer.Option(
            help='Test of the low bits of floats: "warn", "true" for part of the verdict, or "false".',
            autocompletion=completion(BITS),
        ),
    ] = "warn",
    seed: Seed = 0,
    jobs: Jobs = None,
    ignore: Annotated[list[str] | None, optional("Health check to ignore.", complete=HEALTH_CHECKS)] = None,
    keep_datasets: Annotated[bool, typer.Option(help="Store the datasets in the results.")] = False,
    name: Annotated[str | None, optional("Name of the audit in the results; by default MODULE:OBJECT.")] = None,
    block_seconds: Annotated[
        float | None, optional("Time limit of a block of runs, for mechanisms that may hang.")
    ] = None,
    out: Annotated[Path | None, optional("Folder for results.json and the report; by default none.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the interrupted audit in --out; repeat its options.")
    ] = False,
) -> None:
    """Audit a mechanism on a pair of datasets, or on the worst pair that a search finds.

    The mechanism is a function f(dataset, size, rng) that draws `size` outputs, a function f(dataset, rng) or
    f(dataset) that draws one output, or an object with sample(dataset, size, rng). A mechanism with an attribute
    `claim` needs no options of the claim. Exit status: 0 if the claim is not refuted, 1 if it is refuted, 2 for invalid
    input or an error, 3 if the audit is inconclusive, 130 after Ctrl-C without a verdict.

    Example: `dpaudit audit mycode.counts:noisy_count --x '[1, 1, 1]' --y '[1, 1]' --epsilon 1 --adjacency add-remove`

    With --search mycode.counts:domain, the audit uses the worst of many pairs. With --program "./count 0.5" the
    mechanism is a program in any language; docs/guides/program.md describes its requests and answers.

    Ctrl-C stops after the current batch; the verdict of a sequential audit at that point is valid and is shown. With
    --out, all draws are kept, and the same command with --resume continues.
    """
    from ...audit.options import checked
    from ...audit.procedures.check import check
    from ...audit.records.json_codec import save
    from ...audit.records.suite import Entry, Suite
    from ...audit.results.audit_result import Verdict
    from ...audit.search.find_worst_pair import find_worst_pair
    from ...reports.libraries import require_for_html
    from ...reports.plain_text import error_budget, other_way
    from .claim_options import adjacency_from_option, bits_from_option, claim_or_none
    from .dataset_arguments import import_object, read_dataset
    from .interruption import STATUS, interruptible
    from .resuming import store_for, telling_what_is_kept
    from .verdict_lines import in_shell, next_steps

    claim = claim_or_none(epsilon, delta, mu, rho)
    one_mechanism(path, program)
    check_choices(ignore or [], HEALTH_CHECKS, "--ignore")
    folder = None if out is None else path_of(out)  # the audited code may change the working folder
    pair = [None if text is None else read_dataset(text, option) for text, option in ((x, "--x"), (y, "--y"))]
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
        raise OptionError("--resume continues the audit in a folder; name the folder with --out.")
    if out is not None:
        require_for_html()
    way_on = "the same command with --resume continues" if out else "with --out, all draws are kept"
    with ExitStack() as stack:
        store = None if folder is None else stack.enter_context(store_for(folder, "audit", is_resumed=resume))
        with interruptible(say, way_on) as asked, display() as watch:
            shown_while = watch(label, None if runs is None or sequential or search else 2 * runs)
            if options["sequential"]:
                options |= {"progress": shown_while.advance, "on_look": asked.look(shown_while)}
            else:
                options["progress"] = asked.progress(shown_while)
            options["store"] = store
            if search is not None and x is None and y is None:
                options |= {"on_round": shown_while.lead, "guide": checked("guide", guide, or_none=True)}
                found = find_worst_pair(mechanism, import_object(search), search_runs=search_runs, **options)
                result, shown, complement = found.audit, str(found), ""
            elif guide is not None:
                raise OptionError("--guide is for a search; name a domain with --search.")
            elif search is None and x is not None and y is not None:
                result = check(mechanism, *pair, **options)
                shown = f"{result}\n  pair    {result.pair.difference} ({result.pair.adjacency})"
                shown += f"\n  event   {result.event_in_words}"
                complement = other_way(result)
            elif search is None:
                missing, given = ("--x", "--y") if x is None else ("--y", "--x")
                raise OptionError(
                    "name a pair with --x and --y, or a domain to search with --search."
                    if x is None and y is None
                    else f"{missing} is missing; a pair needs it beside {given}."
                )
            else:
                raise OptionError("--x and --y name a pair, and --search finds one; use one of the two.")
        if complement:
            shown += f"\n          {complement}"
        written: list[str] = []
        try:  # a verdict is printed even if its report cannot be written
            if out is not None and folder is not None:
                entries = (Entry(name=label, result=result),)
                suite = Suite(title=f"Audit of {label}", entries=entries, environment=environment_of_command())
                with telling_what_is_kept(store, "the same command and --resume"):
                    save(suite, folder / "results.json")
                    written = write_reports(suite, folder, shown=out)
                    written.insert(0, f"results: {out / 'results.json'}")
        finally:
            typer.echo(
                f"{in_shell(shown, result)}\n  counts  {result.tested}\n  seed    {result.seed}\n"
                f"  alpha   {error_budget(result)}"
            )
            if result.cells is not None:
                typer.echo(f"  cells   {result.cells}")
        print_lines(written)
        if result.stopped == "request":
            say(f"interrupted after {result.runs:,} runs on each dataset; {way_on}")
            raise typer.Exit(STATUS)
        if store is not None:
            store.discard()
    if on_terminal():
        following = next_steps(result, has_runs=runs is not None, is_searched=search is not None, out=out)
        typer.echo("\n".join(following))
    raise typer.Exit({Verdict.NOT_REFUTED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}[result.verdict])


def _mechanism(path: str | None, program: str | None) -> tuple[Any, str]:
    """Return the named mechanism and its label."""
    from .dataset_arguments import import_object

    if program is None:
        return import_object(str(path)), str(path)
    from ...mechanisms.adapters import Program

    try:
        words = shlex.split(program)
    except ValueError as error:
        raise OptionError(
            f"--program {program!r} cannot be split into words ({error}); check its quotes.", program=program
        ) from error
    return Program(words), program
