"""Outputs that compare by value, and records: outputs whose parts have names, as vectors of their parts.

Where all first outputs of an audit have one `Form`, a record is a vector of its parts, and the names of the parts are
the names of its columns. Any other output stays apart from all records.
"""

from __future__ import annotations

import copy
import datetime
import functools
import math
import numbers
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import AuditError, MechanismError, described
from .kinds import column_of, is_foreign_array, kind_of, numpy_of
from .named_parts import (
    EXACT,
    NESTED,
    STATED,
    Dictionary,
    Mark,
    Part,
    array_of,
    columns_of_block,
    compares_as,
    entries_of,
    has_own_equality,
    is_enum,
    is_stated,
    label_text,
    names_of,
    outcome_key,
    parts_in,
    printed,
    refusal,
    refuse_masked,
    refuse_unevaluated,
    shown,
    shown_names,
    structure_of,
)

# One value for all values that are equal, so that all that is read of equal outputs is the same.
#
# Python calls 1, 1.0, True, ``Decimal(1)`` and an `IntEnum` of this value equal, as it does a moment in two time
# zones. Keys of dictionaries, members of sets and labels are replaced by the one value that stands for all: a number
# by the integer that it equals, or else by the double.

_EXPONENTS = 10_000  # of a decimal that is written as an integer
_ANY_DECIMAL = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # rounds nothing
_UNITS = ("us", "ns", "ps", "fs", "as")  # of numpy: that of `datetime`, and finer ones


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Foreign:
    """An object of which only its equality and its hash are read."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is Foreign and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return printed(self.value)


def canonical(value: Any) -> Any:
    """Return what stands for all values that equal a plain output, such as 1 for 1.0 and True; NaN equals NaN."""
    kind = type(value)
    if kind is int or kind is bool or kind is float:
        return _number(value)
    if kind is tuple or kind is frozenset:
        return kind(map(canonical, value))
    if kind is Dictionary:
        return Dictionary(tuple([(key, canonical(part)) for key, part in value.entries]))
    return value


def is_whole(value: Any) -> bool:
    """Whether an output is a number that equals an integer."""
    return value.is_integer() if type(value) is float else isinstance(value, int)


def key_part(key: Any) -> str | Foreign:
    """Return what stands for a canonical key in a path: its text, if equal keys have equal texts."""
    if type(key) is str:
        return repr(key)
    return printed(key) if is_stated(key) else Foreign(key)


def _number(number: Any) -> Any:
    """Return the integer that equals a number if it is at most 2⁵³; else the double; else the exact number."""
    if isinstance(number, int) and -EXACT <= number <= EXACT:
        return int(number)
    if number != number:
        return math.nan
    try:
        double = float(number)
    except OverflowError:
        double = math.nan
    if double == number:
        return int(double) if double.is_integer() and abs(double) <= EXACT else double
    if isinstance(number, numbers.Integral):
        return int(number)
    if isinstance(number, Fraction):
        number = _decimal(number)
    if not isinstance(number, Decimal):
        return number
    number = _ANY_DECIMAL.normalize(number)
    return int(number) if 0 <= number.as_tuple().exponent <= _EXPONENTS else number


def _decimal(fraction: Fraction) -> Decimal | Fraction:
    """Return the decimal that equals a fraction, if there is one."""
    digits = fraction.numerator.bit_length() + fraction.denominator.bit_length()  # more than the decimal has
    try:
        return Context(prec=digits + 1, traps=[Inexact]).divide(Decimal(fraction.numerator), fraction.denominator)
    except Inexact:
        return fraction


def common(value: Any) -> Any:
    """Return a value in a common type if one equals it: a number, a text, a time, a path or a range."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _ticks(value)
    if isinstance(value, np.longdouble):
        is_rounded = np.isfinite(value) and value != np.float64(value)
        value = Fraction(*value.as_integer_ratio()) if is_rounded else float(value)
    elif isinstance(value, np.generic):
        value = value.item()
    name = type(value).__name__
    if name in ("NAType", "NaTType"):  # of pandas
        return None if name == "NAType" else Mark.NOT_A_TIME
    for base, convert in _CONVERT:
        if isinstance(value, base):
            return convert(value)
    return value


def _ticks(value: Any) -> Any:
    """Return a time of numpy as one of Python; as a count with its unit if none of Python equals it."""
    if np.isnat(value):
        return Mark.NOT_A_TIME
    kind, (unit, step) = type(value).__name__, np.datetime_data(value.dtype)
    count = int(value.astype(np.int64)) * step
    if kind == "timedelta64" and unit in ("Y", "M", "generic"):
        return _unit_count(kind, "M", 12 * count) if unit == "Y" else _unit_count(kind, unit, count)
    for finer in _UNITS[: 1 + _UNITS.index(unit)] if unit in _UNITS else _UNITS[:1]:
        ticks = value.astype(f"{kind}[{finer}]")
        if ticks.astype(value.dtype) == value:  # nothing is lost, also by an overflow
            found = ticks.item() if finer == "us" else int(ticks.astype(np.int64))
            if isinstance(found, int):
                return _unit_count(kind, finer, found)
            return found if kind == "timedelta64" else _moment(found)
    return _unit_count(kind, unit, count)


def _unit_count(name: str, unit: str, count: int) -> Dictionary:
    return Dictionary(((Mark.CLASS, f"{name}[{unit}]"), (Mark.VALUES, count)))


def _moment(moment: Any) -> Any:
    """Return a moment in UTC; one without a time zone at midnight as its date, which equals it in numpy."""
    if hasattr(moment, "to_pydatetime"):  # of pandas
        if moment.nanosecond:
            return _ticks(moment.to_datetime64()) if moment.tzinfo is None else moment.tz_convert("UTC")
        moment = moment.to_pydatetime()
    if not compares_as(type(moment), datetime.datetime):
        return moment
    moment = moment.replace(fold=0)
    time = moment.time()
    if moment.utcoffset() is None:
        day = moment.date()
        return datetime.datetime.combine(day, time) if time != datetime.time() else _date(day)
    try:
        return moment.astimezone(datetime.UTC)
    except OverflowError:  # beyond the calendar
        return moment


def _date(day: Any) -> Any:
    return datetime.date(day.year, day.month, day.day) if compares_as(type(day), datetime.date) else day


def _time(time: Any) -> Any:
    """Return a time of day without a time zone; one with a time zone equals many others."""
    return Foreign(time) if time.utcoffset() is not None else time.replace(fold=0, tzinfo=None)


def _span(span: Any) -> Any:
    if hasattr(span, "to_pytimedelta"):  # of pandas
        if span.nanoseconds:
            return _ticks(span.to_timedelta64())
        span = span.to_pytimedelta()
    if not compares_as(type(span), datetime.timedelta):
        return span
    return datetime.timedelta(span.days, span.seconds, span.microseconds)


def _range(numbers_of: range) -> range:
    start = numbers_of.start
    return range(start, start + 1) if len(numbers_of) == 1 else numbers_of[:] if numbers_of else range(0)


_CONVERT: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (bytes | bytearray, bytes),
    (bool, bool),
    (int, int),
    (float, float),
    (datetime.datetime, _moment),
    (datetime.date, _date),
    (datetime.timedelta, _span),
    (datetime.time, _time),
    (pathlib.PurePosixPath, pathlib.PurePosixPath),
    (range, _range),
    (numbers.Real | Decimal, _number),
)

DEEPEST = 20  # levels of nested records whose parts are told apart
_MOST_NESTED = 100  # levels of nested outputs
PLAIN = frozenset({float, int, bool, str, type(None)})
"""Types of outputs that never change and compare by value."""
_TOLD = frozenset({Mark.CLASS, Mark.NAME, Mark.INDEX, Mark.ORDER})  # keys of what is not a part
_LEAVES: tuple[Any, ...] = (Mark.LEAF,)
_FIXED = PLAIN | STATED | {datetime.datetime}  # well-known classes of plain outputs
_TEXT = frozenset({str})
_COMPARED = 64  # outputs of a class with which each different one is compared, which takes about 10 µs


_CELL = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)  # the name of a column and the number of a row


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
    numbered: tuple[str, ...] = field(default=(), compare=False, repr=False)  # the names with the numbers of rows
    keys: tuple[str, ...] | None = field(default=None, init=False, compare=False, repr=False)
    """The keys of a dictionary of leaves by texts, which is read at once; None for another structure."""

    def __post_init__(self) -> None:
        entries = self.structure.entries if type(self.structure) is Dictionary else ()
        if entries and all(type(key) is str and inner is Mark.LEAF for key, inner in entries):
            object.__setattr__(self, "keys", tuple(key for key, _ in entries))

    def agreed(self, other: Form) -> Form:
        """Return the form with names of rows that another one, of the outputs on the other dataset, has too."""
        return self if self.names == other.names else replace(self, names=self.numbered or self.names)

    def values_of(self, output: Any) -> tuple[Any, ...] | None:
        """Return the columns of a plain output of this form; None for any other output."""
        if self.keys is not None and type(output) is Dictionary and output.entries:
            keys, values = zip(*output.entries, strict=True)
            if keys == self.keys:
                return values
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
        if structure.count(Mark.LEAF) == len(structure):
            found += output
            return True
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
    """Return the form that all outputs have; one without names if there is none."""
    form: Form | None = None
    constant: tuple[Any, ...] = ()  # the texts and whole numbers of the columns that never varied
    for output in outputs:
        found = _form_of_one(output)
        if found is None or (form is not None and found != form):
            return Form()
        if form is None or any(value is not None for value in constant):
            values = found.values_of(plain_output(output, "it"))
            if values is None:
                return Form()
            keys = tuple(value if type(value) in (str, int) else None for value in values)
            before = keys if form is None else constant
            constant = tuple(a if a == b else None for a, b in zip(keys, before, strict=True))
        form = form or found
    return Form() if form is None else replace(form, names=_by_group(form.names, constant), numbered=form.names)


def _by_group(names: tuple[str, ...], constant: tuple[Any, ...]) -> tuple[str, ...]:
    """Name the rows of a table by its columns of texts that never vary, or a first one of such integers: age[Oslo]."""
    cells = [_CELL.fullmatch(name) for name in names]
    columns: dict[str, dict[str, Any]] = {}
    for cell, value in zip(cells, constant, strict=False):
        if cell is not None:
            columns.setdefault(cell[1], {})[cell[2]] = value
    keys = [name for name, rows in columns.items() if all(type(value) is str for value in rows.values())]
    if not keys and columns and all(type(value) is int for value in next(iter(columns.values())).values()):
        keys = [next(iter(columns))]
    rows = columns[keys[0]] if keys else ()
    labels = {row: ".".join(label_text(columns[key].get(row, "")) for key in keys) for row in rows}
    if len(set(labels.values())) < len(labels) or any(row not in labels for rows in columns.values() for row in rows):
        return names
    return shown_names(
        name if cell is None or cell[1] in keys else f"{cell[1]}[{labels[cell[2]]}]"
        for name, cell in zip(names, cells, strict=True)
    )


def form_of_block(raw: Any) -> Form:
    """Return the form of a block of a vectorised mechanism: its named columns, or that of its records."""
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

    Columns are the parts of nested records and of arrays of numbers in them. A tuple or list is a record if it holds
    nothing but arrays and numbers, a dictionary if it holds nothing but numbers, in arrays too but not in lists, which
    may be rows of keys and values.
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
    if depth > DEEPEST:
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
        are_counts = isinstance(value, Counter) and all(is_real(part) for _, part in entries)
        counts = [(Mark.COUNTS, None)] if are_counts else []
        return Dictionary((*counts, *_entries(entries, name, names, depth)))
    array = _plain_array(value) if depth > 0 else value
    if name and is_vector(array):
        names.extend(f"{name}[{place}]" for place in range(len(array)))
        return _LEAVES * len(array)
    is_matrix = name and is_array(array)
    if is_matrix or (
        type(value) in (tuple, list)
        and any(map(is_array, map(_plain_array, value)))
        and all(_holds_numbers(part, depth) for part in value)
    ):
        start = name or "output"
        return tuple(_structure(part, f"{start}[{place}]", names, depth + 1) for place, part in enumerate(array))
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
    return isinstance(value, Mapping) or type(value) is Dictionary


def _holds_numbers(value: Any, depth: int) -> bool:
    """Whether a dictionary holds nothing but numbers, in it, in arrays or in dictionaries in it."""
    if not is_dictionary(value):
        array = _plain_array(value)
        return is_real(array) or is_array(array)
    return depth <= DEEPEST and all(_holds_numbers(part, depth + 1) for _, part in entries_of(value) or [])


def _plain_array(value: Any) -> Any:
    """Return an array of another library as a numpy array, and one without dimensions as its number."""
    if is_foreign_array(value):
        value = numpy_of(value)
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def is_real(value: Any) -> bool:
    """Whether a value is a real number, `Decimal` included."""
    kind = type(value)
    return kind is float or (
        kind is not str and not is_enum(kind) and isinstance(value, numbers.Real | Decimal | np.bool_)
    )


def is_array(value: Any) -> bool:
    """Whether a value is an array of numbers."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in "biuf" and value.size > 0


def is_vector(value: Any) -> bool:
    """Whether a value is a vector of numbers."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and is_array(value)
    return type(value) in (list, tuple) and len(value) > 0 and all(map(is_real, value))


def are_plain(outputs: Iterable[Any], kinds: frozenset[Any] = PLAIN) -> bool:
    """Whether all outputs are numbers, texts or None, or of the given types."""
    try:
        return kinds.issuperset(map(type, outputs))
    except TypeError:  # a class that cannot be hashed
        return False


def of_plain_parts(output: Any) -> Any:
    """Return a list or a tuple of plain outputs, or a dictionary of them by texts, as a plain output; else None."""
    kind = type(output)
    if kind is tuple or kind is list:
        return tuple(output) if are_plain(output) else None
    if kind is not dict or not are_plain(output, _TEXT) or not are_plain(output.values()):
        return None
    return Dictionary(tuple([(key, output[key]) for key in _sorted_texts(tuple(output))]))


@functools.lru_cache(maxsize=1_000)
def _sorted_texts(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys in the order of a `Dictionary`, for equal keys the same objects."""
    return tuple(key for key, _ in Dictionary.of((key, None) for key in keys).entries)


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
        raise refusal(
            name,
            f"an output of type {kind.__qualname__} that cannot be read ({described(error)}); return numbers, strings, "
            "or tuples or dictionaries of them.",
        ) from error


def _plain(output: Any, name: str, depth: int) -> Any:
    kind: Any = type(output)
    if kind in PLAIN or is_enum(kind):
        return output
    if depth > _MOST_NESTED:
        raise refusal(name, f"an output that is nested more than {_MOST_NESTED} deep; return a flat output.")
    if kind is Part:
        return _plain(output.value, name, depth + 1)
    if (simple := of_plain_parts(output)) is not None:
        return simple
    refuse_masked(output, name)
    if has_own_equality(output):  # of it only its equality is read
        return Foreign(_copied(output, name))
    if (entries := entries_of(output)) is not None:
        parts = [(_key(key, name, depth), _plain(value, name, depth + 1)) for key, value in entries]
        if isinstance(output, Counter):  # a missing count equals zero
            parts = [(key, part) for key, part in parts if not (type(part) in PLAIN and part == 0)]
        return Dictionary.of(parts)
    match kind_of(output):
        case "array" if isinstance(output, np.ndarray):
            return _plain(_items_of(output), name, depth)
        case "set":
            return frozenset(_key(part, name, depth) for part in output)
        case "sequence":  # also named tuples, which are equal to tuples
            return tuple(_plain(part, name, depth + 1) for part in output)
        case "column" | "tensor" | "arraylike":
            return _plain(array_of(output, name, f"a {kind.__name__}"), name, depth + 1)
    output = common(output)
    if type(output) is Foreign:
        return Foreign(_copied(output.value, name))
    return output if _is_fixed(type(output)) else _copied(output, name)


def _is_fixed(kind: Any) -> bool:
    """Whether objects of a class never change: those of well-known classes, and of this library."""
    return kind in _FIXED or str(kind.__module__).startswith(f"{__package__}.")


def _copied(output: Any, name: str) -> Any:
    """Return a copy of an object, which later runs may change; a `MechanismError` if its copy is not its equal."""
    kind = type(output).__name__
    if isinstance(output, complex):
        raise refusal(name, f"the complex number {output}; use a pair of reals.")
    refuse_unevaluated(output, name)
    try:
        is_reflexive, own_hash = bool(output == output), hash(output)
    except Exception as error:  # a user's __hash__ and __eq__ may raise anything
        raise _incomparable(kind, name, error) from None
    said = f"an output of type {kind}, which"
    if _compares_by_identity(output):
        raise refusal(
            name,
            f"{said} equals nothing but itself, so the same output from another process is another outcome; give it "
            "__eq__ and __hash__, or return a string or an Enum.",
        )
    try:
        copied = copy.deepcopy(output)
        is_equal, copied_hash = bool(copied == output), hash(copied)
    except Exception as error:  # an object's own copying may raise anything
        raise refusal(
            name,
            f"{said} cannot be copied ({described(error)}) although a later run may change it; return a number, a "
            "string, a tuple, or an object that copy.deepcopy can copy.",
        ) from error
    if not (is_reflexive and is_equal):
        raise refusal(
            name,
            f"{said} does not equal its own copy, so that every run is another outcome; give it an __eq__ that "
            "compares by value, or return a string or a tuple.",
        )
    if own_hash != copied_hash:
        raise _unequal_hashes(type(output), name)
    return copied


def _unequal_hashes(kind: Any, name: str) -> MechanismError:
    return refusal(
        name,
        f"equal outputs of type {kind.__qualname__} with different hashes, so that one outcome would be counted as "
        "several; give the class a __hash__ that agrees with its __eq__, or return a string or a tuple.",
    )


def _incomparable(kind: str, name: str, error: Exception) -> MechanismError:
    return refusal(
        name,
        f"an output of type {kind}, which cannot be compared ({described(error)}); return a number, a string, a tuple, "
        "or another hashable object that compares by value.",
    )


class HashCheck:
    """Raises for equal outputs with different hashes, comparing each output with the first ones of its class."""

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
    if kind in NESTED:
        for part in parts_in(output):
            yield from () if type(part) in PLAIN else _unknown_in(part)
    elif kind is Foreign:
        yield output.value
    elif not (_is_fixed(kind) or is_enum(kind)):
        yield output


def _key(key: Any, name: str, depth: int) -> Any:
    """Return a key of a dictionary or a member of a set as what stands for all that equal it."""
    kind = type(key)
    if kind is str or kind is Mark or (kind is int and -EXACT < key < EXACT):
        return key
    return canonical(_plain(key, name, depth + 1))


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
    return all(getattr(kind, name) is getattr(object, name) for name in ("__eq__", "__reduce__", "__reduce_ex__"))
