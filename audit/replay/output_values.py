"""Outputs of single runs: copies of them, whether two are equal, and their numbers.

An output is read as a form and its numbers. The form has all else: types of containers, keys and labels, shapes, texts.
Two outputs are compared number by number only if their forms agree.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import struct
from array import array
from collections import Counter, deque
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..events.named_parts import is_tensor, marks_of_tensor, numpy_of, outcome_key

_LEAVES: Final = (date, time, timedelta, Decimal, Fraction, np.generic)
EXACT: Final = 2**53
"""The largest size of whole numbers up to which doubles hold all."""
_DEEPEST: Final = 60
_LEAST: Final = 5e-324
_PLAIN: Final = frozenset({float, int, bool, str, bytes, complex, type(None), list, tuple, dict, set, frozenset})
"""Types whose values hold nothing beside what they show."""


class _IncomparableError(Exception):
    """The type of an output, or of a part of it, does not say whether two of them are equal."""


@dataclasses.dataclass(frozen=True, slots=True)
class NotCopied:
    """Stands for an output that cannot be copied, which the next run may change."""

    kind: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """An object that says by itself what it equals."""

    held: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Own) or type(self.held) is not type(other.held):
            return False
        try:
            return bool(self.held == other.held)
        except Exception as error:  # an output's own comparison may raise anything
            raise _IncomparableError from error


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


def same_output(first: Any, second: Any) -> bool | None:
    """Return whether two outputs agree in form and numbers, with the bits of NaN; None if a type does not say."""
    try:
        (form, numbers), (other_form, other_numbers) = _read(first), _read(second)
        if form != other_form or len(numbers) != len(other_numbers):
            return False
    except _IncomparableError:
        return None
    pairs = zip(numbers, other_numbers, strict=True)  # whole numbers of any size are compared exactly
    return all((a == b and a != 0) or ((a == b or (a != a and b != b)) and _bits(a) == _bits(b)) for a, b in pairs)


def same_form(first: Any, second: Any) -> bool:
    """Return whether two outputs differ in the values of their numbers only; not if a type does not say."""
    try:
        (form, numbers), (other_form, other_numbers) = _read(first), _read(second)
        return bool(form == other_form) and len(numbers) == len(other_numbers)
    except _IncomparableError:
        return False


def numbers_of(output: Any) -> npt.NDArray[np.float64] | None:
    """Return the numbers of an output in a row; None if a part has no form, or a number is too large for a double."""
    try:
        numbers = _read(output)[1]
    except _IncomparableError:
        return None
    if any(isinstance(number, int) and abs(number) > EXACT for number in numbers):
        return None
    return np.array(numbers, dtype=np.float64)


def is_of_single_precision(output: Any) -> bool:
    """Return whether an output has numbers of less precision than doubles."""
    try:
        form = repr(_read(output)[0])
    except _IncomparableError:
        return False
    return "float32" in form or "float16" in form


def output_distance(first: Any, second: Any) -> float | None:
    """Return the ℓ1 norm of the difference of two outputs; None if they differ in form or hold no numbers."""
    a, b = numbers_of(first), numbers_of(second)
    if a is None or b is None or not same_form(first, second):
        return None
    return float(np.sum(np.abs(difference(a, b))))


def difference(y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return y − x; 0 where both are the same infinity or NaN, the smallest number for zeros and NaN of unlike bits."""
    are_alike = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        apart = np.where(are_alike, 0.0, y - x)
    return np.where(are_alike & (x.view(np.int64) != y.view(np.int64)), _LEAST, apart)


def _bits(number: float) -> bytes:
    return struct.pack("d", number)


def _read(output: Any) -> tuple[Any, list[Any]]:
    numbers: list[Any] = []
    return _form(output, numbers, 0), numbers


def _form(value: Any, numbers: list[Any], depth: int) -> Any:
    """Return the form of a value, with what a subclass holds beside it, and append its numbers."""
    kind = type(value)
    if kind is float or kind is int:
        numbers.append(value)
        return kind
    if depth > _DEEPEST or kind is NotCopied:
        raise _IncomparableError
    if kind in _PLAIN or hasattr(value, "to_numpy"):
        return _form_of(value, kind, numbers, depth)
    return _form_of(value, kind, numbers, depth), _attributes(value, numbers, depth)


def _form_of(value: Any, kind: type, numbers: list[Any], depth: int) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return kind, bool(value)
    if isinstance(value, enum.Enum):
        return kind, value.name, repr(value)
    if isinstance(value, (int, np.integer)):
        numbers.append(int(value))
        return kind
    if isinstance(value, (float, np.floating)):
        numbers.append(float(value))
        return kind
    if isinstance(value, (complex, np.complexfloating)):
        numbers += [value.real, value.imag]
        return kind
    if isinstance(value, np.ndarray):
        return _form_of_array(value, numbers, depth)
    if hasattr(value, "to_numpy") and (hasattr(value, "columns") or hasattr(value, "dtype")):
        return _form_of_table(value, numbers, depth)
    if isinstance(value, Mapping):
        factory = getattr(value, "default_factory", None)
        held = [(_label(key, depth), _form(value[key], numbers, depth + 1)) for key in value]
        return kind, held, getattr(factory, "__qualname__", None)
    if isinstance(value, (list, tuple, deque)):
        return kind, [_form(each, numbers, depth + 1) for each in value], getattr(value, "maxlen", None)
    if isinstance(value, (set, frozenset)):
        zeros = frozenset(repr(each) for each in value if isinstance(each, (float, np.floating)) and each == 0.0)
        return kind, frozenset(value), Counter(map(type, value)), zeros
    if isinstance(value, (range, slice, array)):  # equal to some that show other arguments or types
        return kind, _label(value.__reduce_ex__(2)[1], depth)
    if isinstance(value, (str, bytes, type, type(None))):
        return kind, value
    if isinstance(value, _LEAVES):
        return kind, outcome_key(value), repr(value)  # with a time zone, or zeros at the end
    if is_tensor(value):
        return kind, marks_of_tensor(value), _form_of_array(numpy_of(value), numbers, depth)
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
        return kind, [(name, _form(getattr(value, name, None), numbers, depth + 1)) for name in names]
    if (
        callable(value)
        or hasattr(value, "__next__")
        or getattr(kind, "__eq__", None) is getattr(object, "__eq__", None)
    ):
        raise _IncomparableError
    return _Own(value)


def _label(value: Any, depth: int) -> Any:
    """Return a name or a place in a form, with the numbers in it."""
    numbers: list[Any] = []
    return _form(value, numbers, depth + 1), [repr(number) for number in numbers]


def _attributes(value: Any, numbers: list[Any], depth: int) -> Any:
    """Return the form of the attributes that an object holds, but for the fields of a dataclass."""
    if isinstance(value, (type, enum.Enum)):
        return []
    held = list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        held += [(name, getattr(value, name)) for name in names if not name.startswith("__") and hasattr(value, name)]
    fields = {each.name for each in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    return [(name, _form(part, numbers, depth + 1)) for name, part in held if name not in fields]


def _form_of_array(value: npt.NDArray[Any], numbers: list[Any], depth: int) -> Any:
    kind = type(value)
    if isinstance(value, np.ma.MaskedArray):
        mask, beneath = np.ma.getmaskarray(value), _form_of_array(np.asarray(value.data), numbers, depth)
        return kind, mask.tolist(), repr(value.fill_value), beneath
    if value.dtype.names is not None:
        return kind, [(name, _form_of_array(value[name], numbers, depth)) for name in value.dtype.names]
    if value.dtype.kind in "iuf":
        numbers += value.reshape(-1).tolist()
        return kind, value.dtype, value.shape
    if value.dtype.kind == "O":
        return kind, value.shape, [_form(each, numbers, depth + 1) for each in value.reshape(-1).tolist()]
    if value.dtype.kind == "c":
        numbers += [*value.real.reshape(-1).tolist(), *value.imag.reshape(-1).tolist()]
        return kind, value.dtype, value.shape
    return kind, value.dtype, value.shape, value.tolist()


def _form_of_table(value: Any, numbers: list[Any], depth: int) -> Any:
    """Return the form of a frame, a column or an index, by the names, labels and types that it shows."""
    kind, index = type(value), getattr(value, "index", None)
    labels = None if index is None or callable(index) else _labels_of(index, depth)
    beside = _label(dict(getattr(value, "attrs", {})), depth)
    if hasattr(value, "columns"):
        places = range(len(value.columns))
        columns = [value.iloc[:, at] for at in places] if hasattr(value, "iloc") else [value[:, at] for at in places]
        held = [_form_of_table(column, numbers, depth + 1) for column in columns]
        return kind, _labels_of(value.columns, depth), labels, held, beside
    cells, categories = np.asarray(value.to_numpy()), getattr(value.dtype, "categories", None)
    kind_of_cells = value.dtype if hasattr(value.dtype, "name") else str(value.dtype)
    return (
        kind,
        _label(getattr(value, "name", None), depth),
        (kind_of_cells, None if categories is None else _label(list(categories), depth)),
        labels,
        _form(cells, numbers, depth),
        beside,
    )


def _labels_of(index: Any, depth: int) -> Any:
    names = list(getattr(index, "names", [getattr(index, "name", None)]))
    kind = type(index), str(getattr(index, "dtype", ""))
    return kind, _label(names, depth), _label(list(index), depth)
