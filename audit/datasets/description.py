"""Descriptions of datasets in results: type, size and difference, without contents; or the contents as Python code."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain, groupby, islice
from typing import Any, Final

import numpy as np

from ..errors import DatasetError
from ..events.kinds import column_of, is_column, is_tensor
from ..events.leaves import stated_number
from ..events.named_parts import columns_of_table, is_default, label_text, printed
from ..printing import counted
from .contents import hold_the_same
from .rows import (
    as_numpy,
    columns_by_name,
    is_frame,
    is_frame_of_columns,
    is_graph,
    rows_apart,
    rows_of,
    symmetric_difference,
    tables_of,
)

_FILE: Final = re.compile(r"\.(csv|tsv|txt|json|jsonl|parquet|feather|pkl|npy|npz|xlsx?)(\.gz)?$", re.IGNORECASE)
_LOOKED_AT = 100  # values that are read, so that a description of any dataset takes no time
_MOST_ROWS = 60  # of a data frame, as pandas prints


def summarise(dataset: Any) -> str:
    """Return one line with the type and size of a dataset, without its contents."""
    if isinstance(dataset, np.ndarray):
        return f"array of shape {dataset.shape}, {dataset.dtype}"
    if dataset is None or isinstance(dataset, (bool, int, float, np.generic)):
        return f"a single {type(dataset).__name__}"
    if is_frame(dataset) or is_frame_of_columns(dataset):
        return f"data frame of {counted(len(dataset), 'row')}, {counted(len(dataset.columns), 'column')}"
    if isinstance(dataset, dict) and (tables := tables_of(dataset, dataset)) and None not in tables:
        rows = sum(len(table) for table, _ in tables.values())
        return f"dictionary of {counted(len(tables), 'table')}, {counted(rows, 'row')}"
    columns = columns_by_name(dataset)
    if columns is not None:
        name = "dictionary" if isinstance(dataset, dict) else type(dataset).__name__
        return f"{name} of {counted(len(columns), 'column')}, {counted(len(next(iter(columns.values()))), 'row')}"
    if is_tensor(dataset) and hasattr(dataset, "shape"):
        return f"{type(dataset).__name__} of shape {tuple(dataset.shape)}, {dataset.dtype}"
    if is_graph(dataset):
        return f"graph of {dataset.number_of_nodes()} nodes, {dataset.number_of_edges()} edges"
    name = type(dataset).__name__
    try:
        return f"{name} of {len(dataset)}"
    except Exception:  # not a collection, or a collection without a length, such as a sparse matrix
        return name


def contents_in_words(dataset: Any) -> str:
    """Return the contents of a dataset: of a data frame as CSV with names on top, of others as Python on one line."""
    if not (is_frame(dataset) or is_frame_of_columns(dataset)):
        values = column_of(dataset).tolist() if is_column(dataset) else dataset
        return as_code(values) or " ".join(printed(values).split())
    first, index = dataset[:_MOST_ROWS], getattr(dataset, "index", None)
    columns = [(label_text(key), column_of(column).tolist()) for key, column in columns_of_table(first)]
    if index is not None and not is_default(index):
        columns.insert(0, (label_text(index.name or ""), first.index.tolist()))
    table = io.StringIO(newline="")
    lines = csv.writer(table, lineterminator="\n")
    lines.writerow(name for name, _ in columns)
    for row in zip(*(values for _, values in columns), strict=True):
        lines.writerow(value if isinstance(value, str) else printed(value) for value in row)
    more = len(dataset) - len(first)
    return table.getvalue().rstrip("\n") + f"\n… {counted(more, 'more row')}" * (more > 0)


def as_code(dataset: Any) -> str | None:
    """Return a Python expression that makes the dataset, or None if none does; repeated values are products.

    The expression assumes the usual abbreviations of numpy, pandas and networkx.
    """
    try:
        return _code(dataset)
    except Exception:  # no literal, or an object whose methods raise
        return None


def _code(value: Any) -> str:
    """The expression; raises a `TypeError` without one."""
    kind = type(value)
    if kind is float:
        return repr(value) if abs(value) < float("inf") else f"float({str(value)!r})"
    if kind in (int, bool, str, bytes, type(None)):
        return repr(value)
    if isinstance(value, np.generic):
        return _code(value.item())
    if kind in (list, tuple):
        return _sequence([*map(_code, value)], "[]" if kind is list else "()")
    if kind in (set, frozenset):
        return f"{kind.__name__}({_code(sorted(value))})"
    if kind is dict:
        return f"{{{', '.join(f'{_code(key)}: {_code(part)}' for key, part in value.items())}}}"
    if kind is np.ndarray and value.dtype.kind in "biufSU":
        first = value.flat[0] if value.size else value.dtype.type()
        is_equal = value.tobytes() == np.full_like(value, first).tobytes()
        is_full = is_equal and (value.size > 1 or (value.ndim > 1 and value.size == 0))
        filled = first.item() if is_full else value.tolist()
        shape = f"{value.shape[0] if value.ndim == 1 else value.shape}, " if is_full else ""
        name = value.dtype.str if value.dtype.kind in "SU" else value.dtype.name
        dtype = "" if value.dtype == np.array(filled).dtype else f", dtype={name!r}"
        return f"np.{'full' if is_full else 'array'}({shape}{_code(filled)}{dtype})"
    if is_frame(value) and kind.__module__.split(".")[0] == "pandas":
        return f"pd.DataFrame({_code({name: value[name].tolist() for name in value.columns})})"
    if is_graph(value) and kind.__name__ in ("Graph", "DiGraph"):
        order = [*value]
        ends = {node: [end for end in order[0 if value.is_directed() else place :] if end in value[node]]
                for place, node in enumerate(order)}  # fmt: skip
        if not any(data for *_, data in (*value.nodes(data=True), *value.edges(data=True))):
            return f"nx.{kind.__name__}({_code(ends)})"
    raise TypeError(kind)


def _sequence(codes: list[str], brackets: str) -> str:
    """The expression of a list or tuple of these values."""

    def listed(*values: str) -> str:
        return f"{brackets[0]}{', '.join(values)}{',' * (brackets == '()' and len(values) == 1)}{brackets[1]}"

    runs = [[*equal] for _, equal in groupby(codes)]
    parts = []
    for is_long, equal in groupby(runs, lambda run: len(run) > 3):  # from four equal values on, a product is shorter
        found = [*equal]
        parts += [f"{listed(run[0])} * {len(run)}" for run in found] if is_long else [listed(*chain(*found))]
    return " + ".join(parts) or brackets


def is_empty(dataset: Any) -> bool:
    """Return whether the dataset is an empty collection, or a table without rows."""
    try:
        return len(next(iter((columns_by_name(dataset) or {0: dataset}).values()))) == 0
    except Exception:  # a user's __len__ may raise anything
        return False


def difference(x: Any, y: Any, tables: bool | None = None) -> str:
    """Describe how many rows, entries, nodes or edges differ between two datasets, without their values."""
    return difference_and_rows(x, y, tables)[0]


def difference_and_rows(x: Any, y: Any, tables: bool | None = None) -> tuple[str, int | None]:
    """Describe the difference, and count the rows to add, remove or replace; None if the datasets have no rows."""
    if is_graph(x) and is_graph(y):
        try:
            parts = ((nodes_of(x), nodes_of(y)), (edges_of(x), edges_of(y)))
            nodes, edges = (symmetric_difference(*part).total() for part in parts)
        except DatasetError:
            return "the attributes of the graphs cannot be compared", None
        return f"{counted(nodes, 'node')} and {counted(edges, 'edge')} differ", None
    try:
        if (pairs := tables_of(x, y, tables)) is None:
            return f"x has the tables {', '.join(map(label_text, x))}; y has {', '.join(map(label_text, y))}", None
        apart = {name: rows_apart(*pair) for name, pair in pairs.items()}
    except DatasetError:
        return entry_difference(x, y), None
    differing = {name: only for name, only in apart.items() if any(only)} or {None: (0, 0)}
    words = (
        f"{'' if name is None else f'{label_text(name)}: '}{counted(only_x, 'row')} only in x, {only_y} only in y"
        for name, (only_x, only_y) in differing.items()
    )
    return "; ".join(words), sum(map(max, apart.values()))


def entry_difference(x: Any, y: Any) -> str:
    """Describe the difference between two numbers or vectors of equal length."""
    try:
        a, b = (np.asarray(as_numpy(side), dtype=np.float64) for side in (x, y))
    except Exception:  # the values are not numbers, or exceed every float
        if type(x) is not type(y):
            return "the types differ"
        if type(x) is dict:
            differing = sum(key not in y or not hold_the_same(value, y[key]) for key, value in x.items())
            differing += sum(key not in x for key in y)
            return f"{differing} of {counted(len({*x, *y}), 'entry')} differ"
        return "nothing differs" if hold_the_same(x, y) else "the values differ"
    if a.shape != b.shape:
        return f"the shapes differ, {a.shape} and {b.shape}"
    moved = np.abs(a - b)
    largest = f"{moved.max():.4g}" if moved.size else "0"
    if a.ndim == 0:
        return f"the values differ by {largest}"
    return f"{np.count_nonzero(moved)} of {counted(a.size, 'entry')} differ, by {largest} at most"


def nodes_of(graph: Any) -> Counter[Any]:
    """Return the nodes of a graph with their attributes."""
    return rows_of(list(graph.nodes(data=True)))


def edges_of(graph: Any) -> Counter[Any]:
    """Return the edges of a graph as a multiset of (ends, attributes); the ends are a set if undirected."""
    ends = tuple if graph.is_directed() else frozenset
    return rows_of([(ends((u, v)), data) for u, v, data in graph.edges(data=True)])


def notes_on_texts(x: Any, y: Any) -> tuple[str, ...]:
    """Return a note if the datasets are texts of numbers, which may come from a JSON file or a command line."""
    if isinstance(x, str) and isinstance(y, str) and _FILE.search(x) and _FILE.search(y):
        return (f"the datasets are the texts {x!r:.60} and {y!r:.60}, not the contents of files; read the files first",)
    listed = [[dataset] if isinstance(dataset, str) else dataset for dataset in (x, y) if not is_empty(dataset)]
    are_vectors = all(
        isinstance(each, (list, tuple)) or (isinstance(each, np.ndarray) and each.ndim == 1) for each in listed
    )
    found = [number_text(each) for each in listed if are_vectors]
    if not found or None in found:
        return ()
    return (f"the datasets hold texts of numbers, such as {found[0]!r}; pass numbers if the values are meant",)


def number_text(values: Iterable[Any]) -> str | None:
    """Return the first value if all of the first values are texts of finite numbers; None if not."""
    found = list(islice(values, _LOOKED_AT))
    are_texts = all(isinstance(value, str) and stated_number(value) is not None for value in found)
    return found[0] if found and are_texts else None


def refuse_iterator(dataset: Any, name: str) -> None:
    """Raise a `DatasetError` for an iterator."""
    if hasattr(type(dataset), "__next__"):
        raise DatasetError(
            f"{name} is an iterator ({type(dataset).__name__}), which the first run would use up; pass a list.",
            type=type(dataset).__name__,
        )
