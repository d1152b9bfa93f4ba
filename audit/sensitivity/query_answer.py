"""What a query returned, as numbers by the names of its parts, and how far two answers are apart.

Whole numbers are subtracted exactly for every type: neither does an int8 overflow here, nor does a double lose
digits of numbers beyond 2⁵³.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError
from ..events.named_parts import (
    columns_of_table,
    distinct_keys,
    is_foreign_array,
    is_table,
    label_text,
    numpy_of,
    parts_of,
)
from ..events.outputs import outcome_key
from ..printing import shorten

Norm: TypeAlias = Literal["l1", "l2", "linf"]
Path: TypeAlias = tuple[Hashable, ...]
Numbers: TypeAlias = npt.NDArray[Any]

_WHOLE = 2**53  # doubles represent every whole number up to here
_DEEPEST = 20  # levels of nested parts


@dataclass(frozen=True, slots=True)
class Answer:
    """The numbers that a query returned, by the labels that lead to them."""

    parts: dict[Path, Numbers]  # doubles, or Python's whole numbers where these are larger than a double holds
    lengths: dict[Path, int]  # of lists and tuples of parts
    is_whole: bool  # whether all numbers are whole numbers by type, which have no rounding errors

    @property
    def is_finite(self) -> bool:
        """Whether no number is NaN or infinite."""
        return all(part.dtype == object or bool(np.isfinite(part).all()) for part in self.parts.values())

    @property
    def size(self) -> int:
        """Number of numbers."""
        return sum(part.size for part in self.parts.values())


@dataclass(frozen=True, slots=True)
class Change:
    """How far two answers are apart."""

    size: float  # norm of the difference; infinite if nothing bounds it
    reason: str = ""  # why the change is infinite
    only_x: tuple[str, ...] = ()  # names of parts that only one answer has
    only_y: tuple[str, ...] = ()


def answer_of(output: Any) -> Answer:
    """Return the numbers of what a query returned; raise a `DatasetError` for anything but numbers."""
    parts: dict[Path, Numbers] = {}
    lengths: dict[Path, int] = {}
    are_whole = [_read(leaf, path, parts, output) for path, leaf in _leaves(output, (), lengths, 0)]
    return Answer(parts, lengths, all(are_whole))


def change_between(x: Answer, y: Answer, norm: Norm) -> Change:
    """Return how far two answers are apart in a norm.

    A part that only one answer has counts as 0 in the other. Equal numbers do not change, NaN and infinite ones
    included; any other change to or from such a number is infinite, and so is a change of the shape of an array.
    """
    steps = list[Numbers]()
    only_x, only_y = (
        () if x.parts.keys() == y.parts.keys() else tuple(path_text(path) for path in a.parts if path not in b.parts)
        for a, b in ((x, y), (y, x))
    )
    for path, length in x.lengths.items():
        if y.lengths.get(path, length) != length:
            reason = f"{length} parts on x, {y.lengths[path]} on y{_of(path)}"
            return Change(math.inf, reason=reason)
    for path in x.parts.keys() | y.parts.keys():
        a, b = (side.parts.get(path) for side in (x, y))
        a, b = np.zeros_like(b) if a is None else a, np.zeros_like(a) if b is None else b
        if a.shape != b.shape:
            return Change(math.inf, reason=f"shape {a.shape} on x, {b.shape} on y{_of(path)}")
        a, b = a.ravel(), b.ravel()
        step = _step(a, b)
        if step is None:
            return Change(math.inf, reason=f"{_odd(a, b)}{_of(path)}", only_x=only_x, only_y=only_y)
        steps.append(step)
    size = _norm(np.concatenate(steps) if len(steps) != 1 else steps[0], norm) if steps else 0.0
    return Change(size, "", only_x, only_y)


def norm_of(answer: Answer, norm: Norm) -> float:
    """Return the norm of the finite numbers of an answer."""
    held = [part if part.dtype == object else np.where(np.isfinite(part), part, 0.0) for part in answer.parts.values()]
    return _norm(np.concatenate([part.ravel() for part in held]), norm) if held else 0.0


def path_text(path: Path) -> str:
    """Return the name of a part, such as "mean" or "counts.a"."""
    return ".".join(map(label_text, path))


def answer_text(answer: Answer) -> str:
    """Return an answer on a short line."""
    shown = {path_text(path): part.tolist() for path, part in answer.parts.items()}
    return shorten(shown[""] if list(shown) == [""] else shown)


def _of(path: Path) -> str:
    return f" ({path_text(path)})" if path else ""


def _leaves(value: Any, path: Path, lengths: dict[Path, int], depth: int) -> Iterator[tuple[Path, Any]]:
    """Yield the numbers and arrays in an output, with the labels that lead to them."""
    kind = type(value)
    if kind is float or kind is int or depth > _DEEPEST or (kind is np.ndarray and value.dtype.names is None):
        yield path, value
        return
    if is_table(value):
        parts = _cells(value)
    elif isinstance(value, np.ndarray) and value.dtype.names is not None:
        parts = iter((name, value[name]) for name in value.dtype.names)
    elif (named := parts_of(value)) is not None and not (hasattr(value, "to_numpy") and not named):
        parts = iter(named)
    elif kind in (list, tuple) and not all(isinstance(each, numbers.Real) for each in value) and _is_ragged(value):
        lengths[path] = len(value)
        parts = iter(enumerate(value))
    else:
        yield path, value
        return
    for label, part in parts:
        yield from _leaves(part, (*path, outcome_key(label)), lengths, depth + 1)


def _is_ragged(values: Any) -> bool:
    """Whether a list does not convert into an array of numbers."""
    try:
        return np.asarray(values).dtype.kind not in "biuf"
    except ValueError:
        return True


def _cells(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the columns' values of a data frame, each with its column and the label of its row."""
    index: Any = getattr(table, "index", None)
    rows = distinct_keys(index.tolist()) if hasattr(index, "tolist") else list(range(len(table)))
    for name, column in columns_of_table(table):
        for row, value in zip(rows, column.to_list(), strict=True):
            yield (name, row), value


def _read(value: Any, path: Path, parts: dict[Path, Numbers], output: Any) -> bool:
    """Keep a part as an array of numbers; return whether they are whole numbers by type."""
    try:
        array = numpy_of(value) if is_foreign_array(value) else np.asarray(value)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind == "f":
        parts[path] = array.astype(np.float64)  # a copy, since the query may fill its array again
        return False
    if array.dtype.kind in "biu":
        is_large = array.dtype.itemsize == 8 and array.size and max(-int(array.min()), int(array.max())) > _WHOLE
        parts[path] = array.astype(object if is_large else np.float64)
        return True
    held = [_exact(each) for each in array.flat] if array.dtype == object else [None]
    if any(each is None for each in held):
        raise DatasetError(
            f"the query returned {shorten(output)}, which is not made of numbers; return a number, an array, or named "
            "numbers, for every dataset.",
            part=path_text(path),
        )
    are_whole = all(isinstance(each, int) for each in held)
    flat = np.empty(len(held), dtype=object if are_whole else np.float64)
    flat[:] = held if are_whole else [_double(each) for each in held]
    parts[path] = flat.reshape(array.shape)
    return are_whole


def _exact(value: Any) -> int | float | None:
    """Return a number as a whole number of Python or a double; None for anything else."""
    if isinstance(value, (bool, np.bool_, numbers.Integral)):
        return int(value)
    if isinstance(value, (numbers.Real, Decimal)):
        return float(value)
    return None


def _step(a: Numbers, b: Numbers) -> Numbers | None:
    """Return the difference of two flat arrays; None if a number changes to or from NaN or infinity."""
    if a.dtype != b.dtype:  # one holds large whole numbers
        a, b = (_as_objects(side) for side in (a, b))
    if a.dtype == object:
        return None if any(each is None for each in (*a, *b)) else a - b
    with np.errstate(over="ignore", invalid="ignore"):
        step: Numbers = a - b
    if not np.isfinite(step).all():
        step = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, step)
        if not (np.isfinite(step) | (np.isfinite(a) & np.isfinite(b))).all():
            return None
    return step


def _as_objects(values: Numbers) -> Numbers:
    """Return numbers as exact fractions; None for those that are not finite."""
    exact = np.empty(len(values), dtype=object)
    exact[:] = [Fraction(each) if isinstance(each, int) or math.isfinite(each) else None for each in values.tolist()]
    return exact


def _odd(a: Numbers, b: Numbers) -> str:
    """Describe the first number that changes to or from NaN or infinity."""
    both = zip(a.tolist(), b.tolist(), strict=True)
    one, other = next(
        (one, other)
        for one, other in both
        if repr(one) != repr(other) and not all(isinstance(each, int) or math.isfinite(each) for each in (one, other))
    )
    return f"{shorten(one)} on x, {shorten(other)} on y"


def _norm(steps: Numbers, norm: Norm) -> float:
    """Return the norm of a flat array; infinite where a double cannot hold it."""
    if steps.size == 0:
        return 0.0
    sizes = np.abs(steps)
    largest = sizes.max()
    if norm == "linf" or sizes.size == 1 or not largest:
        return _double(largest)
    if steps.dtype == object:
        if norm == "l1":
            return _double(sizes.sum())
        return _double(largest) * float(np.linalg.norm([float(Fraction(size) / Fraction(largest)) for size in sizes]))
    with np.errstate(over="ignore", invalid="ignore"):
        found = sizes.sum() if norm == "l1" else largest * np.linalg.norm(sizes / largest)
    return float(found) if found == found else math.inf  # NaN where numbers are too large for a double


def _double(value: Any) -> float:
    """Return a number as a double, infinite if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
