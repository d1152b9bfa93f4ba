"""Exact audits: the catalogue of bugs beside what sampling needs for the same verdicts, and mechanisms of libraries."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from ...audit.claims.claim import ApproxDP, Claim, PureDP, claim_at
from ...audit.errors import MechanismError
from ...audit.events.outputs import Raised
from ...audit.options import Budget
from ...audit.procedures.check import check
from ...audit.results.verdict import ExactVerdict
from ..catalogue.entries import entries
from ..libraries.subjects import release_of
from .measure import Effort, Figures, Seeds, Table, Value, at_most, check_values, timed

_SECONDS: Final = 60.0  # of the exploration on each dataset
_ALPHA, _RUNS = 1e-6, 1_000_000
_MOST: Final = 50  # times the runs with which an audit of fixed size finds the bug
_FAULTS = {fault.name: fault for fault in entries()}


def _exact(mechanism: Any, x: Any, y: Any, claim: Claim, seconds: float, **neighbours: Any) -> dict[str, Value]:
    """Return the figures of an exact audit, or the reason why there is none; `neighbours` are options of the audit."""
    held, budget = claim_at(claim, neighbours.get("distance", 1.0)), Budget(seconds=seconds)
    cells: dict[str, Value] = {"pair": f"{x} / {y}"[:80], "claim": str(held)}
    try:
        found, taken = timed(lambda: check(mechanism, x, y, claim=claim, exact=budget, **neighbours))
    except MechanismError as refusal:
        return cells | {"verdict": "not followed", "reason": str(refusal).partition("; ")[0]}
    sides = (found.on_x, found.on_y)
    return cells | {
        "verdict": found.verdict.value,
        "by": "rounding" if found.is_rounding else "",
        "lower": found.excess.lower,
        "upper": found.excess.upper,
        "executions": sum(side.n_executions for side in sides),
        "states": sum(side.n_states for side in sides),
        "remainder": max(side.remainder + side.error for side in sides),
        "raises": max(
            sum(float(p) for output, p in side.probabilities.items() if isinstance(output, Raised)) for side in sides
        ),
        "seconds": round(taken, 3),
    }


def _catalogue_cells(effort: Effort, seeds: Seeds, name: str, is_faulty: bool) -> Figures:
    """Figures of a bug and the runs that refute it by sampling, or of its correct variant and what would be found."""
    fault = _FAULTS[name]
    mechanism = fault.mechanism if is_faulty else fault.correct
    neighbours: dict[str, Any] = {"adjacency": fault.adjacency, "distance": fault.distance}
    seconds = effort.either(5.0, _SECONDS)
    cells = {"mechanism": str(mechanism)} | _exact(mechanism, fault.x, fault.y, fault.claim, seconds, **neighbours)
    if cells["verdict"] == "not followed":
        return cells, []
    sampled, taken = timed(
        check_values, mechanism, fault.x, fault.y, claim=fault.claim, **neighbours,
        runs=_MOST * fault.runs if is_faulty else effort.either(10_000, _RUNS),
        sequential=is_faulty, alpha=_ALPHA, seed=seeds(1)[0],
    )  # fmt: skip
    cells |= {"sampled": sampled.verdict.value, "sampling_seconds": round(taken, 3)}
    cells |= {"refuted_after": sampled.runs} if is_faulty else {"detectable": sampled.min_detectable_excess}
    wanted = ExactVerdict.REFUTED if is_faulty else ExactVerdict.VERIFIED
    return cells, [at_most("other verdicts", cells["verdict"] != wanted.value, 0)]


_LIBRARIES: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["library"]
_LIBRARY_ROWS = {
    f"{part['name']}: {code}, {x} / {y}, {setting}": (part["name"], part["setup"], code, x, y, setting)
    for part in _LIBRARIES for code, x, y in part["mechanisms"] for setting in part["settings"]
}  # fmt: skip


def _library_cells(
    effort: Effort, seeds: Seeds, library: str, setup: str, code: str, x: str, y: str, setting: list[float]
) -> Figures:
    """Figures of a mechanism of a library as installed."""
    epsilon, delta = (*setting, 0.0)[:2]
    names: dict[str, Any] = {"e": epsilon, "d": delta}
    exec(setup, names)
    mechanism, first, second = (eval(each, names) for each in (code, x, y))
    claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    cells: dict[str, Value] = {"mechanism": code, "version": release_of(library), "setting": str(setting)}
    cells |= _exact(mechanism, first, second, claim, effort.either(5.0, _SECONDS))
    return cells | ({"refuted": cells["lower"]} if cells["verdict"] == "refuted" else {}), []


TABLES = (
    Table(
        "exact-catalogue", 61, {f"{name}, {'faulty' if is_faulty else 'correct'}": (name, is_faulty)
            for name in _FAULTS for is_faulty in (True, False)},
        _catalogue_cells,
        quick=("truth-among-the-lies, faulty", "truth-among-the-lies, correct", "edge-noise-for-nodes, faulty"),
    ),
    Table(
        "exact-libraries", 62, _LIBRARY_ROWS, _library_cells, quick=[next(iter(_LIBRARY_ROWS))],
        library=lambda library, *_: library,
    ),
)  # fmt: skip
