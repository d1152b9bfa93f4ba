"""Outputs of a mechanism: validation, and views of them as numbers, vectors or outcomes."""

from __future__ import annotations

import enum
import math
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import described
from ..printing import counted
from .kinds import is_column, is_foreign_array
from .named_parts import (
    Entries,
    Mark,
    Part,
    array_of,
    arrays_of,
    as_dictionaries,
    columns_of_block,
    printed,
    refusal,
    refuse_masked,
    refuse_unevaluated,
    side_by_side,
    structure_of,
)
from .named_parts import outcome_key as outcome_key
from .plain_outputs import Form, are_plain, plain_output
from .plain_outputs import is_real as is_real

Outputs: TypeAlias = npt.NDArray[Any]
"""The outputs of one block: shape (runs,) numeric or of objects, or (runs, n_coords) numeric."""

_LONGEST_NAMES = 60  # characters of the names of all columns in front of an outcome, half of a line


@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a run that raised: the type of the exception, which an adversary observes."""

    exception: str

    def __str__(self) -> str:
        return f"raises {self.exception}"


def as_outputs(raw: Any, size: int, name: str, form: Form | None = None) -> Outputs:
    """Return `raw` as an array of `size` outputs: numeric of one or two dimensions, or a vector of hashable objects.

    Floats below double precision become doubles, which hold them exactly. Records of the `form` become vectors of their
    columns, in a form with one column its values; no other output equals one of these. Before the form is known, named
    columns are in the order of the block. Anything else raises a `MechanismError`.
    """
    refuse_masked(raw, name)
    if type(raw) is not np.ndarray or raw.dtype.names is not None:
        try:
            columns = columns_of_block(raw)
        except Exception as error:  # the user's classes may raise anything when they are read
            said = f"a {type(raw).__qualname__} that cannot be read ({described(error)}); return a numpy array."
            raise refusal(name, said) from error
        if columns is not None:
            return _of_columns(columns, size, name, form)
    if type(raw) is Part:
        raw = array_of(raw.value, name, f"a column {raw.name!r}")
    elif is_foreign_array(raw) or is_column(raw):
        raw = array_of(raw, name, f"a {type(raw).__name__}")
    if isinstance(raw, np.ndarray):
        if raw.shape[:1] != (size,):
            raise refusal(
                name,
                f"an array of shape {raw.shape} when asked for {counted(size, 'output')}; return one output for each "
                f"run: shape ({size},) or ({size}, n_coords).",
                shape=raw.shape,
                size=size,
            )
        is_number = raw.dtype.kind in "biuf" and not _exceeds_doubles(raw)
        if is_number and raw.ndim in (1, 2) and (form is None or form.takes(raw)):
            return _of_numbers(raw)
        if raw.dtype.kind not in "OUSbiuf" or raw.ndim > 2:
            raise refusal(
                name,
                f"outputs of dtype {raw.dtype} and shape {raw.shape}; use real numbers, booleans, strings or hashable "
                "objects, in one or two dimensions.",
                dtype=str(raw.dtype),
            )
        raw = raw.tolist()
    elif isinstance(raw, (str, bytes)) or not _is_sequence(raw):
        refuse_unevaluated(raw, name, size)
        said = f"{type(raw).__name__} when asked for {counted(size, 'output')}; return an array or a list with one"
        raise refusal(name, f"{said} output for each run.", size=size)
    if len(raw) != size:
        said = f"{counted(len(raw), 'output')} when asked for {size}; return one output for each run."
        raise refusal(name, said, returned=len(raw), size=size)
    return packed(list(raw) if are_plain(raw) else [plain_output(output, name) for output in raw], form)


def packed(outputs: list[Any], form: Form | None = None) -> Outputs:
    """Return plain outputs as an array; records of the `form` become vectors of their columns, apart from others."""
    if form is not None and form.names:
        outputs = [form.in_columns(output, isinstance(output, Raised)) for output in outputs]
    return _pack(outputs)


def _is_sequence(raw: Any) -> bool:
    try:
        return isinstance(raw, Sequence)
    except TypeError:  # a class that cannot be hashed
        return False


def _of_columns(columns: Entries, size: int, name: str, form: Form | None) -> Outputs:
    """Return the rows of named columns, in the order of the form; rows of another form as dictionaries."""
    is_labelled = form is not None and (Mark.INDEX, Mark.LEAF) in getattr(form.structure, "entries", ())
    if is_labelled and all(key is not Mark.INDEX for key, _ in columns):
        columns = [(Mark.INDEX, np.arange(size)), *columns]  # the numbers of the rows are labels like others
    arrays = arrays_of(columns, size, name)
    has_form = form is not None and form.structure == structure_of(columns)
    if (form is None or has_form) and columns:
        keys = [key for key, _ in (columns if form is None else form.structure.entries)]
        rows = side_by_side([arrays[key] for key in keys])
        return _of_numbers(rows) if isinstance(rows, np.ndarray) else _pack([plain_output(row, name) for row in rows])
    if form is None:
        raise refusal(name, "no columns; return at least one.")
    return packed([plain_output(row, name) for row in as_dictionaries(arrays, size)], form)


def _exceeds_doubles(array: Outputs) -> bool:
    """Return whether a floating-point array has digits that doubles do not hold."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 8:
        return False
    return bool(np.any((array != array.astype(np.float64)) & (array == array)))


def _of_numbers(array: Outputs) -> Outputs:
    return array.astype(np.float64) if array.dtype.kind == "f" and array.dtype != np.float64 else array


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
        numbers_found, times = np.unique(outputs, return_counts=True)
        values = numbers_found.tolist()
        keys = values[:-1] + [outcome_key(value) for value in values[-1:]]
        return Counter(dict(zip(keys, times.tolist(), strict=True))), dict(zip(keys, values, strict=True))
    if outputs.dtype == object:  # a key is computed once for equal outputs
        found = Counter(outputs.tolist())
        values, seen = list(found), list(found.values())
    else:
        _, first, times = np.unique(row_keys(outputs), return_index=True, return_counts=True)
        values, seen = outcome_list(outputs[first]), times.tolist()
    for value, number in zip(values, seen, strict=True):
        key = outcome_key(value)
        names.setdefault(key, value)
        counts[key] += number
    return counts, names


def n_different(outputs: Outputs) -> int:
    """Return the number of different outcomes."""
    if outputs.dtype == object:
        return len(set(map(outcome_key, set(outputs.tolist()))))
    return len(np.unique(row_keys(outputs) if outputs.ndim == 2 else outputs))


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
    mixed = whole >> np.uint64(32)
    mixed ^= whole
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return np.asarray(mixed @ weights)


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
