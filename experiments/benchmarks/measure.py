"""Measurement of tables, row by row: seeds, processes, resumption, and the JSON files that hold the figures."""

from __future__ import annotations

import json
import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import joblib
import numpy as np
import scipy

from ...audit.errors import OptionError, RecordError, UnknownNameError
from ...audit.files import write_atomically
from ...audit.inference.binomial_tails import probability_limits
from ...audit.options import checked
from ...audit.printing import did_you_mean
from ...audit.procedures.check import check
from ...audit.records.json_codec import this_moment
from ..libraries.subjects import is_installed

ALPHA = 0.05
SCHEMA = 1
_CERTAIN = 0.002  # two-sided error of the intervals by which targets are judged
_QUICK_AUDITS = 5  # audits of a row that grows, in the quick form
_WRITTEN_AFTER = 10  # batches between two states of a growing row

Value: TypeAlias = str | int | float | None
Seeds: TypeAlias = Callable[..., range]
"""``seeds(count, first=0)`` returns seeds that no other row uses."""
T = TypeVar("T")


class Target(TypedDict):
    """A measured figure and its limit."""

    what: str
    value: float
    sense: Literal["<=", ">="]
    limit: float


class Row(TypedDict):
    """Unrounded figures of a row by name, its targets, and when and where it was measured."""

    cells: dict[str, Any]
    targets: list[Target]
    machine: str
    seconds: float
    date: str


Figures: TypeAlias = tuple[dict[str, Value], list[Target]]
Record: TypeAlias = dict[str, dict[str, Row]]
"""Rows by table and key, in the order of their first writing."""


def at_most(what: str, value: float, limit: float) -> Target:
    """Return the target that a figure does not exceed a limit."""
    return Target(what=what, value=float(value), sense="<=", limit=float(limit))


def at_least(what: str, value: float, limit: float) -> Target:
    """Return the target that a figure reaches a limit."""
    return Target(what=what, value=float(value), sense=">=", limit=float(limit))


def at_most_by_chance(what: str, share: float, audits: int, alpha: float) -> Target:
    """Return the target, missed by chance in 1e-4, that audits of a correct mechanism refute a share `alpha`."""
    from scipy.stats import binom  # takes long to import

    return at_most(what, share, int(binom.isf(1e-4, audits, alpha)) / audits)


def certainly_at_most(what: str, counts: int, trials: int, limit: float) -> Target:
    """Return the target that the 99.9% lower limit of a share does not exceed a limit."""
    return at_most(f"99.9% lower limit of {what}", probability_limits(counts, trials, alpha=_CERTAIN)[0], limit)


def certainly_at_least(what: str, counts: int, trials: int, limit: float) -> Target:
    """Return the target that the 99.9% upper limit of a share reaches a limit."""
    return at_least(f"99.9% upper limit of {what}", probability_limits(counts, trials, alpha=_CERTAIN)[1], limit)


def share_of(counts: int, trials: int) -> dict[str, Value]:
    """Return the cells of a share with its exact 95% limits."""
    low, high = probability_limits(counts, trials, alpha=0.05)
    return {"share": counts / trials, "low": low, "high": high}


def is_met(target: Target) -> bool:
    """Whether the figure respects its limit; NaN does not."""
    if target["sense"] == "<=":
        return target["value"] <= target["limit"]
    return target["value"] >= target["limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Size of a measurement.

    The quick form has small numbers, to see that everything works, and leaves out the targets that need large numbers.
    `audits` are those of each row that grows, None for the table's own number; `jobs` are processes.
    """

    is_quick: bool = False
    audits: int | None = None
    jobs: int = 1

    def either(self, quick: Any, full: Any) -> Any:
        return quick if self.is_quick else full

    @classmethod
    def of(cls, *, quick: bool, audits: int | None, jobs: int | None) -> Effort:
        """Return the requested effort, or raise `OptionError` for numbers below 1."""
        if audits is not None and audits < 1:
            raise OptionError(f"audits={audits!r} measures nothing; use 1 or more.", name="audits", value=audits)
        workers = checked("jobs", jobs, or_none=True)
        return cls(is_quick=quick, audits=audits, jobs=-1 if workers is None else workers)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that one function measures, in one go or by counts that grow with the number of audits.

    Tables of different numbers use different seeds. `rows` holds the arguments of the function by the key of the row:
    ``measure(effort, seeds, *arguments)`` returns its figures. Of a row that grows, ``count(effort, *arguments,
    seeds)`` returns the counts of audits with these seeds, in a process, and ``measure(effort, counts, *arguments)``
    the figures; it grows by batches up to `audits`, and a later measurement adds to it. `counts` are the cells of the
    counts, that of the audits first. `quick` are the rows of the quick form; ``library(*arguments)`` names the library
    that a row needs.
    """

    name: str
    number: int
    rows: Mapping[str, tuple[Any, ...]]
    measure: Callable[..., Figures]
    _: KW_ONLY
    count: Callable[..., Counter[str]] | None = None
    counts: tuple[str, ...] = ()
    audits: int = 10_000
    batch: int = 50
    quick: Collection[str] = ()
    library: Callable[..., str] | None = None

    def states(self, key: str, effort: Effort, former: Row | None) -> Iterator[Row]:
        """Yield a row as often as it has grown; nothing if the former row is complete."""
        place, started = list(self.rows).index(key), time.perf_counter()

        def seeds(count: int, first: int = 0) -> range:
            start = (1000 * self.number + place) * 10**7 + first
            return range(start, start + count)

        if self.count is None:
            if former is None:
                figures = self.measure(effort, seeds, *self.rows[key])
                yield _finished(figures, time.perf_counter() - started)
            return
        total = Counter[str]()
        if former is not None:
            total = Counter({name: int(former["cells"][name]) for name in self.counts})
            started -= former["seconds"]
        used = total[self.counts[0]]
        wanted = effort.either(_QUICK_AUDITS, self.audits) if effort.audits is None else effort.audits
        pending = batches(seeds(max(0, wanted - used), used), self.batch)
        calls = [(effort, *self.rows[key], batch) for batch in pending]
        for number, found in enumerate(spread(self.count, calls, effort.jobs), start=1):
            total += found
            if number % _WRITTEN_AFTER == 0 or number == len(pending):
                yield _finished(self.measure(effort, total, *self.rows[key]), time.perf_counter() - started)


def by_name(names: Iterable[str]) -> dict[str, tuple[str]]:
    """Return rows whose function takes only the key."""
    return {name: (name,) for name in names}


def _finished(figures: Figures, seconds: float) -> Row:
    cells, targets = figures
    machine = (
        f"Machine: {joblib.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}."
    )
    return Row(cells=cells, targets=targets, machine=machine, seconds=round(seconds, 1), date=this_moment()[:10])


check_values = partial(check, floating_point="ignore", jobs=1)
"""An audit of values only, in this process."""


def timed(work: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """Return the result of a call and its seconds."""
    started = time.perf_counter()
    result = work(*arguments, **options)
    return result, time.perf_counter() - started


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


def measure(
    tables: Iterable[Table],
    effort: Effort,
    *,
    only: Collection[str] = (),
    file: Path | None = None,
    resume: bool = False,
    tell: Callable[[str], None] = print,
) -> bool:
    """Measure the tables and return whether the rows meet every target.

    Rows whose key contains a text of `only` are measured, by default all, or those of the quick form; a text that is in
    no row, or in one whose library is not installed, is refused. Each measured row is written to the JSON file at once
    and replaces a row of the same key. `resume` keeps complete rows of the file and continues growing ones. `tell`
    receives a line for each measured row.
    """
    tables = list(tables)
    if resume and file is None:
        raise OptionError("resume=True has nothing to continue without a folder; name the folder of the record.")
    keys = [key for table in tables for key in table.rows]
    for text in only:
        if not any(text in key for key in keys):
            raise UnknownNameError(f"{text!r} is in no row{did_you_mean(text, keys) or '.'}", name=text)
    record = {} if file is None else load_record(file)
    all_met, missing = True, set()
    for table in tables:
        for key, arguments in table.rows.items():
            is_wanted = any(text in key for text in only) if only else not effort.is_quick or key in table.quick
            library = table.library(*arguments) if table.library is not None and is_wanted else ""
            if library and not is_installed(library):
                missing.add(library)
                if only:
                    raise OptionError(f"{library} cannot be imported; install it to measure {key!r}.")
            elif is_wanted:
                former = record.get(table.name, {}).get(key) if resume else None
                row = former
                for row in table.states(key, effort, former):
                    record.setdefault(table.name, {})[key] = row
                    if file is not None:
                        save_record(record, file)
                    tell(_line(table.name, key, row))
                all_met = all_met and row is not None and all(map(is_met, row["targets"]))
    for library in sorted(missing):
        tell(f"{library} cannot be imported: its rows are left out")
    return all_met


def _line(table: str, key: str, row: Row) -> str:
    figures = [
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row["cells"].items()
        if value is not None
    ]
    missed = [f"; MISSED: {words(target)}" for target in row["targets"] if not is_met(target)]
    return f"{table}: {key} ({row['seconds']:.0f} s): {', '.join(figures)}{''.join(missed)}"


def words(target: Target) -> str:
    """Return a target with its figure."""
    return f"{target['what']} {target['value']:.4g}, target {target['sense']} {target['limit']:.4g}"


def load_record(path: Path) -> Record:
    """Return the rows in a file, none if it does not exist; raise a `RecordError` for a file of another kind."""
    if not path.exists():
        return {}
    try:
        body = json.loads(path.read_text(encoding="utf-8"), object_hook=_from_json)
        if body["schema"] != SCHEMA:
            raise ValueError(f"schema {body['schema']}, expected {SCHEMA}")
        tables: Record = body["tables"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RecordError(
            f"{path} is not a record of a benchmark ({error}); move the file away.", path=str(path)
        ) from error
    return tables


def save_record(record: Record, path: Path) -> None:
    """Write the rows to a file, completely or not at all."""
    body = _to_json({"schema": SCHEMA, "tables": record})
    write_atomically(path, json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _to_json(value: Any) -> Any:
    """Return the value with infinities and NaN as objects, since JSON has no such numbers."""
    if isinstance(value, dict):
        return {key: _to_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_to_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _from_json(value: dict[str, Any]) -> Any:
    return float(value["float"]) if set(value) == {"float"} else value
