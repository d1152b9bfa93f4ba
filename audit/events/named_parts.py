"""Outputs whose parts have names: dictionaries, data frames, labelled columns, dataclasses, named tuples.

`entries_of` writes such an output as the entries of a dictionary, so that two different outputs keep different entries.
A property that is not a part, such as a class, the name of a column or the labels of rows, has a `Mark` as its key,
which no user's dictionary has. The order of labels is an output; the order of keys and columns is not.

`outcome_text` depends only on what equality compares, and is the same in every process. Health checks of blocks hash
these texts and sort outputs by them. The `repr` of an object may contain its address or creation time; sorting by it
would reproduce the order of the runs, and a check would flag independent runs.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import ipaddress
import numbers
import pathlib
import uuid
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Coroutine, Hashable, Iterable, Iterator, Mapping, MappingView
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from ..errors import MechanismError, described
from ..printing import counted
from .kinds import SEQUENCES, Array, column_of, is_column, is_foreign_array, is_table, kind_of

EXACT = 1 << 53
"""The largest size up to which doubles hold every whole number."""

# Classes whose objects compare in a way of their own, so that their parts may say more than their equality.

_BASES: tuple[Any, ...] = (
    str, bytes, bytearray, int, float, Decimal, Fraction, *SEQUENCES, dict, set, frozenset, Mapping
)  # fmt: skip
_READ: tuple[Any, ...] = (OrderedDict, Counter)  # classes of dictionaries that are read as such


def has_own_equality(value: Any) -> bool:
    """Whether a value is of a subclass of a number, a text or a collection that compares in another way."""
    kind: Any = type(value)
    return kind.__module__ not in ("builtins", "numpy") and _has_own_equality(kind)


@lru_cache(maxsize=1_000)
def _has_own_equality(kind: Any) -> bool:
    if issubclass(kind, np.generic):
        return False
    base = next((base for base in _BASES if issubclass(kind, base)), None)
    return base is not None and not any(compares_as(kind, known) for known in (base, *_READ))


@lru_cache(maxsize=1_000)
def compared_fields(kind: Any) -> tuple[Any, ...] | None:
    """Return the compared fields of a dataclass or an attrs class; None if it has an equality of the user's own."""
    own = vars(kind)  # an undecorated subclass may have attributes that are not fields
    code = getattr(kind.__eq__, "__code__", None)
    if "__attrs_attrs__" in own:
        is_written = code is not None and code.co_filename.startswith("<attrs generated")
        compared = [field for field in own["__attrs_attrs__"] if field.eq]
    elif "__dataclass_fields__" in own:
        fields = [(f.name, Any, dataclasses.field(compare=f.compare, kw_only=True)) for f in dataclasses.fields(kind)]
        same: Any = dataclasses.make_dataclass("_Same", fields)
        written = same.__eq__.__code__
        is_written = all(getattr(code, n, None) == getattr(written, n) for n in ("co_code", "co_names", "co_consts"))
        compared = [field for field in dataclasses.fields(kind) if field.compare]
    else:
        return None
    return tuple(compared) if compares_by_identity(kind) or ("__eq__" in own and is_written) else None


def is_enum(kind: Any) -> bool:
    """Whether a class is an Enum whose members are not numbers or texts, and equal nothing but themselves."""
    base: Any = enum.Enum
    if type(kind) is not enum.EnumMeta or kind.__mro__[1:] != (base, object):
        return False
    return compares_by_identity(kind) and kind.__hash__ is base.__hash__


def compares_by_identity(kind: Any) -> bool:
    """Whether objects of a class equal nothing but themselves."""
    return compares_as(kind, object)


def compares_as(kind: Any, base: Any) -> bool:
    """Whether a class has the equality of another."""
    return kind.__eq__ is base.__eq__


# The text of an output, the same for equal outputs and in every process.
#
# Objects of unknown types have none: their `repr` may say more than their equality compares, or nothing of it, and
# their hash may differ between processes.

STATED = frozenset(
    {str, bytes, int, float, type(None), Decimal, Fraction, range, uuid.UUID, pathlib.PurePosixPath}
    | {datetime.date, datetime.time, datetime.timedelta, ipaddress.IPv4Address, ipaddress.IPv6Address}
)
"""Types whose canonical values have equal texts exactly if they are equal."""


def is_stated(value: Any) -> bool:
    """Whether a canonical value, with all its parts, has a text that is equal exactly for equal values."""
    kind = type(value)
    if kind is datetime.datetime:  # one beyond the calendar in UTC has another time zone
        return value.tzinfo is None or value.tzinfo is datetime.UTC
    if kind in NESTED:
        return all(map(is_stated, parts_in(value)))
    return kind in STATED or (isinstance(value, enum.Enum) and compares_by_identity(kind))


def equal_text(leaf: Any) -> str | None:
    """Return the text of a leaf, bytes as Latin-1; None for a number, None, and an object without a text."""
    kind = type(leaf)
    if isinstance(leaf, str):
        return str.__str__(leaf)
    if leaf is None or kind is tuple or kind is Dictionary or isinstance(leaf, numbers.Number) or not is_stated(leaf):
        return None
    if kind is frozenset or isinstance(leaf, enum.Enum):
        return printed(leaf)
    return str(leaf, "latin-1") if kind is bytes else str(leaf)


def printed(value: Any) -> str:
    """Return the repr, with the elements of sets in an order that is the same in every process."""
    try:
        return _printed(value)
    except RecursionError:  # a list that contains itself
        return _repr(value)


def _printed(value: Any) -> str:
    kind: Any = type(value)
    if kind in STATED:
        return _repr(value)
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_printed, value)))}}}"
    if (kind is tuple or kind is list) and not _SAFE.issuperset(map(type, value)):
        text = ", ".join(map(_printed, value))
        return f"[{text}]" if kind is list else f"({text}{',' * (len(value) == 1)})"
    if kind is dict:
        return f"{{{', '.join(f'{_printed(key)}: {_printed(part)}' for key, part in value.items())}}}"
    if isinstance(value, enum.Enum) and kind is not Mark and compares_by_identity(kind):
        return f"{kind.__qualname__}.{value.name}"
    if is_dataclass(value) and hasattr(kind.__repr__, "__wrapped__"):  # a repr written by `dataclass`
        shown = (f"{field.name}={_printed(getattr(value, field.name))}" for field in fields(value) if field.repr)
        return f"{kind.__qualname__}({', '.join(shown)})"
    return _repr(value)


def _repr(value: Any) -> str:
    """Return the repr, or the type if the repr raises; integers of thousands of digits are in hexadecimal."""
    try:
        return repr(value)
    except Exception:  # a user's __repr__ may raise anything
        return hex(value) if isinstance(value, int) else f"<{type(value).__qualname__}, whose repr raises>"


_SAFE = STATED - {int, float, Fraction} | {datetime.datetime}  # types whose repr is the same exactly for equal values


def outcome_text(output: Any) -> str:
    """Return a text that depends only on what equality compares of an output.

    The text holds the compared fields of a dataclass, the hash of any other object with a user's equality, and only the
    type of an object that equals nothing but itself.
    """
    kind: Any = type(output)
    if kind is float:
        return repr(output + 0.0)  # without a sign of zero
    if kind is int or kind is bool:
        return _number_text(output)
    if kind in STATED or kind is datetime.datetime:
        return _repr(output)
    if kind is tuple and _SAFE.issuperset(map(type, output)):
        return repr(output)
    if isinstance(output, enum.Enum) and compares_by_identity(kind):
        return f"{kind.__qualname__}.{output.name}"
    if kind is tuple:
        return f"({', '.join(map(outcome_text, output))}{',' * (len(output) == 1)})"
    if kind is frozenset:
        return f"frozenset({', '.join(sorted(map(outcome_text, output)))})"
    if isinstance(output, Dictionary):
        return output.text
    if compares_by_identity(kind):
        return str(kind.__qualname__)
    compared = compared_fields(kind) if is_dataclass(output) else None
    if compared is not None:
        return f"{kind.__qualname__}({', '.join(outcome_text(getattr(output, field.name)) for field in compared)})"
    return f"equal to {hash(output)}"  # a subclass may have equal objects


def _number_text(number: int) -> str:
    """Return the text of the double that equals an integer, as which it may be packed."""
    try:
        double = float(number)
    except OverflowError:
        return _repr(number)
    return repr(double) if double == number else _repr(number)


# Dictionaries as outputs: a hashable form, equal where the dictionaries are equal.
#
# An adversary may see in which order the entries were inserted, but dictionaries that Python calls equal are equal
# here: the order mostly follows from the code that builds the dictionary. A mechanism whose order is an output returns
# a list of pairs.


class Mark(enum.Enum):
    """Keys and values that no user's dictionary has, so that other outputs than dictionaries can be written as one.

    `COUNTS` is the first key in the structure of a `Counter`, in which a missing key is 0.
    """

    CLASS = "class"
    NAME = "name"
    INDEX = "index"
    ORDER = "order"
    VALUES = "value"
    OTHER = "another output"
    LEAF = "any value"
    COUNTS = "counts"
    AGAIN = "again"
    NOT_A_TIME = "NaT"

    def __repr__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, repr=False, eq=False)
class Dictionary:
    """The output of a run that returned a dictionary; equal to one with equal entries in any order."""

    entries: tuple[tuple[Any, Any], ...]

    @cached_property
    def text(self) -> str:
        """What `outcome_text` returns, written once: every check of an output that is kept asks for it."""
        texts = [
            f"({key!r}, {outcome_text(part)})" if type(key) is str else outcome_text((key, part))
            for key, part in self.entries
        ]
        return f"Dictionary({', '.join(sorted(texts))})"

    @classmethod
    def of(cls, entries: Iterable[tuple[Any, Any]]) -> Dictionary:
        """Return the dictionary of these entries, whose keys differ, in an order that depends on the keys alone."""
        return cls(tuple(sorted(entries, key=lambda entry: _place(entry[0]))))

    def __eq__(self, other: object) -> bool:
        if type(other) is not Dictionary:
            return NotImplemented
        return self.entries == other.entries or frozenset(self.entries) == frozenset(other.entries)

    def __hash__(self) -> int:
        return hash(frozenset(self.entries))

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{printed(key)}: {printed(value)}' for key, value in self.entries)}}}"


def _place(key: Any) -> tuple[int, float, int, str]:
    if type(key) is str:
        return 1, 0.0, 0, repr(key)
    if isinstance(key, Mark):
        return -1, 0.0, 0, key.value
    try:
        if type(key) is int:
            return 0, float(key), key - int(float(key)), ""
        if isinstance(key, numbers.Real):
            return 0, float(key), 0, ""
    except (OverflowError, ValueError):
        pass
    return 1, 0.0, 0, outcome_text(key)


# A plain output is a leaf, or one of these with plain outputs in it; keys and members of sets are canonical.
NESTED = frozenset({tuple, frozenset, Dictionary})


def parts_in(value: Any) -> Iterable[Any]:
    """Return the parts of a nested plain output, and its keys."""
    return chain.from_iterable(value.entries) if type(value) is Dictionary else value


_OWN_KEYS = frozenset({str, int, bool, bytes, type(None)})  # types of most outputs, which are their own keys


def outcome_key(output: Any) -> Any:
    """Return a key that is equal for equal outputs, NaN included."""
    kind = type(output)
    if kind in _OWN_KEYS or is_enum(kind):
        return output
    if kind is float:
        return output if output == output else _NAN
    if kind is tuple:
        return output if _OWN_KEYS.issuperset(map(type, output)) else tuple(map(outcome_key, output))
    if isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, (float, complex, Decimal)):
        return _NAN if (output.is_nan() if isinstance(output, Decimal) else output != output) else output
    if kind is frozenset:
        return output if _OWN_KEYS.issuperset(map(type, output)) else frozenset(map(outcome_key, output))
    return (Dictionary, frozenset(map(outcome_key, output.entries))) if kind is Dictionary else output


class _NaN:
    """The common key of all NaNs."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "_NAN"


_NAN = _NaN()


def can_change(value: Any) -> bool:
    """Whether an object is an array or another collection that can be filled again."""
    return not isinstance(value, Hashable) or is_foreign_array(value)


def is_one_memory(a: Any, b: Any) -> bool:
    """Whether two outputs or blocks are one object, or arrays of numpy that lie in the same memory."""
    return a is b or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b))


def in_one_type(columns: list[Array]) -> np.dtype[Any] | None:
    """Return the type of numbers that holds all columns without loss; None if there is none."""
    if not columns or any(column.dtype.kind not in "biuf" for column in columns):
        return None
    kind = np.result_type(*columns)
    whole = [column for column in columns if column.dtype.kind in "iu" and column.size]
    if kind.kind == "f" and any(max(abs(int(each.max())), abs(int(each.min()))) > 2**53 for each in whole):
        return None
    is_mixed = any(column.dtype.kind == "b" for column in columns) and kind.kind != "b"
    if is_mixed and kind.kind == "u" and any(int(each.max()) >= 2**63 for each in whole):
        return None
    return np.dtype(np.float64) if kind.kind == "f" else np.dtype(np.int64) if is_mixed else kind


_SIMPLE = frozenset({float, int, bool, str, bytes, type(None), list, np.float64})
_WRITTEN = frozenset({Mark.CLASS, Mark.ORDER})  # keys of what two versions may write in other ways
_LONGEST = 40  # characters of the name of a column, so that an event of two fits into a line

Entries = list[tuple[Any, Any]]
"""The parts of an output, each with its key."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an output that the caller picked, with its name."""

    name: str
    value: Any


def entries_of(output: Any) -> Entries | None:
    """Return the entries of an output with named parts, one level deep; None for any other output.

    Outputs of one class have the same entries only if they are equal. A named tuple has none: it equals the tuple of
    its parts.
    """
    kind: Any = type(output)
    if kind in _SIMPLE:
        return None
    fields = _fields_of(kind)
    if fields is not None:
        values = [(field.name, getattr(output, field.name), getattr(field, "eq_key", None)) for field in fields]
        # attrs may compute what is compared of a field from its value.
        compared = [(name, value if key is None else key(value)) for name, value, key in values]
        return [(Mark.CLASS, class_name(kind)), *compared]
    if kind is SimpleNamespace:
        return [(Mark.CLASS, class_name(kind)), *vars(output).items()]
    if kind is Dictionary:
        return list(output.entries)
    match kind_of(output):
        case "mapping":
            return list(output.items())
        case "array" if output.dtype.names is not None:
            parts = [(name, output[name]) for name in output.dtype.names]
            return [
                (Mark.CLASS, f"numpy record in {output.ndim} dimensions"),
                *((name, part[()] if isinstance(part, np.ndarray) else part) for name, part in parts),
            ]
        case "table":
            return _entries_of_table(output)
        case "column":
            return _entries_of_column(output)
    return None


def parts_of(output: Any) -> Entries | None:
    """Return the parts of an output with their labels, without its marks; None for an output without named parts."""
    if isinstance(output, tuple):
        fields: Any = getattr(type(output), "_fields", None)
        return None if fields is None else list(zip(fields, output, strict=True))
    entries = entries_of(output)
    parts = [(key, part) for key, part in entries or () if not isinstance(key, Mark)]
    return None if entries is None or (not parts and is_column(output)) else parts


def without_class(output: Any) -> Any:
    """Return a labelled column, or a row of a frame or an array, as the dictionary of its labels in any order."""
    if isinstance(output, Mapping | tuple) or _fields_of(type(output)) is not None:
        return output
    entries = entries_of(output)
    return output if entries is None else Dictionary.of(each for each in entries if each[0] not in _WRITTEN)


def _entries_of_table(table: Any) -> Entries:
    index = _labels_of(table)
    entries: Entries = [(Mark.CLASS, class_name(type(table)))]
    names = [name for axis in (_index_of(table), table.columns) for name in getattr(axis, "names", ())]
    if any(name is not None for name in names):
        entries.append((Mark.NAME, tuple(names)))
    if index is not None or len(table) != 1:
        entries.append((Mark.INDEX, len(table) if index is None else tuple(index.tolist())))
    for key, column in columns_of_table(table):
        values = column_of(column)
        entries.append((key, values[0] if len(values) == 1 else values))
    return entries


def _entries_of_column(column: Any) -> Entries | None:
    """Return the entries of a column with a name or with labels; None for another, a vector of values."""
    index, name = _labels_of(column), _name_of(column)
    if name is None and index is None:
        return None
    entries: Entries = [(Mark.CLASS, class_name(type(column)))]
    names = (name, *getattr(_index_of(column), "names", ()))
    if any(each is not None for each in names):
        entries.append((Mark.NAME, names))
    if index is None:
        return [*entries, (Mark.VALUES, column_of(column))]
    labels = index.tolist()
    return [*entries, (Mark.ORDER, tuple(labels)), *zip(distinct_keys(labels), column_of(column).tolist(), strict=True)]


def _index_of(value: Any) -> Any:
    return getattr(value, "index", None) if hasattr(type(value), "iloc") else None


def _labels_of(value: Any) -> Any:
    """Return the labels of the rows of a frame or a column of pandas; None if they are the numbers of the rows."""
    index = _index_of(value)
    return None if index is None or is_default(index) else index


def _name_of(column: Any) -> Any:
    """Return the name of a column; None if it is empty."""
    name = getattr(column, "name", None)
    return None if isinstance(name, str) and not name else name


def is_default(index: Any) -> bool:
    """Whether the labels of rows are the numbers of the rows."""
    if index.name is not None:
        return False
    if type(index).__name__ == "RangeIndex":
        return len(index) == 0 or (index[0] == 0 and index[-1] == len(index) - 1)
    if getattr(index, "nlevels", 1) > 1 or getattr(index.dtype, "kind", "O") not in "iufO":
        return False
    if len(index) == 0 or index.hasnans or index[0] != 0:
        return False
    labels = index.tolist()
    return labels == list(range(len(labels))) and bool not in map(type, labels)


def columns_of_table(table: Any) -> Entries:
    """Return the columns of a data frame with their keys, which differ."""
    keys = distinct_keys(list(table.columns))
    is_by_place = hasattr(table, "iloc")
    each = [table.iloc[:, place] if is_by_place else table.to_series(place) for place in range(len(keys))]
    return list(zip(keys, each, strict=True))


def distinct_keys(labels: list[Any]) -> list[Any]:
    """Return labels as keys that differ: one that came before as a tuple with `Mark.AGAIN` and its number."""
    seen: Counter[Any] = Counter()
    found = []
    for label in labels:
        seen[label] += 1
        found.append(label if seen[label] == 1 else (label, Mark.AGAIN, seen[label]))
    return found


def label_text(label: Any) -> str:
    """Return the text of a label; those of a tuple are joined with dots."""
    if isinstance(label, tuple) and len(label) == 3 and label[1] is Mark.AGAIN:
        return f"{label_text(label[0])} ({label[2]})"
    if isinstance(label, tuple):
        return ".".join(map(label_text, label))
    try:
        return str(label.value if isinstance(label, Mark) else label)
    except Exception:  # an integer of thousands of digits, or a user's own `__str__`
        return printed(label)


def shown_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return names for a reader: short, without control characters, and with a number after one that came before."""
    return distinct(map(shown, texts))


def shown(text: str) -> str:
    """Return a text for a reader: at most 40 characters, none of which controls a terminal."""
    plain = text[: _LONGEST + 1]
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"


def distinct(names: Iterable[str], numbered: str = "{} ({})") -> tuple[str, ...]:
    """Return the names, with a number after a name that came before."""
    found: dict[str, None] = {}
    times: Counter[str] = Counter()
    for name in names:
        new = name
        while new in found:
            times[name] += 1
            new = numbered.format(name, 1 + times[name])
        found[new] = None
    return tuple(found)


def class_name(kind: type[Any]) -> str:
    """Return the full name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _fields_of(kind: Any) -> tuple[Any, ...] | None:
    """Return the compared fields of a dataclass or an attrs class; None if it has an equality of the user's own."""
    fields = compared_fields(kind)
    if fields is None or issubclass(kind, enum.Enum) or str(kind.__module__).startswith(f"{__package__}."):
        return None
    return fields


# Blocks of runs whose columns have names: data frames, structured arrays, dictionaries of columns, named columns.
#
# A block with named columns is the list of the dictionaries of its rows. Columns are found by their keys and not by
# their places, so the order of columns does not matter, and a row with other columns is a different outcome.


def columns_of_block(raw: Any) -> Entries | None:
    """Return the columns of many runs, one run in each row, with their keys; None if they have no names.

    Such are data frames, structured arrays, dictionaries of columns, and a column of pandas or polars with a name. The
    labels of rows are a column if they are not the numbers of the rows.
    """
    if isinstance(raw, (list, tuple)) or raw is None:
        return None
    if type(raw) is Part:
        return None if is_column(raw.value) else columns_of_block(raw.value)
    if isinstance(raw, np.ndarray):
        names = raw.dtype.names
        return None if names is None else [(name, raw[name]) for name in names]
    if isinstance(raw, Mapping):
        return list(Dictionary.of(raw.items()).entries)
    if not (is_table(raw) or is_column(raw)):
        return None
    index = _labels_of(raw)
    labels = [] if index is None else [(Mark.INDEX, index)]
    if is_table(raw):
        return [*labels, *columns_of_table(raw)]
    if (name := _name_of(raw)) is not None:
        return [*labels, (name, raw)]
    return [*labels, (Mark.VALUES, raw)] if labels else None


def without_labels(raw: Any) -> Any:
    """Return a data frame or a column with the numbers of its rows as labels, which then are not outputs."""
    return raw if _labels_of(raw) is None else raw.reset_index(drop=True)


def structure_of(columns: Entries) -> Dictionary:
    """Return the structure of the rows of a block: a vector in place of a matrix, a leaf in place of a column."""
    return Dictionary(tuple((key, _structure_of_one(column)) for key, column in columns))


def _structure_of_one(column: Any) -> Any:
    is_matrix = getattr(column, "ndim", 1) == 2 and getattr(getattr(column, "dtype", None), "kind", "f") in "biuf"
    return (Mark.LEAF,) * column.shape[1] if is_matrix else Mark.LEAF


def names_of(columns: Entries, prefix: str = "") -> list[str]:
    """Return the names of the columns, several for a matrix."""
    start = f"{prefix}." if prefix else ""
    found: list[str] = []
    for key, column in columns:
        name, structure = start + label_text(key), _structure_of_one(column)
        found += [name] if structure is Mark.LEAF else [f"{name}[{place}]" for place in range(len(structure))]
    return found


def arrays_of(columns: Entries, size: int, name: str) -> dict[Any, Array]:
    """Return the columns of `size` runs as arrays, by their keys."""
    arrays = {}
    for key, column in columns:
        label = label_text(key)
        array = array_of(column, name, f"a column {label!r}")
        if array.shape[:1] != (size,) or array.ndim > 2:
            raise refusal(
                name,
                f"a column {label!r} of shape {array.shape} when asked for {counted(size, 'output')}; return one value "
                "for each run in each column.",
                column=label,
                shape=array.shape,
            )
        arrays[key] = array
    return arrays


def array_of(values: Any, name: str, what: str) -> Array:
    """Return a column, or an array of another library, as a numpy array, with None for what is missing."""
    refuse_masked(values, name)
    try:
        return column_of(values)
    except Exception as error:  # not a column, or one that numpy cannot read
        raise refusal(name, f"{what} that cannot be read ({described(error)}); return a numpy array.") from error


def side_by_side(arrays: list[Array]) -> Array | list[Any]:
    """Return columns as an array of numbers, or as a list of rows."""
    flat = [part for array in arrays for part in ([array] if array.ndim == 1 else array.T)]
    kind = in_one_type(flat)
    if kind is not None:
        if len(flat) == 1:
            return flat[0].astype(kind, copy=False)
        return np.column_stack([array.astype(kind, copy=False) for array in flat])
    values: list[list[Any]] = [array.tolist() for array in flat]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


def as_dictionaries(arrays: dict[Any, Array], size: int) -> list[Dictionary]:
    """Return the rows of columns as dictionaries."""
    ordered = Dictionary.of(arrays.items()).entries
    keys, columns = [key for key, _ in ordered], [array.tolist() for _, array in ordered]
    return [Dictionary(tuple(zip(keys, row, strict=True))) for row in zip(*columns, strict=True)] or [
        Dictionary(())
    ] * size


def refuse_masked(value: Any, name: str) -> None:
    """Raise a `MechanismError` for a masked array."""
    if isinstance(value, np.ma.MaskedArray):
        raise refusal(name, "a masked array, whose mask is not an output; fill it.")


def refusal(name: str, said: str, **facts: Any) -> MechanismError:
    """Return the error for what the mechanism with this name has returned."""
    return MechanismError(f"{name} returned {said}", mechanism=name, **facts)


# What is returned in place of a value, by the value that it would give and the way to that value.
_UNEVALUATED: tuple[tuple[tuple[Any, ...], str, str], ...] = (
    ((AsyncIterator,), "its values", "collect them with asyncio.run(…) and return a list"),
    ((Awaitable,), "its value", "await it and return its value, or return asyncio.run(…)"),
    ((io.IOBase,), "its contents", "return file.read()"),
    ((Iterator, MappingView), "its values", "return list(…)"),
    ((FunctionType, BuiltinFunctionType, MethodType, partial), "its result", "call it and return the result"),
)
_METHODS = {"concurrent": "result", "distributed": "result", "dask": "compute", "polars": "collect"}  # by library


def unevaluated(output: Any) -> str:
    """Describe an output that is not a value yet, with the remedy, such as a generator; empty for a value."""
    kind: Any = type(output)
    if isinstance(output, Coroutine):
        output.close()  # Python would warn that it was never awaited
    name = kind.__name__.removeprefix("builtin_").removesuffix("_or_method")
    what = f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
    for kinds, value, remedy in _UNEVALUATED:
        if isinstance(output, kinds):
            return f"{what}, not {value}; {remedy}."
    method = _METHODS.get(str(kind.__module__).partition(".")[0])
    if method is None or not callable(getattr(kind, method, None)):
        return ""
    return f"{what}, not its result; return the result of its method {method}()."


def refuse_unevaluated(output: Any, name: str, size: int | None = None) -> None:
    """Raise a `MechanismError` for an output that is not a value yet, and for None in place of `size` outputs."""
    is_none = output is None and size is not None
    said = f"None when asked for {counted(size or 0, 'output')}; is a return missing?" if is_none else ""
    if said := said or unevaluated(output):
        raise refusal(name, said)
