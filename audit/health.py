"""Checks that protect an audit from runs that are not independent draws.

Each failed check says what was seen, why it weakens the audit, and how to silence exactly that check. Together, and
with those of events (`event_health`), they raise a false alarm in fewer than one audit in a million: fifteen of at most
1e-8 each. Those of datasets (`input_health`) leave nothing to chance.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice, pairwise

import numpy as np
from scipy.special import chdtr, chdtrc

from .dependence import change, coupling, serial_correlation, two_sided
from .errors import OptionError
from .inference.binomial import clopper_pearson
from .marks import FINGERPRINTED, fingerprint, order_mark
from .outputs import Outputs, outcome_key, outcome_list
from .sampling import BlockCounts

FALSE_ALARM = 1e-8
"""Of each single check, on one side or on both."""

ANY_FALSE_ALARM = 1e-6
"""Of all checks of an audit together, at most: fifteen, on a pilot of either of two lengths."""

_TALLIED = 20_000  # pilot runs looked at for the likeliest outcome
_NORMAL_VARIANCE = 400


class HealthCheck(enum.Enum):
    """What is looked for; the values are the names by which a check is silenced."""

    REPEATED_BLOCKS = "repeated-blocks"
    UNSTEADY_HITS = "unsteady-hits"
    SERIAL_DEPENDENCE = "serial-dependence"
    SHARED_RANDOMNESS = "shared-randomness"
    DATASET_MUTATED = "dataset-mutated"
    EQUAL_DATASETS = "equal-datasets"
    CONSTANT_OUTPUT = "constant-output"
    IDLE_EVENT = "idle-event"


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed health check: the audit is inconclusive."""

    check: HealthCheck
    message: str

    def __str__(self) -> str:
        return f"{self.message} Silence this check with ignore={self.check.value!r}."


def checks_to_ignore(names: str | Iterable[str]) -> frozenset[HealthCheck]:
    """The health checks with these names; an `OptionError` for a name that is none."""
    wanted = [names] if isinstance(names, str) else list(names)
    known = {check.value: check for check in HealthCheck}
    for name in wanted:
        if name not in known:
            raise OptionError(f"ignore={name!r} is no health check; use one of {', '.join(known)}.", name=name)
    return frozenset(known[name] for name in wanted)


def examine(
    pilot: tuple[list[Outputs], list[Outputs]],
    main: tuple[BlockCounts, BlockCounts],
    ignore: frozenset[HealthCheck],
    *,
    paired: bool = False,
) -> tuple[Finding, ...]:
    """Every health check that fails on the pilot outputs (blocks of x and of y) or on the blocks of the main phase.

    With `paired` the i-th runs on x and on y may depend on each other, as a test by betting on pairs allows.
    """
    found: list[Finding] = []
    repeats = [_repeated_blocks(*side) for side in zip(("x", "y"), pilot, main, strict=True)]
    in_order: list[list[Finding]] = []
    for side, blocks, counts, repeated in zip(("x", "y"), pilot, main, repeats, strict=True):
        seen = [] if HealthCheck.REPEATED_BLOCKS in ignore else repeated
        changed, serial = _change(side, blocks), _serial_dependence(side, blocks)
        found += seen or _unsteady_hits(side, counts) or changed  # which repeated blocks bring about
        found += serial
        in_order.append(changed + serial)
    if HealthCheck.REPEATED_BLOCKS in ignore or not any(repeats):  # and this as well
        found += _same_order(pilot, main, paired) or _shared_randomness(*pilot, in_order, paired)
    return tuple(finding for finding in found if finding.check not in ignore)


def examine_order(x: Outputs, y: Outputs, ignore: frozenset[HealthCheck]) -> tuple[Finding, ...]:
    """Health checks that outputs made elsewhere allow, in the order in which they came, unless that was sorted."""
    are_sorted = [_is_sorted(outputs) for outputs in (x, y)]
    serial = [
        [] if is_sorted else _serial_dependence(side, [outputs])
        for side, outputs, is_sorted in zip(("x", "y"), (x, y), are_sorted, strict=True)
    ]
    found = [*serial[0], *serial[1], *([] if all(are_sorted) else _shared_randomness([x], [y], serial, False))]
    return tuple(finding for finding in found if finding.check not in ignore)


def _is_sorted(outputs: Outputs) -> bool:
    """Whether numbers are in order, or equal outcomes of another kind lie together."""
    if outputs.dtype == object:
        keys = [outcome_key(value) for value in outputs.tolist()]
        return 1 + sum(bool(a != b) for a, b in pairwise(keys)) == len(set(keys))
    if outputs.ndim != 1:
        return False
    return bool(np.all(outputs[1:] >= outputs[:-1]) or np.all(outputs[1:] <= outputs[:-1]))


def _repeated_blocks(side: str, blocks: list[Outputs], counts: BlockCounts) -> list[Finding]:
    """Two blocks that begin alike: a seed fixed inside the mechanism, or one stream shared between workers."""
    if len(counts.sizes):
        length = min(int(counts.sizes[0]), len(blocks[0]), FINGERPRINTED)
        marks = [int(mark) for mark in counts.fingerprints[counts.sizes >= min(FINGERPRINTED, counts.sizes[0])]]
        marks += [fingerprint(block) for block in blocks if len(block) >= FINGERPRINTED]
    else:  # a short sequential audit: blocks as small as its batches
        length = min(min(map(len, blocks[:-1] or blocks)), FINGERPRINTED)
        marks = [fingerprint(block[:length]) for block in blocks if len(block) >= length]
    repeats = len(marks) - len(set(marks))
    if repeats == 0:
        return []
    # Two independent blocks agree by chance with probability (Σ pᵢ²)^length; a constant output always agrees.
    agreement = _agreement(blocks)
    chance = math.comb(len(marks), 2) * math.exp(length * math.log(agreement))
    if chance > FALSE_ALARM:
        return []
    return [
        Finding(
            HealthCheck.REPEATED_BLOCKS,
            f"{repeats + 1:,} of {len(marks):,} blocks of runs on {side} begin with the same outputs: a seed is fixed "
            "inside the mechanism, or workers share one random stream, so the runs are not independent.",
        )
    ]


def _agreement(blocks: list[Outputs]) -> float:
    """Upper confidence limit for the probability Σ pᵢ² that two runs agree: it is at most the largest pᵢ."""
    values = chain.from_iterable(outcome_list(block[:_TALLIED]) for block in blocks)
    counts = Counter(map(outcome_key, islice(values, _TALLIED)))
    return min(1.0, clopper_pearson(max(counts.values()), counts.total(), alpha=FALSE_ALARM)[1][0])


def _unsteady_hits(side: str, counts: BlockCounts) -> list[Finding]:
    """Hits spread over the blocks more, or less, than independent runs can."""
    if len(counts.sizes) == 0:
        return []
    full = counts.hits[counts.sizes == counts.sizes[0]].astype(np.float64)
    rate = float(full.mean()) / int(counts.sizes[0])
    alone = int(counts.sizes[0]) * rate * (1 - rate)
    if alone == 0.0:
        return []
    # Neighbouring blocks are put together until their hits are near enough to normal for the chi-square law far out.
    together = math.ceil(_NORMAL_VARIANCE / alone)
    hits = full[: len(full) // together * together].reshape(-1, together).sum(axis=1)
    if len(hits) < 8:
        return []
    variance = together * alone
    spread = float(((hits - hits.mean()) ** 2).sum() / variance)
    degrees = len(hits) - 1
    chance = min(float(chdtrc(degrees, spread)), float(chdtr(degrees, spread)))
    if chance > FALSE_ALARM:
        return []
    return [
        Finding(
            HealthCheck.UNSTEADY_HITS,
            f"the hits on {side} vary {spread / degrees:.2f} times as much between the {len(hits):,} blocks as they "
            f"would in independent runs (chance {chance:.1g}): the mechanism keeps state, or blocks share randomness.",
        )
    ]


def _change(side: str, blocks: list[Outputs]) -> list[Finding]:
    """Outputs that are others at the beginning of the pilot, or at its end."""
    found = change(blocks, alpha=FALSE_ALARM)
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


def _serial_dependence(side: str, blocks: list[Outputs]) -> list[Finding]:
    """Neighbouring runs of a block whose outputs are correlated."""
    z = serial_correlation(blocks)
    if z is None or two_sided(z) > FALSE_ALARM:
        return []
    return [
        Finding(
            HealthCheck.SERIAL_DEPENDENCE,
            f"successive runs on {side} are correlated ({z:+.1f} standard errors): the mechanism keeps state or reuses "
            "noise from run to run, so the runs are not independent.",
        )
    ]


def _shared_randomness(
    blocks_x: list[Outputs], blocks_y: list[Outputs], in_order: list[list[Finding]], paired: bool
) -> list[Finding]:
    """Runs on x and on y that are correlated; where both sides are in an order of their own nothing follows from it."""
    found = None if all(in_order) else coupling(blocks_x, blocks_y, paired=paired, alpha=FALSE_ALARM)
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
    pilot: tuple[list[Outputs], list[Outputs]], main: tuple[BlockCounts, BlockCounts], paired: bool
) -> list[Finding]:
    """Blocks of x whose first outputs are in the very order of those of a block of y: the same noise, moved."""
    places: dict[int, set[tuple[str, str, int]]] = {}
    n_blocks = 0
    for side, blocks, counts in zip(("x", "y"), pilot, main, strict=True):
        marks = [("pilot", i, order_mark(block)) for i, block in enumerate(blocks) if len(block) >= FINGERPRINTED]
        long = np.flatnonzero(counts.sizes[: len(counts.orders)] >= FINGERPRINTED).tolist()
        marks += [("main", i, int(counts.orders[i])) for i in long]
        n_blocks += len(marks)
        for phase, number, mark in marks:
            places.setdefault(mark, set()).add((side, phase, number))
    places.pop(order_mark(np.zeros(FINGERPRINTED)), None)  # outputs that never vary, or increase
    shared = [group for group in places.values() if len({side for side, *_ in group}) == 2]
    if paired:  # blocks drawn for the same pairs of runs
        shared = [group for group in shared if len({(phase, number) for _, phase, number in group}) > 1]
    if not shared:
        return []
    # Of two independent runs the first is no larger with probability ½(1 + Σ pᵢ²) at most, and so in each of 128 pairs:
    # no order of 256 runs is more probable than that.
    agreement = max(_agreement([_ordered_part(block) for block in blocks]) for blocks in pilot)
    chance = math.comb(n_blocks, 2) * math.exp(FINGERPRINTED // 2 * math.log((1.0 + agreement) / 2.0))
    if chance > FALSE_ALARM:
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
