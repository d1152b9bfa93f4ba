"""The order of counts: the largest strength that counts clear by an ellipse of z standard errors.

The members of a claim's family are nested, and so are the regions {X ≥ c(Y)} of the counts that clear a member. This
holds for any approximation in the ellipse; the one used here is the arcsine scale, on which q has the standard error
1/(2√m). A boundary without a closed form is read from a table on this scale, whose grid depends on m alone.

Proof: docs/proofs/joint-test.md
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from .binomial_tails import Array
from .counts import Counts

_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]  # directions in which the ellipse is compared with the boundary
_FOR_P, _FOR_Q = np.sin(_ANGLES), np.cos(_ANGLES)
_STEP = 0.1  # standard errors between two points of a table
_NEARNESS = 1e-7  # relative accuracy of a strength
_LARGEST = 1e6  # larger strengths are not distinguished


def order(counts: Counts, claim: Claim, z: float) -> tuple[float, float]:
    """Return the position of the counts: (strength, z), or (0, a smaller z) if they do not clear the smallest member.

    The strength is rounded down, by a relative 1e-7 at most; the claim's own strength only starts the search. (0, 0)
    means that the frequencies lie under the smallest boundary.
    """
    y = np.array([float(counts.hits_y)])

    def lacking(strength: float, part: float) -> float:
        needed = hits_needed(y, counts.runs_x, counts.runs_y, claim.with_strength(strength), part)
        return float(needed[0]) - counts.hits_x

    size = 1.0 + min(counts.hits_x, counts.runs_x - counts.hits_x)
    if lacking(0.0, z) <= 0:
        return root_from_below(lambda s: lacking(s, z), claim.max_strength, claim.strength or 1.0, size), z
    if lacking(0.0, 0.0) > 0:
        return 0.0, 0.0
    return 0.0, root_from_below(lambda part: lacking(0.0, part), z, 0.5 * z, size)


def clears(counts: Counts, claim: Claim, z: float) -> bool:
    """Return whether the counts clear the claim's boundary by `z` standard errors."""
    needed = hits_needed(np.array([float(counts.hits_y)]), counts.runs_x, counts.runs_y, claim, z)
    return counts.hits_x >= float(needed[0])


def critical_hits(y: Array, n: int, m: int, claim: Claim, z: float) -> Array:
    """Return c(y), the fewest hits on x whose ellipse of `z` standard errors with y hits clears the claim's boundary.

    c is nondecreasing in y, in the claim's strength and in z; it is n + 1 where no count suffices.
    """
    return np.ceil(hits_needed(y, n, m, claim, z))


def hits_needed(y: Array, n: int, m: int, claim: Claim, z: float) -> Array:
    """Return c(y) of `critical_hits` before rounding up.

    At every angle, the ellipse assigns z·cos(angle) standard errors to y and z·sin(angle) to x.
    """
    angle = np.minimum(np.arcsin(np.sqrt((y + 0.5) / (m + 1.0))) + z * _FOR_Q / (2.0 * math.sqrt(m)), math.pi / 2)
    p, rest = _power_at(claim, angle, m)
    share = z * _FOR_P
    # No count on x suffices once the ellipse reaches past 1; there the formula would fall below n again.
    hits = np.where(n * rest <= share**2 * p, n + 1.0, n * p + share * np.sqrt(n * p * rest) - 1e-9)
    return np.asarray(hits.max(axis=0), dtype=np.float64)


def _power_at(claim: Claim, angle: Array, m: int) -> tuple[Array, Array]:
    """Return B and 1 − B at these angles of q, interpolated from a table if the boundary has no closed form."""
    if claim.has_closed_form:
        return claim.max_power(np.sin(angle) ** 2, np.cos(angle) ** 2)
    places = table_angles(float(angle.min()), float(angle.max()), m)
    p, rest = claim.max_power(np.sin(places) ** 2, np.cos(places) ** 2)
    power = np.interp(angle, places, arcsine_angle(p, rest))
    return np.sin(power) ** 2, np.cos(power) ** 2


def table_angles(low: float, high: float, m: int) -> Array:
    """Return the angles of q from `low` to `high` at which the boundary is computed."""
    step = _STEP * 0.5 / math.sqrt(m)
    number = np.arange(math.floor(low / step), math.ceil(high / step) + 1)
    return np.asarray(np.minimum(number * step, math.pi / 2), dtype=np.float64)


def arcsine_angle(p: npt.ArrayLike, rest: npt.ArrayLike) -> Array:
    """Return arcsin √p, computed from p and 1 − p."""
    return np.asarray(np.arctan2(np.sqrt(p), np.sqrt(rest)))


def root_from_below(
    excess: Callable[[float], float], limit: float, start: float, size: float, *, nearness: float = _NEARNESS
) -> float:
    """Return the largest number below `limit` at which an increasing function is at most 0, as it is at 0.

    The number is rounded down, by a relative `nearness` at most; it is infinite if it exceeds a million. The search
    leaves `start` in growing steps, the first of which depends on the excess as a share of `size`. Linear interpolation
    follows; every fourth step is a bisection unless the last four steps did well. The value at an end that is kept a
    second time is reduced (Anderson & Björck 1973, A new high order method of the regula falsi type for computing a
    root of an equation). Every point is at least half the accuracy away from both ends, so that the next point lies
    beyond the root.
    """
    low, low_value, high, high_value = 0.0, -math.inf, limit, math.inf
    at, further, step, last, before = min(start, 0.5 * limit), 0.0, 0, 0, math.inf
    while low <= _LARGEST and (math.isinf(high) or high - low > nearness * max(high, 1e-9)):
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
            least = 0.5 * nearness * max(high, 1e-9)
            at = min(max(low + share * (high - low), low + least), high - least)
        before = abs(value) if step % 4 == 0 else before
    return low if low <= _LARGEST else math.inf
