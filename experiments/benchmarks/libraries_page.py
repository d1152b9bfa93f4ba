"""Audits of released libraries, and the defects that the search finds in them.

Rows of libraries that are not installed are left out, with a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...audit.errors import OptionError
from ...audit.results.audit_result import AuditResult, Verdict
from ..libraries.defects import Defect, defects
from ..libraries.diffprivlib_targets import diffprivlib_subjects
from ..libraries.installed import is_installed, left_out, release_of
from ..libraries.opendp_targets import opendp_subjects
from ..libraries.pydp_targets import pydp_subjects
from ..libraries.target import Subject
from .core.bench_json import Figures, at_least, at_most, columns
from .core.effort import Bench, Effort, Task, once, seeds_of, spread
from .core.page import Page
from .core.timing import timed
from .library_suites_bench import SUITES
from .replays.guided_searches import guided_bench, span

_ALPHA, _DEFECT_ALPHA = 1e-5, 1e-6
_SEEDS, _QUICK_SEEDS, _QUICK_RUNS = 5, 1, 5_000
_QUICK = {
    "opendp": ("laplace, int", "gaussian, float", "randomised response, bool"),
    "diffprivlib": ("Laplace", "GaussianDiscrete", "Binary"),
    "pydp": ("LaplaceMechanism", "Count"),
    "defects": ("LinearRegression", "private_mean of DP-Auditorium, by its definition"),
}
_SUBJECTS: dict[str, Callable[[], list[Subject]]] = {
    "opendp": opendp_subjects,
    "diffprivlib": diffprivlib_subjects,
    "pydp": pydp_subjects,
}
_TABLE = {"opendp": 31, "diffprivlib": 32, "pydp": 33, "defects": 34}  # numbers for `seeds_of`


def _subject(library: str, name: str) -> Subject:
    return next(subject for subject in _SUBJECTS[library]() if subject.name == name)


def _defect(name: str) -> Defect:
    return next(defect for defect in defects() if defect.name == name)


def _tasks_of(library: str) -> Callable[[Effort], Iterator[Task]]:
    def tasks(effort: Effort) -> Iterator[Task]:
        chosen = [name for name in _names(library) if effort.wants(name)]
        if chosen and not is_installed(library):
            if effort.only:
                raise OptionError(f"{library} cannot be imported; install it to audit {', '.join(chosen)}.")
            return
        for place, name in enumerate(_names(library)):
            if name in chosen and (not effort.is_quick or name in _QUICK[library]):
                yield once(f"{library}: {name}", _cells, library, name, place, effort)

    return tasks


def _names(library: str) -> tuple[str, ...]:
    return tuple(subject.name for subject in _SUBJECTS[library]())


def _audited(library: str, name: str, runs: int, seed: int, bits: bool) -> tuple[AuditResult, float]:
    """Return an audit and its seconds. The subject is named, since objects of a library cannot be sent to a process."""
    return timed(lambda: _subject(library, name).audit(runs=runs, seed=seed, bits=bits, alpha=_ALPHA))


def _cells(library: str, name: str, place: int, effort: Effort) -> Figures:
    subject = _subject(library, name)
    runs = min(subject.runs, effort.either(_QUICK_RUNS, subject.runs))
    seeds = seeds_of(_TABLE[library], place, 0, effort.either(_QUICK_SEEDS, _SEEDS))
    calls = [(library, name, runs, seed, bits) for bits in (False, True) for seed in seeds]
    found = list(spread(_audited, calls, effort.jobs))
    by_value, with_bits = found[: len(seeds)], found[len(seeds) :]
    audits = [audit for audit, _ in by_value]
    refuted = sum(audit.is_refuted for audit in audits)
    unclear = sum(audit.verdict is Verdict.INCONCLUSIVE for audit in audits)
    return {
        "subject": name,
        "version": release_of(library),
        "claim": str(audits[0].claim),
        "pair": audits[0].pair.difference,
        "pairs_by": "declared" if subject.domain is None else "found",
        "runs": runs,
        "audits": len(audits),
        "refuted": refuted,
        "inconclusive": unclear,
        "bounds": span([audit.bound for audit in audits]),
        "seconds": span([seconds for _, seconds in by_value], ".1f"),
        "refuted_by_bits": sum(audit.is_refuted for audit, _ in with_bits),
        "bounds_with_bits": span([audit.bound for audit, _ in with_bits]),
    }, [at_most("refuted by values", refuted, 0), at_most("inconclusive", unclear, 0)]


def _defect_tasks(effort: Effort) -> Iterator[Task]:
    for place, defect in enumerate(defects()):
        if not effort.wants(defect.name) or (effort.is_quick and defect.name not in _QUICK["defects"]):
            continue
        if defect.library and not is_installed(defect.library):
            if effort.only:
                raise OptionError(f"{defect.library} cannot be imported; install it to search {defect.name}.")
            continue
        yield once(f"defect: {defect.name}", _defect_cells, defect.name, place, effort)


def _searched(name: str, is_twin: bool, seed: int) -> tuple[AuditResult, float]:
    defect = _defect(name)
    searched = defect.twin if is_twin else defect.broken
    return timed(searched.audit, seed=seed, bits=defect.by == "low bits", alpha=_DEFECT_ALPHA)


def _defect_cells(name: str, place: int, effort: Effort) -> Figures:
    defect = _defect(name)
    seeds = seeds_of(_TABLE["defects"], place, 0, effort.either(_QUICK_SEEDS, _SEEDS))
    calls = [(name, is_twin, seed) for is_twin in (False, True) for seed in seeds]
    found = list(spread(_searched, calls, effort.jobs))
    broken, twins = found[: len(seeds)], found[len(seeds) :]
    refuted, alarms = (sum(audit.is_refuted for audit, _ in side) for side in (broken, twins))
    first = broken[0][0]
    return {
        "subject": name,
        "version": release_of(defect.library),
        "broken": defect.broken.words,
        "by": defect.by,
        "claim": str(first.claim),
        "searches": len(seeds),
        "refuted": refuted,
        "bounds": span([audit.bound for audit, _ in broken]),
        "pair": first.pair.difference,
        "event": first.event_in_words,
        "seconds": span([seconds for _, seconds in broken], ".1f"),
        "twin": defect.twin.words,
        "twin_refuted": alarms,
        "twin_bounds": span([audit.bound for audit, _ in twins]),
    }, [at_least("refuted", refuted, len(seeds)), at_most("refuted twins", alarms, 0)]


def _bench(library: str, title: str) -> Bench:
    return Bench(
        name=library,
        title=title,
        method=(
            f"Audits at alpha {_ALPHA:g} with different seeds, by values and again with bits=True. Pairs are declared "
            "where the worst pair is known, and otherwise found by a search with as many executions as runs. No object "
            "is known to break its claim by values. Bounds are in the unit of the claim, from the smallest to the "
            "largest. Seconds of an audit include its search."
        ),
        columns=columns(
            "object = subject | release = version | claim | pair | source of the pair = pairs_by | runs :, | audits | "
            "refuted by values = refuted | lower bounds by values = bounds | seconds | "
            "refuted with bits = refuted_by_bits | lower bounds with bits = bounds_with_bits"
        ),
        names=_names(library),
        tasks=_tasks_of(library),
    )


_DEFECTS = Bench(
    name="defects",
    title="Defects found by the search",
    method=(
        f"Searches with different seeds, each followed by an audit of its pair at alpha {_DEFECT_ALPHA:g}, for the "
        "defect and for the nearest twin without it. Pair and event are those of the first search."
    ),
    columns=columns(
        "object = subject | release = version | parameters = broken | claim | evidence = by | searches | refuted | "
        "lower bounds = bounds | pair | event | seconds | twin | refuted twins = twin_refuted | "
        "lower bounds of the twin = twin_bounds"
    ),
    names=tuple(defect.name for defect in defects()),
    tasks=_defect_tasks,
)

_GUIDED = guided_bench(_QUICK["defects"][-1])

LIBRARIES = Page(
    name="libraries",
    title="Benchmarks of released libraries",
    benches=(
        _bench("opendp", "OpenDP"),
        _bench("diffprivlib", "diffprivlib"),
        _bench("pydp", "PyDP"),
        _DEFECTS,
        _GUIDED,
        SUITES,
    ),
    left_out=left_out,
)
