"""DP-Sniper's suite: bounds at the pairs and events that the search finds, and published and best possible bounds."""

from __future__ import annotations

import math

from ....audit.search.find_worst_pair import find_worst_pair
from ...published.dp_sniper import entries
from ...published.entry import Entry
from ..core.bench_json import Figures, Target, at_least, at_most, columns
from ..core.effort import Bench, Effort, one_row_each, seeds_of
from ..core.timing import timed
from .exact_events import Probabilities, best_event, event_probabilities

ALPHA = 0.1
_EXECUTIONS, _QUICK_EXECUTIONS = 40_000_000, 100_000
_SEARCH_SHARE = 8  # one execution in eight is spent on the search for the pair
_EXACT_RUNS, _QUICK_EXACT_RUNS = 2_000_000, 20_000
_GAP, _SHARE = 1.15, 0.8
_ENTRIES = {entry.name: entry for entry in entries()}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    entry, seed = _ENTRIES[name], seeds_of(11, place, 0, 1)[0]
    executions = effort.either(_QUICK_EXECUTIONS, _EXECUTIONS)
    exact_runs = effort.either(_QUICK_EXACT_RUNS, _EXACT_RUNS)
    search = executions // _SEARCH_SHARE
    found, seconds = timed(
        find_worst_pair,
        entry.mechanism,
        entry.domain,
        claim=entry.claim,
        adjacency=entry.adjacency,
        runs=(executions - search) // 2,
        search_runs=search,
        alpha=ALPHA,
        seed=seed,
        jobs=effort.jobs,
        bits=False,
    )
    audit = found.audit
    chosen = event_probabilities(entry.mechanism, found.x, found.y, audit.event, runs=exact_runs, seed=seed + 1)
    expected = chosen.expected_bound(audit.runs - audit.pilot_runs, ALPHA)
    every = executions // 2
    best = best_event(entry.mechanism, entry.x, entry.y, audit_runs=every, alpha=ALPHA, runs=exact_runs, seed=seed + 2)
    oracle = best.expected_bound(every, ALPHA)
    return {
        "mechanism": entry.name,
        "exact": entry.exact,
        "pair": f"{_short(found.x)} / {_short(found.y)}",
        "event": str(audit.event),
        "p": chosen.p,
        "q": chosen.q,
        "expected": expected,
        "drawn": audit.bound,
        "published": entry.published,
        "oracle": oracle,
        "executions": found.runs + 2 * audit.runs,
        "seconds": seconds,
    }, [] if effort.is_quick else [_target(entry, chosen, expected, best, oracle)]


def _target(entry: Entry, chosen: Probabilities, expected: float, best: Probabilities, oracle: float) -> Target:
    """Return the target on the published bound where it is met, otherwise the target on the gap."""
    if math.isinf(entry.exact) and best.q == 0.0:
        share = chosen.p / best.p if chosen.q == 0.0 else 0.0
        return at_least("p over that of the best event with q = 0", share, _SHARE)
    if entry.published is not None and expected >= entry.published:
        return at_least("expected lower bound", expected, entry.published)
    return at_most("gap over the oracle's gap", (entry.exact - expected) / (entry.exact - oracle), _GAP)


def _short(dataset: object) -> str:
    """Return the numbers of a dataset, separated by spaces."""
    values = dataset if isinstance(dataset, (list, tuple)) else getattr(dataset, "tolist", lambda: dataset)()
    shown = values if isinstance(values, (list, tuple)) else [values]
    return " ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in shown)


SNIPER = Bench(
    name="dp-sniper",
    title="DP-Sniper's suite",
    method=(
        "Lower bounds on ε at confidence .9, with at most 4·10⁷ executions for each mechanism and no test of low bits. "
        "The search for the pair of datasets takes an eighth of the executions; the rest choose and count the event. p "
        "and q are the exact probabilities of the chosen event, by change of measure with the known laws. The expected "
        "bound is the bound at these probabilities, so that no row depends on one draw. Published bound: the best "
        "valid bound of any tool. Oracle bound: the expected bound of the best event on the worst known pair, with "
        "every execution counted."
    ),
    columns=columns(
        "mechanism | exact ε = exact :.4g | pair | event | p :.4g | q :.4g | expected bound = expected :.4f | "
        "drawn bound = drawn :.4f | published bound = published :.4f | oracle bound = oracle :.4f | executions :,d | "
        "seconds :.0f"
    ),
    names=tuple(_ENTRIES),
    tasks=one_row_each(_ENTRIES, _cells, quick=("LaplaceMechanism", "ReportNoisyMax3")),
)
