"""Check the blocks on one dataset: no block repeats another, and the runs of a block do not share randomness.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, islice

import numpy as np

from ..events.outputs import Outputs
from ..inference.binomial_tails import clopper_pearson
from ..inference.dispersion import dispersion_p_value, pairs_within_p_value, product_p_value
from ..inference.repeated_order import log_chance_of_head
from ..sampling.block_counts import BlockCounts
from ..sampling.output_hashes import FINGERPRINTED, fingerprint, hashed_keys
from ..sampling.stretch_hashes import MARKS, n_stretches, stretch_length, stretch_marks
from .dependence_statistics import Spread, equal_pairs, spread_of_halves
from .findings import Finding, HealthCheck

_TALLIED = 20_000  # pilot runs that bound the probability of the likeliest outcome
_MARKED = 128  # most pilot blocks whose stretches are compared
_PARTS = 16
_IN_PARTS = f"{_PARTS} parts of the main phase"
_WHY_UNSTEADY = "the runs of a call share randomness, or the mechanism keeps state."
_EVENTS = "hits", "hits of the second event", "hits of the third event"  # those that are tested
_LENGTHS = 8  # bound on the number of different stretch lengths


def repeated_blocks(side: str, blocks: list[Outputs], counts: BlockCounts, alpha: float) -> list[Finding]:
    """Find blocks that begin with the same outputs, or contain the same stretch of outputs."""
    return _repeated_heads(side, blocks, counts, alpha) or _repeated_stretches(side, blocks, counts, alpha)


def spreads(blocks: list[Outputs], counts: BlockCounts) -> list[Spread]:
    """Return the spread of the hits, and of the pilot outputs in each half, over the blocks on one dataset.

    The spread of hits over parts of successive blocks reveals a slow change.
    """
    return [*_spread_of_hits(counts), *spread_of_halves(blocks)]


def unsteady_blocks(side: str, seen: list[Spread], alpha: float) -> list[Finding]:
    """Find hits or halves that vary between the blocks on one dataset more, or less, than in independent runs."""
    found = next((spread for spread in seen if spread.p_value <= alpha), None)
    if found is None:
        return []
    message = (
        f"the {found.what} on {side} vary {found.ratio:.2f} times as much between the {found.between} as they "
        f"would in independent runs (chance {found.p_value:.1g}): {_WHY_UNSTEADY}"
    )
    return [Finding(HealthCheck.UNSTEADY_HITS, message)]


def unsteady_on_both(seen_x: list[Spread], seen_y: list[Spread], alpha: float) -> list[Finding]:
    """Find unsteady hits by the product of the independent p-values on x and on y, if neither suffices alone."""
    on_y = {_kind(spread): spread for spread in seen_y}
    for x in seen_x:
        y = on_y.get(_kind(x))
        if y is not None and (p_value := product_p_value(x.p_value, y.p_value)) <= alpha:
            message = (
                f"the {x.what} vary {x.ratio:.2f} times as much on x, and {y.ratio:.2f} times on y, between the "
                f"{x.between} as they would in independent runs (chance {p_value:.1g}): {_WHY_UNSTEADY}"
            )
            return [Finding(HealthCheck.UNSTEADY_HITS, message)]
    return []


def _kind(spread: Spread) -> tuple[str, bool]:
    return spread.what, spread.between == _IN_PARTS


def _spread_of_hits(counts: BlockCounts) -> list[Spread]:
    number, found = len(counts.sizes), []
    for n_parts, between in ((number, f"{number:,} blocks"), (_PARTS, _IN_PARTS)):
        if number == 0 or n_parts > number:
            continue
        starts = np.arange(n_parts) * number // n_parts
        sizes = np.add.reduceat(counts.sizes, starts).tolist()
        for name, blocks in zip(_EVENTS, (counts.hits, *counts.others), strict=False):
            hits = np.add.reduceat(blocks, starts).tolist()
            found.append(Spread(name, between, *dispersion_p_value(hits, sizes)))
    return found


def noise_used_again(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Find pairs of equal outputs that lie within one block more often than in independent runs."""
    within, pairs, sizes = equal_pairs(blocks)
    if pairs_within_p_value(within, pairs, sizes) > alpha:
        return []
    runs = sum(sizes)
    expected = pairs * sum(size * (size - 1.0) for size in sizes) / (runs * (runs - 1.0))
    message = (
        f"noise is reused within a block: of {pairs:,} pairs of equal outputs on {side}, one for each repeated "
        f"output, {within:,} lie in one block, where independent runs give about {expected:,.0f}. The runs are not "
        "independent."
    )
    return [Finding(HealthCheck.SERIAL_DEPENDENCE, message)]


def agreement(blocks: list[Outputs], alpha: float) -> float:
    """Return an upper confidence limit for the probability that two runs agree, from that of the likeliest output."""
    values = chain.from_iterable(hashed_keys(block[:_TALLIED]) for block in blocks)
    counts = Counter(islice(values, _TALLIED))
    return min(1.0, clopper_pearson(max(counts.values()), counts.total(), alpha=alpha)[1][0])


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
    # blocks the law given all their outputs is known. The limit, this chance and that law have a third of alpha each.
    limit = math.log(alpha / 3) - math.log(math.comb(len(marks), 2))
    is_found = length * math.log(agreement(blocks, alpha / 3)) <= limit
    if not is_found and len(set(kept)) < len(kept):
        first = next(block for block in blocks if len(block) >= length and kept.count(fingerprint(block[:length])) > 1)
        is_found = _log_chance(first[:length], blocks) <= limit
    if not is_found:
        return []
    message = (
        f"{repeats + 1:,} of {len(marks):,} blocks of runs on {side} begin with the same outputs: the mechanism "
        "fixes a seed, or workers share one random stream, so the runs are not independent."
    )
    return [Finding(HealthCheck.REPEATED_BLOCKS, message)]


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
    step = -(-len(blocks) // _MARKED)
    kept = blocks[::step] if step > 1 else blocks
    sizes = np.concatenate([[len(block) for block in kept], counts.sizes]).astype(np.int64)
    own = np.array([stretch_marks(block) for block in kept], np.uint64).reshape(-1, MARKS)
    marks = np.concatenate([own, counts.stretches]) if len(counts.stretches) else own
    sizes = sizes[: len(marks)]
    lengths = np.array([stretch_length(size) for size in sizes.tolist()])
    found = n_marked = 0
    for length in set(lengths.tolist()) - {0}:
        here = (lengths == length) & marks.any(axis=1)
        values, times = np.unique(marks[here], return_counts=True)
        repeated = values[(times > 1) & (values != 0)]
        if len(repeated) == 0:
            continue
        windows = sum(n_stretches(size) for size in sizes[here].tolist())
        agree = length * math.log(agreement(blocks, alpha / 2))
        # Two stretches agree, or their 64-bit hashes collide.
        log_chance = 2 * math.log(windows) - math.log(2) + np.logaddexp(agree, -64 * math.log(2))
        if log_chance <= math.log(alpha / (2 * _LENGTHS)):
            found += int(np.isin(marks[here], repeated).any(axis=1).sum())
            n_marked += int(here.sum())
    if found == 0:
        return []
    message = (
        f"{found:,} of {n_marked:,} blocks of runs on {side} contain a stretch of outputs of another block: "
        "workers share one random stream, such as the generator of a module that the mechanism imports, so the "
        "runs are not independent."
    )
    return [Finding(HealthCheck.REPEATED_BLOCKS, message)]
