"""Rare leaks and low bits: what the default audit says, and what it says when the bits belong to the verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.datasets.adjacency import Within
from ....audit.datasets.domains import Answers
from ....audit.options import Bits
from ....audit.printing import rounded_down
from ....audit.results.audit_result import AuditResult, Verdict
from ....audit.search.find_worst_pair import find_worst_pair
from ....mechanisms import GeometricMechanism, LaplaceMechanism, RareLeakLaplace
from ....mechanisms.faulty import NaiveLaplace
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once, seeds_of

ALPHA = 1e-5
RUNS, _QUICK_RUNS = 2_000_000, 600_000
_SNAPPED_BOUND = 64.0


@dataclass(frozen=True, slots=True)
class SnappedLaplace:
    """Mironov's snapping: clamped, noise of a sign and a logarithm, rounded to a power of two, clamped again.

    References
    ----------
    Mironov (2012), On significance of the least significant bits for differential privacy, Section 5.2.
    """

    scale: float = 1.0
    bound: float = _SNAPPED_BOUND

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        sign = np.where(rng.random(size) < 0.5, -1.0, 1.0)
        noisy = np.clip(answer, -self.bound, self.bound) + sign * self.scale * np.log(1.0 - rng.random(size))
        step = 2.0 ** np.ceil(np.log2(self.scale))  # the least power of two that is at least the scale
        return np.clip(np.rint(noisy / step) * step, -self.bound, self.bound)


Expected = Literal["refuted", "warned", "clean"]


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    mechanism: Any
    bits: Bits
    expected: Expected
    claim: float = 1.0
    least: float = 0.0  # bound that has to be reached


def _cases() -> list[_Case]:
    leak = _Case("leak of .002", RareLeakLaplace(0.9, 0.002), "warn", "refuted")
    naive = _Case("naive Laplace", NaiveLaplace(1.0), "warn", "warned")
    clean = [
        _Case("gridded Laplace", LaplaceMechanism(1.0), "warn", "clean"),
        _Case("geometric", GeometricMechanism(1.0), "warn", "clean"),
        _Case("snapped Laplace", SnappedLaplace(), "warn", "clean", claim=2.0),
    ]
    return [
        leak,
        naive,
        replace(naive, name="naive Laplace, with bits", bits=True, expected="refuted", least=5.0),
        *clean,
        *(replace(case, name=f"{case.name}, with bits", bits=True) for case in clean),
    ]


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, case in enumerate(_cases()):
        if effort.wants(case.name):
            yield once(case.name, _cells, case, seeds_of(14, place, 0, 1)[0], effort)


def _cells(case: _Case, seed: int, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    started = time.perf_counter()
    found = find_worst_pair(
        case.mechanism,
        Answers(None, 0, 4, integer=True),
        claim=PureDP(case.claim),
        adjacency=Within("linf"),
        runs=effort.either(_QUICK_RUNS, RUNS),
        alpha=ALPHA,
        seed=seed,
        jobs=effort.jobs,
        bits=case.bits,
    )
    audit = found.audit
    cells: dict[str, Value] = {
        "mechanism": case.name,
        "claim": str(audit.claim),
        "pair": f"{found.x} / {found.y}",
        "verdict": audit.verdict.value,
        "bound": audit.bound,
        "event": str(audit.event),
        "warning": "–"
        if audit.low_bits is None
        else f"{audit.low_bits.event}: at least {rounded_down(audit.low_bits.bound, 3):g}",
        "seconds": time.perf_counter() - started,
    }
    is_right = float(_outcome(audit) == case.expected)
    targets = [Target(what=case.expected, value=is_right, sense=">=", limit=1.0)]
    if case.least:
        targets.append(Target(what="bound", value=audit.bound, sense=">=", limit=case.least))
    return cells, targets


def _outcome(audit: AuditResult) -> str:
    if audit.verdict is not Verdict.NOT_REFUTED:
        return audit.verdict.name.lower()
    return "clean" if audit.low_bits is None else "warned"


LEAKS = Bench(
    name="leaks",
    title="Rare leaks and low bits",
    method=(
        "Pairs of whole numbers from 0 to 4 that differ by one, found by the search; 2·10⁶ runs on each dataset, alpha "
        "1e-5. The leak gives 1000 + x with probability .002, beside Laplace noise that keeps .9. The snapped Laplace "
        "is audited against a claim of 2, of which its rounding takes its share."
    ),
    columns=(
        Column("mechanism", "mechanism"),
        Column("claim", "claim"),
        Column("pair found", "pair"),
        Column("verdict", "verdict"),
        Column("bound", "bound", ".4g"),
        Column("event", "event"),
        Column("warning", "warning"),
        Column("seconds", "seconds", ".1f"),
    ),
    names=tuple(case.name for case in _cases()),
    tasks=_tasks,
)
