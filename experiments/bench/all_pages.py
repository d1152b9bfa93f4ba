"""Every benchmark by one command, and the page that says what was measured, when, on what, and what was missed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ...audit.records.json_codec import write_whole
from .core.audit_cost import Table, cost
from .core.bench_json import Row, load_record, measured_on
from .core.page import Page, effort_of, run_benches
from .detection.detection_page import DETECTION
from .faults.faults_page import FAULTS_PAGE
from .inference.inference_page import INFERENCE
from .libraries_page import LIBRARIES
from .peers.peer_table import Measured, peer_page, short_table
from .regression.regression_page import REGRESSION
from .reports.report_page import REPORTS
from .scale.scale_page import SCALE

_COST_RUNS, _QUICK_COST_RUNS = 100_000_000, 1_000_000
PAGES = (INFERENCE, DETECTION, REGRESSION, SCALE, LIBRARIES, REPORTS, FAULTS_PAGE)


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
    """Measures every table; whether every target was met.

    Parameters
    ----------
    quick : bool
        Small numbers everywhere, to see that everything works.
    resume : bool
        Whether rows that the folder has are left, and those that hold a part continued.
    jobs : int or None
        Processes.
    out : Path, optional
        Folder of the pages and records. A full measurement ends there with the comparison with other testers and the
        page of all.
    show, watch : callable
        Take each finished table, and a line for each row.
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
        write_whole(out / "cost.md", table)
        write_pages(out, pages)
    return all_met


def write_pages(folder: Path, pages: Iterable[Page] = PAGES) -> None:
    """Writes the page of all, and the comparison with other testers, from the records in a folder."""
    write_whole(folder / "peers.md", peer_page(Measured.read(folder)))
    write_whole(folder / "index.md", overview(folder, pages))


def overview(folder: Path, pages: Iterable[Page]) -> str:
    """The page of all: a row for each table of the records in a folder, and every target that was missed."""
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
    header = ("page", "table", "rows", "targets", "missed", "hours", "measured")
    method = (
        "Written by `dpaudit bench all --out docs/benchmarks`, from the JSON beside each page: its tables, what they "
        "were held to, and the time that they took, which on a busy machine is longer. " + " ".join(machines)
    )
    table = str(Table("Measurements", method, header, tuple(rows)))
    short = short_table(Measured.read(folder))
    lines = [
        table,
        "## Targets missed",
        "",
        *(missed or ["None."]),
        "",
        "## Comparison with other tools",
        "",
        short.strip(),
        "",
    ]
    lines += ["More: [figures of other testers](peers.md).", "", "## Besides", ""]
    lines += [
        "- [What an audit costs beside its noise](cost.md)",
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
