"""Outputs in a form that compares and hashes by value, whatever the mechanism returned."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ..errors import AuditError, MechanismError, described
from .dictionaries import Dictionary
from .foreign_arrays import column_of, is_foreign_array
from .named_columns import read_array, refuse_masked
from .named_parts import Part, entries_of, is_column

_DEEPEST = 100  # levels of nested outputs
_PLAIN = frozenset({float, int, bool, str, type(None)})  # hashable and compared by value


def are_plain(outputs: list[Any] | tuple[Any, ...]) -> bool:
    """Whether all outputs are numbers, texts or None."""
    try:
        return _PLAIN.issuperset(map(type, outputs))
    except TypeError:  # a class that cannot be hashed
        return False


def plain_output(output: Any, name: str) -> Any:
    """Return one output in a form that compares and hashes by value: arrays and lists become tuples.

    Dictionaries and other outputs with named parts become `Dictionary`, in which the order of insertion does not
    matter. Raise a `MechanismError` if the output cannot be read or compared.
    """
    try:
        return _plain(output, name, 0)
    except (AuditError, MemoryError):
        raise
    except Exception as error:  # the user's classes and their metaclasses may raise anything when they are read
        kind: Any = type(output)
        raise MechanismError(
            f"{name} returned an output of type {kind.__qualname__} that cannot be read ({described(error)}); return "
            "numbers, strings, or tuples or dictionaries of them.",
            mechanism=name,
        ) from error


def _plain(output: Any, name: str, depth: int) -> Any:
    if type(output) in _PLAIN:
        return output
    if depth > _DEEPEST:
        raise MechanismError(
            f"{name} returned an output that is nested more than {_DEEPEST} deep; return a flat output.", mechanism=name
        )
    if type(output) is Part:
        return _plain(output.value, name, depth + 1)
    refuse_masked(output, name)
    if type(output) is not Dictionary and (entries := entries_of(output)) is not None:
        return Dictionary.of((_plain(key, name, depth + 1), _plain(value, name, depth + 1)) for key, value in entries)
    if isinstance(output, np.ndarray):
        output = output.tolist()
    elif isinstance(output, np.generic):
        output = float(output) if isinstance(output, np.longdouble) else output.item()
    if isinstance(output, frozenset):
        for part in output:
            _plain(part, name, depth + 1)
    if isinstance(output, (list, tuple)):  # also named tuples, which are equal to tuples
        if are_plain(output):
            return tuple(output)
        return tuple(_plain(part, name, depth + 1) for part in output)
    if is_column(output):
        return _plain(column_of(output), name, depth + 1)
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
