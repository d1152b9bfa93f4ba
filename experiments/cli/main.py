"""The command line: ``dpaudit run | list | audit | plan | report | compare | schema | bench``."""

from __future__ import annotations

import io
import sys
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ...audit.errors import AuditError
from .audit_command import audit
from .bench_command import bench
from .display import console, progress
from .options import (
    Alpha,
    Delta,
    Documents,
    Epsilon,
    Jobs,
    Mu,
    Names,
    Power,
    Rho,
    RunsOfCases,
    chosen_experiments,
    environment_of_command,
    optional,
    say,
)
from .report_commands import compare, report, schema, show, write_reports

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
    runs: RunsOfCases = None,
    alpha: Annotated[
        float | None, typer.Option(help="Allowed false-alarm probability of each case.", show_default="1e-05")
    ] = None,
    budget: Annotated[
        float | None, optional("Allowed family-wise error, split equally among the cases; replaces --alpha.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Random seed; results do not depend on the number of workers.", show_default="0"),
    ] = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results and the report.", show_default="audit-report")
    ] = None,
    resume: Annotated[Path | None, optional("Folder of an interrupted run to resume with its options.")] = None,
) -> None:
    """Run experiments: by default the reference mechanisms and their faulty twins, or `all`.

    Exit status 0 if every verdict is expected, 1 otherwise: a true version is refuted, a false version is not, or a
    case is inconclusive, possibly because `--runs` is too small.

    Ctrl-C stops after the current batch, and a second Ctrl-C immediately. The folder keeps all finished work, also
    after a crash, and `--resume` continues from there.

    Example: `dpaudit run E2 D7`
    """
    from ...audit.errors import OptionError
    from ...audit.inference.multiplicity import split_budget
    from ...reports.libraries import require_for_html
    from ..suite.run_suite import run_experiments
    from .interruption import interruptible
    from .resuming import Begun, store_for, telling_what_is_kept

    if resume is not None and out not in (None, resume):
        raise OptionError(f"--resume continues in {resume}, and --out {out} is a different folder; leave --out out.")
    out = resume or out or Path("audit-report")
    require_for_html()
    hint = f"interrupted; --resume {out} continues"
    with store_for(out, "run", is_resumed=resume is not None) as store:
        begun = Begun.noted(
            store, names=names or None, document=document or None, runs=runs, alpha=alpha, budget=budget, seed=seed
        )
        chosen, of_each = chosen_experiments(begun.names or None, begun.document or None), begun.alpha
        if begun.budget is not None:
            of_each = split_budget(begun.budget, [case.name for each in chosen for case in each.cases]).shares[0][1]
        with telling_what_is_kept(store, f"--resume {out}"), interruptible(say, hint) as asked, progress() as watch:
            suite = run_experiments(
                chosen,
                alpha=of_each,
                seed=begun.seed,
                runs=begun.runs,
                jobs=jobs,
                out=out,
                watch=lambda case, size: asked.progress(watch(case.name, 2 * size)),
                environment=environment_of_command(),
                store=store,
            )
        show(suite)
        with telling_what_is_kept(store, f"--resume {out}"):
            write_reports(suite, out)
        store.discard()
    raise typer.Exit(0 if suite.is_met else 1)


@app.command("list")
def list_experiments(names: Names = None, document: Documents = None) -> None:
    """Show the experiments and their statements; experiments named by id, or `all`, are shown with their cases.

    Example: `dpaudit list E2`
    """
    from ..suite.listing import details, overview
    from ..suite.registry import all_experiments

    if names or document:
        console().print(*details(chosen_experiments(names, document)), sep="\n")
    else:
        console().print(overview(all_experiments()))
        console().print("`dpaudit list E2` shows the cases of E2, `dpaudit run E2` runs them.")


@app.command()
def plan(
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    resolution: Annotated[list[float] | None, optional("Excess to detect; can be given several times.")] = None,
    runs: Annotated[list[int] | None, optional("Runs on each dataset; can be given several times.")] = None,
    power: Power = 0.95,
    alpha: Alpha = 0.05,
    q: Annotated[
        float | None, optional("Probability of the event on the less likely side; by default that of the best event.")
    ] = None,
) -> None:
    """Runs that detect an excess over a claim, and the excess that a number of runs detects.

    Example: `dpaudit plan --epsilon 1 --resolution 0.02 --runs 1000000`
    """
    from .claim_options import claim_from_options
    from .plan_command import plan_table

    claim = claim_from_options(epsilon, delta, mu, rho)
    console().print(plan_table(claim, resolution or [], runs or [], power=power, alpha=alpha, q=q))


app.command()(audit)
app.command()(report)
app.command()(compare)
app.command()(schema)


def main() -> None:
    """Entry point: a deliberate error is one line on standard error and exit status 2; 1 is reserved for "refuted"."""
    for stream in (sys.stdout, sys.stderr):  # file names can hold characters that the terminal cannot show
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        app(args=arguments, prog_name="dpaudit")
    except (AuditError, OSError) as error:
        if debug:
            traceback.print_exc()
        _fail(error)
    except Exception:  # a bug in the code of the caller or in ours
        traceback.print_exc()
        sys.exit(2)


def _fail(error: Exception) -> NoReturn:
    typer.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
