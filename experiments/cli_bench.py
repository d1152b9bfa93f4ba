"""The command line's benchmarks: ``dpaudit bench cost | experiments | errata | inference | detection | …``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .cli_options import Documents, Jobs, Names, Runs, Seed, chosen_experiments, say

if TYPE_CHECKING:
    from .bench_page import Page
    from .inference_effort import Effort

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
    from .bench import cost

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
    from .seeds_bench import over_seeds

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
    from .errata import cases_of, errata_page
    from .suite import run_experiments

    chosen = chosen_experiments(cases_of(), None)
    suite = run_experiments(chosen, alpha=alpha, seed=seed, jobs=jobs)
    _print_table(errata_page(suite), out)
    raise typer.Exit(0 if suite.is_met else 1)


@bench.command("inference")
def bench_inference(
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="false-alarms, sizes, tightness, refutation, coverage, timing, dependence, checks, power; or all.",
            show_default=False,
        ),
    ] = None,
    only: Rows = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small numbers, to see that everything works.")] = False,
    audits: Annotated[
        int | None, typer.Option(help="Audits of each mechanism for the false alarms.", show_default="10000, quick 30")
    ] = None,
    sequential_audits: Annotated[
        int | None, typer.Option(help="The same for sequential audits.", show_default="10000, quick 20")
    ] = None,
    jobs: Jobs = None,
    resume: Resume = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for inference.md and inference.json.", show_default=False)
    ] = None,
) -> None:
    """The statistics: false alarms, exact sizes, tightness, runs to refutation, coverage, time and memory, dependence.

    Rows are written as they are finished, and replace those of the same name in the folder. Exit status 1 if a target
    is missed.

    Example: `dpaudit bench inference --table false-alarms --only laplace --audits 1000 --out docs/benchmarks`
    """
    from .inference_bench import INFERENCE
    from .inference_effort import effort_for

    effort = effort_for(quick=quick, audits=audits, sequential_audits=sequential_audits, jobs=jobs, only=only or [])
    _measure(INFERENCE, table, only, effort, out, resume=resume)


@bench.command("detection")
def bench_detection(
    table: Annotated[
        list[str] | None,
        typer.Option(help="dp-sniper, suites, catalogue, leaks or cost; all by default.", show_default=False),
    ] = None,
    only: Rows = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows with few runs, to see that everything works.")
    ] = False,
    jobs: Jobs = None,
    resume: Resume = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for detection.md and detection.json.", show_default=False)
    ] = None,
) -> None:
    """What is found: the published suites, the catalogue of bugs, rare leaks and low bits, and what looking costs.

    Rows are written as they are finished, and replace those of the same name in the folder. Exit status 1 if a target
    is missed.

    Example: `dpaudit bench detection --table dp-sniper --out docs/benchmarks`
    """
    from .detection_bench import DETECTION
    from .inference_effort import effort_for

    effort = effort_for(quick=quick, audits=None, sequential_audits=None, jobs=jobs, only=only or [])
    _measure(DETECTION, table, only, effort, out, resume=resume)


@bench.command("regression")
def bench_regression(
    table: Annotated[
        list[str] | None,
        typer.Option(help="sessions, planted, calibration or baselines; all by default.", show_default=False),
    ] = None,
    only: Rows = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few sessions and repetitions, to see that everything works.")
    ] = False,
    sessions: Annotated[
        int | None, typer.Option(help="Sessions of thirty audits.", show_default="1000, quick 4")
    ] = None,
    jobs: Jobs = None,
    resume: Resume = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for regression.md and regression.json.", show_default=False)
    ] = None,
) -> None:
    """Regression testing: red sessions over correct mechanisms, planted bugs in tests, checks of noise, baselines.

    Rows are written as they are finished, and replace those of the same name in the folder. Exit status 1 if a target
    is missed.

    Example: `dpaudit bench regression --table planted --out docs/benchmarks`
    """
    from .inference_effort import effort_for
    from .regression_bench import REGRESSION

    wanted = 1_000 if sessions is None and not quick else sessions
    effort = effort_for(quick=quick, audits=wanted, sequential_audits=None, jobs=jobs, only=only or [])
    _measure(REGRESSION, table, only, effort, out, resume=resume)


@bench.command("reports")
def bench_reports(
    only: Rows = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small suite, to see that everything works.")] = False,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for reports.md and reports.json.", show_default=False)
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(
            help="Instead: the sample report, and how a browser shows it, to this folder.", show_default=False
        ),
    ] = None,
) -> None:
    """Reports: seconds to make and to open, size, and what a browser says of a report of 200 audits.

    Exit status 1 if a target is missed. Opening one takes Chromium and Playwright; without them it is left out.

    Example: `dpaudit bench reports --out docs/benchmarks`
    """
    from .inference_effort import effort_for
    from .report_bench import REPORTS
    from .report_bench import pictures as take_pictures

    if pictures is not None:
        for path in take_pictures(pictures, jobs=jobs):
            typer.echo(str(path))
        return
    effort = effort_for(quick=quick, audits=None, sequential_audits=None, jobs=jobs, only=only or [])
    _measure(REPORTS, None, only, effort, out, resume=False)


@bench.command("libraries")
def bench_libraries(
    table: Annotated[
        list[str] | None,
        typer.Option(help="opendp, diffprivlib, pydp or defects; all by default.", show_default=False),
    ] = None,
    only: Rows = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few objects with few runs, to see that everything works.")
    ] = False,
    jobs: Jobs = None,
    resume: Resume = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for libraries.md and libraries.json.", show_default=False)
    ] = None,
) -> None:
    """The libraries that people use: audits of their releases, and the defects that the search finds in them.

    Takes the extras opendp, diffprivlib and pydp; the rows of a library that is not installed are left out. Exit status
    1 if a target is missed.

    Example: `dpaudit bench libraries --table defects --only LinearRegression`
    """
    from .inference_effort import effort_for
    from .library_bench import LIBRARIES, left_out

    for line in left_out():
        typer.echo(line, err=True)
    effort = effort_for(quick=quick, audits=None, sequential_audits=None, jobs=jobs, only=only or [])
    _measure(LIBRARIES, table, only, effort, out, resume=resume)


@bench.command("scale")
def bench_scale(
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="memory, large, suite, throughput, scaling, backends, sent, expected, kills or start; all by default.",
            show_default=False,
        ),
    ] = None,
    only: Rows = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few runs, to see that everything works.")] = False,
    resume: Resume = False,
    out: Annotated[Path | None, typer.Option(help="Folder for scale.md and scale.json.", show_default=False)] = None,
) -> None:
    """Long audits: memory, speed beside drawing alone, two workers, a dask cluster, and audits killed and resumed.

    Takes the extra dask, and psutil. Exit status 1 if a target is missed.

    Example: `dpaudit bench scale --table scaling`
    """
    from .inference_effort import effort_for
    from .scale_bench import SCALE

    effort = effort_for(quick=quick, audits=None, sequential_audits=None, jobs=None, only=only or [])
    _measure(SCALE, table, only, effort, out, resume=resume)


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
    from ..audit.records import write_whole
    from .peer_table import Measured, peer_page, short_table, with_table

    measured = Measured.read(records)
    _print_table(peer_page(measured), out)
    if readme is not None:
        write_whole(readme, with_table(readme.read_text(encoding="utf-8"), short_table(measured)))


@bench.command("fuzz")
def bench_fuzz(
    table: Annotated[
        list[str] | None, typer.Option(help="faults or fuzz; both by default.", show_default=False)
    ] = None,
    only: Rows = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few examples, to see that everything works.")] = False,
    resume: Resume = False,
    examples: Annotated[int | None, typer.Option(help="Inputs in all.", show_default="100000, quick 60")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for fuzz.md and fuzz.json.", show_default=False)] = None,
) -> None:
    """Faults of code, data and machine; command lines, claims, files and stores that something has happened to.

    Exit status 1 if an attack has another outcome than it should, or an input is neither refused in words nor accepted.

    Example: `dpaudit bench fuzz --examples 10000 --out docs/benchmarks`
    """
    from .fuzz_bench import EXAMPLES, FUZZ, QUICK_EXAMPLES
    from .inference_effort import effort_for

    wanted = (QUICK_EXAMPLES if quick else EXAMPLES) if examples is None else examples
    effort = effort_for(quick=quick, audits=wanted, sequential_audits=None, jobs=1, only=only or [])
    _measure(FUZZ, table, only, effort, out, resume=resume)


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
    from .bench_all import measure_all, write_pages

    if pages is not None:
        write_pages(pages)
        return
    met = measure_all(quick=quick, resume=resume, jobs=jobs, out=out, show=typer.echo, watch=say)
    raise typer.Exit(0 if met else 1)


def _measure(
    page: Page, table: list[str] | None, only: list[str] | None, effort: Effort, out: Path | None, *, resume: bool
) -> None:
    """Measures the tables of a page and exits with 1 if a target is missed."""
    from .bench_page import run_benches, select_benches

    all_met = run_benches(
        page,
        select_benches(page, table or [], only or []),
        effort,
        out=out,
        resume=resume,
        show=typer.echo,
        watch=say,
    )
    raise typer.Exit(0 if all_met else 1)


def _print_table(text: str, out: Path | None) -> None:
    from ..audit.records import write_whole

    typer.echo(text)
    if out is not None:
        write_whole(out, text)
