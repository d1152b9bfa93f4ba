"""Integer samplers with one wrong outcome: the share of audits that find it, by how far the outcome is off."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ....mechanisms.faulty import MisprintedTableGeometric
from ..core.bench_json import Figures, Value, at_least, at_most_by_chance, columns
from ..core.effort import Bench, Effort, in_batches, one_row_each, seeds_of

ALPHA = 0.05
_AUDITS, _QUICK_AUDITS, _BATCH = 100, 1, 5
_QUICK_RUNS = 20_000
_ERRORS = (0, 5, 10, 20)  # standard errors of the whole audit; 0 is the right sampler
_FOUND_FROM, _SHARE = 10, 0.95


@dataclass(frozen=True, slots=True)
class _Case:
    epsilon: float
    place: int
    runs: int
    is_sequential: bool

    @property
    def name(self) -> str:
        kind = "sequential" if self.is_sequential else "fixed"
        return f"{self.epsilon:g}, {self.place:+d}, {self.runs:,}, {kind}"

    def mechanism(self, errors: float) -> MisprintedTableGeometric:
        """The sampler whose wrong outcome is this number of standard errors of the log ratio above the claim."""
        ratio = math.exp(-self.epsilon)
        q = (1 - ratio) / (1 + ratio) * ratio ** (abs(self.place) + 1)
        log_factor = 0.0
        for _ in range(50):  # the standard error depends on the factor
            p = q * math.exp(self.epsilon + log_factor)
            log_factor = errors * math.sqrt((1 / p + 1 / q) / self.runs)
        return MisprintedTableGeometric(self.epsilon, math.exp(log_factor), self.place)


_CASES = {
    case.name: case
    for case in (
        _Case(epsilon, place, runs, is_sequential)
        for runs in (100_000, 1_000_000)
        for is_sequential in (False, True)
        for epsilon, place in ((0.1, 0), (0.1, 7), (0.35, -3), (1.0, 0), (1.0, 4))
    )
}
_QUICK = ("0.35, -3, 100,000, fixed", "1, +4, 100,000, sequential")


def _found(mechanism: Any, runs: int, is_sequential: bool, seeds: range) -> list[bool]:
    audit = partial(check, mechanism, 1, 0, claim=PureDP(mechanism.epsilon), runs=runs, alpha=ALPHA, jobs=1, bits=False)
    return [audit(seed=seed, sequential=is_sequential, resolution=1.0).is_refuted for seed in seeds]


def _cells(effort: Effort, place: int, name: str) -> Figures:
    case, audits = _CASES[name], effort.either(_QUICK_AUDITS, _AUDITS)
    if effort.is_quick:
        case = replace(case, runs=_QUICK_RUNS)
    cells: dict[str, Value] = {"name": case.name}
    targets = []
    for errors in _ERRORS:
        seeds = seeds_of(24, place, 10_000 * errors, audits)
        arguments = (case.mechanism(errors), case.runs, case.is_sequential)
        share = sum(in_batches(_found, arguments, seeds, _BATCH, effort.jobs)) / audits
        cells[f"at_{errors}"] = share
        if errors >= _FOUND_FROM:
            targets.append(at_least(f"share at {errors}", share, _SHARE))
    targets.append(at_most_by_chance("share of correct samplers", float(str(cells["at_0"])), audits, ALPHA))
    return cells, targets


OUTCOMES = Bench(
    name="outcomes",
    title="Integer samplers with one wrong outcome",
    method=(
        f"Geometric noise with the claim ε, whose table has one weight too large, at the noise stated: its log ratio "
        f"exceeds ε by 0 (the correct sampler), 5, 10 or 20 standard errors of all runs of the audit. Share of "
        f"{_AUDITS} audits at alpha {ALPHA:g} that refute the claim, by `check(...)` and `check(..., sequential=True)`."
    ),
    columns=columns(
        "ε, noise, runs, audit = name | correct = at_0 :.2f | 5 errors = at_5 :.2f | 10 errors = at_10 :.2f | "
        "20 errors = at_20 :.2f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _cells, _QUICK),
)
