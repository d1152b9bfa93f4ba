"""Contents of a value, a dataset or an output, in a form that can be compared later.

In doubt, no difference is asserted: contents that cannot be compared count as different when x is compared with y, and
as unchanged when a dataset is compared with itself. Outputs are read as a form and their numbers. The form has all
else: types of containers, keys and labels, shapes, texts. Two outputs are compared number by number only if their forms
agree.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import copy
import enum
import hashlib
import marshal
import math
import pathlib
import struct
from collections import ChainMap, Counter, UserDict, UserList
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..events.kinds import Opened, opened, shows_all
from ..events.named_parts import EXACT, STATED, outcome_key
from .rows import PLAIN

Floats: TypeAlias = npt.NDArray[np.float64]

_DEEPEST = 60  # levels of nested objects that are read, far below Python's limit of recursion
_IDENTITY: Any = object.__eq__
_LEAVES = (complex, Decimal, Fraction, date, time, timedelta)  # equal ones may show other digits, zeros or time zones
_WITH_A_VALUE = (int, float, str, bytes)  # plus any attributes
_WITH_DATA = frozenset({UserList, UserDict, ChainMap})  # whose attributes hold what is in them
_SHOWN = STATED - PLAIN - {float} | {datetime, pathlib.PosixPath}  # whose repr shows all
_OF_PANDAS = frozenset({"NAType", "NaTType", "Timestamp", "Timedelta"})  # immutable items of its columns
_NUMBERS_AND_PLAIN = PLAIN | {float}


def hold_the_same(x: Any, y: Any) -> bool:
    """Return whether two datasets certainly agree, including private attributes and the order of dictionaries."""
    return _are_same(_Reader(True).read(x), _Reader(True).read(y), in_doubt=False)


class Kept:
    """Contents of a dataset at one moment."""

    __slots__ = ("content", "dataset")

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.content = dataset, _Reader(False).read(dataset)

    def has_changed(self) -> bool:
        """Return whether the contents of the dataset have certainly changed."""
        return not _are_same(self.content, _Reader(False).read(self.dataset), in_doubt=True)


def _form_and_numbers(output: Any) -> tuple[Any, list[Any]] | None:
    """Return the form of an output, and its numbers in a row; None if a type does not say when two are equal."""
    numbers: list[Any] = []
    form = None if isinstance(output, NotCopied) else _Reader(True, True, numbers).read(output)
    return None if form is None else (form, numbers)


def _are_same(a: Any, b: Any, *, in_doubt: bool) -> bool:
    if a is None or b is None:
        return in_doubt
    try:
        return bool(a == b)
    except Exception:  # a user's __eq__ may raise anything
        return in_doubt


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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values; `whole` with the order of dictionaries, and private attributes, in which objects cache results."""

    whole: bool
    is_strict: bool = False  # whether an object that equals nothing but itself cannot be read
    numbers: list[Any] | None = None  # takes the numbers, which are a part of the content otherwise

    def read(self, value: Any) -> Any:
        """Return the contents in a form that can be compared, or None if they cannot be read."""
        try:
            return self.content(value, 0)
        except Exception:  # a user's attributes may raise anything, and a dataset may contain itself
            return None

    def content(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if self.numbers is not None and (kind is float or kind is int):
            self.numbers.append(value)
            return kind
        if kind in PLAIN:
            return kind, value
        if kind is float:  # the hexadecimal text of NaN equals itself
            return kind, value.hex()
        if self.numbers is not None and (kind is Fraction or (kind is Decimal and value.is_finite())):
            self.numbers.append(value)
            return kind, value.as_tuple().exponent if kind is Decimal else None
        if kind in _SHOWN:
            return kind, repr(value)
        if isinstance(value, (type, enum.Enum)):
            return _Itself(value)
        if depth > _DEEPEST:
            return self._itself(value)
        found = opened(value)
        is_object = found.kind == "graph" or (found.kind == "arraylike" and not hasattr(value, "to_numpy"))
        if found.kind in ("other", "wrapper") or (self.is_strict and is_object):
            return kind, self._of_object(value, depth)
        content = self._of_parts(found, depth)
        if found.kind == "arraylike" and self.whole and not self.is_strict:  # which may hold more than numpy reads
            content = content, _Itself(value)
        is_table = found.kind in ("table", "column", "arraylike")  # whose attributes are internal
        is_all = is_table or kind in _WITH_DATA or shows_all(kind, found.kind)
        has_more = not is_all or (self.is_strict and found.kind == "tensor")
        return kind, content, self._of_attributes(value, depth) if has_more else None

    def _of_parts(self, found: Opened, depth: int) -> Any:
        kind, label, names, parts = found
        if kind == "array":
            if self.numbers is None or parts.dtype.kind not in "iufc":
                return label, _digest(parts)
            for part in (parts.real, parts.imag) if parts.dtype.kind == "c" else (parts,):
                self.numbers.extend(part.reshape(-1).tolist())
            return label
        if kind == "bytes" and self.numbers is not None:
            return self._of_items([*label[0]], depth)
        if kind == "set":
            zeros = frozenset(repr(each) for each in parts if isinstance(each, (float, np.floating)) and each == 0.0)
            return frozenset(parts), Counter(map(type, parts)), zeros
        if kind == "mapping":
            order = self._label(names, depth) if self.whole else None
            return order, label, {key: self.content(part, depth + 1) for key, part in zip(names, parts, strict=True)}
        return label, self._label(names, depth) if names else None, self._of_items(parts, depth)

    def _label(self, names: Any, depth: int) -> Any:
        """Read names, whose numbers belong to the form."""
        return replace(self, numbers=None).content(list(names), depth + 1)

    def _itself(self, value: Any) -> _Itself:
        if self.is_strict:
            raise TypeError(f"a {type(value).__name__} equals nothing but itself")
        return _Itself(value)

    def _of_items(self, items: list[Any], depth: int) -> Any:
        kinds = set(map(type, items))
        rows: Any = None
        if self.numbers is None:
            if kinds <= _NUMBERS_AND_PLAIN:  # in version 2, equal items have equal bytes
                return hashlib.sha256(marshal.dumps(items, 2)).digest()
            if all(kind in PLAIN or kind.__name__ in _OF_PANDAS for kind in kinds):
                return tuple(items), tuple(map(type, items))
            rows = self._of_rows(items, kinds, depth)
        return [self.content(item, depth + 1) for item in items] if rows is None else rows

    def _of_rows(self, rows: list[Any], kinds: set[type], depth: int) -> Any:
        """Read tuples, lists, or dictionaries with the same keys as one flat sequence; None for other rows."""
        if depth > _DEEPEST:
            return None
        if kinds in ({tuple}, {list}):
            return kinds, tuple(map(len, rows)), self._of_items(list(chain.from_iterable(rows)), depth + 1)
        if kinds == {dict}:
            keys = dict.fromkeys(map(tuple, rows))
            first = next(iter(keys))
            if first and len({frozenset(each) for each in keys}) == 1 and all(type(key) is str for key in first):
                order = (tuple(keys) if len(keys) == 1 else tuple(map(tuple, rows))) if self.whole else None
                held = map(itemgetter(*sorted(first)), rows)
                values = list(held) if len(first) == 1 else list(chain.from_iterable(held))
                return order, sorted(first), len(rows), self._of_items(values, depth + 1)
        return None

    def _of_object(self, value: Any, depth: int) -> Any:
        """Read an object by its attributes; an object without attributes by its equality or its identity."""
        held = None if callable(value) else self._of_attributes(value, depth)
        if self.numbers is not None and isinstance(value, (int, float, complex)):
            parts = [value.real, value.imag] if isinstance(value, complex) else [value.real]
            self.numbers.extend(parts)
            return held
        if isinstance(value, _LEAVES):
            return outcome_key(value), repr(value), held
        is_alone = type(value).__eq__ is _IDENTITY and not is_dataclass(value)
        if callable(value) or (is_alone and (held is None or self.is_strict)) or hasattr(value, "__next__"):
            return self._itself(value) if self.is_strict or held is None else (None, held)
        has_a_value = held is None or isinstance(value, _WITH_A_VALUE) or (self.is_strict and not is_dataclass(value))
        return value if has_a_value else None, held

    def _of_attributes(self, value: Any, depth: int) -> Any:
        """Read the attributes of an object, private attributes only if `whole`; None if it has no attributes."""
        slots = (owner.__dict__.get("__slots__", ()) for owner in type(value).__mro__)
        names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
        held = {name: getattr(value, name) for name in names if hasattr(value, name) and not name.startswith("__")}
        held |= dict(getattr(value, "__dict__", {}))
        if not held:
            return None
        shown = {name: part for name, part in held.items() if self.whole or not name.startswith("_")}
        return _Attributes({name: self.content(part, depth + 1) for name, part in shown.items()}, self.whole)


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


# Outputs of single runs: copies of them, whether two are equal, and their numbers.


@dataclass(frozen=True, slots=True)
class NotCopied:
    """Stands for an output that cannot be copied, which the next run may change."""

    kind: str


def kept(output: Any) -> Any:
    """Return a copy of an output, which later runs cannot change; `NotCopied` if it cannot be copied."""
    if type(output) in (float, int, str, bool, type(None)):
        return output
    try:
        held = copy.deepcopy(output)
    except Exception:  # an object's own copying may raise anything
        return NotCopied(type(output).__name__)
    is_whole = type(output) is np.ndarray or same_output(output, held) is not False  # a copy may leave attributes out
    return held if is_whole else NotCopied(type(output).__name__)


def _in_one_form(first: Any, second: Any) -> tuple[list[Any], list[Any]] | bool | None:
    """Return the numbers of two outputs; False if they differ in form, and None if a type does not say."""
    one, other = _form_and_numbers(first), _form_and_numbers(second)
    if one is None or other is None:
        return None
    (form, numbers), (other_form, other_numbers) = one, other
    try:
        is_same = bool(form == other_form)
    except Exception:  # an output's own comparison may raise anything
        return None
    return (numbers, other_numbers) if is_same and len(numbers) == len(other_numbers) else False


def same_output(first: Any, second: Any) -> bool | None:
    """Return whether two outputs agree in form and numbers, with the bits of NaN; None if a type does not say."""
    numbers = _in_one_form(first, second)
    if not isinstance(numbers, tuple):
        return numbers
    pairs = zip(*numbers, strict=True)  # whole numbers of any size are compared exactly
    return all((a == b and a != 0) or ((a == b or (a != a and b != b)) and _bits(a) == _bits(b)) for a, b in pairs)


def same_form(first: Any, second: Any) -> bool:
    """Return whether two outputs differ in the values of their numbers only; not if a type does not say."""
    return isinstance(_in_one_form(first, second), tuple)


def numbers_of(output: Any) -> Floats | None:
    """Return the numbers of an output in a row; None if a part has no form, or a number is too large for a double."""
    read = _form_and_numbers(output)
    if read is None or any(type(number) is not float and abs(number) > EXACT for number in read[1]):
        return None
    return np.array(read[1], dtype=np.float64)


def is_of_single_precision(output: Any) -> bool:
    """Return whether an output has numbers of less precision than doubles."""
    form = repr(_form_and_numbers(output))
    return "float32" in form or "float16" in form


def output_distance(first: Any, second: Any) -> float | None:
    """Return the ℓ1 norm of the difference of two outputs; None if they differ in form or hold no numbers."""
    a, b = numbers_of(first), numbers_of(second)
    if a is None or b is None or not same_form(first, second):
        return None
    return float(np.sum(np.abs(difference(a, b))))


def difference(y: Floats, x: Floats) -> Floats:
    """Return y − x; 0 if both are the same infinity or NaN, the smallest number for zeros and NaN of unlike bits."""
    are_alike = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        apart = np.where(are_alike, 0.0, y - x)
    return np.where(are_alike & (x.view(np.int64) != y.view(np.int64)), math.ulp(0.0), apart)


def _bits(number: float) -> bytes:
    return struct.pack("d", number)


def distance_of(first: Any, second: Any) -> Floats | None:
    """Return |first − second|, element by element, infinite to NaN; None unless both are numbers of the same shape."""
    a, b = _as_doubles(first), _as_doubles(second)
    if a is None or b is None or a.shape != b.shape:
        return None
    if not (_is_large(first, a) or _is_large(second, b)):
        with np.errstate(all="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
            return np.where(np.isnan(apart), math.inf, apart)
    items = (np.asarray(value).reshape(-1).tolist() for value in (first, second))
    return np.array([_exact_distance(p, q) for p, q in zip(*items, strict=True)], dtype=np.float64).reshape(a.shape)


def _as_doubles(value: Any) -> Floats | None:
    if isinstance(value, (str, bytes)) or value is None:
        return None
    try:
        found = np.asarray(value)
        return np.asarray(found, dtype=np.float64) if found.dtype.kind in "biufO" else None
    except OverflowError:  # whole numbers beyond the doubles
        return np.full(np.shape(value), math.inf)
    except (TypeError, ValueError):
        return None


def _is_large(value: Any, numbers: Floats) -> bool:
    return np.asarray(value).dtype.kind in "iuO" and bool(np.any(np.abs(numbers) >= EXACT))


def _exact_distance(first: Any, second: Any) -> float:
    if first == second or (first != first and second != second):
        return 0.0
    try:
        return float(abs(Fraction(first) - Fraction(second)))
    except (TypeError, ValueError, OverflowError):  # NaN, an infinity, or beyond the doubles
        return math.inf
