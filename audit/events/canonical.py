"""One value for all values that are equal, so that all that is read of equal outputs is the same.

Python calls 1, 1.0, True, ``Decimal(1)`` and an `IntEnum` of this value equal, as it does a moment in two time zones.
Keys of dictionaries, members of sets and labels are replaced by the one value that stands for all: a number by the
integer that it equals, or else by the double.
"""

from __future__ import annotations

import datetime
import enum
import ipaddress
import math
import numbers
import pathlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .dictionaries import Dictionary, Mark
from .named_parts import Again
from .outcome_text import printed
from .own_equality import compares_as, compares_by_identity, has_own_equality

_EXACT = 1 << 53  # doubles hold all integers up to this
_EXPONENTS = 10_000  # of a decimal that is written as an integer
_FINER = ("ns", "ps", "fs", "as")  # units of numpy that `datetime` does not have
_MICROSECONDS = {"us": 1, "ms": 1_000, "s": 10**6, "m": 60 * 10**6, "h": 3_600 * 10**6, "D": 86_400 * 10**6}
_EPOCH = datetime.datetime(1970, 1, 1)
STATED = frozenset(
    {str, bytes, int, float, type(None), Decimal, Fraction, range, Mark, uuid.UUID, pathlib.PurePosixPath}
    | {datetime.date, datetime.time, datetime.timedelta, ipaddress.IPv4Address, ipaddress.IPv6Address}
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
        return _number(value)
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
    return Foreign(value) if has_own_equality(value) else _common(value)


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
    if kind is datetime.datetime:
        return key.tzinfo is None or key.tzinfo is datetime.UTC
    return _is_stated(key.label) if kind is Again else kind in STATED


def _number(number: Any) -> Any:
    """Return the integer that equals a number if it is at most 2⁵³; else the double; else the exact number.

    Examples
    --------
    >>> [_number(number) for number in (True, -0.0, 2**60, Decimal("0.10"), Fraction(1, 10))]
    [1, 0, 1.152921504606847e+18, Decimal('0.1'), Decimal('0.1')]
    """
    if isinstance(number, int) and -_EXACT <= number <= _EXACT:
        return int(number)
    if number != number:
        return math.nan
    try:
        double = float(number)
    except OverflowError:
        double = math.nan
    if double == number:
        return int(double) if double.is_integer() and abs(double) <= _EXACT else double
    if isinstance(number, numbers.Integral):
        return int(number)
    if isinstance(number, Decimal):
        sign, digits, exponent = number.as_tuple()
        return _without_zeros(sign, digits, int(exponent))
    return _of_fraction(number) if isinstance(number, Fraction) else number


def _without_zeros(sign: int, digits: tuple[int, ...], exponent: int) -> int | Decimal:
    """Return a decimal without zeros at its end, or the integer that it is."""
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    number = Decimal((sign, digits, exponent))
    return int(number) if 0 <= exponent <= _EXPONENTS else number


def _of_fraction(fraction: Fraction) -> int | Decimal | Fraction:
    """Return the decimal that equals a fraction, if there is one."""
    rest, places = fraction.denominator, 0
    for factor in (2, 5):
        times = 0
        while rest % factor == 0:
            rest, times = rest // factor, times + 1
        places = max(places, times)
    if rest != 1:
        return fraction
    scaled = abs(fraction.numerator) * 10**places // fraction.denominator
    return _without_zeros(int(fraction < 0), Decimal(scaled).as_tuple().digits, -places)


def _common(value: Any) -> Any:
    """Return a value in a common type if one equals it: a number, a text, a time, a path or a range."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _ticks(value)
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.longdouble) else value.item()
    name = type(value).__name__
    if name in ("NAType", "NaTType"):  # of pandas
        return None if name == "NAType" else Mark.NOT_A_TIME
    for base, convert in _CONVERT:
        if isinstance(value, base):
            return convert(value)
    return value


def _ticks(value: Any) -> Any:
    """Return a time of numpy as one of Python; as a count with its unit if Python has no such time."""
    if np.isnat(value):
        return Mark.NOT_A_TIME
    is_span, (unit, step) = isinstance(value, np.timedelta64), np.datetime_data(value.dtype)
    name = "timedelta64" if is_span else "datetime64"
    count = int(value.astype(np.int64)) * step
    if unit == "generic" or (is_span and unit in "YM"):
        count, unit = (12 * count, "M") if unit == "Y" else (count, unit)
        return _counted(name, unit, count)
    if unit in "YM":
        days = value.astype("datetime64[D]")
        count, unit = int(days.astype(np.int64)), "D"
    if unit in _FINER:
        place = _FINER.index(unit)
        while place >= 0 and count % 1_000 == 0:
            place, count = place - 1, count // 1_000
        if place >= 0:
            return _counted(name, _FINER[place], count)
        unit = "us"
    count *= 7 * _MICROSECONDS["D"] if unit == "W" else _MICROSECONDS[unit]
    try:
        span = datetime.timedelta(microseconds=count)
        return span if is_span else _moment(_EPOCH + span)
    except OverflowError:
        return _counted(name, "us", count)


def _counted(name: str, unit: str, count: int) -> Dictionary:
    return Dictionary(((Mark.CLASS, f"{name}[{unit}]"), (Mark.VALUES, count)))


def _moment(moment: Any) -> Any:
    """Return a moment in UTC; one without a time zone at midnight as its date, which equals it in numpy."""
    if hasattr(moment, "to_pydatetime"):  # of pandas
        if moment.nanosecond:
            return _ticks(moment.to_datetime64()) if moment.tzinfo is None else moment.tz_convert("UTC")
        moment = moment.to_pydatetime()
    if not compares_as(type(moment), datetime.datetime):
        return moment
    moment = moment.replace(fold=0)
    time = moment.time()
    if moment.utcoffset() is None:
        day = moment.date()
        return datetime.datetime.combine(day, time) if time != datetime.time() else _date(day)
    try:
        return moment.astimezone(datetime.UTC)
    except OverflowError:  # beyond the calendar
        return moment


def _date(day: Any) -> Any:
    return datetime.date(day.year, day.month, day.day) if compares_as(type(day), datetime.date) else day


def _time(time: Any) -> Any:
    """Return a time of day without a time zone; one with a time zone equals many others."""
    return Foreign(time) if time.utcoffset() is not None else time.replace(fold=0, tzinfo=None)


def _span(span: Any) -> Any:
    if hasattr(span, "to_pytimedelta"):  # of pandas
        if span.nanoseconds:
            return _ticks(span.to_timedelta64())
        span = span.to_pytimedelta()
    if not compares_as(type(span), datetime.timedelta):
        return span
    return datetime.timedelta(span.days, span.seconds, span.microseconds)


def _range(numbers_of: range) -> range:
    start, step, size = numbers_of.start, numbers_of.step, len(numbers_of)
    if size == 0:
        return range(0)
    return range(start, start + 1) if size == 1 else range(start, start + size * step, step)


_CONVERT: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (bytes, bytes),
    (bool, bool),
    (int, int),
    (float, float),
    (datetime.datetime, _moment),
    (datetime.date, _date),
    (datetime.timedelta, _span),
    (datetime.time, _time),
    (pathlib.PurePosixPath, pathlib.PurePosixPath),
    (range, _range),
    (numbers.Real | Decimal, _number),
)
