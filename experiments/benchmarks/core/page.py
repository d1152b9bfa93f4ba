"""Pages of several tables: selection of tables, measurement row by row, and the files of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ....audit.errors import OptionError, UnknownNameError
from ....audit.files import write_atomically
from ....audit.options import checked
from ....audit.printing import did_you_mean
from .bench_json import Record, Row, load_record, markdown, save_record
from .effort import AUDITS, Bench, Effort

_FEW_NAMES = 60  # rows that an error names
_QUICK_AUDITS = {"audits": 30, "sequential_audits": 20}


@dataclass(frozen=True, slots=True)
class Page:
    """Tables on one page.

    Attributes
    ----------
    name : str
        Stem of the files ``name.json`` and ``name.md``; a quick run writes ``name-quick``.
    title : str
    benches : tuple of Bench
    audits : int, optional
        Audits, sessions or examples of a full measurement; None for the common default.
    left_out : callable
        Returns a line for each table that cannot be measured on this machine.
    summary : callable, optional
        Returns a table of the whole record in Markdown, which precedes the others; empty if there is nothing to show.
    """

    name: str
    title: str
    benches: tuple[Bench, ...]
    audits: int | None = None
    left_out: Callable[[], Iterable[str]] = tuple
    summary: Callable[[Record], str] | None = None


def effort_of(
    page: Page,
    *,
    quick: bool = False,
    audits: int | None = None,
    sequential_audits: int | None = None,
    jobs: int | None = None,
    only: Sequence[str] = (),
) -> Effort:
    """Return the requested effort; None stands for the defaults of the page.

    Raises
    ------
    OptionError
        For a number of audits below 1, or an invalid number of workers.
    """
    given = {"audits": audits, "sequential_audits": sequential_audits}
    defaults = _QUICK_AUDITS if quick else {"audits": page.audits or AUDITS, "sequential_audits": AUDITS}
    for name, value in given.items():
        if value is not None and value < 1:
            raise OptionError(f"{name}={value!r} measures nothing; use 1 or more.", name=name, value=value)
    numbers = {name: defaults[name] if value is None else value for name, value in given.items()}
    workers = checked("jobs", jobs, or_none=True)
    return Effort(is_quick=quick, jobs=-1 if workers is None else workers, only=frozenset(only), **numbers)


def select_benches(page: Page, tables: Sequence[str], only: Sequence[str]) -> list[Bench]:
    """Return the tables with the given names, by default all, that have a row named in `only`.

    Raises
    ------
    UnknownNameError
        For an unknown table or row.
    """
    known = {bench.name: bench for bench in page.benches}
    for table in tables:
        if table not in known:
            hint = did_you_mean(table, known) or "."
            raise UnknownNameError(f"{table!r} is not a table; use {', '.join(known)}{hint}", name=table)
    chosen = [bench for bench in page.benches if not tables or bench.name in tables]
    for name in only:
        if not any(name in bench.names for bench in chosen):
            names = [row for bench in chosen for row in bench.names]
            hint = did_you_mean(name, names) or "."
            if len(names) > _FEW_NAMES:
                near = get_close_matches(name, names, 3, 0.0)
                said = f"near it among {len(names):,} rows: {'; '.join(near)}"
                raise UnknownNameError(f"{name!r} is not a row; {said}{hint}", name=name)
            rows = "; ".join(f"{bench.name}: {', '.join(bench.names)}" for bench in chosen)
            raise UnknownNameError(f"{name!r} is not a row; use one of {rows}{hint}", name=name)
    return [bench for bench in chosen if not only or any(name in bench.names for name in only)]


def run_benches(
    page: Page,
    benches: Sequence[Bench],
    effort: Effort,
    *,
    out: Path | None = None,
    resume: bool = False,
    show: Callable[[str], None] = print,
    watch: Callable[[str], None] | None = None,
) -> bool:
    """Measure the tables, show each finished table, and return whether the measured rows meet every target.

    Parameters
    ----------
    out : Path, optional
        Folder of the files of the page. Each measured row is written immediately and replaces a row of the same key;
        other rows stay.
    resume : bool
        Continue unfinished rows in the folder; otherwise they start again.
    show, watch : callable
        Receive each finished table, and a line for each written row.
    """
    if resume and out is None:
        raise OptionError("resume=True has nothing to continue without a folder; name the folder of the record.")
    stem = f"{page.name}-quick" if effort.is_quick else page.name
    record = Record() if out is None else load_record(out / f"{stem}.json")
    all_met = True
    if watch is not None:
        for line in page.left_out():
            watch(line)
    for bench in benches:
        measured: dict[str, Row] = {}
        for task in bench.tasks(effort):
            for row in task.measure(record.row(bench.name, task.key) if resume else None):
                measured[row.key] = row
                record = record.with_row(bench.name, row)
                if out is not None:
                    save_record(record, out / f"{stem}.json")
                    write_atomically(out / f"{stem}.md", document(page, record))
                if watch is not None:
                    watch(f"{bench.name}: {row.key} ({row.seconds:.0f} s)")
        show(_table(bench, {bench.name: measured}))
        all_met = all_met and all(row.is_met for row in measured.values())
    return all_met


def document(page: Page, record: Record) -> str:
    """Return the page with the tables that the record holds."""
    parts = [_table(bench, record.tables) for bench in page.benches if bench.name in record.tables]
    first = "" if page.summary is None else page.summary(record)
    return "\n".join([f"# {page.title}", "", *([first] if first else []), *parts])


def _table(bench: Bench, tables: Mapping[str, Mapping[str, Row]]) -> str:
    """Return a table with its method, which ends in the summary of the rows."""
    summary = "" if bench.summary is None else bench.summary(tables)
    method = f"{bench.method} {summary}" if summary else bench.method
    return markdown(bench.title, method, bench.columns, tables[bench.name].values())
