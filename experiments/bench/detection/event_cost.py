"""Cost of choosing and counting an event, relative to drawing the same outputs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ....audit.sampling.draw import count_hits, plan_blocks
from ....audit.sampling.sampler import as_sampler
from ....mechanisms import LaplaceMechanism
from ...published.noisy_answers import NoisyAnswers
from ..core.bench_json import Figures, at_most, columns
from ..core.effort import Bench, Effort, one_row_each
from ..core.timing import in_turns, median_ratio

_RUNS, _QUICK_RUNS = 10_000_000, 20_000
_ROUNDS, _QUICK_ROUNDS = 5, 1
_JOBS = 2


@dataclass(frozen=True, slots=True)
class _Case:
    mechanism: Any
    x: Any
    y: Any
    limit: float  # on the seconds of the audit over those of drawing alone


_FLAT = [0.0] * 10
_CASES = {
    "one number": _Case(LaplaceMechanism(1.0), 0.0, 1.0, 1.5),
    "vector of 10": _Case(NoisyAnswers(PureDP(1.0), 1.0), _FLAT, [1.0, *_FLAT[1:]], 2.6),
}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    case, runs = _CASES[name], effort.either(_QUICK_RUNS, _RUNS)
    plan = plan_blocks(as_sampler(case.mechanism, None), case.x, case.y, 0, _JOBS)
    works: dict[str, Any] = {
        "drawing": partial(count_hits, plan, None, None, runs),
        "audit": partial(check, case.mechanism, case.x, case.y, claim=PureDP(1.0), runs=runs, jobs=_JOBS),
    }
    spent = in_turns(works, effort.either(_QUICK_ROUNDS, _ROUNDS), warm_up=0)
    ratio = median_ratio(spent["audit"], spent["drawing"])
    medians = {work: statistics.median(seconds) for work, seconds in spent.items()}
    targets = [] if effort.is_quick else [at_most("ratio", ratio, case.limit)]
    return {"output": name, "runs": runs, **medians, "ratio": ratio}, targets


COST = Bench(
    name="cost",
    title="Cost of choosing and counting an event",
    method=(
        "Seconds of a whole audit (pilot, choice of the event, drawing, counting, test and test of low bits) and of "
        f"drawing alone, with {_JOBS} workers. Medians of {_ROUNDS} rounds that time both in turn; the ratio is the "
        "median of their ratios."
    ),
    columns=columns(
        "output | runs on each dataset = runs :,d | seconds of drawing = drawing :.3f | "
        "seconds of the audit = audit :.3f | ratio :.2f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _cells),
)
