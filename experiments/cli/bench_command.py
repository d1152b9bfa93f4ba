"""The command line's benchmarks: ``dpaudit bench cost | experiments | errata | inference | detection | …``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from .options import Documents, Jobs, Names, Runs, Seed, chosen_experiments, say

bench = typer.Typer(help="Measure, and print a table in Markdown.", no_args_is_help=True)
Rows = Annotated[
    list[str] | None,
    typer.Option(help="A row by name, such as a mechanism or a bug; all by default.", show_default=False),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue what --out holds instead of measuring it anew.")]
Into = Annotated[Path | None, typer.Option("--out", help="File to write the table to as well.", show_default=False)]


@bench.command("cost")
def bench_cost(
    runs: Runs = 100_000_000,
    jobs: Annotated[int, typer.Option(help="Workers.")] = 2,
    repeat: Annotated[int, typer.Option(help="Rounds to take the median of.")] = 5,
    out: Into = None,
) -> None:
    """Time of a Laplace audit against drawing the same noise alone.

    Example: `dpaudit bench cost --runs 10000000`
    """
    from ..bench.core.audit_cost import cost

    _print_table(str(cost(runs, jobs, repeat)), out)


@bench.command("experiments")
def bench_experiments(
    names: Names = None,
    document: Documents = None,
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, … to run each case with.")] = 10,
    runs: Annotated[
        int | None,
        typer.Option(help="Executions on each dataset; by default what each case needs.", show_default=False),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Allowed probability of a false alarm, for each case.")] = 1e-5,
    jobs: Jobs = None,
    out: Into = None,
) -> None:
    """Experiments over many seeds. Exit status 1 if any case did not say what is expected.

    Example: `dpaudit bench experiments all --seeds 3`
    """
    from ..bench.seeds import over_seeds

    tables, all_met = over_seeds(chosen_experiments(names, document), seeds, runs, alpha, jobs)
    _print_table("\n".join(map(str, tables)), out)
    raise typer.Exit(0 if all_met else 1)


@bench.command("errata")
def bench_errata(
    seed: Seed = 0,
    alpha: Annotated[float, typer.Option(help="Allowed probability of a false alarm, for each case.")] = 1e-5,
    jobs: Jobs = None,
    out: Into = None,
) -> None:
    """The errors in the source documents, with what running them gives. Exit status 1 if any case is unexpected.

    Example: `dpaudit bench errata --out docs/sources-errata.md`
    """
    from ..documents.errata import cases_of, errata_page
    from ..suite.run_suite import run_experiments

    chosen = chosen_experiments(cases_of(), None)
    suite = run_experiments(chosen, alpha=alpha, seed=seed, jobs=jobs)
    _print_table(errata_page(suite), out)
    raise typer.Exit(0 if suite.is_met else 1)


def _add_page(name: str, module: str, constant: str, purpose: str) -> None:
    """The command that measures a page."""

    def measure(
        table: Annotated[
            list[str] | None, typer.Option(help="A table by name; all by default.", show_default=False)
        ] = None,
        only: Rows = None,
        quick: Annotated[bool, typer.Option("--quick", help="Small numbers, to see that everything works.")] = False,
        audits: Annotated[
            int | None, typer.Option(help="Audits, or sessions of audits, of a row.", show_default="of the page")
        ] = None,
        sequential_audits: Annotated[
            int | None, typer.Option(help="The same of sequential audits.", show_default="of the page")
        ] = None,
        jobs: Jobs = None,
        resume: Resume = False,
        out: Annotated[Path | None, typer.Option(help="Folder for the page and its JSON.", show_default=False)] = None,
    ) -> None:
        from ..bench.core.page import effort_of, run_benches, select_benches

        page = getattr(import_module(f"..bench.{module}", __package__), constant)
        effort = effort_of(
            page, quick=quick, audits=audits, sequential_audits=sequential_audits, jobs=jobs, only=only or []
        )
        chosen = select_benches(page, table or [], only or [])
        all_met = run_benches(page, chosen, effort, out=out, resume=resume, show=typer.echo, watch=say)
        raise typer.Exit(0 if all_met else 1)

    shared = (
        "Rows are written as they are finished, and replace those of the same name in the folder. Exit status 1 if a "
        "target is missed."
    )
    bench.command(name, help=f"{purpose}\n\n{shared}\n\nExample: `dpaudit bench {name} --quick`")(measure)


for _page in (
    (
        "inference",
        "inference.inference_page",
        "INFERENCE",
        "The statistics: false alarms, exact sizes, tightness, runs to refutation, coverage, time, dependence, power.",
    ),
    (
        "detection",
        "detection.detection_page",
        "DETECTION",
        "Detection: the published suites, the catalogue of bugs, rare leaks and low bits, and the cost of the search.",
    ),
    (
        "regression",
        "regression.regression_page",
        "REGRESSION",
        "Regression testing: failed sessions over correct mechanisms, planted bugs, checks of noise, baselines.",
    ),
    (
        "scale",
        "scale.scale_page",
        "SCALE",
        "Long audits: memory, speed, large datasets, two workers, a dask cluster. Needs the extra dask, and psutil.",
    ),
    (
        "faults",
        "faults.faults_page",
        "FAULTS_PAGE",
        "Faults: attacks by code, data and machine, and audits that are killed and resumed.",
    ),
    (
        "libraries",
        "libraries_page",
        "LIBRARIES",
        "Libraries: audits of their releases, and the defects that the search finds in them. Needs the extras opendp, "
        "diffprivlib and pydp; libraries that are not installed are left out.",
    ),
    (
        "reports",
        "reports.report_page",
        "REPORTS",
        "Reports: seconds to write and to open, and size. Opening one needs Chromium and Playwright.",
    ),
):
    _add_page(*_page)


@bench.command("pictures")
def bench_pictures(folder: Annotated[Path, typer.Argument(help="Folder to write to.")], jobs: Jobs = None) -> None:
    """The sample report, and pictures of how a browser shows it. Needs Chromium and Playwright.

    Example: `dpaudit bench pictures docs/pictures`
    """
    from ..bench.reports.report_page import pictures

    for path in pictures(folder, jobs=jobs):
        typer.echo(str(path))


@bench.command("peers")
def bench_peers(
    records: Annotated[Path, typer.Option(help="Folder of detection.json and inference.json.")] = Path(
        "docs/benchmarks"
    ),
    readme: Annotated[
        Path | None, typer.Option(help="File to write the short table into, between its marks.", show_default=False)
    ] = None,
    out: Into = None,
) -> None:
    """What other testers publish beside what the benchmarks measured. Measures nothing itself.

    Example: `dpaudit bench peers --out docs/benchmarks/peers.md --readme README.md`
    """
    from ...audit.records.json_codec import write_whole
    from ..bench.peers.peer_table import Measured, peer_page, short_table, with_table

    measured = Measured.read(records)
    _print_table(peer_page(measured), out)
    if readme is not None:
        write_whole(readme, with_table(readme.read_text(encoding="utf-8"), short_table(measured)))


@bench.command("all")
def bench_all(
    quick: Annotated[bool, typer.Option("--quick", help="Small numbers, to see that everything works.")] = False,
    resume: Resume = False,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for all pages and records, and index.md.", show_default=False)
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(help="Instead: write index.md and peers.md from the records in this folder.", show_default=False),
    ] = None,
) -> None:
    """Every benchmark, one after the other, and the page of all: a day of two cores in full, minutes with --quick.

    With --resume only what the folder lacks is measured. Exit status 1 if a target is missed.

    Example: `dpaudit bench all --resume --out docs/benchmarks`
    """
    from ..bench.all_pages import measure_all, write_pages

    if pages is not None:
        write_pages(pages)
        return
    met = measure_all(quick=quick, resume=resume, jobs=jobs, out=out, show=typer.echo, watch=say)
    raise typer.Exit(0 if met else 1)


def _print_table(text: str, out: Path | None) -> None:
    from ...audit.records.json_codec import write_whole

    typer.echo(text)
    if out is not None:
        write_whole(out, text)
