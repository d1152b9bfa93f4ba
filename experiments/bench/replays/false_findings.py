"""Replays of the reference mechanisms on random neighbours: an excess would be a false finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np

from ..core.bench_json import Figures, Row, at_most, columns
from ..core.effort import Bench, Effort, Task, counted, seeds_of
from .reference_pairs import REFERENCES
from .verdicts import verdicts

_QUICK_PAIRS, _BATCH = 3, 50
_TABLE = 36  # number for `seeds_of`
_QUICK = ("LaplaceMechanism", "SparseVector")
_COUNTS = ("pairs", "excess", "bounded", "open", "raised")


def _counts(name: str, seeds: range) -> Counter[str]:
    mechanism, draw = REFERENCES[name]
    found = verdicts(mechanism, (draw(np.random.default_rng(seed)) for seed in seeds), seeds.start)
    return Counter({"pairs": len(seeds), **{each: getattr(found, each) for each in _COUNTS[1:]}})


def _cells(name: str, total: Counter[str]) -> Figures:
    counts = {each: total[each] for each in _COUNTS}
    targets = [at_most("excess", total["excess"], 0), at_most("raised", total["raised"], 0)]
    return {"mechanism": name, "claim": str(REFERENCES[name][0].claim), **counts}, targets


def _rows(name: str, place: int, wanted: int, jobs: int, former: Row | None) -> Iterator[Row]:
    return counted(
        name,
        partial(_counts, name),
        partial(_cells, name),
        former,
        names=_COUNTS,
        seeds=lambda used: seeds_of(_TABLE, place, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=jobs,
    )


def _tasks(effort: Effort) -> Iterator[Task]:
    wanted = min(effort.audits, effort.either(_QUICK_PAIRS, effort.audits))
    for place, name in enumerate(REFERENCES):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK):
            yield Task(name, partial(_rows, name, place, wanted, effort.jobs))


FALSE_FINDINGS = Bench(
    name="false-findings",
    title="Replays of reference mechanisms, which keep their claims",
    method=(
        "Random neighbours, half of them as far apart as neighbours can be, each replayed with a different seed. An "
        "excess would be a false finding. Bounded is not a proof and open not a failure: noise that decides something "
        "(sparse vector, noisy max, coins) leaves a replay open. --audits sets the number of pairs, and --resume adds "
        "to those that were replayed."
    ),
    columns=columns("mechanism | claim | pairs :, | excess | bounded :, | open :, | raised"),
    names=tuple(REFERENCES),
    tasks=_tasks,
)
