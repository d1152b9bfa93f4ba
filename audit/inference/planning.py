"""What an audit of a given size can find: the smallest excess over the claim that it detects with a given power."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from ..claims import Claim
from ..errors import OptionError
from .binomial import upper_tail
from .counts import Counts, check_alpha
from .joint import critical_hits, largest_strength, rough_p_value


def resolution(claim: Claim, runs_x: int, runs_y: int, q: float, *, alpha: float, power: float = 0.95) -> float:
    """Smallest excess of the claim's strength that the exact test finds with probability `power`.

    The event has probability `q` on y and, when the excess is s, the largest probability on x that the claim with
    strength + s allows.

    Parameters
    ----------
    claim : Claim
        The claim tested.
    runs_x, runs_y : int
        Runs on each dataset.
    q : float
        Probability of the event on y, in (0, 1), such as an estimate from pilot runs.
    alpha, power : float
        Error probability of the test, and probability of refuting, both in (0, 1).

    Returns
    -------
    float
        In the units of the claim's strength; infinite where no excess is found with that power.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 0.01 < resolution(PureDP(1.0), 100_000, 100_000, 0.18, alpha=0.05) < 0.03
    True
    """
    check_alpha(alpha)
    if not (0.0 < q < 1.0 and 0.0 < power < 1.0):
        raise OptionError(f"q={q!r}, power={power!r} plan nothing; use probabilities inside (0, 1).", q=q, power=power)
    z = _calibrated_z(claim, runs_x, runs_y, q, alpha)
    if z is None:
        return math.inf
    reach = 9.0 * math.sqrt(runs_y * q * (1 - q)) + 40.0
    first, last = max(0.0, math.floor(runs_y * q - reach)), min(float(runs_y), math.ceil(runs_y * q + reach))
    ends = np.unique(np.floor(np.linspace(first, last, 400)))
    critical = critical_hits(ends, runs_x, runs_y, claim, z)
    at_most = upper_tail((runs_y - ends)[None], runs_y, np.array([1.0 - q]), np.array([q]))[0]
    mass = np.diff(at_most, prepend=0.0)

    def too_weak(excess: float) -> bool:
        p, rest = claim.with_strength(claim.strength + excess).max_power(q)
        found = upper_tail(critical[None], runs_x, np.atleast_1d(p), np.atleast_1d(rest))[0]
        return float((found * mass).sum()) < power

    return largest_strength(too_weak, claim.max_strength - claim.strength, tolerance=1e-4)


def _calibrated_z(claim: Claim, runs_x: int, runs_y: int, q: float, alpha: float) -> float | None:
    """The ellipse size at which the exact p-value reaches alpha near the expected counts; None if no count does."""
    hits_y = round(runs_y * q)

    def refuted(hits_x: int) -> bool:
        counts = Counts(hits_x=hits_x, runs_x=runs_x, hits_y=hits_y, runs_y=runs_y)
        return rough_p_value(counts, claim, alpha=alpha) <= alpha

    if not refuted(runs_x):
        return None
    z = max(float(-ndtri(alpha)), 0.5)
    here = np.array([float(hits_y)])
    low = int(critical_hits(here, runs_x, runs_y, claim, 0.0)[0]) - 1
    high = min(runs_x, int(critical_hits(here, runs_x, runs_y, claim, 1.2 * z)[0]) + 3)
    if not refuted(high):
        low, high = high, runs_x
    while high - low > max(1.0, 0.01 * math.sqrt(high)):
        middle = (low + high) // 2
        if refuted(middle):
            high = middle
        else:
            low = middle
    return largest_strength(lambda s: critical_hits(here, runs_x, runs_y, claim, s)[0] <= high, 50.0, tolerance=1e-4)
