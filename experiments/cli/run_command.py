"""``dpaudit run | list``: experiments of the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...audit.progress import display
from .display import console
from .options import (
    Documents,
    Jobs,
    Names,
    RunsOfCases,
    chosen_experiments,
    environment_of_command,
    optional,
    say,
    whole,
)
from .report_commands import show, write_reports


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
        whole("Random seed; results do not depend on the number of workers.", show_default="0"),
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
    way_on = f"`dpaudit run --resume {out}` continues"
    with store_for(out, "run", is_resumed=resume is not None) as store:
        begun = Begun.noted(
            store, names=names or None, document=document or None, runs=runs, alpha=alpha, budget=budget, seed=seed
        )
        chosen, of_each = chosen_experiments(begun.names or None, begun.document or None), begun.alpha
        if begun.budget is not None:
            of_each = split_budget(begun.budget, [case.name for each in chosen for case in each.cases]).shares[0][1]
        with telling_what_is_kept(store, f"--resume {out}"), interruptible(say, way_on) as asked, display() as watch:
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
        written: list[str] = []
        try:  # the verdicts are printed even if the report cannot be written
            with telling_what_is_kept(store, f"--resume {out}"):
                written = write_reports(suite, out)
        finally:
            show(suite, written)
        store.discard()
    raise typer.Exit(0 if suite.is_met else 1)


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
