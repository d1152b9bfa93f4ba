"""Pages of several tables: selection of tables, measurement row by row, and the files of a page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import joblib

from ....audit.errors import OptionError, UnknownNameError
from ....audit.files import write_atomically
from ....audit.options import checked
from ....audit.printing import did_you_mean
from ....audit.records.json_codec import this_moment
from .bench_json import Column, Figures, Record, Row, Target, Value, load_record, machine, markdown, save_record, timed

# Size of a measurement, and the tasks that measure the rows of a table in several processes.

ALPHA = 0.05
AUDITS = 10_000
_WRITTEN_AFTER = 10  # batches between two states of a growing row


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Size of one measurement.

    Attributes
    ----------
    is_quick : bool
        Small numbers, to see that everything works; targets that need large numbers are left out.
    audits, sequential_audits : int
        Audits of each mechanism for the false-alarm rate.
    jobs : int
        Processes.
    only : frozenset of str
        Names of the requested rows; empty for all.
    """

    is_quick: bool = False
    audits: int = AUDITS
    sequential_audits: int = AUDITS
    jobs: int = 1
    only: frozenset[str] = frozenset()

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only

    def either(self, quick: Any, full: Any) -> Any:
        return quick if self.is_quick else full


@dataclass(frozen=True, slots=True)
class Task:
    """Measurement of one row.

    Attributes
    ----------
    key : str
        Key of the row.
    measure : callable
        ``measure(former)`` yields the row, possibly several times with growing counts. `former` is the row of an
        earlier call to continue, or None.
    """

    key: str
    measure: Callable[[Row | None], Iterator[Row]]


def once(key: str, cells: Callable[..., Figures], *arguments: Any) -> Task:
    """Return the task of a row that ``cells(*arguments)`` measures in one go; a former row is complete and is kept."""

    def measure(former: Row | None) -> Iterator[Row]:
        if former is not None:
            yield former
            return
        (found, targets), seconds = timed(cells, *arguments)
        yield finished(key, found, targets, seconds)

    return Task(key, measure)


def once_beside(
    key: str,
    cells: Callable[..., Figures],
    beside: Callable[..., dict[str, Value]],
    names: tuple[str, ...],
    *arguments: Any,
) -> Task:
    """Return the task of a row that `once` measures, with cells that ``beside(*arguments)`` computes without audits.

    A former row without the cells of these `names` is kept, and they are added.
    """

    def measure(former: Row | None) -> Iterator[Row]:
        if former is None:
            (found, targets), seconds = timed(cells, *arguments)
            yield finished(key, {**found, **beside(*arguments)}, targets, seconds)
        elif any(name not in former.cells for name in names):
            yield replace(former, cells={**former.cells, **beside(*arguments)})
        else:
            yield former

    return Task(key, measure)


def one_row_each(
    names: Iterable[str], cells: Callable[[Effort, int, str], Figures], quick: Container[str] | None = None
) -> Callable[[Effort], Iterator[Task]]:
    """Return the tasks of a table whose rows ``cells(effort, place, name)`` measures in one go.

    `quick` holds the names of the quick form, None for all; `place` is the place of the name in `names`.
    """

    def tasks(effort: Effort) -> Iterator[Task]:
        for place, name in enumerate(names):
            if effort.wants(name) and (not effort.is_quick or quick is None or name in quick):
                yield once(name, cells, effort, place, name)

    return tasks


def counted(
    key: str,
    count: Callable[[range], Counter[str]],
    cells: Callable[[Counter[str]], Figures],
    former: Row | None,
    *,
    names: tuple[str, ...],
    seeds: Callable[[int], range],
    batch: int,
    jobs: int,
    add: Callable[[Counter[str], Counter[str]], Counter[str]] = lambda one, other: one + other,
) -> Iterator[Row]:
    """Yield the states of a row whose counts grow with each batch of seeds; a former row is continued.

    Parameters
    ----------
    count : callable
        ``count(seeds)`` returns the counts of one batch, in a process.
    cells : callable
        ``cells(counts)`` returns the figures of the row.
    names : tuple of str
        Cells of a former row that hold its counts; the first is the number of seeds used.
    seeds : callable
        ``seeds(used)`` returns the seeds that remain.
    add : callable
        Adds the counts of a batch.
    """
    started, total = time.perf_counter(), Counter[str]()
    if former is not None:
        total = Counter({name: int(str(former.cells[name])) for name in names})
        started -= former.seconds
        yield former
    pending = batches(seeds(total[names[0]]), batch)
    for number, found in enumerate(spread(count, [(part,) for part in pending], jobs), start=1):
        total = add(total, found)
        if number % _WRITTEN_AFTER == 0 or number == len(pending):
            yield finished(key, *cells(total), time.perf_counter() - started)


def finished(key: str, cells: dict[str, Value], targets: list[Target], seconds: float) -> Row:
    """Return a row that was measured today on this machine."""
    today = this_moment()[:10]
    return Row(key=key, cells=cells, targets=tuple(targets), machine=machine(), seconds=seconds, date=today)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Definition of a table.

    Attributes
    ----------
    name : str
        Name on the command line.
    title, method : str
    columns : tuple of Column
    names : tuple of str
        Names that `Effort.only` accepts.
    tasks : callable
        Returns the tasks of the requested rows.
    summary : callable, optional
        Returns a sentence on the rows of the page, by table and key; empty if there is nothing to sum up.
    """

    name: str
    title: str
    method: str
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    tasks: Callable[[Effort], Iterator[Task]]
    summary: Callable[[Mapping[str, Mapping[str, Row]]], str] | None = None


def spread(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """Yield the results of the calls in order, computed in processes."""
    return iter(joblib.Parallel(n_jobs=jobs, return_as="generator")(joblib.delayed(work)(*call) for call in calls))


def batches(seeds: range, size: int) -> list[range]:
    """Return the seeds in batches of `size`."""
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def in_batches(work: Callable[..., list[Any]], arguments: tuple[Any, ...], seeds: range, size: int, jobs: int) -> Any:
    """Return the results of ``work(*arguments, batch)``, joined over batches of seeds."""
    found = spread(work, [(*arguments, batch) for batch in batches(seeds, size)], jobs)
    return [result for part in found for result in part]


def seeds_of(table: int, row: int, first: int, count: int) -> range:
    """Return seeds that no other row uses; each row has ten million."""
    start = (100 * table + row) * 10**7 + first
    return range(start, start + count)


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
