"""Text of an output that depends only on what equality compares, and is the same in every process.

Health checks of blocks hash these texts and sort outputs by them. The `repr` of an object may contain its address or
creation time; sorting by it would reproduce the order of the runs, and a check would flag independent runs.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import ipaddress
import numbers
import pathlib
import uuid
from collections import Counter, OrderedDict
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

# Classes whose objects compare in a way of their own, so that their parts may say more than their equality.

_BASES: tuple[Any, ...] = (str, bytes, int, float, Decimal, Fraction, tuple, list, dict, set, frozenset)
_READ: tuple[Any, ...] = (OrderedDict, Counter)  # classes of dictionaries that are read as such


def has_own_equality(value: Any) -> bool:
    """Whether a value is of a subclass of a number, a text or a collection that compares in another way."""
    kind: Any = type(value)
    if kind.__module__ in ("builtins", "numpy") or issubclass(kind, np.generic):
        return False
    base = next((base for base in _BASES if issubclass(kind, base)), None)
    return base is not None and not any(compares_as(kind, known) for known in (base, *_READ))


def compared_fields(kind: Any) -> tuple[Any, ...] | None:
    """Return the compared fields of a dataclass or an attrs class; None if it has an equality of the user's own."""
    own = vars(kind)  # an undecorated subclass may have attributes that are not fields
    is_attrs = "__attrs_attrs__" in own
    if not is_attrs and "__dataclass_fields__" not in own:
        return None
    fields: Any = own["__attrs_attrs__"] if is_attrs else dataclasses.fields(kind)
    if not compares_by_identity(kind) and not ("__eq__" in own and _is_written(kind, is_attrs)):
        return None
    return tuple(field for field in fields if (field.eq if is_attrs else field.compare))


@lru_cache(maxsize=1_000)
def _is_written(kind: Any, is_attrs: bool) -> bool:
    """Whether `attrs` or `dataclass` wrote the equality of a class."""
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or is_attrs:
        return code is not None and code.co_filename.startswith("<attrs generated")
    fields = [(f.name, Any, dataclasses.field(compare=f.compare, kw_only=True)) for f in dataclasses.fields(kind)]
    same: Any = dataclasses.make_dataclass("_Same", fields)
    written = same.__eq__.__code__
    return (code.co_code, code.co_names, code.co_consts) == (written.co_code, written.co_names, written.co_consts)


def is_enum(kind: Any) -> bool:
    """Whether a class is an Enum whose members are not numbers or texts, and equal nothing but themselves."""
    return type(kind) is enum.EnumMeta and _is_enum(kind)


@lru_cache(maxsize=1_000)
def _is_enum(kind: Any) -> bool:
    return (
        kind.__mro__[1:] == (enum.Enum, object) and compares_by_identity(kind) and kind.__hash__ is enum.Enum.__hash__
    )


def compares_by_identity(kind: Any) -> bool:
    """Whether objects of a class equal nothing but themselves."""
    return compares_as(kind, object)


def compares_as(kind: Any, base: Any) -> bool:
    """Whether a class has the equality of another."""
    return kind.__eq__ is base.__eq__


# The text of an output, the same for equal outputs and in every process.
#
# Objects of unknown types have none: their `repr` may say more than their equality compares, or nothing of it, and
# their hash may differ between processes.

_STATED = frozenset(
    {datetime.date, datetime.timedelta, uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address}
    | {pathlib.PurePosixPath, pathlib.PosixPath}
)
"""Types whose instances have equal `str` exactly if they are equal."""


def equal_text(leaf: Any) -> str | None:
    """Return the text of a leaf of a plain output; None for a number, None, and an object without a text.

    Bytes are read as Latin-1.
    """
    return None if leaf is None or isinstance(leaf, numbers.Number) else _text(leaf)


def _text(value: Any) -> str | None:
    kind = type(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, enum.Enum) and compares_by_identity(kind):
        return f"{kind.__qualname__}.{value.name}"
    if kind is bytes:
        return str(value, "latin-1")
    if value is None or kind in _STATED:
        return str(value)
    if kind is datetime.datetime:  # of a plain output; one beyond the calendar in UTC has another time zone
        return str(value) if value.tzinfo is None or value.tzinfo is datetime.UTC else None
    if isinstance(value, numbers.Real | Decimal):
        return _text_of_number(value)
    if isinstance(value, tuple):
        return _joined([_text(part) for part in value], "()")
    if kind is frozenset:
        parts = [_text(part) for part in value]
        return None if None in parts else _joined(sorted(part for part in parts if part is not None), "{}")
    if is_dataclass(value) and not compares_by_identity(kind) and (fields := compared_fields(kind)) is not None:
        return _joined([_text(getattr(value, field.name)) for field in fields], "()")
    return None


def _joined(parts: list[str | None] | list[str], around: str) -> str | None:
    told = [part for part in parts if part is not None]
    return f"{around[0]}{', '.join(told)}{around[1]}" if len(told) == len(parts) else None


def _text_of_number(number: Any) -> str:
    """The same for equal numbers, such as 1, 1.0 and True."""
    try:
        return str(int(number)) if number == int(number) else repr(float(number))
    except (ValueError, OverflowError, ArithmeticError):  # no number, infinite, or of thousands of digits
        if isinstance(number, numbers.Rational):
            return f"{number.numerator:x}/{number.denominator:x}"
        return "nan" if number != number else repr(float(number))


# Types whose `repr` shows exactly what their equality compares.
_PRINTED = frozenset(
    {str, bytes, bool, int, float, complex, type(None), Decimal, Fraction, range}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_SAFE = _PRINTED - {int, bool, float, Fraction}  # types whose repr is the same exactly for equal values


class Unordered:
    """An output that equals those with equal entries in any order."""

    __slots__ = ("_text",)

    entries: tuple[tuple[Any, Any], ...]
    _text: str

    @property
    def text(self) -> str:
        """What `outcome_text` returns, written once: every check of an output that is kept asks for it."""
        try:
            return self._text
        except AttributeError:
            written = f"{type(self).__qualname__}({', '.join(sorted(map(outcome_text, self.entries)))})"
            object.__setattr__(self, "_text", written)
            return written


def printed(value: Any) -> str:
    """Return the repr, with the elements of sets in an order that is the same in every process."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(printed, value)))}}}"
    if type(value) is tuple:
        return f"({', '.join(map(printed, value))}{',' * (len(value) == 1)})"
    if is_dataclass(value) and hasattr(type(value).__repr__, "__wrapped__"):  # a repr written by `dataclass`
        shown = (f"{field.name}={printed(getattr(value, field.name))}" for field in fields(value) if field.repr)
        return f"{type(value).__qualname__}({', '.join(shown)})"
    return _repr(value)


def _repr(value: Any) -> str:
    """Return the repr, or the type if the repr raises; integers of thousands of digits are in hexadecimal."""
    try:
        return repr(value)
    except Exception:  # a user's __repr__ may raise anything
        return hex(value) if isinstance(value, int) else f"<{type(value).__qualname__}, whose repr raises>"


def outcome_text(output: Any) -> str:
    """Return a text that depends only on what equality compares of an output.

    The text holds the compared fields of a dataclass, the hash of any other object with a user's equality, and only the
    type of an object that equals nothing but itself.
    """
    kind = type(output)
    if kind is float or kind is int or kind is bool:
        return _number_text(output)
    if kind in _PRINTED:
        return _repr(output)
    if kind is tuple and _SAFE.issuperset(map(type, output)):
        return repr(output)
    if isinstance(output, enum.Enum) and compares_by_identity(kind):
        return f"{kind.__qualname__}.{output.name}"
    if isinstance(output, np.generic):
        return outcome_text(output.item())
    if kind is tuple:
        return f"({', '.join(map(outcome_text, output))}{',' * (len(output) == 1)})"
    if isinstance(output, (tuple, frozenset)) and not has_own_equality(output):
        texts = map(outcome_text, output)
        return f"{kind.__qualname__}({', '.join(sorted(texts) if isinstance(output, frozenset) else texts)})"
    if isinstance(output, Unordered):
        return output.text
    if compares_by_identity(kind):
        return kind.__qualname__
    compared = compared_fields(kind) if is_dataclass(output) else None
    if compared is not None:
        return f"{kind.__qualname__}({', '.join(outcome_text(getattr(output, field.name)) for field in compared)})"
    return f"equal to {hash(output)}"  # a subclass may have equal objects


def _number_text(number: float) -> str:
    """Return the text of the double that equals a number, as which it may be packed, without a sign of zero."""
    try:
        double = float(number)
    except OverflowError:
        return _repr(number)
    return repr(double + 0.0) if double == number else _repr(number)
