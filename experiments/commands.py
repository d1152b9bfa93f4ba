"""``dpaudit run | list | suite``: experiments, and every public callable of an installed library."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from ..audit.errors import OptionError
from ..reports.cli.report_commands import FORMS, console, earlier_title, print_lines, show, write_reports
from ..reports.cli.shared_options import Jobs, completion, environment_of_command, optional, say, whole

if TYPE_CHECKING:
    from .library_suites.run_plan import Outcome, SuiteRun

LIBRARIES = ("opendp", "diffprivlib", "pydp", "pipeline-dp", "flwr", "nvflare", "smartnoise-sql", "pyqrlew")
"""Libraries that have suites."""

Names = Annotated[list[str] | None, typer.Argument(help="Ids such as E2, names of cases, or all.", show_default=False)]
RunsOfCases = Annotated[int | None, whole("Runs per dataset; by default the number of each case.", show_default=False)]


def run(
    names: Names = None,
    runs: RunsOfCases = None,
    alpha: Annotated[
        float | None, typer.Option(help="Allowed false-alarm probability of each case.", show_default="1e-05")
    ] = None,
    seed: Annotated[
        int | None, whole("Random seed; results do not depend on the number of workers.", show_default="0")
    ] = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results and the report.", show_default="audit-report")
    ] = None,
    resume: Annotated[Path | None, optional("Folder of an interrupted run to resume with its options.")] = None,
) -> None:
    """Run experiments: by default the reference mechanisms and their buggy variants, or `all`.

    Exit status 0 if every verdict is expected, 1 otherwise: a correct variant is refuted, a buggy one is not, or a
    case is inconclusive, possibly because `--runs` is too small.

    The folder keeps all finished work, also after Ctrl-C or a crash, and `--resume` continues from there.

    Example: `dpaudit run E2 D7`
    """
    from ..reports.cli.interruption import Begun, interruptible, store_for, telling_what_is_kept
    from ..reports.plain_text import require_for_html
    from .suite.run_suite import chosen_experiments, run_experiments

    if resume is not None and out not in (None, resume):
        raise OptionError(f"--resume continues in {resume}, and --out {out} is a different folder; leave --out out.")
    out = resume or out or Path("audit-report")
    require_for_html()
    way_on = f"`dpaudit run --resume {out}` continues"
    earlier = None if resume else earlier_title(out)
    with store_for(out, "run", is_resumed=resume is not None) as store:
        begun = Begun.noted(store, names=names or None, runs=runs, alpha=alpha, seed=seed)
        chosen = chosen_experiments(begun.names)
        with telling_what_is_kept(store, f"--resume {out}"), interruptible(way_on):
            suite = run_experiments(
                chosen,
                alpha=begun.alpha,
                seed=begun.seed,
                runs=begun.runs,
                jobs=jobs,
                out=out,
                progress=True,
                environment=environment_of_command(),
                store=store,
            )
        written: list[str] = []
        try:  # the verdicts are printed even if the report cannot be written
            with telling_what_is_kept(store, f"--resume {out}"):
                written = write_reports(suite, out)
        finally:
            if earlier is not None:
                written.append(f"replaced: the earlier results in {out}, {earlier!r}; --out names another folder")
            show(suite, written)
        store.discard()
    raise typer.Exit(0 if suite.is_met else 1)


def list_experiments(names: Names = None) -> None:
    """Show the experiments and their statements; experiments named by id, or `all`, are shown with their cases.

    Example: `dpaudit list E2`
    """
    from .suite.run_suite import all_experiments, chosen_experiments, details, overview

    if names:
        console().print(*details(chosen_experiments(names)), sep="\n")
    else:
        console().print(overview(all_experiments()))
        console().print("`dpaudit list E2` shows the cases of E2, `dpaudit run E2` runs them.")


_OUT = Path("audit-suite")


def suite(
    library: Annotated[
        str,
        typer.Argument(metavar="LIBRARY", help=f"One of {', '.join(LIBRARIES)}.", autocompletion=completion(LIBRARIES)),
    ],
    list_only: Annotated[
        bool, typer.Option("--list", help="Show the plan and its coverage, and audit nothing.")
    ] = False,
    only: Annotated[
        str | None, optional("Regular expression for the names of callables and points to audit.", metavar="PATTERN")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Time for all audits.")] = 30.0,
    alpha: Annotated[
        float, typer.Option(help="Allowed probability of refuting any correct callable, over the whole suite.")
    ] = 1e-4,
    bits: Annotated[
        bool,
        typer.Option(
            "--floating-point/--no-floating-point",
            help="Audit floating-point leaks that the pilot shows.",
        ),
    ] = True,
    seed: Annotated[int, whole("Random seed.")] = 0,
    jobs: Annotated[int, whole("Number of processes, each of which audits one configuration at a time.")] = 1,
    deadline: Annotated[
        float | None,
        optional("Seconds after which a hanging configuration is ended; by default ten times its time, at least 60."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results and reports.", show_default=str(_OUT))] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the suite in --out; repeat its options.")] = False,
) -> None:
    """Audit every public mechanism, tool and model of the installed version of a library.

    Each callable is audited at several configurations of its parameter grid, on the worst pair that a search finds.
    Alpha is divided equally among all audits of the plan before the first one, so it holds wherever the time ends. A
    refutation is reported if fresh runs with another seed and the pair swapped refute the claim too. The coverage says
    what was not audited, and why. Exit status: 0 if no claim is refuted, 1 if one is refuted, 2 for invalid input or an
    error, 3 if audits are inconclusive, refutations are not confirmed, or nothing was audited.

    Example: `dpaudit suite opendp --minutes 20 --jobs 2`
    """
    from ..reports.plain_text import require_for_html
    from .library_suites.audited_library import plan_of
    from .library_suites.coverage import coverage_of_plan, coverage_text, plan_text
    from .library_suites.library_names import library_named
    from .library_suites.run_plan import run_plan

    known = library_named(library)
    plan = plan_of(known, alpha=alpha, only=only, with_bits=bits)
    if list_only:
        typer.echo(plan_text(plan))
        typer.echo(coverage_text(coverage_of_plan(plan)))
        return
    require_for_html()
    folder = out or _OUT

    def watch(outcome: Outcome, done: int, total: int) -> None:
        say(f"[{done}/{total}] {outcome.name}: {outcome.words}")

    typer.echo(plan_text(plan, points=False))
    try:
        with _terminated_as_ctrl_c():
            run = run_plan(
                known,
                plan,
                seed=seed,
                minutes=minutes,
                workers=jobs,
                out=folder,
                is_resumed=resume,
                only=only,
                deadline=deadline,
                watch=watch,
            )
    except KeyboardInterrupt:
        say("interrupted; the same command with --resume continues")
        raise typer.Exit(130) from None
    _write(run, folder)
    raise typer.Exit(run.status)


@contextmanager
def _terminated_as_ctrl_c() -> Iterator[None]:
    """Let a termination of this process end its workers, one of which may hang and would go on for ever."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _write(run: SuiteRun, folder: Path) -> None:
    """Write the reports of the audits and the coverage, and print the outcome."""
    from ..audit.files import write_atomically
    from ..reports.formats.sarif import results_file
    from .library_suites.coverage import (
        counts_text,
        coverage_markdown,
        coverage_of_run,
        coverage_table,
        coverage_text,
        outcome_text,
    )

    coverage = coverage_of_run(run)
    written: list[str] = []
    shared = {
        "coverage": counts_text(coverage),
        "alpha of the suite": run.plan.alpha,
        "alpha of an audit": run.plan.share,
    }
    found = run.suite(environment_of_command() | shared)
    if found.entries:
        forms = ["html", "markdown", "junit", "json"]
        written += write_reports(found, folder, forms, tables=[coverage_table(coverage)])
        files = [results_file(folder / FORMS["json"], found)]
        written += write_reports(found, folder, ["sarif", "code scanning"], files=files)
    write_atomically(folder / "coverage.json", json.dumps(coverage.to_dict(), indent=1, ensure_ascii=False) + "\n")
    write_atomically(folder / "coverage.md", coverage_markdown(coverage, run.plan.release))
    typer.echo(coverage_text(coverage))
    typer.echo(outcome_text(run))
    print_lines([*written, f"coverage: {folder / 'coverage.md'}"])
