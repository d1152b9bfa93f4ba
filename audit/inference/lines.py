"""Lines that lie above a claim's boundary everywhere and touch it at one point: what a bet is placed against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..claims import Claim
from ..errors import OptionError

_STEP = 1e-3  # of q or 1 − q, whichever is smaller


@dataclass(frozen=True, slots=True)
class Line:
    """p ≤ slope·q + intercept for every event; slope ≥ 0, intercept in [0, 1]."""

    slope: float
    intercept: float


def supporting_line(claim: Claim, q: float) -> Line:
    """A line above the claim's boundary on all of [0, 1] that nearly touches it at `q` in (0, 1).

    The boundary is concave, so the secants over [q − h, q] and [q, q + h] enclose its slopes: a line through (q, B(q))
    with a slope s between them, s₊ ≤ s ≤ s₋, lies above B outside the two intervals and falls short inside by at most
    (s₋ − s₊)h, which is added; so is what rounding may have taken from the slope.

    Examples
    --------
    >>> from dpaudit import ApproxDP
    >>> line = supporting_line(ApproxDP(1.0, 0.1), 0.05)
    >>> round(line.slope, 6), round(line.intercept, 6)
    (2.718282, 0.1)
    """
    if not 0.0 < q < 1.0:
        raise OptionError(f"q={q!r} is not inside (0, 1); a line is placed at a probability.", q=q)
    h = _STEP * min(q, 1.0 - q)
    values, rests = claim.max_power([q - h, q, q + h])
    # Differences of whichever of B and 1 − B is small.
    small = values if values[1] < 0.5 else -rests
    before, after = (float(rise) / h for rise in np.diff(small))
    error = 8 * np.finfo(float).eps * abs(float(small[1])) / h
    slope = max(0.5 * (before + after), 0.0)
    intercept = float(values[1]) - slope * q + max(before - after, 0.0) * h + error * q
    return Line(float(slope + error), float(min(max(intercept, 0.0), 1.0)))
