"""Searches of models that take milliseconds a fit: guided by replays for a minute, unguided for ten."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from ....audit.replay.replay import replay
from ....audit.search.find_worst_pair import find_worst_pair
from ...libraries.diffprivlib_fits import Fit, diffprivlib_fits
from ...libraries.installed import is_installed, release_of
from ..core.bench_json import Figures, Target, at_least, at_most, columns
from ..core.effort import Bench, Effort, Task, once, seeds_of
from ..core.timing import timed
from .verdicts import NOTHING, named

_SECONDS, _TIMES = 60.0, 10  # of a guided search, and how much longer an unguided one takes
_QUICK_SECONDS, _QUICK = 0.1, ("StandardScaler, x near 0",)
_ALPHA = 1e-6  # of the audits
_TRIAL = 400  # executions of a search that is timed first, and those of a measured search at least
_RUNS = range(1_000, 20_001)  # of an audit on each dataset: twice the executions of a guided search, within this
_TABLE = 37  # number for `seeds_of`


class _Search(NamedTuple):
    is_refuted: bool
    bound: float
    pairs: int
    seconds: float
    pair: Any


def _fit(name: str) -> Fit:
    return next(fit for fit in diffprivlib_fits() if fit.name == name)


def _executions(mechanism: Any, fit: Fit, seed: int, seconds: float, guide: Any) -> int:
    """Executions of a search that takes so many seconds of a processor; other work may delay it."""
    start = time.process_time()
    _searched(mechanism, fit, seed, _TRIAL, 50, guide)
    return max(int(_TRIAL * seconds / (time.process_time() - start)), _TRIAL)


def _searched(mechanism: Any, fit: Fit, seed: int, executions: int, runs: int, guide: Any) -> _Search:
    options: dict[str, Any] = {"runs": runs, "alpha": _ALPHA, "jobs": 1, "bits": False}
    found, seconds = timed(
        find_worst_pair, mechanism, fit.domain, search_runs=executions, guide=guide, seed=seed, **options
    )
    return _Search(found.is_refuted, found.bound, found.replayed or len(found.ranking), seconds, (found.x, found.y))


def _cells(effort: Effort, place: int, name: str) -> Figures:
    fit, seed = _fit(name), seeds_of(_TABLE, place, 0, 1)[0]
    budget = effort.seconds or effort.either(_QUICK_SECONDS, _SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        mechanism = fit.make()
        few = _executions(mechanism, fit, seed, budget, "replay")
        many = _executions(mechanism, fit, seed, _TIMES * budget, None)
        runs = effort.either(50, min(max(2 * few, _RUNS.start), _RUNS.stop - 1))
        guided = _searched(mechanism, fit, seed, few, runs, "replay")
        plain = _searched(mechanism, fit, seed, many, runs, None)
        at_fault = named(replay(mechanism, *guided.pair, seed=seed))
    targets: list[Target] = []
    if fit.is_right:
        targets += [
            at_most("refuted", guided.is_refuted + plain.is_refuted, 0),
            at_most("excess", at_fault is not None, 0),
        ]
    elif fit.is_right is False and not effort.is_quick:
        targets += [at_least("guided, refuted or an excess", guided.is_refuted or at_fault is not None, 1)]
    return {
        "fit": name,
        "release": release_of("diffprivlib"),
        "known": {True: "keeps its claim", False: "breaks it", None: "–"}[fit.is_right],
        "budget": budget,
        "runs": runs,
        "few": few,
        "pairs": guided.pairs,
        "guided_refuted": "yes" if guided.is_refuted else "no",
        "guided_bound": guided.bound,
        "guided_seconds": guided.seconds,
        **(at_fault or NOTHING)._asdict(),
        "many": many,
        "plain_pairs": plain.pairs,
        "refuted": "yes" if plain.is_refuted else "no",
        "bound": plain.bound,
        "seconds": plain.seconds,
    }, targets


def _tasks(effort: Effort) -> Iterator[Task]:
    if not is_installed("diffprivlib"):
        return
    for place, fit in enumerate(diffprivlib_fits()):
        if effort.wants(fit.name) and (not effort.is_quick or fit.name in _QUICK):
            yield once(fit.name, _cells, effort, place, fit.name)


SLOW_FITS = Bench(
    name="slow-fits",
    title="Models of diffprivlib: searches that replays guide, and ten times longer ones",
    method=(
        "Two searches of the same domain: a guided one that takes the stated seconds of a processor, and an "
        f"unguided one that takes {_TIMES} times as long. How many executions fit is extrapolated from a search of "
        f"{_TRIAL}, and no search has fewer. Each search is followed by the same audit on fresh runs (alpha "
        f"{_ALPHA:g}, claim 1-DP). Seconds: search and audit, on one worker, other work on the machine included. "
        "Call, line, movement and declared sensitivity are what a replay on the pair that the guided search found "
        "names first; an excess of a fit that no audit refutes is not confirmed."
    ),
    columns=columns(
        "fit | release | known | processor seconds, guided = budget :g | runs of an audit = runs :, | "
        "guided executions = few :, | pairs = pairs :, | guided, refuted = guided_refuted | "
        "guided, lower bound = guided_bound :.3g | guided, seconds = guided_seconds :.1f | call | line | moved | "
        "declared sensitivity = sensitivity | executions = many :, | pairs, unguided = plain_pairs :, | refuted | "
        "lower bound = bound :.3g | seconds :.1f"
    ),
    names=tuple(fit.name for fit in diffprivlib_fits()),
    tasks=_tasks,
)
