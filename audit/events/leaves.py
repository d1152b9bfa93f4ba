"""Outputs of any kind as columns of their leaves.

Leaves are the parts of nested tuples and the values of dictionaries by key. A numeric leaf fills one column; any other
leaf (a string, an Enum, None) fills another column with a code, and one with the number that it states if it is the
text of a number. Whole numbers beyond 2⁵³ fill a second column with their last digits. The form of the output (lengths
of tuples and kinds of leaves) is a code as well. Missing parts are NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from .features import LAST_WORDS, Columns, Matrix, exceeds_a_double, last_digits, leave_out
from .named_parts import Dictionary, outcome_text
from .outputs import Outputs, Raised, is_real, number_of, outcome_key, outcome_list, outcome_words, output_words
from .plain_outputs import Foreign, is_whole, key_part

Path = tuple[int | str | Foreign, ...]
"""Position of a leaf in nested tuples and dictionaries: places and what stands for keys, and perhaps `SIZE` or `READ`
at the end."""

SIZE, READ, LAST = "len()", "float()", "modulo 720720·10⁹"
"""Ends of paths: to the number of entries of a dictionary, the number that a text states, and the digits of a
number that doubles do not hold."""

_NOTHING = object()
_MOST_PATHS = 1_024  # most paths of numbers, and of other leaves, with a column, the most frequent ones
MOST_CODES = 256  # most leaves at one path, and most forms, with their own code
LEARNED = 20_000
"""Outputs on each side from which paths and codes are learned, or thousands of candidates are compared."""
_EXAMPLES = 2  # of values that are not numbers


@dataclass(frozen=True, slots=True)
class Leaves(Columns):
    """The leaves of outputs that may be nested, of different lengths, and not only numbers."""

    builds: tuple[Any, ...]  # forms of the outputs, by code
    paths: tuple[Path, ...]  # paths of the numeric leaves
    coded: tuple[tuple[Path, tuple[Any, ...]], ...]  # paths of the other leaves, each with its values by code
    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        paths = (*self.paths, *(path for path, _ in self.coded))
        return ("form of the output", *(place_words(path, self.column_names) for path in paths))

    @property
    def kinds(self) -> list[int]:
        """Columns of codes that do more than name the whole outcome."""
        coded = enumerate((path for path, _ in self.coded), start=1 + len(self.paths))
        return [0] * (len(self.builds) > 1) + [column for column, path in coded if path]

    @property
    def numbers(self) -> list[int]:
        """Columns of numbers in the output, and not of how many entries a dictionary has, or of last digits."""
        return [column for column, path in enumerate(self.paths, start=1) if path[-1:] not in ((SIZE,), (LAST,))]

    def subject(self, column: int) -> str:
        return self.names[column] if column else place_words((), self.column_names)

    def codes(self, column: int) -> list[str] | None:
        if column == 0:
            known = dict(self.coded)
            return [_build_words(build, known, self.column_names) for build in self.builds]
        place = column - 1 - len(self.paths)
        return None if place < 0 else list(map(outcome_words, self.coded[place][1]))

    def can_be_absent(self, column: int) -> bool:
        return column != 0  # every output has a form

    def read(self, outputs: Outputs) -> Matrix:
        values = outcome_list(outputs)
        found = np.full((1 + len(self.paths) + len(self.coded), len(values)), np.nan)
        builds = {build: float(code) for code, build in enumerate(self.builds)}
        found[0] = [builds.get(_build(value), -1.0) for value in values]
        numbers, others = leaves_by_path(values)
        for row, path in zip(found[1:], self.paths, strict=False):
            is_last = path[-1:] == (LAST,)
            places, leaves = numbers.get(path[:-1] if is_last else path, ([], []))
            row[places] = list(map(last_digits if is_last else number_of, leaves))
        for row, (path, known) in zip(found[1 + len(self.paths) :], self.coded, strict=True):
            places, leaves = others.get(path, ([], []))
            codes = _codes(known)
            row[places] = [codes.get(outcome_key(leaf), -1.0) for leaf in leaves]
        return found


def _codes(known: tuple[Any, ...]) -> dict[Any, float]:
    return {outcome_key(leaf): float(code) for code, leaf in enumerate(known)}


@dataclass(frozen=True, slots=True)
class Summaries(Columns):
    """What a whole output says, wherever its parts are: how many parts and numbers, the smallest and largest number."""

    column_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        what = output_words(self.column_names)
        return tuple(f"{words} in {what}" for words in _SUMMARIES)

    def read(self, outputs: Outputs) -> Matrix:
        rows = [_summary(output) for output in outcome_list(outputs)]
        return np.ascontiguousarray(np.array(rows, dtype=np.float64).reshape(len(rows), len(_SUMMARIES)).T)


_SUMMARIES = ("number of parts", "number of numbers", "smallest number", "largest number")


def _summary(output: Any) -> tuple[float, ...]:
    leaves = [leaf for path, leaf in leaves_of(output) if not path or path[-1] not in (SIZE, READ)]
    numbers = [number for number in map(number_of, leaves) if not math.isnan(number)]
    return len(leaves), len(numbers), min(numbers, default=math.nan), max(numbers, default=math.nan)


def learn_leaves(x: Outputs, y: Outputs) -> Leaves:
    """Learn the columns from outputs on x and y in turns: codes of equally frequent leaves do not tell these apart."""
    in_turns = zip_longest(outcome_list(x[:LEARNED]), outcome_list(y[:LEARNED]), fillvalue=_NOTHING)
    outputs = [each for pair in in_turns for each in pair if each is not _NOTHING]
    numbers, others = leaves_by_path(outputs)
    builds = Counter(map(_build, outputs))
    paths = Counter({path: len(found) for path, (_, found) in numbers.items()})
    leaves = {path: Counter(map(outcome_key, found)) for path, (_, found) in others.items()}
    beyond = [path for path, (_, found) in numbers.items() if any(map(exceeds_a_double, found))]
    paths.update({(*path, LAST): paths[path] for path in beyond})
    _note_limits(builds, paths, leaves)
    coded = sorted(leaves, key=lambda path: -leaves[path].total())[:_MOST_PATHS]
    return Leaves(
        tuple(build for build, _ in builds.most_common(MOST_CODES)),
        tuple(sorted((path for path, _ in paths.most_common(_MOST_PATHS)), key=_order)),
        tuple(
            (path, tuple(leaf for leaf, _ in leaves[path].most_common(MOST_CODES)))
            for path in sorted(coded, key=_order)
        ),
    )


def _note_limits(builds: Counter[Any], paths: Counter[Path], leaves: Mapping[Path, Counter[Any]]) -> None:
    """Note the parts without a column, and the values that recur and have no code of their own."""
    for found, what in ((paths, "numbers"), (leaves, "other parts")):
        if len(found) > _MOST_PATHS:
            leave_out(what, f"of {len(found):,} {what} of outputs, the {_MOST_PATHS:,} commonest were read")
    coded = {"the form of the output": builds} | {place_words(path): values for path, values in leaves.items()}
    # A value that does not recur tells nothing about other runs.
    cut = {name: values for name, values in coded.items() if sum(times > 1 for times in values.values()) > MOST_CODES}
    if cut:
        name, values = next(iter(cut.items()))
        more = f", and so for {len(cut) - 1:,} more parts" if len(cut) > 1 else ""
        note = f"of {len(values):,} values of {name}, the {MOST_CODES} commonest were distinguished by this part{more}"
        leave_out("codes", note)


Found: TypeAlias = dict[Path, tuple[list[int], list[Any]]]
"""Leaves by path, after the places of the outputs that have them."""


def leaves_by_path(outputs: Sequence[Any]) -> tuple[Found, Found]:
    """Return the numbers among the leaves of outputs, and the other leaves: path by path, not output by output."""
    numbers: Found = {}
    others: Found = {}
    _add_leaves(numbers, others, (), list(range(len(outputs))), outputs)
    return numbers, others


def _add_leaves(numbers: Found, others: Found, path: Path, places: list[int], values: Sequence[Any]) -> None:
    """Add the leaves of outputs, or of their parts at a path."""
    kinds = dict(zip(map(type, values), values, strict=True))  # each with an example
    if Dictionary in kinds:
        own, dictionaries = _of_kinds({Dictionary}, kinds, places, values)
        _add(numbers, (*path, SIZE), own, [len(each.entries) for each in dictionaries])
        parts: dict[Any, tuple[list[int], list[Any]]] = {}
        for place, each in zip(own, dictionaries, strict=True):
            for key, part in each.entries:
                if key not in parts:
                    parts[key] = [], []
                parts[key][0].append(place)
                parts[key][1].append(part)
        for key, (having, values_of_key) in parts.items():
            _add_leaves(numbers, others, (*path, key_part(key)), having, values_of_key)
    if tuple in kinds:
        own, tuples = _of_kinds({tuple}, kinds, places, values)
        for number in range(max(map(len, tuples))):
            longer = [(place, each) for place, each in zip(own, tuples, strict=True) if len(each) > number]
            own, tuples = [place for place, _ in longer], [each for _, each in longer]
            _add_leaves(numbers, others, (*path, number), own, [each[number] for each in tuples])
    real = {kind for kind, value in kinds.items() if is_real(value)}
    rest = kinds.keys() - real - {Dictionary, tuple}
    if real:
        _add(numbers, path, *_of_kinds(real, kinds, places, values))
    if rest:
        _add(others, path, *_of_kinds(rest, kinds, places, values))
    if texts := {kind for kind in rest if issubclass(kind, str)}:
        own, leaves = _of_kinds(texts, kinds, places, values)
        stated = {text: stated_number(text) for text in set(leaves)}
        read = [(place, stated[text]) for place, text in zip(own, leaves, strict=True) if stated[text] is not None]
        if read:
            _add(numbers, (*path, READ), [place for place, _ in read], [number for _, number in read])


def _add(found: Found, path: Path, places: list[int], leaves: list[Any]) -> None:
    own = found.setdefault(path, ([], []))
    own[0].extend(places)
    own[1].extend(leaves)


def _of_kinds(
    wanted: Collection[Any], kinds: Collection[Any], places: list[int], values: Sequence[Any]
) -> tuple[list[int], list[Any]]:
    """Return the values of some of their kinds, with their places."""
    if len(wanted) == len(kinds):
        return places, list(values)
    held = [(place, value) for place, value in zip(places, values, strict=True) if type(value) in wanted]
    return [place for place, _ in held], [value for _, value in held]


def leaves_of(output: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the leaves of an output, each with its path."""
    if type(output) is Dictionary:
        yield (*path, SIZE), len(output.entries)
    for place, part in _parts(output, path):
        yield from leaves_of(part, place)
    if type(output) not in (tuple, Dictionary):
        yield path, output
        if isinstance(output, str) and (number := stated_number(output)) is not None:
            yield (*path, READ), number


def stated_number(text: str) -> float | None:
    """Return the finite number that a text states; None if it states none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _order(path: Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple((False, part, "") if isinstance(part, int) else (True, 0, str(part)) for part in path)


def _build(output: Any) -> Any:
    """Return the form of an output: nested tuples of whether each leaf is a number; a word for other outputs."""
    if type(output) is Dictionary:
        return "a dictionary"
    if isinstance(output, Raised):
        return "an exception"
    return tuple(map(_build, output)) if type(output) is tuple else is_real(output)


def _build_words(
    build: Any, known: Mapping[Path, tuple[Any, ...]], names: tuple[str, ...] = (), path: Path = ()
) -> str:
    """Return what names outputs of a form, or what they have at a path, with examples from the known leaves."""
    if names and build == "a dictionary":
        return "a record with other parts"
    if names and build == (True,) * len(names):
        return output_words(names)
    if type(build) is tuple:
        each = ", ".join(_build_words(part, known, path=(*path, place)) for place, part in enumerate(build))
        parts = "numbers" if all(part is True for part in build) else each
        return f"a tuple of {len(build)}{f' ({parts})' if build else ''}"
    if isinstance(build, str) or build:
        return build if isinstance(build, str) else "a number"
    examples = [outcome_words(leaf) for leaf in known.get(path, ()) if not isinstance(leaf, Raised)][:_EXAMPLES]
    return f"a value such as {' or '.join(examples)}" if examples else "a value that is not a number"


def place_words(path: Path, names: tuple[str, ...] = ()) -> str:
    """Return what names the leaf at a path in outputs whose columns have these names."""
    if path and path[-1] == LAST:
        return f"{place_words(path[:-1], names)} {LAST_WORDS}"
    if path and path[-1] in (SIZE, READ):
        return str(path[-1]).replace("()", f"({place_words(path[:-1], names)})")
    column = path[0] if path and len(names) > 1 else None
    if isinstance(column, int) and column < len(names):
        start, path = names[column], path[1:]
    else:
        start = names[0] if len(names) == 1 else "output"
    return start + "".join(f"[{place}]" for place in path)


# Numbers by their keys, wherever in an output the keys stand.
#
# Histograms, selected partitions and tables are often lists of rows whose order and number vary, so that no place in
# the output belongs to a key. A part of a row that is not a decimal number is a key, and the numbers in the other
# parts are its values: ``[("a", 2.1), ("b", 0.4)]``, ``[{"key": "a", "count": 2.1}]``, or lists side by side, as in
# ``{"key": ["a", "b"], "count": [2.1, 0.4]}``. Rows without such values are counted, and so are keys in lists and sets
# of keys. Any other number is named by its place in the output, which includes the key of a dictionary.

EACH = "…"
"""The place of a row in its list. Texts of keys have quotation marks, so no key has this name."""

_MOST_KEYS = 3  # of a row, texts before others

Name = tuple[Path, Any, Path]
"""Where a key stands, the key, and where its value stands. A key that is counted stands in place of its value. A number
that is named only by its place has an empty path and None for a key."""

Parts = list[tuple[Path, Any]]
"""The parts of an output or of a row, each with its place."""


@dataclass(frozen=True, slots=True)
class KeyedValues(Columns):
    """The values of some keys: the largest if a key has several, NaN if it has none; or the count of a key."""

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
    """Yield the numbers of an output with their names, and 1 for each key counted, in no order of sets."""
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
    """Rows of lists of equal length, one with keys (in a tuple, not numbers) and one with numbers; and the rest."""
    lists = [(place, part) for place, part in parts if type(part) is tuple and part]
    for _, keys in lists:
        if not all(_is_key(key) and (named or not is_real(key)) for key in keys):
            continue
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
    keys = sorted(keys, key=lambda key: type(key[1]) is not str)[:_MOST_KEYS]
    numbers = [
        (own, place, number_of(leaf)) for own, part in row for place, leaf in leaves_of(part, own) if is_real(leaf)
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
