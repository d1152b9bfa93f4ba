"""Replays of mechanisms that keep their claims, on random neighbours: an excess would be a false finding."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ....audit.search.pairs_for_domain import pairs_of
from ....audit.search.pool import new_pool
from ...libraries.diffprivlib_fits import diffprivlib_fits
from ...libraries.installed import is_installed
from ..core.bench_json import Figures, Row, at_most, columns
from ..core.effort import Bench, Effort, Task, counted, seeds_of
from .reference_pairs import REFERENCES, DrawPair
from .verdicts import verdicts

_QUICK_PAIRS, _BATCH = 3, 50
_TABLE = 36  # number for `seeds_of`
_QUICK = ("LaplaceMechanism", "SparseVector")
_COUNTS = ("pairs", "excess", "bounded", "open", "raised")


def _right_fits() -> list[str]:
    return [fit.name for fit in diffprivlib_fits() if fit.is_right]


def _subject(name: str) -> tuple[Any, DrawPair]:
    """Return a mechanism with a function that draws a pair of its neighbours; a fit needs diffprivlib."""
    return REFERENCES[name] if name in REFERENCES else _fitted(name)


@cache
def _fitted(name: str) -> tuple[Any, DrawPair]:
    fit = next(fit for fit in diffprivlib_fits() if fit.name == name)
    mechanism = fit.make()
    source = pairs_of(fit.domain, mechanism.adjacency, 1.0, 0)

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        (pair,) = new_pool(source, mechanism.adjacency, 1.0, int(rng.integers(2**32)), None).drawn(1)
        return pair.x, pair.y

    return mechanism, draw


def _counts(name: str, seeds: range) -> Counter[str]:
    mechanism, draw = _subject(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        found = verdicts(mechanism, (draw(np.random.default_rng(seed)) for seed in seeds), seeds.start)
    return Counter({"pairs": len(seeds), **{each: getattr(found, each) for each in _COUNTS[1:]}})


def _cells(name: str, total: Counter[str]) -> Figures:
    counts = {each: total[each] for each in _COUNTS}
    targets = [at_most("excess", total["excess"], 0), at_most("raised", total["raised"], 0)]
    return {"mechanism": name, "claim": str(_subject(name)[0].claim), **counts}, targets


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
    names = [*REFERENCES, *(_right_fits() if is_installed("diffprivlib") else ())]
    for place, name in enumerate(names):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK):
            yield Task(name, partial(_rows, name, place, wanted, effort.jobs))


FALSE_FINDINGS = Bench(
    name="false-findings",
    title="Replays of mechanisms that keep their claims: the reference mechanisms, and models of diffprivlib",
    method=(
        "Random neighbours, half of those of reference mechanisms as far apart as neighbours can be, each replayed "
        "with a different seed. An excess would be a false finding. Bounded is not a proof and open not a failure: "
        "noise that decides something (sparse vector, noisy max, coins) leaves a replay open. --audits sets the number "
        "of pairs, and --resume adds to those that were replayed."
    ),
    columns=columns("mechanism | claim | pairs :, | excess | bounded :, | open :, | raised"),
    names=(*REFERENCES, *_right_fits()),
    tasks=_tasks,
)
