"""Numbers by their keys, wherever in an output the keys stand.

Histograms, selected partitions and tables are often lists of rows whose order and number vary, so that no place in the
output belongs to a key. A part of a row that is not a decimal number is a key, and the numbers in the other parts are
its values: ``[("a", 2.1), ("b", 0.4)]``, ``[{"key": "a", "count": 2.1}]``, or lists side by side, as in
``{"key": ["a", "b"], "count": [2.1, 0.4]}``. Rows without such values are counted, and so are keys in lists and sets of
keys. Any other number is named by its place in the output, which includes the key of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .canonical import is_whole, key_part
from .dictionaries import Dictionary
from .features import Columns, Matrix, leave_out
from .leaves import Path, leaves_of, place_words
from .outcome_text import outcome_text
from .outputs import Outputs, Raised, is_real, number_of, outcome_key, outcome_list, outcome_words

EACH = "…"
"""The place of a row in its list. Texts of keys have quotation marks, so no key has this name."""

_MOST_KEYS = 3  # of a row, texts before others

Name = tuple[Path, Any, Path]
"""Where a key stands, the key, and where its value stands. A key that is counted stands in place of its value. A number
that is named by its place alone has an empty path and None for a key."""

Parts = list[tuple[Path, Any]]
"""The parts of an output or of a row, each with its place."""


@dataclass(frozen=True, slots=True)
class KeyedValues(Columns):
    """The values of some keys: the largest where a key has several, NaN where it has none; or the count of a key.

    Attributes
    ----------
    keyed : tuple of Name
    """

    keyed: tuple[Name, ...]
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name_words(name, self.column_names) for name in self.keyed)

    def read(self, outputs: Outputs) -> Matrix:
        column = {same_name(name): number for number, name in enumerate(self.keyed)}
        is_count = [at == place for at, _, place in self.keyed]
        found = np.tile(np.where(is_count, 0.0, np.nan)[:, None], len(outputs))
        for run, output in enumerate(outcome_list(outputs)):
            for name, value in named_values(output):
                number = column.get(same_name(name))
                if number is not None:
                    before = found[number, run]
                    found[number, run] = before + value if is_count[number] else np.fmax(before, value)
        return found


def same_name(name: Name) -> Any:
    """Return what is equal for names of equal keys."""
    at, key, place = name
    return at, outcome_key(key), place


def name_words(name: Name, names: tuple[str, ...] = ()) -> str:
    """Return what names the values of a key in outputs whose columns have these names."""
    at, key, place = name
    if not at:
        return place_words(place, names)
    if at == place:
        where = at[:-1] if at[-1] == EACH else at
        return f"count of {outcome_words(key)} in {place_words(where, names)}"
    return f"({place_words(place, names)} where {place_words(at, names)} = {outcome_words(key)})"


def named_values(output: Any, path: Path = ()) -> Iterator[tuple[Name, float]]:
    """Yield the numbers of an output with their names, and 1 for each key that is counted.

    A name may come more than once. The order does not depend on the order of sets.

    Examples
    --------
    >>> [(name_words(name), value) for name, value in named_values((("a", 2.5), ("b", 0.5)))]
    [("(output[…][1] where output[…][0] = 'a')", 2.5), ("(output[…][1] where output[…][0] = 'b')", 0.5)]
    >>> [(name_words(name), value) for name, value in named_values(frozenset(["a"]))]
    [("count of 'a' in output", 1.0)]
    """
    if is_real(output):
        yield ((), None, path), number_of(output)
        return
    if isinstance(output, frozenset):
        output = tuple(sorted(output, key=outcome_text))
    parts = _parts(output, path)
    if type(output) is tuple and all(_is_key(part) for _, part in parts):
        for _, key in parts:
            yield ((*path, EACH), key, (*path, EACH)), 1.0
        return
    rows, rest = _side_by_side(parts, named=type(output) is Dictionary)
    if not rows and type(output) is tuple:
        rows, rest = _rows(parts, path)
    for row in rows:
        yield from _of_row(row, path)
    for place, part in rest:
        yield from named_values(part, place)


def _parts(output: Any, path: Path) -> Parts:
    if type(output) is Dictionary:
        return [((*path, key_part(key)), part) for key, part in output.entries]
    return [((*path, place), part) for place, part in enumerate(output)] if type(output) is tuple else []


def _is_key(part: Any) -> bool:
    """Whether a part may be a key: a text, a whole number, an Enum, None, but no other number and no collection."""
    return is_whole(part) or not (is_real(part) or isinstance(part, tuple | frozenset | Dictionary | Raised))


def _is_compound(part: Any) -> bool:
    return type(part) is tuple and all(map(_is_key, part))


def _side_by_side(parts: Parts, *, named: bool) -> tuple[list[Parts], Parts]:
    """Rows of lists of equal length, of which one has keys and another numbers, and the other parts.

    In a tuple, where whole numbers may well be rows, keys must not be numbers.
    """
    lists = [(place, part) for place, part in parts if type(part) is tuple and part]
    keyed = [part for _, part in lists if all(_is_key(key) and (named or not is_real(key)) for key in part)]
    for keys in keyed:
        beside = [(place, part) for place, part in lists if len(part) == len(keys)]
        if any(part is not keys and all(map(is_real, part)) for _, part in beside):
            rows = [[((*place, EACH), part[number]) for place, part in beside] for number in range(len(keys))]
            used = {place for place, _ in beside}
            return rows, [(place, part) for place, part in parts if place not in used]
    return [], parts


def _rows(parts: Parts, path: Path) -> tuple[list[Parts], Parts]:
    """The rows of a list, if most of its parts are rows, and the other parts."""
    each = [(place, part, _parts(part, (*path, EACH))) for place, part in parts]
    rows = [row for _, _, row in each if _is_row(row)]
    if 2 * len(rows) <= len(parts):
        return [], parts
    return rows, [(place, part) for place, part, row in each if not _is_row(row)]


def _is_row(row: Parts) -> bool:
    """Whether these are several parts with a key, or with several keys in a tuple before a number."""
    return len(row) > 1 and (
        any(_is_key(part) for _, part in row) or (_is_compound(row[0][1]) and any(is_real(part) for _, part in row[1:]))
    )


def _of_row(row: Parts, path: Path) -> Iterator[tuple[Name, float]]:
    keys = [(at, part) for at, part in row if _is_key(part)] or [(at, part) for at, part in row if _is_compound(part)]
    if len(keys) > _MOST_KEYS:
        leave_out("keys of a row", f"of the keys of a row, {_MOST_KEYS} were examined, texts before others")
    keys = sorted(keys, key=lambda each: type(each[1]) is not str)[:_MOST_KEYS]
    numbers = [
        (own, place, number_of(leaf))
        for own, part in row
        for place, leaf in ([(own, part)] if is_real(part) else leaves_of(part, own))
        if is_real(leaf)
    ]
    values = [((at, key, place), value) for at, key in keys for own, place, value in numbers if own != at]
    if values:
        yield from values
        return
    for at, key in keys:
        yield (at, key, at), 1.0
    whole, place = tuple(part for _, part in row), (*path, EACH)
    if all(map(_is_key, whole)):
        yield (place, whole, place), 1.0
