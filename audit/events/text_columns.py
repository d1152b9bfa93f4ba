"""Outputs that rarely recur, such as sentences, JSON, bytes or dates, as columns read from their text.

A text that never recurs makes no event, but a part of it may: a word, a number, a character, its length, or its
template, which is the text with # in place of each number. `equal_text` defines which outputs have a text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Literal

import numpy as np

from .features import Columns, Matrix, last_digits, leave_out
from .leaves import LEARNED, MOST_CODES, Path, leaves_by_path, place_words
from .named_parts import EXACT, equal_text
from .outputs import Outputs, outcome_list, outcome_words

Part = Literal["length", "number", "last digits", "character", "word", "start", "end", "template"]

_NUMBER = re.compile(r"((?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\d+(?:\.\d+)?)")
_WORD = re.compile(r"\b\w+\b")
# Columns of a kind; short texts have all characters: docs/decisions/0025-limits.md.
_NUMBERS, _CHARACTERS, _SHORT, _ENDS, _WORDS = 12, 8, 64, 2, 32
_MOST_COLUMNS = 200  # of several texts together, or one of each
_RANKS: dict[Part, int] = {"number": 0, "template": 1, "word": 2, "length": 3, "last digits": 4}
_HARDLY = 0.5  # share of different texts at a path where a table of texts is too sparse
_LEAST = 3  # texts with a word, a start, an end or a template that is not rare (docs/decisions/0025-limits.md)
# Characters at each end of a text that are read, and in a template: docs/decisions/0025-limits.md.
_CLIPPED, _LONGEST = 1_000, 500


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column of a text in the outputs: a number, or a code of what is known."""

    path: Path
    part: Part
    which: int | str = 0  # the place of a number or character, from 0; the word; otherwise 0
    known: tuple[str, ...] = ()  # characters in increasing order, starts, ends or templates, by code
    column_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = place_words(self.path, self.column_names)
        match self.part:
            case "number" | "character":
                return f"{_ordinal(int(self.which))} {self.part} in {text}"
            case "last digits":
                return f"last digits of the {_ordinal(int(self.which))} number in {text}"
            case "word":
                return f"count of {self.which!r} in {text}"
            case "template":
                return f"template (numbers as #) of {text}"
        return f"{self.part} of {text}"


def _ordinal(place: int) -> str:
    """Return the ordinal number of a place that is counted from 0."""
    number = place + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


@dataclass(frozen=True, slots=True)
class TextColumns(Columns):
    """Columns read from the texts in outputs: NaN for a missing text or number, −1 for an unknown code."""

    columns: tuple[TextColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.columns))

    def codes(self, column: int) -> list[str] | None:
        wanted = self.columns[column]
        return list(map(outcome_words, wanted.known)) if wanted.part in ("character", *_CODED) else None

    def read(self, outputs: Outputs) -> Matrix:
        found = np.full((len(self.columns), len(outputs)), math.nan)
        parts: dict[Path, dict[Part, list[int]]] = {}
        for place, column in enumerate(self.columns):
            parts.setdefault(column.path, {}).setdefault(column.part, []).append(place)
        texts_of = _texts(outputs)
        for path in parts.keys() & texts_of.keys():
            rows, texts = texts_of[path]
            read = _Texts(texts)
            for part, places in parts[path].items():
                found[np.ix_(places, rows)] = read.columns(part, [self.columns[place] for place in places])
        return found


def _clipped(text: str) -> str:
    return text if len(text) <= 2 * _CLIPPED else f"{text[:_CLIPPED]} {text[-_CLIPPED:]}"


class _Texts:
    """Texts at a path, and what several columns read of them, once."""

    def __init__(self, texts: list[str]) -> None:
        self.whole = texts
        self.texts = list(map(_clipped, texts))

    @cached_property
    def pieces(self) -> list[list[str]]:
        """What is between numbers, and the numbers, in turns."""
        return list(map(_NUMBER.split, self.texts))

    def columns(self, part: Part, columns: Sequence[TextColumn]) -> Matrix:
        """Columns of one part, shape (columns, texts)."""
        match part:
            case "length":
                read = [list(map(float, map(len, self.whole)))] * len(columns)
            case "number" | "last digits":
                read = [self._numbers(column) for column in columns]
            case "word":
                read = self._words({column.which: place for place, column in enumerate(columns)})
            case "character":
                return self._characters(columns)
            case _:
                keys = list(map(_CODED[part], self.texts))
                read = [[known.get(key, -1.0) for key in keys] for known in map(_codes_of, columns)]
        return np.array(read, dtype=np.float64)

    def _numbers(self, column: TextColumn) -> list[float]:
        place = 2 * int(column.which) + 1
        found = [each[place] if place < len(each) else "nan" for each in self.pieces]
        if column.part == "number":
            return list(map(float, found))
        return [last_digits(int(number)) if _is_whole(number) else math.nan for number in found]

    def _words(self, places: dict[int | str, int]) -> list[list[float]]:
        times = [[0.0] * len(self.texts) for _ in places]
        for row, text in enumerate(self.texts):
            for word in _WORD.findall(text):
                if (place := places.get(word)) is not None:
                    times[place][row] += 1.0
        return times

    def _characters(self, columns: Sequence[TextColumn]) -> Matrix:
        """The codes of characters by their code points; the end of a text comes before all of these."""
        places = [int(column.which) for column in columns]
        texts = np.array(self.texts, dtype=f"U{max(places) + 1}")
        points = texts.view(np.uint32).reshape(len(texts), -1)[:, places].T.astype(np.int64)
        points[np.array(places)[:, None] >= np.array(list(map(len, self.texts)))] = -1
        codes = np.full(points.shape, -1.0)
        for column, row, own in zip(columns, points, codes, strict=True):
            known = np.array([ord(text) if text else -1 for text in column.known])
            code = np.minimum(np.searchsorted(known, row), len(known) - 1)
            np.copyto(own, code, where=known[code] == row)
        return codes


def _is_whole(number: str) -> bool:
    return number.lstrip("+-").isdigit() and len(number) <= _SHORT


def _codes_of(column: TextColumn) -> dict[str, float]:
    return {text: float(code) for code, text in enumerate(column.known)}


_CODED: dict[Part, Callable[[str], str]] = {
    "template": lambda text: _NUMBER.sub("#", text),
    "start": lambda text: text[:_ENDS],
    "end": lambda text: text[-_ENDS:],
}


def learn_texts(x: Outputs, y: Outputs) -> TextColumns | None:
    """Learn columns from outputs on x and on y; None without texts that rarely recur."""
    sides = [{path: texts for path, (_, texts) in _texts(part[:LEARNED]).items()} for part in (x, y)]
    times = {path: sum(len(side.get(path, ())) for side in sides) for path in sides[0] | sides[1]}
    limits: set[str] = set()
    each = []
    for path in sorted(times, key=lambda path: -times[path]):
        texts = [side.get(path, []) for side in sides]
        if not any(len(set(side)) > min(MOST_CODES, max(_HARDLY * len(side), 1)) for side in texts):
            continue
        if any(len(text) > 2 * _CLIPPED for side in texts for text in side):
            limits.add(f"{_CLIPPED:,} characters at each end")
        each.append(_columns(path, *(list(map(_clipped, side)) for side in texts), limits=limits))
    columns = list(chain.from_iterable(each))
    most = max(_MOST_COLUMNS, len(each))
    if len(columns) > most:
        in_turn = zip_longest(
            *(sorted(found, key=lambda column: _RANKS.get(column.part, len(_RANKS))) for found in each)
        )
        leave_out(
            "texts",
            f"of the {len(columns):,} numbers, words and characters in {len(each):,} texts of an output, {most:,} were "
            "examined, numbers first; output= audits a single text",
        )
        kept = set(list(filter(None, chain.from_iterable(in_turn)))[:most])
        columns = [column for column in columns if column in kept]
    if limits:
        leave_out("long texts", f"of texts with more, only these were examined: {', '.join(sorted(limits))}")
    return TextColumns(tuple(columns)) if columns else None


def _texts(outputs: Outputs) -> dict[Path, tuple[list[int], list[str]]]:
    """The texts by path, after the places of the outputs that have them."""
    found = {}
    for path, (places, leaves) in leaves_by_path(outcome_list(outputs))[1].items():
        told = [
            (place, text) for place, leaf in zip(places, leaves, strict=True) if (text := equal_text(leaf)) is not None
        ]
        if told:
            found[path] = [place for place, _ in told], [text for _, text in told]
    return found


def _columns(path: Path, *sides: Sequence[str], limits: set[str]) -> list[TextColumn]:
    """The columns of the texts at a path, those that are easy to understand first; adds what else these may have."""
    both = [text for side in sides for text in side]
    longest = max(map(len, both))
    words = [Counter(word for text in side for word in set(_WORD.findall(text))) for side in sides]
    apart = {
        word: abs(words[0][word] - words[1][word]) / math.sqrt(times)
        for word, times in (words[0] + words[1]).items()
        if times >= _LEAST and words[0][word] != words[1][word]
    }
    found = [TextColumn(path, "word", word) for word in sorted(apart, key=lambda word: (-apart[word], word))[:_WORDS]]
    for part, read in _CODED.items():
        counts = Counter(map(read, both))
        known = [text for text, times in counts.most_common() if times >= _LEAST]
        short = tuple(text for text in known if len(text) <= _LONGEST)[:MOST_CODES]
        if len(short) < len(known):
            limits.add(f"{MOST_CODES} common {part}s of up to {_LONGEST} characters")
        if short:
            found.append(TextColumn(path, part, known=short))
    numbers = [_NUMBER.findall(text) for text in both]
    usual = int(np.median(list(map(len, numbers))))
    if max(map(len, numbers)) > min(usual, _NUMBERS):
        limits.add(f"the first {min(usual, _NUMBERS)} numbers")
    for place in range(min(usual, _NUMBERS)):
        if len({each[place] for each in numbers if place < len(each)}) == 1:
            continue  # such as the number of an item
        found.append(TextColumn(path, "number", place))
        if any(_is_whole(each[place]) and abs(int(each[place])) > EXACT for each in numbers if place < len(each)):
            found.append(TextColumn(path, "last digits", place))
    if longest > _SHORT:
        limits.add(f"the first {_CHARACTERS} characters one by one")
    for place in range(longest if longest <= _SHORT else _CHARACTERS):
        characters = Counter(text[place : place + 1] for text in both)
        common = [character for character, _ in characters.most_common(MOST_CODES)]
        if len(common) > 1:
            found.append(TextColumn(path, "character", place, tuple(sorted(common))))
    return [*found, TextColumn(path, "length")]
