"""StatDP's and DP-Auditorium's suites and the ladder of too little noise: verdicts on pairs that the search finds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ....audit.search.find_worst_pair import find_worst_pair
from ...published import auditorium, ladder, statdp
from ...published.entry import Entry
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once, seeds_of

ALPHA = 1e-5
_RUNS, _QUICK_RUNS = 1_000_000, 50_000
_FINE, _FINE_RUNS = 0.02, 30_000_000  # what an excess below the first takes
_SUITES = {"StatDP": statdp.entries, "DP-Auditorium": auditorium.entries, "ladder": ladder.entries}
_QUICK = ("noisy_max_v1a",)


def _entries() -> list[tuple[str, Entry]]:
    return [(suite, entry) for suite, make in _SUITES.items() for entry in make()]


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, (suite, entry) in enumerate(_entries()):
        if effort.wants(entry.name) and (entry.name in _QUICK or not effort.is_quick):
            yield once(entry.name, _cells, suite, entry, seeds_of(12, place, 0, 1)[0], effort)


def _cells(suite: str, entry: Entry, seed: int, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    is_fine = 0.0 < entry.exact - entry.claim.strength < _FINE
    runs = effort.either(_QUICK_RUNS, _FINE_RUNS if is_fine else _RUNS)
    started = time.perf_counter()
    options: dict[str, Any] = {
        "claim": entry.claim,
        "adjacency": entry.adjacency,
        "runs": runs,
        "alpha": ALPHA,
        "seed": seed,
        "jobs": effort.jobs,
        "bits": False,
    }
    found = find_worst_pair(entry.mechanism, entry.domain, **options)
    is_right = found.verdict is (Verdict.REFUTED if entry.is_broken else Verdict.NOT_REFUTED)
    cells: dict[str, Value] = {
        "suite": suite,
        "mechanism": entry.name,
        "claim": str(entry.claim),
        "truth": "broken" if entry.is_broken else "holds",
        "exact": entry.exact,
        "verdict": found.verdict.value,
        "bound": found.audit.bound,
        "event": str(found.audit.event),
        "executions": found.runs + 2 * found.audit.runs,
        "seconds": time.perf_counter() - started,
    }
    # A ladder ends somewhere. Held to the truth is what so many runs could find on the pair that the search found, and
    # what they do find on the worst pair known.
    is_promised = (
        is_right
        or not entry.is_broken
        or math.isinf(entry.exact)
        or entry.exact - entry.claim.strength > 1.5 * found.audit.resolution
        or check(entry.mechanism, entry.x, entry.y, **options).is_refuted
    )
    return cells, [Target(what="right verdict", value=float(is_right), sense=">=", limit=1.0)] if is_promised else []


SUITES = Bench(
    name="suites",
    title="StatDP's and DP-Auditorium's suites, and a ladder of too little noise",
    method=(
        "The pair is found by the search and the event by the audit; alpha is 1e-5 for each, with 10⁶ runs on each "
        "dataset, or 3·10⁷ where the excess is below .02. Exact: the loss on the worst pair known. A verdict is held "
        "to the truth unless the excess is below 1.5 times what the audit could find, and an audit of as many runs on "
        "that pair misses it too."
    ),
    columns=(
        Column("suite", "suite"),
        Column("mechanism", "mechanism"),
        Column("claim", "claim"),
        Column("claim in truth", "truth"),
        Column("exact", "exact", ".4g"),
        Column("verdict", "verdict"),
        Column("bound", "bound", ".4g"),
        Column("event", "event"),
        Column("executions", "executions", ",d"),
        Column("seconds", "seconds", ".1f"),
    ),
    names=tuple(entry.name for _, entry in _entries()),
    tasks=_tasks,
)
