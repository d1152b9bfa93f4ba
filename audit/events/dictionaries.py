"""Dictionaries as outputs: a hashable form, equal where the dictionaries are equal.

An adversary may see in which order the entries were inserted, but dictionaries that Python calls equal are equal here:
the order mostly follows from the code that builds the dictionary. A mechanism whose order is an output returns a list
of pairs.
"""

from __future__ import annotations

import enum
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from .outcome_text import Unordered, outcome_text, printed
from .own_equality import is_enum


class Mark(enum.Enum):
    """Keys and values that no user's dictionary has, so that other outputs than dictionaries can be written as one.

    `COUNTS` is the first key in the structure of a `Counter`, in which a missing key is 0.
    """

    CLASS = "class"
    NAME = "name"
    INDEX = "index"
    ORDER = "order"
    VALUES = "value"
    OTHER = "another output"
    LEAF = "any value"
    COUNTS = "counts"
    NOT_A_TIME = "NaT"

    def __repr__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Dictionary(Unordered):
    """The output of a run that returned a dictionary; equal to one with equal entries in any order."""

    entries: tuple[tuple[Any, Any], ...]

    @classmethod
    def of(cls, entries: Iterable[tuple[Any, Any]]) -> Dictionary:
        """Return the dictionary of these entries, whose keys differ, in an order that depends on the keys alone.

        Examples
        --------
        >>> Dictionary.of([("b", 2), ("a", 1)])
        {'a': 1, 'b': 2}
        """
        return cls(tuple(sorted(entries, key=lambda entry: _place(entry[0]))))

    def __eq__(self, other: object) -> bool:
        if type(other) is not Dictionary:
            return NotImplemented
        return self.entries == other.entries or frozenset(self.entries) == frozenset(other.entries)

    def __hash__(self) -> int:
        return hash(frozenset(self.entries))

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{printed(key)}: {printed(value)}' for key, value in self.entries)}}}"


_EXACT = 1 << 53  # doubles hold all integers up to this


def _place(key: Any) -> tuple[int, float, int, str]:
    """Return the place of a canonical key in the order."""
    kind = type(key)
    if kind is str:
        return 1, 0.0, 0, repr(key)
    if kind is int and -_EXACT < key < _EXACT:
        return 0, float(key), 0, ""
    if isinstance(key, Mark):
        return -1, 0.0, 0, key.value
    if isinstance(key, numbers.Real):
        try:
            number = float(key)
            return 0, number, _rest(key, number), ""
        except (OverflowError, ValueError):
            pass
    return 1, 0.0, 0, outcome_text(key)


def _rest(key: Any, number: float) -> int:
    """Return what a double leaves of an integer that it does not hold."""
    return key - int(number) if isinstance(key, int) and abs(number) >= _EXACT else 0


_OWN_KEYS = frozenset({str, int, bool, bytes, type(None)})  # types of most outputs, which are their own keys


def outcome_key(output: Any) -> Any:
    """Return a key that is equal for equal outputs, NaN included."""
    kind = type(output)
    if kind in _OWN_KEYS or is_enum(kind):
        return output
    if kind is float:
        return output if output == output else _NAN
    if kind is tuple:
        return output if _OWN_KEYS.issuperset(map(type, output)) else tuple(map(outcome_key, output))
    if isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, (float, Decimal)):
        return output if output == output else _NAN
    if kind is frozenset:
        return output if _OWN_KEYS.issuperset(map(type, output)) else frozenset(map(outcome_key, output))
    return (Dictionary, frozenset(map(outcome_key, output.entries))) if kind is Dictionary else output


class _NaN:
    """The common key of all NaNs."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "_NAN"


_NAN = _NaN()
