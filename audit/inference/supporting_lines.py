"""Lines that lie above a claim's boundary everywhere and touch it at one point: what a bet is placed against.

Proof: docs/proofs/lines.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..claims.claim import Claim
from ..errors import OptionError

_STEP = 1e-3  # of q or 1 − q, whichever is smaller
_LEAST, _LEAST_REST = 1e-300, 1e-12  # of q and 1 − q; beyond a double does not tell q from q ± h
_ACCURACY = 4e-12  # of a boundary or its complement, whichever is smaller; roots of Rényi claims are found to 1e-12


@dataclass(frozen=True, slots=True)
class Line:
    """p ≤ slope·q + intercept for every event; slope ≥ 0, intercept in [0, 1]."""

    slope: float
    intercept: float


def best_line(claim: Claim, p: float, q: float, runs: float) -> Line:
    """Of the lines that touch the boundary near `q`, the one below an event at (p, q) that a bet wins most against.

    Every supporting line is valid. Where the boundary has a corner, as at q = 1/(1 + e^ε) for pure DP, lines on either
    side of it differ by a factor of 6 in the runs that a refutation takes, so q is not taken at its word: tried are
    points two standard errors of `runs` runs apart.
    """
    return best_lines([claim], p, q, runs)[0]


def best_lines(claims: Sequence[Claim], p: float, q: float, runs: float) -> list[Line]:
    """The `best_line` for each of several claims."""
    error = math.sqrt(q * (1.0 - q) / runs)
    near = [q, *(at for at in (q - 2 * error, q + 2 * error, 0.98 * q, q + 0.02 * (1 - q)) if 0.0 < at < 1.0)]
    points = list(dict.fromkeys(map(_rounded, near)))
    return [max(_supporting_lines(claim, points), key=lambda line: drift(line, p, q)) for claim in claims]


def drift(line: Line, p: float, q: float) -> float:
    """Squared drift of a bet on one pair of runs over its variance, with the sign of the drift."""
    gain = p - line.slope * q - line.intercept
    variance = p * (1.0 - p) + line.slope**2 * q * (1.0 - q)
    return gain * abs(gain) / max(variance, 1e-300)


def _rounded(q: float) -> float:
    """A probability near q, one of few, so that lines can be remembered."""
    angle = math.asin(math.sqrt(q))
    step = 2.0 ** round(math.log2(0.01 * min(angle, math.pi / 2 - angle)))
    return min(max(math.sin(round(angle / step) * step) ** 2, 0.5 * q), 0.5 * (1.0 + q))


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
    if not _LEAST < q < 1.0 - _LEAST_REST:
        raise OptionError(f"q={q!r} is not inside (0, 1), or next to an end; use 1e-300 < q < 1 - 1e-12.", q=q)
    return _supporting_lines(claim, [q])[0]


@lru_cache(maxsize=1 << 12)
def _known(claim: Claim) -> dict[float, Line]:
    """Lines that have been found, by where they touch."""
    return {}


def _supporting_lines(claim: Claim, points: Sequence[float]) -> list[Line]:
    """The `supporting_line` at each of these points."""
    known = _known(claim)
    if missing := [q for q in points if q not in known]:
        q = np.array(missing)
        h = _STEP * np.minimum(q, 1.0 - q)
        around = np.stack([q - h, q, q + h])
        values, rests = claim.power_touching(q, around)
        # Differences of whichever of B and 1 − B is small, over those of q as doubles have them, which are exact.
        small, steps = np.where(values[1] < 0.5, values, -rests), np.diff(around, axis=0)
        before, after = np.diff(small, axis=0) / steps
        error = _ACCURACY * np.abs(small[1]) / steps.min(axis=0)
        slope = np.maximum(0.5 * (before + after), 0.0)
        intercept = values[1] - slope * q + np.maximum(before - after, 0.0) * steps.max(axis=0) + error * q
        for place, at in enumerate(missing):
            known[at] = Line(float(slope[place] + error[place]), float(min(max(intercept[place], 0.0), 1.0)))
    return [known[q] for q in points]
