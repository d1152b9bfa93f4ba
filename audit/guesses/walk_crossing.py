"""The probability that few enough of a walk's guesses are wrong at one of several numbers of guesses."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import expit, gammaln

from ..inference.binomial_tails import Array

_WIDTH, _LEAST = 9.0, 40.0  # standard deviations, and guesses, to which a binomial law is cut
_DROPPED = 1e-20  # mass of a value at the ends that is no longer followed; it counts as having crossed
_DIRECT = 64  # length up to which sums are formed directly


@lru_cache(maxsize=1 << 12)
def walk_crossing(numbers: tuple[int, ...], most_wrong: tuple[int, ...], log_odds: float) -> float:
    """Probability that for some k at most `most_wrong[k]` of the first `numbers[k]` guesses are wrong.

    Exact up to about 1e-14: the law of the wrong guesses of walks that have not crossed is carried from number to
    number.

    Parameters
    ----------
    numbers, most_wrong : tuple of int, same length
        Increasing numbers; −1 where no walk crosses.
    log_odds : float
        Logarithm of the odds that a guess is right; guesses are independent.
    """
    wrong = float(expit(-log_odds))
    law, first, crossed, before = np.ones(1), 0, 0.0, 0
    for number, most in zip(numbers, most_wrong, strict=True):
        step, least = _binomial(number - before, wrong)
        law, first, before = _sum(law, step), first + least, number
        inside = most - first + 1
        if inside > 0:
            crossed += float(law[:inside].sum())
            law, first = law[inside:], most + 1
        kept = np.flatnonzero(law > _DROPPED)
        if not len(kept):
            break
        crossed += float(law[: kept[0]].sum())
        law, first = law[kept[0] : kept[-1] + 1], first + int(kept[0])
    return min(crossed, 1.0)


def _binomial(trials: int, probability: float) -> tuple[Array, int]:
    """Return the law of Bin(trials, probability) without its far tails, and its first value."""
    if probability in (0.0, 1.0):
        return np.ones(1), trials * int(probability)
    mean, spread = trials * probability, math.sqrt(trials * probability * (1.0 - probability))
    low = max(0, math.floor(mean - _WIDTH * spread - _LEAST))
    high = min(trials, math.ceil(mean + _WIDTH * spread + _LEAST))
    k = np.arange(low, high + 1, dtype=np.float64)
    logs = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    return np.exp(logs + k * math.log(probability) + (trials - k) * math.log1p(-probability)), low


def _sum(law: Array, step: Array) -> Array:
    """The law of a sum of independent numbers."""
    if min(len(law), len(step)) <= _DIRECT:
        return np.convolve(law, step)
    return np.maximum(fftconvolve(law, step), 0.0)
