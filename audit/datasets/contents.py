"""Contents of any value, in a form that can be compared later: of datasets here, of outputs in `replay`.

A value is read as its type, what it holds, and its attributes; what becomes of numbers, and of objects that nothing can
be read of, is for a subclass of `Reader` to say. Of datasets, no difference is asserted in doubt: contents that cannot
be compared count as different when x is compared with y, and as unchanged when a dataset is compared with itself.
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
from typing import Any, ClassVar

import numpy as np

from ..events.named_parts import column_of, is_tensor, marks_of_tensor, numpy_of
from .columns import collected, columns_by_name, is_frame_of_columns
from .rows import PLAIN, is_extension, is_frame, is_graph, is_of_pandas

_DEEPEST = 60  # levels of nested objects that are read
_EXACT = (date, time, timedelta, Decimal, Fraction, np.generic)  # of which the repr shows all
_SINGLE = PLAIN | {float}
_IDENTITY: Any = object.__eq__
_BARE = _SINGLE | {complex, list, tuple, dict, set, frozenset, np.ndarray}  # types whose values have no attributes


class Reader:
    """Reads a value as a form: nested tuples that are equal for equal values, with texts, types, labels and shapes."""

    __slots__ = ()
    dictionaries: ClassVar[type[Any]] = dict
    apart: ClassVar[frozenset[type[Any]]] = frozenset({float})
    """Types of numbers that are not read as they are."""
    is_ordered: bool = True
    """Whether the order of dictionaries is read."""

    def number(self, number: Any) -> Any:
        """Return what stands in the form for a number, beside its type; real if it is not complex."""
        raise NotImplementedError

    def numbers(self, numbers: list[Any]) -> Any:
        """Return what stands for several numbers of the types in `apart`."""
        raise NotImplementedError

    def array(self, values: Any) -> Any:
        """Return what stands for the values of an array without fields and objects, beside its type and shape."""
        raise NotImplementedError

    def itself(self, value: Any) -> Any:
        """Return what stands for an object of which nothing can be read."""
        return _Itself(value)

    def object(self, value: Any) -> Any:
        """Return what stands for an object of an unknown class, beside its attributes."""
        raise NotImplementedError

    def attributes(self, value: Any, depth: int) -> Any:
        """Return the form of the attributes of an object, or None."""
        return {name: self.form(part, depth) for name, part in held_by(value).items()} or None

    def label(self, label: Any, depth: int) -> Any:
        """Return the form of a name or a place, with the numbers in it."""
        return self.form(label, depth)

    def cells(self, column: Any, depth: int) -> Any:
        """Return the form of the values of a column of a frame, which may be an array of pandas or a list."""
        return self.form(np.asarray(column) if is_of_pandas(column) else column, depth)

    def form(self, value: Any, depth: int = 0) -> Any:
        """Return the form of a value."""
        kind = type(value)
        if kind in self.apart:
            return kind, self.number(value)
        if kind in PLAIN:
            return kind, value
        if depth > _DEEPEST or isinstance(value, (type, enum.Enum)):
            return self.itself(value)
        depth += 1
        content = self._of_single(value) or self._of_collection(value, depth)
        if kind in _BARE:
            return kind, content
        if content is None:
            table = self._of_table(collected(value), depth)
            if table is not None:
                return kind, table
            content = self.object(value)
        return kind, content, self.attributes(value, depth)

    def _of_single(self, value: Any) -> Any:
        if isinstance(value, (bool, np.bool_)):
            return (bool(value),)
        if isinstance(value, (int, float, np.integer, np.floating)):
            return (self.number(value),)
        if isinstance(value, (complex, np.complexfloating)):
            return self.number(value.real), self.number(value.imag)
        if isinstance(value, (str, bytes)):
            return (value,)
        # Of a time with a zone, or a number with zeros at the end, the equality compares less than the text shows.
        return (repr(value),) if isinstance(value, _EXACT) else None

    def _of_array(self, value: Any, depth: int) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            parts = (np.ma.getmaskarray(value), np.asarray(value.data))
            return [self._of_array(part, depth) for part in parts], repr(value.fill_value)
        if value.dtype.names is not None:
            return value.shape, [(name, self._of_array(value[name], depth)) for name in value.dtype.names]
        if value.dtype.hasobject:
            return value.shape, self._of_items(value.reshape(-1).tolist(), depth)
        return value.shape, value.dtype, self.array(value)

    def _of_collection(self, value: Any, depth: int) -> Any:
        if isinstance(value, np.ndarray):
            return self._of_array(value, depth)
        if isinstance(value, (list, tuple, deque, bytearray, array.array)):
            return self._of_items(list(value), depth), getattr(value, "maxlen", None)
        if isinstance(value, self.dictionaries):
            factory = getattr(getattr(value, "default_factory", None), "__qualname__", None)
            if not self.is_ordered:
                return {key: self.form(value[key], depth) for key in value}, factory
            return self.label(list(value), depth), self._of_items([value[key] for key in value], depth), factory
        if isinstance(value, (set, frozenset)):
            zeros = frozenset(repr(each) for each in value if isinstance(each, (float, np.floating)) and each == 0.0)
            return frozenset(value), Counter(map(type, value)), zeros
        return None

    def _of_items(self, items: list[Any], depth: int) -> Any:
        kinds = set(map(type, items))
        if kinds <= _SINGLE:  # read together, which is faster
            numbers, others = items, list[Any]()
            if not kinds <= self.apart:
                numbers = [item for item in items if type(item) in self.apart] if kinds & self.apart else []
                others = [item for item in items if type(item) not in self.apart] if numbers else items
            return kinds if len(kinds) <= 1 else tuple(map(type, items)), len(items), self.numbers(numbers), others
        rows = self._of_rows(items, kinds, depth + 1) if depth < _DEEPEST else None
        return [self.form(item, depth) for item in items] if rows is None else rows

    def _of_rows(self, rows: list[Any], kinds: set[type], depth: int) -> Any:
        """Read tuples, lists, or dictionaries with the same keys as one flat sequence; None for other rows."""
        if kinds in ({tuple}, {list}):
            return kinds, tuple(map(len, rows)), self._of_items(list(chain.from_iterable(rows)), depth)
        if kinds == {dict}:
            keys = dict.fromkeys(map(tuple, rows))
            first = next(iter(keys))
            if first and len({frozenset(each) for each in keys}) == 1 and all(type(key) is str for key in first):
                order = (tuple(keys) if len(keys) == 1 else tuple(map(tuple, rows))) if self.is_ordered else None
                held = map(itemgetter(*sorted(first)), rows)
                values = list(held) if len(first) == 1 else list(chain.from_iterable(held))
                return order, sorted(first), len(rows), self._of_items(values, depth)
        return None

    def _of_table(self, value: Any, depth: int) -> Any:
        parts = table_parts(value)
        if parts is not None:
            labels, columns = parts
        elif hasattr(value, "__array__"):
            labels, columns = [getattr(value, "name", None)], [(None, np.asarray(value))]
        else:
            return None
        # An array of another library may hold more than its values.
        rest = self.itself(value) if parts is None and self.is_ordered else None
        named = [_OfPandas(each) if is_of_pandas(each) else self.label(each, depth) for each in labels]
        return named, [(kind, self.cells(values, depth)) for kind, values in columns], rest


def table_parts(value: Any) -> tuple[list[Any], list[tuple[Any, Any]]] | None:
    """Return the labels of a frame, column, index, tensor or graph, and its columns, each with its type, else None.

    They are read through the public interface, because internals may be rearranged.
    """
    if is_graph(value):
        edges = value.edges(data=True, keys=True) if value.is_multigraph() else value.edges(data=True)
        return [], [(None, [list(value.nodes(data=True)), list(edges), getattr(value, "graph", None)])]
    if is_frame(value) and hasattr(value, "iloc"):
        columns = [value.iloc[:, place] for place in range(len(value.columns))]
        return [value.columns, value.index, dict(value.attrs)], [(_kind_of(column), column) for column in columns]
    if is_frame_of_columns(value):
        columns = list((columns_by_name(value) or {}).values())
        return [list(value.columns)], [(_kind_of(column), column_of(column)) for column in columns]
    if hasattr(value, "null_count"):
        return [value.name], [(_kind_of(value), column_of(value))]
    if is_tensor(value):
        return [*marks_of_tensor(value)], [(None, numpy_of(value))]
    if is_of_pandas(value):
        index = [] if hasattr(value, "names") else [value.index, dict(getattr(value, "attrs", {}))]
        return [value.name, *index], [(_kind_of(value), value)]
    return None


def _kind_of(held: Any) -> tuple[Any, ...]:
    """Return the type of the values of a column or an index, and what else `equals` of pandas ignores."""
    categories, names = getattr(held.dtype, "categories", None), getattr(held, "names", None)
    return repr(held.dtype), None if categories is None else list(categories), None if names is None else list(names)


@dataclass(frozen=True, slots=True)
class _OfDataset(Reader):
    """Reads a dataset; numbers are hashed, so that a later change of the dataset does not change what was read.

    Private attributes, in which objects cache results, are read only with the order of dictionaries.
    """

    is_ordered: bool
    is_copied: bool = False  # whether columns of pandas are copied

    def number(self, number: Any) -> Any:
        return number.tobytes() if isinstance(number, np.generic) else number.hex() if type(number) is float else number

    def numbers(self, numbers: list[Any]) -> Any:
        return self.array(np.array(numbers))

    def array(self, values: Any) -> Any:
        # Processors have instructions for SHA-256.
        parts = (np.ascontiguousarray(part).reshape(-1).view(np.uint8).data for part in without_padding(values))
        return [hashlib.sha256(part).digest() for part in parts]

    def object(self, value: Any) -> Any:
        if callable(value):
            return _Itself(value)
        return None if held_by(value) else _Itself(value) if type(value).__eq__ is _IDENTITY else value

    def attributes(self, value: Any, depth: int) -> Any:
        if callable(value):
            return None
        held = {
            name: self.form(part, depth)
            for name, part in held_by(value).items()
            if self.is_ordered or not name.startswith("_")
        }
        return held if self.is_ordered else _Attributes(held)

    def cells(self, column: Any, depth: int) -> Any:
        if is_extension(column):
            return _OfPandas(column.array.copy() if self.is_copied else column.array)
        return Reader.cells(self, column, depth)


_WHOLE, _TO_KEEP, _NOW = _OfDataset(True), _OfDataset(False, is_copied=True), _OfDataset(False)


def hold_the_same(x: Any, y: Any) -> bool:
    """Return whether two datasets certainly agree, including private attributes and the order of dictionaries."""
    return _are_same(_read(x, _WHOLE), _read(y, _WHOLE), in_doubt=False)


class Kept:
    """Contents of a dataset at one moment."""

    __slots__ = ("content", "dataset")

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.content = dataset, _read(dataset, _TO_KEEP)

    def has_changed(self) -> bool:
        """Return whether the contents of the dataset have certainly changed."""
        return not _are_same(self.content, _read(self.dataset, _NOW), in_doubt=True)


def _are_same(a: Any, b: Any, *, in_doubt: bool) -> bool:
    if a is None or b is None:
        return in_doubt
    try:
        return bool(a == b)
    except Exception:  # a user's __eq__ may raise anything
        return in_doubt


def _read(dataset: Any, reader: Reader) -> Any:
    """Return the contents of a dataset in a form that can be compared, or None if they cannot be read."""
    try:
        return reader.form(dataset)
    except Exception:  # a user's attributes may raise anything, and a dataset may contain itself
        return None


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


def held_by(value: Any) -> dict[str, Any]:
    """Return the instance attributes of an object by name."""
    slots = (owner.__dict__.get("__slots__", ()) for owner in type(value).__mro__)
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    held = {name: getattr(value, name) for name in names if hasattr(value, name) and not name.startswith("__")}
    return held | dict(getattr(value, "__dict__", {}))


@dataclass(slots=True, eq=False)
class _Itself:
    """Equal to a holder of the same object."""

    held: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.held is other.held


@dataclass(slots=True, eq=False)
class _OfPandas:
    """Equal to a holder of an array or index of the same type with equal values, as compared by pandas."""

    held: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _OfPandas) or type(self.held) is not type(other.held):
            return False
        return _kind_of(self.held) == _kind_of(other.held) and bool(self.held.equals(other.held))


@dataclass(slots=True, eq=False)
class _Attributes:
    """Equal to a holder of equal attributes; the other may have more, such as cached results."""

    held: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Attributes):
            return False
        return all(name in other.held and held == other.held[name] for name, held in self.held.items())
