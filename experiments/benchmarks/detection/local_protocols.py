"""Lower bounds for local differential privacy: frequency oracles, repeated reports, faulty twins, LDP-Auditor."""

from __future__ import annotations

import math
from typing import Any

from ....audit.datasets.adjacency import Local
from ....audit.datasets.domains import Values
from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ....mechanisms import (
    HadamardResponse,
    LocalHashing,
    MemoisedBits,
    MemoisedResponse,
    RandomisedResponse,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
)
from ...catalogue.fault import Fault
from ...catalogue.local_faults import oracle_faults, response_faults
from ...published import ldp_auditor
from ...published.entry import Entry, entry
from ..core.bench_json import Figures, at_least, at_most, columns
from ..core.effort import Bench, Effort, one_row_each, seeds_of
from ..core.timing import timed
from .exact_events import best_event

ALPHA = 1e-5
_RUNS, _QUICK_RUNS = 1_000_000, 20_000
_QUICK = ("HadamardResponse(epsilon=1, k=10)", "true-bit-set-twice", "OLH")
_SHARE = 0.9
_EXACT = 300_000  # outputs on each value from which the best event is computed
_ORACLES: tuple[Any, ...] = (
    RandomisedResponse(1.0, 10),
    UnaryEncoding(1.0, 10),
    UnaryEncoding(1.0, 10, is_optimised=True),
    ThresholdedHistogram(1.0, 10),
    LocalHashing(1.0, 10, g=2),
    LocalHashing(1.0, 10),
    SubsetSelection(1.0, 10),
    HadamardResponse(1.0, 10),
    *(MemoisedBits(2.0, 1.0, 4, reports) for reports in (1, 3, 10)),
    *(MemoisedBits(2.0, 1.0, 4, reports, is_optimised=True) for reports in (1, 3, 10)),
    *(MemoisedResponse(2.0, 1.0, 4, reports) for reports in (1, 3, 10)),
)
_ROWS: dict[str, tuple[str, Entry | Fault]] = {
    **{str(one): ("oracle", entry(str(one), one, (0, 1), Local(), Values(tuple(range(one.k))))) for one in _ORACLES},
    **{fault.name: ("faulty twin", fault) for fault in (*response_faults(), *oracle_faults())},
    **{one.name: (f"LDP-Auditor, k={ldp_auditor.N_VALUES}", one) for one in ldp_auditor.entries()},
}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    kind, subject = _ROWS[name]
    exact = math.nan if subject.exact is None else subject.exact
    result, seconds = timed(
        check,
        subject.mechanism,
        subject.x,
        subject.y,
        claim=subject.claim,
        adjacency=subject.adjacency,
        runs=effort.either(_QUICK_RUNS, _RUNS),
        alpha=ALPHA,
        seed=seeds_of(36, place, 0, 1)[0],
        jobs=effort.jobs,
    )
    is_broken = exact > subject.claim.strength * (1 + 1e-9)
    is_right = result.verdict is (Verdict.REFUTED if is_broken else Verdict.NOT_REFUTED)
    targets = [at_least("correct verdict", is_right, 1), at_most("lower bound", result.bound, exact)]
    best = None
    if math.isfinite(exact) and not effort.is_quick:
        event = best_event(subject.mechanism, subject.x, subject.y, audit_runs=_RUNS, alpha=ALPHA, runs=_EXACT, seed=1)
        best = event.expected_bound(_RUNS, ALPHA)
        targets.append(at_least("share of the best event", result.bound / best, _SHARE))
    attack = ldp_auditor.attack(subject.mechanism) if kind.startswith("LDP-Auditor") else None
    return {
        "protocol": name,
        "kind": kind,
        "claim": str(subject.claim),
        "exact": exact,
        "bound": result.bound,
        "best": best,
        "verdict": result.verdict.value,
        "event": result.event_in_words,
        "attack": None if attack is None else attack.loss,
        "published": None if attack is None else attack.bound(),
        "seconds": seconds,
    }, targets


LOCAL = Bench(
    name="local",
    title="Local differential privacy",
    method=(
        f"Audits of the worst pair at alpha {ALPHA:g} with 10⁶ runs on each value, one seed. Exact ε: from the laws. "
        "Best event: the bound that one event in one direction, known from the laws, gives with as many runs; the "
        "bound should be .9 of it. The twins are those of the catalogue. LDP-Auditor's protocols are at ε = 1: its "
        "attack guesses the value from the report, and shows at most the limit; its bound is at the expected counts of "
        "the attack with 10⁶ runs at its alpha, 0.01. Its published bounds were not found as "
        "numbers, so they are not quoted."
    ),
    columns=columns(
        "protocol | kind | claim | exact ε = exact :.4g | lower bound = bound :.4g | best event = best :.4g | "
        "verdict | event | limit of LDP-Auditor's attack = attack :.4g | bound of LDP-Auditor = published :.4g | "
        "seconds :.1f"
    ),
    names=tuple(_ROWS),
    tasks=one_row_each(_ROWS, _cells, quick=_QUICK),
)
