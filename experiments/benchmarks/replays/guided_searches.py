"""The defects of libraries again, by searches that replays guide: a tenth of the executions, and the line at fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....audit.replay.replay import replay
from ...libraries.defects import Defect, Searched, defects
from ...libraries.installed import is_installed, release_of
from ..core.bench_json import Figures, at_least, at_most, columns
from ..core.effort import Bench, Effort, Task, once, seeds_of, spread
from ..core.timing import timed
from .verdicts import NOTHING, Named, named

_ALPHA = 1e-6
_SEEDS, _QUICK_SEEDS = 5, 1  # at most; `Effort.audits` may be fewer
_SHARE, _LEAST = 10, 400  # of the executions of an unguided search
_TABLE = 35  # number for `seeds_of`


class _Found(NamedTuple):
    bound: float
    is_refuted: bool
    seconds: float
    pairs: int
    named: Named | None
    replay_seconds: float


def by_values() -> list[Defect]:
    """Return the defects that show in values; replays do not compare low bits."""
    return [defect for defect in defects() if defect.by == "values"]


def guided_bench(quick: str) -> Bench:
    """Return the table, without the rows of libraries that are not installed; `quick` is the row of its quick form."""

    def tasks(effort: Effort) -> Iterator[Task]:
        for place, defect in enumerate(by_values()):
            is_wanted = effort.wants(defect.name) and (not effort.is_quick or defect.name == quick)
            if is_wanted and (not defect.library or is_installed(defect.library)):
                yield once(f"guided: {defect.name}", _cells, defect.name, place, effort)

    return Bench(
        name="guided",
        title="The same defects by searches that replays guide",
        method=(
            f'`find_worst_pair(guide="replay")` with {1 / _SHARE:.0%} of the executions of the unguided search beside '
            f"it, the same audit (alpha {_ALPHA:g}) and the same seeds. Seconds: search and audit, on one worker. "
            "Pairs are those that were replayed. Call, line, movement and declared sensitivity are what a replay on "
            "the pair that the guided search found names first. There were as many searches as the "
            f"column says: at most {_SEEDS}, which take 40 minutes in all, or as many as --audits."
        ),
        columns=columns(
            "object = subject | release = version | parameters = broken | searches | executions = executions :, | "
            "refuted | lower bounds = bounds | seconds | guided executions = few :, | pairs | "
            "guided, refuted = guided_refuted | guided, lower bounds = guided_bounds | "
            "guided, seconds = guided_seconds | with an excess = excess | "
            "call | line | moved | declared sensitivity = sensitivity | seconds of a replay = replay_seconds | "
            "refuted twins = twin_refuted | twins with an excess = twin_excess"
        ),
        names=tuple(defect.name for defect in by_values()),
        tasks=tasks,
    )


def _defect(name: str) -> Defect:
    return next(defect for defect in by_values() if defect.name == name)


def _few(searched: Searched) -> int:
    """The executions of a guided search."""
    return max(searched.search_runs // _SHARE, _LEAST)


def _searched(name: str, is_twin: bool, seed: int, is_guided: bool) -> _Found:
    defect = _defect(name)
    searched = defect.twin if is_twin else defect.broken
    options = {"guide": "replay", "search_runs": _few(searched)} if is_guided else {}
    found, seconds = timed(searched.search, seed=seed, bits=False, alpha=_ALPHA, **options)
    at_fault, replay_seconds = None, 0.0
    if is_guided:
        mechanism = searched.make()
        result, replay_seconds = timed(replay, mechanism, found.x, found.y, adjacency=searched.adjacency, seed=seed)
        at_fault = named(result)
    return _Found(found.audit.bound, found.is_refuted, seconds, found.replayed, at_fault, replay_seconds)


def _cells(name: str, place: int, effort: Effort) -> Figures:
    defect = _defect(name)
    seeds = seeds_of(_TABLE, place, 0, min(effort.audits, effort.either(_QUICK_SEEDS, _SEEDS)))
    kinds = [(False, False), (False, True), (True, True)]  # twin, guided
    calls = [(name, is_twin, seed, is_guided) for is_twin, is_guided in kinds for seed in seeds]
    found = list(spread(_searched, calls, effort.jobs))
    plain, guided, twins = (found[part * len(seeds) : (part + 1) * len(seeds)] for part in range(3))
    at_fault = [one.named for one in guided if one.named is not None]
    alarms, excesses = sum(one.is_refuted for one in twins), sum(one.named is not None for one in twins)
    cells = {
        "subject": name,
        "version": release_of(defect.library),
        "broken": defect.broken.words,
        "searches": len(seeds),
        "executions": defect.broken.search_runs,
        "refuted": sum(one.is_refuted for one in plain),
        "bounds": span([one.bound for one in plain]),
        "seconds": span([one.seconds for one in plain], ".1f"),
        "few": _few(defect.broken),
        "pairs": span([float(one.pairs) for one in guided], ".0f"),
        "guided_refuted": sum(one.is_refuted for one in guided),
        "guided_bounds": span([one.bound for one in guided]),
        "guided_seconds": span([one.seconds for one in guided], ".1f"),
        "excess": len(at_fault),
        **(at_fault[0] if at_fault else NOTHING)._asdict(),
        "replay_seconds": span([one.replay_seconds for one in guided], ".2f"),
        "twin_refuted": alarms,
        "twin_excess": excesses,
    }
    targets = [
        at_least("guided, refuted", cells["guided_refuted"], len(seeds)),
        at_most("refuted twins", alarms, 0),
        at_most("twins with an excess", excesses, 0),
    ]
    return cells, targets


def span(numbers: list[float], spec: str = ".3g") -> str:
    """Return the least and the largest number, or the one that all are."""
    low, high = format(min(numbers), spec), format(max(numbers), spec)
    return low if low == high else f"{low} to {high}"
