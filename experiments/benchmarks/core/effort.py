"""Size of a measurement, and the tasks that measure the rows of a table in several processes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import joblib

from ....audit.records.json_codec import this_moment
from .audit_cost import machine
from .bench_json import Column, Figures, Row, Target, Value
from .timing import timed

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
