"""Tests of dependence between runs and of a change between samples: dispersion of counts, repeats, copies, two samples.

The tests of blocks and of repeats are conditional on the pooled outputs: under the null the runs are in random order.
The p-values are valid upper bounds for any counts.

Proofs: docs/proofs/dependence.md, docs/proofs/multiplicity.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import OptionError
from .binomial_tails import CACHED, Array

# Exponents of the two bounds: below ½, the limit of the chi-square distribution, for large deviances; negative for
# small ones.
_UPPER = np.linspace(0.06, 0.48, 8)
_LOWER = -np.geomspace(0.1, 64.0, 8)
OVER = 1.0 + 1e-6
"""Exceeds the rounding errors of a tail, whose logarithm is a difference of logarithms of factorials."""
_REACH = 64.0  # standard deviations
_MANY_COUNTS, _UNSUSPICIOUS = 5.0, 3.0  # variance of a block's counts; standard errors of the deviance
_MOST_MOMENTS = 200  # most factorial moments in one bound, the least of their bounds: any of them is valid


def dispersion_pvalue(counts: Sequence[int], sizes: Sequence[int]) -> tuple[float, float]:
    """Return the p-value of independent runs with one probability of the event, and the deviance ratio.

    Given the total count, the p-value is at most a with probability at most a. It is twice a Chernoff bound on the
    deviance D = Σ wᵢ 2 bᵢ KL(hᵢ/bᵢ ‖ T/n), on the side where D lies. Blocks are weighted by size, because randomness
    shared by the runs of a call shows in large blocks. With many counts, the ratio of D to its mean is near 1 for
    independent runs, larger if the runs of a block share randomness, and smaller if the outputs of a block are
    balanced.

    >>> round(dispersion_pvalue([50] * 16 + [150] * 16, [200] * 32)[0], 60) < 1e-50
    True
    """
    observed, blocks = np.asarray(counts, dtype=np.int64), np.asarray(sizes, dtype=np.int64)
    total, runs = int(observed.sum()), int(blocks.sum())
    if len(blocks) < 2 or total in (0, runs):
        return 1.0, 1.0
    rate = total / runs
    weights = blocks / blocks.max()
    found = float((weights * _deviance(observed, blocks, rate)).sum())
    ratio = found / (float(weights.sum()) * (1.0 - 1.0 / len(blocks)))
    error = math.sqrt(2.0 * float((weights**2).sum())) / float(weights.sum())
    if float(blocks.min()) * rate * (1.0 - rate) >= _MANY_COUNTS and abs(ratio - 1.0) < _UNSUSPICIOUS * error:
        return 1.0, ratio  # saves the millisecond of a bound that would not be small
    exponents = _UPPER if ratio > 1.0 else _LOWER
    log_bound, log_gain = -exponents * found, np.zeros(len(exponents))
    for size, number in Counter(blocks.tolist()).items():
        log_moments, log_most = _log_moments(size, rate, exponents * size / float(blocks.max()))
        log_bound = log_bound + number * log_moments
        log_gain = np.minimum(log_gain, log_most - log_moments)
    # Conditioning on the total costs one over its probability; the block that completes the total of the others regains
    # most of this cost.
    log_bound = log_bound + log_gain
    log_total = 0.5 * math.log(runs / (8.0 * total * (runs - total)))
    return min(1.0, 2.0 * OVER * math.exp(min(float(log_bound.min()) - log_total, 0.0))), ratio


def product_pvalue(first: float, second: float) -> float:
    """Combine two independent p-values by their product c: c(1 − ln c), exact for uniform p-values.

    Source: R. A. Fisher, Statistical Methods for Research Workers, 1932, Section 21.1.

    >>> round(product_pvalue(0.05, 0.05), 4), product_pvalue(0.0, 1.0)
    (0.0175, 0.0)
    """
    product = first * second
    return product * (1.0 - math.log(product)) if product > 0.0 else 0.0


def _deviance(counts: npt.NDArray[np.int64], size: npt.NDArray[np.int64] | int, rate: float) -> Array:
    """Return 2 b KL(h/b ‖ rate) for each count."""
    misses = size - counts
    xlogy = scipy.special.xlogy
    return np.asarray(2.0 * (xlogy(counts, counts / (size * rate)) + xlogy(misses, misses / (size * (1.0 - rate)))))


def _log_moments(size: int, rate: float, exponents: Array) -> tuple[Array, Array]:
    """Return upper bounds on ln E exp(t·deviance) of a block of independent runs, for each t < ½.

    Also return the logarithm of the largest term of each mean. Terms within 64 standard deviations are summed. The term
    of a count beyond is at most exp((t − ½)·deviance), and the deviance grows outward.
    """
    reach = math.ceil(_REACH * math.sqrt(size * rate * (1.0 - rate))) + 1
    low, high = max(math.floor(size * rate) - reach, 0), min(math.ceil(size * rate) + reach, size)
    counts = np.arange(low, high + 1)
    gammaln, xlogy = scipy.special.gammaln, scipy.special.xlogy
    log_distribution = gammaln(size + 1.0) - gammaln(counts + 1.0) - gammaln(size - counts + 1.0)
    log_distribution += xlogy(counts, rate) + xlogy(size - counts, 1.0 - rate)
    deviance = _deviance(counts, size, rate)
    terms = log_distribution + exponents[:, None] * deviance
    for number, at in ((low, 0), (size - high, -1)):
        if number:
            beyond = math.log(number) - (0.5 - exponents) * deviance[at]
            terms = np.column_stack([terms, beyond])
    most = terms.max(axis=1)
    return np.asarray(most + np.log(np.exp(terms - most[:, None]).sum(axis=1))), np.asarray(most)


def pairs_within_pvalue(within: int, pairs: int, sizes: Sequence[int]) -> float:
    """Return the p-value of `within` or more of `pairs` disjoint pairs of runs having both runs in one block.

    The null is a random order of the runs in blocks of these sizes; the p-value is an upper bound by factorial moments.

    >>> round(pairs_within_pvalue(2, 40, [10] * 20), 3), pairs_within_pvalue(20, 40, [10] * 20) < 1e-12
    (0.905, True)
    """
    blocks = np.asarray(sizes, dtype=np.int64)
    runs = int(blocks.sum())
    if within == 0:
        return 1.0
    moments = np.unique(np.linspace(1, within, min(within, _MOST_MOMENTS)).astype(np.int64)).astype(np.float64)
    ways = float((blocks.astype(np.float64) * (blocks - 1.0)).sum())  # ordered pairs of positions within a block
    if ways == 0.0:
        return 0.0
    places = log_falling_factorial(runs, 2.0 * moments)
    chosen = log_falling_factorial(pairs, moments) - log_falling_factorial(within, moments)
    log_bound = float((chosen + moments * math.log(ways) - places).min())
    return min(1.0, OVER * math.exp(min(log_bound, 0.0)))


# Probabilities that one part of independent runs repeats another part.


def log_falling_factorial(n: npt.ArrayLike, k: npt.ArrayLike) -> Array:
    """Return ln n(n − 1)⋯(n − k + 1)."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    return np.asarray(scipy.special.gammaln(n + 1.0) - scipy.special.gammaln(n - k + 1.0))


def log_chance_of_order(length: int, agreement: float) -> float:
    """Return an upper bound on ln of the probability of any order of `length` independent runs; ties keep the order.

    `agreement` is at least the probability of every single output.
    """
    steps = np.arange(1.0, length)
    return float(np.log1p(agreement * steps).sum() - np.log1p(steps).sum())


def log_chance_of_head(inside: Sequence[int], outside: Sequence[int], others: int) -> float:
    """Return ln of the probability that a given part of the other runs repeats a part, for runs in random order.

    Each different output of the part occurs `inside` times in it and `outside` times in the `others`.
    """
    times, left = np.asarray(inside, dtype=np.float64), np.asarray(outside, dtype=np.float64)
    if np.any(left < times):
        return -math.inf
    length = float(times.sum())
    return float(log_falling_factorial(left, times).sum()) - float(log_falling_factorial(others, length))


# How often outputs occur among independent runs, which finds copies in any order.

MOST_COPIES = 16
"""Largest number of copies of one output that is looked for."""

_FEWER = np.array([0.99, *(0.25**power for power in range(1, 10))])[:, None]  # what outputs with one copy less cost
_MORE = np.array([0.99, 0.25, 1 / 16, 1 / 64])[None, :]  # what outputs with one copy more cost


def copies_pvalue(numbers: npt.ArrayLike, runs: int) -> tuple[float, int]:
    """Return the p-value of the null of independent draws from one distribution, and the number of copies.

    It is small if many different outputs occur exactly k times, but few occur k − 1 or k + 1 times: `numbers` has the
    first at place k, from 0 to at least `MOST_COPIES` + 1.

    >>> copies_pvalue([0, 0, 50, *[0] * 15], 100)[0] < 1e-14  # each of 50 outputs occurs twice
    True
    """
    found = np.asarray(numbers, dtype=np.float64)
    copies = np.arange(2, MOST_COPIES + 1)
    log_wealth = np.stack([_log_wealth(found[k - 1 : k + 2], k) for k in copies.tolist()])
    log_mean = float(scipy.special.logsumexp(log_wealth)) - math.log(log_wealth.size)
    # A sample of fixed size is a Poisson sample given its size n, which has probability ≥ exp(−1/12n)/√(2πn).
    log_p = 0.5 * math.log(2.0 * math.pi * runs) + 1.0 / (12.0 * runs) - log_mean
    return math.exp(min(log_p, 0.0)), int(copies[np.argmax(log_wealth.max(axis=(1, 2)))])


def gain(copies: int) -> Array:
    """Return by which factors an output that occurs `copies` times multiplies the wealth of each bet."""
    return np.asarray(1.0 + 2.0 * np.sqrt(copies / (copies + 1.0) * _FEWER * _MORE))


def _log_wealth(found: Array, copies: int) -> Array:
    """Return the logarithm of the wealth of each bet on outputs that occur `copies` times."""
    fewer, same, more = found.tolist()
    return np.asarray(same * np.log(gain(copies)) + fewer * np.log1p(-_FEWER) + more * np.log1p(-_MORE))


# Whether an event has the same probability in two samples.

_NEGLIGIBLE = 1e-18  # share of the sum so far below which a term is the last: a hundred more change no digit


def change_pvalue(counts: int, runs: int, counts_before: int, runs_before: int) -> float:
    """Return the exact two-sided p-value of the null that the event has the same probability in both samples.

    Given the total count, the counts of the first sample are hypergeometric for every probability of the event. The
    p-value is twice the tail from the observed counts on, at most 1 (Fisher 1935, The logic of inductive inference).

    >>> change_pvalue(10, 100, 10, 100), round(change_pvalue(0, 100, 10, 100), 5)
    (1.0, 0.00154)
    """
    for value, total in ((counts, runs), (counts_before, runs_before)):
        if not 0 <= value <= total or total < 1:
            raise OptionError(
                f"{value} counts in {total} runs are impossible; use 0 <= counts <= runs and runs >= 1.",
                counts=value,
                runs=total,
            )
    return min(1.0, 2.0 * hypergeometric_tail(counts, runs, counts + counts_before, runs + runs_before))


def hypergeometric_tail(counts: int, runs: int, seen: int, total: int) -> float:
    """Return the one-sided tail from `counts` on, for `runs` draws out of `total` with `seen` counts."""
    if counts * total < runs * seen:  # smaller counts than expected: use the tail of the misses
        counts, seen = runs - counts, total - seen
    most = min(runs, seen)  # terms decrease from the mean on
    first = _log_ways(seen, counts) + _log_ways(total - seen, runs - counts) - _log_ways(total, runs)
    term, added = 1.0, 1.0
    step = CACHED // 8  # most sums end within one: .03 ms, where steps of the whole cache take .17
    for start in range(counts, most, step):
        k = np.arange(start, min(start + step, most), dtype=np.float64)
        terms = term * np.cumprod((seen - k) / (k + 1.0) * (runs - k) / (total - seen - runs + k + 1.0))
        added, term = added + float(terms.sum()), float(terms[-1])
        if term < _NEGLIGIBLE * added:
            break
    return math.exp(min(first + math.log(added), 0.0))


def _log_ways(of: int, chosen: int) -> float:
    gammaln = scipy.special.gammaln
    return float(gammaln(of + 1.0) - gammaln(chosen + 1.0) - gammaln(of - chosen + 1.0))
