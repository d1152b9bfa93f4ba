"""A part of an output that the caller names: by a column, key, field or attribute, by a place, or by a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..errors import AuditError, MechanismError, OptionError, described
from ..events.named_parts import (
    Entries,
    Part,
    columns_of_table,
    distinct,
    is_column,
    is_table,
    label_text,
    parts_of,
    shown,
)
from ..printing import shorten

OutputPart: TypeAlias = str | int | Callable[[Any], Any]
"""A name, or names joined by dots; a place; or a function of the output."""

_FARTHEST, _LONGEST = 10**9, 1000  # place, and characters of a path
_PLACE = re.compile(r"coordinate (\d+)|(?:output)?\[(\d+)\]|(\d+)")  # of vectors, as events print it
_MISSING = (LookupError, AttributeError, TypeError, ValueError)  # what a part that is not there raises


def check_choice(choice: Any) -> OutputPart | None:
    """Return what picks a part of the output, or None; raise an `OptionError` for anything else."""
    is_place = isinstance(choice, int | np.integer) and not isinstance(choice, bool) and abs(int(choice)) <= _FARTHEST
    if choice is None or is_place or (isinstance(choice, str) and 0 < len(choice) <= _LONGEST) or callable(choice):
        return int(choice) if is_place else choice
    raise OptionError(
        f'output={shorten(choice)} picks no part of an output; use a name such as "mean", a path such as "stats.mean", '
        "a place such as 0, or a function.",
        output=choice,
    )


def pick_from_run(output: Any, choice: OutputPart, name: str) -> Any:
    """Return the part of one output, with its name unless a function picked it.

    Raise a `MechanismError` if the output has no such part.

    Examples
    --------
    >>> pick_from_run({"stats": {"mean": 1.5}}, "stats.mean", "m")
    Part(name='stats.mean', value=1.5)
    >>> pick_from_run((1.5, 2.5), 1, "m"), pick_from_run((1.5, 2.5), max, "m")
    (Part(name='output[1]', value=2.5), 2.5)
    >>> pick_from_run((1.5, 2.5), "coordinate 1", "m")
    Part(name='output[1]', value=2.5)
    """
    if callable(choice):
        return _called(choice, output, name)
    choice = _place_of_vector(output, choice)
    try:
        if isinstance(choice, int):
            return Part(*_at_place(output, choice))
        try:
            return Part(choice, _at_path(output, choice, _named_or_placed))
        except _MISSING:
            return Part(choice, _at_path(output, _with_dots(choice), _named_or_placed))
    except _MISSING:
        raise _absent(output, choice, name) from None


def pick_from_block(raw: Any, choice: OutputPart, name: str) -> Any:
    """Return the part of a block of runs as a block sampler returns it; a function is given the whole block.

    Examples
    --------
    >>> pick_from_block(np.array([[1.5, 2.5], [3.5, 4.5]]), 1, "m")
    Part(name='output[1]', value=array([2.5, 4.5]))
    """
    if callable(choice):
        return _called(choice, raw, name, " (it is given the outputs of all runs together)")
    if isinstance(raw, (list, tuple)):
        return [pick_from_run(output, choice, name) for output in raw]
    choice = _place_of_vector(raw, choice)
    try:
        if is_table(raw):  # with a column for each part, also where it has a single row
            columns = _columns_of_table(raw)
            return Part(*columns[choice]) if isinstance(choice, int) else Part(choice, dict(columns)[choice])
        if is_column(raw) and choice in (0, raw.name):
            return Part(label_text(raw.name) or "output", raw)
        if isinstance(choice, str):
            return Part(choice, _column_at(raw, choice))
        if isinstance(raw, Mapping) or getattr(getattr(raw, "dtype", None), "names", None):
            return Part(*_at_place(raw, choice))
        return Part(f"output[{choice}]", raw[:, choice])
    except _MISSING:
        raise _absent(raw, choice, name, is_block=True) from None


def _place_of_vector(output: Any, choice: str | int) -> str | int:
    """Return the place that a text such as "coordinate 3", "output[3]" or "3" means in outputs without named parts.

    Examples
    --------
    >>> _place_of_vector([1.5, 2.5], "coordinate 1"), _place_of_vector({"1": 1.5}, "1"), _place_of_vector([0], "mean")
    (1, '1', 'mean')
    """
    if isinstance(choice, int) or (found := _PLACE.fullmatch(choice)) is None:
        return choice
    is_named = isinstance(output, Mapping) or _parts(output) is not None
    return choice if is_named or not hasattr(output, "__getitem__") else int(found[found.lastindex or 0])


def _column_at(raw: Any, path: str) -> Any:
    """Return the column of a block with this name or path, or that of a matrix, such as weights[1]."""
    try:
        return _at_path(raw, path, _named)
    except _MISSING:
        first, dot, place = _with_dots(path).rpartition(".")
        column = _at_path(raw, first, _named)
        if not (dot and place.isdigit() and getattr(column, "ndim", 1) == 2):
            raise
        return column[:, int(place)]


def _called(choice: Callable[[Any], Any], output: Any, name: str, hint: str = "") -> Any:
    try:
        return choice(output)
    except AuditError:
        raise
    except Exception as error:
        raise MechanismError(
            f"the function given as output= raised {described(error)} for an output of {name}{hint}; let it return a "
            "value for every output.",
            mechanism=name,
        ) from error


def _at_path(value: Any, path: str, named: Callable[[Any, str], Any]) -> Any:
    """Return the part with this name, or else at the path of the names between its dots."""
    try:
        return named(value, path)
    except _MISSING:
        first, dot, rest = path.partition(".")
        if not dot:
            raise
        return _at_path(_at_path(value, first, named), rest, named)


def _with_dots(path: str) -> str:
    """Return a path as events print it with dots only.

    Examples
    --------
    >>> _with_dots("weights[1]"), _with_dots("output['a'][0]")
    ('weights.1', 'a.0')
    """
    return re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", path).removeprefix("output.")


def _named_or_placed(value: Any, name: str) -> Any:
    """Return the part of one output with this name, or at this place."""
    try:
        return _named(value, name)
    except _MISSING:
        if isinstance(value, Mapping) or not name.isdigit():
            raise
        return value[int(name)]


def _named(value: Any, name: str) -> Any:
    if is_table(value):
        column = dict(_columns_of_table(value))[name]
        return column if len(column) != 1 else column[0] if not hasattr(column, "iloc") else column.iloc[0]
    if isinstance(value, Mapping) or hasattr(value, "iloc") or getattr(value, "dtype", None) is not None:
        try:
            if not isinstance(value, Mapping) or name in value:
                return value[name]
        except (LookupError, TypeError, ValueError):
            pass
        return {label_text(label): part for label, part in parts_of(value) or []}[name]
    found = getattr(value, name)
    if callable(found):  # a method, such as that of a tuple called "count"
        raise AttributeError(name)
    return found


def _columns_of_table(table: Any) -> list[tuple[str, Any]]:
    """Return the columns of a data frame with their names."""
    keys, columns = zip(*columns_of_table(table), strict=True)
    return list(zip(distinct(map(label_text, keys)), columns, strict=True))


def _at_place(value: Any, place: int) -> tuple[str, Any]:
    """Return the part at a place, with its name."""
    if isinstance(value, Mapping):
        if place not in value:
            raise KeyError(place)
        return str(place), value[place]
    if is_table(value):
        name, _ = _columns_of_table(value)[place]
        return name, _named(value, name)
    parts = parts_of(value)
    if parts is not None:
        label, part = parts[place]
        return label_text(label), part
    return f"output[{place}]", value.iloc[place] if hasattr(value, "iloc") else value[place]


def _parts(output: Any) -> Entries | None:
    """Return the named parts of an output, or of a block; None if it has none or cannot be read."""
    try:
        return _columns_of_table(output) if is_table(output) else parts_of(output)
    except Exception:  # the user's class may raise anything when it is read
        return None


def _absent(output: Any, choice: OutputPart, name: str, *, is_block: bool = False) -> MechanismError:
    parts, places = _parts(output), _n_places(output, is_block)
    if known := ", ".join(shown(label_text(label)) for label, _ in parts or []):
        is_place = isinstance(output, Mapping) and isinstance(choice, int)
        what = f" with the parts {known}"
        remedy = "name a key, as keys have no order" if is_place else "name another part"
    elif places:
        what = f", which has {places:,} coordinate{'s' * (places > 1)}"
        remedy = f"name a place from 0 to {places - 1}, such as output={places - 1}" if places > 1 else "use output=0"
    else:
        what = "" if is_block else f" of type {type(output).__name__}"
        what, remedy = f"{what}, which has no parts", "leave out output="
    return MechanismError(
        f"output={choice!r} is not a part of an output of {name}{what}; {remedy}, or pass a function that returns a "
        "value for every output.",
        mechanism=name,
        output=choice,
    )


def _n_places(output: Any, is_block: bool) -> int:
    """Return the number of coordinates of an output, or of each output of a block; 0 if it has none."""
    if is_block:
        shape: tuple[int, ...] = getattr(output, "shape", ())
        return int(shape[1]) if len(shape) == 2 else 0
    if isinstance(output, (str, bytes)) or not hasattr(output, "__getitem__"):
        return 0
    try:
        return len(output)
    except TypeError:
        return 0
