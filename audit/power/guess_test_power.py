"""The smallest excess that a test of both directions finds, and the runs that a test of one direction needs for it."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc

from ..claims.claim import Claim
from ..errors import OptionError
from ..inference.boundary_test import largest_strength
from ..inference.guess_test import Guesses


def guess_resolution(claim: Claim, guesses: Guesses, *, alpha: float, power: float) -> float:
    """Return the smallest excess of a claim with a `log_ratio` that the test finds with probability `power`.

    The alternative keeps the frequency of right guesses, and those of wrong ones fall as the excess grows; the number
    of guesses is taken as its mean. Infinite if no excess is found with that power.
    """
    each, unit = claim.log_ratio, claim.with_strength(1.0).log_ratio
    if each is None or unit is None:
        raise OptionError(f"{claim} is not a limit on the log likelihood ratio alone.", claim=claim)
    right = guesses.right + 0.5
    usual = 1.0 / (1.0 + math.exp(-each))

    def is_missed(excess: float) -> bool:
        likelier = 1.0 / (1.0 + math.exp(-(each + excess * unit)))
        made = round(right / likelier)
        return _more(_exceeded(alpha, made, usual), made, likelier) < power

    found = largest_strength(is_missed, 700.0 / unit, tolerance=1e-4)
    return math.inf if found >= 0.99 * 700.0 / unit else max(found, 1e-12)


def _more(hits: int, runs: int, p: float) -> float:
    """Return the probability of more than this many hits."""
    return float(betainc(hits + 1.0, runs - hits, p)) if hits < runs else 0.0


def _exceeded(alpha: float, runs: int, p: float) -> int:
    """Return the fewest hits that are exceeded with probability at most `alpha`; scipy.stats takes long to import."""
    low, high = -1, runs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _more(middle, runs, p) <= alpha else (middle, high)
    return high


def equivalent_runs(claim: Claim, guesses: Guesses) -> int:
    """Return with how many runs on each dataset hits in independent runs would show as small an excess as the guesses.

    Right and wrong guesses exclude each other, which adds to the variance of the distance from the boundary.
    """
    w = (guesses.wrong + 0.5) / (guesses.runs + 1.0)
    near = 1e-3 * min(w, 1.0 - w)
    power, _ = claim.max_power(np.array([w - near, w, w + near]))
    c, slope = min(float(power[1]), 1.0 - w), float(power[2] - power[0]) / (2.0 * near)
    apart = c * (1.0 - c) + slope**2 * w * (1.0 - w)
    return max(1, int(guesses.runs * apart / (apart + 2.0 * slope * c * w)))
