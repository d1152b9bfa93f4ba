"""Outputs that compare by value, and records: outputs whose parts have names, as vectors of their parts.

Where all first outputs of an audit have one `Form`, a record is a vector of its parts, and the names of the parts are
the names of its columns. Any other output stays apart from all records.
"""

from __future__ import annotations

import copy
import datetime
import functools
import numbers
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ..errors import AuditError, MechanismError, described
from .canonical import STATED, Foreign, canonical, leaf_of
from .dictionaries import Dictionary, Mark, outcome_key
from .foreign_arrays import column_of, is_foreign_array, numpy_of
from .named_columns import columns_of_block, names_of, read_array, refuse_masked, structure_of
from .named_parts import Part, entries_of, is_column, label_text, shown, shown_names
from .own_equality import has_own_equality, is_enum

_DEEPEST = 20  # levels of nested records
_MOST_NESTED = 100  # levels of nested outputs
_SMALL = 1 << 53  # integers below stand for all that equals them
PLAIN = frozenset({float, int, bool, str, type(None)})
"""Types of outputs that never change and compare by value."""
_TOLD = frozenset({Mark.CLASS, Mark.NAME, Mark.INDEX, Mark.ORDER})  # keys of what is not a part
_LEAVES: tuple[Any, ...] = (Mark.LEAF,)
_FIXED = PLAIN | STATED | {datetime.datetime}  # well-known classes of plain outputs
_COMPARED = 64  # outputs of a class with which each different one is compared, which takes about 10 µs


@dataclass(frozen=True, slots=True)
class Form:
    """What all records of an audit have in common, and the names of their columns; no names if there is nothing.

    The `structure` is a plain output with `Mark.LEAF` in place of some parts, its leaves. An output has the form if it
    is the structure with values put in place of the leaves, and these values are its columns. So, of outputs that have
    the form, equal ones have equal columns and equal columns belong to equal outputs: putting the columns in gives the
    output. Names are texts for a reader, on which nothing depends.
    """

    names: tuple[str, ...] = field(default=(), compare=False)
    structure: Any = None

    @property
    def has_labels(self) -> bool:
        """Whether the labels of the rows of a block are a column."""
        return type(self.structure) is Dictionary and any(
            key is Mark.INDEX and inner is Mark.LEAF for key, inner in self.structure.entries
        )

    def values_of(self, output: Any) -> tuple[Any, ...] | None:
        """Return the columns of a plain output of this form; None for any other output."""
        found: list[Any] = []
        return tuple(found) if _read(self.structure, output, found) else None

    def in_columns(self, output: Any, is_raised: bool = False) -> Any:
        """Return a plain output as the vector of its columns, the value of a single column; others stay apart.

        An output without the form never equals one that has it. If there are several columns, records are tuples and
        tuples of another form are wrapped in a dictionary whose key no user has. If there is one column, it may hold
        anything but such a dictionary, and all other outputs are wrapped, except exceptions.
        """
        values = self.values_of(output)
        if values is not None:
            return values if len(values) > 1 else values[0]
        is_apart = is_raised or (len(self.names) > 1 and type(output) is not tuple)
        return output if is_apart else Dictionary(((Mark.OTHER, output),))

    def takes(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether each row of an array has this form, so that the array is that of the columns."""
        if not self.names or self.structure is Mark.LEAF:
            return True
        return array.ndim == 2 and self.structure == _LEAVES * array.shape[1] and array.shape[1] > 1


def _read(structure: Any, output: Any, found: list[Any]) -> bool:
    """Whether an output is the structure with values in place of leaves; these are appended to `found`."""
    if structure is Mark.LEAF:
        found.append(output)
        return True
    if type(structure) is not type(output):
        return False
    if type(structure) is tuple:
        if len(structure) != len(output):
            return False
        return all(_read(inner, part, found) for inner, part in zip(structure, output, strict=True))
    if type(structure) is not Dictionary:
        return False
    held = dict(output.entries)
    if structure.entries and structure.entries[0][0] is Mark.COUNTS:
        found += [held.pop(key, 0) for key, _ in structure.entries[1:]]
        return not held
    if len(structure.entries) != len(held):
        return False
    for key, inner in structure.entries:
        if key not in held:
            return False
        if isinstance(key, Mark) and key in _TOLD:
            if outcome_key(held[key]) != outcome_key(inner):
                return False
        elif not _read(inner, held[key], found):
            return False
    return True


def form_of(outputs: Iterable[Any]) -> Form:
    """Return the form that all outputs have; one without names if there is none.

    Examples
    --------
    >>> form_of([{"mean": 1.5, "count": 2}, {"mean": 0.5, "count": 3}]).names
    ('count', 'mean')
    >>> form_of([{"mean": 1.5}, {"count": 3}]).names
    ()
    """
    form: Form | None = None
    for output in outputs:
        found = _form_of_one(output)
        if found is None or (form is not None and found != form):
            return Form()
        if form is None:
            if found.values_of(plain_output(output, "it")) is None:
                return Form()
            form = found
    return Form() if form is None else form


def form_of_block(raw: Any) -> Form:
    """Return the form of a block as a block sampler returns it: its named columns, or that of the records in a list."""
    try:
        columns = columns_of_block(raw)
        if columns:
            prefix = raw.name if type(raw) is Part else ""
            return Form(shown_names(names_of(columns, prefix)), structure_of(columns))
        if type(raw) is Part and columns is None:
            array = column_of(raw.value)
            return _form_of_one(Part(raw.name, array[0])) or Form((shown(raw.name),), Mark.LEAF)
    except Exception:  # the error is reported when the outputs are drawn
        return Form()
    return form_of(raw) if isinstance(raw, (list, tuple)) else Form()


def _form_of_one(output: Any) -> Form | None:
    """Return the form of a record; None for any other output, also for one that cannot be read.

    Columns are the parts of nested records and of vectors of numbers in them. A dictionary is a record only if it holds
    nothing but numbers, in arrays too but not in lists, which may be rows of keys and values.
    """
    names: list[str] = []
    try:
        structure = _structure(output, "", names, 0)
    except Exception:  # nested too deep, or the user's class raises
        return None
    is_named = names and (structure is not Mark.LEAF or type(output) is Part)
    return Form(shown_names(names), structure) if is_named and names != [""] else None


def _structure(value: Any, name: str, names: list[str], depth: int) -> Any:
    """Return the structure of an output, and append the names of its leaves in their order."""
    if depth > _DEEPEST:
        raise RecursionError
    if type(value) is Part:
        return _structure(value.value, joined(name, value.name), names, depth + 1)
    if has_own_equality(value):
        names.append(name)
        return Mark.LEAF
    fields: Any = getattr(type(value), "_fields", ()) if isinstance(value, tuple) else ()
    if fields:
        return tuple(
            _structure(part, joined(name, field), names, depth + 1) for field, part in zip(fields, value, strict=True)
        )
    entries = None if is_dictionary(value) and not _holds_numbers(value, depth) else entries_of(value)
    if entries:
        entries = [(_key(key, "it", depth), part) for key, part in entries]
    if entries and not any(is_nan(key) for key, _ in entries):
        if is_dictionary(value):
            entries = list(Dictionary.of(entries).entries)
        are_counts = isinstance(value, Counter) and all(is_number(part) for _, part in entries)
        counts = [(Mark.COUNTS, None)] if are_counts else []
        return Dictionary((*counts, *_entries(entries, name, names, depth)))
    array = _plain_array(value) if depth > 0 else value
    if name and is_vector(array):
        names.extend(f"{name}[{place}]" for place in range(len(array)))
        return _LEAVES * len(array)
    names.append(name)
    return Mark.LEAF


def _entries(entries: list[tuple[Any, Any]], name: str, names: list[str], depth: int) -> Iterable[tuple[Any, Any]]:
    """Yield the entries of the structure of an output with these entries."""
    told = {key: value for key, value in entries if isinstance(key, Mark) and key in _TOLD}
    rows: Any = told.get(Mark.INDEX)  # of a frame with other rows than a single one without a label
    labels = range(rows) if isinstance(rows, int) else rows
    title: Any = told.get(Mark.NAME, ("",))[0]
    if told.get(Mark.CLASS, "").endswith("Series") and isinstance(title, str):
        name = joined(name, title)
    for key, part in entries:
        if isinstance(key, Mark) and key in _TOLD:
            yield key, _plain(part, name, depth + 1)
        elif labels is not None:
            names.extend(f"{joined(name, label_text(key))}[{label_text(label)}]" for label in labels)
            yield key, Mark.LEAF if len(labels) == 1 else _LEAVES * len(labels)
        else:
            whole = name if key is Mark.VALUES and name else joined(name, label_text(key))
            yield key, _structure(part, whole, names, depth + 1)


def joined(name: str, label: str) -> str:
    """Return the name of a part of a part."""
    return f"{name}.{label}" if name and label else name or label


def is_nan(key: Any) -> bool:
    """Whether a key is NaN or holds one, so that it does not find its value."""
    return any(map(is_nan, key)) if type(key) is tuple else bool(key != key)


def is_dictionary(value: Any) -> bool:
    """Whether the value is a dictionary."""
    return isinstance(value, dict) or type(value) is Dictionary


def _holds_numbers(value: Any, depth: int) -> bool:
    """Whether a dictionary holds nothing but numbers, in it, in arrays or in dictionaries in it."""
    return depth <= _DEEPEST and all(
        _holds_numbers(part, depth + 1) if is_dictionary(part) else is_number(part) or _is_array_of_numbers(part)
        for _, part in entries_of(value) or []
    )


def _is_array_of_numbers(value: Any) -> bool:
    array = _plain_array(value)
    return is_number(array) or (isinstance(array, np.ndarray) and is_vector(array))


def _plain_array(value: Any) -> Any:
    """Return an array of another library as a numpy array, and one without dimensions as its number."""
    if is_foreign_array(value):
        value = numpy_of(value)
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def is_number(value: Any) -> bool:
    """Whether a value is a real number."""
    return type(value) is float or (type(value) is not str and isinstance(value, numbers.Real | Decimal | np.bool_))


def is_vector(value: Any) -> bool:
    """Whether a value is a vector of numbers."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf" and len(value) > 0
    return type(value) in (list, tuple) and len(value) > 0 and all(map(is_number, value))


def are_plain(outputs: list[Any] | tuple[Any, ...]) -> bool:
    """Whether all outputs are numbers, texts or None."""
    try:
        return PLAIN.issuperset(map(type, outputs))
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
    kind: Any = type(output)
    if kind in PLAIN or is_enum(kind):
        return output
    if depth > _MOST_NESTED:
        raise MechanismError(
            f"{name} returned an output that is nested more than {_MOST_NESTED} deep; return a flat output.",
            mechanism=name,
        )
    if type(output) is Part:
        return _plain(output.value, name, depth + 1)
    refuse_masked(output, name)
    if not has_own_equality(output):
        if (entries := entries_of(output)) is not None:
            parts = [(_key(key, name, depth), _plain(value, name, depth + 1)) for key, value in entries]
            return Dictionary.of(_counted(parts) if isinstance(output, Counter) else parts)
        if isinstance(output, np.ndarray):
            output = _items_of(output)
        if isinstance(output, (set, frozenset)):
            return frozenset(_key(part, name, depth) for part in output)
        if isinstance(output, (list, tuple)):  # also named tuples, which are equal to tuples
            if are_plain(output):
                return tuple(output)
            return tuple(_plain(part, name, depth + 1) for part in output)
        if is_column(output) or is_foreign_array(output):
            return _plain(read_array(output, name), name, depth + 1)
    output = leaf_of(output)
    if type(output) is Foreign:
        return Foreign(_copied(output.value, name))
    return output if _is_fixed(type(output)) else _copied(output, name)


def _is_fixed(kind: Any) -> bool:
    """Whether objects of a class never change: those of well-known classes, and of this library."""
    return kind in _FIXED or str(kind.__module__).startswith(f"{__package__}.")


def _copied(output: Any, name: str) -> Any:
    """Return a copy of an object of an unknown class, which later runs may change, if it equals and hashes as that.

    Raise a `MechanismError` for an object that equals no copy.
    """
    kind = type(output).__name__
    if isinstance(output, complex):
        raise MechanismError(f"{name} returned the complex number {output}; use a pair of reals.", mechanism=name)
    try:
        is_reflexive, own_hash = bool(output == output), hash(output)
    except Exception as error:  # a user's __hash__ and __eq__ may raise anything
        raise _incomparable(kind, name, error) from None
    if isinstance(output, (Iterator, Coroutine, AsyncIterator)):
        kind = type(output).__name__
        way_out = "await it and return its value" if isinstance(output, Coroutine) else "return a list"
        raise MechanismError(f"{name} returned a {kind}, not the values that it would give; {way_out}.", mechanism=name)
    if _compares_by_identity(output):
        raise MechanismError(
            f"{name} returned an output of type {kind}, which equals nothing but itself, so the same "
            "output from another process is another outcome; give it __eq__ and __hash__, or return a string or an "
            "Enum.",
            mechanism=name,
        )
    try:
        copied = copy.deepcopy(output)
        is_equal, copied_hash = bool(copied == output), hash(copied)
    except Exception as error:  # an object's own copying may raise anything
        raise MechanismError(
            f"{name} returned an output of type {kind}, which cannot be copied ({described(error)}) although a later "
            "run may change it; return a number, a string, a tuple, or an object that copy.deepcopy can copy.",
            mechanism=name,
        ) from error
    if not (is_reflexive and is_equal):
        raise MechanismError(
            f"{name} returned an output of type {kind}, which does not equal its own copy, so that every run is "
            "another outcome; give it an __eq__ that compares by value, or return a string or a tuple.",
            mechanism=name,
        )
    if own_hash != copied_hash:
        raise _unequal_hashes(type(output), name)
    return copied


def _unequal_hashes(kind: Any, name: str) -> MechanismError:
    """Return the error for a class whose equal objects have different hashes."""
    return MechanismError(
        f"{name} returned equal outputs of type {kind.__qualname__} with different hashes, so that one outcome would "
        "be counted as several; give the class a __hash__ that agrees with its __eq__, or return a string or a tuple.",
        mechanism=name,
    )


def _incomparable(kind: str, name: str, error: Exception) -> MechanismError:
    return MechanismError(
        f"{name} returned an output of type {kind}, which cannot be compared ({type(error).__name__}: {error}); return "
        "a number, a string, a tuple, or another hashable object that compares by value.",
        mechanism=name,
    )


class HashCheck:
    """Compares outputs of unknown classes, and raises a `MechanismError` if two are equal and their hashes differ.

    Each different output is compared with the first outputs of its class.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[type[Any], dict[int, Any]] = {}

    def add(self, outputs: np.ndarray[Any, Any], name: str) -> None:
        """Compare the plain outputs of a block with each other and with those before."""
        if outputs.dtype != object or PLAIN.issuperset(map(type, outputs)):
            return
        for output in dict.fromkeys(outputs.tolist()):
            for leaf in _unknown_in(output):
                self._compare(leaf, name)

    def _compare(self, output: Any, name: str) -> None:
        own, seen = hash(output), self._seen.setdefault(type(output), {})
        if own in seen:
            return
        try:
            is_equal = any(bool(output == other) or bool(other == output) for other in seen.values())
        except Exception as error:  # a user's __eq__ may raise anything
            raise _incomparable(type(output).__name__, name, error) from error
        if is_equal:
            raise _unequal_hashes(type(output), name)
        if len(seen) < _COMPARED:
            seen[own] = output


def _unknown_in(output: Any) -> Iterator[Any]:
    """Yield the parts of a plain output that are objects of unknown classes."""
    kind = type(output)
    if kind is tuple or kind is frozenset:
        for part in output:
            yield from () if type(part) in PLAIN else _unknown_in(part)
    elif kind is Dictionary:
        for entry in output.entries:
            yield from _unknown_in(entry)
    elif kind is Foreign:
        yield output.value
    elif not (_is_fixed(kind) or is_enum(kind)):
        yield output


def _key(key: Any, name: str, depth: int) -> Any:
    """Return a key of a dictionary or a member of a set as what stands for all that equal it."""
    kind = type(key)
    if kind is str or kind is Mark or (kind is int and -_SMALL < key < _SMALL):
        return key
    return canonical(_plain(key, name, depth + 1))


def _counted(parts: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the parts of a `Counter` without zeros, which equal missing counts."""
    return [(key, part) for key, part in parts if not (type(part) in PLAIN and part == 0)]


def _items_of(array: np.ndarray[Any, Any]) -> Any:
    """Return the items of an array; its shape if it has no items for that reason only."""
    if array.ndim > 1 and len(array) == 0:
        return Dictionary(((Mark.CLASS, f"empty array of shape {array.shape}"),))
    if array.dtype.kind in "mM":  # whose integers would be another output
        return list(array) if array.ndim else array[()]
    return array.tolist()


def _compares_by_identity(output: Any) -> bool:
    """Whether a copy would be unequal; classes, and objects with their own pickling such as Enums, are exempt."""
    kind: Any = type(output)
    if output is None or isinstance(output, type):
        return False
    if isinstance(output, (FunctionType, BuiltinFunctionType, functools.partial)) or hasattr(kind, "__next__"):
        return True
    return all(getattr(kind, name) is getattr(object, name) for name in ("__eq__", "__reduce__", "__reduce_ex__"))
