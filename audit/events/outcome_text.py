"""Outputs as text that says what is compared and nothing more, the same in every process.

Checks of blocks hash such texts and order outputs by them. The `repr` of an object may hold its address or the time at
which it was made: an order by that is the order of the runs, and independent runs would be accused.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

# Types whose `repr` says all that their equality looks at, and no more.
_PRINTED = frozenset(
    {str, bytes, bool, int, float, complex, type(None), Decimal, Fraction, range}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_SAFE = _PRINTED - {int, Fraction}  # whose repr never fails


def printed(value: Any) -> str:
    """The repr, with the elements of sets in an order that is the same in every process.

    Examples
    --------
    >>> printed((1, frozenset("cab")))
    "(1, {'a', 'b', 'c'})"
    """
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(printed, value)))}}}"
    if type(value) is tuple:
        return f"({', '.join(map(printed, value))}{',' * (len(value) == 1)})"
    if _prints_fields(value):
        shown = (f"{field.name}={printed(getattr(value, field.name))}" for field in fields(value) if field.repr)
        return f"{type(value).__qualname__}({', '.join(shown)})"
    return _repr(value)


def _prints_fields(value: Any) -> bool:
    """Whether `dataclass` has written its repr."""
    return is_dataclass(value) and hasattr(type(value).__repr__, "__wrapped__")


def _repr(value: Any) -> str:
    """The repr, or where it raises the type; numbers of thousands of digits in hexadecimal."""
    try:
        return repr(value)
    except Exception:  # whatever a user's __repr__ raises
        return hex(value) if isinstance(value, int) else f"<{type(value).__qualname__}, whose repr raises>"


def outcome_text(output: Any) -> str:
    """A text that follows from what is compared of an output.

    Of a dataclass that are the fields that are compared, of other objects of a user's own their hash. Objects that are
    equal to themselves alone have only their type.

    Examples
    --------
    >>> outcome_text(("a", 1.5)), outcome_text(frozenset("ba")) == outcome_text(frozenset("ab"))
    ("('a', 1.5)", True)
    >>> outcome_text(object()) == outcome_text(object())
    True
    """
    kind = type(output)
    if kind in _PRINTED:
        return _repr(output)
    if kind is tuple and all(type(each) in _SAFE for each in output):
        return repr(output)
    if isinstance(output, enum.Enum):
        return f"{kind.__qualname__}.{output.name}"
    if isinstance(output, np.generic):
        return outcome_text(output.item())
    if isinstance(output, (tuple, frozenset)):
        texts = map(outcome_text, output)
        return f"{kind.__qualname__}({', '.join(sorted(texts) if isinstance(output, frozenset) else texts)})"
    compares_values = getattr(kind, "__eq__") is not getattr(object, "__eq__")  # noqa: B009
    if is_dataclass(output) and compares_values:
        compared = (outcome_text(getattr(output, field.name)) for field in fields(output) if field.compare)
        return f"{kind.__qualname__}({', '.join(compared)})"
    return f"{kind.__qualname__} {hash(output)}" if compares_values else kind.__qualname__
