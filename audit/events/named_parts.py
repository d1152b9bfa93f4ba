"""Outputs whose parts have names: dictionaries, data frames, labelled columns, dataclasses, named tuples.

`entries_of` writes such an output as the entries of a dictionary, so that two different outputs keep different entries.
A property that is not a part, such as a class, the name of a column or the labels of rows, has a `Mark` as its key,
which no user's dictionary has. The order of labels is an output; the order of keys and columns is not.

`outcome_text` depends only on what equality compares, and is the same in every process. Health checks of blocks hash
these texts and sort outputs by them. The `repr` of an object may contain its address or creation time; sorting by it
would reproduce the order of the runs, and a check would flag independent runs.
"""

from __future__ import annotations

import array
import dataclasses
import datetime
import enum
import io
import ipaddress
import numbers
import pathlib
import uuid
from collections import Counter, OrderedDict, UserList, deque
from collections.abc import AsyncIterator, Awaitable, Coroutine, Hashable, Iterable, Iterator, Mapping, MappingView
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MethodType, SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import MechanismError, described
from ..printing import counted

EXACT = 1 << 53
"""The largest size up to which doubles hold every whole number."""

# Classes whose objects compare in a way of their own, so that their parts may say more than their equality.

SEQUENCES: tuple[Any, ...] = (tuple, list, deque, array.array, UserList)
"""Collections whose items have an order."""
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


def compared_fields(kind: Any) -> tuple[Any, ...] | None:
    """Return the compared fields of a dataclass or an attrs class; None if it has an equality of the user's own."""
    own = vars(kind)  # an undecorated subclass may have attributes that are not fields
    is_attrs = "__attrs_attrs__" in own
    if not is_attrs and "__dataclass_fields__" not in own:
        return None
    fields: Any = own["__attrs_attrs__"] if is_attrs else dataclasses.fields(kind)
    if not compares_by_identity(kind) and not ("__eq__" in own and _is_written(kind, is_attrs)):
        return None
    return tuple(field for field in fields if (field.eq if is_attrs else field.compare))


@lru_cache(maxsize=1_000)
def _is_written(kind: Any, is_attrs: bool) -> bool:
    """Whether `attrs` or `dataclass` wrote the equality of a class."""
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or is_attrs:
        return code is not None and code.co_filename.startswith("<attrs generated")
    fields = [(f.name, Any, dataclasses.field(compare=f.compare, kw_only=True)) for f in dataclasses.fields(kind)]
    same: Any = dataclasses.make_dataclass("_Same", fields)
    written = same.__eq__.__code__
    return (code.co_code, code.co_names, code.co_consts) == (written.co_code, written.co_names, written.co_consts)


def is_enum(kind: Any) -> bool:
    """Whether a class is an Enum whose members are not numbers or texts, and equal nothing but themselves."""
    return type(kind) is enum.EnumMeta and _is_enum(kind)


@lru_cache(maxsize=1_000)
def _is_enum(kind: Any) -> bool:
    return (
        kind.__mro__[1:] == (enum.Enum, object) and compares_by_identity(kind) and kind.__hash__ is enum.Enum.__hash__
    )


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
    kind = type(output)
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
    if isinstance(output, np.generic):
        return outcome_text(output.item())
    if kind is tuple:
        return f"({', '.join(map(outcome_text, output))}{',' * (len(output) == 1)})"
    if isinstance(output, (tuple, frozenset)) and not has_own_equality(output):
        texts = map(outcome_text, output)
        return f"{kind.__qualname__}({', '.join(sorted(texts) if isinstance(output, frozenset) else texts)})"
    if isinstance(output, Dictionary):
        return output.text
    if compares_by_identity(kind):
        return kind.__qualname__
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


@dataclass(frozen=True, slots=True)
class Again:
    """A label that came before among the labels of the same frame or column."""

    label: Any
    time: int


# A plain output is a leaf, or one of these with plain outputs in it; keys and members of sets are canonical.
NESTED = frozenset({tuple, frozenset, Dictionary, Again})


def parts_in(value: Any) -> Iterable[Any]:
    """Return the parts of a nested plain output, and its keys."""
    if type(value) is Dictionary:
        return chain.from_iterable(value.entries)
    return (value.label,) if type(value) is Again else value


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

# Arrays and columns of other libraries as numpy arrays: torch, jax, pandas, polars, or any with their protocols.
#
# No library is imported: an array is known by `__array__` or `__dlpack__`.

Array: TypeAlias = npt.NDArray[Any]

_NUMBERS = "biuf"


def is_foreign_array(value: Any) -> bool:
    """Whether the value is an array of another library than numpy."""
    kind = type(value)
    if kind is type or isinstance(value, (np.ndarray, np.generic)):
        return False
    return hasattr(kind, "__array__") or hasattr(kind, "__dlpack__")


def is_tensor(value: Any) -> bool:
    """Whether the value is an array of torch, jax or similar, which holds numbers and nothing else."""
    return is_foreign_array(value) and hasattr(type(value), "__dlpack__")


def marks_of_tensor(value: Any) -> list[str]:
    """Return what else than its numbers a mechanism may see of a tensor: type, place, and whether it has a gradient."""
    return [str(getattr(value, name, None)) for name in ("dtype", "device", "requires_grad")]


def numpy_of(value: Any) -> Array:
    """Return an array of any library, without its gradient, from any device; raises what the library raises."""
    if isinstance(value, np.ndarray):
        return value
    for name in ("detach", "cpu"):  # a tensor of torch, which may record gradients or lie on another device
        method = getattr(value, name, None)
        value = method() if callable(method) else value
    if not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    try:
        found = np.asarray(value)
    except TypeError:  # numpy has no such type, such as torch's bfloat16, which doubles hold exactly
        found = np.asarray(value.double())
    is_extension = found.dtype.kind == "V" and found.dtype.names is None  # jax's bfloat16
    return found.astype(np.float64) if is_extension else found


def can_change(value: Any) -> bool:
    """Whether an object is an array or another collection that can be filled again."""
    return not isinstance(value, Hashable) or is_foreign_array(value)


def is_one_memory(a: Any, b: Any) -> bool:
    """Whether two outputs or blocks are one object, or arrays of numpy that lie in the same memory."""
    return a is b or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b))


def column_of(values: Any) -> Array:
    """Return a column as an array of numbers, or of objects, in which a missing value that is not NaN is None."""
    if not _has_nulls(values):
        to_numpy = getattr(values, "to_numpy", None)
        found = to_numpy() if callable(to_numpy) else numpy_of(values) if is_foreign_array(values) else values
        found = np.asarray(found)
        if found.dtype.kind in _NUMBERS:
            return found
    items = list(values)
    plain = [None if type(item).__name__ == "NAType" else item for item in items]
    return np.fromiter(plain, dtype=object, count=len(plain))


def _has_nulls(values: Any) -> bool:
    """Whether numbers are missing in a column of polars or of a type of pandas alone, where numpy would get NaN."""
    if hasattr(type(values), "isna") and not isinstance(values.dtype, np.dtype):
        return bool(np.any(values.isna()))
    nulls = getattr(values, "null_count", None)
    return callable(nulls) and bool(nulls() > 0)


def in_one_type(columns: list[Array]) -> np.dtype[Any] | None:
    """Return the type of numbers that holds all columns without loss; None if there is none."""
    if not columns or any(column.dtype.kind not in _NUMBERS for column in columns):
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
_LONGEST = 40  # characters of the name of a column

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
    if isinstance(output, dict):
        return list(output.items())
    if kind is SimpleNamespace:
        return [(Mark.CLASS, class_name(kind)), *vars(output).items()]
    if kind is Dictionary:
        return list(output.entries)
    if isinstance(output, (np.void, np.ndarray)):
        if output.dtype.names is None:
            return None
        parts = [(name, output[name]) for name in output.dtype.names]
        return [
            (Mark.CLASS, f"numpy record in {output.ndim} dimensions"),
            *((name, part[()] if isinstance(part, np.ndarray) else part) for name, part in parts),
        ]
    if is_table(output):
        return _entries_of_table(output)
    if is_column(output):
        return _entries_of_column(output)
    return list(output.items()) if isinstance(output, Mapping) else None


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
    index: Any = getattr(table, "index", None)
    entries: Entries = [(Mark.CLASS, class_name(type(table)))]
    names = [name for axis in (index, table.columns) for name in getattr(axis, "names", ())]
    if any(name is not None for name in names):
        entries.append((Mark.NAME, tuple(names)))
    is_numbered = not hasattr(index, "tolist") or is_default(index)
    if not (is_numbered and len(table) == 1):
        entries.append((Mark.INDEX, len(table) if is_numbered else tuple(index.tolist())))
    for key, column in columns_of_table(table):
        values = column_of(column)
        entries.append((key, values[0] if len(values) == 1 else values))
    return entries


def _entries_of_column(column: Any) -> Entries | None:
    """Return the entries of a column with a name or with labels; None for another, a vector of values."""
    index = getattr(column, "index", None) if hasattr(type(column), "iloc") else None
    name = getattr(column, "name", None)
    is_named = not (name is None or (isinstance(name, str) and not name))
    if not is_named and (index is None or is_default(index)):
        return None
    entries: Entries = [(Mark.CLASS, class_name(type(column)))]
    names = tuple(getattr(index, "names", ()))
    if is_named or any(each is not None for each in names):
        entries.append((Mark.NAME, (name, *names)))
    if index is None or is_default(index):
        return [*entries, (Mark.VALUES, column_of(column))]
    labels = index.tolist()
    return [*entries, (Mark.ORDER, tuple(labels)), *zip(distinct_keys(labels), column_of(column).tolist(), strict=True)]


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


def is_table(value: Any) -> bool:
    """Whether the value is a data frame of pandas or polars."""
    kind = type(value)
    return hasattr(kind, "columns") and (hasattr(kind, "itertuples") or hasattr(kind, "iter_rows"))


def is_column(value: Any) -> bool:
    """Whether the value is a column of pandas or polars, or is like one."""
    kind = type(value)
    return hasattr(kind, "to_numpy") and hasattr(kind, "name") and not is_table(value)


def columns_of_table(table: Any) -> Entries:
    """Return the columns of a data frame with their keys, which differ."""
    keys = distinct_keys(list(table.columns))
    is_by_place = hasattr(table, "iloc")
    each = [table.iloc[:, place] if is_by_place else table.to_series(place) for place in range(len(keys))]
    return list(zip(keys, each, strict=True))


def distinct_keys(labels: list[Any]) -> list[Any]:
    """Return labels as keys that differ."""
    seen: Counter[Any] = Counter()
    found = []
    for label in labels:
        seen[label] += 1
        found.append(label if seen[label] == 1 else Again(label, seen[label]))
    return found


def label_text(label: Any) -> str:
    """Return the text of a label; those of a tuple are joined with dots."""
    if isinstance(label, tuple):
        return ".".join(map(label_text, label))
    if type(label) is Again:
        return f"{label_text(label.label)} ({label.time})"
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
    if is_table(raw):
        return [*_labels_of(raw), *columns_of_table(raw)]
    if not is_column(raw):
        return None
    labels, name = _labels_of(raw), raw.name
    if name is None or (isinstance(name, str) and not name):
        return [*labels, (Mark.VALUES, raw)] if labels else None
    return [*labels, (name, raw)]


def _labels_of(raw: Any) -> Entries:
    index = getattr(raw, "index", None) if hasattr(type(raw), "iloc") else None
    return [] if index is None or is_default(index) else [(Mark.INDEX, index)]


def without_labels(raw: Any) -> Any:
    """Return a data frame or a column with the numbers of its rows as labels, which then are not outputs."""
    return raw.reset_index(drop=True) if (is_table(raw) or is_column(raw)) and _labels_of(raw) else raw


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
