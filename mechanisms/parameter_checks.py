"""Checks of mechanisms' parameters beyond `audit.claims.check_number`."""

from __future__ import annotations

import numpy as np

from ..audit.errors import ClaimError


def check_count(name: str, value: int, what: str) -> None:
    """Raise a `ClaimError` unless the value is a whole number from 1."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ClaimError(
            f"{name}={value!r} is not a number of {what}; use a whole number {name} >= 1.", **{name: value}
        )


def check_scale(scale: float) -> None:
    """Raise a `ClaimError` unless noise of this scale, its far tail and its grid fit into doubles."""
    if not 1e-290 <= scale <= 1e290:
        raise ClaimError(
            f"the noise would have scale {scale:g}, which leaves the range of doubles; use an epsilon and a "
            "sensitivity of more moderate size.",
            scale=scale,
        )
