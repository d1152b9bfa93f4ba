"""Suites of whole libraries: what they cover, and what they refute, with several seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...audit.errors import OptionError
from ..libraries.installed import is_installed
from ..library_suites.coverage import Status, coverage_of_run
from ..library_suites.library_names import library_named
from ..library_suites.plan import plan_of
from ..library_suites.run_plan import run_plan
from .core.bench_json import Figures, at_most, columns
from .core.effort import Bench, Effort, Task, once

_ALPHA: Final = 1e-4  # the default of `dpaudit suite`
_SEEDS: Final = (0, 1, 2)
_MINUTES: Final = {
    "opendp": 12.0,
    "diffprivlib": 15.0,
    "pydp": 4.0,
    "pipeline-dp": 8.0,
}
_QUICK, _QUICK_ONLY, _QUICK_MINUTES = "pydp, seed 0", r"numerical.*Laplace.*int", 0.05
_NAMES = tuple(f"{library}, seed {seed}" for library in _MINUTES for seed in _SEEDS)


def _tasks(effort: Effort) -> Iterator[Task]:
    for name in _NAMES:
        library, _, seed = name.partition(", seed ")
        if not effort.wants(name) or (effort.is_quick and name != _QUICK):
            continue
        if not is_installed(library):
            if effort.only:
                raise OptionError(f"{library} cannot be imported; install it to measure its suite.")
            continue
        yield once(f"suite: {name}", _cells, library, int(seed), effort)


def _cells(library: str, seed: int, effort: Effort) -> Figures:
    minutes = effort.either(_QUICK_MINUTES, _MINUTES[library])
    selection = effort.either(_QUICK_ONLY, None)
    described = library_named(library)
    plan = plan_of(described, alpha=_ALPHA, only=selection)
    run = run_plan(described, plan, seed=seed, minutes=minutes, workers=1, only=selection)
    coverage = coverage_of_run(run)
    doubtful = coverage.count(Status.NOT_CONFIRMED)
    return {
        "release": plan.release,
        "seed": seed,
        "minutes": minutes,
        "public": len(coverage.lines),
        "audited": coverage.audited,
        "same": coverage.count(Status.SAME),
        "by_values": coverage.count(Status.REFUTED),
        "by_bits": coverage.count(Status.REFUTED_BY_BITS),
        "doubtful": doubtful,
        "rest": len(coverage.lines) - coverage.audited - coverage.count(Status.SAME),
        "points": len(plan.targets),
        "reached": len(plan.targets) - len(run.not_reached),
        "unknown": sum(line.status is Status.REFUTED and not line.known for line in coverage.lines),
    }, [at_most("not confirmed", doubtful, 0)]


SUITES = Bench(
    name="library-suites",
    title="Suites of whole libraries",
    method=(
        f"`dpaudit suite` of the installed release, with alpha {_ALPHA:g} for each suite. A suite has one worker for "
        "the stated minutes; what it reaches depends on the machine and on other work there. Not audited: callables "
        "that no form covers, that could not be audited, or that were not reached; `coverage.md` of a suite gives the "
        "reasons. Without a known cause: callables refuted by values that the findings do not describe."
    ),
    columns=columns(
        "release | seed | minutes :.3g | public callables = public | audited | audited as another = same | "
        "refuted by values = by_values | by low bits only = by_bits | not confirmed = doubtful | not audited = rest | "
        "points of the plan = points | points reached = reached | without a known cause = unknown"
    ),
    names=_NAMES,
    tasks=_tasks,
)
