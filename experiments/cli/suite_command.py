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

from ...audit.errors import OptionError
from .known_names import LIBRARIES
from .options import check_choices, completion, environment_of_command, optional, say, whole

if TYPE_CHECKING:
    from ..library_suites.run_plan import SuiteRun
    from ..library_suites.run_target import Outcome

_OUT, _RELEASES_OUT = Path("audit-suite"), Path("audit-releases")


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
        bool, typer.Option("--bits/--no-bits", help="Audit low bits too, where the pilot shows them.")
    ] = True,
    seed: Annotated[int, whole("Random seed.")] = 0,
    jobs: Annotated[int, whole("Number of processes, each of which audits one point at a time.")] = 1,
    deadline: Annotated[
        float | None,
        optional("Seconds after which a hanging point is ended; by default ten times its time, at least 60."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results and reports.", show_default=str(_OUT))] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the suite in --out; repeat its options.")] = False,
    releases: Annotated[
        list[Path] | None,
        optional(
            "Environment with a release of the library, or folder of its finished suite; once for each release. Writes "
            "a table of callables by release.",
            metavar="PATH",
        ),
    ] = None,
) -> None:
    """Audit every public mechanism, tool and model of the installed version of a library.

    Each callable is audited at several points of its parameter grid, on the worst pair that a search finds. Alpha is
    divided equally among all audits of the plan before the first one, so it holds wherever the time ends. A refutation
    is reported if fresh runs with another seed and the pair swapped refute the claim too. The coverage says what was
    not audited, and why. Exit status: 0 if no claim is refuted, 1 if one is refuted, 2 for invalid input or an error, 3
    if audits are inconclusive, refutations are not confirmed, or nothing was audited.

    With --releases, the suite runs in each given environment, where dpaudit must be installed too, with an equal part
    of alpha and with --minutes for each. Nothing is installed.

    Example: `dpaudit suite opendp --minutes 20 --jobs 2`
    """
    if releases:
        if list_only:
            raise OptionError("--list shows the installed release; omit it or --releases.")
        options = {"--only": only, "--minutes": minutes, "--seed": seed, "--jobs": jobs, "--deadline": deadline}
        given = [f"{name}={value}" for name, value in options.items() if value is not None]
        given.append("--bits" if bits else "--no-bits")
        raise typer.Exit(_releases(library, releases, given, alpha, out or _RELEASES_OUT, is_resumed=resume))
    from ...reports.libraries import require_for_html
    from ..library_suites.coverage import coverage_of_plan
    from ..library_suites.library_names import library_named
    from ..library_suites.plan import plan_of
    from ..library_suites.run_plan import run_plan
    from ..library_suites.suite_pages import coverage_text, plan_text

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
    from ...reports.formats.results_files import results_file
    from ..library_suites.coverage import coverage_of_run
    from ..library_suites.suite_pages import counts_text, coverage_markdown, coverage_table, coverage_text, outcome_text
    from .report_commands import FORMS, print_lines, write_for_reviewers, write_reports

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
        written += write_for_reviewers(found, folder, ["sarif", "code scanning"], files)
    write_atomically(folder / "coverage.json", json.dumps(coverage.to_dict(), indent=1, ensure_ascii=False) + "\n")
    write_atomically(folder / "coverage.md", coverage_markdown(coverage, run.plan.release))
    typer.echo(coverage_text(coverage))
    typer.echo(outcome_text(run))
    print_lines([*written, f"coverage: {folder / 'coverage.md'}"])


def _releases(library: str, paths: list[Path], options: list[str], alpha: float, out: Path, *, is_resumed: bool) -> int:
    """Run suites in the environments among some paths, write the matrix of all releases, and return its status."""
    from ...audit.files import write_atomically
    from ...reports.libraries import require_for_html
    from ..library_suites.releases.matrix import matrix_of, read_release
    from ..library_suites.releases.pages import matrix_html, matrix_markdown, matrix_text
    from ..library_suites.releases.runs import interpreter_of, run_release

    check_choices([library], LIBRARIES, "library")
    require_for_html()
    interpreters = [interpreter_of(path) for path in paths]
    for path, python in zip(paths, interpreters, strict=True):
        if python is None:
            read_release(path, library)  # an unusable folder is an error before the first suite runs
    n_run = sum(python is not None for python in interpreters)
    options = [*options, f"--alpha={alpha / max(n_run, 1)!r}"]
    folders = []
    for path, python in zip(paths, interpreters, strict=True):
        if python is None:
            folders.append(path)
            continue
        say(f"{path}:")
        try:
            folders.append(run_release(python, library, options, out, is_resumed=is_resumed, watch=say))
        except KeyboardInterrupt:
            say("interrupted; the same command with --resume continues")
            raise typer.Exit(130) from None
    matrix = matrix_of(library, [read_release(folder, library) for folder in folders])
    pages = {
        "releases.html": matrix_html(matrix, out),
        "releases.md": matrix_markdown(matrix),
        "releases.json": json.dumps(matrix.to_dict(), indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in pages.items():
        write_atomically(out / name, text)
    typer.echo(matrix_text(matrix))
    typer.echo(f"releases: {out / 'releases.html'}")
    return matrix.status
