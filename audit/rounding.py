"""How limits are written: with a few digits, and rounded so that they still hold."""

from __future__ import annotations

import math


def rounded_down(limit: float, digits: int = 4) -> float:
    """The largest number with so many significant digits that is not above a lower limit.

    Examples
    --------
    >>> rounded_down(1.10562), rounded_down(0.99996), rounded_down(0.5), rounded_down(-0.99996)
    (1.105, 0.9999, 0.5, -1.0)
    """
    nearest = float(f"{limit:.{digits}g}")
    if not nearest > limit:  # also of NaN
        return nearest
    unit = 10.0 ** (math.floor(math.log10(abs(limit))) + 1 - digits)
    return float(f"{nearest - unit:.{digits}g}")


def rounded_up(limit: float, digits: int = 4) -> float:
    """The smallest number with so many significant digits that is not below an upper limit.

    Examples
    --------
    >>> rounded_up(1.10512), rounded_up(0.99996)
    (1.106, 1.0)
    """
    return -rounded_down(-limit, digits)
