"""Datasets that are stored by column: data frames of polars, and dictionaries of columns of equal length."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..events.named_parts import column_of, is_foreign_array


def columns_by_name(dataset: Any) -> dict[Any, Any] | None:
    """Return the columns of a dataset that is stored by column; None for any other dataset.

    Examples
    --------
    >>> columns_by_name({"age": [31, 57], "sex": ["f", "m"]})
    {'age': [31, 57], 'sex': ['f', 'm']}
    >>> columns_by_name({"cats": 5}) is None
    True
    """
    if is_frame_of_columns(dataset):
        return {name: dataset.to_series(place) for place, name in enumerate(dataset.columns)}
    if type(dataset) is not dict or not dataset or not all(map(_is_column, dataset.values())):
        return None
    return dataset if len(set(map(len, dataset.values()))) == 1 else None


def collected(dataset: Any) -> Any:
    """Return a lazy frame of polars as a frame, and any other dataset as it is."""
    kind = type(dataset)
    return dataset.collect() if hasattr(kind, "collect") and hasattr(kind, "collect_schema") else dataset


def is_frame_of_columns(dataset: Any) -> bool:
    """Return whether the dataset is a data frame of polars or similar, without importing polars."""
    kind = type(dataset)
    return hasattr(kind, "columns") and hasattr(kind, "iter_rows") and hasattr(kind, "to_series")


def rows_by_name(dataset: Any) -> list[dict[Any, Any]] | None:
    """Return the rows of a dataset that is stored by column, as dictionaries; None for any other dataset.

    Examples
    --------
    >>> rows_by_name({"age": [31, 57], "sex": ["f", "m"]})
    [{'age': 31, 'sex': 'f'}, {'age': 57, 'sex': 'm'}]
    """
    columns = columns_by_name(dataset)
    if columns is None:
        return None
    each = [column if isinstance(column, (list, tuple)) else column_of(column).tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*each, strict=True)]


def _is_column(value: Any) -> bool:
    if isinstance(value, np.ndarray) or is_foreign_array(value):
        return getattr(value, "ndim", 1) == 1
    return isinstance(value, (list, tuple))
