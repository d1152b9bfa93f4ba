"""Checks of mechanism parameters that `audit.claims.check_number` does not cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..audit.claims.claim import check_number
from ..audit.errors import ClaimError


def check_count(name: str, value: Any, what: str, least: int = 1) -> None:
    """Raise a `ClaimError` unless the value is a whole number, `least` or more."""
    if not isinstance(value, (int, np.integer)) or value < least:
        raise ClaimError(
            f"{name}={value!r} is not a number of {what}; use a whole number {name} >= {least}.", **{name: value}
        )


def check_whole_sensitivity(sensitivity: float, alternative: str) -> None:
    """Raise a `ClaimError` unless the sensitivity of a whole answer is a whole number, 1 or more.

    `alternative` names the mechanism for real answers.
    """
    check_number("sensitivity", sensitivity, 0, math.inf, "the answer's largest change", closed=False)
    if sensitivity != int(sensitivity):
        raise ClaimError(
            f"sensitivity={sensitivity!r} is not a whole number; use 1, 2, … or {alternative}.", sensitivity=sensitivity
        )


def check_scale(scale: float) -> None:
    """Raise a `ClaimError` unless doubles can hold noise of this scale, its far tail and its grid."""
    if not 1e-290 <= scale <= 1e290:
        raise ClaimError(
            f"the noise would have scale {scale:g}, which leaves the range of doubles; use a less extreme epsilon or "
            "sensitivity.",
            scale=scale,
        )
