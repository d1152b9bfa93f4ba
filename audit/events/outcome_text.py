"""Text of an output that depends only on what equality compares, and is the same in every process.

Health checks of blocks hash these texts and sort outputs by them. The `repr` of an object may contain its address or
creation time; sorting by it would reproduce the order of the runs, and a check would flag independent runs.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .own_equality import compared_fields, compares_by_identity, has_own_equality

# Types whose `repr` shows exactly what their equality compares.
_PRINTED = frozenset(
    {str, bytes, bool, int, float, complex, type(None), Decimal, Fraction, range}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_SAFE = _PRINTED - {int, bool, float, Fraction}  # types whose repr is the same exactly for equal values
_EXACT = 1 << 53  # doubles hold all integers up to this


class Unordered:
    """An output that equals those with equal entries in any order."""

    __slots__ = ()

    entries: tuple[tuple[Any, Any], ...]


def printed(value: Any) -> str:
    """Return the repr, with the elements of sets in an order that is the same in every process.

    Examples
    --------
    >>> printed((1, frozenset("cab")))
    "(1, {'a', 'b', 'c'})"
    """
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

    Examples
    --------
    >>> outcome_text(("a", 1.5)), outcome_text(frozenset("ba")) == outcome_text(frozenset("ab"))
    ("('a', 1.5)", True)
    >>> outcome_text(object()) == outcome_text(object())
    True
    """
    kind = type(output)
    if (kind is int or kind is bool) and -_EXACT <= output <= _EXACT:  # equal to the double as which it may be packed
        return repr(float(output))
    if kind is float or kind is int:
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
        return f"{kind.__qualname__}({', '.join(sorted(map(outcome_text, output.entries)))})"
    if compares_by_identity(kind):
        return kind.__qualname__
    compared = compared_fields(kind) if is_dataclass(output) else None
    if compared is not None:
        return f"{kind.__qualname__}({', '.join(outcome_text(getattr(output, field.name)) for field in compared)})"
    return f"equal to {hash(output)}"  # a subclass may have equal objects


def _number_text(number: float) -> str:
    """Return the text of the double that equals a number, without a sign of zero."""
    try:
        double = float(number)
    except OverflowError:
        return _repr(number)
    return repr(double + 0.0) if double == number else _repr(number)
