"""Datasets as multisets of rows, and the number of rows in each of two datasets that the other lacks.

Neighbours share most rows in the same order, so common rows at both ends are removed by comparing whole columns. The
remaining rows are counted one by one.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DatasetError
from ..events.kinds import column_of, is_foreign_array, kind_of, numpy_of
from ..events.named_parts import entries_of, outcome_key
from ..events.plain_outputs import common

_BY_VALUE = "biufmMSU"  # kinds of arrays whose elements numpy compares by value
PLAIN = frozenset({int, bool, str, bytes, type(None)})
"""Types of values that are immutable, hashable and equal to themselves."""


def is_frame(dataset: Any) -> bool:
    """Return whether the dataset is a data frame of pandas or similar, without importing pandas."""
    return hasattr(dataset, "itertuples") and hasattr(dataset, "columns")


def rows_of(dataset: Any) -> Counter[Any]:
    """Return the dataset as a multiset of hashable rows; raise a `DatasetError` if it is not a collection of rows."""
    if isinstance(dataset, Counter):
        return Counter({row_key(row): count for row, count in dataset.items()})
    return Counter(row_keys(dataset))


def row_keys(dataset: Any) -> list[Any]:
    """Return the rows in order, hashable and equal for equal rows, NaN included."""
    rows = as_rows(dataset)
    if isinstance(rows, np.ndarray):
        rows = rows.tolist()
    elif is_frame(rows):  # without columns, pandas before 3 gives no rows
        rows = rows.itertuples(index=False, name=None) if len(rows.columns) else [()] * len(rows)
    return list(map(row_key, rows.elements() if isinstance(rows, Counter) else rows))


def is_graph(dataset: Any) -> bool:
    """Return whether the dataset is a graph of networkx or similar, without importing networkx."""
    return kind_of(dataset) == "graph"


def columns_by_name(dataset: Any) -> dict[Any, Any] | None:
    """Return the columns of a dataset that is stored by column; None for any other dataset.

    A tuple of arrays or frames, and perhaps lists, of one length is a table, such as features and labels; its columns
    are numbered. A list of arrays holds a row in each array, as does a tuple of arrays of other lengths. A column may
    hold vectors, but not in a dictionary of one entry, which is a matrix with a name.
    """
    if is_frame_of_columns(dataset):
        return {name: dataset.to_series(place) for place, name in enumerate(dataset.columns)}
    if isinstance(dataset, tuple) and len(dataset) > 1 and any(map(is_array, dataset)):
        dataset = dict(enumerate(dataset))
    if type(dataset) is not dict or not all(map(is_column_of_rows, dataset.values())):
        return None
    if len(dataset) == 1 and getattr(next(iter(dataset.values())), "ndim", 1) > 1:
        return None
    return dataset if len(set(map(len, dataset.values()))) == 1 else None


def collected(dataset: Any) -> Any:
    """Return a lazy frame of polars as a frame, and any other dataset as it is."""
    return dataset.collect() if kind_of(dataset) == "lazy table" else dataset


def is_frame_of_columns(dataset: Any) -> bool:
    """Return whether the dataset is a data frame of polars or similar, without importing polars."""
    kind = type(dataset)
    return hasattr(kind, "columns") and hasattr(kind, "iter_rows") and hasattr(kind, "to_series")


def rows_by_name(dataset: Any) -> list[dict[Any, Any]] | None:
    """Return the rows of a dataset that is stored by column, as dictionaries; None for any other dataset."""
    columns = columns_by_name(dataset)
    if columns is None:
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(as_list, columns.values()), strict=True)]


def as_list(column: Any) -> list[Any]:
    """Return the values of a column as a list; of a frame in a column its rows."""
    if is_frame(column):
        return [tuple(row) for row in column.itertuples(index=False, name=None)]
    if isinstance(column, np.ma.MaskedArray):
        return list(column.tolist())  # masked entries become None
    return list(column if isinstance(column, (list, tuple)) else column_of(column).tolist())


def is_array(value: Any) -> bool:
    """Return whether the value is an array, a column or a frame of any library."""
    return isinstance(value, np.ndarray) or is_foreign_array(value)


def is_column_of_rows(value: Any) -> bool:
    """Return whether the value can be a column of a table, with one entry or one vector for each row."""
    return getattr(value, "ndim", 1) >= 1 if is_array(value) else isinstance(value, (list, tuple))


def rows_apart(x: Any, y: Any) -> tuple[int, int]:
    """Return the number of rows that are only in x, and only in y, as multisets."""
    only_x, only_y = rows_only(x, y)
    return only_x.total(), only_y.total()


def rows_only(x: Any, y: Any) -> tuple[Counter[Any], Counter[Any]]:
    """Return the multisets of the rows that are only in x, and only in y."""
    x, y = rows_between(x, y, rows_of)
    return x - y, y - x


def rows_between(x: Any, y: Any, read: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return what is read of the rows of both datasets, without common ones at the head and at the tail.

    Rows that are the same object in both datasets are not inspected. Datasets without comparable rows raise a
    `DatasetError`.
    """
    try:
        a, b = columns_by_name(x), columns_by_name(y)
        if a is None or b is None or a.keys() != b.keys():
            x, y = without_common_ends(*_in_one_order(as_rows(x), as_rows(y)))
        else:
            tables = [{name: c if is_frame(c) else as_numpy(c) for name, c in each.items()} for each in (a, b)]
            pairs = [_columns(*(table[name] for table in tables)) or [((), ())] for name in a]
            head, tail = _common_ends([pair for column in pairs for pair in column])
            x, y = ({name: _between(column, head, tail) for name, column in table.items()} for table in tables)
        return read(x), read(y)
    except DatasetError:
        raise
    except Exception as error:  # a user's rows may raise anything, and rows may be nested too deeply
        raise DatasetError(
            f"the rows of the datasets cannot be compared ({type(error).__name__}: {error}); use rows of numbers, "
            "strings, tuples or dictionaries."
        ) from error


def tables_of(x: Any, y: Any, declared: bool | None = None) -> dict[Any, tuple[Any, Any]] | None:
    """Return the tables of x and y by name, in pairs; a table alone by the name None; None if the names differ.

    By default a dictionary holds several tables if all are data frames or lists of dictionaries. Those in a dictionary
    of other lists or arrays may be its columns, so the caller has to declare them.
    """
    odd = next((type(each).__name__ for each in (x, y) if not isinstance(each, dict)), "")
    if not odd and declared is None:
        kinds = {_is_table(each) for each in (*x.values(), *y.values())}
        declared = True in kinds and False not in kinds
    if declared and odd:
        raise DatasetError(
            f"a dataset of type {odd} has no tables by name; use a dictionary of tables, or leave out tables=True.",
            type=odd,
        )
    if not declared:
        return {None: (x, y)}
    return {name: (table, y[name]) for name, table in x.items()} if x.keys() == y.keys() else None


def _is_table(value: Any) -> bool | None:
    """Whether a value is a table with named columns; None of an empty list."""
    if isinstance(value, list):
        return all(isinstance(row, dict) for row in value) if value else None
    return is_frame(value) or is_frame_of_columns(value)


def _in_one_order(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the datasets with the columns of the second frame in the order of the first."""
    if is_frame(x) and is_frame(y):
        a, b = list(x.columns), list(y.columns)
        if a != b and len({*a}) == len(a) == len(b) and {*a} == {*b}:
            return x, y[a]
        if len(a) != len(b):
            raise DatasetError(f"x has {len(a)} columns and y has {len(b)}; neighbours have the same columns.")
    return x, y


def as_rows(dataset: Any) -> Any:
    """Return the dataset as an array if numpy can read it, or as a list of rows; refuses one without rows."""
    dataset = collected(dataset)
    if isinstance(dataset, np.ma.MaskedArray):
        return dataset.tolist()  # masked entries become None
    by_name = rows_by_name(dataset)
    if by_name is not None:
        return by_name
    if not is_frame(dataset):
        dataset = as_numpy(dataset)
    is_array = isinstance(dataset, np.ndarray) and dataset.ndim >= 1
    is_collection = isinstance(dataset, (Sequence, set, frozenset, Counter)) and not isinstance(dataset, (str, bytes))
    if not (is_array or is_collection or is_frame(dataset)):
        is_domain = hasattr(type(dataset), "lists_values")  # a `Domain`, whose module imports this one
        are_tables = isinstance(dataset, dict) and bool(dataset) and all(map(is_column_of_rows, dataset.values()))
        asked = "is x or y missing? Otherwise " * (dataset is None) + "pass a domain to find_worst_pair; " * is_domain
        asked += "if it holds several tables, pass AddRemove(tables=True) or the like; otherwise " * are_tables
        raise DatasetError(
            f"a dataset of type {type(dataset).__name__} has no rows to compare; {asked}use a list, an array, a data "
            "frame, a dictionary of columns of equal length, or an adjacency for values such as Within or Local (for "
            "graphs, EdgeNeighbours or NodeNeighbours).",
            type=type(dataset).__name__,
        )
    return dataset


def row_list(dataset: Any) -> list[Any]:
    """Return the rows of a dataset in a list, those of a frame as dictionaries."""
    rows = as_rows(dataset)
    if is_frame(rows):
        return list(rows.to_dict("records"))
    return list(rows.elements() if isinstance(rows, Counter) else rows)


def as_numpy(dataset: Any) -> Any:
    """Return an array or a column of another library as a numpy array, and any other dataset as it is."""
    if not is_foreign_array(dataset):
        return dataset
    try:
        return column_of(dataset) if hasattr(dataset, "null_count") else numpy_of(dataset)
    except Exception as error:  # such as a type that numpy does not have
        raise DatasetError(
            f"a dataset of type {type(dataset).__name__} cannot be read by numpy ({type(error).__name__}: {error}); "
            "pass a numpy array.",
            type=type(dataset).__name__,
        ) from error


def without_common_ends(x: Any, y: Any) -> tuple[Any, Any]:
    """Return both datasets without their common rows at the head and at the tail."""
    head, tail = _common_ends(_columns(x, y))
    return _between(x, head, tail), _between(y, head, tail)


def _common_ends(columns: list[tuple[Any, Any]]) -> tuple[int, int]:
    """Return the numbers of leading and of last rows in which all columns agree, without overlap."""
    n = min((min(len(a), len(b)) for a, b in columns), default=0)
    head = min((_length_of_head(a[:n], b[:n]) for a, b in columns), default=0)
    rest = n - head
    ends = ((a[len(a) - rest :][::-1], b[len(b) - rest :][::-1]) for a, b in columns)
    return head, min((_length_of_head(*end) for end in ends), default=0)


def _between(rows: Any, head: int, tail: int) -> Any:
    """Return the rows without those at the head and at the tail."""
    if head == tail == 0:
        return rows
    return (rows.iloc if is_frame(rows) else rows)[head : len(rows) - tail]


def symmetric_difference(a: Counter[Any], b: Counter[Any]) -> Counter[Any]:
    """Return the symmetric difference of two multisets."""
    return (a - b) + (b - a)


UNKNOWN = outcome_key(math.nan)
"""The key of NaN."""


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or the missing value of pandas, which equals nothing."""
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")
        or (isinstance(cell, numbers.Real) and cell != cell)
    )


def row_key(row: Any) -> Any:
    """Return what is equal for equal rows or cells, NaN included, and hashable."""
    kind = type(row)
    if kind in PLAIN or kind is float:
        return row if row == row else UNKNOWN
    if isinstance(row, np.ndarray):
        row = row.tolist()
    elif isinstance(row, (np.generic, bytearray)):
        row = common(row)
    match kind_of(row):
        case "sequence":
            return tuple(map(row_key, row))
        case "set":
            return frozenset(map(row_key, row))
    if (entries := row.items() if kind is dict else entries_of(row)) is not None:
        return dict, frozenset((key, row_key(part)) for key, part in entries)
    try:
        hash(row)
    except TypeError:
        raise DatasetError(
            f"a row of type {type(row).__name__} cannot be compared by value; use tuples, dicts, sets or scalars.",
            type=type(row).__name__,
        ) from None
    return outcome_key(row)


def _columns(x: Any, y: Any) -> list[tuple[Any, Any]]:
    """Return pairs of columns, arrays of one type or lists, that hold all of both datasets; none if types differ."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        if np.ma.isMaskedArray(x) or np.ma.isMaskedArray(y):
            return []
        return [(x, y)] if x.shape[1:] == y.shape[1:] and _is_by_value(x, y) else []
    if all(is_frame(rows) and _is_defined_by_pandas(rows) for rows in (x, y)) and len(x.columns) == len(y.columns):
        pairs = ((x.iloc[:, i], y.iloc[:, i]) for i in range(len(x.columns)))
        return [(a.to_numpy(), b.to_numpy()) if _is_by_value(a, b) else (a.tolist(), b.tolist()) for a, b in pairs]
    return [(x, y)] if type(x) in (list, tuple) and type(y) in (list, tuple) else []


def _is_defined_by_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _is_by_value(one: Any, other: Any) -> bool:
    """Return whether these hold values of one type, which numpy compares by value."""
    return isinstance(one.dtype, np.dtype) and one.dtype == other.dtype and one.dtype.kind in _BY_VALUE


def _length_of_head(a: Any, b: Any) -> int:
    """Return the number of leading elements that are certainly equal."""
    if len(a) == 0:
        return 0
    if isinstance(a, np.ndarray):
        same: Any = np.asarray((a == b) | ((a != a) & (b != b))).all(axis=tuple(range(1, a.ndim)))
    else:
        same = np.fromiter(map(operator.is_, a, b), np.bool_, len(a))
        if not same.all() and set(map(type, a)) | set(map(type, b)) <= PLAIN:
            same = np.fromiter(map(operator.eq, a, b), np.bool_, len(a))
    return len(same) if same.all() else int(np.argmin(same))
