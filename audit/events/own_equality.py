"""Classes whose objects compare in a way of their own, so that their parts may say more than their equality."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter, OrderedDict
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

_BASES: tuple[Any, ...] = (str, bytes, int, float, Decimal, Fraction, tuple, list, dict, set, frozenset)
_READ: tuple[Any, ...] = (OrderedDict, Counter)  # classes of dictionaries that are read as such


def has_own_equality(value: Any) -> bool:
    """Whether a value is of a subclass of a number, a text or a collection that compares in another way.

    Examples
    --------
    >>> class AnyCase(str):
    ...     __hash__ = None
    ...     def __eq__(self, other):
    ...         return self.lower() == other.lower()
    >>> has_own_equality(AnyCase("a")), has_own_equality("a"), has_own_equality(True)
    (True, False, False)
    """
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
