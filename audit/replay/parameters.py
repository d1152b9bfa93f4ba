"""Parameters of laws: copies of them, whether two are equal, how far apart they are, and how they are printed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .output_values import EXACT, NotCopied, kept, same_output

_SAME: Final = 1e-9
"""Relative difference of two scales below which they count as equal: rounding, not the data, separates them."""
_PLAIN: Final = (int, float, str, bytes, bool, type(None))


def copied(value: Any) -> Any:
    """Return a copy of a parameter, which the caller may change later; the value itself if it cannot be copied."""
    if type(value) in _PLAIN or isinstance(value, np.generic):
        return value
    if getattr(type(value), "__eq__", None) is getattr(object, "__eq__", None):
        return value  # compared by identity
    found = kept(value)
    return value if isinstance(found, NotCopied) else found


def shown(value: Any) -> str:
    """Return a parameter as text, at most four numbers."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
        return text if len(text) <= 40 else text[:39] + "…"
    if numbers.size == 1:
        return f"{float(numbers.reshape(-1)[0]):.6g}"
    first = ", ".join(f"{each:.4g}" for each in numbers.reshape(-1)[:4])
    return f"[{first}{', …' if numbers.size > 4 else ''}]"


def same_parameter(first: Any, second: Any, *, is_exact: bool = False) -> bool:
    """Return whether two parameters are equal, whole numbers exactly and other objects if their type says so.

    Unless `is_exact`, a relative difference of numbers of 1e-9 counts as rounding.
    """
    apart = difference(first, second)
    if apart is not None:
        if is_exact or not np.any(apart):
            return not np.any(apart)
        return bool(np.all(apart <= _SAME * np.abs(np.asarray(second, dtype=np.float64))))
    if _numbers(first) is not None and _numbers(second) is not None:
        return False  # of other shapes
    return first is second or same_output(first, second) is True


def difference(first: Any, second: Any) -> npt.NDArray[np.float64] | None:
    """Return |first − second|, element by element; None unless both are numbers of the same shape.

    The difference between a number and NaN is infinite. Whole numbers of any size are subtracted exactly.
    """
    a, b = _numbers(first), _numbers(second)
    if a is None or b is None or a.shape != b.shape:
        return None
    with np.errstate(all="ignore"):
        if not (_is_large(first, a) or _is_large(second, b)):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
            return np.where(np.isnan(apart), math.inf, apart)
    exact = [_apart(p, q) for p, q in zip(_items(first), _items(second), strict=True)]
    return np.array(exact, dtype=np.float64).reshape(a.shape)


def _numbers(value: Any) -> npt.NDArray[np.float64] | None:
    if isinstance(value, (str, bytes)) or value is None:
        return None
    try:
        found = np.asarray(value)
        return np.asarray(found, dtype=np.float64) if found.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def _is_large(value: Any, numbers: npt.NDArray[np.float64]) -> bool:
    return np.asarray(value).dtype.kind in "iuO" and bool(np.any(np.abs(numbers) >= EXACT))


def _items(value: Any) -> list[Any]:
    return list(np.asarray(value).reshape(-1).tolist())


def _apart(first: Any, second: Any) -> float:
    if first == second or (first != first and second != second):
        return 0.0
    try:
        return float(abs(Fraction(first) - Fraction(second)))
    except (TypeError, ValueError, OverflowError):  # NaN, an infinity, or beyond the doubles
        return math.inf
