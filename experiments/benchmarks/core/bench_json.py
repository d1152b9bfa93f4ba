"""Measured rows with their targets, kept in a JSON file and shown as Markdown.

A row replaces an earlier row of the same table and key, so a long benchmark can be run in parts, and an interrupted
benchmark keeps its finished rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ....audit.errors import RecordError
from ....audit.files import write_atomically
from .audit_cost import Table

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
