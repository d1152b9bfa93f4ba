"""Dictionaries as outputs: a hashable form, equal where the dictionaries are equal.

An adversary may see in which order the entries were inserted, but dictionaries that Python calls equal are equal here:
the order mostly follows from the code that builds the dictionary. A mechanism whose order is an output returns a list
of pairs.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .outcome_text import outcome_text, printed


@dataclass(frozen=True, slots=True, repr=False)
class Dictionary:
    """The output of a run that returned a dictionary: its entries in an order that depends on the keys alone."""

    entries: tuple[tuple[Any, Any], ...]

    @classmethod
    def of(cls, entries: Iterable[tuple[Any, Any]]) -> Dictionary:
        """Return the dictionary of these entries, whose keys differ.

        Examples
        --------
        >>> Dictionary.of([("b", 2), ("a", 1)]) == Dictionary.of([("a", 1), ("b", 2)])
        True
        """
        return cls(tuple(sorted(entries, key=lambda entry: _place(entry[0]))))

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{printed(key)}: {printed(value)}' for key, value in self.entries)}}}"


def _place(key: Any) -> tuple[bool, float, str]:
    """Return the place of a key in the order: equal keys, such as 1 and 1.0, have equal places."""
    if isinstance(key, numbers.Real):
        try:
            return False, float(key), ""
        except OverflowError:
            pass
    return True, 0.0, outcome_text(key)
