"""Last digits of whole numbers that doubles may not hold: above 2⁵³ a double loses parity and the last digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .outputs import is_real

EXACT = 2.0**53
"""The largest size up to which doubles hold every whole number."""

MODULUS = 720_720 * 10**9
"""A number below 2⁵³ that 2¹³, 9, 7, 11, 13 and 10⁹ divide, so that it keeps the last digits and many remainders."""

_BEYOND = 10**400  # a decimal beyond it may have billions of digits

MODULO_WORDS = "modulo 720720·10⁹"
"""What names a number modulo `MODULUS`."""


def last_digits(number: Any) -> float:
    """Return a whole number below 10⁴⁰⁰ modulo `MODULUS`, exactly; NaN for anything else.

    Equal numbers have equal last digits.

    Examples
    --------
    >>> last_digits(10**30 + 1), last_digits(-1.0)
    (361360000000001.0, 720719999999999.0)
    """
    is_finite = is_real(number) and number == number and -_BEYOND < number < _BEYOND  # a decimal NaN has no order
    return float(math.trunc(number) % MODULUS) if is_finite and number == math.trunc(number) else math.nan


def last_digits_of(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return each number of a numeric array modulo `MODULUS`, as `last_digits` does."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return np.where(values == np.rint(values), np.mod(values, float(MODULUS)), np.nan)
    wide = values if values.dtype == np.uint64 else values.astype(np.int64)
    return np.asarray(np.mod(wide, wide.dtype.type(MODULUS)), dtype=np.float64)
