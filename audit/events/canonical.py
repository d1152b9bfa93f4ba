"""One value for all values that are equal, so that whatever is read of equal outputs is the same.

Python calls 1, 1.0, True, ``Decimal(1)`` and an `IntEnum` of this value equal, as it does a moment in two time zones.
Keys of dictionaries, members of sets and labels are replaced by the one value that stands for all: a number by the
integer that it equals, or else by the double.
"""

from __future__ import annotations

import datetime
import enum
import ipaddress
import pathlib
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .canonical_leaves import canonical_number, common_leaf
from .dictionaries import Dictionary, Mark
from .named_parts import Again
from .outcome_text import printed
from .own_equality import compares_by_identity, has_own_equality

_STATED = frozenset(
    {str, bytes, int, float, type(None), Decimal, Fraction, range, Mark, uuid.UUID, pathlib.PurePosixPath}
    | {datetime.date, datetime.timedelta, ipaddress.IPv4Address, ipaddress.IPv6Address}
)
"""Types whose canonical values have equal texts exactly if they are equal."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Foreign:
    """An object of which only its equality and its hash are read."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is Foreign and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return printed(self.value)


def canonical(value: Any) -> Any:
    """Return what stands for all values that equal a plain output; NaN equals NaN.

    Examples
    --------
    >>> canonical((1.0, True, -0.0, "a")), canonical(frozenset([2.0]))
    ((1, 1, 0, 'a'), frozenset({2}))
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is int or kind is bool or kind is float:
        return canonical_number(value)
    if kind is tuple:
        return tuple(map(canonical, value))
    if kind is frozenset:
        return frozenset(map(canonical, value))
    if kind is Dictionary:
        return Dictionary.of((key, canonical(part)) for key, part in value.entries)
    if kind is Again:
        return Again(canonical(value.label), value.time)
    return value


def is_whole(value: Any) -> bool:
    """Whether an output is a number that equals an integer."""
    return value.is_integer() if type(value) is float else isinstance(value, int)


def leaf_of(value: Any) -> Any:
    """Return an output without parts in a common type, so that no more is read of it than its equality compares.

    Examples
    --------
    >>> leaf_of(Decimal("1.50")), leaf_of(Fraction(4, 2)), leaf_of(range(1, 1))
    (1.5, 2, range(0, 0))
    """
    return Foreign(value) if has_own_equality(value) else common_leaf(value)


def key_part(key: Any) -> str | Foreign:
    """Return what stands for a canonical key in a path: its text, if equal keys have equal texts.

    Examples
    --------
    >>> key_part("a"), key_part(1), key_part((1, "a"))
    ("'a'", '1', "(1, 'a')")
    """
    kind = type(key)
    if kind is str:
        return repr(key)
    if isinstance(key, enum.Enum) and kind is not Mark and compares_by_identity(kind):
        return f"{kind.__qualname__}.{key.name}"
    return printed(key) if _is_stated(key) else Foreign(key)


def _is_stated(key: Any) -> bool:
    """Whether equal keys have equal texts."""
    kind = type(key)
    if kind is tuple or kind is frozenset:
        return all(map(_is_stated, key))
    if kind is Dictionary:
        return all(_is_stated(own) and _is_stated(part) for own, part in key.entries)
    if kind is datetime.datetime or kind is datetime.time:
        return key.tzinfo is None or key.tzinfo is datetime.UTC
    return _is_stated(key.label) if kind is Again else kind in _STATED
