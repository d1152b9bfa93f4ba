"""Health checks for runs that are not independent draws.

The message of a failed check states the observation, why it weakens the audit, and how to silence this check. With the
checks of events, thirty-nine checks raise a false alarm with probability at most 1e-8 each: in fewer than one audit in
a million. Runs on one dataset have three more checks, but none of a main phase or an event. Outputs drawn elsewhere
have eight such checks. The checks of datasets raise no false alarms.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from ..events.outputs import Outputs, outcome_key
from ..inference.repeated_order import log_chance_of_order
from ..sampling.block_counts import BlockCounts, no_blocks
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
from .copied_outputs import copied_outputs
from .dataset_checks import Snapshot
from .dependence_statistics import change, coupling, serial_correlation, two_sided
from .findings import FALSE_ALARM, Finding, HealthCheck


def examine(
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
    *,
    alpha: float = FALSE_ALARM,
) -> tuple[Finding, ...]:
    """Return the failed health checks of the pilot blocks and the main-phase blocks on x and y.

    Each check raises a false alarm with probability at most `alpha`.
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
        found += is_same or unsteady  # repeated blocks also make hits unsteady
        found += used_again
        in_order.append(changed + serial)
    if not any(finding.check not in ignore for finding in found):
        found += unsteady_on_both(seen[0], seen[1], alpha)
    if HealthCheck.REPEATED_BLOCKS in ignore or not any(repeats):  # repeated blocks also look like shared randomness
        found += _same_order(pilot, main, alpha) or _shared_randomness(*pilot, in_order, alpha)
    return tuple(finding for finding in found if finding.check not in ignore)


def examine_draws(
    snapshot: Snapshot,
    changed: Collection[str],
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
) -> tuple[Finding, ...]:
    """Return the failed health checks of drawn runs and their datasets, which may be one dataset.

    `changed` are the datasets that changed while runs were made; a changed dataset explains all other findings. Each
    check of the runs raises a false alarm with probability at most `FALSE_ALARM`.
    """
    of_datasets = snapshot.examine(ignore | {HealthCheck.EQUAL_DATASETS}, changed)
    return of_datasets or examine(pilot, main, ignore)


def examine_in_order(blocks: list[Outputs], ignore: frozenset[HealthCheck]) -> tuple[Finding, ...]:
    """Return the finding that outputs on one dataset change over time, from all its blocks in the order drawn.

    The three checks raise a false alarm with probability at most `FALSE_ALARM` each.
    """
    seen = spreads(blocks, no_blocks())
    found = _change("x and y", blocks, FALSE_ALARM) or unsteady_blocks("x and y", seen, FALSE_ALARM)
    return tuple(finding for finding in found if finding.check not in ignore)


def examine_order(x: Outputs, y: Outputs, ignore: frozenset[HealthCheck]) -> tuple[Finding, ...]:
    """Return the failed health checks of outputs made elsewhere: of their order, unless they are sorted, and of copies.

    Each of the eight checks raises a false alarm with probability at most `FALSE_ALARM`.
    """
    are_sorted = [_is_sorted(outputs) for outputs in (x, y)]
    serial = [
        [] if is_sorted else _serial_dependence(side, [outputs], FALSE_ALARM)
        for side, outputs, is_sorted in zip(("x", "y"), (x, y), are_sorted, strict=True)
    ]
    coupled = [] if all(are_sorted) else _shared_randomness([x], [y], serial, FALSE_ALARM)
    in_order = not are_sorted[0], not are_sorted[1]
    copied, shared = copied_outputs(x, y, in_order=in_order, alpha=FALSE_ALARM)
    found = [*copied, *serial[0], *serial[1], *(coupled or shared)]
    return tuple(finding for finding in found if finding.check not in ignore)


def _is_sorted(outputs: Outputs) -> bool:
    """Whether numbers are in order, or other equal outcomes are adjacent."""
    if outputs.dtype == object:
        keys = [outcome_key(value) for value in outputs.tolist()]
        return 1 + sum(bool(a != b) for a, b in pairwise(keys)) == len(set(keys))
    values = outputs if outputs.ndim == 1 else outputs[:, 0] if outputs.shape[1] else np.zeros(0)
    values = values[values == values]  # NaN has no place in an order
    return bool(np.all(values[1:] >= values[:-1]) or np.all(values[1:] <= values[:-1]))


def _change(side: str, blocks: list[Outputs], alpha: float) -> list[Finding]:
    """Find outputs that differ at the beginning or the end of the pilot."""
    found = change(blocks, alpha=alpha)
    if found is None:
        return []
    message = (
        f"the outputs on {side} change from run to run: of the {'first' if found.is_first else 'last'} "
        f"{found.runs:,} runs checked, {found.upper:,} lie in the upper half, where independent runs give "
        f"{found.expected:,.0f} ± {found.error:,.0f}. The mechanism keeps state, such as a budget or a counter."
    )
    return [Finding(HealthCheck.UNSTEADY_HITS, message)]


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


def _shared_randomness(
    blocks_x: list[Outputs], blocks_y: list[Outputs], in_order: list[list[Finding]], alpha: float
) -> list[Finding]:
    """Find coupled runs on x and y; if both sides show an order of their own, a coupling proves nothing."""
    found = None if all(in_order) else coupling(blocks_x, blocks_y, alpha=alpha)
    if found is None:
        return []
    partner = "i-th" if found.lag == 0 else f"(i{found.lag:+,})-th"
    message = (
        f"runs on x and y are coupled, the i-th on x with the {partner} on y: in {found.both:,} of {found.pairs:,} "
        f"such pairs both outputs lie in the upper half, where independent runs give {found.expected:,.0f} ± "
        f"{found.error:,.0f}. Both datasets share noise, and the test needs independent runs."
    )
    return [Finding(HealthCheck.SHARED_RANDOMNESS, message)]


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
    most = max(agreement([_ordered_part(block) for block in blocks], alpha / 4) for blocks in pilot)
    if math.log(math.comb(n_blocks, 2)) + log_chance_of_order(length, most) > math.log(alpha / 2):
        return []
    message = (
        f"{sum(map(len, shared)):,} of {n_blocks:,} blocks of runs on x and y begin with outputs in the same order "
        "as a block on the other dataset: workers share a random stream, or x and y have the same seed, and the "
        "test needs independent runs."
    )
    return [Finding(HealthCheck.SHARED_RANDOMNESS, message)]


def _ordered_part(block: Outputs) -> Outputs:
    """Return the part of a block whose order is compared."""
    return block[:, 0] if block.ndim == 2 and block.shape[1] else block
