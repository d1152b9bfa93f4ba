"""Generators of synthetic tables: twins caught on their pair and by a search over tables, and the right generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....audit.datasets.table_features import CategoricalColumn, NumericColumn
from ....audit.datasets.tables import Tables
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....audit.search.find_worst_pair import find_worst_pair
from ...catalogue.fault import Fault
from ...catalogue.synthetic_faults import synthetic_faults
from ..core.bench_json import Figures, at_least, at_most, columns
from ..core.effort import Bench, Effort, one_row_each, seeds_of, spread

ALPHA = 1e-6
_AUDITS, _QUICK_AUDITS = 20, 1
_RUNS, _SEARCH = 20_000, 20_000
_SHARE = 0.95
_QUICK = ("rows-of-the-data",)
_FAULTS = {fault.name: fault for fault in synthetic_faults()}
_BITS = CategoricalColumn((0, 1))
_NUMBERS = Tables({"column 0": NumericColumn(0.0, 50.0)}, form="tuples")


def domain_of(fault: Fault) -> Tables:
    """The tables of a search, with values outside the declared ones."""
    if fault.name == "range-of-a-column-learned":
        return _NUMBERS
    width = len(getattr(fault.mechanism, "categories", (2,)) if fault.name != "shares-of-present-rows" else (2,))
    return Tables({f"column {place}": _BITS for place in range(width)}, form="tuples")


def _cells(effort: Effort, place: int, name: str) -> Figures:
    fault, audits = _FAULTS[name], effort.either(_QUICK_AUDITS, _AUDITS)
    seeds = seeds_of(47, place, 0, audits + 1)
    runs = effort.either(2_000, max(fault.runs, _RUNS))

    def audited(which: str) -> list[AuditResult]:
        return list(spread(_audit, [(name, which, runs, seed) for seed in seeds[:audits]], effort.jobs))

    found, right = audited("mechanism"), audited("correct")
    searched = {which: _searched(effort, fault, which, seeds[audits]) for which in ("mechanism", "correct")}
    caught, alarms = (sum(result.is_refuted for result in side) for side in (found, right))
    alarms += searched["correct"].is_refuted
    return {
        "fault": name,
        "cause": fault.cause,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "caught": caught / audits,
        "bound": float(np.median([result.bound for result in found])),
        "event": found[0].event_in_words,
        "searched": searched["mechanism"].bound,
        "alarms": alarms,
    }, [
        at_least("detection rate", caught / audits, _SHARE),
        at_least("found by the search", searched["mechanism"].is_refuted, 1),
        at_most("false alarms on the right generator", alarms, 0),
    ]


def _audit(name: str, which: str, runs: int, seed: int) -> AuditResult:
    fault = _FAULTS[name]
    mechanism: Any = getattr(fault, which)
    return check(
        mechanism,
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        runs=runs,
        alpha=ALPHA,
        seed=seed,
        bits=False,
        jobs=1,
    )


def _searched(effort: Effort, fault: Fault, which: str, seed: int) -> AuditResult:
    return find_worst_pair(
        getattr(fault, which),
        domain_of(fault),
        claim=fault.claim,
        adjacency=fault.adjacency,
        runs=effort.either(2_000, max(fault.runs, _RUNS)),
        search_runs=effort.either(2_000, _SEARCH),
        alpha=ALPHA,
        seed=seed,
        bits=False,
        jobs=1,
    ).audit


SYNTHETIC = Bench(
    name="synthetic",
    title="Generators of synthetic tables",
    method=(
        f"Faulty generators and the right ones. Share of {_AUDITS} audits of the catalogue's pair at alpha {ALPHA:g}, "
        f"with {_RUNS:,} runs on each dataset or as many as the entry needs, that refute the claim; 95% should. "
        f"One search over tables with values outside the declared ones ({_SEARCH:,} executions), followed by an audit, "
        "should find each twin. No right generator should be refuted, on the pairs and by the search."
    ),
    columns=columns(
        "twin = fault | cause | claim | exact ε = exact :.4g | caught :.0% | median lower bound = bound :.4g | "
        "event of one audit = event | lower bound by a search = searched :.4g | "
        "false alarms on the right generator = alarms"
    ),
    names=tuple(_FAULTS),
    tasks=one_row_each(_FAULTS, _cells, quick=_QUICK),
)
