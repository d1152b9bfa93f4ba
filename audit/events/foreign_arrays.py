"""Arrays and columns of other libraries as numpy arrays: torch, jax, pandas, polars, or any with their protocols.

No library is imported: an array is known by `__array__` or `__dlpack__`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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
    """Return an array of any library as a numpy array, without its gradient and from the memory of any device.

    Raise a `TypeError` or another exception of the library if it cannot be read.

    Examples
    --------
    >>> numpy_of(np.arange(3))
    array([0, 1, 2])
    """
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
    """Return the values of a column as an array of numbers if it holds only numbers, else of objects.

    A missing value of pandas or polars that is not NaN becomes None.
    """
    if not _has_nulls(values):
        found = values if isinstance(values, np.ndarray) else _read(values)
        if found.dtype.kind in _NUMBERS:
            return found
    items = list(values)
    plain = [None if type(item).__name__ == "NAType" else item for item in items]
    return np.fromiter(plain, dtype=object, count=len(plain))


def _has_nulls(values: Any) -> bool:
    """Whether numbers are missing in a column of polars, or in one of pandas with a type that numpy does not have.

    numpy would get NaN for a missing number, which is another value.
    """
    if hasattr(type(values), "isna") and not isinstance(values.dtype, np.dtype):
        return bool(np.any(values.isna()))
    nulls = getattr(values, "null_count", None)
    return callable(nulls) and bool(nulls() > 0)


def _read(values: Any) -> Array:
    to_numpy = getattr(values, "to_numpy", None)
    if callable(to_numpy):
        return np.asarray(to_numpy())
    return numpy_of(values) if is_foreign_array(values) else np.asarray(values)


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
