"""Measured rows with their targets, kept in a JSON file and shown as Markdown.

A row replaces an earlier row of the same table and key, so a long benchmark can be run in parts, and an interrupted
benchmark keeps its finished rows.
"""

from __future__ import annotations

import json
import math
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import joblib
import numpy as np
import scipy

from ....audit.claims.claim import PureDP
from ....audit.errors import RecordError
from ....audit.files import write_atomically
from ....audit.procedures.check import check
from ....audit.sampling.block_plan import Plan
from ....audit.sampling.draw import plan_blocks
from ....audit.sampling.sampler import as_sampler
from ....mechanisms import LaplaceMechanism

# Seconds of calls, of works timed in turns, and of drawing noise alone, the yardstick of audits.

_TASKS = 256

Drawing = Callable[[Plan, range], None]
T = TypeVar("T")


def timed(work: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """Return the result of a call and its seconds."""
    started = time.perf_counter()
    result = work(*arguments, **options)
    return result, time.perf_counter() - started


def in_turns(works: dict[str, Callable[[], Any]], rounds: int, *, warm_up: int = 1) -> dict[str, list[float]]:
    """Return the seconds of each work in each round; every round runs all works, and warm-up rounds are not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warm_up + rounds):
        for name, work in works.items():
            taken = timed(work)[1]
            if turn >= warm_up:
                seconds[name].append(taken)
    return seconds


def median_ratio(above: list[float], below: list[float]) -> float:
    """Return the median over rounds of the ratio of two works."""
    return statistics.median(one / other for one, other in zip(above, below, strict=True))


def draw_blocks(plan: Plan, blocks: range) -> None:
    """Draw blocks with the sampler of the plan and discard them."""
    for number in blocks:
        plan.draw("main", "x" if number % 2 else "y", number, plan.block)


def draw_alone(
    plan: Plan,
    runs: int,
    jobs: int,
    prefer: Literal["threads", "processes"] = "threads",
    draw: Drawing = draw_blocks,
) -> None:
    """Draw as many outputs as an audit of `runs` runs, with `jobs` workers."""
    blocks = 2 * runs // plan.block
    step = max(1, blocks // _TASKS)
    parts = (range(first, min(first + step, blocks)) for first in range(0, blocks, step))
    joblib.Parallel(n_jobs=jobs, prefer=prefer)(joblib.delayed(draw)(plan, part) for part in parts)


# Cost of an audit relative to drawing its noise alone.


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a description of its method; `str` returns Markdown."""

    title: str
    method: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [f"# {self.title}", "", self.method, "", _row(self.header), _row(["---"] * len(self.header))]
        return "\n".join([*lines, *map(_row, self.rows)]) + "\n"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    # Two brackets in a row would be a link.
    return "| " + " | ".join(cell.replace("|", "\\|").replace("][", "]\\[") for cell in cells) + " |"


def cost(runs: int, jobs: int, repeat: int) -> Table:
    """Return the seconds of a Laplace audit and of drawing the same noise with the same workers, timed in turns."""
    mechanism = LaplaceMechanism(1.0)
    plan = plan_blocks(as_sampler(mechanism), 0.0, 1.0, 1, jobs)
    works: dict[str, Callable[[], Any]] = {
        "audit": partial(check, mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, jobs=jobs),
        "drawing alone, same sampler": partial(draw_alone, plan, runs, jobs),
        "drawing alone, Generator.laplace": partial(draw_alone, plan, runs, jobs, draw=_draw_laplace),
    }
    seconds = in_turns(works, repeat)
    rows = []
    for name, taken in seconds.items():
        ratio = median_ratio(seconds["audit"], taken)
        rows.append((name, f"{statistics.median(taken):.3f}", _spread_of(taken), f"{ratio:.2f}"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)
    method = (
        f"Laplace noise, ε = 1, {runs:,} runs on each of two datasets, {jobs} worker threads. Medians of {repeat} "
        "rounds after a warm-up round; each round times the three rows in turn. Ratio: seconds of the audit over those "
        f"of the row. Peak memory of the process: {memory:.0f} MiB. {machine()}"
    )
    return Table(
        "Cost of an audit relative to drawing its noise",
        method,
        ("work", "median seconds", "range of seconds", "ratio"),
        tuple(rows),
    )


def _draw_laplace(plan: Plan, blocks: range) -> None:
    for number in blocks:
        np.random.default_rng([plan.seed, number]).laplace(size=plan.block)


def _spread_of(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def machine() -> str:
    """Return a sentence that describes this machine."""
    return (
        f"Machine: {joblib.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}."
    )


Value: TypeAlias = str | int | float | None
SCHEMA = 1
CERTAIN = 0.002
"""Two-sided error of an interval; a target judged by one of its limits is judged at 99.9% confidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A measured figure and its limit."""

    what: str
    value: float
    sense: Literal["<=", ">="]
    limit: float

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit if self.sense == "<=" else self.value >= self.limit  # NaN misses both

    def __str__(self) -> str:
        return f"{self.what} {self.sense} {self.limit:g}: {'met' if self.is_met else f'MISSED, {self.value:.4g}'}"


Figures: TypeAlias = tuple[dict[str, Value], list[Target]]
"""Cells of a row by name, and the targets of the row."""


def at_most(what: str, value: float, limit: float) -> Target:
    """Return the target that a figure does not exceed a limit."""
    return Target(what=what, value=float(value), sense="<=", limit=float(limit))


def at_least(what: str, value: float, limit: float) -> Target:
    """Return the target that a figure reaches a limit."""
    return Target(what=what, value=float(value), sense=">=", limit=float(limit))


def at_most_by_chance(what: str, share: float, audits: int, alpha: float) -> Target:
    """Return the target that no more of so many audits refute a correct mechanism than chance allows.

    The limit is exceeded with probability at most 1e-4 if each audit refutes with probability `alpha`.
    """
    from scipy.stats import binom  # takes long to import

    return at_most(what, share, int(binom.isf(1e-4, audits, alpha)) / audits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Figures of one row.

    Attributes
    ----------
    key : str
        Unique in the table.
    cells : dict
        Unrounded figures by name.
    targets : tuple of Target
    machine : str
    seconds : float
        Duration of the measurement.
    date : str
        Day on which the row was finished, as year-month-day; empty in older records.
    """

    key: str
    cells: dict[str, Value]
    targets: tuple[Target, ...] = ()
    machine: str = ""
    seconds: float = 0.0
    date: str = ""

    @property
    def is_met(self) -> bool:
        return all(target.is_met for target in self.targets)


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a column, name of its cell in a row, and format of the figure."""

    header: str
    cell: str
    form: str = ""

    def show(self, row: Row) -> str:
        value = row.cells.get(self.cell)
        if value is None:
            return "–"
        if isinstance(value, float) and math.isinf(value):
            return "infinite" if value > 0 else "−infinite"
        return format(value, self.form)


def columns(text: str) -> tuple[Column, ...]:
    """Return the columns of a table from a line such as ``"mechanism | runs :, | lower limit = low :.4f"``.

    Each part is a heading, ``= cell`` where the name of the cell differs, and ``:format`` where the figure has one.
    """
    found = []
    for part in text.split("|"):
        named, _, form = part.partition(":")
        header, _, cell = named.partition("=")
        found.append(Column(header.strip(), (cell or header).strip(), form.strip()))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Record:
    """Rows of every table by key, in the order of their first writing."""

    tables: dict[str, dict[str, Row]] = field(default_factory=dict)

    def with_row(self, table: str, row: Row) -> Record:
        return Record({**self.tables, table: {**self.tables.get(table, {}), row.key: row}})

    def row(self, table: str, key: str) -> Row | None:
        return self.tables.get(table, {}).get(key)


def markdown(title: str, method: str, columns: Iterable[Column], rows: Iterable[Row]) -> str:
    """Return one table under a second-level heading, with the targets and the machine."""
    shown, rows = list(columns), list(rows)
    lines, machines = [], []
    for row in rows:
        lines.append((*(column.show(row) for column in shown), "; ".join(map(str, row.targets)) or "–"))
        machines += [row.machine] if row.machine not in machines else []
    said = " ".join([method, *machines, *measured_on(rows)])
    return "#" + str(Table(title, said, (*(column.header for column in shown), "targets"), tuple(lines)))


def measured_on(rows: Iterable[Row]) -> list[str]:
    """Return a list with one sentence on the days of the rows; empty if no row has a day."""
    days = sorted({row.date for row in rows if row.date})
    return [f"Measured on {' to '.join(dict.fromkeys((days[0], days[-1])))}."] if days else []


def load_record(path: Path) -> Record:
    """Return the rows in a file; an empty record if the file does not exist.

    Raises
    ------
    RecordError
        For a file that is not a record of a benchmark.
    """
    if not path.exists():
        return Record()
    try:
        body = json.loads(path.read_text(encoding="utf-8"), object_hook=_from_json)
        if body["schema"] != SCHEMA:
            raise ValueError(f"schema {body['schema']}, expected {SCHEMA}")
        return Record(
            {
                table: {
                    key: Row(key=key, **{**row, "targets": tuple(Target(**target) for target in row["targets"])})
                    for key, row in rows.items()
                }
                for table, rows in body["tables"].items()
            }
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordError(
            f"{path} is not a record of a benchmark ({error}); move the file away.", path=str(path)
        ) from error


def save_record(record: Record, path: Path) -> None:
    """Write the rows to a file, completely or not at all."""
    tables = {
        table: {
            key: {
                "cells": row.cells,
                "targets": [asdict(target) for target in row.targets],
                "machine": row.machine,
                "seconds": round(row.seconds, 1),
                "date": row.date,
            }
            for key, row in rows.items()
        }
        for table, rows in record.tables.items()
    }
    body = _to_json({"schema": SCHEMA, "tables": tables})
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
