"""Outputs whose parts have names: data frames, labelled columns, dataclasses, named tuples, dictionaries of numbers.

Such an output is a record. Where all records of an audit have the same parts, their `Form`, a record is a vector of its
parts, and the names of the parts are the names of its columns. Any other record is a dictionary.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import numbers
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from .dictionaries import Dictionary
from .foreign_arrays import column_of, is_foreign_array, numpy_of

_CLASS = "class"  # the key of the name of a dataclass in a dictionary of its fields: no field can have this name

_DEEPEST = 20  # levels of nested records
_SIMPLE = frozenset({float, int, bool, str, bytes, type(None), list, np.float64})

Parts = list[tuple[Any, Any]]
"""The parts of a record, each with its label."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an output that the caller picked, with its name."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Form:
    """The names of the columns of records, and the names of their dataclasses; no names if outputs have no columns."""

    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def values_of(self, output: Any) -> tuple[Any, ...] | None:
        """Return the values of a record of this form; None for any other output."""
        found = leaves_of_record(output)
        if found is None or found[0] != self:
            return None
        return found[1]


def form_of(outputs: Iterable[Any]) -> Form:
    """Return the form that all outputs have; one without names if there is none.

    Examples
    --------
    >>> form_of([{"mean": 1.5, "count": 2}, {"mean": 0.5, "count": 3}]).names
    ('mean', 'count')
    >>> form_of([{"mean": 1.5}, {"count": 3}])
    Form(names=(), classes=())
    """
    form: Form | None = None
    for output in outputs:
        found = leaves_of_record(output)
        if found is None or (form is not None and found[0] != form):
            return Form()
        form = found[0]
    return Form() if form is None else form


def leaves_of_record(output: Any) -> tuple[Form, tuple[Any, ...]] | None:
    """Return the form of a record with the values of its columns; None for any other output.

    Columns are the parts of nested records and of vectors of numbers in them. A dictionary is a record only if it holds
    nothing but numbers, in arrays too but not in lists, which may be rows of keys and values.
    """
    if not parts_of(output) or (_is_dictionary(output) and not _holds_numbers(output, 0)):
        return None
    classes: list[str] = []
    try:
        leaves = list(_leaves(output, "", classes, 0))
    except RecursionError:
        return None
    if not leaves:
        return None
    names, values = zip(*leaves, strict=True)
    return Form(distinct(names), tuple(classes)), values


def _leaves(value: Any, name: str, classes: list[str], depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST:
        raise RecursionError
    parts = parts_of(value)
    if parts is None and depth > 0:
        value = _plain_array(value)
    if parts and not (_is_dictionary(value) and not _holds_numbers(value, depth)):
        if _is_of_class(value):
            classes.append(_class_name(value))
        for label, part in parts:
            yield from _leaves(part, f"{name}.{label_text(label)}" if name else label_text(label), classes, depth + 1)
    elif name and _is_vector(value):
        yield from ((f"{name}[{place}]", part) for place, part in enumerate(value))
    else:
        yield name, value


def parts_of(output: Any) -> Parts | None:
    """Return the parts of a record with their labels, one level deep; None for an output without named parts."""
    kind: Any = type(output)
    if kind in _SIMPLE:
        return None
    fields = _fields_of(kind)
    if fields is not None:
        return [(name, getattr(output, name)) for name in fields]
    if kind is Part:
        return [(output.name, output.value)]
    if isinstance(output, tuple):
        return list(zip(kind._fields, output, strict=True)) if hasattr(kind, "_fields") else None
    if isinstance(output, dict):
        return list(output.items())
    if kind is Dictionary:
        return list(output.entries)
    if isinstance(output, (np.void, np.ndarray)):
        is_record = output.dtype.names is not None and output.ndim == 0
        return [(name, output[name][()]) for name in output.dtype.names or ()] if is_record else None
    if is_labelled(output):
        return list(zip(distinct_labels(output.index.tolist()), column_of(output).tolist(), strict=True))
    return list(_cells(output)) if is_table(output) else None


def label_text(label: Any) -> str:
    """Return the text of a label; those of a tuple are joined with dots."""
    return ".".join(map(label_text, label)) if isinstance(label, tuple) else str(label)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, with a number after a name that came before.

    Examples
    --------
    >>> distinct(["a", "b", "a"])
    ('a', 'b', 'a (2)')
    """
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)


def distinct_labels(labels: list[Any]) -> list[Any]:
    """Return labels as they are if they differ, else their distinct texts."""
    return labels if len(set(labels)) == len(labels) else list(distinct(map(label_text, labels)))


def is_table(value: Any) -> bool:
    """Whether the value is a data frame of pandas or polars."""
    kind = type(value)
    return hasattr(kind, "columns") and (hasattr(kind, "itertuples") or hasattr(kind, "iter_rows"))


def is_labelled(value: Any) -> bool:
    """Whether the value is a column of pandas with labels other than the numbers of its rows."""
    kind = type(value)
    if not hasattr(kind, "iloc") or is_table(value) or not hasattr(value, "index"):
        return False
    index = value.index
    return not (type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1)


def entries_of(output: Any) -> Parts | None:
    """Return the entries of a record that has no form, or not that of the others; None for an output without parts.

    Two dataclasses with the same fields are different outputs, so the name of the class is an entry.
    """
    parts = parts_of(output)
    return [(_CLASS, _class_name(output)), *parts] if parts is not None and _is_of_class(output) else parts


def _is_of_class(value: Any) -> bool:
    """Whether the parts of a record are the fields of a dataclass."""
    kind: Any = type(value)
    return _fields_of(kind) is not None


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


@functools.lru_cache(maxsize=256)
def _fields_of(kind: Any) -> tuple[str, ...] | None:
    """Return the compared fields of a dataclass or an attrs class; None if it has an equality of the user's own."""
    if issubclass(kind, enum.Enum) or kind.__module__.startswith(f"{__package__}."):
        return None
    own = vars(kind)  # an undecorated subclass may have attributes that are no fields
    if "__attrs_attrs__" in own:
        return tuple(each.name for each in own["__attrs_attrs__"] if each.eq)
    if "__dataclass_fields__" not in own:
        return None
    is_compared_by_fields = kind.__eq__ is object.__eq__ or kind.__dataclass_params__.eq
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare) if is_compared_by_fields else None


def _cells(table: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values of a data frame, by column and by the label of the row if there are several."""
    index: Any = getattr(table, "index", None)
    rows = distinct_labels(index.tolist()) if hasattr(index, "tolist") else list(range(len(table)))
    for name, column in columns_of_table(table):
        for row, value in zip(rows, column_of(column).tolist(), strict=True):
            yield name if len(rows) == 1 else f"{name}[{label_text(row)}]", value


def columns_of_table(table: Any) -> list[tuple[str, Any]]:
    """Return the columns of a data frame with their names, which differ."""
    names = distinct(map(label_text, table.columns))
    is_by_place = hasattr(table, "iloc")
    each = [table.iloc[:, place] if is_by_place else table.to_series(place) for place in range(len(names))]
    return list(zip(names, each, strict=True))


def _is_dictionary(value: Any) -> bool:
    return isinstance(value, dict) or type(value) is Dictionary


def _holds_numbers(value: Any, depth: int) -> bool:
    """Whether a dictionary holds nothing but numbers, in it, in arrays or in dictionaries in it."""
    parts = parts_of(value) or []
    return depth <= _DEEPEST and all(
        _holds_numbers(part, depth + 1) if _is_dictionary(part) else is_number(part) or _is_array_of_numbers(part)
        for _, part in parts
    )


def _is_array_of_numbers(value: Any) -> bool:
    array = _plain_array(value)
    return is_number(array) or (isinstance(array, np.ndarray) and _is_vector(array))


def _plain_array(value: Any) -> Any:
    """Return an array of another library as a numpy array, and one without dimensions as its number."""
    if type(value) in _SIMPLE:
        return value
    if is_foreign_array(value):
        try:
            value = numpy_of(value)
        except Exception:  # whoever reads the value says so
            return value
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def is_number(value: Any) -> bool:
    """Whether a value is a real number."""
    return type(value) is float or (type(value) is not str and isinstance(value, numbers.Real | Decimal | np.bool_))


def _is_vector(value: Any) -> bool:
    """Whether a value is a vector of numbers."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf" and len(value) > 0
    return type(value) in (list, tuple) and len(value) > 0 and all(map(is_number, value))
