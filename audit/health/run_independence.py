"""Health checks for runs that are not independent draws.

With the checks of events, thirty-two checks raise a false alarm with probability at most 1e-8 each: in fewer than one
audit in a million. Runs on one dataset have three more checks, but none of a main phase or an event. Outputs drawn
elsewhere have eight such checks. The checks of datasets raise no false alarms.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from ..events.leaves import leaves_by_path, place_words
from ..events.named_parts import outcome_text
from ..events.outputs import (
    Outputs,
    as_numbers,
    coordinate_words,
    merge,
    number_of,
    outcome_key,
    outcome_list,
)
from ..inference.binomial_tails import clopper_pearson
from ..inference.dependence import (
    OVER,
    dispersion_pvalue,
    hypergeometric_tail,
    log_chance_of_head,
    log_chance_of_order,
    pairs_within_pvalue,
    product_pvalue,
)
from ..sampling.output_hashes import (
    FINGERPRINTED,
    MARKS,
    N_LENGTHS,
    fingerprint,
    hashed_keys,
    n_stretches,
    order_mark,
    stretch_length,
    stretch_marks,
)
from ..sampling.tasks import BlockCounts, no_blocks
from .copied_outputs import codes_of, copied_outputs
from .findings import FALSE_ALARM, Finding, HealthCheck, Snapshot

# Statistics of dependence between runs, from their order: between successive runs, or between runs on x and on y.
#
# Outputs of any kind are split into two halves as evenly as possible. Only the order of the halves matters: in
# independent runs all orders are equally likely, for any distribution of the outputs.

_SERIAL_LEAST = 500  # block size from which the normal distribution holds for correlations this far in the tails
_EVEN = 0.3  # smallest share of the smaller half for which it holds
# Runs on one dataset that are looked at, which bound the time: at all lags (.3 ms), for a change, for pairs of equal
# outputs or the likeliest one, and for halves counted block by block.
_LOOKED_AT, _WATCHED, _PAIRED, _SPREAD = 4_096, 65_536, 16_384, 1 << 21
_MOST_COLUMNS = 1_024  # coordinates, evenly spread, that are examined singly: each takes two milliseconds
_LEAST_PAIRS = 32  # fewer pairs do not differ detectably from chance

Halves = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spread:
    """Variation of a count between parts of the runs."""

    what: str  # description of the count
    between: str  # description of the parts
    pvalue: float  # probability of as much, or as little, variation in independent runs
    ratio: float  # to the variation of independent runs


def serial_correlation(blocks: list[Outputs]) -> float | None:
    """Return the correlation of successive runs within blocks, in standard errors; None if there are too few runs."""
    halved = [_standardised(halves(block)) for block in _long_blocks(blocks)]
    # Centring by the mean of the block gives successive products of independent runs a mean of −1/(n − 1).
    products = [(np.mean(v[:-1] * v[1:]) + 1 / (len(v) - 1)) * math.sqrt(len(v) - 1) for v in halved if len(v)]
    return float(np.sum(products) / math.sqrt(len(products))) if products else None


def change(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Find first or last runs that differ from the rest."""
    outputs = _joined(_head(blocks, _WATCHED))[:_WATCHED]
    upper, n = halves(outputs), len(outputs)
    total, summed = int(upper.sum()), np.concatenate([[0], np.cumsum(upper)])
    sizes = [n >> power for power in range(1, n.bit_length())]
    least, message = alpha, ""
    for size in sizes:
        for which, found in (("first", summed[size]), ("last", total - summed[n - size])):
            expected = size * total / n
            error = math.sqrt(expected * (1 - total / n) * (n - size) / max(n - 1, 1))
            chance = 4.0 * OVER * len(sizes) * hypergeometric_tail(int(found), size, total, n)
            if chance <= least:
                least = chance
                message = (
                    f"the outputs on {side} change from run to run: of the {which} {size:,} runs checked, {found:,} "
                    f"lie in the upper half, where independent runs give {expected:,.0f} ± {error:,.0f}. The "
                    "mechanism keeps state, such as a budget or a counter."
                )
    return [Finding(HealthCheck.NONSTATIONARY, message)] if message else []


def common_numbers(blocks_x: list[Outputs], blocks_y: list[Outputs], alpha: float) -> list[Finding]:
    """Find common random numbers on x and y, at the most suspicious lag between the runs.

    If the runs on x and y are independent and at least one side is in random order, then the number of coincidences,
    given the number of runs in each half, is hypergeometric. The lags share alpha.
    """
    x, y = merge(_head(blocks_x, _LOOKED_AT), _head(blocks_y, _LOOKED_AT))
    n = min(len(x), len(y), _LOOKED_AT)
    in_x, in_y = _halves_of_both(x[:n], y[:n])
    if n < _LEAST_PAIRS or min(in_x.sum(), n - in_x.sum(), in_y.sum(), n - in_y.sum()) == 0:
        return []
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.conj(np.fft.rfft(in_x.astype(np.float64), length)) * np.fft.rfft(in_y.astype(np.float64), length)
    products = np.fft.irfft(spectrum, length)
    lags = np.arange(_LEAST_PAIRS - n, n - _LEAST_PAIRS + 1)
    paired = n - np.abs(lags)
    pairs = paired.astype(np.float64)
    both = np.rint(products[lags])  # a negative lag counts from the end

    def upper_from(first: npt.NDArray[np.int64], upper: Halves) -> npt.NDArray[np.float64]:
        """Return how many of the paired runs, which begin at `first`, are in the upper half."""
        total = np.concatenate([[0.0], np.cumsum(upper, dtype=np.float64)])
        return np.asarray(total[first + paired] - total[first])

    count_x, count_y = upper_from(np.maximum(-lags, 0), in_x), upper_from(np.maximum(lags, 0), in_y)
    expected = count_x * count_y / pairs
    variance = expected * (pairs - count_x) * (pairs - count_y) / (pairs * (pairs - 1.0))
    score = np.abs(both - expected) / np.sqrt(np.maximum(variance, 1e-300))
    score[variance <= 0.0] = 0.0
    most = int(np.argmax(score))
    found, lag = int(both[most]), int(lags[most])
    tail = hypergeometric_tail(found, int(count_x[most]), int(count_y[most]), int(pairs[most]))
    if 2.0 * OVER * len(lags) * tail > alpha:
        return []
    partner = "i-th" if lag == 0 else f"(i{lag:+,})-th"
    message = (
        f"runs on x and y have common random numbers, the i-th on x with the {partner} on y: in {found:,} of "
        f"{pairs[most]:,.0f} such pairs both outputs lie in the upper half, where independent runs give "
        f"{expected[most]:,.0f} ± {math.sqrt(variance[most]):,.0f}. Both datasets share noise, and the test needs "
        "independent runs."
    )
    return [Finding(HealthCheck.SHARED_RANDOMNESS, message)]


def spread_of_halves(blocks: list[Outputs]) -> list[Spread]:
    """Return the variation between blocks of the outputs in the upper half, and for numbers in the outer half.

    The outer half, the numbers far from the median, reveals a scale that differs between blocks.
    """
    blocks = _head(blocks, _SPREAD)
    if len(blocks) < 2:
        return []
    outputs, sizes = _joined(blocks), [len(block) for block in blocks]
    starts, where = np.cumsum([0, *sizes[:-1]]), f"{len(blocks):,} chunks"
    return [
        Spread(
            f"outputs in the {name} half",
            where,
            *dispersion_pvalue(np.add.reduceat(upper.astype(np.int64), starts).tolist(), sizes),
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
    shuffled = np.random.default_rng(0).permutation(len(outputs))
    codes = (outputs if _are_numbers([outputs]) else codes_of(outputs))[shuffled]
    order = np.argsort(codes, kind="stable")
    codes, number = codes[order], number[shuffled][order]
    is_new = np.concatenate([[True], codes[1:] != codes[:-1]])
    is_pair = is_new[:-1] & ~is_new[1:]
    return int((number[:-1] == number[1:])[is_pair].sum()), int(is_pair.sum()), sizes


def two_sided(z: float) -> float:
    """Return the two-sided p-value of a standard normal statistic."""
    return 2.0 * float(scipy.special.ndtr(-abs(z)))


def _head(blocks: list[Outputs], runs: int) -> list[Outputs]:
    """Return the first blocks, as many as contain `runs` runs."""
    ends = np.cumsum([len(block) for block in blocks])
    if len(blocks) == 0 or ends[-1] <= runs:
        return blocks
    return [block[:runs] for block in blocks[: int(np.searchsorted(ends, runs)) + 1]]


def _joined(blocks: list[Outputs]) -> Outputs:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate(blocks) if _are_numbers(blocks) else merge(blocks, blocks[:1])[0]


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
    """Mark the upper half of outputs: of numbers by a median, of others by a set of about half of them.

    Vectors have no order, so none is marked; each of their columns is examined as numbers.
    """
    return _halves_of_both(outputs, outputs[:0])[0]


def _halves_of_both(x: Outputs, y: Outputs) -> tuple[Halves, Halves]:
    if x.ndim == 2:
        return np.zeros(len(x), np.bool_), np.zeros(len(y), np.bool_)
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
    """Mark about half of unordered outcomes, by their texts, so that the order of the outputs does not matter."""
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


# Check the blocks on one dataset: no block repeats another, and the runs of a block do not share randomness.

_MARKED = 128  # most pilot blocks whose stretches are compared
# To be found half of the time at 1e-8, a slow drift between 16 parts needs .60 of the size that it needs between 256
# blocks (8 parts: .55, 32: .67, by the noncentral chi-square distribution). Fewer parts blur faster changes.
_PARTS = 16
_IN_PARTS = f"{_PARTS} parts of the main phase"
_WHY_UNSTEADY = "the runs of a call share randomness, or the mechanism keeps state."
_EVENTS = "counts", "counts of the second event"  # those that are tested


def spreads(blocks: list[Outputs], counts: BlockCounts) -> list[Spread]:
    """Return the spread of the counts, and of the pilot outputs in each half, over the blocks on one dataset."""
    return [*_spread_of_counts(counts), *spread_of_halves(blocks)]


def unsteady_blocks(side: str, seen: list[Spread], alpha: float) -> list[Finding]:
    """Find counts or halves that vary between the blocks on one dataset more, or less, than in independent runs."""
    found = next((spread for spread in seen if spread.pvalue <= alpha), None)
    if found is None:
        return []
    message = (
        f"the {found.what} on {side} vary {found.ratio:.2f} times as much between the {found.between} as they "
        f"would in independent runs (chance {found.pvalue:.1g}): {_WHY_UNSTEADY}"
    )
    return [Finding(HealthCheck.NONSTATIONARY, message)]


def unsteady_on_both(seen_x: list[Spread], seen_y: list[Spread], alpha: float) -> list[Finding]:
    """Find unsteady counts by the product of the independent p-values on x and on y, if neither suffices alone."""
    on_y = {(spread.what, spread.between == _IN_PARTS): spread for spread in seen_y}
    for x in seen_x:
        y = on_y.get((x.what, x.between == _IN_PARTS))
        if y is not None and (pvalue := product_pvalue(x.pvalue, y.pvalue)) <= alpha:
            message = (
                f"the {x.what} vary {x.ratio:.2f} times as much on x, and {y.ratio:.2f} times on y, between the "
                f"{x.between} as they would in independent runs (chance {pvalue:.1g}): {_WHY_UNSTEADY}"
            )
            return [Finding(HealthCheck.NONSTATIONARY, message)]
    return []


def _spread_of_counts(counts: BlockCounts) -> list[Spread]:
    number, found = len(counts.sizes), []
    for n_parts, between in ((number, f"{number:,} chunks"), (_PARTS, _IN_PARTS)):
        if number == 0 or n_parts > number:
            continue
        starts = np.arange(n_parts) * number // n_parts
        sizes = np.add.reduceat(counts.sizes, starts).tolist()
        for name, blocks in zip(_EVENTS, (counts.counts, *counts.others), strict=False):
            seen = np.add.reduceat(blocks, starts).tolist()
            found.append(Spread(name, between, *dispersion_pvalue(seen, sizes)))
    return found


def noise_used_again(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Find pairs of equal outputs that lie within one block more often than in independent runs."""
    within, pairs, sizes = equal_pairs(blocks)
    if pairs_within_pvalue(within, pairs, sizes) > alpha:
        return []
    runs = sum(sizes)
    expected = pairs * sum(size * (size - 1.0) for size in sizes) / (runs * (runs - 1.0))
    message = (
        f"noise is reused within a chunk: of {pairs:,} pairs of equal outputs on {side}, one for each repeated "
        f"output, {within:,} lie in one chunk, where independent runs give about {expected:,.0f}. The runs are not "
        "independent."
    )
    return [Finding(HealthCheck.SERIAL_DEPENDENCE, message)]


def agreement(blocks: list[Outputs], alpha: float) -> float:
    """Return an upper confidence limit for the probability that two runs agree, from that of the likeliest output."""
    if _are_numbers(blocks):
        times = np.unique(np.concatenate(_head(blocks, _PAIRED))[:_PAIRED], return_counts=True)[1].tolist()
    else:
        times = [*Counter(islice(chain.from_iterable(map(hashed_keys, _head(blocks, _PAIRED))), _PAIRED)).values()]
    return min(1.0, clopper_pearson(max(times), sum(times), alpha=alpha)[1][0])


def head_length(blocks: list[Outputs], counts: BlockCounts) -> int:
    """Return how many first outputs to compare: the size of a main block, or else of the second-largest pilot block."""
    kept = sorted(map(len, blocks))
    return min(int(counts.sizes[0]) if len(counts.sizes) else kept[max(len(kept) - 2, 0)], FINGERPRINTED)


def _repeated_heads(side: str, blocks: list[Outputs], counts: BlockCounts, alpha: float) -> list[Finding]:
    """Find blocks that begin with the same outputs: the mechanism fixes a seed, or workers share a random stream."""
    length = head_length(blocks, counts)
    kept = [fingerprint(block[:length]) for block in blocks if len(block) >= length]
    marks = [*map(int, counts.fingerprints[counts.sizes >= length]), *kept]
    repeats = len(marks) - len(set(marks))
    if repeats == 0:
        return []
    # Independent blocks agree by chance with probability (Σ pᵢ²)^length; a constant output always agrees. For pilot
    # blocks the distribution given all their outputs is known. The limit, this chance and that distribution have a
    # third of alpha each.
    limit = math.log(alpha / 3) - math.log(math.comb(len(marks), 2))
    is_found = length * math.log(agreement(blocks, alpha / 3)) <= limit
    if not is_found and len(set(kept)) < len(kept):
        first = next(block for block in blocks if len(block) >= length and kept.count(fingerprint(block[:length])) > 1)
        is_found = _log_chance(first[:length], blocks) <= limit
    if not is_found:
        return []
    message = (
        f"{repeats + 1:,} of {len(marks):,} chunks of runs on {side} begin with the same outputs: the mechanism "
        "fixes a seed, or workers share one random stream, so the runs are not independent."
    )
    return [Finding(HealthCheck.DUPLICATE_OUTPUTS, message)]


def _log_chance(head: Outputs, blocks: list[Outputs]) -> float:
    """Return the log-probability that a block begins with this head of another block."""
    pooled: Counter[object] = Counter()
    for block in blocks:
        pooled.update(hashed_keys(block))
    inside = Counter(hashed_keys(head))
    outside = [pooled[key] - times for key, times in inside.items()]
    return log_chance_of_head(list(inside.values()), outside, pooled.total() - len(head))


def _repeated_stretches(side: str, blocks: list[Outputs], counts: BlockCounts, alpha: float) -> list[Finding]:
    """Find blocks that contain the same stretch of outputs, at any position: workers share one random stream."""
    kept = blocks[:: max(1, -(-len(blocks) // _MARKED))]
    sizes = np.array([*map(len, kept), *counts.sizes[: len(counts.stretches)]], np.int64)
    lengths = np.array([stretch_length(size) for size in sizes.tolist()])
    is_marked = np.concatenate([np.ones(len(kept), np.bool_), counts.stretches.any(axis=1)])
    own = np.array([stretch_marks(block) for block in kept], np.uint64).reshape(-1, MARKS)
    marks = np.concatenate([own, counts.stretches])
    found = n_marked = 0
    for length in set(lengths.tolist()) - {0}:
        here = (lengths == length) & is_marked
        values, times = np.unique(marks[here], return_counts=True)
        repeated = values[(times > 1) & (values != 0)]
        if len(repeated) == 0:
            continue
        limit = math.log(alpha / (2 * N_LENGTHS))
        if _log_chance_of_stretch(length, agreement(blocks, alpha / 2), sizes[here]) <= limit:
            found += int(np.isin(marks[here], repeated).any(axis=1).sum())
            n_marked += int(here.sum())
    if found == 0:
        return []
    message = (
        f"{found:,} of {n_marked:,} chunks of runs on {side} contain a stretch of outputs of another chunk: "
        "workers share one random stream, such as the generator of a module that the mechanism imports, so the "
        "runs are not independent."
    )
    return [Finding(HealthCheck.DUPLICATE_OUTPUTS, message)]


def _log_chance_of_stretch(length: int, agreement: float, sizes: npt.NDArray[np.int64]) -> float:
    """Return ln of a bound on the probability that blocks of these sizes have a stretch in common."""
    windows = sum(n_stretches(size) for size in sizes.tolist())
    # Two stretches agree, or their 64-bit hashes collide.
    log_agree = np.logaddexp(length * math.log(agreement), -64 * math.log(2))
    return 2 * math.log(windows) - math.log(2) + float(log_agree)


def examine(
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
    *,
    alpha: float = FALSE_ALARM,
    names: tuple[str, ...] = (),
) -> tuple[Finding, ...]:
    """Return the failed health checks of the pilot blocks and the main-phase blocks on x and y.

    Each check raises a false alarm with probability at most `alpha`: half of it is for whole outputs, and their
    columns, with these `names`, share the rest.
    """
    columns = columns_of(pilot, names)
    whole = _examine(pilot, main, ignore, alpha / 2 if columns else alpha)
    return whole or _first_finding(
        columns, lambda x, y, share: _examine((x, y), (no_blocks(), no_blocks()), ignore, share), alpha / 2
    )


def _examine(
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
    alpha: float,
) -> tuple[Finding, ...]:
    found: list[Finding] = []
    all_repeated: list[Finding] = []
    in_order: list[list[Finding]] = []
    seen = [spreads(*side) for side in zip(pilot, main, strict=True)]
    for side, blocks, counts, spread in zip(("x", "y"), pilot, main, seen, strict=True):
        differ, repeated = _all_differ(blocks), list[Finding]()
        if not differ or len(counts.sizes):
            repeated = _repeated_heads(side, blocks, counts, alpha) or _repeated_stretches(side, blocks, counts, alpha)
        changed, serial = change(side, blocks, alpha), _serial_dependence(side, blocks, alpha)
        used_again = serial or ([] if differ else noise_used_again(side, blocks, alpha))
        is_said = bool(used_again) and HealthCheck.SERIAL_DEPENDENCE not in ignore
        unsteady = changed or ([] if is_said else unsteady_blocks(side, spread, alpha))
        # Repeated blocks also make counts unsteady.
        found += unsteady if HealthCheck.DUPLICATE_OUTPUTS in ignore or not repeated else repeated
        found += used_again
        all_repeated += repeated
        in_order.append(changed + serial)
    if not any(finding.check not in ignore for finding in found):
        found += unsteady_on_both(seen[0], seen[1], alpha)
    if HealthCheck.DUPLICATE_OUTPUTS in ignore or not all_repeated:  # which also look like shared randomness
        # Common numbers prove nothing if both sides show an order of their own.
        found += _same_order(pilot, main, alpha) or ([] if all(in_order) else common_numbers(*pilot, alpha))
    return tuple(finding for finding in found if finding.check not in ignore)


def examine_draws(
    snapshot: Snapshot,
    changed: Collection[str],
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
    names: tuple[str, ...] = (),
) -> tuple[Finding, ...]:
    """Return the failed health checks of drawn runs and their datasets, which may be one dataset.

    `changed` are the datasets that changed while runs were made; a changed dataset explains all other findings.
    """
    of_datasets = snapshot.examine(ignore | {HealthCheck.EQUAL_DATASETS}, changed)
    return of_datasets or examine(pilot, main, ignore, names=names)


def examine_in_order(
    blocks: list[Outputs], ignore: frozenset[HealthCheck], names: tuple[str, ...] = ()
) -> tuple[Finding, ...]:
    """Return the finding that outputs on one dataset change over time, from all its blocks in the order drawn.

    The three checks raise a false alarm with probability at most `FALSE_ALARM` each, over all columns.
    """

    def steadiness(blocks: list[Outputs], alpha: float) -> tuple[Finding, ...]:
        found = change("x and y", blocks, alpha) or unsteady_blocks("x and y", spreads(blocks, no_blocks()), alpha)
        return tuple(finding for finding in found if finding.check not in ignore)

    columns = columns_of((blocks, blocks[:0]), names)
    if not columns:
        return steadiness(blocks, FALSE_ALARM)
    return _first_finding(columns, lambda blocks, _, share: steadiness(blocks, share), FALSE_ALARM)


def examine_order(
    x: Outputs, y: Outputs, ignore: frozenset[HealthCheck], names: tuple[str, ...] = ()
) -> tuple[Finding, ...]:
    """Return the failed health checks of outputs made elsewhere: of their order, unless they are sorted, and of copies.

    Each of the eight checks raises a false alarm with probability at most `FALSE_ALARM`, over all columns. Outputs that
    are sorted by one column are in the order of no other.
    """
    columns = columns_of(([x], [y]), names)
    x_in_order, y_in_order = (
        not _is_sorted(side) and not any(_is_sorted_on_purpose(sides[place][0]) for _, sides in columns)
        for place, side in enumerate((x, y))
    )

    def checks(x: list[Outputs], y: list[Outputs], alpha: float) -> tuple[Finding, ...]:
        on_x = _serial_dependence("x", x, alpha) if x_in_order else []
        on_y = _serial_dependence("y", y, alpha) if y_in_order else []
        common = common_numbers(x, y, alpha) if (x_in_order or y_in_order) and not (on_x and on_y) else []
        copied, shared = list[Finding](), list[Finding]()
        if not _all_differ([*x, *y]):
            copied, shared = copied_outputs(x[0], y[0], in_order=(x_in_order, y_in_order), alpha=alpha)
        found = [*copied, *on_x, *on_y, *(common or shared)]
        return tuple(finding for finding in found if finding.check not in ignore)

    whole = checks([x], [y], FALSE_ALARM / 2 if columns else FALSE_ALARM)
    return whole or _first_finding(columns, checks, FALSE_ALARM / 2)


def _is_sorted(outputs: Outputs) -> bool:
    """Whether numbers are in order, or other equal outcomes are adjacent; vectors are in the order of a column."""
    if outputs.ndim == 2:
        return False
    if outputs.dtype == object:
        keys = [outcome_key(value) for value in outputs.tolist()]
        return 1 + sum(bool(a != b) for a, b in pairwise(keys)) == len(set(keys))
    values = outputs[outputs == outputs]  # NaN has no place in an order
    return bool(np.all(values[1:] >= values[:-1]) or np.all(values[1:] <= values[:-1]))


def _is_sorted_on_purpose(values: Outputs) -> bool:
    """Whether values are sorted that independent runs give in this order with probability at most `FALSE_ALARM`."""
    times = np.unique(values, return_counts=True)[1]
    # Logarithm of the number of different orders, all equally likely.
    log_orders = scipy.special.gammaln(len(values) + 1.0) - scipy.special.gammaln(times + 1.0).sum()
    return _is_sorted(values) and bool(log_orders > -math.log(FALSE_ALARM))


# The columns of outputs: the coordinates of vectors, and the numbers in other structured outputs.

Column = tuple[str, tuple[list[Outputs], list[Outputs]]]
"""The name of a column, and its values in the blocks on x and on y."""


def columns_of(sides: tuple[list[Outputs], list[Outputs]], names: tuple[str, ...]) -> list[Column]:
    """Return the columns of vectors, and of other outputs the numbers that they contain; none if all are numbers.

    Only numbers that a share of at least `_EVEN` of all outputs contains have a column, NaN in the other outputs:
    halves of rarer numbers are too uneven.
    """
    blocks = [*sides[0], *sides[1]]
    if _are_numbers(blocks):
        return []
    n_x = len(sides[0])
    columns: list[tuple[str, list[Outputs]]] = []
    if all(block.ndim == 2 for block in blocks) and len({block.shape[1] for block in blocks}) == 1:
        width = blocks[0].shape[1]
        for place in np.unique(np.linspace(0, width - 1, min(width, _MOST_COLUMNS)).astype(np.int64)).tolist():
            columns.append((coordinate_words(place, names), [block[:, place] for block in blocks]))
    else:
        outputs = list(chain.from_iterable(map(outcome_list, blocks)))
        ends = np.cumsum([len(block) for block in blocks])[:-1]
        for path, (runs, leaves) in leaves_by_path(outputs)[0].items():
            if len(runs) >= _EVEN * len(outputs):
                values = np.full(len(outputs), np.nan)
                values[runs] = list(map(number_of, leaves))
                columns.append((place_words(path, names), np.split(values, ends)))
    return [(name, (parts[:n_x], parts[n_x:])) for name, parts in columns]


def _first_finding(
    columns: list[Column],
    checks: Callable[[list[Outputs], list[Outputs], float], tuple[Finding, ...]],
    alpha: float,
) -> tuple[Finding, ...]:
    """Return the findings in the first column that has any; the columns share alpha, and constants show nothing."""
    for name, sides in columns:
        x, y = sides
        if all(bool((block == blocks[0][0]).all()) for blocks in (x, y) for block in blocks):
            continue
        if found := checks(x, y, alpha / len(columns)):
            return tuple(replace(finding, message=f"{name}: {finding.message}") for finding in found)
    return ()


def _are_numbers(blocks: list[Outputs]) -> bool:
    return all(block.ndim == 1 and block.dtype.kind != "O" for block in blocks)


def _all_differ(blocks: list[Outputs]) -> bool:
    """Whether these are numbers, none of which occurs twice; nothing is then repeated."""
    if not _are_numbers(blocks):
        return False
    values = np.concatenate(blocks)
    return len(np.unique(values)) == len(values)


def _serial_dependence(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Find correlated outputs of successive runs in a block."""
    z = serial_correlation(blocks)
    if z is None or two_sided(z) > alpha / 2:  # the true tail is less than twice the normal tail
        return []
    message = (
        f"successive runs on {side} are correlated ({z:+.1f} standard errors): the mechanism keeps state or reuses "
        "noise from run to run, so the runs are not independent."
    )
    return [Finding(HealthCheck.SERIAL_DEPENDENCE, message)]


def _same_order(
    pilot: tuple[list[Outputs], list[Outputs]], main: tuple[BlockCounts, BlockCounts], alpha: float
) -> list[Finding]:
    """Find blocks on x whose first outputs have the same order as those of a block on y: the same noise, shifted."""
    places: dict[int, set[tuple[str, str, int]]] = {}
    n_blocks = 0
    length = min(head_length(*side) for side in zip(pilot, main, strict=True))
    for side, blocks, counts in zip(("x", "y"), pilot, main, strict=True):
        marks = [("pilot", i, order_mark(block[:length])) for i, block in enumerate(blocks) if len(block) >= length]
        long = np.flatnonzero(counts.sizes[: len(counts.orders)] >= length).tolist()
        marks += [("main", i, int(counts.orders[i])) for i in long]
        n_blocks += len(marks)
        for phase, number, mark in marks:
            places.setdefault(mark, set()).add((side, phase, number))
    places.pop(order_mark(np.zeros(length)), None)  # constant or increasing outputs
    shared = [group for group in places.values() if len({side for side, *_ in group}) == 2]
    if not shared:
        return []
    ordered = [[block[:, 0] if block.ndim == 2 and block.shape[1] else block for block in side] for side in pilot]
    most = max(agreement(blocks, alpha / 4) for blocks in ordered)
    if math.log(math.comb(n_blocks, 2)) + log_chance_of_order(length, most) > math.log(alpha / 2):
        return []
    message = (
        f"{sum(map(len, shared)):,} of {n_blocks:,} chunks of runs on x and y begin with outputs in the same order "
        "as a chunk on the other dataset, so the runs are not independent. Workers share a random stream, or x and y "
        "have the same seed."
    )
    return [Finding(HealthCheck.SHARED_RANDOMNESS, message)]
