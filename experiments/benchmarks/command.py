"""Benchmarks: ``dpaudit bench inference | detection | … | all``, and the pages that the figures make."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...reports.cli.shared_options import Jobs, Seed, optional, say, whole

if TYPE_CHECKING:
    from .measure import Table

FILES = {
    "inference": (("inference",), "Statistics: false alarms, exact size, runs to a refutation, power."),
    "detection": (
        ("detection", "small_excesses"),
        "Detection: published suites, the catalogue of bugs, rare and floating-point leaks.",
    ),
    "regression": (("regression",), "Regression testing: failed sessions over correct mechanisms."),
    "libraries": (("libraries",), "Libraries: audits of releases, defects found by the search."),
    "google": (
        ("google",),
        "Google's test cases of counts and sums, with variants that have 5% too little noise.",
    ),
    "replays": (("replays",), "Record and replay: false findings, composite mechanisms."),
    "canaries": (("canaries",), "Audits of one training run: false alarms, and bounds on DP-SGD."),
    "exact": (("exact",), "Exact audits: the catalogue of bugs, beside what sampling needs, and libraries."),
}
"""By the name of the JSON file: the modules of its tables, and the first sentence of the command's help."""
_SHARED = (
    "Rows that need a library which is not installed are left out. Each finished row is written at once and replaces "
    "the row of the same name in the folder. Exit status 1 if a target is missed."
)

bench = typer.Typer(
    help="Measure what the documents say of dpaudit.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

CaseAlpha = Annotated[float, typer.Option(help="Allowed false-alarm probability of each case.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small numbers, to see that everything works.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the measurements in --out instead of repeating them.")]
Records = Annotated[Path | None, optional("Folder of the JSON files.", "--out")]
Page = Annotated[Path | None, optional("File for a copy of the page.", "--out")]


def tables_of(name: str) -> list[Table]:
    """Return the tables of a JSON file; their modules are imported here."""
    modules = (import_module(f".{module}", __package__) for module in FILES[name][0])
    return [table for module in modules for table in module.TABLES]


def _add_command(name: str, purpose: str) -> None:
    def run(
        table: Annotated[list[str] | None, optional("Name of a table; by default all.", "--table")] = None,
        only: Annotated[
            list[str] | None, optional("Measure the rows whose name contains this text; by default all.")
        ] = None,
        quick: Quick = False,
        audits: Annotated[int | None, whole("Audits of a row that grows.", show_default="of the table")] = None,
        jobs: Jobs = None,
        resume: Resume = False,
        out: Records = None,
    ) -> None:
        from ...audit.errors import UnknownNameError
        from ...audit.printing import did_you_mean
        from .measure import Effort, measure

        tables = {each.name: each for each in tables_of(name)}
        for asked in table or []:
            if asked not in tables:
                hint = did_you_mean(asked, tables) or "."
                raise UnknownNameError(f"{asked!r} is not a table; use {', '.join(tables)}{hint}", name=asked)
        file = None if out is None else out / f"{name}{'-quick' * quick}.json"
        effort = Effort.of(quick=quick, audits=audits, jobs=jobs)
        chosen = [tables[each] for each in table or tables]
        met = measure(chosen, effort, only=only or (), file=file, resume=resume, tell=typer.echo)
        raise typer.Exit(0 if met else 1)

    bench.command(name, help=f"{purpose}\n\n{_SHARED}\n\nExample: `dpaudit bench {name} --quick`")(run)


for _name, (_, _purpose) in FILES.items():
    _add_command(_name, _purpose)


@bench.command("all")
def bench_all(quick: Quick = False, resume: Resume = False, jobs: Jobs = None, out: Records = None) -> None:
    """Every benchmark, and their summary: about a day on two cores, or minutes with --quick.

    --resume measures only the missing rows of the folder. Exit status 1 if a target is missed.

    Example: `dpaudit bench all --resume --out docs/benchmarks`
    """
    from ...audit.files import write_atomically
    from .measure import Effort, measure
    from .summary import summary

    effort, all_met = Effort.of(quick=quick, audits=None, jobs=jobs), True
    for name in FILES:
        file = None if out is None else out / f"{name}{'-quick' * quick}.json"
        met = measure(tables_of(name), effort, file=file, resume=resume, tell=typer.echo)
        all_met = all_met and met
    if out is not None and not quick:
        write_atomically(out / "index.md", summary(out))
    raise typer.Exit(0 if all_met else 1)


@bench.command("summary")
def bench_summary(
    records: Annotated[Path, typer.Option(help="Folder of the JSON files.")] = Path("docs/benchmarks"),
    out: Page = None,
) -> None:
    """Summary of the measured figures, with a comparison with other tools and the missed targets.

    Example: `dpaudit bench summary --out docs/benchmarks/index.md`
    """
    from .summary import summary

    _print_page(summary(records), out)


@bench.command("errata")
def bench_errata(seed: Seed = 0, alpha: CaseAlpha = 1e-5, jobs: Jobs = None, out: Page = None) -> None:
    """Errors in the source documents, with the results of their cases. Exit status 1 if any verdict is unexpected.

    Example: `dpaudit bench errata --out docs/sources-errata.md`
    """
    from ..suite.run_suite import chosen_experiments, run_experiments
    from .errata import cases_of, errata_page

    chosen = chosen_experiments(cases_of())
    suite = run_experiments(chosen, alpha=alpha, seed=seed, jobs=jobs)
    _print_page(errata_page(suite), out)
    raise typer.Exit(0 if suite.is_met else 1)


@bench.command("gallery")
def bench_gallery(out: Annotated[Path, typer.Option(help="File of the page; pictures are put next to it.")]) -> None:
    """Gallery of bugs: an audit and a picture of each of twenty.

    Example: `dpaudit bench gallery --out docs/gallery.md`
    """
    from ...audit.files import check_target, write_atomically
    from .gallery import gallery_page

    check_target(out)
    write_atomically(out, gallery_page(out.parent / "pictures" / "gallery"))
    say(f"wrote {out}")


@bench.command("pictures")
def bench_pictures(folder: Annotated[Path, typer.Argument(help="Folder for the pictures.")], jobs: Jobs = None) -> None:
    """Sample report and its picture in a browser. Needs Chromium and Playwright.

    Example: `dpaudit bench pictures docs/pictures`
    """
    from .pictures import pictures

    for path in pictures(folder, jobs=jobs):
        typer.echo(str(path))


def _print_page(text: str, out: Path | None) -> None:
    from ...audit.files import write_atomically

    try:
        if out is not None:
            write_atomically(out, text)
    finally:
        typer.echo(text)
