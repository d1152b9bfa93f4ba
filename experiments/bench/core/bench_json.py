"""Rows of measured figures with the targets they were held to; kept in a JSON file, shown as Markdown.

A row replaces the earlier one of the same table and key, so a long benchmark can be run in parts, and one that is cut
keeps what it has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ....audit.errors import RecordError
from ....audit.records.json_codec import write_whole
from .audit_cost import Table

Value: TypeAlias = str | int | float | None
SCHEMA = 1
CERTAIN = 0.002
"""Error probability of two limits, each of which a target may then be judged on with 99.9% certainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure and the limit that it was held to."""

    what: str
    value: float
    sense: Literal["<=", ">="]
    limit: float

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit if self.sense == "<=" else self.value >= self.limit  # NaN misses both

    def __str__(self) -> str:
        return f"{self.what} {self.sense} {self.limit:g}: {'met' if self.is_met else f'MISSED, {self.value:.4g}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Figures of one row.

    Attributes
    ----------
    key : str
        Unique in the table.
    cells : dict
        The figures by name, unrounded.
    targets : tuple of Target
    machine : str
    seconds : float
        Time that the row took.
    date : str
        The day on which it was finished, as year-month-day; empty in records from before it was kept.
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
    """How a figure is shown: header, name of the cell, format."""

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


@dataclass(frozen=True, slots=True)
class Record:
    """The rows of every table by key, in the order in which they were first written."""

    tables: dict[str, dict[str, Row]] = field(default_factory=dict)

    def with_row(self, table: str, row: Row) -> Record:
        return Record({**self.tables, table: {**self.tables.get(table, {}), row.key: row}})

    def row(self, table: str, key: str) -> Row | None:
        return self.tables.get(table, {}).get(key)


def markdown(title: str, method: str, columns: Iterable[Column], rows: Iterable[Row]) -> str:
    """One table under a second-level heading, with what became of the targets and the machine it ran on."""
    shown, rows = list(columns), list(rows)
    lines, machines = [], []
    for row in rows:
        lines.append((*(column.show(row) for column in shown), "; ".join(map(str, row.targets)) or "–"))
        machines += [row.machine] if row.machine not in machines else []
    said = " ".join([method, *machines, *measured_on(rows)])
    return "#" + str(Table(title, said, (*(column.header for column in shown), "target"), tuple(lines)))


def measured_on(rows: Iterable[Row]) -> list[str]:
    """A sentence with the days of the rows that have one; none where no row does."""
    days = sorted({row.date for row in rows if row.date})
    return [f"Measured on {' to '.join(dict.fromkeys((days[0], days[-1])))}."] if days else []


def load_record(path: Path) -> Record:
    """The rows in a file; none where there is no file.

    Raises
    ------
    RecordError
        For a file that is no such record.
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
        raise RecordError(f"{path} is no record of a benchmark ({error}); move it away.", path=str(path)) from error


def save_record(record: Record, path: Path) -> None:
    """Writes the rows, whole or not at all."""
    tables = {
        table: {
            key: {
                "cells": row.cells,
                "targets": [
                    {"what": t.what, "value": t.value, "sense": t.sense, "limit": t.limit} for t in row.targets
                ],
                "machine": row.machine,
                "seconds": round(row.seconds, 1),
                "date": row.date,
            }
            for key, row in rows.items()
        }
        for table, rows in record.tables.items()
    }
    body = _to_json({"schema": SCHEMA, "tables": tables})
    write_whole(path, json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _to_json(value: Any) -> Any:
    """Numbers that JSON has no word for become objects."""
    if isinstance(value, dict):
        return {key: _to_json(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_to_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _from_json(value: dict[str, Any]) -> Any:
    return float(value["float"]) if set(value) == {"float"} else value
