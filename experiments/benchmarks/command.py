"""Benchmarks: ``dpaudit bench cost | experiments | errata | inference | detection | …``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...reports.cli.options import Jobs, Seed, completion, optional, say, whole
from ..commands import Documents, Names, RunsOfCases

if TYPE_CHECKING:
    from .core.page import Page

TABLES = {
    "inference": (
        "false-alarms", "sizes", "tightness", "refutation", "coverage", "dependence", "checks", "power",
    ),
    "detection": (
        "dp-sniper", "dp-sniper-long", "suites", "catalogue", "catalogue-searched", "leaks", "rare-leaks", "outcomes",
        "small-excesses", "hidden", "local", "synthetic",
    ),
    "regression": ("sessions", "planted", "calibration", "baselines"),
    "scale": ("memory", "large", "suite", "throughput", "scaling", "backends", "start"),
    "faults": ("faults", "kills"),
    "libraries": ("opendp", "diffprivlib", "pydp", "defects", "guided", "library-suites"),
    "google": ("google",),
    "canaries": (
        "canary-false-alarms", "canary-bounds", "jax-privacy", "dp-sgd", "training-mistakes",
    ),
    "replays": ("false-findings", "composites"),
    "reports": ("reports",),
}  # fmt: skip
"""Tables of each benchmark page."""

bench = typer.Typer(
    help="Measure, and print a table in Markdown.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)


CaseAlpha = Annotated[float, typer.Option(help="Allowed false-alarm probability of each case.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small numbers, to see that everything works.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the measurements in --out instead of repeating them.")]
Into = Annotated[Path | None, optional("File for a copy of the table.", "--out")]


@bench.command("cost")
def bench_cost(
    runs: Annotated[int, whole("Executions on each dataset.")] = 100_000_000,
    jobs: Annotated[int, whole("Number of workers.")] = 2,
    repeat: Annotated[int, whole("Number of rounds; the table shows medians.")] = 5,
    out: Into = None,
) -> None:
    """Seconds of a Laplace audit, relative to drawing the same noise.

    Example: `dpaudit bench cost --runs 10000000`
    """
    from .core.bench_json import cost

    _print_table(str(cost(runs, jobs, repeat)), out)


@bench.command("experiments")
def bench_experiments(
    names: Names = None,
    document: Documents = None,
    seeds: Annotated[int, whole("Number of seeds 0, 1, … for each case.")] = 10,
    runs: RunsOfCases = None,
    alpha: CaseAlpha = 1e-5,
    jobs: Jobs = None,
    out: Into = None,
) -> None:
    """Experiments over many seeds. Exit status 1 if any verdict is unexpected.

    Example: `dpaudit bench experiments all --seeds 3`
    """
    from ..suite.run_suite import chosen_experiments
    from .experiment_pages import over_seeds

    tables, all_met = over_seeds(chosen_experiments(names, document), seeds, runs, alpha, jobs)
    _print_table("\n".join(map(str, tables)), out)
    raise typer.Exit(0 if all_met else 1)


@bench.command("errata")
def bench_errata(
    seed: Seed = 0,
    alpha: CaseAlpha = 1e-5,
    jobs: Jobs = None,
    out: Into = None,
) -> None:
    """Errors in the source documents, with the results of their cases. Exit status 1 if any verdict is unexpected.

    Example: `dpaudit bench errata --out docs/sources-errata.md`
    """
    from ..documents.errata import cases_of, errata_page
    from ..suite.run_suite import chosen_experiments, run_experiments

    chosen = chosen_experiments(cases_of(), None)
    suite = run_experiments(chosen, alpha=alpha, seed=seed, jobs=jobs)
    _print_table(errata_page(suite), out)
    raise typer.Exit(0 if suite.is_met else 1)


@bench.command("gallery")
def bench_gallery(out: Annotated[Path, typer.Option(help="File of the page; the pictures are put beside it.")]) -> None:
    """Gallery of bugs: an audit and a picture of each of twenty.

    Example: `dpaudit bench gallery --out docs/gallery.md`
    """
    from ...audit.files import check_target, write_atomically
    from .experiment_pages import gallery_page

    check_target(out)
    write_atomically(out, gallery_page(out.parent / "pictures" / "gallery"))
    say(f"wrote {out}")


def _tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tables of the page whose command is completed."""
    return completion(TABLES.get(str(ctx.info_name), ()))(incomplete)


def page_of(name: str) -> Page:
    """Return a page; its module is imported here."""
    folder = "libraries" if name == "google" else name
    found: Page = getattr(import_module(f".{folder}.{folder}_page", __package__), name.upper())
    return found


def _add_page(name: str, purpose: str) -> None:
    """Add the command that measures a page."""

    def measure(
        table: Annotated[
            list[str] | None,
            typer.Option(help="Name of a table; by default all.", show_default=False, autocompletion=_tables),
        ] = None,
        only: Annotated[
            list[str] | None, optional("Name of a row, such as a mechanism or a bug; by default all.")
        ] = None,
        quick: Quick = False,
        audits: Annotated[int | None, whole("Audits or sessions of a row.", show_default="of the page")] = None,
        sequential_audits: Annotated[
            int | None, whole("Sequential audits of a row.", show_default="of the page")
        ] = None,
        jobs: Jobs = None,
        resume: Resume = False,
        out: Annotated[Path | None, optional("Folder for the page and its JSON.")] = None,
    ) -> None:
        from .core.page import effort_of, run_benches, select_benches

        page = page_of(name)
        effort = effort_of(
            page,
            quick=quick,
            audits=audits,
            sequential_audits=sequential_audits,
            jobs=jobs,
            only=only or [],
        )
        chosen = select_benches(page, table or [], only or [])
        all_met = run_benches(page, chosen, effort, out=out, resume=resume, show=typer.echo, watch=say)
        raise typer.Exit(0 if all_met else 1)

    shared = (
        "Each finished row is written at once and replaces the row of the same name in the folder. Exit status 1 if a "
        "target is missed."
    )
    bench.command(name, help=f"{purpose}\n\n{shared}\n\nExample: `dpaudit bench {name} --quick`")(measure)


PAGES = {
    "inference": "Statistics: false alarms, exact size, tightness, runs to a refutation, coverage, dependence, power.",
    "detection": "Detection: published suites, the catalogue of bugs, rare leaks and low bits, and the "
    "cost of an event.",
    "regression": "Regression testing: failed sessions over correct mechanisms, planted bugs, "
    "checks of noise, baselines.",
    "scale": "Long audits: memory, speed, large datasets, two workers, a dask cluster. Needs the extra dask "
    "and psutil.",
    "faults": "Faults: attacks by code, data and machine, and audits that are killed and resumed.",
    "libraries": "Libraries: audits of releases, and defects found by the search. Needs the extras opendp, "
    "diffprivlib and pydp; rows of missing libraries are left out.",
    "google": "Google's statistical test cases, with twins that have 5% too little noise. Needs the extra pydp; rows "
    "that draw from it are left out otherwise.",
    "replays": "Record and replay: false findings, composite mechanisms. Needs the "
    "extras opendp, diffprivlib and pydp; rows of missing libraries are left out.",
    "canaries": "Audits of one training run: false alarms, bounds beside published ones, mistakes.",
    "reports": "Reports: seconds to write and to open, and size. Opening needs Chromium and Playwright.",
}
"""The pages and their purposes; the command, the constant and, but for `google`, the module are named like the page."""

for _name, _purpose in PAGES.items():
    _add_page(_name, _purpose)


@bench.command("pictures")
def bench_pictures(folder: Annotated[Path, typer.Argument(help="Folder for the pictures.")], jobs: Jobs = None) -> None:
    """Sample report and its pictures in a browser. Needs Chromium and Playwright.

    Example: `dpaudit bench pictures docs/pictures`
    """
    from .reports.reports_page import pictures

    for path in pictures(folder, jobs=jobs):
        typer.echo(str(path))


@bench.command("peers")
def bench_peers(
    records: Annotated[Path, typer.Option(help="Folder of detection.json and inference.json.")] = Path(
        "docs/benchmarks"
    ),
    out: Into = None,
) -> None:
    """Comparison with the published figures of other tools, from the records of the benchmarks.

    Example: `dpaudit bench peers --out docs/benchmarks/peers.md`
    """
    from .peers.peer_table import Measured, peer_page

    _print_table(peer_page(Measured.read(records)), out)


@bench.command("all")
def bench_all(
    quick: Quick = False,
    resume: Resume = False,
    jobs: Jobs = None,
    out: Annotated[Path | None, optional("Folder for all pages and records, and for index.md.")] = None,
    pages: Annotated[
        Path | None, optional("Folder of records; write its index.md and peers.md without a measurement.")
    ] = None,
) -> None:
    """Every benchmark, and the overview: about a day on two cores, or minutes with --quick.

    --resume measures only the missing rows of the folder. Exit status 1 if a target is missed.

    Example: `dpaudit bench all --resume --out docs/benchmarks`
    """
    from .all_pages import measure_all, write_pages

    if pages is not None:
        write_pages(pages)
        return
    met = measure_all(quick=quick, resume=resume, jobs=jobs, out=out, show=typer.echo, watch=say)
    raise typer.Exit(0 if met else 1)


def _print_table(text: str, out: Path | None) -> None:
    from ...audit.files import write_atomically

    try:
        if out is not None:
            write_atomically(out, text)
    finally:
        typer.echo(text)
