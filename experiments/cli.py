"""The command line: ``dpaudit run | list | audit | plan | report | compare | schema | bench``."""

from __future__ import annotations

import platform
import shlex
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ..audit.errors import AuditError, OptionError
from .cli_bench import bench
from .cli_options import Documents, Jobs, Names, Power, Seed, chosen_experiments
from .cli_report import compare, report, schema, show, write_reports
from .display import console, progress

app = typer.Typer(
    name="dpaudit",
    help="Empirical privacy auditing: does this code have the differential privacy it claims?",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(bench, name="bench")


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


@app.command()
def run(
    names: Names = None,
    document: Documents = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Executions on each dataset; by default what each case needs.", show_default=False),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Allowed probability of a false alarm, for each case.")] = 1e-5,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Allowed probability of any false alarm, shared equally; replaces --alpha.", show_default=False
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="Folder for the results and the report.")] = Path("audit-report"),
) -> None:
    """Run experiments: by default the reference mechanisms and their faulty twins, `all` for all there are.

    Exit status 0 if every case says what is expected of it, 1 if any does not: a true version that is refuted, a false
    one that is not, or any that is inconclusive, for which too few `--runs` may be the reason.

    Example: `dpaudit run E2 D7`
    """
    from ..audit.inference.multiplicity import split_budget
    from .suite import run_experiments

    chosen = chosen_experiments(names, document)
    if budget is not None:
        alpha = split_budget(budget, [case.name for each in chosen for case in each.cases]).shares[0][1]
    with progress() as watch:
        suite = run_experiments(
            chosen,
            alpha=alpha,
            seed=seed,
            runs=runs,
            jobs=jobs,
            out=out,
            watch=lambda case, size: watch(case.name, 2 * size).advance,
            environment=_environment(),
        )
    show(suite)
    write_reports(suite, out)
    raise typer.Exit(0 if suite.is_met else 1)


@app.command("list")
def list_experiments(names: Names = None, document: Documents = None) -> None:
    """Show the experiments and what each states; those named, by id or `all`, with the cases that test them.

    Example: `dpaudit list E2`
    """
    from .listing import details, overview
    from .registry import all_experiments

    if names or document:
        console().print(*details(chosen_experiments(names, document)), sep="\n")
    else:
        console().print(overview(all_experiments()))
        console().print("`dpaudit list E2` shows the cases of E2, `dpaudit run E2` runs them.")


@app.command()
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
    epsilon: Annotated[float | None, typer.Option(help="Claimed epsilon.", show_default=False)] = None,
    delta: Annotated[float, typer.Option(help="Claimed delta.")] = 0.0,
    mu: Annotated[float | None, typer.Option(help="Claimed mu, for Gaussian DP.", show_default=False)] = None,
    rho: Annotated[
        float | None, typer.Option(help="Claimed rho, for zero-concentrated DP.", show_default=False)
    ] = None,
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
    alpha: Annotated[float, typer.Option(help="Allowed probability of refuting a correct mechanism.")] = 0.05,
    resolution: Annotated[
        float | None, typer.Option(help="Excess that has to be findable, else inconclusive.", show_default=False)
    ] = None,
    power: Power = 0.95,
    sequential: Annotated[bool, typer.Option(help="Stop as soon as the claim is refuted.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(help="Time that the audit may take, which makes it sequential.", show_default=False),
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
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json and the report; none by default.", show_default=False)
    ] = None,
) -> None:
    """Audit a mechanism of your own on a pair of datasets, or on the worst that a search finds.

    The mechanism is a function f(dataset, size, rng) that draws `size` outputs, f(dataset, rng) or f(dataset) that
    draws one, or an object with sample(dataset, size, rng); where it has an attribute `claim`, none need be given. Exit
    status 0 if the claim is not refuted, 1 if it is, 3 if the audit is inconclusive, 2 for unusable input.

    Example: `dpaudit audit mycode.counts:noisy_count --x '[1, 1, 1]' --y '[1, 1]' --epsilon 1 --adjacency add-remove`

    With --search mycode.counts:domain, the pair is the worst of many that are tried. With --program "./count 0.5" the
    mechanism is a program in any language; docs/guides/program.md says what it is sent and answers.
    """
    from ..audit.check import check
    from ..audit.records import Entry, Suite, save
    from ..audit.search import find_worst_pair
    from ..audit.verdicts import Verdict
    from .arguments import adjacency_from_option, bits_from_option, claim_or_none
    from .datasets import import_object, read_dataset

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
    }
    with progress() as watch:
        shown_while = watch(label, None if runs is None or sequential or search else 2 * runs)
        options |= {"progress": shown_while.advance, "on_look": shown_while.look}
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
        suite = Suite(title=f"Audit of {label}", entries=entries, environment=_environment())
        save(suite, out / "results.json")
        typer.echo(f"results: {out / 'results.json'}")
        write_reports(suite, out)
    raise typer.Exit({Verdict.NOT_REFUTED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}[result.verdict])


@app.command()
def plan(
    epsilon: Annotated[float | None, typer.Option(help="Claimed epsilon.", show_default=False)] = None,
    delta: Annotated[float, typer.Option(help="Claimed delta.")] = 0.0,
    mu: Annotated[float | None, typer.Option(help="Claimed mu, for Gaussian DP.", show_default=False)] = None,
    rho: Annotated[
        float | None, typer.Option(help="Claimed rho, for zero-concentrated DP.", show_default=False)
    ] = None,
    resolution: Annotated[
        list[float] | None, typer.Option(help="An excess to be found; several may be given.", show_default=False)
    ] = None,
    runs: Annotated[
        list[int] | None, typer.Option(help="Runs on each dataset; several may be given.", show_default=False)
    ] = None,
    power: Power = 0.95,
    alpha: Annotated[float, typer.Option(help="Allowed probability of refuting a correct mechanism.")] = 0.05,
    q: Annotated[
        float | None,
        typer.Option(
            help="Probability of the event on the less likely side; by default the best that any event can have.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Runs needed to find an excess over a claim, and the excess that a number of runs finds.

    Example: `dpaudit plan --epsilon 1 --resolution 0.02 --runs 1000000`
    """
    from .arguments import claim_from_options
    from .plan import plan_table

    claim = claim_from_options(epsilon, delta, mu, rho)
    console().print(plan_table(claim, resolution or [], runs or [], power=power, alpha=alpha, q=q))


def _mechanism(path: str | None, program: str | None) -> tuple[Any, str]:
    """The mechanism that is named, and what to call it."""
    from .datasets import import_object

    if program is None:
        return import_object(str(path)), str(path)
    from ..mechanisms.adapters import Program

    try:
        words = shlex.split(program)
    except ValueError as error:
        raise OptionError(f"--program {program!r} cannot be taken apart: {error}.", program=program) from error
    return Program(words), program


app.command()(report)
app.command()(compare)
app.command()(schema)


def main() -> None:
    """Entry point: an error on purpose is one line on standard error and exit status 2; 1 is kept for "refuted"."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        app(args=arguments, prog_name="dpaudit")
    except AuditError as error:
        if debug:
            traceback.print_exc()
        _fail(error)
    except OSError as error:
        if debug:
            traceback.print_exc()
        _fail(error)
    except Exception:  # a bug, of the caller's code or of ours
        traceback.print_exc()
        sys.exit(2)


def _fail(error: Exception) -> NoReturn:
    typer.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)
    sys.exit(2)


def _environment() -> dict[str, Any]:
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
    from ..audit.records import this_moment

    return {"command": " ".join(shown), "machine": platform.platform(), "started": this_moment()}


if __name__ == "__main__":
    main()
