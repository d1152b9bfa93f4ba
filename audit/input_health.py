"""Checks of the two datasets: that they differ, and that the mechanism leaves them as they are.

Where datasets cannot be compared nothing is said: whatever is doubtful counts as different when x is compared with y,
and as unchanged when a dataset is compared with itself.
"""

from __future__ import annotations

import array
import enum
import hashlib
from collections import Counter, deque
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from .datasets import is_graph, summarise
from .findings import Finding, HealthCheck
from .rows import PLAIN, is_frame

_DEEPEST = 8  # objects within objects that are looked into
_IDENTITY: Any = object.__eq__
_WITH_A_VALUE = (int, float, complex, str, bytes, Decimal, Fraction, date, time, timedelta)  # beside their attributes
_NUMBERS_AND_PLAIN = PLAIN | {float}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the two datasets held before anything was drawn.

    Attributes
    ----------
    x, y : Any
        The datasets themselves.
    are_equal : bool
        Whether they certainly held the same.
    summaries, contents : tuple
        Of x and of y; a content is None where it could not be read.
    """

    x: Any
    y: Any
    are_equal: bool
    summaries: tuple[str, str]
    contents: tuple[Any, Any]

    def examine(self, ignore: frozenset[HealthCheck]) -> tuple[Finding, ...]:
        """The checks of the datasets that fail, after the audit.

        Worker processes have copies, but the first run on x, and a block that is drawn again, are always drawn here.
        """
        found = [*self._equal(), *self._mutated()]
        return tuple(finding for finding in found if finding.check not in ignore)

    def _equal(self) -> list[Finding]:
        if not self.are_equal:
            return []
        what = "are one and the same object" if self.x is self.y else "hold the same"
        return [
            Finding(
                HealthCheck.EQUAL_DATASETS,
                f"x and y {what} ({self.summaries[0]}), so no output can be likelier on one than on the other and the "
                "audit would find nothing in any mechanism; pass two datasets that differ.",
            )
        ]

    def _mutated(self) -> list[Finding]:
        changed = []
        for side, dataset, summary, before in zip(
            ("x", "y"), (self.x, self.y), self.summaries, self.contents, strict=True
        ):
            if not _are_same(before, _read(dataset, strict=False), in_doubt=True):
                after = summarise(dataset)
                changed.append(f"{side} ({f'{summary}, now {after}' if after != summary else 'its size is as before'})")
        if not changed:
            return []
        return [
            Finding(
                HealthCheck.DATASET_MUTATED,
                f"the mechanism changed {len(changed)} of the 2 datasets it was given in place, {' and '.join(changed)}"
                ": its runs were not all on the pair that was to be audited, and one run depends on those before it; "
                "let the mechanism work on a copy.",
            )
        ]


def take_snapshot(x: Any, y: Any) -> Snapshot:
    """What both datasets hold now."""
    summaries = summarise(x), summarise(y)
    may_be_equal = type(x) is type(y) and summaries[0] == summaries[1]
    are_equal = x is y or (may_be_equal and _are_same(_read(x, strict=True), _read(y, strict=True), in_doubt=False))
    return Snapshot(x, y, are_equal, summaries, (_read(x, strict=False), _read(y, strict=False)))


def _are_same(a: Any, b: Any, *, in_doubt: bool) -> bool:
    if a is None or b is None:
        return in_doubt
    try:
        return bool(a == b)
    except Exception:  # whatever a user's __eq__ raises
        return in_doubt


def _read(dataset: Any, *, strict: bool) -> Any:
    """What a dataset holds, in a form that later changes of it leave alone; None where that cannot be told.

    With `strict` all there is belongs to it. Else private attributes, in which objects keep what they have computed,
    do not, and neither does the order of dictionaries.
    """
    try:
        return _content(dataset, strict, 0)
    except Exception:  # whatever a user's attributes raise, and what contains itself
        return None


def _content(value: Any, strict: bool, depth: int) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is float:  # NaN is as it was
        return kind, value.hex()
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if depth > _DEEPEST or isinstance(value, (type, enum.Enum)):
        return _Itself(value)
    for read in (_of_array, _of_collection):
        content = read(value, strict, depth)
        if content is not None:
            return kind, content, _of_attributes(value, strict, depth)
    table = _of_table(value, strict, depth)
    return _of_object(value, strict, depth) if table is None else (kind, table)


def _of_array(value: Any, strict: bool, depth: int) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return tuple(_of_array(part, strict, depth) for part in (np.asarray(value.data), np.ma.getmaskarray(value)))
    if not isinstance(value, np.ndarray):
        return None
    if value.dtype.hasobject:
        return value.shape, value.dtype.str, _of_items(value.ravel().tolist(), strict, depth)
    return value.shape, value.dtype.str, _digest(value)


def _digest(values: Any) -> bytes:
    """Of the bytes of an array; processors have instructions for this one."""
    return hashlib.sha256(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data).digest()


def _of_collection(value: Any, strict: bool, depth: int) -> Any:
    if isinstance(value, (list, tuple, deque, bytearray, array.array)):
        return _of_items(list(value), strict, depth)
    if isinstance(value, dict):
        order = _of_items(list(value), strict, depth) if strict else None
        return order, {key: _content(held, strict, depth + 1) for key, held in value.items()}
    if isinstance(value, (set, frozenset)):
        return frozenset(value), Counter(map(type, value))
    return None


def _of_items(items: list[Any], strict: bool, depth: int) -> Any:
    kinds = set(map(type, items))
    if kinds == {float}:
        return len(items), _digest(np.array(items))
    if kinds <= PLAIN:
        return tuple(items), tuple(map(type, items)) if len(kinds) > 1 else kinds
    if kinds <= _NUMBERS_AND_PLAIN:
        numbers = [item for item in items if type(item) is float]
        others = tuple(item for item in items if type(item) is not float)
        return tuple(map(type, items)), _digest(np.array(numbers)), others
    rows = _of_rows(items, kinds, strict, depth)
    return [_content(item, strict, depth + 1) for item in items] if rows is None else rows


def _of_rows(rows: list[Any], kinds: set[type], strict: bool, depth: int) -> Any:
    """Tuples, lists, or dictionaries with the same keys: all of what they hold at once; None of other rows."""
    if depth > _DEEPEST:
        return None
    if kinds in ({tuple}, {list}):
        return kinds, tuple(map(len, rows)), _of_items(list(chain.from_iterable(rows)), strict, depth + 1)
    if kinds == {dict}:
        keys = dict.fromkeys(map(tuple, rows))
        first = next(iter(keys))
        if first and len({frozenset(each) for each in keys}) == 1 and all(type(key) is str for key in first):
            order = (tuple(keys) if len(keys) == 1 else tuple(map(tuple, rows))) if strict else None
            held = map(itemgetter(*sorted(first)), rows)
            values = list(held) if len(first) == 1 else list(chain.from_iterable(held))
            return order, sorted(first), len(rows), _of_items(values, strict, depth + 1)
    return None


def _of_table(value: Any, strict: bool, depth: int) -> Any:
    """Frames, columns and graphs, as they show themselves: inside they move things about."""
    if is_graph(value):
        parts = [list(value.nodes(data=True)), list(value.edges(data=True)), getattr(value, "graph", None)]
    elif is_frame(value) and hasattr(value, "iloc"):
        columns = [np.asarray(value.iloc[:, place]) for place in range(len(value.columns))]
        parts = [list(value.columns), np.asarray(value.index), columns]
    elif hasattr(value, "__array__"):
        index = getattr(value, "index", None)
        parts = [np.asarray(value), None if index is None or callable(index) else np.asarray(index)]
        parts.append(_Itself(value) if strict and not hasattr(value, "iloc") else getattr(value, "name", None))
    else:
        return None
    return [_content(part, strict, depth + 1) for part in parts]


def _of_object(value: Any, strict: bool, depth: int) -> Any:
    """An object by its attributes; one that shows none by its own equality, or by being itself."""
    kind = type(value)
    held = None if callable(value) else _of_attributes(value, strict, depth)
    if held is None:
        return _Itself(value) if callable(value) or kind.__eq__ is _IDENTITY else (kind, value)
    return kind, value if isinstance(value, _WITH_A_VALUE) else None, held


def _of_attributes(value: Any, strict: bool, depth: int) -> Any:
    """The attributes that an object has of its own, without the private ones unless strict; None where it has none."""
    slots = (owner.__dict__.get("__slots__", ()) for owner in type(value).__mro__)
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    held = {name: getattr(value, name) for name in names if hasattr(value, name) and not name.startswith("__")}
    held |= dict(getattr(value, "__dict__", {}))
    if not held:
        return None
    shown = {name: part for name, part in held.items() if strict or not name.startswith("_")}
    return _Attributes({name: _content(part, strict, depth + 1) for name, part in shown.items()}, strict)


class _Itself:
    """Equal to what holds the very same object."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.held is other.held

    __hash__ = None  # type: ignore[assignment]


class _Attributes:
    """Equal to what has equal attributes; unless strict, those that came later, as computed ones do, are no matter."""

    __slots__ = ("held", "strict")

    def __init__(self, held: dict[str, Any], strict: bool) -> None:
        self.held, self.strict = held, strict

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Attributes):
            return False
        if self.strict:
            return self.held == other.held
        return all(name in other.held and held == other.held[name] for name, held in self.held.items())

    __hash__ = None  # type: ignore[assignment]
