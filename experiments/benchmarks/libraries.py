"""Audits of released libraries and the defects in them, kept apart because a page shows them."""

from __future__ import annotations

from ...audit.datasets.adjacency import AddRemove
from ...audit.datasets.domains import Rows
from ...audit.options import FloatingPoint
from ...audit.results.audit_result import AuditResult
from ...audit.results.verdict import Verdict
from ...mechanisms.faulty import FlooredScaleMean
from ..libraries.defects import Defect, defects
from ..libraries.subjects import Subject, diffprivlib_subjects, opendp_subjects, pydp_subjects, release_of
from ..published.auditorium import BoundedMean
from .measure import Effort, Figures, Seeds, Table, at_least, at_most, spread, timed

_ALPHA, _DEFECT_ALPHA, _SEEDS, _QUICK_RUNS = 1e-5, 1e-6, 5, 5_000
# Objects of a library are named, since they cannot be sent to a process.
_SUBJECTS: dict[str, dict[str, Subject]] = {
    library: {subject.name: subject for subject in subjects()}
    for library, subjects in (
        ("opendp", opendp_subjects), ("diffprivlib", diffprivlib_subjects), ("pydp", pydp_subjects)
    )
}  # fmt: skip


def all_defects() -> list[Defect]:
    """Return the defects of releases, and `private_mean` of DP-Auditorium by its definition, which is of no release.

    The variant of that mean divides a noisy sum by a noisy count, so that its noise does not depend on the count.
    """
    name, unit = "private_mean of DP-Auditorium, by its definition", Rows(low=0.0, high=1.0)
    broken, variant = (
        Subject(name=words, make=make, domain=unit, adjacency=AddRemove(), runs=20_000, search_runs=20_000)
        for words, make in (
            ("noise scaled by a noisy count", lambda: FlooredScaleMean(1.0)),
            ("a noisy sum over a noisy count", lambda: BoundedMean(1.0, 0.0, 1.0)),
        )
    )
    return [*defects(), Defect(name=name, library="", by="values", broken=broken, variant=variant)]


_DEFECTS = {defect.name: defect for defect in all_defects()}


def span(numbers: list[float], spec: str = ".3g") -> str:
    """Return the least and the largest number, or the one that all are."""
    low, high = format(min(numbers), spec), format(max(numbers), spec)
    return low if low == high else f"{low} to {high}"


def _audited(library: str, name: str, runs: int, seed: int, floating_point: FloatingPoint) -> tuple[AuditResult, float]:
    """Return an audit and its seconds."""
    return timed(
        lambda: _SUBJECTS[library][name].audit(runs=runs, seed=seed, floating_point=floating_point, alpha=_ALPHA)
    )


def _library_cells(effort: Effort, seeds: Seeds, library: str, name: str) -> Figures:
    subject = _SUBJECTS[library][name]
    runs = min(subject.runs, effort.either(_QUICK_RUNS, subject.runs))
    used = seeds(effort.either(1, _SEEDS))
    calls = [(library, name, runs, seed, kind) for kind in ("ignore", "test") for seed in used]
    found = list(spread(_audited, calls, effort.jobs))
    by_value, with_bits = found[: len(used)], found[len(used) :]
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


def _searched(name: str, is_variant: bool, seed: int) -> tuple[AuditResult, float]:
    defect = _DEFECTS[name]
    searched = defect.variant if is_variant else defect.broken
    return timed(
        searched.audit, seed=seed, floating_point="test" if defect.by == "low bits" else "ignore", alpha=_DEFECT_ALPHA
    )


def _defect_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    defect = _DEFECTS[name]
    used = seeds(effort.either(1, _SEEDS))
    calls = [(name, is_variant, seed) for is_variant in (False, True) for seed in used]
    found = list(spread(_searched, calls, effort.jobs))
    broken, variants = found[: len(used)], found[len(used) :]
    refuted, alarms = (sum(audit.is_refuted for audit, _ in side) for side in (broken, variants))
    first = broken[0][0]
    return {
        "subject": name,
        "version": release_of(defect.library),
        "broken": defect.broken.name,
        "by": defect.by,
        "claim": str(first.claim),
        "searches": len(used),
        "refuted": refuted,
        "bounds": span([audit.bound for audit, _ in broken]),
        "pair": first.pair.difference,
        "event": first.event_in_words,
        "seconds": span([seconds for _, seconds in broken], ".1f"),
        "variant": defect.variant.name,
        "variant_refuted": alarms,
        "variant_bounds": span([audit.bound for audit, _ in variants]),
    }, [at_least("refuted", refuted, len(used)), at_most("refuted variants", alarms, 0)]


def _audits_of(number: int, library: str, *quick: str) -> Table:
    rows = {f"{library}: {name}": (library, name) for name in _SUBJECTS[library]}
    keys = [f"{library}: {name}" for name in quick]
    return Table(library, number, rows, _library_cells, quick=keys, library=lambda library, name: library)


_DEFECT_ROWS = {f"defect: {name}": (name,) for name in _DEFECTS}
_DEFECT_QUICK = ("defect: LinearRegression", "defect: private_mean of DP-Auditorium, by its definition")

TABLES = (
    _audits_of(32, "opendp", "laplace, int", "randomised response, bool"),
    _audits_of(33, "diffprivlib", "Laplace", "Binary"),
    _audits_of(34, "pydp", "LaplaceMechanism", "Count"),
    Table(
        "defects", 35, _DEFECT_ROWS, _defect_cells, quick=_DEFECT_QUICK, library=lambda name: _DEFECTS[name].library
    ),
)  # fmt: skip
