"""Checks that protect an audit from runs that are not independent draws.

Each failed check says what was seen, why it weakens the audit, and how to silence exactly that check. Together they
raise a false alarm in fewer than one audit in a million.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtr, chdtrc, ndtr

from .errors import OptionError
from .inference.binomial import clopper_pearson
from .outputs import Outputs, as_numbers, outcome_key, outcome_list
from .sampling import FINGERPRINTED, BlockCounts, fingerprint

_FALSE_ALARM = 1e-8  # of each single check
_TALLIED = 20_000  # pilot runs looked at for the likeliest outcome
_NORMAL_VARIANCE = 400
_SERIAL_LEAST = 500  # runs in a block from which the normal law holds for correlations as far out as that


class HealthCheck(enum.Enum):
    """What is looked for; the values are the names by which a check is silenced."""

    REPEATED_BLOCKS = "repeated-blocks"
    UNSTEADY_HITS = "unsteady-hits"
    SERIAL_DEPENDENCE = "serial-dependence"


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
    pilot: tuple[list[Outputs], list[Outputs]], main: tuple[BlockCounts, BlockCounts], ignore: frozenset[HealthCheck]
) -> tuple[Finding, ...]:
    """Every health check that fails on the pilot outputs (blocks of x and of y) or on the blocks of the main phase."""
    found: list[Finding] = []
    for side, blocks, counts in zip(("x", "y"), pilot, main, strict=True):
        repeated = [] if HealthCheck.REPEATED_BLOCKS in ignore else _repeated_blocks(side, blocks, counts)
        found += repeated or _unsteady_hits(side, counts)  # which repeated blocks bring about
        found += _serial_dependence(side, blocks)
    return tuple(finding for finding in found if finding.check not in ignore)


def examine_order(x: Outputs, y: Outputs, ignore: frozenset[HealthCheck]) -> tuple[Finding, ...]:
    """Health checks that outputs made elsewhere allow, in the order in which they came, unless that was sorted."""
    found = [
        finding
        for side, outputs in (("x", x), ("y", y))
        if not _is_sorted(outputs)
        for finding in _serial_dependence(side, [outputs])
    ]
    return tuple(finding for finding in found if finding.check not in ignore)


def _is_sorted(outputs: Outputs) -> bool:
    if outputs.ndim != 1 or outputs.dtype == object:
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
    if chance > _FALSE_ALARM:
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
    values = [outcome_key(value) for block in blocks for value in outcome_list(block[:_TALLIED])][:_TALLIED]
    most = Counter(values).most_common(1)[0][1]
    return min(1.0, clopper_pearson(most, len(values), alpha=_FALSE_ALARM)[1][0])


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
    if chance > _FALSE_ALARM:
        return []
    return [
        Finding(
            HealthCheck.UNSTEADY_HITS,
            f"the hits on {side} vary {spread / degrees:.2f} times as much between the {len(hits):,} blocks as they "
            f"would in independent runs (chance {chance:.1g}): the mechanism keeps state, or blocks share randomness.",
        )
    ]


def _serial_dependence(side: str, blocks: list[Outputs]) -> list[Finding]:
    """Neighbouring runs of a block whose outputs are correlated."""
    numbers = [_centred(block) for block in blocks if len(block) >= _SERIAL_LEAST]
    # Centring by the block's own mean leaves successive products of independent runs a mean of −1/(n − 1).
    products = [(np.mean(v[:-1] * v[1:]) + 1 / (len(v) - 1)) * math.sqrt(len(v) - 1) for v in numbers if len(v)]
    if not products:
        return []
    z = float(np.sum(products) / math.sqrt(len(products)))
    chance = 2 * float(ndtr(-abs(z)))
    if chance > _FALSE_ALARM:
        return []
    return [
        Finding(
            HealthCheck.SERIAL_DEPENDENCE,
            f"successive runs on {side} are correlated ({z:+.1f} standard errors): the mechanism keeps state or reuses "
            "noise from run to run, so the runs are not independent.",
        )
    ]


def _centred(outputs: Outputs) -> npt.NDArray[np.float64]:
    """±1 for outputs above and below the median, standardised; empty where either half holds under 30%."""
    if outputs.ndim == 2 and outputs.shape[1] == 0:
        return np.empty(0)
    values = as_numbers(outputs[:, 0] if outputs.ndim == 2 else outputs).astype(np.float64)
    above = (values > np.nanmedian(values) if not np.isnan(values).all() else np.zeros(len(values))).astype(np.float64)
    share = float(above.mean())
    if not 0.3 <= share <= 0.7:
        return np.empty(0)
    return (above - share) / math.sqrt(share * (1 - share))
