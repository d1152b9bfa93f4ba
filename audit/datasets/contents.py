"""Contents of a dataset in a form that can be compared later.

In doubt, no difference is asserted: contents that cannot be compared count as different when x is compared with y, and
as unchanged when a dataset is compared with itself.
"""

from __future__ import annotations

import array
import enum
import hashlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from ..events.named_parts import column_of, is_tensor, marks_of_tensor, numpy_of
from .rows import PLAIN, collected, columns_by_name, is_frame_of_columns, is_graph, is_of_pandas, parts_of_pandas

_DEEPEST = 60  # levels of nested objects that are read
_IDENTITY: Any = object.__eq__
_WITH_A_VALUE = (int, float, complex, str, bytes, Decimal, Fraction, date, time, timedelta)  # plus any attributes
_OF_PANDAS = frozenset({"NAType", "NaTType", "Timestamp", "Timedelta"})  # immutable items of its columns
_NUMBERS_AND_PLAIN = PLAIN | {float}


def hold_the_same(x: Any, y: Any) -> bool:
    """Return whether two datasets certainly agree, including private attributes and the order of dictionaries."""
    return _are_same(_read(x, whole=True), _read(y, whole=True), in_doubt=False)


class Kept:
    """Contents of a dataset at one moment."""

    __slots__ = ("content", "dataset")

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.content = dataset, _read(dataset, whole=False)

    def has_changed(self) -> bool:
        """Return whether the contents of the dataset have certainly changed."""
        return not _are_same(self.content, _read(self.dataset, whole=False), in_doubt=True)


def _are_same(a: Any, b: Any, *, in_doubt: bool) -> bool:
    if a is None or b is None:
        return in_doubt
    try:
        return bool(a == b)
    except Exception:  # a user's __eq__ may raise anything
        return in_doubt


def _read(dataset: Any, *, whole: bool) -> Any:
    """Return the contents of a dataset in a form that can be compared, or None if they cannot be read.

    The `whole` includes the order of dictionaries, and private attributes, in which objects cache results.
    """
    try:
        return _content(dataset, whole, 0)
    except Exception:  # a user's attributes may raise anything, and a dataset may contain itself
        return None


def _content(value: Any, whole: bool, depth: int) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is float:  # the hexadecimal text of NaN equals itself
        return kind, value.hex()
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if depth > _DEEPEST or isinstance(value, (type, enum.Enum)):
        return _Itself(value)
    for read in (_of_array, _of_collection):
        content = read(value, whole, depth)
        if content is not None:
            return kind, content, _of_attributes(value, whole, depth)
    table = _of_table(collected(value), whole, depth)
    return _of_object(value, whole, depth) if table is None else (kind, table)


def _of_array(value: Any, whole: bool, depth: int) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return tuple(_of_array(part, whole, depth) for part in (np.asarray(value.data), np.ma.getmaskarray(value)))
    if not isinstance(value, np.ndarray):
        return None
    if value.dtype.hasobject:
        return value.shape, value.dtype.str, _of_items(value.ravel().tolist(), whole, depth)
    return value.shape, value.dtype.str, _digest(value)


def _digest(values: Any) -> bytes:
    """Hash the bytes of an array with SHA-256, which processors support in hardware."""
    parts = [*without_padding(values)]
    digests = [hashlib.sha256(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data).digest() for part in parts]
    return digests[0] if len(digests) == 1 else b"".join(digests)


def without_padding(values: Any) -> Iterator[Any]:
    """Yield arrays with the same values but without the padding between fields and in long doubles."""
    if values.dtype.names is not None:
        for name in values.dtype.names:
            yield from without_padding(values[name])
    elif values.dtype.kind in "fc" and values.dtype.itemsize > (8 if values.dtype.kind == "f" else 16):
        for part in (values.real, values.imag) if values.dtype.kind == "c" else (values,):
            with np.errstate(all="ignore"):
                head = part.astype(np.float64)
                yield from (head, (part - head).astype(np.float64))
    else:
        yield values


def _of_collection(value: Any, whole: bool, depth: int) -> Any:
    if isinstance(value, (list, tuple, deque, bytearray, array.array)):
        return _of_items(list(value), whole, depth)
    if isinstance(value, dict):
        order = _of_items(list(value), whole, depth) if whole else None
        return order, {key: _content(held, whole, depth + 1) for key, held in value.items()}
    if isinstance(value, (set, frozenset)):
        return frozenset(value), Counter(map(type, value))
    return None


def _of_items(items: list[Any], whole: bool, depth: int) -> Any:
    kinds = set(map(type, items))
    if kinds == {float}:
        return len(items), _digest(np.array(items))
    if all(kind in PLAIN or kind.__name__ in _OF_PANDAS for kind in kinds):
        return tuple(items), tuple(map(type, items)) if len(kinds) > 1 else kinds
    if kinds <= _NUMBERS_AND_PLAIN:
        numbers = [item for item in items if type(item) is float]
        others = tuple(item for item in items if type(item) is not float)
        return tuple(map(type, items)), _digest(np.array(numbers)), others
    rows = _of_rows(items, kinds, whole, depth)
    return [_content(item, whole, depth + 1) for item in items] if rows is None else rows


def _of_rows(rows: list[Any], kinds: set[type], whole: bool, depth: int) -> Any:
    """Read tuples, lists, or dictionaries with the same keys as one flat sequence; None for other rows."""
    if depth > _DEEPEST:
        return None
    if kinds in ({tuple}, {list}):
        return kinds, tuple(map(len, rows)), _of_items(list(chain.from_iterable(rows)), whole, depth + 1)
    if kinds == {dict}:
        keys = dict.fromkeys(map(tuple, rows))
        first = next(iter(keys))
        if first and len({frozenset(each) for each in keys}) == 1 and all(type(key) is str for key in first):
            order = (tuple(keys) if len(keys) == 1 else tuple(map(tuple, rows))) if whole else None
            held = map(itemgetter(*sorted(first)), rows)
            values = list(held) if len(first) == 1 else list(chain.from_iterable(held))
            return order, sorted(first), len(rows), _of_items(values, whole, depth + 1)
    return None


def _of_table(value: Any, whole: bool, depth: int) -> Any:
    """Read frames, columns and graphs through their public interface, because their internals may be rearranged."""
    if is_graph(value):
        edges = value.edges(data=True, keys=True) if value.is_multigraph() else value.edges(data=True)
        parts = [list(value.nodes(data=True)), list(edges), getattr(value, "graph", None)]
    elif hasattr(value, "iloc") or (is_of_pandas(value) and hasattr(value, "names")):
        parts = parts_of_pandas(value)
    elif is_frame_of_columns(value):
        parts = [part for column in (columns_by_name(value) or {}).values() for part in _of_polars(column)]
    elif hasattr(value, "null_count"):
        parts = _of_polars(value)
    elif is_tensor(value):
        parts = [numpy_of(value), *marks_of_tensor(value)]
    elif hasattr(value, "__array__"):
        parts = [np.asarray(value), _Itself(value) if whole else getattr(value, "name", None)]
    else:
        return None
    return [_content(part, whole, depth + 1) for part in parts]


def _of_polars(column: Any) -> list[Any]:
    return [column.name, str(column.dtype), column_of(column)]


def _of_object(value: Any, whole: bool, depth: int) -> Any:
    """Read an object by its attributes; an object without attributes by its equality or its identity."""
    kind = type(value)
    held = None if callable(value) else _of_attributes(value, whole, depth)
    if held is None:
        return _Itself(value) if callable(value) or kind.__eq__ is _IDENTITY else (kind, value)
    return kind, value if isinstance(value, _WITH_A_VALUE) else None, held


def _of_attributes(value: Any, whole: bool, depth: int) -> Any:
    """Read the instance attributes of an object, private attributes only if `whole`; None if it has no attributes."""
    slots = (owner.__dict__.get("__slots__", ()) for owner in type(value).__mro__)
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    held = {name: getattr(value, name) for name in names if hasattr(value, name) and not name.startswith("__")}
    held |= dict(getattr(value, "__dict__", {}))
    if not held:
        return None
    shown = {name: part for name, part in held.items() if whole or not name.startswith("_")}
    return _Attributes({name: _content(part, whole, depth + 1) for name, part in shown.items()}, whole)


@dataclass(slots=True, eq=False)
class _Itself:
    """Equal to a holder of the same object."""

    held: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.held is other.held


@dataclass(slots=True, eq=False)
class _Attributes:
    """Equal to a holder of equal attributes; unless `is_whole`, the other may have more, such as cached results."""

    held: dict[str, Any]
    is_whole: bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Attributes):
            return False
        if self.is_whole:
            return self.held == other.held
        return all(name in other.held and held == other.held[name] for name, held in self.held.items())
