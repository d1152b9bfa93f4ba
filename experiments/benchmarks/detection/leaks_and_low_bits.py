"""Rare leaks and low bits: verdicts with a warning of low bits, and verdicts that include the low bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.datasets.adjacency import Within
from ....audit.datasets.domains import Answers
from ....audit.options import Bits
from ....audit.printing import rounded_down
from ....audit.results.audit_result import AuditResult, Verdict
from ....audit.search.find_worst_pair import find_worst_pair
from ....mechanisms import GeometricMechanism, LaplaceMechanism, RareLeakLaplace
from ....mechanisms.faulty import NaiveLaplace
from ..core.bench_json import Figures, at_least, columns
from ..core.effort import Bench, Effort, one_row_each, seeds_of
from ..core.timing import timed

ALPHA = 1e-5
RUNS, _QUICK_RUNS = 2_000_000, 300_000
_QUICK_SEARCH = 4_000
_SNAPPED_BOUND = 64.0
_QUICK = ("leak of .002", "naive Laplace", "naive Laplace, with bits", "geometric", "snapped Laplace, with bits")


@dataclass(frozen=True, slots=True)
class SnappedLaplace:
    """Mironov's snapping mechanism: clamping, signed logarithmic noise, rounding to a power of two, clamping.

    References
    ----------
    Mironov (2012), On significance of the least significant bits for differential privacy, Section 5.2.
    """

    scale: float = 1.0
    bound: float = _SNAPPED_BOUND

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        sign = np.where(rng.random(size) < 0.5, -1.0, 1.0)
        noisy = np.clip(answer, -self.bound, self.bound) + sign * self.scale * np.log(1.0 - rng.random(size))
        step = 2.0 ** np.ceil(np.log2(self.scale))  # smallest power of two that is at least the scale
        return np.clip(np.rint(noisy / step) * step, -self.bound, self.bound)


Expected = Literal["refuted", "warned", "clean"]


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    mechanism: Any
    bits: Bits
    expected: Expected
    claim: float = 1.0
    least: float = 0.0  # required lower bound


_NAIVE = _Case("naive Laplace", NaiveLaplace(1.0), "warn", "warned")
_CLEAN = (
    _Case("gridded Laplace", LaplaceMechanism(1.0), "warn", "clean"),
    _Case("geometric", GeometricMechanism(1.0), "warn", "clean"),
    _Case("snapped Laplace", SnappedLaplace(), "warn", "clean", claim=2.0),
)
_CASES = {
    case.name: case
    for case in (
        _Case("leak of .002", RareLeakLaplace(0.9, 0.002), "warn", "refuted"),
        _NAIVE,
        replace(_NAIVE, name="naive Laplace, with bits", bits=True, expected="refuted", least=5.0),
        *_CLEAN,
        *(replace(case, name=f"{case.name}, with bits", bits=True) for case in _CLEAN),
    )
}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    case = _CASES[name]
    found, seconds = timed(
        find_worst_pair,
        case.mechanism,
        Answers(None, 0, 4, integer=True),
        claim=PureDP(case.claim),
        adjacency=Within("linf"),
        runs=effort.either(_QUICK_RUNS, RUNS),
        search_runs=effort.either(_QUICK_SEARCH, None),
        alpha=ALPHA,
        seed=seeds_of(14, place, 0, 1)[0],
        jobs=effort.jobs,
        bits=case.bits,
    )
    audit, bits = found.audit, found.audit.low_bits
    targets = [at_least(f"verdict {case.expected!r}", _outcome(audit) == case.expected, 1)]
    if case.least:
        targets.append(at_least("lower bound", audit.bound, case.least))
    return {
        "mechanism": case.name,
        "claim": str(audit.claim),
        "pair": f"{found.x} / {found.y}",
        "verdict": audit.verdict.value,
        "bound": audit.bound,
        "event": str(audit.event),
        "warning": "–" if bits is None else f"{bits.event}: at least {rounded_down(bits.bound, 3):g}",
        "seconds": seconds,
    }, targets


def _outcome(audit: AuditResult) -> str:
    if audit.verdict is not Verdict.NOT_REFUTED:
        return audit.verdict.name.lower()
    return "clean" if audit.low_bits is None else "warned"


LEAKS = Bench(
    name="leaks",
    title="Rare leaks and low bits",
    method=(
        "The search finds a pair of whole numbers from 0 to 4 at distance 1; 2·10⁶ runs on each dataset, alpha 1e-5. "
        "The leak returns 1000 + x with probability .002 and otherwise Laplace noise for ε = .9. Snapped Laplace noise "
        "is audited against ε = 2, since its rounding uses part of the budget."
    ),
    columns=columns(
        "mechanism | claim | pair | verdict | lower bound on ε = bound :.4g | event | warning of low bits = warning | "
        "seconds :.1f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _cells, quick=_QUICK),
)
