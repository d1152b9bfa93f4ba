"""The probability that few enough of a walk's guesses are wrong at one of several numbers of guesses."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft  # scipy.signal would load scipy.stats
from scipy.special import expit

from ..inference.binomial_tails import Array

_WIDTH, _LEAST = 9.0, 40.0  # standard deviations, and guesses, to which a binomial law is cut
_DROPPED = 1e-20  # mass of a value at the ends that is no longer followed; it counts as having crossed
_DIRECT = 512  # length up to which sums are formed directly
_FARTHEST = 700.0  # log-odds that doubles can hold


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
    law, first, crossed, before = np.ones(1), 0, 0.0, 0
    for number, most in zip(numbers, most_wrong, strict=True):
        step, least = _binomial(number - before, log_odds)
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


def _binomial(trials: int, log_odds: float) -> tuple[Array, int]:
    """Return the law of the wrong ones of so many guesses without its far tails, and its first value."""
    odds = math.exp(min(max(-log_odds, -_FARTHEST), _FARTHEST))  # of a wrong guess
    wrong = float(expit(-log_odds))
    mean, spread = trials * wrong, math.sqrt(trials * wrong * float(expit(log_odds)))
    mode = min(math.floor((trials + 1) * wrong), trials)
    # From the mode outward by ratios of neighbours, so that only as many roundings add up as values are kept.
    above = np.arange(mode, min(trials, math.ceil(mean + _WIDTH * spread + _LEAST)), dtype=np.float64)
    below = np.arange(mode, max(0, math.floor(mean - _WIDTH * spread - _LEAST)), -1, dtype=np.float64)
    up = np.cumprod((trials - above) / (above + 1.0) * odds)
    down = np.cumprod(below / (trials - below + 1.0) / odds)
    law = np.concatenate([down[::-1], [1.0], up])
    return law / law.sum(), mode - len(down)


def _sum(law: Array, step: Array) -> Array:
    """The law of a sum of independent numbers."""
    if min(len(law), len(step)) <= _DIRECT:
        return np.convolve(law, step)
    length = len(law) + len(step) - 1
    size = next_fast_len(length, real=True)
    return np.maximum(irfft(rfft(law, size) * rfft(step, size), size)[:length], 0.0)
