"""Measurement of all pages, and the overview with dates, machines and missed targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ...audit.files import write_atomically
from .canaries.canaries_page import CANARIES
from .core.bench_json import Row, Table, cost, load_record, measured_on
from .core.page import Page, effort_of, run_benches
from .detection.detection_page import DETECTION
from .faults.faults_page import FAULTS
from .inference.inference_page import INFERENCE
from .libraries.libraries_page import GOOGLE, LIBRARIES
from .peers.peer_table import Measured, peer_page, short_table
from .regression.regression_page import REGRESSION
from .replays.replays_page import REPLAYS
from .reports.reports_page import REPORTS
from .scale.scale_page import SCALE

_COST_RUNS, _QUICK_COST_RUNS = 100_000_000, 1_000_000
PAGES = (INFERENCE, DETECTION, REGRESSION, SCALE, LIBRARIES, GOOGLE, REPLAYS, CANARIES, REPORTS, FAULTS)


def measure_all(
    *,
    quick: bool,
    resume: bool,
    jobs: int | None,
    out: Path | None,
    show: Callable[[str], None] = print,
    watch: Callable[[str], None] | None = None,
    pages: Iterable[Page] = PAGES,
) -> bool:
    """Measure every table and return whether every target was met.

    Parameters
    ----------
    quick : bool
        Small numbers everywhere, to see that everything works.
    resume : bool
        Keep finished rows in the folder and continue unfinished rows.
    jobs : int or None
        Processes.
    out : Path, optional
        Folder of the pages and records. A full measurement also writes the comparison with other tools and the
        overview.
    show, watch : callable
        Receive each finished table, and a line for each row.
    """
    pages, all_met = list(pages), True
    for page in pages:
        met = run_benches(
            page, page.benches, effort_of(page, quick=quick, jobs=jobs), out=out, resume=resume, show=show, watch=watch
        )
        all_met = all_met and met
    table = str(cost(_QUICK_COST_RUNS if quick else _COST_RUNS, 2, 1 if quick else 5))
    show(table)
    if out is not None and not quick:
        write_atomically(out / "cost.md", table)
        write_pages(out, pages)
    return all_met


def write_pages(folder: Path, pages: Iterable[Page] = PAGES) -> None:
    """Write the overview and the comparison with other tools from the records in a folder."""
    write_atomically(folder / "peers.md", peer_page(Measured.read(folder)))
    write_atomically(folder / "index.md", overview(folder, pages))


def overview(folder: Path, pages: Iterable[Page]) -> str:
    """Return the overview of the records in a folder: a row for each table, and the missed targets."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    machines: dict[str, None] = {}
    for page in pages:
        record = load_record(folder / f"{page.name}.json")
        for bench in page.benches:
            measured = list(record.tables.get(bench.name, {}).values())
            machines |= {row.machine: None for row in measured}
            rows.append((f"[{page.title}]({page.name}.md)", bench.title, *_summary(measured)))
            missed += [
                f"- {bench.title}, {row.key}: {target}"
                for row in measured
                for target in row.targets
                if not target.is_met
            ]
    header = ("page", "table", "rows", "targets", "missed targets", "hours", "dates")
    method = (
        "`dpaudit bench all --out docs/benchmarks` writes this page from the JSON file of each page. Other work on the "
        "machine lengthens the hours. " + " ".join(machines)
    )
    lines = [
        str(Table("Measurements", method, header, tuple(rows))),
        "## Missed targets",
        "",
        *(missed or ["None."]),
        "",
        "## Comparison with other tools",
        "",
        short_table(Measured.read(folder)),
        "[Sources of the figures and further tables](peers.md).",
        "",
        "## Other measurements",
        "",
        "- [Cost of an audit relative to drawing its noise](cost.md)",
        "- [Fuzzed inputs](fuzz.md)",
        "- [Experiments over ten seeds](experiments.md)",
        "",
    ]
    return "\n".join(lines)


def _summary(rows: list[Row]) -> tuple[str, ...]:
    targets = [target for row in rows for target in row.targets]
    hours = sum(row.seconds for row in rows) / 3600
    day = " ".join(measured_on(rows)).removeprefix("Measured on ").rstrip(".")
    n_missed = sum(not target.is_met for target in targets)
    return str(len(rows)), str(len(targets)), str(n_missed), f"{hours:.2f}", day or "–"
