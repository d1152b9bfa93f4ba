"""Statistics of dependence between runs, from their order: between successive runs, or between runs on x and on y.

Outputs of any kind are split into two halves as evenly as possible. Only the order of the halves matters: in
independent runs all orders are equally likely, for any law of the outputs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ..events.outcome_text import outcome_text
from ..events.outputs import Outputs, as_numbers, merge, outcome_key, outcome_list, row_keys
from ..inference.dispersion import dispersion_p_value
from ..inference.two_sample_test import hypergeometric_tail

_SERIAL_LEAST = 500  # block size from which the normal law holds for correlations this far in the tails
_EVEN = 0.3  # smallest share of the smaller half for which it holds
_LOOKED_AT = 4_096  # runs on each dataset compared at all lags: .3 ms
_WATCHED = 65_536  # runs on one dataset that are checked for a change
_PAIRED = 16_384  # runs on one dataset among which equal outputs are paired
_SPREAD = 1 << 21  # runs on one dataset whose halves are counted block by block
_LEAST_PAIRS = 32  # fewer pairs do not differ detectably from chance
_SUSPECT, _SUSPICIOUS = 6.0, 4.0  # standard errors from which exact probabilities are computed: of pairs, of parts
_OVER = 1.0 + 1e-6  # allowance for rounding errors of a tail
_SHUFFLE = 20_11  # a seed
_COLUMNS = 8  # most coordinates of vectors that are tried for an even split

Halves = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Coupling:
    """Pairs of runs, one on x and one on y, that fall into the same halves too often or too rarely."""

    lag: int  # the i-th run on x is paired with the (i + lag)-th on y
    pairs: int
    both: int  # pairs with both outputs in the upper half
    expected: float  # mean of `both` in independent runs
    error: float  # its standard deviation
    chance: float  # bound on the probability of such an extreme count in independent runs, over all lags


@dataclass(frozen=True, slots=True)
class Spread:
    """Variation of a count between parts of the runs."""

    what: str  # description of the count
    between: str  # description of the parts
    p_value: float  # probability of as much, or as little, variation in independent runs
    ratio: float  # to the variation of independent runs


@dataclass(frozen=True, slots=True)
class Change:
    """First or last runs that differ from the other runs."""

    is_first: bool
    runs: int
    upper: int  # outputs in the upper half
    expected: float  # mean of `upper` in independent runs
    error: float  # its standard deviation


def serial_correlation(blocks: list[Outputs]) -> float | None:
    """Return the correlation of successive runs within blocks, in standard errors; None if there are too few runs.

    It is asymptotically standard normal in independent runs. Short blocks are joined.
    """
    halved = [_standardised(halves(block)) for block in _long_blocks(blocks)]
    # Centring by the mean of the block gives successive products of independent runs a mean of −1/(n − 1).
    products = [(np.mean(v[:-1] * v[1:]) + 1 / (len(v) - 1)) * math.sqrt(len(v) - 1) for v in halved if len(v)]
    return float(np.sum(products) / math.sqrt(len(products))) if products else None


def change(blocks: list[Outputs], *, alpha: float) -> Change | None:
    """Return first or last runs that differ from the rest, if any; false alarms have probability at most `alpha`.

    The size of a part is the number of runs divided by a power of two. Given the number of runs in the upper half,
    their number in a part is hypergeometric if the runs are independent.
    """
    outputs = _joined(_head(blocks, _WATCHED))[:_WATCHED]
    upper, n = halves(outputs), len(outputs)
    total, summed = int(upper.sum()), np.concatenate([[0], np.cumsum(upper)])
    sizes = [n >> power for power in range(1, n.bit_length())]
    best: tuple[float, Change] | None = None
    for size in sizes:
        for is_first, found in ((True, summed[size]), (False, total - summed[n - size])):
            expected = size * total / n
            error = math.sqrt(expected * (1 - total / n) * (n - size) / max(n - 1, 1))
            if abs(found - expected) <= _SUSPICIOUS * error:
                continue
            chance = 4.0 * _OVER * len(sizes) * hypergeometric_tail(int(found), size, total, n)
            if chance <= (alpha if best is None else best[0]):
                best = chance, Change(is_first, size, int(found), expected, error)
    return None if best is None else best[1]


def coupling(blocks_x: list[Outputs], blocks_y: list[Outputs], *, alpha: float) -> Coupling | None:
    """Return the most suspicious lag between runs on x and y; false alarms have probability at most `alpha`.

    If the runs on x and y are independent and at least one side is in random order, then the number of coincidences,
    given the number of runs in each half, is hypergeometric. The lags share alpha.
    """
    x, y = merge(_head(blocks_x, _LOOKED_AT), _head(blocks_y, _LOOKED_AT))
    n = min(len(x), len(y), _LOOKED_AT)
    in_x, in_y = _halves_of_both(x[:n], y[:n])
    if n < _LEAST_PAIRS or min(in_x.sum(), n - in_x.sum(), in_y.sum(), n - in_y.sum()) == 0:
        return None
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.conj(np.fft.rfft(in_x.astype(np.float64), length)) * np.fft.rfft(in_y.astype(np.float64), length)
    products = np.fft.irfft(spectrum, length)
    lags = np.arange(_LEAST_PAIRS - n, n - _LEAST_PAIRS + 1)
    pairs = (n - np.abs(lags)).astype(np.float64)
    both = np.rint(products[lags])  # a negative lag counts from the end
    total_x, total_y = (np.concatenate([[0.0], np.cumsum(side, dtype=np.float64)]) for side in (in_x, in_y))
    first = np.maximum(-lags, 0)  # first paired run on x; all pairs lie within the n runs
    hits_x = total_x[first + pairs.astype(np.int64)] - total_x[first]
    first = np.maximum(lags, 0)
    hits_y = total_y[first + pairs.astype(np.int64)] - total_y[first]
    expected = hits_x * hits_y / pairs
    variance = expected * (pairs - hits_x) * (pairs - hits_y) / (pairs * (pairs - 1.0))
    score = np.abs(both - expected) / np.sqrt(np.maximum(variance, 1e-300))
    score[variance <= 0.0] = 0.0
    most = int(np.argmax(score))
    if score[most] < _SUSPECT:
        return None
    counted = [int(part[most]) for part in (pairs, hits_x, hits_y, both)]
    chance = min(1.0, 2.0 * _OVER * len(lags) * hypergeometric_tail(counted[3], counted[1], counted[2], counted[0]))
    if chance > alpha:
        return None
    return Coupling(
        lag=int(lags[most]),
        pairs=counted[0],
        both=counted[3],
        expected=float(expected[most]),
        error=math.sqrt(variance[most]),
        chance=chance,
    )


def spread_of_halves(blocks: list[Outputs]) -> list[Spread]:
    """Return the variation between blocks of the outputs in the upper half, and for numbers in the outer half.

    The halves are a symmetric function of all outputs, so in independent runs every order is equally likely. The outer
    half, the numbers far from the median, reveals a scale that differs between blocks.
    """
    blocks = _head(blocks, _SPREAD)
    if len(blocks) < 2:
        return []
    outputs, sizes = _joined(blocks), [len(block) for block in blocks]
    starts, where = np.cumsum([0, *sizes[:-1]]), f"{len(blocks):,} blocks"
    return [
        Spread(
            f"outputs in the {name} half",
            where,
            *dispersion_p_value(np.add.reduceat(upper.astype(np.int64), starts).tolist(), sizes),
        )
        for name, upper in (("upper", halves(outputs)), ("outer", _outer_half(outputs)))
        if upper is not None
    ]


def _outer_half(outputs: Outputs) -> Halves | None:
    if outputs.ndim != 1 or outputs.dtype == object:
        return None
    values = outputs.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity minus infinity
        return _upper(np.abs(values - np.median(values)))


def equal_pairs(blocks: list[Outputs]) -> tuple[int, int, list[int]]:
    """Pair equal outputs, one pair per repeated output; return the pairs within one block, all pairs, and block sizes.

    A seeded permutation picks the pair of an output that occurs more than twice.
    """
    blocks = _head(blocks, _PAIRED)
    outputs = _joined(blocks)
    sizes = [len(block) for block in blocks]
    number = np.repeat(np.arange(len(blocks)), sizes)
    shuffled = np.random.default_rng(_SHUFFLE).permutation(len(outputs))
    codes = _codes_of(outputs)[shuffled]
    order = np.argsort(codes, kind="stable")
    codes, number = codes[order], number[shuffled][order]
    is_new = np.concatenate([[True], codes[1:] != codes[:-1]])
    is_pair = is_new[:-1] & ~is_new[1:]
    return int((number[:-1] == number[1:])[is_pair].sum()), int(is_pair.sum()), sizes


def _codes_of(outputs: Outputs) -> npt.NDArray[Any]:
    """Return a number for each output; two numbers are equal if and only if the outputs are."""
    if outputs.dtype == object:
        places: dict[Any, int] = {}
        keys = map(outcome_key, outputs.tolist())
        return np.fromiter((places.setdefault(key, len(places)) for key in keys), np.int64, len(outputs))
    return row_keys(outputs) if outputs.ndim == 2 else outputs


def two_sided(z: float) -> float:
    """Return the two-sided p-value of a standard normal statistic."""
    return 2.0 * float(ndtr(-abs(z)))


def _head(blocks: list[Outputs], runs: int) -> list[Outputs]:
    """Return the first blocks, as many as contain `runs` runs."""
    ends = np.cumsum([len(block) for block in blocks])
    return [block[:runs] for block in blocks[: int(np.searchsorted(ends, runs)) + 1]]


def _joined(blocks: list[Outputs]) -> Outputs:
    return blocks[0] if len(blocks) == 1 else merge(blocks, blocks[:1])[0]


def _long_blocks(blocks: list[Outputs]) -> list[Outputs]:
    """Return the blocks of enough runs, and short blocks joined until they have enough."""
    long, short, runs = [], list[Outputs](), 0
    for block in blocks:
        if len(block) >= _SERIAL_LEAST:
            long.append(block)
            continue
        short.append(block)
        runs += len(block)
        if runs >= _SERIAL_LEAST:
            long.append(_joined(short))
            short, runs = [], 0
    return long


def halves(outputs: Outputs) -> Halves:
    """Mark the upper half of outputs: of numbers and vectors by a median, of others by a set of about half of them."""
    return _halves_of_both(outputs, outputs[:0])[0]


def _halves_of_both(x: Outputs, y: Outputs) -> tuple[Halves, Halves]:
    if x.ndim == 2:
        upper = np.zeros(len(x), np.bool_)
        for place in range(min(x.shape[1], _COLUMNS)):
            upper = _upper(x[:, place])
            if _evenness(upper) >= _EVEN:
                return upper, _upper(y[:, place])
        return upper, np.zeros(len(y), np.bool_)
    numbers = [as_numbers(side).astype(np.float64, copy=False) for side in (x, y)]
    if x.dtype == object and np.isnan(np.concatenate(numbers)).mean() > 1 - _EVEN:
        return _halves_of_outcomes(x, y)
    return _upper(numbers[0]), _upper(numbers[1])


def _upper(values: npt.NDArray[np.float64]) -> Halves:
    """Mark the values above the median, or not below it, whichever is closer to half; NaN is below every value."""
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if len(known) == 0:
        return np.zeros(len(values), np.bool_)
    median = np.partition(known, len(known) // 2)[len(known) // 2]
    return max((values > median, values >= median), key=_evenness)


def _halves_of_outcomes(x: Outputs, y: Outputs) -> tuple[Halves, Halves]:
    """Mark about half of unordered outcomes: add frequent outcomes first, as long as the split gets no less even.

    Outcomes are compared by their texts, so that the half does not depend on the order of the outputs.
    """
    keys = [[outcome_text(value) for value in outcome_list(side)] for side in (x, y)]
    counts = Counter(keys[0]) + Counter(keys[1])
    total, taken, upper = counts.total(), 0, set()
    for key, times in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if 2 * taken + times <= total:
            taken += times
            upper.add(key)
    first, second = (np.fromiter((key in upper for key in side), np.bool_, len(side)) for side in keys)
    return first, second


def _evenness(upper: Halves) -> float:
    share = np.count_nonzero(upper) / len(upper) if len(upper) else 0.0
    return min(share, 1.0 - share)


def _standardised(upper: Halves) -> npt.NDArray[Any]:
    """Return the halves as numbers of mean 0 and variance 1; an empty array if one half has too few."""
    share = np.count_nonzero(upper) / len(upper)
    if not _EVEN <= share <= 1 - _EVEN:
        return np.empty(0)
    return (upper - share) / math.sqrt(share * (1 - share))
