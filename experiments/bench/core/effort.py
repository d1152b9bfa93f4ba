"""How much a benchmark of the inference does, and spreading it over processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import joblib

from ....audit.errors import OptionError
from ....audit.options import check_jobs
from ....audit.records.json_codec import this_moment
from .audit_cost import machine
from .bench_json import Column, Row, Target, Value

ALPHA = 0.05
_AUDITS, _QUICK_AUDITS, _QUICK_SEQUENTIAL_AUDITS = 10_000, 30, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What one call of the benchmark was asked for.

    Attributes
    ----------
    is_quick : bool
        Small numbers, to see that everything works; only what small numbers can decide is held to a target.
    audits, sequential_audits : int
        Of each mechanism, for the false alarms.
    jobs : int
        Processes.
    only : frozenset of str
        Names of the rows wanted; empty for all.
    """

    is_quick: bool = False
    audits: int = _AUDITS
    sequential_audits: int = _AUDITS
    jobs: int = 1
    only: frozenset[str] = frozenset()

    def wants(self, name: str) -> bool:
        return not self.only or name in self.only

    def either(self, quick: Any, full: Any) -> Any:
        return quick if self.is_quick else full


def effort_for(
    *, quick: bool, audits: int | None, sequential_audits: int | None, jobs: int | None, only: Iterable[str]
) -> Effort:
    """What the command line asks for; None stands for the default.

    Raises
    ------
    OptionError
        For a number of audits below 1, or no number of workers.
    """
    numbers = []
    for name, given, default in (
        ("audits", audits, _QUICK_AUDITS if quick else _AUDITS),
        ("sequential_audits", sequential_audits, _QUICK_SEQUENTIAL_AUDITS if quick else _AUDITS),
    ):
        numbers.append(default if given is None else given)
        if numbers[-1] < 1:
            raise OptionError(f"{name}={given!r} measures nothing; use 1 or more.", name=name, value=given)
    workers = check_jobs(jobs)
    return Effort(
        is_quick=quick,
        audits=numbers[0],
        sequential_audits=numbers[1],
        jobs=-1 if workers is None else workers,
        only=frozenset(only),
    )


@dataclass(frozen=True, slots=True)
class Task:
    """A row to be measured.

    Attributes
    ----------
    key : str
        Of the row.
    measure : callable
        ``measure(former)`` gives the row, perhaps several times with ever more behind it. `former` is the row of an
        earlier call that is to be continued, or None.
    """

    key: str
    measure: Callable[[Row | None], Iterator[Row]]


def once(key: str, cells: Callable[..., tuple[dict[str, Value], list[Target]]], *arguments: Any) -> Task:
    """A row that is measured in one go: by ``cells(*arguments)``, unless there is one to continue, which is whole."""

    def measure(former: Row | None) -> Iterator[Row]:
        if former is not None:
            yield former
            return
        started = time.perf_counter()
        found, targets = cells(*arguments)
        yield finished(key, found, targets, time.perf_counter() - started)

    return Task(key, measure)


def finished(key: str, cells: dict[str, Value], targets: list[Target], seconds: float) -> Row:
    """A row of what was measured on this machine."""
    today = this_moment()[:10]
    return Row(key=key, cells=cells, targets=tuple(targets), machine=machine(), seconds=seconds, date=today)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A table to be measured.

    Attributes
    ----------
    name : str
        As on the command line.
    title, method : str
    columns : tuple of Column
    names : tuple of str
        What `Effort.only` may name.
    tasks : callable
        The rows wanted.
    """

    name: str
    title: str
    method: str
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    tasks: Callable[[Effort], Iterator[Task]]


def spread(work: Callable[..., Any], calls: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """Results of the calls, in order and as they come, from processes."""
    return iter(joblib.Parallel(n_jobs=jobs, return_as="generator")(joblib.delayed(work)(*call) for call in calls))


def batches(seeds: range, size: int) -> list[range]:
    """The seeds in pieces."""
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def seeds_of(table: int, row: int, first: int, count: int) -> range:
    """Seeds that no other row uses: ten million for each."""
    start = (100 * table + row) * 10**7 + first
    return range(start, start + count)
