"""``dpaudit suite``: every public callable of an installed library."""

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

from ...reports.cli.report_commands import FORMS, print_lines, write_reports
from ...reports.cli.shared_options import completion, environment_of_command, optional, say, whole

if TYPE_CHECKING:
    from .run_plan import Outcome, SuiteRun

LIBRARIES = ("opendp", "diffprivlib", "pydp", "pipeline-dp", "flwr", "nvflare", "smartnoise-sql", "pyqrlew")
"""Libraries that have suites."""

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
    from ...reports.plain_text import require_for_html
    from .audited_library import plan_of
    from .coverage import coverage_of_plan, coverage_text, plan_text
    from .library_names import library_named
    from .run_plan import run_plan

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
    from ...audit.files import write_atomically
    from ...reports.formats.sarif import results_file
    from .coverage import (
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
