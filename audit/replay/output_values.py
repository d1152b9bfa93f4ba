"""Outputs of single runs: copies of them, whether two are equal, and their numbers.

An output is read as a form and its numbers. The form has all else: types of containers, keys and labels, shapes, texts.
Two outputs are compared number by number only if their forms agree.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..datasets.contents import Reader

EXACT: Final = 2**53
"""The largest size of whole numbers up to which doubles hold all."""
_LEAST: Final = 5e-324


class _IncomparableError(Exception):
    """The type of an output, or of a part of it, does not say whether two of them are equal."""


@dataclasses.dataclass(frozen=True, slots=True)
class NotCopied:
    """Stands for an output that cannot be copied, which the next run may change."""

    kind: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """An object that says by itself what it equals."""

    held: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Own) or type(self.held) is not type(other.held):
            return False
        try:
            return bool(self.held == other.held)
        except Exception as error:  # an output's own comparison may raise anything
            raise _IncomparableError from error


def kept(output: Any) -> Any:
    """Return a copy of an output, which later runs cannot change; `NotCopied` if it cannot be copied."""
    if type(output) in (float, int, str, bool, type(None)):
        return output
    try:
        held = copy.deepcopy(output)
    except Exception:  # an object's own copying may raise anything
        return NotCopied(type(output).__name__)
    is_whole = type(output) is np.ndarray or same_output(output, held) is not False  # a copy may leave attributes out
    return held if is_whole else NotCopied(type(output).__name__)


def same_output(first: Any, second: Any) -> bool | None:
    """Return whether two outputs agree in form and numbers, NaN included; None if a type does not say."""
    try:
        (form, numbers), (other_form, other_numbers) = _read(first), _read(second)
        return bool(form == other_form) and len(numbers) == len(other_numbers) and _equal(numbers, other_numbers)
    except _IncomparableError:
        return None


def same_form(first: Any, second: Any) -> bool:
    """Return whether two outputs differ in numbers only; not if a type does not say."""
    try:
        return bool(_read(first)[0] == _read(second)[0])
    except _IncomparableError:
        return False


def numbers_of(output: Any) -> npt.NDArray[np.float64] | None:
    """Return the numbers of an output in a row; None if a part has no form, or a number is too large for a double."""
    try:
        numbers = _read(output)[1]
    except _IncomparableError:
        return None
    if any(isinstance(number, int) and abs(number) > EXACT for number in numbers):
        return None
    return np.array(numbers, dtype=np.float64)


def is_of_single_precision(output: Any) -> bool:
    """Return whether an output has numbers of less precision than doubles."""
    try:
        form = repr(_read(output)[0])
    except _IncomparableError:
        return False
    return "float32" in form or "float16" in form


def output_distance(first: Any, second: Any) -> float | None:
    """Return the ℓ1 norm of the difference of two outputs; None if they differ in form or hold no numbers."""
    a, b = numbers_of(first), numbers_of(second)
    if a is None or b is None or not same_form(first, second):
        return None
    return float(np.sum(np.abs(difference(a, b))))


def difference(y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return y − x; 0 where both are the same infinity or NaN, and the smallest number for zeros of unlike signs."""
    with np.errstate(invalid="ignore"):
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, y - x)
    return np.where((x == 0.0) & (y == 0.0) & (np.signbit(x) != np.signbit(y)), _LEAST, apart)


def _equal(first: list[Any], second: list[Any]) -> bool:
    pairs = zip(first, second, strict=True)  # whole numbers of any size are compared exactly
    return all((a == b and (a != 0 or _sign(a) == _sign(b))) or (a != a and b != b) for a, b in pairs)


def _sign(zero: float) -> float:
    return math.copysign(1.0, zero)


def _read(output: Any) -> tuple[Any, list[Any]]:
    reader = _OfOutput([])
    return reader.form(output), reader.found


@dataclasses.dataclass(frozen=True, slots=True)
class _OfOutput(Reader):
    """Reads an output; its numbers are kept apart from the form."""

    found: list[Any]
    dictionaries = Mapping
    apart = frozenset({float, int})

    def number(self, number: Any) -> Any:
        self.found.append(int(number) if isinstance(number, (int, np.integer)) else float(number))

    def numbers(self, numbers: list[Any]) -> Any:
        self.found.extend(numbers)

    def array(self, values: Any) -> Any:
        if values.dtype.kind in "iuf":
            self.found.extend(values.reshape(-1).tolist())
        elif values.dtype.kind == "c":
            self.found.extend([*values.real.reshape(-1).tolist(), *values.imag.reshape(-1).tolist()])
        else:
            return values.tolist()
        return None

    def itself(self, value: Any) -> Any:
        if isinstance(value, (type, enum.Enum)):
            return Reader.itself(self, value)
        raise _IncomparableError

    def object(self, value: Any) -> Any:
        kind: Any = type(value)
        if dataclasses.is_dataclass(value) and kind is not NotCopied:
            return None
        if callable(value) or hasattr(value, "__next__") or kind.__eq__ is object.__eq__ or kind is NotCopied:
            raise _IncomparableError
        return _Own(value)

    def label(self, label: Any, depth: int) -> Any:
        apart = _OfOutput([])
        return apart.form(label, depth), list(map(repr, apart.found))
