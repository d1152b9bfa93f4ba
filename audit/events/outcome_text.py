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

_OWN = __name__.rpartition(".")[0]  # whose events hold outputs
# Types whose `repr` says all that their equality looks at, and no more.
_PRINTED = frozenset(
    {str, bytes, bool, int, float, complex, type(None), Decimal, Fraction, range}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)


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
    if _is_event(value):
        shown = (f"{field.name}={printed(getattr(value, field.name))}" for field in fields(value) if field.repr)
        return f"{type(value).__qualname__}({', '.join(shown)})"
    return repr(value)


def _is_event(value: Any) -> bool:
    """Whether it is an object of this library's that prints its fields."""
    generated = hasattr(type(value).__repr__, "__wrapped__")  # by `dataclass`
    return is_dataclass(value) and generated and type(value).__module__.startswith(_OWN)


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
        return repr(output)
    if kind is tuple and all(type(each) in _PRINTED for each in output):
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
