"""Blocks of runs whose columns have names: data frames, structured arrays, dictionaries of columns, named columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import MechanismError
from .foreign_arrays import Array, column_of, in_one_type, numpy_of
from .records import Form, Part, columns_of_table, distinct, form_of, is_table, label_text


def columns_of_block(raw: Any) -> list[tuple[str, Any]] | None:
    """Return the named columns of many runs, one run in each row; None if they have no names.

    Such are data frames, structured arrays, dictionaries of columns, and a column of pandas or polars with a name.
    """
    if type(raw) is Part:
        return _columns_of_part(raw)
    if isinstance(raw, (list, tuple)) or raw is None:
        return None
    if isinstance(raw, np.ndarray):
        names = raw.dtype.names
        return None if names is None else [each for name in names for each in _single(name, raw[name])]
    if isinstance(raw, dict):
        named = zip(distinct(map(label_text, raw)), raw.values(), strict=True)
        return [each for name, column in named for each in _single(name, column)]
    if is_table(raw):
        return columns_of_table(raw)
    name = getattr(raw, "name", None)
    is_column = hasattr(raw, "to_numpy") and name is not None and name != ""
    return [(label_text(name), raw)] if is_column else None


def form_of_block(raw: Any) -> Form:
    """Return the form of a block as a block sampler returns it: its named columns, or that of the records in a list."""
    columns = columns_of_block(raw)
    if columns is not None:
        return Form(tuple(name for name, _ in columns))
    return form_of(raw) if isinstance(raw, (list, tuple)) else Form()


def _columns_of_part(part: Part) -> list[tuple[str, Any]]:
    """Return the columns of a part that was picked from a block."""
    within = None if hasattr(part.value, "to_numpy") and not is_table(part.value) else columns_of_block(part.value)
    if within is not None:
        return [(f"{part.name}.{name}", column) for name, column in within]
    return _single(part.name, part.value)


def _single(name: str, column: Any) -> list[tuple[str, Any]]:
    """Return a column, or the columns of a matrix."""
    if getattr(column, "ndim", 1) != 2:
        return [(name, column)]
    return [(f"{name}[{place}]", column[:, place]) for place in range(column.shape[1])]


def rows_of(columns: list[tuple[str, Any]], size: int, name: str, form: Form | None) -> Array | list[Any]:
    """Return named columns of many runs as an array of numbers, or as a list of rows."""
    names = tuple(label for label, _ in columns)
    if not names or (form is not None and form.names and form.names != names):
        before = f" after columns named {', '.join(form.names)}" if form is not None and form.names else ""
        raise MechanismError(
            f"{name} returned columns named {', '.join(names) or 'nothing'}{before}; return the same columns in every "
            "block, at least one.",
            mechanism=name,
            columns=names,
        )
    arrays = []
    for label, column in columns:
        try:
            array = column_of(column)
        except Exception as error:  # not a column, or one that numpy cannot read
            raise MechanismError(
                f"{name} returned a column {label!r} that cannot be read ({type(error).__name__}: {error}); return one "
                "value for each run in each column.",
                mechanism=name,
                column=label,
            ) from error
        if array.shape != (size,):
            raise MechanismError(
                f"{name} returned a column {label!r} of shape {array.shape} when asked for {size} outputs; return one "
                "value for each run in each column.",
                mechanism=name,
                column=label,
                shape=array.shape,
            )
        arrays.append(array)
    kind = in_one_type(arrays)
    if kind is not None:
        if len(arrays) == 1:
            return arrays[0].astype(kind, copy=False)
        return np.column_stack([array.astype(kind, copy=False) for array in arrays])
    values: list[list[Any]] = [array.tolist() for array in arrays]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def read_array(array: Any, name: str) -> Array:
    """Return an array of another library as a numpy array."""
    try:
        return numpy_of(array)
    except Exception as error:
        raise MechanismError(
            f"{name} returned a {type(array).__name__} that numpy cannot read ({type(error).__name__}: {error}); "
            "return a numpy array.",
            mechanism=name,
            type=type(array).__name__,
        ) from error
