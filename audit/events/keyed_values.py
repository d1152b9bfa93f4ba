"""Numbers by their keys, wherever in an output the keys stand.

Histograms, selected partitions and tables are often lists of rows whose order and number vary, so that no place in the
output belongs to a key. A key is the first text of a row, or else its first part that is not a decimal number; the
other numbers of the row are the values of the key: ``[("a", 2.1), ("b", 0.4)]``, ``[{"key": "a", "count": 2.1}]``, or
lists side by side, as in ``{"key": ["a", "b"], "count": [2.1, 0.4]}``. In sets, and in lists of keys alone, each key is
counted. Any other number is named by its place in the output, which includes the key of a dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dictionaries import Dictionary
from .features import Columns, Matrix, Path, key_text, place_words
from .outputs import Outputs, Raised, is_real, number_of, outcome_key, outcome_list, outcome_words

EACH = "…"
"""The place of a row in its list. Texts of keys have quotation marks, so no key has this name."""

Name = tuple[Path, Any, Path]
"""The place of a key, the key, and the place of its value, which is that of the key where keys are counted. The first
two are empty and None for a number that has a place of its own."""


@dataclass(frozen=True, slots=True)
class KeyedValues(Columns):
    """The values of some keys: the largest where a key has several, NaN where it has none; or the count of a key.

    Attributes
    ----------
    keyed : tuple of Name
    """

    keyed: tuple[Name, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(name_words, self.keyed))

    def read(self, outputs: Outputs) -> Matrix:
        column = {(at, outcome_key(key), place): number for number, (at, key, place) in enumerate(self.keyed)}
        empty = np.array([0.0 if at == place else np.nan for at, _, place in self.keyed])
        found = np.tile(empty[:, None], len(outputs))
        for run, output in enumerate(outcome_list(outputs)):
            for (at, key, place), value in named_values(output):
                number = column.get((at, outcome_key(key), place))
                if number is not None:
                    found[number, run] = np.fmax(found[number, run], value)
        return found


def name_words(name: Name) -> str:
    """Return what names the values of a key."""
    at, key, place = name
    if not at:
        return place_words(place)
    if at == place:
        return f"count of {outcome_words(key)} in {place_words(at[:-1])}"
    return f"({place_words(place)} where {place_words(at)} = {outcome_words(key)})"


def named_values(output: Any, path: Path = ()) -> Iterator[tuple[Name, float]]:
    """Yield the numbers of an output with their names; a name may come more than once.

    Examples
    --------
    >>> [(name_words(name), value) for name, value in named_values((("a", 2.5), ("b", 0.5)))]
    [("(output[…][1] where output[…][0] = 'a')", 2.5), ("(output[…][1] where output[…][0] = 'b')", 0.5)]
    >>> [(name_words(name), value) for name, value in named_values(frozenset(["a"]))]
    [("count of 'a' in output", 1.0)]
    """
    if isinstance(output, frozenset):
        yield from _counted(output, (*path, EACH))
    elif type(output) is tuple and (rows := _rows(output)):
        for row in rows:
            yield from _of_row(row, (*path, EACH))
    elif type(output) is tuple and output and all(map(_is_key, output)):
        yield from _counted(output, (*path, EACH))
    elif type(output) is tuple or type(output) is Dictionary:
        parts = _parts(output)
        yield from _side_by_side(parts, path)
        for place, part in parts:
            yield from named_values(part, (*path, place))
    elif is_real(output):
        yield ((), None, path), number_of(output)


Row = list[tuple[int | str, Any]]
"""The parts of a row, each with its place."""


def _parts(row: Any) -> Row:
    if type(row) is Dictionary:
        return [(key_text(key), part) for key, part in row.entries]
    return list(enumerate(row))


def _is_key(part: Any) -> bool:
    """Whether a part may be a key: a text, a whole number, an Enum, None, but no other number and no collection."""
    return isinstance(part, int) or not (is_real(part) or isinstance(part, tuple | frozenset | Dictionary | Raised))


def _rows(parts: tuple[Any, ...]) -> list[Row]:
    """The rows of a list; none if its parts differ in form or have no key."""
    first = parts[0] if parts else None
    if type(first) is not Dictionary and not (type(first) is tuple and len(first) > 1 and _is_key(first[0])):
        return []
    rows = [_parts(part) for part in parts if type(part) is type(first)]
    is_table = len(rows) == len(parts) and all(len(row) == len(rows[0]) and _key_of(row) is not None for row in rows)
    return rows if is_table else []


def _key_of(row: Row) -> int | None:
    """Which part is the key: the first text, or else the first that may be one."""
    texts = (number for number, (_, part) in enumerate(row) if isinstance(part, str))
    return next(texts, next((number for number, (_, part) in enumerate(row) if _is_key(part)), None))


def _of_row(row: Row, path: Path) -> Iterator[tuple[Name, float]]:
    own = _key_of(row)
    assert own is not None, "checked by `_rows`"
    place, key = row[own]
    for number, (other, part) in enumerate(row):
        if number != own and is_real(part):
            yield ((*path, place), key, (*path, other)), number_of(part)


def _counted(keys: Iterable[Any], place: Path) -> Iterator[tuple[Name, float]]:
    """Yield how often each key comes, for keys without values."""
    for key, count in Counter(filter(_is_key, keys)).items():
        yield (place, key, place), float(count)


def _side_by_side(parts: Row, path: Path) -> Iterator[tuple[Name, float]]:
    """Yield the numbers of lists that are as long as a list of texts beside them."""
    lists = [(place, part) for place, part in parts if type(part) is tuple and part]
    keys = next((each for each in lists if all(isinstance(key, str) for key in each[1])), None)
    if keys is None:
        return
    at = (*path, keys[0], EACH)
    for place, values in lists:
        if len(values) == len(keys[1]) and all(map(is_real, values)):
            for key, value in zip(keys[1], values, strict=True):
                yield (at, key, (*path, place, EACH)), number_of(value)
