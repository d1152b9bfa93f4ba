"""Outputs that hardly recur, such as sentences, JSON, bytes or dates, as columns read from their text.

A text that never recurs is no event by itself, but a word in it may be, or its length, the numbers in it, its first
and last characters, and its template, which is the text with a mark in place of each number. A string is its own text,
bytes are read as Latin-1, and any other object has the text that its equality allows.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .dictionaries import Dictionary
from .features import Columns, Matrix, Path, leaves_of, place_words
from .outcome_text import outcome_text
from .outputs import Outputs, outcome_list

Part = Literal["length", "number", "character", "word", "start", "end", "template"]

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+(?:\.\d+)?")
_WORD = re.compile(r"\w+")
_MARK = "#"  # in templates, for a number
_NUMBERS, _CHARACTERS, _ENDS, _WORDS = 12, 8, 2, 32  # most columns of a kind
_MOST_CODES = 256
_MOST_PATHS = 4  # texts in an output, the most frequent ones
_LEARNED = 20_000  # outputs on each side from which columns are learned
_MANY, _HARDLY = 256, 0.5  # different texts, or their share, at a path where a table of texts is too sparse
_LEAST = 3  # texts with a word, a start, an end or a template that is not rare


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column of a text in the outputs: a number, or a code of what is known.

    Attributes
    ----------
    path : Path
    part : str
    which : int or str
        The place of a number or character from 0, negative from the end; the word; otherwise 0.
    known : tuple of str
        Starts, ends or templates, by code.
    """

    path: Path
    part: Part
    which: int | str = 0
    known: tuple[str, ...] = ()

    @property
    def is_code(self) -> bool:
        return self.part in _CODED

    def __str__(self) -> str:
        text = place_words(self.path)
        match self.part:
            case "number" | "character":
                return f"{self.part} {self.which} in {text}"
            case "word":
                return f"count of {self.which!r} in {text}"
        return f"{self.part} of {text}"


@dataclass(frozen=True, slots=True)
class TextColumns(Columns):
    """Columns of the texts in outputs; NaN where there is no such text, number or character.

    Examples
    --------
    >>> columns = TextColumns((TextColumn((), "number", 0), TextColumn((), "word", "ok")))
    >>> columns.read(np.array(["sum -1.5, ok", "ok: ok"], dtype=object)).tolist()
    [[-1.5, nan], [1.0, 2.0]]
    """

    columns: tuple[TextColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.columns))

    def codes(self, column: int) -> list[str] | None:
        own = self.columns[column]
        return list(map(repr, own.known)) if own.is_code else None

    def only(self, places: Iterable[int]) -> TextColumns:
        """Return some of the columns."""
        return TextColumns(tuple(self.columns[place] for place in places))

    def read(self, outputs: Outputs) -> Matrix:
        paths = dict.fromkeys(column.path for column in self.columns)
        readers = {path: _Reader([column for column in self.columns if column.path == path]) for path in paths}
        places = {path: [place for place, column in enumerate(self.columns) if column.path == path] for path in paths}
        found = np.full((len(self.columns), len(outputs)), math.nan)
        for path, reader in readers.items():
            rows, values = [], []
            for row, output in enumerate(outcome_list(outputs)):
                if (text := text_of(_leaf_at(output, path))) is not None:
                    rows.append(row)
                    values.append(reader.read(text))
            if rows:
                found[np.ix_(places[path], rows)] = np.array(values, dtype=np.float64).T[reader.order]
        return found


class _Reader:
    """What reads several columns of one text, kind by kind; `order` has the place of each column in a row."""

    def __init__(self, columns: Sequence[TextColumn]) -> None:
        by_part: dict[Part, list[int]] = {}
        for place, column in enumerate(columns):
            by_part.setdefault(column.part, []).append(place)
        self.order = np.argsort([place for places in by_part.values() for place in places])
        self._kinds = [_KINDS[part]([columns[place] for place in places]) for part, places in by_part.items()]

    def read(self, text: str) -> list[float]:
        row: list[float] = []
        for kind in self._kinds:
            row += kind(text)
        return row


def _lengths(columns: Sequence[TextColumn]) -> Callable[[str], Iterable[float]]:
    return lambda text: (len(text),) * len(columns)


def _numbers(columns: Sequence[TextColumn]) -> Callable[[str], Iterable[float]]:
    wanted = [int(column.which) for column in columns]

    def read(text: str) -> list[float]:
        found = _NUMBER.findall(text)
        return [float(found[place]) if place < len(found) else math.nan for place in wanted]

    return read


def _characters(columns: Sequence[TextColumn]) -> Callable[[str], Iterable[float]]:
    wanted = [int(column.which) for column in columns]
    return lambda text: [float(ord(text[place])) if place < len(text) else math.nan for place in wanted]


def _words(columns: Sequence[TextColumn]) -> Callable[[str], Iterable[float]]:
    wanted = [str(column.which) for column in columns]

    def read(text: str) -> Iterable[float]:
        found = _WORD.findall(text)
        return map(found.count, wanted)

    return read


def _codes(part: Callable[[str], str]) -> Callable[[Sequence[TextColumn]], Callable[[str], Iterable[float]]]:
    def of(columns: Sequence[TextColumn]) -> Callable[[str], Iterable[float]]:
        codes = [{text: float(code) for code, text in enumerate(column.known)} for column in columns]

        def read(text: str) -> list[float]:
            key = part(text)
            return [each.get(key, -1.0) for each in codes]

        return read

    return of


_CODED: dict[Part, Callable[[str], str]] = {
    "template": lambda text: _NUMBER.sub(_MARK, text),
    "start": lambda text: text[:_ENDS],
    "end": lambda text: text[-_ENDS:],
}
_KINDS: dict[Part, Callable[[Sequence[TextColumn]], Callable[[str], Iterable[float]]]] = {
    "length": _lengths,
    "number": _numbers,
    "character": _characters,
    "word": _words,
    **{part: _codes(read) for part, read in _CODED.items()},
}


def _leaf_at(output: Any, path: Path) -> Any:
    """The leaf of an output at a path; None if there is none."""
    if not path:
        return None if type(output) is tuple or type(output) is Dictionary else output
    return next((leaf for place, leaf in leaves_of(output) if place == path), None)


def text_of(leaf: Any) -> str | None:
    """Return the text of a leaf; None for a number, a truth value or None.

    Examples
    --------
    >>> import datetime
    >>> text_of("a"), text_of(b"\\xff1"), text_of(datetime.date(2024, 1, 2)), text_of(1.5)
    ('a', 'ÿ1', 'datetime.date(2024, 1, 2)', None)
    """
    if isinstance(leaf, str):
        return str(leaf)
    if isinstance(leaf, bytes):
        return leaf.decode("latin-1")
    return None if leaf is None or isinstance(leaf, numbers.Real) else outcome_text(leaf)


def learn_texts(x: Outputs, y: Outputs) -> TextColumns | None:
    """Learn columns from outputs on x and on y; None without texts that hardly recur."""
    sides = [_texts(part[:_LEARNED]) for part in (x, y)]
    times = {path: sum(len(side.get(path, ())) for side in sides) for path in sides[0] | sides[1]}
    paths = sorted(times, key=lambda path: -times[path])
    columns: list[TextColumn] = []
    for path in [path for path in paths if _hardly_recur([side.get(path, []) for side in sides])][:_MOST_PATHS]:
        columns += _columns(path, *(side.get(path, []) for side in sides))
    return TextColumns(tuple(columns)) if columns else None


def _texts(outputs: Outputs) -> dict[Path, list[str]]:
    """The texts of the leaves by path."""
    found: dict[Path, list[str]] = {}
    for output in outcome_list(outputs):
        for path, leaf in leaves_of(output):
            if (text := text_of(leaf)) is not None:
                found.setdefault(path, []).append(text)
    return found


def _hardly_recur(texts: Sequence[Sequence[str]]) -> bool:
    """Whether there are many different texts at a path."""
    return any(len(set(side)) > min(_MANY, max(_HARDLY * len(side), 1)) for side in texts)


def _columns(path: Path, x: Sequence[str], y: Sequence[str]) -> list[TextColumn]:
    """The columns of the texts at a path, those that are easy to understand first."""
    both = [*x, *y]
    usual, longest = int(np.median([len(_NUMBER.findall(text)) for text in both])), max(map(len, both))
    words = [Counter(word for text in side for word in set(_WORD.findall(text))) for side in (x, y)]
    apart = {
        word: abs(words[0][word] - words[1][word]) / math.sqrt(times)
        for word, times in (words[0] + words[1]).items()
        if times >= _LEAST and words[0][word] != words[1][word]
    }
    found = [TextColumn(path, "word", word) for word in sorted(apart, key=lambda word: -apart[word])[:_WORDS]]
    for part, read in _CODED.items():
        known = [text for text, times in Counter(map(read, both)).most_common(_MOST_CODES) if times >= _LEAST]
        if known:
            found.append(TextColumn(path, part, known=tuple(known)))
    found += [TextColumn(path, "number", place) for place in range(min(usual, _NUMBERS))]
    found += [TextColumn(path, "character", place) for place in range(min(longest, _CHARACTERS))]
    return [*found, TextColumn(path, "length")]
