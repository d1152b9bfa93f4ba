"""The text of an output, the same for equal outputs and in every process.

Objects of unknown types have none: their `repr` may say more than their equality compares, or nothing of it, and their
hash may differ between processes.
"""

from __future__ import annotations

import datetime
import enum
import ipaddress
import numbers
import pathlib
import uuid
from dataclasses import is_dataclass
from decimal import Decimal
from typing import Any

from .own_equality import compared_fields, compares_by_identity

_STATED = frozenset(
    {datetime.date, datetime.timedelta, uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address}
    | {pathlib.PurePosixPath, pathlib.PosixPath}
)
"""Types whose instances have equal `str` exactly if they are equal."""


def equal_text(leaf: Any) -> str | None:
    """Return the text of a leaf of an output; None for a number, a truth value, None, and an object without a text.

    Bytes are read as Latin-1, moments with a time zone in UTC.

    Examples
    --------
    >>> equal_text("a"), equal_text(b"1"), equal_text(datetime.date(2024, 1, 2)), equal_text(1.5)
    ('a', '1', '2024-01-02', None)
    >>> equal_text(frozenset([True, "b"])) == equal_text(frozenset([1.0, "b"]))
    True
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
    if kind is datetime.datetime:
        return _moment_text(value)
    if isinstance(value, numbers.Real | Decimal):
        return _number_text(value)
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


def _moment_text(moment: datetime.datetime) -> str | None:
    """A moment in UTC if it has a time zone; None if it is beyond the calendar there."""
    moment = moment.replace(fold=0)
    if moment.utcoffset() is None:
        return str(moment)
    try:
        return str(moment.astimezone(datetime.UTC))
    except OverflowError:
        return None


def _number_text(number: Any) -> str:
    """The same for equal numbers, such as 1, 1.0 and True."""
    try:
        return str(int(number)) if number == int(number) else repr(float(number))
    except (ValueError, OverflowError, ArithmeticError):  # no number, infinite, or of thousands of digits
        if isinstance(number, numbers.Rational):
            return f"{number.numerator:x}/{number.denominator:x}"
        return "nan" if number != number else repr(float(number))
