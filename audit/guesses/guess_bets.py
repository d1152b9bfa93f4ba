"""Bets on guesses, at all numbers of guesses together: each guess is made after what was revealed before.

A correct guess multiplies the wealth of a share κ in [0, 1) by 1 + κ e^{−t}, a wrong one by 1 − κ, where t are
log-odds; W(t) is the average over a few shares. The statistic is the largest t that the guesses refute at a fixed level
a, at the best number of guesses: T = sup {t: max_k W(t) after G_k guesses ≥ 1/a}. {T ≥ t} is the event that few enough
guesses are wrong at one of the G_k, and its probability for a walk of coins is computed exactly (`walk_crossing`).

Proof: docs/proofs/canaries.md

References
----------
Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, Section 4 (mixtures of bets).
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit

from ..inference.binomial_tails import BEYOND, FAR, ROUNDING, Array
from .canary_guesses import LARGEST_LOG_ODDS

# The probability that few enough of a walk's guesses are incorrect at one of several numbers of guesses.

_DROPPED = 1e-20  # mass of a value at the ends that is no longer followed; it counts as having crossed
_DIRECT = 512  # length up to which sums are formed directly (docs/decisions/0025-limits.md)


@lru_cache(maxsize=1 << 12)
def walk_crossing(numbers: tuple[int, ...], most_wrong: tuple[int, ...], log_odds: float) -> float:
    """Probability that for some k at most `most_wrong[k]` of the first `numbers[k]` guesses are incorrect.

    Exact up to about 1e-14. `most_wrong` is −1 if no walk crosses; guesses are independent, and right with these
    log-odds.
    """
    distribution, first, crossed, before = np.ones(1), 0, 0.0, 0
    for number, most in zip(numbers, most_wrong, strict=True):
        step, least = _binomial(number - before, log_odds)
        distribution, first, before = _sum(distribution, step), first + least, number
        inside = most - first + 1
        if inside > 0:
            crossed += float(distribution[:inside].sum())
            distribution, first = distribution[inside:], most + 1
        kept = np.flatnonzero(distribution > _DROPPED)
        if not len(kept):
            break
        crossed += float(distribution[: kept[0]].sum())
        distribution, first = distribution[kept[0] : kept[-1] + 1], first + int(kept[0])
    return min(crossed, 1.0)


def _binomial(trials: int, log_odds: float) -> tuple[Array, int]:
    """Return the distribution of the wrong ones of so many guesses without its far tails, and its first value."""
    odds = math.exp(min(max(-log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS))  # of an incorrect guess
    wrong = float(expit(-log_odds))
    mean, spread = trials * wrong, math.sqrt(trials * wrong * float(expit(log_odds)))
    mode = min(math.floor((trials + 1) * wrong), trials)
    # From the mode outward by ratios of neighbours, so that only as many roundings add up as values are kept.
    above = np.arange(mode, min(trials, math.ceil(mean + FAR * spread + BEYOND)), dtype=np.float64)
    below = np.arange(mode, max(0, math.floor(mean - FAR * spread - BEYOND)), -1, dtype=np.float64)
    up = np.cumprod((trials - above) / (above + 1.0) * odds)
    down = np.cumprod(below / (trials - below + 1.0) / odds)
    distribution = np.concatenate([down[::-1], [1.0], up])
    return distribution / distribution.sum(), mode - len(down)


def _sum(distribution: Array, step: Array) -> Array:
    """The distribution of a sum of independent numbers."""
    if min(len(distribution), len(step)) <= _DIRECT:
        return np.convolve(distribution, step)
    length = len(distribution) + len(step) - 1
    size = next_fast_len(length, real=True)
    return np.maximum(irfft(rfft(distribution, size) * rfft(step, size), size)[:length], 0.0)


# 1 − κ is about the rate of incorrect guesses for which a share is best: from one in 10⁴ to nearly as many as right
# ones.
_SHARES = np.concatenate([1.0 - np.geomspace(1e-4, 0.9, 12), np.geomspace(0.02, 0.2, 6)])
# Numbers of guesses that count one by one, and ratio of the later ones: docs/decisions/0025-limits.md.
_EACH, _RATIO = 32, 1.1
_FARTHEST = 60.0  # log-odds


def guess_numbers(canaries: int) -> tuple[int, ...]:
    """Return the numbers of guesses that count: the small ones one by one, then a geometric grid up to all."""
    numbers = list(range(1, min(canaries, _EACH) + 1))
    while numbers[-1] < canaries:
        numbers.append(min(round(_RATIO * numbers[-1]), canaries))
    return tuple(numbers)


def log_wealth(right: Array, wrong: Array, log_odds: float) -> Array:
    """Logarithm of the average wealth after so many correct and incorrect guesses, arrays of one shape."""
    each = right[..., None] * np.log1p(_SHARES * math.exp(-log_odds)) + wrong[..., None] * np.log1p(-_SHARES)
    highest = each.max(axis=-1)
    return np.asarray(highest + np.log(np.exp(each - highest[..., None]).mean(axis=-1)))


@lru_cache(maxsize=1 << 8)
def largest_refuted(right: tuple[int, ...], numbers: tuple[int, ...], level: float) -> float:
    """Return T at the level a in (0, 1); minus infinity if the guesses refute nothing.

    `right` are the correct ones among the first so many guesses, and the `numbers` increase.
    """
    v = np.asarray(right, dtype=np.float64)
    wrong, enough = np.asarray(numbers, dtype=np.float64) - v, -math.log(level)
    low, high = -_FARTHEST, _FARTHEST
    if log_wealth(v, wrong, low).max() < enough:
        return -math.inf
    for _ in range(sys.float_info.mant_dig):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_wealth(v, wrong, middle).max() >= enough else (low, middle)
    return low


def most_telling(right: tuple[int, ...], numbers: tuple[int, ...], level: float) -> int:
    """Return the place in `numbers` at which T is attained."""
    v = np.asarray(right, dtype=np.float64)
    refuted = largest_refuted(right, numbers, level)
    wealth = log_wealth(v, np.asarray(numbers, dtype=np.float64) - v, max(refuted, -_FARTHEST))
    return int(wealth.argmax())


@lru_cache(maxsize=1 << 8)
def _most_wrong(refuted: float, numbers: tuple[int, ...], level: float) -> tuple[int, ...]:
    """The most incorrect guesses among each of the `numbers` with which T is `refuted` or more; −1 if none are."""
    n, enough = np.array(numbers), -math.log(level) - ROUNDING  # so that guesses belong to their own event
    low, high = np.full(len(n), -1), n + 1
    while np.any(high - low > 1):
        middle = (low + high) // 2
        reaches = log_wealth((n - middle).astype(np.float64), middle.astype(np.float64), refuted) >= enough
        open_ = high - low > 1
        low, high = np.where(open_ & reaches, middle, low), np.where(open_ & ~reaches, middle, high)
    return tuple(low.tolist())


def bets_tail(refuted: float, numbers: tuple[int, ...], level: float, log_odds: float) -> float:
    """Probability that T is `refuted` or more, for guesses that are right with these log-odds, for any past."""
    if refuted == -math.inf:
        return 1.0
    return walk_crossing(numbers, _most_wrong(refuted, numbers, level), log_odds)
