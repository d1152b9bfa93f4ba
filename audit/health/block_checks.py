"""Checks of the blocks of one side: that none repeats another, and that runs of one block do not share randomness.

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

_TALLIED = 20_000  # pilot runs looked at for the likeliest outcome
_MARKED = 128  # kept blocks of which stretches are looked at
_PARTS = 16
_IN_PARTS = f"{_PARTS} parts of the main phase"
_WHY_UNSTEADY = "the runs of a call share randomness, or the mechanism keeps state."
_LENGTHS = 8  # different lengths of stretches, at most


def repeated_blocks(side: str, blocks: list[Outputs], counts: BlockCounts, alpha: float) -> list[Finding]:
    """Two blocks that begin alike, or hold the same stretch of outputs."""
    return _repeated_heads(side, blocks, counts, alpha) or _repeated_stretches(side, blocks, counts, alpha)


def spreads(blocks: list[Outputs], counts: BlockCounts) -> list[Spread]:
    """How the hits, and the kept outputs in a half, are spread over the blocks of one side.

    Hits are also looked at in parts of neighbouring blocks, which show a slow change.
    """
    return [*_spread_of_hits(counts), *spread_of_halves(blocks)]


def unsteady_blocks(side: str, seen: list[Spread], alpha: float) -> list[Finding]:
    """Hits or halves spread over the blocks of one side more, or less, than independent runs can."""
    found = next((spread for spread in seen if spread.p_value <= alpha), None)
    if found is None:
        return []
    return [
        Finding(
            HealthCheck.UNSTEADY_HITS,
            f"the {found.what} on {side} vary {found.ratio:.2f} times as much between the {found.between} as they "
            f"would in independent runs (chance {found.p_value:.1g}): {_WHY_UNSTEADY}",
        )
    ]


def unsteady_on_both(seen_x: list[Spread], seen_y: list[Spread], alpha: float) -> list[Finding]:
    """The same of both sides together, where neither is enough: the product of two independent p-values."""
    on_y = {_kind(spread): spread for spread in seen_y}
    for x in seen_x:
        y = on_y.get(_kind(x))
        if y is not None and (p_value := product_p_value(x.p_value, y.p_value)) <= alpha:
            return [
                Finding(
                    HealthCheck.UNSTEADY_HITS,
                    f"the {x.what} vary {x.ratio:.2f} times as much on x, and {y.ratio:.2f} times on y, between the "
                    f"{x.between} as they would in independent runs (chance {p_value:.1g}): {_WHY_UNSTEADY}",
                )
            ]
    return []


def _kind(spread: Spread) -> tuple[str, bool]:
    return spread.what, spread.between == _IN_PARTS


def _spread_of_hits(counts: BlockCounts) -> list[Spread]:
    number, found = len(counts.sizes), []
    for n_parts, between in ((number, f"{number:,} blocks"), (_PARTS, _IN_PARTS)):
        if number == 0 or n_parts > number:
            continue
        starts = np.arange(n_parts) * number // n_parts
        hits, sizes = (np.add.reduceat(each, starts).tolist() for each in (counts.hits, counts.sizes))
        found.append(Spread("hits", between, *dispersion_p_value(hits, sizes)))
    return found


def noise_used_again(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Equal outputs that lie in one block more often than in independent runs."""
    within, pairs, sizes = equal_pairs(blocks)
    if pairs_within_p_value(within, pairs, sizes) > alpha:
        return []
    runs = sum(sizes)
    expected = pairs * sum(size * (size - 1.0) for size in sizes) / (runs * (runs - 1.0))
    return [
        Finding(
            HealthCheck.SERIAL_DEPENDENCE,
            f"noise is used again within a block: of {pairs:,} pairs of equal outputs on {side}, one for each output "
            f"that came more than once, {within:,} lie in one block, where independent runs give about "
            f"{expected:,.0f}. The runs are not independent.",
        )
    ]


def agreement(blocks: list[Outputs], alpha: float) -> float:
    """Upper confidence limit for the probability of the likeliest output, which that two runs agree does not exceed."""
    values = chain.from_iterable(hashed_keys(block[:_TALLIED]) for block in blocks)
    counts = Counter(islice(values, _TALLIED))
    return min(1.0, clopper_pearson(max(counts.values()), counts.total(), alpha=alpha)[1][0])


def head_length(blocks: list[Outputs], counts: BlockCounts) -> int:
    """Outputs at the head of blocks that are compared: as many as those of the main phase have, or two blocks."""
    kept = sorted(map(len, blocks))
    return min(int(counts.sizes[0]) if len(counts.sizes) else kept[max(len(kept) - 2, 0)], FINGERPRINTED)


def _repeated_heads(side: str, blocks: list[Outputs], counts: BlockCounts, alpha: float) -> list[Finding]:
    """Two blocks that begin alike: a seed fixed inside the mechanism, or one stream shared between workers."""
    length = head_length(blocks, counts)
    kept = [fingerprint(block[:length]) for block in blocks if len(block) >= length]
    marks = [*map(int, counts.fingerprints[counts.sizes >= length]), *kept]
    repeats = len(marks) - len(set(marks))
    if repeats == 0:
        return []
    # Independent blocks agree by chance with probability (Σ pᵢ²)^length; a constant output always agrees. Of kept
    # blocks alone the law is known, given all that they hold. Limit, chance and law have a third of alpha each.
    limit = math.log(alpha / 3) - math.log(math.comb(len(marks), 2))
    is_found = length * math.log(agreement(blocks, alpha / 3)) <= limit
    if not is_found and len(set(kept)) < len(kept):
        first = next(block for block in blocks if len(block) >= length and kept.count(fingerprint(block[:length])) > 1)
        is_found = _log_chance(first[:length], blocks) <= limit
    if not is_found:
        return []
    return [
        Finding(
            HealthCheck.REPEATED_BLOCKS,
            f"{repeats + 1:,} of {len(marks):,} blocks of runs on {side} begin with the same outputs: a seed is fixed "
            "inside the mechanism, or workers share one random stream, so the runs are not independent.",
        )
    ]


def _log_chance(head: Outputs, blocks: list[Outputs]) -> float:
    """Logarithm of the probability that a block repeats this head of another one."""
    pooled: Counter[object] = Counter()
    for block in blocks:
        pooled.update(hashed_keys(block))
    inside = Counter(hashed_keys(head))
    outside = [pooled[key] - times for key, times in inside.items()]
    return log_chance_of_head(list(inside.values()), outside, pooled.total() - len(head))


def _repeated_stretches(side: str, blocks: list[Outputs], counts: BlockCounts, alpha: float) -> list[Finding]:
    """Two blocks that hold the same stretch of outputs, in different places: workers share one random stream."""
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
        log_chance = 2 * math.log(windows) - math.log(2) + np.logaddexp(agree, -64 * math.log(2))  # or hashes coincide
        if log_chance <= math.log(alpha / (2 * _LENGTHS)):
            found += int(np.isin(marks[here], repeated).any(axis=1).sum())
            n_marked += int(here.sum())
    if found == 0:
        return []
    return [
        Finding(
            HealthCheck.REPEATED_BLOCKS,
            f"{found:,} of {n_marked:,} blocks of runs on {side} hold a stretch of outputs that another block holds as "
            "well: workers share one random stream, such as the generator of a module that the mechanism imports, so "
            "the runs are not independent.",
        )
    ]
