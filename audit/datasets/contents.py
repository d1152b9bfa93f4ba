"""What a dataset holds, in a form that can be compared later.

Where datasets cannot be compared nothing is said: whatever is doubtful counts as different when x is compared with y,
and as unchanged when a dataset is compared with itself.
"""

from __future__ import annotations

import array
import enum
import hashlib
from collections import Counter, deque
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .rows import PLAIN, is_extension, is_frame, is_graph

_DEEPEST = 60  # objects within objects that are looked into
_IDENTITY: Any = object.__eq__
_WITH_A_VALUE = (int, float, complex, str, bytes, Decimal, Fraction, date, time, timedelta)  # beside their attributes
_NUMBERS_AND_PLAIN = PLAIN | {float}


class _Purpose(NamedTuple):
    """What a dataset is read for."""

    whole: bool
    """With private attributes, in which objects keep what they have computed, and the order of dictionaries."""
    copies: bool
    """So that what was read stays when the dataset changes."""


_EQUALITY = _Purpose(whole=True, copies=False)
_TO_KEEP = _Purpose(whole=False, copies=True)
_NOW = _Purpose(whole=False, copies=False)


def hold_the_same(x: Any, y: Any) -> bool:
    """Whether two datasets certainly hold the same, private attributes and the order of dictionaries included."""
    return _are_same(_read(x, _EQUALITY), _read(y, _EQUALITY), in_doubt=False)


class Kept:
    """What a dataset held at one moment."""

    __slots__ = ("content", "dataset")

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.content = dataset, _read(dataset, _TO_KEEP)

    def has_changed(self) -> bool:
        """Whether the dataset certainly holds something else by now."""
        return not _are_same(self.content, _read(self.dataset, _NOW), in_doubt=True)


def _are_same(a: Any, b: Any, *, in_doubt: bool) -> bool:
    if a is None or b is None:
        return in_doubt
    try:
        return bool(a == b)
    except Exception:  # whatever a user's __eq__ raises
        return in_doubt


def _read(dataset: Any, purpose: _Purpose) -> Any:
    """What a dataset holds, in a form that can be compared; None where that cannot be told."""
    try:
        return _content(dataset, purpose, 0)
    except Exception:  # whatever a user's attributes raise, and what contains itself
        return None


def _content(value: Any, purpose: _Purpose, depth: int) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is float:  # NaN is as it was
        return kind, value.hex()
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, _OfPandas):
        return value
    if depth > _DEEPEST or isinstance(value, (type, enum.Enum)):
        return _Itself(value)
    for read in (_of_array, _of_collection):
        content = read(value, purpose, depth)
        if content is not None:
            return kind, content, _of_attributes(value, purpose, depth)
    table = _of_table(value, purpose, depth)
    return _of_object(value, purpose, depth) if table is None else (kind, table)


def _of_array(value: Any, purpose: _Purpose, depth: int) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return tuple(_of_array(part, purpose, depth) for part in (np.asarray(value.data), np.ma.getmaskarray(value)))
    if not isinstance(value, np.ndarray):
        return None
    if value.dtype.hasobject:
        return value.shape, value.dtype.str, _of_items(value.ravel().tolist(), purpose, depth)
    return value.shape, value.dtype.str, _digest(value)


def _digest(values: Any) -> bytes:
    """Of the bytes of an array; processors have instructions for this one."""
    parts = [*without_padding(values)]
    digests = [hashlib.sha256(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data).digest() for part in parts]
    return digests[0] if len(digests) == 1 else b"".join(digests)


def without_padding(values: Any) -> Iterator[Any]:
    """Arrays with the same values, every byte of which counts; not so between fields, and in long doubles."""
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


def _of_collection(value: Any, purpose: _Purpose, depth: int) -> Any:
    if isinstance(value, (list, tuple, deque, bytearray, array.array)):
        return _of_items(list(value), purpose, depth)
    if isinstance(value, dict):
        order = _of_items(list(value), purpose, depth) if purpose.whole else None
        return order, {key: _content(held, purpose, depth + 1) for key, held in value.items()}
    if isinstance(value, (set, frozenset)):
        return frozenset(value), Counter(map(type, value))
    return None


def _of_items(items: list[Any], purpose: _Purpose, depth: int) -> Any:
    kinds = set(map(type, items))
    if kinds == {float}:
        return len(items), _digest(np.array(items))
    if kinds <= PLAIN:
        return tuple(items), tuple(map(type, items)) if len(kinds) > 1 else kinds
    if kinds <= _NUMBERS_AND_PLAIN:
        numbers = [item for item in items if type(item) is float]
        others = tuple(item for item in items if type(item) is not float)
        return tuple(map(type, items)), _digest(np.array(numbers)), others
    rows = _of_rows(items, kinds, purpose, depth)
    return [_content(item, purpose, depth + 1) for item in items] if rows is None else rows


def _of_rows(rows: list[Any], kinds: set[type], purpose: _Purpose, depth: int) -> Any:
    """Tuples, lists, or dictionaries with the same keys: all of what they hold at once; None of other rows."""
    if depth > _DEEPEST:
        return None
    if kinds in ({tuple}, {list}):
        return kinds, tuple(map(len, rows)), _of_items(list(chain.from_iterable(rows)), purpose, depth + 1)
    if kinds == {dict}:
        keys = dict.fromkeys(map(tuple, rows))
        first = next(iter(keys))
        if first and len({frozenset(each) for each in keys}) == 1 and all(type(key) is str for key in first):
            order = (tuple(keys) if len(keys) == 1 else tuple(map(tuple, rows))) if purpose.whole else None
            held = map(itemgetter(*sorted(first)), rows)
            values = list(held) if len(first) == 1 else list(chain.from_iterable(held))
            return order, sorted(first), len(rows), _of_items(values, purpose, depth + 1)
    return None


def _of_table(value: Any, purpose: _Purpose, depth: int) -> Any:
    """Frames, columns and graphs, as they show themselves: inside they move things about."""
    if is_graph(value):
        edges = value.edges(data=True, keys=True) if value.is_multigraph() else value.edges(data=True)
        parts = [list(value.nodes(data=True)), list(edges), getattr(value, "graph", None)]
    elif is_frame(value) and hasattr(value, "iloc"):
        columns = [_of_column(value.iloc[:, place], purpose) for place in range(len(value.columns))]
        parts = [list(value.columns), _of_index(value.index), columns, dict(getattr(value, "attrs", {}))]
    elif hasattr(value, "__array__"):
        index = getattr(value, "index", None)
        parts = [_of_column(value, purpose), None if index is None or callable(index) else _of_index(index)]
        parts.append(_Itself(value) if purpose.whole and not hasattr(value, "iloc") else getattr(value, "name", None))
    else:
        return None
    return [_content(part, purpose, depth + 1) for part in parts]


def _of_column(column: Any, purpose: _Purpose) -> Any:
    if not is_extension(column):
        return np.asarray(column)
    return _OfPandas(column.array.copy() if purpose.copies else column.array)


def _of_index(index: Any) -> Any:
    return _OfPandas(index) if hasattr(index, "equals") else np.asarray(index)  # those of pandas never change


def _of_object(value: Any, purpose: _Purpose, depth: int) -> Any:
    """An object by its attributes; one that shows none by its own equality, or by being itself."""
    kind = type(value)
    held = None if callable(value) else _of_attributes(value, purpose, depth)
    if held is None:
        return _Itself(value) if callable(value) or kind.__eq__ is _IDENTITY else (kind, value)
    return kind, value if isinstance(value, _WITH_A_VALUE) else None, held


def _of_attributes(value: Any, purpose: _Purpose, depth: int) -> Any:
    """The attributes that an object has of its own, private ones with the whole alone; None where it has none."""
    slots = (owner.__dict__.get("__slots__", ()) for owner in type(value).__mro__)
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    held = {name: getattr(value, name) for name in names if hasattr(value, name) and not name.startswith("__")}
    held |= dict(getattr(value, "__dict__", {}))
    if not held:
        return None
    shown = {name: part for name, part in held.items() if purpose.whole or not name.startswith("_")}
    return _Attributes({name: _content(part, purpose, depth + 1) for name, part in shown.items()}, purpose)


class _Itself:
    """Equal to what holds the very same object."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.held is other.held

    __hash__ = None  # type: ignore[assignment]


class _OfPandas:
    """Equal to what holds an array or an index of the same type with the same values, as pandas compares them."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _OfPandas) or type(self.held) is not type(other.held):
            return False
        return _kind_of(self.held) == _kind_of(other.held) and bool(self.held.equals(other.held))

    __hash__ = None  # type: ignore[assignment]


def _kind_of(held: Any) -> Any:
    """The type of an array or index of pandas, with what its own equality leaves out."""
    categories = getattr(held.dtype, "categories", None)
    return held.dtype, None if categories is None else list(categories), getattr(held, "names", None)


class _Attributes:
    """Equal to what has equal attributes; unless they are the whole, it may have more, such as computed ones."""

    __slots__ = ("held", "is_whole")

    def __init__(self, held: dict[str, Any], purpose: _Purpose) -> None:
        self.held, self.is_whole = held, purpose.whole

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Attributes):
            return False
        if self.is_whole:
            return self.held == other.held
        return all(name in other.held and held == other.held[name] for name, held in self.held.items())

    __hash__ = None  # type: ignore[assignment]
