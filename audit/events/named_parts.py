"""Outputs whose parts have names: dictionaries, data frames, labelled columns, dataclasses, named tuples.

`entries_of` writes such an output as the entries of a dictionary and loses nothing that tells two outputs apart: what
is not a part, such as a class, the name of a column or the labels of rows, has a `Mark` as its key, which no user's
dictionary has. The order of labels is an output; that of keys and columns is not.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dictionaries import Dictionary, Mark
from .foreign_arrays import column_of
from .outcome_text import printed
from .own_equality import compared_fields

_SIMPLE = frozenset({float, int, bool, str, bytes, type(None), list, np.float64})
_WRITTEN = frozenset({Mark.CLASS, Mark.ORDER})  # keys of what two versions may write in other ways
_LONGEST = 40  # characters of the name of a column

Entries = list[tuple[Any, Any]]
"""The parts of an output, each with its key."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an output that the caller picked, with its name."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Again:
    """A label that came before among the labels of the same frame or column."""

    label: Any
    time: int


def entries_of(output: Any) -> Entries | None:
    """Return the entries of an output with named parts, one level deep; None for any other output.

    Outputs of one class have the same entries only if they are equal. A named tuple has none: it equals the tuple of
    its parts.
    """
    kind: Any = type(output)
    if kind in _SIMPLE:
        return None
    fields = _fields_of(kind)
    if fields is not None:
        return [(Mark.CLASS, class_name(kind)), *((each.name, _value_of(output, each)) for each in fields)]
    if isinstance(output, dict):
        return list(output.items())
    if kind is Dictionary:
        return list(output.entries)
    if isinstance(output, (np.void, np.ndarray)):
        kind, names = f"numpy record in {output.ndim} dimensions", output.dtype.names
        if names is None:
            return None
        parts = [output[name] for name in names]
        return [
            (Mark.CLASS, kind),
            *(
                (name, part[()] if isinstance(part, np.ndarray) else part)
                for name, part in zip(names, parts, strict=True)
            ),
        ]
    if is_table(output):
        return _entries_of_table(output)
    return _entries_of_column(output) if is_column(output) else None


def parts_of(output: Any) -> Entries | None:
    """Return the parts of an output with their labels, without its marks; None for an output without named parts."""
    if isinstance(output, tuple):
        fields: Any = getattr(type(output), "_fields", None)
        return None if fields is None else list(zip(fields, output, strict=True))
    entries = entries_of(output)
    return None if entries is None else [(key, part) for key, part in entries if not isinstance(key, Mark)]


def without_class(output: Any) -> Any:
    """Return a labelled column, or a row of a frame or an array, as the dictionary of its labels in any order."""
    if isinstance(output, dict | tuple) or _fields_of(type(output)) is not None:
        return output
    entries = entries_of(output)
    return output if entries is None else Dictionary.of(each for each in entries if each[0] not in _WRITTEN)


def _entries_of_table(table: Any) -> Entries:
    index: Any = getattr(table, "index", None)
    entries: Entries = [(Mark.CLASS, class_name(type(table)))]
    names = [name for axis in (index, table.columns) for name in getattr(axis, "names", ())]
    if any(name is not None for name in names):
        entries.append((Mark.NAME, tuple(names)))
    is_numbered = not hasattr(index, "tolist") or is_default(index)
    if not (is_numbered and len(table) == 1):
        entries.append((Mark.INDEX, len(table) if is_numbered else tuple(index.tolist())))
    for key, column in columns_of_table(table):
        values = column_of(column)
        entries.append((key, values[0] if len(values) == 1 else values))
    return entries


def _entries_of_column(column: Any) -> Entries | None:
    """Return the entries of a column with a name or with labels; None for another, a vector of values."""
    index = getattr(column, "index", None) if hasattr(type(column), "iloc") else None
    name = getattr(column, "name", None)
    is_named = not (name is None or (isinstance(name, str) and not name))
    if not is_named and (index is None or is_default(index)):
        return None
    entries: Entries = [(Mark.CLASS, class_name(type(column)))]
    names = tuple(getattr(index, "names", ()))
    if is_named or any(each is not None for each in names):
        entries.append((Mark.NAME, (name, *names)))
    if index is None or is_default(index):
        return [*entries, (Mark.VALUES, column_of(column))]
    labels = index.tolist()
    return [*entries, (Mark.ORDER, tuple(labels)), *zip(distinct_keys(labels), column_of(column).tolist(), strict=True)]


def is_default(index: Any) -> bool:
    """Whether the labels of rows are the numbers of the rows."""
    if index.name is not None:
        return False
    if type(index).__name__ == "RangeIndex":
        return len(index) == 0 or (index[0] == 0 and index[-1] == len(index) - 1)
    if getattr(index, "nlevels", 1) > 1 or getattr(index.dtype, "kind", "O") not in "iufO":
        return False
    if len(index) == 0 or index.hasnans or index[0] != 0:
        return False
    labels = index.tolist()
    return labels == list(range(len(labels))) and bool not in map(type, labels)


def is_table(value: Any) -> bool:
    """Whether the value is a data frame of pandas or polars."""
    kind = type(value)
    return hasattr(kind, "columns") and (hasattr(kind, "itertuples") or hasattr(kind, "iter_rows"))


def is_column(value: Any) -> bool:
    """Whether the value is a column of pandas or polars, or is like one."""
    kind = type(value)
    return hasattr(kind, "to_numpy") and hasattr(kind, "name") and not is_table(value)


def columns_of_table(table: Any) -> Entries:
    """Return the columns of a data frame with their keys, which differ."""
    keys = distinct_keys(list(table.columns))
    is_by_place = hasattr(table, "iloc")
    each = [table.iloc[:, place] if is_by_place else table.to_series(place) for place in range(len(keys))]
    return list(zip(keys, each, strict=True))


def distinct_keys(labels: list[Any]) -> list[Any]:
    """Return labels as keys that differ."""
    seen: Counter[Any] = Counter()
    found = []
    for label in labels:
        seen[label] += 1
        found.append(label if seen[label] == 1 else Again(label, seen[label]))
    return found


def label_text(label: Any) -> str:
    """Return the text of a label; those of a tuple are joined with dots."""
    if isinstance(label, tuple):
        return ".".join(map(label_text, label))
    if type(label) is Again:
        return f"{label_text(label.label)} ({label.time})"
    try:
        return str(label.value if isinstance(label, Mark) else label)
    except Exception:  # an integer of thousands of digits, or a user's own `__str__`
        return printed(label)


def shown_names(texts: Iterable[str]) -> tuple[str, ...]:
    r"""Return names for a reader: short, without control characters, and with a number after one that came before.

    Examples
    --------
    >>> shown_names(["a", "b\n", "a"])
    ('a', 'b\\n', 'a (2)')
    """
    return distinct(map(shown, texts))


def shown(text: str) -> str:
    """Return a text for a reader: at most 40 characters, none of which controls a terminal."""
    plain = text[: _LONGEST + 1]
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, with a number after a name that came before."""
    found: dict[str, None] = {}
    for name in names:
        new, time = name, 1
        while new in found:
            time += 1
            new = f"{name} ({time})"
        found[new] = None
    return tuple(found)


def class_name(kind: type[Any]) -> str:
    """Return the full name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _fields_of(kind: Any) -> tuple[Any, ...] | None:
    """Return the compared fields of a dataclass or an attrs class; None if it has an equality of the user's own."""
    fields = compared_fields(kind)
    if fields is None or issubclass(kind, enum.Enum) or str(kind.__module__).startswith(f"{__package__}."):
        return None
    return fields


def _value_of(output: Any, field: Any) -> Any:
    """Return what is compared of a field, which attrs may compute from its value."""
    value, key = getattr(output, field.name), getattr(field, "eq_key", None)
    return value if key is None else key(value)
