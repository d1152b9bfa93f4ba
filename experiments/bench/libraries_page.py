"""Benchmark of the libraries that people use: what audits of their releases say, and the defects that the search finds.

A library that is not installed is named, and its rows are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ...audit.errors import OptionError
from ...audit.results.audit_result import AuditResult, Verdict
from ..libraries.defects import Defect, Searched, defects
from ..libraries.diffprivlib_targets import diffprivlib_subjects
from ..libraries.opendp_targets import opendp_subjects
from ..libraries.pydp_targets import pydp_subjects
from ..libraries.target import Subject
from .core.bench_json import Column, Target, Value
from .core.effort import Bench, Effort, Task, once, seeds_of, spread
from .core.page import Page

_ALPHA, _DEFECT_ALPHA = 1e-5, 1e-6
_SEEDS, _QUICK_SEEDS, _QUICK_RUNS = 5, 1, 2_000
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
_DISTRIBUTIONS = {"opendp": "opendp", "diffprivlib": "diffprivlib", "pydp": "python-dp"}
_TABLE = {"opendp": 31, "diffprivlib": 32, "pydp": 33, "defects": 34}  # of seeds


def is_installed(library: str) -> bool:
    """Whether a library can be imported here."""
    try:
        import_module(library)
    except ImportError:
        return False
    return True


def left_out() -> Iterator[str]:
    """A line for each library whose rows cannot be measured here."""
    for library in _DISTRIBUTIONS:
        if not is_installed(library):
            yield f"{library} cannot be imported here: its rows are left out"


def _subject(library: str, name: str) -> Subject:
    return next(subject for subject in _SUBJECTS[library]() if subject.name == name)


def _defect(name: str) -> Defect:
    return next(defect for defect in defects() if defect.name == name)


def _tasks_of(library: str) -> Callable[[Effort], Iterator[Task]]:
    def tasks(effort: Effort) -> Iterator[Task]:
        chosen = [name for name in _names(library) if effort.wants(name)]
        if chosen and not is_installed(library):
            if effort.only:
                raise OptionError(f"{library} cannot be imported here, so {', '.join(chosen)} cannot be audited.")
            return
        for place, name in enumerate(_names(library)):
            if name in chosen and (not effort.is_quick or name in _QUICK[library]):
                yield once(f"{library}: {name}", _cells, library, name, place, effort)

    return tasks


def _names(library: str) -> tuple[str, ...]:
    return tuple(subject.name for subject in _SUBJECTS[library]())


def _audited(library: str, name: str, runs: int, seed: int, bits: bool) -> tuple[AuditResult, float]:
    """An audit and its seconds; by name, as the objects of a library cannot be sent to a process."""
    started = time.perf_counter()
    audit = _subject(library, name).audit(runs=runs, seed=seed, bits=bits, alpha=_ALPHA)
    return audit, time.perf_counter() - started


def _cells(library: str, name: str, place: int, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    subject = _subject(library, name)
    runs = min(subject.runs, effort.either(_QUICK_RUNS, subject.runs))
    seeds = seeds_of(_TABLE[library], place, 0, effort.either(_QUICK_SEEDS, _SEEDS))
    calls = [(library, name, runs, seed, bits) for bits in (False, True) for seed in seeds]
    found = list(spread(_audited, calls, effort.jobs))
    by_value, with_bits = found[: len(seeds)], found[len(seeds) :]
    audits = [audit for audit, _ in by_value]
    refuted = sum(audit.is_refuted for audit in audits)
    unclear = sum(audit.verdict is Verdict.INCONCLUSIVE for audit in audits)
    cells: dict[str, Value] = {
        "subject": name,
        "version": _release(library),
        "claim": str(audits[0].claim),
        "pair": audits[0].pair.difference,
        "pairs_by": "declared" if subject.domain is None else "found",
        "runs": runs,
        "audits": len(audits),
        "refuted": refuted,
        "inconclusive": unclear,
        "bounds": _span([audit.bound for audit in audits]),
        "seconds": _span([seconds for _, seconds in by_value], ".1f"),
        "refuted_by_bits": sum(audit.is_refuted for audit, _ in with_bits),
        "bounds_with_bits": _span([audit.bound for audit, _ in with_bits]),
    }
    targets = [
        Target(what="refuted by values", value=float(refuted), sense="<=", limit=0.0),
        Target(what="inconclusive", value=float(unclear), sense="<=", limit=0.0),
    ]
    return cells, targets


def _span(numbers: list[float], spec: str = ".3g") -> str:
    low, high = format(min(numbers), spec), format(max(numbers), spec)
    return low if low == high else f"{low} to {high}"


def _defect_tasks(effort: Effort) -> Iterator[Task]:
    for place, defect in enumerate(defects()):
        if not effort.wants(defect.name) or (effort.is_quick and defect.name not in _QUICK["defects"]):
            continue
        if defect.library and not is_installed(defect.library):
            if effort.only:
                raise OptionError(f"{defect.library} cannot be imported here, so {defect.name} cannot be searched.")
            continue
        yield once(f"defect: {defect.name}", _defect_cells, defect.name, place, effort)


def _searched(name: str, is_twin: bool, seed: int) -> tuple[AuditResult, float]:
    defect, started = _defect(name), time.perf_counter()
    searched: Searched = defect.twin if is_twin else defect.broken
    audit = searched.audit(seed=seed, bits=defect.by == "low bits", alpha=_DEFECT_ALPHA)
    return audit, time.perf_counter() - started


def _defect_cells(name: str, place: int, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    defect = _defect(name)
    seeds = seeds_of(_TABLE["defects"], place, 0, effort.either(_QUICK_SEEDS, _SEEDS))
    calls = [(name, is_twin, seed) for is_twin in (False, True) for seed in seeds]
    found = list(spread(_searched, calls, effort.jobs))
    broken, twins = found[: len(seeds)], found[len(seeds) :]
    refuted, alarms = (sum(audit.is_refuted for audit, _ in side) for side in (broken, twins))
    worst: Any = broken[0][0]
    cells: dict[str, Value] = {
        "subject": name,
        "version": _release(defect.library),
        "broken": defect.broken.words,
        "by": defect.by,
        "claim": str(worst.claim),
        "searches": len(seeds),
        "refuted": refuted,
        "bounds": _span([audit.bound for audit, _ in broken]),
        "pair": worst.pair.difference,
        "event": worst.event_in_words,
        "seconds": _span([seconds for _, seconds in broken], ".1f"),
        "twin": defect.twin.words,
        "twin_refuted": alarms,
        "twin_bounds": _span([audit.bound for audit, _ in twins]),
    }
    targets = [
        Target(what="refuted", value=float(refuted), sense=">=", limit=float(len(seeds))),
        Target(what="twin refuted", value=float(alarms), sense="<=", limit=0.0),
    ]
    return cells, targets


def _release(library: str) -> str:
    return f"{_DISTRIBUTIONS[library]} {version(_DISTRIBUTIONS[library])}" if library else "–"


def _bench(library: str, title: str) -> Bench:
    return Bench(
        name=library,
        title=title,
        method=(
            f"Audits of alpha {_ALPHA:g} with other seeds, by values and again with bits=True. Pairs are declared "
            "where the worst is known, else found by the search with as many executions as runs. Nothing here is known "
            "to break its claim by values. Bounds in the claim's unit: from the smallest to the largest. Seconds of an "
            "audit with its search."
        ),
        columns=(
            Column("object", "subject"),
            Column("release", "version"),
            Column("claim", "claim"),
            Column("pair", "pair"),
            Column("pairs", "pairs_by"),
            Column("runs", "runs", ","),
            Column("audits", "audits"),
            Column("refuted", "refuted"),
            Column("bounds", "bounds"),
            Column("seconds", "seconds"),
            Column("refuted with bits", "refuted_by_bits"),
            Column("bounds with bits", "bounds_with_bits"),
        ),
        names=_names(library),
        tasks=_tasks_of(library),
    )


_DEFECTS = Bench(
    name="defects",
    title="Defects that the search finds",
    method=(
        f"Searches with other seeds, each followed by an audit of the pair that it found, alpha {_DEFECT_ALPHA:g}; the "
        "same for the nearest twin without the defect. Pair and event are those of the first."
    ),
    columns=(
        Column("object", "subject"),
        Column("release", "version"),
        Column("as", "broken"),
        Column("claim", "claim"),
        Column("shown by", "by"),
        Column("searches", "searches"),
        Column("refuted", "refuted"),
        Column("bounds", "bounds"),
        Column("pair", "pair"),
        Column("event", "event"),
        Column("seconds", "seconds"),
        Column("twin", "twin"),
        Column("twin refuted", "twin_refuted"),
        Column("twin's bounds", "twin_bounds"),
    ),
    names=tuple(defect.name for defect in defects()),
    tasks=_defect_tasks,
)

LIBRARIES = Page(
    name="libraries",
    title="The libraries that people use",
    benches=(
        _bench("opendp", "OpenDP"),
        _bench("diffprivlib", "diffprivlib"),
        _bench("pydp", "PyDP"),
        _DEFECTS,
    ),
    left_out=left_out,
)
