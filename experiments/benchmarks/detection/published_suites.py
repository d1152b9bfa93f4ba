"""Verdicts on StatDP's and DP-Auditorium's suites and on a ladder of excess losses, on pairs found by the search."""

from __future__ import annotations

import math
from typing import Any

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ....audit.search.find_worst_pair import find_worst_pair
from ...published import auditorium, ladder, statdp
from ...published.entry import Entry
from ..core.bench_json import Figures, at_least, columns
from ..core.effort import Bench, Effort, one_row_each, seeds_of
from ..core.timing import timed
from .exact_events import best_event

ALPHA = 1e-5
_RUNS, _QUICK_RUNS = 1_000_000, 50_000
_FINE, _FINE_RUNS = 0.02, 30_000_000  # runs for excesses below 0.02
_EXACT_RUNS = 300_000  # outputs on each dataset from which the best event is computed
_SHARE = 0.9
_SUITES = {"StatDP": statdp.entries, "DP-Auditorium": auditorium.entries, "ladder": ladder.entries}
_ENTRIES = {entry.name: (suite, entry) for suite, make in _SUITES.items() for entry in make()}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    suite, entry = _ENTRIES[name]
    excess = entry.exact - entry.claim.strength
    options: dict[str, Any] = {
        "claim": entry.claim,
        "adjacency": entry.adjacency,
        "runs": effort.either(_QUICK_RUNS, _FINE_RUNS if 0.0 < excess < _FINE else _RUNS),
        "alpha": ALPHA,
        "seed": seeds_of(12, place, 0, 1)[0],
        "jobs": effort.jobs,
        "bits": False,
    }
    found, seconds = timed(find_worst_pair, entry.mechanism, entry.domain, **options)
    is_right = found.verdict is (Verdict.REFUTED if entry.is_broken else Verdict.NOT_REFUTED)
    # A wrong verdict misses the target if the excess exceeds 1.5 times what the audit detects on the pair found, or if
    # an audit of the worst known pair refutes the claim.
    is_promised = (
        is_right
        or not entry.is_broken
        or math.isinf(entry.exact)
        or excess > 1.5 * found.audit.resolution
        or check(entry.mechanism, entry.x, entry.y, **options).is_refuted
    )
    known = None if suite == "ladder" else _best_on_the_known_pair(entry, options["runs"])
    targets = [at_least("correct verdict", is_right, 1)] if is_promised else []
    if known is not None and not effort.is_quick:
        targets.append(at_least("share of the best event", found.audit.bound / known, _SHARE))
    return {
        "suite": suite,
        "mechanism": entry.name,
        "claim": str(entry.claim),
        "truth": "broken" if entry.is_broken else "holds",
        "exact": entry.exact,
        "verdict": found.verdict.value,
        "bound": found.audit.bound,
        "best": known,
        "event": str(found.audit.event),
        "executions": found.runs + 2 * found.audit.runs,
        "seconds": seconds,
    }, targets


def _best_on_the_known_pair(entry: Entry, runs: int) -> float | None:
    """Return the expected bound of the best event on the worst known pair; None for infinite losses.

    Of an infinite loss the bound depends on how rare the event is that never occurs, and on nothing else.
    """
    if math.isinf(entry.exact) or not isinstance(entry.claim, PureDP):
        return None
    best = best_event(entry.mechanism, entry.x, entry.y, audit_runs=runs, alpha=ALPHA, runs=_EXACT_RUNS, seed=1)
    return best.expected_bound(runs, ALPHA)


SUITES = Bench(
    name="suites",
    title="StatDP's and DP-Auditorium's suites and a ladder of excess losses",
    method=(
        "The search finds the pair and the audit chooses the event, at alpha 1e-5 with 10⁶ runs on each dataset, or "
        "3·10⁷ where the excess is below .02. Exact loss: the loss on the worst known pair. The verdict must be "
        "correct unless the excess is below 1.5 times the detectable excess of the audit and an audit of the worst "
        "known pair with as many runs misses it too. Best event: the bound that one event in one direction, known from "
        "the exact laws, gives on the worst known pair (not of the ladder); the bound should be .9 of it."
    ),
    columns=columns(
        "suite | mechanism | claim | truth of the claim = truth | exact loss = exact :.4g | verdict | "
        "lower bound = bound :.4g | best event = best :.4g | event | executions :,d | seconds :.1f"
    ),
    names=tuple(_ENTRIES),
    tasks=one_row_each(_ENTRIES, _cells, quick=("noisy_max_v1a",)),
)
