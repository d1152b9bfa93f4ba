"""Datasets as multisets of rows, and how many rows each of two datasets has that the other has not.

Neighbours have most of their rows in common, and in the same order: those at either end are left out by comparing whole
columns. What remains is counted, arrays and frames by one key of bytes for each row, anything else row by row.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError

_BY_BYTES = "biufmMSU"  # kinds of arrays whose elements are equal if their bytes are, but for zeros and NaN
PLAIN = frozenset({int, bool, str, bytes, type(None)})
"""Types of values that are immutable, hashable and equal to themselves."""

Array: TypeAlias = npt.NDArray[Any]


def is_frame(dataset: Any) -> bool:
    """Whether the dataset is a pandas (or alike) data frame, without importing pandas."""
    return hasattr(dataset, "columns") and hasattr(dataset, "itertuples")


def rows_of(dataset: Any) -> Counter[Any]:
    """The dataset as a multiset of hashable rows.

    Raises
    ------
    DatasetError
        For a dataset that is not a collection of rows, such as a scalar.
    """
    if isinstance(dataset, Counter):
        return Counter({_row_key(row): count for row, count in dataset.items()})
    return Counter(map(_row_key, _listed(dataset)))


def is_graph(dataset: Any) -> bool:
    """Whether the dataset is a networkx (or alike) graph, without importing networkx."""
    return hasattr(dataset, "number_of_nodes") and hasattr(dataset, "number_of_edges")


def rows_apart(x: Any, y: Any) -> tuple[int, int]:
    """How many rows are only in x, and how many only in y, as multisets.

    Raises
    ------
    DatasetError
        As of `rows_of`; rows that are one and the same object in both are not looked into.

    Examples
    --------
    >>> rows_apart([1, 2, 2], [2, 3])
    (2, 1)
    """
    try:
        more = _only_in_x(*_in_one_order(as_rows(x), as_rows(y)))
    except DatasetError:
        raise
    except Exception as error:  # whatever a user's rows raise, and what is nested too deeply
        raise DatasetError(
            f"the rows of the datasets cannot be compared ({type(error).__name__}: {error}); use rows of numbers, "
            "texts, tuples or dictionaries."
        ) from error
    only_x = sum(count for count in more.values() if count > 0)
    return only_x, only_x - more.total()


def _only_in_x(x: Any, y: Any) -> Counter[Any]:
    """How many more of each row x has than y; fewer are negative."""
    x, y = without_common_ends(x, y)
    keys = _keys_of_bytes(x, y)
    more, others = (Counter(keys[0]), keys[1]) if keys is not None else (rows_of(x), rows_of(y))
    more.subtract(others)
    return more


def _in_one_order(x: Any, y: Any) -> tuple[Any, Any]:
    """Frames with the same columns in the order of the first."""
    if is_frame(x) and is_frame(y):
        a, b = list(x.columns), list(y.columns)
        if a != b and len({*a}) == len(a) == len(b) and {*a} == {*b}:
            return x, y[a]
        if len(a) != len(b):
            raise DatasetError(f"x has {len(a)} columns and y has {len(b)}; neighbours have the same columns.")
    return x, y


def as_rows(dataset: Any) -> Any:
    """The dataset, with what numpy can read as an array.

    Raises
    ------
    DatasetError
        As of `rows_of`.
    """
    if isinstance(dataset, np.ma.MaskedArray):
        return dataset.tolist()  # with None for what is masked
    if hasattr(dataset, "__array__") and not is_frame(dataset):
        dataset = np.asarray(dataset)
    is_array = isinstance(dataset, np.ndarray) and dataset.ndim >= 1
    is_collection = isinstance(dataset, (Sequence, set, frozenset, Counter)) and not isinstance(dataset, (str, bytes))
    if not (is_array or is_collection or is_frame(dataset)):
        raise DatasetError(
            f"a dataset of type {type(dataset).__name__} has no rows to compare; use a list, an array or a data frame, "
            "or an adjacency of values such as Within or Local (of graphs, EdgeNeighbours or NodeNeighbours).",
            type=type(dataset).__name__,
        )
    return dataset


def without_common_ends(x: Any, y: Any) -> tuple[Any, Any]:
    """Both sets of rows without those at the head and at the tail that are the same in both."""
    head, tail = _common_ends(x, y)
    return _between(x, head, tail), _between(y, head, tail)


def symmetric_difference(a: Counter[Any], b: Counter[Any]) -> Counter[Any]:
    """What is in one of two multisets and not in the other."""
    return (a - b) + (b - a)


def _listed(dataset: Any) -> Iterable[Any]:
    rows = as_rows(dataset)
    if isinstance(rows, np.ndarray):
        return list(rows.tolist())
    named: Iterable[Any] = rows.itertuples(index=False, name=None) if is_frame(rows) else rows
    return named


def _row_key(row: Any) -> Any:
    if isinstance(row, np.ndarray):
        row = row.tolist()
    elif isinstance(row, np.generic):
        row = row.item()
    if isinstance(row, (list, tuple)):
        return tuple(_row_key(part) for part in row)
    if isinstance(row, dict):
        return frozenset((key, _row_key(value)) for key, value in row.items())
    if isinstance(row, (set, frozenset)):
        return frozenset(_row_key(part) for part in row)
    if isinstance(row, (float, complex, Decimal, np.floating, np.complexfloating)) and row != row:
        return "NaN", "row"
    try:
        hash(row)
    except TypeError:
        raise DatasetError(
            f"a row of type {type(row).__name__} cannot be compared by value; use tuples, dicts, sets or scalars.",
            type=type(row).__name__,
        ) from None
    return row


def _common_ends(x: Any, y: Any) -> tuple[int, int]:
    """Rows at the head, and after those at the tail, that are the same in both."""
    columns = _columns(x, y)
    n = min(len(x), len(y))
    head = min((_length_of_head(a[:n], b[:n]) for a, b in columns), default=0)
    rest = n - head
    ends = ((a[len(a) - rest :][::-1], b[len(b) - rest :][::-1]) for a, b in columns)
    return head, min((_length_of_head(*end) for end in ends), default=0)


def _columns(x: Any, y: Any) -> list[tuple[Any, Any]]:
    """Pairs of sequences, as long as the datasets, that say all of them; none where rows are held in different ways.

    They are arrays of one type, of which elements are equal if their bytes are, arrays of pandas of one type, or lists.
    """
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        if x.shape[1:] != y.shape[1:] or 0 in x.shape[1:] or not _is_by_bytes(x.dtype, y.dtype):
            return []
        return [(_flat(x), _flat(y))]
    if _is_frame_of_pandas(x) and _is_frame_of_pandas(y) and len(x.columns) == len(y.columns):
        return [_column_pair(x.iloc[:, i], y.iloc[:, i]) for i in range(len(x.columns))]
    return [(x, y)] if type(x) in (list, tuple) and type(y) in (list, tuple) else []


def _is_frame_of_pandas(rows: Any) -> bool:
    return is_frame(rows) and _is_defined_by_pandas(rows)


def is_of_pandas(value: Any) -> bool:
    """Whether the value is a frame, a column or an index of pandas."""
    return _is_defined_by_pandas(value) and (is_frame(value) or (hasattr(value, "dtype") and hasattr(value, "tolist")))


def parts_of_pandas(value: Any) -> list[Any]:
    """All that makes a frame, a column or an index of pandas, without what it has computed from that."""
    if is_frame(value):
        columns = [parts_of_pandas(value.iloc[:, place]) for place in range(len(value.columns))]
        return [value.columns, value.index, columns, dict(value.attrs)]
    values = (
        np.asarray(value) if isinstance(value.dtype, np.dtype) and value.dtype.kind in "biufcmM" else value.tolist()
    )
    categories = getattr(value.dtype, "categories", None)
    kinds = [type(value).__name__, str(value.dtype), None if categories is None else list(categories)]
    return [*kinds, values, *([list(value.names)] if hasattr(value, "names") else [value.name, value.index])]


def is_extension(column: Any) -> bool:
    """Whether pandas holds the column in an array of its own, of texts or categories, whose elements never change."""
    return hasattr(column, "array") and hasattr(column.array, "equals") and _is_defined_by_pandas(column.dtype)


def _is_defined_by_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _is_by_bytes(one: Any, other: Any) -> bool:
    """Whether values of these types are equal if their bytes are, but for zeros and NaN."""
    return (
        isinstance(one, np.dtype) and one == other and one.kind in _BY_BYTES and (one.kind != "f" or one.itemsize <= 8)
    )


def _column_pair(a: Any, b: Any) -> tuple[Any, Any]:
    if _is_by_bytes(a.dtype, b.dtype):
        return np.asarray(a), np.asarray(b)
    return (a.array, b.array) if is_extension(a) and a.dtype == b.dtype else (a.tolist(), b.tolist())


def _flat(array: Array) -> Array:
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _length_of_head(a: Any, b: Any) -> int:
    """How many first elements are certainly equal."""
    if len(a) == 0:
        return 0
    if isinstance(a, np.ndarray):
        same = (a == b) | ((a != a) & (b != b))
        same = same.all(axis=tuple(range(1, same.ndim)))
    elif hasattr(a, "equals"):
        return _length_of_equal_head(a, b)
    else:
        same = np.fromiter(map(operator.is_, a, b), np.bool_, len(a))
        if not same.all() and set(map(type, a)) | set(map(type, b)) <= PLAIN:
            same = np.fromiter(map(operator.eq, a, b), np.bool_, len(a))
    return len(same) if same.all() else int(np.argmin(same))


def _length_of_equal_head(a: Any, b: Any) -> int:
    """The same of arrays of pandas, by bisection: a comparison of whole arrays takes less than one of elements."""
    if a.equals(b):
        return len(a)
    equal, least = 0, len(a)
    while least - equal > 1:
        middle = (equal + least) // 2
        if a[equal:middle].equals(b[equal:middle]):
            equal = middle
        else:
            least = middle
    return equal


def _between(rows: Any, head: int, tail: int) -> Any:
    if head == tail == 0:
        return rows
    return (rows.iloc if is_frame(rows) else rows)[head : len(rows) - tail]


def _keys_of_bytes(x: Any, y: Any) -> tuple[list[bytes], list[bytes]] | None:
    """Keys that are equal where rows are, of arrays and of frames; None of other datasets."""
    columns = _columns(x, y)
    if not columns or type(x) in (list, tuple):
        return None
    if isinstance(x, np.ndarray):
        ((a, b),) = columns
        return _bytes(_canonical(a)), _bytes(_canonical(b))
    coded = [_coded(*pair) for pair in columns]
    return _bytes(np.column_stack([pair[0] for pair in coded])), _bytes(np.column_stack([pair[1] for pair in coded]))


def _canonical(values: Array) -> Array:
    """Floats with one NaN, and zero without a sign."""
    return np.where(values != values, math.nan, values + 0.0) if values.dtype.kind == "f" else values


def _bytes(matrix: Array) -> list[bytes]:
    matrix = np.ascontiguousarray(matrix)
    whole = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1])))
    keys: list[Any] = whole.ravel().tolist()
    return keys


def _coded(a: Any, b: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each value of a column of x and of y, equal for equal values."""
    if isinstance(a, np.ndarray) and a.dtype.itemsize == 8 and a.dtype.kind in "iufmM":
        return _canonical(a).view(np.int64), _canonical(b).view(np.int64)
    codes: dict[Any, int] = {}
    coded = []
    for column in (a, b):
        values = column if isinstance(column, (list, tuple)) else column.tolist()
        keys = values if set(map(type, values)) <= PLAIN else map(_row_key, values)
        coded.append(np.fromiter((codes.setdefault(key, len(codes)) for key in keys), np.int64, len(values)))
    return coded[0], coded[1]
