"""Supporting lines of a claim's boundary: they lie above it everywhere and touch it at one point.

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
_LEAST, _LEAST_REST = 1e-300, 1e-12  # of q and 1 − q; nearer to 0 or 1, doubles do not separate q from q ± h
_ACCURACY = 4e-12  # of the smaller of a boundary and its complement; roots of Rényi claims have an accuracy of 1e-12


@dataclass(frozen=True, slots=True)
class Line:
    """p ≤ slope·q + intercept for every event; slope ≥ 0, intercept in [0, 1]."""

    slope: float
    intercept: float


def best_line(claim: Claim, p: float, q: float, runs: float) -> Line:
    """Return the supporting line near `q` against which a bet on an event at (p, q) wins most.

    Every supporting line is valid. At a corner of the boundary, such as q = 1/(1 + e^ε) for pure DP, the lines on the
    two sides differ by a factor of 6 in the runs that a refutation takes. Since q is an estimate, lines are also tried
    two standard errors of `runs` runs away from q.
    """
    return best_lines([claim], p, q, runs)[0]


def best_lines(claims: Sequence[Claim], p: float, q: float, runs: float) -> list[Line]:
    """Return the `best_line` for each claim."""
    error = math.sqrt(q * (1.0 - q) / runs)
    near = [q, *(at for at in (q - 2 * error, q + 2 * error, 0.98 * q, q + 0.02 * (1 - q)) if 0.0 < at < 1.0)]
    points = list(dict.fromkeys(map(_rounded, near)))
    return [max(_supporting_lines(claim, points), key=lambda line: drift(line, p, q)) for claim in claims]


def drift(line: Line, p: float, q: float) -> float:
    """Return the squared drift of a bet on one pair of runs over its variance, with the sign of the drift."""
    gain = p - line.slope * q - line.intercept
    variance = p * (1.0 - p) + line.slope**2 * q * (1.0 - q)
    return gain * abs(gain) / max(variance, 1e-300)


def _rounded(q: float) -> float:
    """Round q to a coarse grid, so that lines can be reused."""
    angle = math.asin(math.sqrt(q))
    step = 2.0 ** round(math.log2(0.01 * min(angle, math.pi / 2 - angle)))
    return min(max(math.sin(round(angle / step) * step) ** 2, 0.5 * q), 0.5 * (1.0 + q))


def supporting_line(claim: Claim, q: float) -> Line:
    """Return a line above the claim's boundary on all of [0, 1] that nearly touches it at `q` in (0, 1).

    The boundary is concave, so the slopes s₋ and s₊ of the secants over [q − h, q] and [q, q + h] enclose its slopes at
    q. A line through (q, B(q)) with slope s, s₊ ≤ s ≤ s₋, lies above B outside the two intervals and falls short inside
    by at most (s₋ − s₊)h. This amount and a bound on the rounding error of the slope are added.

    Examples
    --------
    >>> from dpaudit import ApproxDP
    >>> line = supporting_line(ApproxDP(1.0, 0.1), 0.05)
    >>> round(line.slope, 6), round(line.intercept, 6)
    (2.718282, 0.1)
    """
    if not _LEAST < q < 1.0 - _LEAST_REST:
        raise OptionError(f"q={q!r} is outside (0, 1) or too near an end; use 1e-300 < q < 1 - 1e-12.", q=q)
    return _supporting_lines(claim, [q])[0]


@lru_cache(maxsize=1 << 12)
def _known(claim: Claim) -> dict[float, Line]:
    """Return the cache of a claim's lines, keyed by the point of contact."""
    return {}


def _supporting_lines(claim: Claim, points: Sequence[float]) -> list[Line]:
    """Return the `supporting_line` at each point."""
    known = _known(claim)
    if missing := [q for q in points if q not in known]:
        q = np.array(missing)
        h = _STEP * np.minimum(q, 1.0 - q)
        around = np.stack([q - h, q, q + h])
        values, rests = claim.power_touching(q, around)
        # Differences of the smaller of B and 1 − B, over differences of q between doubles, which are exact.
        small, steps = np.where(values[1] < 0.5, values, -rests), np.diff(around, axis=0)
        before, after = np.diff(small, axis=0) / steps
        error = _ACCURACY * np.abs(small[1]) / steps.min(axis=0)
        slope = np.maximum(0.5 * (before + after), 0.0)
        intercept = values[1] - slope * q + np.maximum(before - after, 0.0) * steps.max(axis=0) + error * q
        for place, at in enumerate(missing):
            known[at] = Line(float(slope[place] + error[place]), float(min(max(intercept[place], 0.0), 1.0)))
    return [known[q] for q in points]
