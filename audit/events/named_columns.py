"""Blocks of runs whose columns have names: data frames, structured arrays, dictionaries of columns, named columns.

A block with named columns is the list of the dictionaries of its rows. Columns are found by their keys and not by their
places, so the order of columns does not matter, and a row with other columns is a different outcome.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import MechanismError
from .dictionaries import Dictionary, Mark
from .foreign_arrays import Array, column_of, in_one_type
from .named_parts import Entries, Part, columns_of_table, is_column, is_default, is_table, label_text


def columns_of_block(raw: Any) -> Entries | None:
    """Return the columns of many runs, one run in each row, with their keys; None if they have no names.

    Such are data frames, structured arrays, dictionaries of columns, and a column of pandas or polars with a name. The
    labels of rows are a column if they are not the numbers of the rows.
    """
    if isinstance(raw, (list, tuple)) or raw is None:
        return None
    if type(raw) is Part:
        return None if is_column(raw.value) else columns_of_block(raw.value)
    if isinstance(raw, np.ndarray):
        names = raw.dtype.names
        return None if names is None else [(name, raw[name]) for name in names]
    if isinstance(raw, dict):
        return list(Dictionary.of(raw.items()).entries)
    if is_table(raw):
        return [*_labels_of(raw), *columns_of_table(raw)]
    if not is_column(raw):
        return None
    labels, name = _labels_of(raw), raw.name
    if name is None or (isinstance(name, str) and not name):
        return [*labels, (Mark.VALUES, raw)] if labels else None
    return [*labels, (name, raw)]


def _labels_of(raw: Any) -> Entries:
    index = getattr(raw, "index", None) if hasattr(type(raw), "iloc") else None
    return [] if index is None or is_default(index) else [(Mark.INDEX, index)]


def without_labels(raw: Any) -> Any:
    """Return a data frame or a column with the numbers of its rows as labels, which then are not outputs."""
    return raw.reset_index(drop=True) if (is_table(raw) or is_column(raw)) and _labels_of(raw) else raw


def structure_of(columns: Entries) -> Dictionary:
    """Return the structure of the rows of a block: a vector in place of a matrix, a leaf in place of a column."""
    return Dictionary(tuple((key, _structure_of_one(column)) for key, column in columns))


def _structure_of_one(column: Any) -> Any:
    is_matrix = getattr(column, "ndim", 1) == 2 and getattr(getattr(column, "dtype", None), "kind", "f") in "biuf"
    return (Mark.LEAF,) * column.shape[1] if is_matrix else Mark.LEAF


def names_of(columns: Entries, prefix: str = "") -> list[str]:
    """Return the names of the columns, several for a matrix."""
    start = f"{prefix}." if prefix else ""
    found: list[str] = []
    for key, column in columns:
        name, structure = start + label_text(key), _structure_of_one(column)
        found += [name] if structure is Mark.LEAF else [f"{name}[{place}]" for place in range(len(structure))]
    return found


def arrays_of(columns: Entries, size: int, name: str) -> dict[Any, Array]:
    """Return the columns of `size` runs as arrays, by their keys."""
    arrays = {}
    for key, column in columns:
        label = label_text(key)
        array = array_of(column, name, label)
        if array.shape[:1] != (size,) or array.ndim > 2:
            raise MechanismError(
                f"{name} returned a column {label!r} of shape {array.shape} when asked for {size} outputs; return one "
                "value for each run in each column.",
                mechanism=name,
                column=label,
                shape=array.shape,
            )
        arrays[key] = array
    return arrays


def array_of(column: Any, name: str, label: str) -> Array:
    """Return a column of a block as an array."""
    refuse_masked(column, name)
    try:
        return column_of(column)
    except Exception as error:  # not a column, or one that numpy cannot read
        raise MechanismError(
            f"{name} returned a column {label!r} that cannot be read ({type(error).__name__}: {error}); return one "
            "value for each run in each column.",
            mechanism=name,
            column=label,
        ) from error


def side_by_side(arrays: list[Array]) -> Array | list[Any]:
    """Return columns as an array of numbers, or as a list of rows."""
    flat = [part for array in arrays for part in ([array] if array.ndim == 1 else array.T)]
    kind = in_one_type(flat)
    if kind is not None:
        if len(flat) == 1:
            return flat[0].astype(kind, copy=False)
        return np.column_stack([array.astype(kind, copy=False) for array in flat])
    values: list[list[Any]] = [array.tolist() for array in flat]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def as_dictionaries(arrays: dict[Any, Array], size: int) -> list[Dictionary]:
    """Return the rows of columns as dictionaries."""
    ordered = Dictionary.of(arrays.items()).entries
    keys, columns = [key for key, _ in ordered], [array.tolist() for _, array in ordered]
    return [Dictionary(tuple(zip(keys, row, strict=True))) for row in zip(*columns, strict=True)] or [
        Dictionary(())
    ] * size


def refuse_masked(value: Any, name: str) -> None:
    """Raise a `MechanismError` for a masked array."""
    if isinstance(value, np.ma.MaskedArray):
        raise MechanismError(f"{name} returned a masked array, whose mask is not an output; fill it.", mechanism=name)


def read_array(array: Any, name: str) -> Array:
    """Return an array or a column of another library as a numpy array, with None for what is missing."""
    try:
        return column_of(array)
    except Exception as error:
        raise MechanismError(
            f"{name} returned a {type(array).__name__} that numpy cannot read ({type(error).__name__}: {error}); "
            "return a numpy array.",
            mechanism=name,
            type=type(array).__name__,
        ) from error
