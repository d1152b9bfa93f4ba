"""Outputs of single runs: whether two are equal, and their numbers."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def same_output(first: Any, second: Any) -> bool | None:
    """Return whether two outputs are equal, NaN included; None if their type does not say."""
    if first is second:
        return True
    if hasattr(first, "to_numpy") and hasattr(second, "to_numpy"):  # frames and columns
        first, second = first.to_numpy(), second.to_numpy()
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        a, b = np.asarray(first), np.asarray(second)
        if a.dtype == object or b.dtype == object:
            return a.shape == b.shape and same_output(a.tolist(), b.tolist())
        floats = a.dtype.kind in "fc" and b.dtype.kind in "fc"
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=floats))
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        if type(first) is not type(second) or len(first) != len(second):
            return False
        return _all(same_output(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return list(first) == list(second) and _all(same_output(first[key], second[key]) for key in first)
    if isinstance(first, numbers.Number) and isinstance(second, numbers.Number):
        return bool(first == second or (first != first and second != second))
    if type(first) is type(second) and getattr(type(first), "__eq__", None) is getattr(object, "__eq__", None):
        return None  # compared by identity
    try:
        return bool(first == second)
    except Exception:  # an output's own comparison may raise anything
        return None


def _all(answers: Any) -> bool | None:
    held = list(answers)
    return False if False in held else None if None in held else True


def numbers_of(output: Any) -> npt.NDArray[np.float64] | None:
    """Return the numbers of an output in a row; None if it has other parts."""
    if isinstance(output, Mapping):
        parts = [numbers_of(each) for each in output.values()]
        return None if any(part is None for part in parts) else np.concatenate([np.empty(0), *parts])
    if isinstance(output, (str, bytes, bool, np.bool_)) or output is None:
        return None
    try:
        values = np.asarray(output)
    except (TypeError, ValueError):
        return None
    return values.astype(np.float64).reshape(-1) if values.dtype.kind in "iuf" else None
