"""What a value is and what is in it, for all readers of "any Python value".

`opened` returns kind, label, names and parts of a value. A reader does the same to the parts, and says for each kind
which values are equal to it: as outputs `plain_outputs` and `datasets.rows`, with types, order and signs of zero
`datasets.contents` and `sampling.object_identity`, with identities `exact.fingerprint`.
"""

from __future__ import annotations

import array
import functools
import gc
import re
import types
from collections import UserList, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

Kind = Literal[
    "sequence", "mapping", "set", "bytes", "array", "objects", "fields", "masked",
    "tensor", "arraylike", "table", "lazy table", "column", "graph", "wrapper", "other",
]  # fmt: skip
"""What a value is. Of numpy are an `array`, which may be a single number, one of `objects`, one with named `fields` and
a `masked` one; a `tensor` is of torch, jax or similar, and `arraylike` what numpy reads as an array. A `table` and a
`column` are of pandas or polars. A `wrapper` is an object of the interpreter that refers to others. Atoms, and objects
with attributes, are `other` values."""

SEQUENCES: tuple[Any, ...] = (tuple, list, deque, array.array, UserList)
"""Collections whose items have an order."""

_CLASSES: dict[Kind, tuple[Any, ...]] = {
    "sequence": SEQUENCES,
    "mapping": (dict, Mapping),
    "set": (set, frozenset),
    "bytes": (bytearray,),
    "array": (np.ndarray, np.generic),
}
WRAPPERS: dict[type, Callable[[Any], list[Any]]] = {
    **dict.fromkeys((types.MethodType, functools.partial, types.CellType), gc.get_referents),
    **dict.fromkeys((staticmethod, classmethod), lambda value: [value.__func__]),
    **dict.fromkeys((slice, range), lambda value: [value.start, value.stop, value.step]),
    property: lambda value: [value.fget, value.fset, value.fdel],
    functools.cached_property: lambda value: [value.func],  # without its lock
    re.Pattern: lambda value: [value.pattern, value.flags],
    types.GenericAlias: lambda value: [value.__origin__, value.__args__],
}
"""Objects of the interpreter, each with what it refers to."""

_WHOLE = frozenset(  # classes whose objects have no attributes
    {tuple, list, deque, array.array, dict, types.MappingProxyType, set, frozenset}
    | {bytearray, np.ndarray, np.ma.MaskedArray}
)


def kind_of(value: Any) -> Kind:
    """Return what a value is by its class alone: `"array"` for arrays of numpy of any kind."""
    cls: Any = type(value)
    return _kind_of(cls)


@functools.lru_cache(maxsize=1_000)
def _kind_of(cls: Any) -> Kind:
    for kind, bases in _CLASSES.items():
        if issubclass(cls, bases):
            return kind
    if issubclass(cls, tuple(WRAPPERS)):
        return "wrapper"
    has = functools.partial(hasattr, cls)
    if has("number_of_nodes") and has("number_of_edges"):
        return "graph"
    if has("columns") and (has("itertuples") or has("iter_rows")):
        return "table"
    if has("collect") and has("collect_schema"):
        return "lazy table"
    if has("to_numpy") and has("name"):
        return "column"
    if has("__dlpack__"):
        return "tensor"
    return "arraylike" if has("__array__") else "other"


def shows_all(cls: Any, kind: Kind) -> bool:
    """Whether objects of a class and kind hold nothing that matters beside what `opened` returns."""
    if kind in ("table", "column"):  # others derived from these may have attributes
        return cls.__module__.partition(".")[0] in ("pandas", "polars")
    return kind in ("tensor", "graph") or cls in _WHOLE or cls in WRAPPERS or issubclass(cls, np.generic)


class Opened(NamedTuple):
    """What a value is, and what is in it; without parts of `"other"`."""

    kind: Kind
    label: tuple[Any, ...] = ()  # types, numbers and texts with a repr that says all
    names: Sequence[Any] = ()  # keys, or labels of rows and columns
    parts: Any = ()  # in their order; of an `array` it itself


def opened(value: Any) -> Opened:
    """Return the kind of a value, and all that distinguishes it, beside its class and attributes, from its kind."""
    kind = kind_of(value)
    match kind:
        case "sequence":
            return Opened(kind, (getattr(value, "typecode", None), getattr(value, "maxlen", None)), (), list(value))
        case "mapping":
            factory = getattr(getattr(value, "default_factory", None), "__qualname__", None)
            return Opened(kind, (factory,), [*value.keys()], [*value.values()])
        case "set":
            return Opened(kind, parts=value)
        case "bytes":
            return Opened(kind, (bytes(value),))
        case "array":
            return _opened_array(value)
        case "tensor":
            told = (str(getattr(value, name, None)) for name in ("dtype", "device", "requires_grad"))
            return Opened(kind, tuple(told), parts=[numpy_of(value)])
        case "graph":
            edges = value.edges(data=True, keys=True) if value.is_multigraph() else value.edges(data=True)
            return Opened(kind, parts=[list(value.nodes(data=True)), list(edges), getattr(value, "graph", None)])
        case "lazy table":
            return opened(value.collect())
        case "wrapper":
            read = next(filter(None, map(WRAPPERS.get, type(value).__mro__)))
            return Opened(kind, parts=read(value))
        case "table" | "column" | "arraylike":
            return _opened_table(value, kind)
    return Opened(kind)


def _opened_array(value: Any) -> Opened:
    if isinstance(value, np.ma.MaskedArray):
        return Opened("masked", (repr(value.fill_value),), parts=[np.asarray(value.data), np.ma.getmaskarray(value)])
    whole = np.asarray(value)
    label, names = (whole.shape, whole.dtype), whole.dtype.names
    if names is not None:
        return Opened("fields", label, list(names), [whole[name] for name in names])
    if whole.dtype.hasobject:
        return Opened("objects", label, parts=whole.ravel().tolist())
    return Opened("array", label, parts=whole)


def _opened_table(value: Any, kind: Kind) -> Opened:
    """Read a table or a column through its public interface, because its internals may be rearranged."""
    is_of_pandas = type(value).__module__.partition(".")[0] == "pandas"
    if kind == "table" and hasattr(value, "iloc"):
        columns = [value.iloc[:, place] for place in range(len(value.columns))]
        return Opened(kind, names=[value.columns, value.index, dict(value.attrs)], parts=columns)
    if kind == "table":
        return Opened(kind, names=list(value.columns), parts=[value.to_series(at) for at in range(len(value.columns))])
    if hasattr(value, "iloc") or (is_of_pandas and hasattr(value, "names")):
        categories = getattr(value.dtype, "categories", None)
        names = [list(value.names)] if hasattr(value, "names") else [value.name, value.index, dict(value.attrs)]
        names = [*names, None if categories is None else list(categories)]
        return Opened("column", (str(value.dtype),), names, [_values_of_pandas(value)])
    label, names = (str(getattr(value, "dtype", "")),), [getattr(value, "name", None)]
    if hasattr(value, "null_count"):
        return Opened("column", label, names, [column_of(value)])
    if not hasattr(value, "__array__"):  # numpy would hold the value itself
        return Opened("other")
    return Opened("arraylike", label, names, [np.asarray(value)])


def _values_of_pandas(column: Any) -> Any:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufcmM":
        return np.asarray(column)
    if hasattr(column.dtype, "tz"):  # the zone is in the name of the type
        return column.to_numpy(f"datetime64[{column.dtype.unit}]", copy=True)  # a view is not seen to change
    return [("NA",) if type(item).__name__ == "NAType" else item for item in column.tolist()]  # NA equals nothing


# Arrays and columns of other libraries as numpy arrays. No library is imported: an array is known by its protocols.


def is_foreign_array(value: Any) -> bool:
    """Whether the value is an array of another library than numpy."""
    cls = type(value)
    is_of_numpy = issubclass(cls, (np.ndarray, np.generic))
    return not is_of_numpy and (hasattr(cls, "__array__") or hasattr(cls, "__dlpack__"))


def is_tensor(value: Any) -> bool:
    """Whether the value is an array of torch, jax or similar, which holds numbers and nothing else."""
    return kind_of(value) == "tensor"


def is_table(value: Any) -> bool:
    """Whether the value is a data frame of pandas or polars."""
    return kind_of(value) == "table"


def is_column(value: Any) -> bool:
    """Whether the value is a column of pandas or polars, or is like one."""
    return kind_of(value) == "column"


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


def column_of(values: Any) -> Array:
    """Return a column as an array of numbers, or of objects, in which a missing value that is not NaN is None."""
    if not _has_nulls(values):
        to_numpy = getattr(values, "to_numpy", None)
        found = to_numpy() if callable(to_numpy) else numpy_of(values) if is_foreign_array(values) else values
        found = np.asarray(found)
        if found.dtype.kind in "biuf":
            return found
    items = [None if type(item).__name__ == "NAType" else item for item in values]
    return np.fromiter(items, dtype=object, count=len(items))


def _has_nulls(values: Any) -> bool:
    """Whether numbers are missing in a column of polars or of a type of pandas alone, where numpy would get NaN."""
    if hasattr(type(values), "isna") and not isinstance(values.dtype, np.dtype):
        return bool(np.any(values.isna()))
    nulls = getattr(values, "null_count", None)
    return callable(nulls) and bool(nulls() > 0)
