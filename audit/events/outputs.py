"""Outputs of a mechanism: validation, and views of them as numbers, vectors or outcomes."""

from __future__ import annotations

import enum
import math
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import MechanismError
from .dictionaries import Dictionary
from .foreign_arrays import is_foreign_array
from .named_columns import columns_of_block, read_array, rows_of
from .outcome_text import printed
from .records import Form, Part, entries_of

Outputs: TypeAlias = npt.NDArray[Any]
"""The outputs of one block: shape (runs,) numeric or of objects, or (runs, n_coords) numeric."""

_DEEPEST = 100  # levels of nested tuples
_LONGEST_NAMES = 60  # characters of the names of all columns in front of an outcome
_CLOSE = 1 << 12  # integers within such a range are counted in an array
_PLAIN = frozenset({float, int, bool, str, type(None)})  # hashable and compared by value


@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a run that raised: the type of the exception, which an adversary observes."""

    exception: str

    def __str__(self) -> str:
        return f"raises {self.exception}"


def as_outputs(raw: Any, size: int, name: str, form: Form | None = None) -> Outputs:
    """Return `raw` as an array of `size` outputs: numeric of one or two dimensions, or a vector of hashable objects.

    Floats below double precision become doubles, which hold them exactly. Records of the `form` become vectors of their
    columns, in a form with one column its values. Anything else raises a `MechanismError`.
    """
    if isinstance(raw, np.ma.MaskedArray):
        raise MechanismError(f"{name} returned a masked array, whose mask is not an output; fill it.", mechanism=name)
    columns = columns_of_block(raw)
    if columns is not None:
        raw = rows_of(columns, size, name, form)
    elif is_foreign_array(raw):
        raw = read_array(raw, name)
    if isinstance(raw, np.ndarray):
        if raw.shape[:1] != (size,):
            raise MechanismError(
                f"{name} returned an array of shape {raw.shape} when asked for {size} outputs; return one output for "
                f"each run: shape ({size},) or ({size}, n_coords).",
                mechanism=name,
                shape=raw.shape,
                size=size,
            )
        if raw.dtype.kind in "biuf" and raw.ndim in (1, 2):
            return raw.astype(np.float64) if raw.dtype.kind == "f" and raw.dtype != np.float64 else raw
        if raw.dtype.kind not in "OUS" or raw.ndim > 2:
            raise MechanismError(
                f"{name} returned outputs of dtype {raw.dtype} and shape {raw.shape}; use real numbers, booleans, "
                "strings or hashable objects, in one or two dimensions.",
                mechanism=name,
                dtype=str(raw.dtype),
            )
        raw = raw.tolist()
    elif isinstance(raw, (str, bytes)) or not isinstance(raw, Sequence):
        raise MechanismError(
            f"{name} returned {type(raw).__name__} when asked for {size} outputs; return an array or a list with one "
            "output for each run.",
            mechanism=name,
            size=size,
        )
    if len(raw) != size:
        raise MechanismError(
            f"{name} returned {len(raw)} outputs when asked for {size}; return one output for each run.",
            mechanism=name,
            returned=len(raw),
            size=size,
        )
    return _pack(list(raw) if _PLAIN.issuperset(map(type, raw)) else [_in_form(output, name, form) for output in raw])


def _in_form(output: Any, name: str, form: Form | None) -> Any:
    """Return one output in a form that compares and hashes by value; a record of the form as its columns."""
    values = form.values_of(output) if form is not None and form.names and type(output) not in _PLAIN else None
    if values is None:
        return _plain(output, name)
    plain = tuple(_plain(value, name) for value in values)
    return plain if len(plain) > 1 else plain[0]


def _plain(output: Any, name: str, depth: int = 0) -> Any:
    """Return one output in a form that compares and hashes by value: arrays and lists become tuples.

    Dictionaries and records become `Dictionary`, in which the order of insertion does not matter.
    """
    if type(output) in _PLAIN:
        return output
    if depth > _DEEPEST:
        raise MechanismError(
            f"{name} returned an output that is nested more than {_DEEPEST} deep; return a flat output.", mechanism=name
        )
    if isinstance(output, np.ndarray):
        output = output.tolist()
    elif isinstance(output, np.generic):
        output = float(output) if isinstance(output, np.longdouble) else output.item()
    if isinstance(output, frozenset):
        for part in output:
            _plain(part, name, depth + 1)
    if isinstance(output, (list, tuple)):  # also named tuples, so that an output is read alike in every block
        return tuple(_plain(part, name, depth + 1) for part in output)
    if isinstance(output, dict):
        parts = ((_plain(key, name, depth + 1), _plain(value, name, depth + 1)) for key, value in output.items())
        return Dictionary.of(parts)
    if type(output) is Part:
        return _plain(output.value, name, depth + 1)
    if type(output) is not Dictionary and (entries := entries_of(output)) is not None:
        return Dictionary.of((_plain(key, name, depth + 1), _plain(value, name, depth + 1)) for key, value in entries)
    if is_foreign_array(output):
        return _plain(read_array(output, name), name, depth + 1)
    if isinstance(output, complex):
        raise MechanismError(f"{name} returned the complex number {output}; use a pair of reals.", mechanism=name)
    try:
        hash(output)
        bool(output == output)
    except Exception as error:  # a user's __hash__ and __eq__ may raise anything
        raise MechanismError(
            f"{name} returned an output of type {type(output).__name__}, which cannot be compared "
            f"({type(error).__name__}: {error}); return a number, a string, a tuple, or another hashable object that "
            "compares by value.",
            mechanism=name,
        ) from None
    if _compares_by_identity(output):
        raise MechanismError(
            f"{name} returned an output of type {type(output).__name__}, which equals nothing but itself, so the same "
            "output from another process is another outcome; give it __eq__ and __hash__, or return a string or an "
            "Enum.",
            mechanism=name,
        )
    return output


def _compares_by_identity(output: Any) -> bool:
    """Return whether a pickled copy would be unequal; objects with their own pickling, such as Enums, are exempt."""
    if output is None or isinstance(output, (type, FunctionType, BuiltinFunctionType)):
        return False
    kind: Any = type(output)
    return all(getattr(kind, name) is getattr(object, name) for name in ("__eq__", "__reduce__", "__reduce_ex__"))


def _pack(outputs: list[Any]) -> Outputs:
    """Pack numbers as a numeric vector, tuples of numbers of one length as a matrix, anything else as objects."""
    kind = _number_type(outputs)
    if kind is not None:
        return np.array(outputs, dtype=kind)
    first = outputs[0] if outputs else None
    if isinstance(first, tuple) and first and all(isinstance(o, tuple) and len(o) == len(first) for o in outputs):
        kind = _number_type([value for output in outputs for value in output])
        if kind is not None:
            return np.array(outputs, dtype=kind)
    return np.fromiter(outputs, dtype=object, count=len(outputs))


def _number_type(values: list[Any]) -> type[Any] | None:
    """Return the array type that holds all values without loss; None if there is none."""
    if set(map(type, values)) == {float}:
        return np.float64
    if not all(isinstance(value, (int, float)) for value in values):
        return None
    if all(isinstance(value, int) for value in values):
        return np.int64 if all(abs(value) < 2**62 for value in values) else None
    exact = all(abs(value) <= 2**53 for value in values if isinstance(value, int))
    return np.float64 if exact else None


def is_real(output: Any) -> bool:
    """Return whether an output is a real number, `Decimal` included."""
    kind = type(output)
    return kind is float or (kind is not str and isinstance(output, numbers.Real | Decimal))


def number_of(output: Any) -> float:
    """Return an output as a float: infinite if it exceeds every float, NaN if it is not a real number."""
    if type(output) is float:
        return output
    if not is_real(output):
        return math.nan
    try:
        return float(output)
    except OverflowError:
        return math.copysign(math.inf, 1 if output == abs(output) else -1)


def as_numbers(outputs: Outputs) -> npt.NDArray[Any]:
    """Return one-dimensional outputs as numbers: floats as doubles, NaN for objects that are not numbers."""
    if outputs.dtype != object:
        return outputs.astype(np.float64, copy=False) if outputs.dtype.kind == "f" else outputs
    return np.fromiter((number_of(output) for output in outputs), dtype=np.float64, count=len(outputs))


def as_vectors(outputs: Outputs, width: int) -> npt.NDArray[Any]:
    """Return outputs as vectors, shape (runs, width); a row of NaN for an output that is not a vector of this width."""
    if outputs.ndim == 2:
        return outputs if outputs.shape[1] == width else np.full((len(outputs), width), math.nan)
    vectors = np.full((len(outputs), width), math.nan)
    if outputs.dtype == object:
        for row, output in enumerate(outputs):
            if is_vector(output, width):
                vectors[row] = [number_of(value) for value in output]
    return vectors


def vector_width(*parts: Outputs) -> int | None:
    """Return the length of the vectors if all outputs are vectors of one length, else None."""
    widths: set[int | None] = set()
    for part in parts:
        if part.ndim == 2:
            widths.add(int(part.shape[1]))
        elif part.dtype != object:
            return None
        else:
            widths |= {len(o) if type(o) is tuple and o and is_vector(o, len(o)) else None for o in part}
    return widths.pop() if len(widths) == 1 else None


def is_vector(output: Any, width: int) -> bool:
    """Return whether an output is a tuple of `width` real numbers."""
    return type(output) is tuple and len(output) == width and all(isinstance(v, numbers.Real) for v in output)


def outcome_list(outputs: Outputs) -> list[Any]:
    """Return the outputs of a block as plain values; rows of a matrix become tuples."""
    values: list[Any] = outputs.tolist()
    return [tuple(row) for row in values] if outputs.ndim == 2 else values


_OWN_KEYS = frozenset({str, int, bool, bytes, type(None)})  # types of most outputs, which are their own keys


def outcome_key(output: Any) -> Any:
    """Return a key that is equal for equal outputs, NaN included."""
    kind = type(output)
    if kind in _OWN_KEYS:
        return output
    if kind is tuple:
        return output if _OWN_KEYS.issuperset(map(type, output)) else tuple(map(outcome_key, output))
    if isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, (float, Decimal)):
        return output if output == output else _NAN
    return (Dictionary, outcome_key(output.entries)) if kind is Dictionary else output


def output_words(names: tuple[str, ...]) -> str:
    """Return what names an output whose columns have these names, in front of a set of outputs."""
    if len(names) == 1:
        return names[0]
    shown = f"({', '.join(names)})"
    return shown if names and len(shown) <= _LONGEST_NAMES else "output"


def coordinate_words(place: int, names: tuple[str, ...]) -> str:
    """Return what names a coordinate of vectors whose columns have these names."""
    return names[place] if place < len(names) else f"coordinate {place}"


def outcome_words(output: Any) -> str:
    """Return an outcome as text for a reader, at most 60 characters."""
    if isinstance(output, enum.Enum):
        text = f"{type(output).__name__}.{output.name}"
    elif isinstance(output, Raised):
        text = str(output)
    elif isinstance(output, float):
        text = f"{output:.6g}"
    else:
        text = printed(output)
    return text if len(text) <= 60 else text[:57] + "…"


def tally(outputs: Outputs) -> tuple[Counter[Any], dict[Any, Any]]:
    """Return the count of each outcome, by its key, and an output for each key."""
    counts: Counter[Any] = Counter()
    names: dict[Any, Any] = {}
    if outputs.dtype != object and outputs.ndim == 1:  # numbers are their own keys, except a NaN, which sorts last
        numbers_found, times = _tally_of_numbers(outputs)
        values = numbers_found.tolist()
        keys = values[:-1] + [outcome_key(value) for value in values[-1:]]
        return Counter(dict(zip(keys, times.tolist(), strict=True))), dict(zip(keys, values, strict=True))
    if outputs.dtype == object:  # a key is computed once for equal outputs
        found = Counter(outputs.tolist())
        values, hits = list(found), list(found.values())
    else:
        _, first, times = np.unique(row_keys(outputs), return_index=True, return_counts=True)
        values, hits = outcome_list(outputs[first]), times.tolist()
    for value, number in zip(values, hits, strict=True):
        key = outcome_key(value)
        names.setdefault(key, value)
        counts[key] += number
    return counts, names


def _tally_of_numbers(outputs: Outputs) -> tuple[Outputs, npt.NDArray[np.int64]]:
    """Return the different numbers, sorted, and how often each occurs; close integers are counted without sorting."""
    if outputs.dtype.kind in "iu" and len(outputs) > 0:
        wide = outputs if outputs.dtype.itemsize == 8 else outputs.astype(np.int64)
        least = wide.min()
        if int(wide.max()) - int(least) < _CLOSE:
            times = np.bincount((wide - least).astype(np.int64))
            found = np.flatnonzero(times)
            return (found.astype(wide.dtype) + least).astype(outputs.dtype), times[found]
    return np.unique(outputs, return_counts=True)


def row_keys(rows: Outputs) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key for each row of a numeric matrix, equal for equal rows, NaN included.

    Different rows share a key with probability about 2⁻⁶⁴, so an exact result needs a comparison of the rows.
    """
    if rows.dtype.kind == "f":
        whole = np.where(rows != rows, math.nan, rows + 0.0).view(np.uint64)  # one NaN, and an unsigned zero
    else:
        whole = rows.astype(np.int64).view(np.uint64)
    weights = np.random.SeedSequence(0).generate_state(rows.shape[1], np.uint64) | np.uint64(1)
    # A double that is a small whole number has only high bits, which multiplication alone would lose.
    mixed = (whole ^ (whole >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return np.asarray((mixed * weights).sum(axis=1, dtype=np.uint64))


class _NaN:
    """The common key of all NaNs."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "_NAN"


_NAN = _NaN()


def merge(blocks_x: list[Outputs], blocks_y: list[Outputs]) -> tuple[Outputs, Outputs]:
    """Return all outputs on x and on y as two arrays of one kind: numeric if all blocks agree, else objects."""
    blocks = blocks_x + blocks_y
    shape = blocks[0].shape[1:]
    if any(block.dtype.kind == "O" or block.shape[1:] != shape for block in blocks):
        as_objects = [np.fromiter(outcome_list(block), dtype=object, count=len(block)) for block in blocks]
        blocks_x, blocks_y = as_objects[: len(blocks_x)], as_objects[len(blocks_x) :]
    return np.concatenate(blocks_x), np.concatenate(blocks_y)


def are_equal(a: Outputs, b: Outputs) -> bool:
    """Return whether two blocks hold the same outputs; NaN equals NaN."""
    if a.dtype == object or b.dtype == object:  # equal outputs may be packed differently
        return list(map(outcome_key, outcome_list(a))) == list(map(outcome_key, outcome_list(b)))
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
