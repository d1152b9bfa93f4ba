"""DP-Sniper's suite: pairs and events found by the search, against the published bounds and the best there is."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from ....audit.search.find_worst_pair import find_worst_pair
from ...published.dp_sniper import entries
from ...published.entry import Entry
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once, seeds_of
from .exact_events import Probabilities, best_event, event_probabilities

ALPHA = 0.1
_EXECUTIONS, _QUICK_EXECUTIONS = 40_000_000, 200_000
_SEARCH_SHARE = 8  # one execution in eight looks for the pair
_EXACT_RUNS, _QUICK_EXACT_RUNS = 2_000_000, 50_000
_QUICK = ("LaplaceMechanism", "ReportNoisyMax3")
_GAP, _SHARE = 1.15, 0.8


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, entry in enumerate(entries()):
        if effort.wants(entry.name) and (entry.name in _QUICK or not effort.is_quick):
            yield once(entry.name, _cells, entry, seeds_of(11, place, 0, 1)[0], effort)


def _cells(entry: Entry, seed: int, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    executions = effort.either(_QUICK_EXECUTIONS, _EXECUTIONS)
    exact_runs = effort.either(_QUICK_EXACT_RUNS, _EXACT_RUNS)
    search = executions // _SEARCH_SHARE
    started = time.perf_counter()
    found = find_worst_pair(
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
    seconds = time.perf_counter() - started
    audit = found.audit
    chosen = event_probabilities(entry.mechanism, found.x, found.y, audit.event, runs=exact_runs, seed=seed + 1)
    expected = chosen.expected_bound(audit.runs - audit.pilot_runs, ALPHA)
    every = executions // 2
    best = best_event(entry.mechanism, entry.x, entry.y, audit_runs=every, alpha=ALPHA, runs=exact_runs, seed=seed + 2)
    oracle = best.expected_bound(every, ALPHA)
    cells: dict[str, Value] = {
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
    }
    return cells, [] if effort.is_quick else [_target(entry, chosen, expected, best, oracle)]


def _target(entry: Entry, chosen: Probabilities, expected: float, best: Probabilities, oracle: float) -> Target:
    """The one that is met, or else the one about the gap."""
    if math.isinf(entry.exact) and best.q == 0.0:
        share = chosen.p / best.p if chosen.q == 0.0 else 0.0
        return Target(what="share of the best event that never happens on y", value=share, sense=">=", limit=_SHARE)
    if entry.published is not None and expected >= entry.published:
        return Target(what="expected bound", value=expected, sense=">=", limit=entry.published)
    gap = (entry.exact - expected) / (entry.exact - oracle)
    return Target(what="gap over the oracle's", value=gap, sense="<=", limit=_GAP)


def _short(dataset: object) -> str:
    """A list of numbers as one reads it."""
    values = dataset if isinstance(dataset, (list, tuple)) else getattr(dataset, "tolist", lambda: dataset)()
    shown = values if isinstance(values, (list, tuple)) else [values]
    return " ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in shown)


SNIPER = Bench(
    name="dp-sniper",
    title="DP-Sniper's suite",
    method=(
        "At most 4·10⁷ executions for each mechanism in all: an eighth looks for the pair of datasets, the others "
        "choose the event there and count it. Bounds on epsilon at confidence .9, low bits left alone. p and q are the "
        "chosen event's exact probabilities, by change of measure with the known laws, and the expected bound is what "
        "they give, so that no row is decided by one draw. Published: the best confident bound of any tester. Oracle: "
        "the expected bound of the best event on the worst pair known, with every execution counted."
    ),
    columns=(
        Column("mechanism", "mechanism"),
        Column("exact", "exact", ".4g"),
        Column("pair found", "pair"),
        Column("event", "event"),
        Column("p", "p", ".4g"),
        Column("q", "q", ".4g"),
        Column("expected bound", "expected", ".4f"),
        Column("drawn", "drawn", ".4f"),
        Column("published", "published", ".4f"),
        Column("oracle", "oracle", ".4f"),
        Column("executions", "executions", ",d"),
        Column("seconds", "seconds", ".0f"),
    ),
    names=tuple(entry.name for entry in entries()),
    tasks=_tasks,
)
