"""Checks that protect an audit from runs that are not independent draws.

Each failed check says what was seen, why it weakens the audit, and how to silence exactly that check. Together, and
with those of events (`event_health`), they raise a false alarm in fewer than one audit in a million: twenty-five
of at most 1e-8 each. Those of datasets (`input_health`) leave nothing to chance.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ..events.outputs import Outputs, outcome_key
from ..inference.repeated_order import log_chance_of_order
from ..sampling.block_counts import BlockCounts
from ..sampling.output_hashes import order_mark
from .block_checks import (
    agreement,
    head_length,
    noise_used_again,
    repeated_blocks,
    spreads,
    unsteady_blocks,
    unsteady_on_both,
)
from .dependence_statistics import change, coupling, serial_correlation, two_sided
from .findings import FALSE_ALARM, Finding, HealthCheck


def examine(
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
    *,
    alpha: float = FALSE_ALARM,
) -> tuple[Finding, ...]:
    """Every health check that fails on the pilot outputs (blocks of x and of y) or on the blocks of the main phase.

    Each gives a false alarm with probability `alpha` at most.
    """
    found: list[Finding] = []
    repeats = [repeated_blocks(*side, alpha) for side in zip(("x", "y"), pilot, main, strict=True)]
    in_order: list[list[Finding]] = []
    seen = [spreads(*side) for side in zip(pilot, main, strict=True)]
    for side, blocks, spread, repeated in zip(("x", "y"), pilot, seen, repeats, strict=True):
        is_same = [] if HealthCheck.REPEATED_BLOCKS in ignore else repeated
        changed, serial = _change(side, blocks, alpha), _serial_dependence(side, blocks, alpha)
        used_again = serial or noise_used_again(side, blocks, alpha)
        is_said = bool(used_again) and HealthCheck.SERIAL_DEPENDENCE not in ignore
        unsteady = changed or ([] if is_said else unsteady_blocks(side, spread, alpha))
        found += is_same or unsteady  # which repeated blocks bring about
        found += used_again
        in_order.append(changed + serial)
    if not any(finding.check not in ignore for finding in found):
        found += unsteady_on_both(seen[0], seen[1], alpha)
    if HealthCheck.REPEATED_BLOCKS in ignore or not any(repeats):  # and this as well
        found += _same_order(pilot, main, alpha) or _shared_randomness(*pilot, in_order, alpha)
    return tuple(finding for finding in found if finding.check not in ignore)


def examine_order(x: Outputs, y: Outputs, ignore: frozenset[HealthCheck]) -> tuple[Finding, ...]:
    """Health checks that outputs made elsewhere allow, in the order in which they came, unless that was sorted."""
    are_sorted = [_is_sorted(outputs) for outputs in (x, y)]
    serial = [
        [] if is_sorted else _serial_dependence(side, [outputs], FALSE_ALARM)
        for side, outputs, is_sorted in zip(("x", "y"), (x, y), are_sorted, strict=True)
    ]
    coupled = [] if all(are_sorted) else _shared_randomness([x], [y], serial, FALSE_ALARM)
    found = [*serial[0], *serial[1], *coupled]
    return tuple(finding for finding in found if finding.check not in ignore)


def _is_sorted(outputs: Outputs) -> bool:
    """Whether numbers are in order, or equal outcomes of another kind lie together."""
    if outputs.dtype == object:
        keys = [outcome_key(value) for value in outputs.tolist()]
        return 1 + sum(bool(a != b) for a, b in pairwise(keys)) == len(set(keys))
    values = outputs if outputs.ndim == 1 else outputs[:, 0] if outputs.shape[1] else np.zeros(0)
    values = values[values == values]  # NaN has no place in an order
    return bool(np.all(values[1:] >= values[:-1]) or np.all(values[1:] <= values[:-1]))


def _change(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Outputs that are others at the beginning of the pilot, or at its end."""
    found = change(blocks, alpha=alpha)
    if found is None:
        return []
    return [
        Finding(
            HealthCheck.UNSTEADY_HITS,
            f"the outputs on {side} change from run to run: of the {'first' if found.is_first else 'last'} "
            f"{found.runs:,} looked at {found.upper:,} lie in the upper half, where independent runs give "
            f"{found.expected:,.0f} ± {found.error:,.0f}. The mechanism keeps state, such as a budget or a counter.",
        )
    ]


def _serial_dependence(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Neighbouring runs of a block whose outputs are correlated."""
    z = serial_correlation(blocks)
    if z is None or two_sided(z) > alpha / 2:  # the normal law is short of the true one by less than a factor of 2
        return []
    return [
        Finding(
            HealthCheck.SERIAL_DEPENDENCE,
            f"successive runs on {side} are correlated ({z:+.1f} standard errors): the mechanism keeps state or reuses "
            "noise from run to run, so the runs are not independent.",
        )
    ]


def _shared_randomness(
    blocks_x: list[Outputs], blocks_y: list[Outputs], in_order: list[list[Finding]], alpha: float
) -> list[Finding]:
    """Runs on x and on y that are correlated; where both sides are in an order of their own nothing follows from it."""
    found = None if all(in_order) else coupling(blocks_x, blocks_y, alpha=alpha)
    if found is None:
        return []
    partner = "i-th" if found.lag == 0 else f"(i{found.lag:+,})-th"
    return [
        Finding(
            HealthCheck.SHARED_RANDOMNESS,
            f"runs on x and y are coupled, the i-th on x with the {partner} on y: in {found.both:,} of {found.pairs:,} "
            f"such pairs both outputs lie in the upper half, where independent runs give {found.expected:,.0f} ± "
            f"{found.error:,.0f}. The same noise serves both datasets, and the test needs independent runs.",
        )
    ]


def _same_order(
    pilot: tuple[list[Outputs], list[Outputs]], main: tuple[BlockCounts, BlockCounts], alpha: float
) -> list[Finding]:
    """Blocks of x whose first outputs are in the very order of those of a block of y: the same noise, moved."""
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
    places.pop(order_mark(np.zeros(length)), None)  # outputs that never vary, or increase
    shared = [group for group in places.values() if len({side for side, *_ in group}) == 2]
    if not shared:
        return []
    most = max(agreement([_ordered_part(block) for block in blocks], alpha / 4) for blocks in pilot)
    if math.log(math.comb(n_blocks, 2)) + log_chance_of_order(length, most) > math.log(alpha / 2):
        return []
    return [
        Finding(
            HealthCheck.SHARED_RANDOMNESS,
            f"{sum(map(len, shared)):,} of {n_blocks:,} blocks of runs on x and y begin with outputs in the same order "
            "as a block on the other dataset: a random stream is shared between workers, or seeded alike for x and y, "
            "and the test needs independent runs.",
        )
    ]


def _ordered_part(block: Outputs) -> Outputs:
    """What the order of a block is taken of."""
    return block[:, 0] if block.ndim == 2 and block.shape[1] else block
