"""The order of counts: the strength that they clear by an ellipse of z standard errors, and the fewest hits that do.

Members of a claim's family are nested, and so are the regions {X ≥ c(Y)} of the counts that clear one of them, whatever
the approximations in the ellipse: these are those of the arcsine scale, on which q has the standard error 1/(2√m). A
boundary without a closed form is read from a table on that scale, at places that depend on m alone.

Proof: docs/proofs/joint-test.md
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..claims.claim import Claim
from .binomial_tails import Array
from .counts import Counts

_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]  # directions in which the ellipse is checked against the boundary
_FOR_P, _FOR_Q = np.sin(_ANGLES), np.cos(_ANGLES)
_STEP = 0.1  # standard errors between two places of a table
_NEARNESS = 1e-7  # relative, to which a strength is found
_LARGEST = 1e6  # from which on no strength is told from another


def order(counts: Counts, claim: Claim, z: float) -> tuple[float, float]:
    """Where the counts stand: (strength, z), or (0, a smaller z) where not even the smallest member is cleared by z.

    From below, by a ten-millionth of it or less: the claim's own strength is only where the search begins. (0, 0) means
    that the frequencies lie under the smallest boundary.
    """
    y = np.array([float(counts.hits_y)])

    def lacking(strength: float, part: float) -> float:
        needed = _hits_needed(y, counts.runs_x, counts.runs_y, claim.with_strength(strength), part)
        return float(needed[0]) - counts.hits_x

    size = 1.0 + min(counts.hits_x, counts.runs_x - counts.hits_x)
    if lacking(0.0, z) <= 0:
        return _root_from_below(lambda s: lacking(s, z), claim.max_strength, claim.strength or 1.0, size), z
    if lacking(0.0, 0.0) > 0:
        return 0.0, 0.0
    return 0.0, _root_from_below(lambda part: lacking(0.0, part), z, 0.5 * z, size)


def critical_hits(y: Array, n: int, m: int, claim: Claim, z: float) -> Array:
    """c(y): the fewest hits on x whose ellipse of `z` standard errors with y hits lies above the claim's boundary.

    Nondecreasing in y, in the claim's strength and in z; n + 1 where no count will do.
    """
    return np.ceil(_hits_needed(y, n, m, claim, z))


def _hits_needed(y: Array, n: int, m: int, claim: Claim, z: float) -> Array:
    """The same before it is rounded up.

    For every angle the ellipse gives y a share z·cos of the error and x a share z·sin.
    """
    angle = np.minimum(np.arcsin(np.sqrt((y + 0.5) / (m + 1.0))) + z * _FOR_Q / (2.0 * math.sqrt(m)), math.pi / 2)
    p, rest = _power_at(claim, angle, m)
    share = z * _FOR_P
    # Once the error reaches past 1 no count on x will do; the formula would turn back below n there.
    hits = np.where(n * rest <= share**2 * p, n + 1.0, n * p + share * np.sqrt(n * p * rest) - 1e-9)
    return np.asarray(hits.max(axis=0), dtype=np.float64)


def _power_at(claim: Claim, angle: Array, m: int) -> tuple[Array, Array]:
    """B and 1 − B where q has these angles, or what a table at multiples of a step says in between."""
    if claim.has_closed_form:
        return claim.max_power(np.sin(angle) ** 2, np.cos(angle) ** 2)
    step = _STEP * 0.5 / math.sqrt(m)
    places = np.arange(math.floor(float(angle.min()) / step), math.ceil(float(angle.max()) / step) + 1) * step
    places = np.minimum(places, math.pi / 2)
    p, rest = claim.max_power(np.sin(places) ** 2, np.cos(places) ** 2)
    power = np.interp(angle, places, np.arctan2(np.sqrt(p), np.sqrt(rest)))
    return np.sin(power) ** 2, np.cos(power) ** 2


def _root_from_below(excess: Callable[[float], float], limit: float, start: float, size: float) -> float:
    """The largest number below `limit`, but for `_NEARNESS` and from below, at which a growing function is at most 0.

    As it is at 0. From `start` outward in growing steps, the first by the share of `size` that is in excess; then by
    linear interpolation, with every fourth step a bisection unless the last four did well. The value at an end that
    stays for a second time counts less (Anderson & Björck 1973, A new high order method of the regula falsi type for
    computing a root of an equation). Never nearer to an end than half of what is looked for, so that the next point
    lies beyond the root.
    """
    low, low_value, high, high_value = 0.0, -math.inf, limit, math.inf
    at, further, step, last, before = min(start, 0.5 * limit), 0.0, 0, 0, math.inf
    while low <= _LARGEST and (math.isinf(high) or high - low > _NEARNESS * max(high, 1e-9)):
        value, step = excess(at), step + 1
        if value <= 0:
            share = 1.0 - value / low_value if last < 0 and low_value < 0.0 else 1.0
            low, low_value, high_value = at, value, high_value * (share if share > 0.0 else 0.5)
        else:
            share = 1.0 - value / high_value if last > 0 else 1.0
            high, high_value, low_value = at, value, low_value * (share if share > 0.0 else 0.5)
        last = 1 if value > 0 else -1
        further = min(further**3, 1e3) if further else 1.0 + min(max(4.0 * abs(value) / size, 1e-6), 0.0625)
        if math.isinf(high_value):
            at = min(further * low, 0.5 * (low + limit))
        elif math.isinf(low_value):
            at = high / further
        else:
            is_slow = step % 4 == 0 and abs(value) >= 0.1 * before
            share = 0.5 if is_slow else low_value / (low_value - high_value)
            least = 0.5 * _NEARNESS * max(high, 1e-9)
            at = min(max(low + share * (high - low), low + least), high - least)
        before = abs(value) if step % 4 == 0 else before
    return low if low <= _LARGEST else math.inf
