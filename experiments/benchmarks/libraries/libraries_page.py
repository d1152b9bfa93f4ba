"""Audits of released libraries, and the defects that the search finds in them.

Rows of libraries that are not installed are left out, with a message.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from ....audit.distribution_checks.check_noise import check_noise
from ....audit.distribution_checks.noise_laws import GaussianNoise, LaplaceNoise
from ....audit.errors import OptionError
from ....audit.results.audit_result import AuditResult, Verdict
from ....audit.results.statement_result import StatementResult
from ...libraries.defects import Defect, defects
from ...libraries.diffprivlib_targets import diffprivlib_subjects
from ...libraries.opendp_targets import opendp_subjects
from ...libraries.pydp_targets import pydp_subjects
from ...libraries.target import Subject, is_installed, left_out, release_of
from ...library_suites.coverage import Status, coverage_of_run
from ...library_suites.library_names import library_named
from ...library_suites.plan import plan_of
from ...library_suites.run_plan import run_plan
from ...published.google_cases.all_cases import REJECTED, closeness_cases, dp_cases
from ...published.google_cases.audited import TWIN_SHARE, Audited, noise, release, why_not_pydp
from ...published.google_cases.case import VOTES, Case, ClosenessCase
from ...published.google_cases.samplers import Repeated, pydp_noise
from ...published.google_cases.their_test import least_noise_that_passes, passes
from ..core.bench_json import Figures, Record, Row, Table, at_least, at_most, columns, timed
from ..core.page import Bench, Effort, Page, Task, once, seeds_of, spread
from ..replays.replays_page import guided_bench, span

# Google's statistical test cases: verdicts, twins with too little noise, and runs and time beside their tests.

SUITE_ALPHA: Final = 1e-5
"""Probability with which any right mechanism of the whole suite is refuted."""
_CASES: Final = {case.key: case for case in dp_cases()}
_CLOSENESS: Final = {case.key: case for case in closeness_cases()}
ALPHA: Final = SUITE_ALPHA / (2 * len(_CASES) + len(_CLOSENESS))
"""Alpha of each audit: two of each case of an aggregation, and one of each law of noise."""

_GOOGLE_TABLE = 35  # number for `seeds_of`
_NOISE_RUNS, _GOOGLE_QUICK_RUNS = 40_000, 2_000
_TIMED = 5_000  # draws whose time is measured
_SIMULATED = ("count", "bounded sum", "long bounded sum")
_GOOGLE_QUICK = (
    "count: Laplace noise, empty count, large epsilon",
    "bounded mean: Gaussian noise, empty mean, default parameters",
    "approximate bounds: basic (bounding failure)",
    "Laplace closeness: Default parameters",
)


def _google_tasks(effort: Effort) -> Iterator[Task]:
    has_pydp = is_installed("pydp")
    for place, key in enumerate((*_CASES, *_CLOSENESS)):
        if not effort.wants(key) or (effort.is_quick and not effort.only and key not in _GOOGLE_QUICK):
            continue
        if key in _CLOSENESS:
            if has_pydp:
                yield once(key, _closeness_cells, effort, place, key)
        elif has_pydp or not needs_pydp(_CASES[key]):
            yield once(key, _google_cells, effort, place, key)


def needs_pydp(case: Case) -> bool:
    """Return whether an audit of the case draws from PyDP."""
    return case.file in (*_SIMULATED, "quantiles") or (case.noise == "laplace" and case.file != "approximate bounds")


def _google_cells(effort: Effort, place: int, key: str) -> Figures:
    case, seeds = _CASES[key], seeds_of(_GOOGLE_TABLE, place, 0, 4)
    audits = (release(case), noise(case, alpha=ALPHA), noise(case, alpha=ALPHA, share=TWIN_SHARE))
    found, seconds = [], []
    for audited, seed in zip(audits, seeds, strict=False):
        runs = _GOOGLE_QUICK_RUNS if effort.is_quick else audited.runs
        started = time.process_time()
        found.append(audited.audit(alpha=ALPHA, seed=seed, runs=runs))
        seconds.append(time.process_time() - started)
    released, right, twin = found
    is_simulated = case.file in _SIMULATED and not effort.is_quick
    wrong = sum(audit.verdict is Verdict.REFUTED for audit in (released, right))
    targets = [at_most("refuted", wrong, 0)]
    if not effort.is_quick:
        targets.append(at_least("refuted twins", twin.is_refuted, 1))
    return {
        "file": case.file,
        "case": case.name,
        "claim": str(case.claim),
        "on": audits[0].on,
        "release": _release_of(audits[0]),
        "why": why_not_pydp(case) or None,
        "note": case.note or None,
        "runs": released.runs,
        "verdict": released.verdict.value,
        "bound": released.bound,
        "resolution": released.resolution,
        "noise_on": audits[1].on,
        "noise_claim": audits[1].claim_in_words,
        "noise_runs": right.runs,
        "right": right.verdict.value,
        "right_bound": right.bound,
        "twin": twin.verdict.value,
        "twin_bound": twin.bound,
        "seconds": seconds[0] + seconds[1],
        "twin_seconds": seconds[2],
        "their_samples": VOTES * case.samples,
        "their_seconds": 2 * VOTES * case.samples * _seconds_of_a_draw(audits[0].mechanism, audits[0].x, audits[0].y),
        "they_pass_twin": _yes(passes(case, TWIN_SHARE, seed=seeds[3])) if is_simulated else None,
        "they_pass": least_noise_that_passes(case, seed=seeds[3]) if is_simulated else None,
    }, targets


def _closeness_cells(effort: Effort, place: int, key: str) -> Figures:
    case, seeds = _CLOSENESS[key], seeds_of(_GOOGLE_TABLE, place, 0, 2)
    runs = _GOOGLE_QUICK_RUNS if effort.is_quick else _NOISE_RUNS
    found, seconds = [], []
    for share, seed in zip((1.0, TWIN_SHARE), seeds, strict=True):
        started = time.process_time()
        found.append(closeness_check(case, share, runs=runs, seed=seed))
        seconds.append(time.process_time() - started)
    right, twin = found
    targets = [at_most("refuted", right.verdict is Verdict.REFUTED, 0)]
    if not effort.is_quick:
        targets.append(at_least("refuted twins", twin.is_refuted, 1))
    name, scale = str(_closeness_sampler(case, 1.0)), "scale" if case.noise == "laplace" else "standard deviation"
    return {
        "file": case.file,
        "case": case.name,
        "claim": f"{case.noise.capitalize()} noise, {scale} {_scale(case):.5g}",
        "on": name,
        "release": release_of("pydp"),
        "why": None,
        "note": None,
        "runs": None,
        "verdict": None,
        "bound": None,
        "resolution": None,
        "noise_on": name,
        "noise_claim": "law of the noise",
        "noise_runs": runs,
        "right": right.verdict.value,
        "right_bound": right.points[0].estimate / _scale(case),
        "twin": twin.verdict.value,
        "twin_bound": twin.points[0].estimate / _scale(case),
        "seconds": seconds[0],
        "twin_seconds": seconds[1],
        "their_samples": VOTES * case.samples,
        "their_seconds": VOTES * case.samples * _seconds_of_a_draw(_closeness_sampler(case, 1.0), []),
        "they_pass_twin": None,
        "they_pass": None,
    }, targets


def closeness_check(case: ClosenessCase, share: float, *, runs: int, seed: int) -> StatementResult:
    """Check the law of PyDP's noise for a case, or of noise with a smaller scale."""
    mechanism, law = _closeness_sampler(case, share), _law(case)
    return check_noise(mechanism, [], noise=law, answer=case.answer, runs=runs, alpha=ALPHA, seed=seed, jobs=1)


def _closeness_sampler(case: ClosenessCase, share: float) -> Repeated:
    made, answer = pydp_noise(case, case.change, share), case.answer
    return Repeated(name=f"PyDP {type(made).__name__}", prepare=lambda values: lambda: made.add_noise(answer))


def _seconds_of_a_draw(mechanism: Any, *datasets: Any) -> float:
    """Return the core-seconds of one output, the mean over the datasets."""
    rng, started = np.random.default_rng(0), time.process_time()
    for dataset in datasets:
        mechanism.sample(dataset, _TIMED, rng)
    return (time.process_time() - started) / (_TIMED * len(datasets))


def _law(case: ClosenessCase) -> Any:
    return LaplaceNoise(_scale(case)) if case.noise == "laplace" else GaussianNoise(_scale(case))


def _scale(case: ClosenessCase) -> float:
    return math.sqrt(case.variance / 2) if case.noise == "laplace" else math.sqrt(case.variance)


def _release_of(audited: Audited) -> str:
    return release_of("pydp") if isinstance(audited.mechanism, Repeated) else "–"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def summary(record: Record) -> str:
    """Return a table with the sums of each file of cases; empty without rows."""
    rows = list(record.tables.get("google", {}).values())
    lines = []
    for file in REJECTED:
        measured = [row for row in rows if row.cells["file"] == file]
        if measured:
            lines.append(_line(file, measured))
    if not lines:
        return ""
    method = (
        "Sums over the cases of each file. Core-minutes are of the two audits of right mechanisms and of that of the "
        "twin; theirs are the time in which the same releases would draw their number of outputs, extrapolated from "
        f"{_TIMED:,} draws. Noise that passes: the least share of the noise that the majority of their nine votes "
        "accepts, in a simulation on the exact laws of counts and sums."
    )
    header = (
        "file", "cases", "on PyDP", "refuted", "twins refuted", "runs on each dataset: release", "noise",
        "their outputs", "core-minutes", "of their outputs", "a vote is designed to reject", "twins that pass theirs",
        "noise that passes theirs",
    )  # fmt: skip
    return "#" + str(Table("By file", method, header, tuple(lines)))


def _line(file: str, rows: list[Row]) -> tuple[str, ...]:
    cells = [row.cells for row in rows]
    shares = [_number(one["they_pass"]) for one in cells if one["they_pass"] is not None]
    passed = [one["they_pass_twin"] for one in cells if one["they_pass_twin"] is not None]
    refuted = sum(Verdict.REFUTED.value in (one["verdict"], one["right"]) for one in cells)
    twins = sum(one["twin"] == Verdict.REFUTED.value for one in cells)
    return (
        file,
        str(len(rows)),
        str(sum(str(one["on"]).startswith("PyDP") for one in cells)),
        str(refuted),
        f"{twins} of {len(rows)}",
        *(_span([one[name] for one in cells]) for name in ("runs", "noise_runs", "their_samples")),
        f"{sum(_number(one['seconds']) + _number(one['twin_seconds']) for one in cells) / 60:.1f}",
        f"{sum(_number(one['their_seconds']) for one in cells) / 60:.0f}",
        REJECTED[file],
        f"{passed.count('yes')} of {len(passed)}" if passed else "–",
        f"{min(shares):.1%} to {max(shares):.1%}" if shares else "–",
    )


def _span(values: list[Any]) -> str:
    """Return the least and the largest of some numbers of runs; a dash where there are none."""
    known = sorted({int(value) for value in values if value is not None})
    ends = dict.fromkeys(known[:1] + known[-1:])
    return " to ".join(f"{value:,}" for value in ends) or "–"


def _number(value: Any) -> float:
    return 0.0 if value is None else float(value)


_BENCH = Bench(
    name="google",
    title="Cases",
    method=(
        f"Audits by values, alpha {SUITE_ALPHA:g} for all of right mechanisms together, {ALPHA:.2g} for each. Release: "
        "the output of the aggregation on the pair of the file, with an event that the audit searches. Noise: the same "
        "noise on a pair on which its claim is tight, with a known event, and with the runs that find a twin with 95% "
        "of it. Of means, deviations and quantiles, it is the noise of the reference mechanism's sums or counts. "
        "Cases of closeness check the law of the noise, and their figures are estimated scales as shares of the "
        "claimed one. Seconds are of one core, for the audits of right mechanisms. Three cases of standard deviations "
        "with Gaussian noise and many partitions have 5 of the file's 25 values of a user, since 25 values in one "
        "partition are five times the L₂ sensitivity."
    ),
    columns=columns(
        "file | case | claim | release of = on | not an aggregate of PyDP because = why | runs :, | verdict | "
        "lower bound = bound :.4g | detectable excess = resolution :.2g | noise of = noise_on | "
        "claim for one user, users = noise_claim | runs = noise_runs :, | verdict = right | "
        "lower bound = right_bound :.4g | twin | lower bound of the twin = twin_bound :.4g | seconds :.1f | "
        "seconds for their outputs = their_seconds :.0f | twin passes theirs = they_pass_twin | "
        "least noise that passes theirs = they_pass :.1%"
    ),
    names=(*_CASES, *_CLOSENESS),
    tasks=_google_tasks,
)


def _left_out() -> Iterable[str]:
    return left_out(("pydp",))


GOOGLE = Page(
    name="google",
    title="Google's statistical test cases",
    benches=(_BENCH,),
    left_out=_left_out,
    summary=summary,
)

# Suites of whole libraries: what they cover, and what they refute, with several seeds.

_SUITE_ALPHA: Final = 1e-4  # the default of `dpaudit suite`
_SUITE_SEEDS: Final = (0, 1, 2)
_MINUTES: Final = {
    "opendp": 12.0,
    "diffprivlib": 15.0,
    "pydp": 4.0,
    "pipeline-dp": 8.0,
}
_SUITE_QUICK, _QUICK_ONLY, _QUICK_MINUTES = "pydp, seed 0", r"numerical.*Laplace.*int", 0.05
_NAMES = tuple(f"{library}, seed {seed}" for library in _MINUTES for seed in _SUITE_SEEDS)


def _suite_tasks(effort: Effort) -> Iterator[Task]:
    for name in _NAMES:
        library, _, seed = name.partition(", seed ")
        if not effort.wants(name) or (effort.is_quick and name != _SUITE_QUICK):
            continue
        if not is_installed(library):
            if effort.only:
                raise OptionError(f"{library} cannot be imported; install it to measure its suite.")
            continue
        yield once(f"suite: {name}", _suite_cells, library, int(seed), effort)


def _suite_cells(library: str, seed: int, effort: Effort) -> Figures:
    minutes = effort.either(_QUICK_MINUTES, _MINUTES[library])
    selection = effort.either(_QUICK_ONLY, None)
    described = library_named(library)
    plan = plan_of(described, alpha=_SUITE_ALPHA, only=selection)
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
        f"`dpaudit suite` of the installed release, with alpha {_SUITE_ALPHA:g} for each suite. A suite has one "
        "worker for the stated minutes; what it reaches depends on the machine and on other work there. Not audited: "
        "callables that no form covers, that could not be audited, or that were not reached; `coverage.md` of a "
        "suite gives the reasons. Without a known cause: callables refuted by values that the findings do not "
        "describe."
    ),
    columns=columns(
        "release | seed | minutes :.3g | public callables = public | audited | audited as another = same | "
        "refuted by values = by_values | by low bits only = by_bits | not confirmed = doubtful | not audited = rest | "
        "points of the plan = points | points reached = reached | without a known cause = unknown"
    ),
    names=_NAMES,
    tasks=_suite_tasks,
)

_LIBRARY_ALPHA, _DEFECT_ALPHA = 1e-5, 1e-6
_LIBRARY_SEEDS, _QUICK_SEEDS, _LIBRARY_QUICK_RUNS = 5, 1, 5_000
_LIBRARY_QUICK = {
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
_LIBRARY_TABLE = {"opendp": 31, "diffprivlib": 32, "pydp": 33, "defects": 34}  # numbers for `seeds_of`


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
            if name in chosen and (not effort.is_quick or name in _LIBRARY_QUICK[library]):
                yield once(f"{library}: {name}", _library_cells, library, name, place, effort)

    return tasks


def _names(library: str) -> tuple[str, ...]:
    return tuple(subject.name for subject in _SUBJECTS[library]())


def _audited(library: str, name: str, runs: int, seed: int, bits: bool) -> tuple[AuditResult, float]:
    """Return an audit and its seconds. The subject is named, since objects of a library cannot be sent to a process."""
    return timed(lambda: _subject(library, name).audit(runs=runs, seed=seed, bits=bits, alpha=_LIBRARY_ALPHA))


def _library_cells(library: str, name: str, place: int, effort: Effort) -> Figures:
    subject = _subject(library, name)
    runs = min(subject.runs, effort.either(_LIBRARY_QUICK_RUNS, subject.runs))
    seeds = seeds_of(_LIBRARY_TABLE[library], place, 0, effort.either(_QUICK_SEEDS, _LIBRARY_SEEDS))
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
        if not effort.wants(defect.name) or (effort.is_quick and defect.name not in _LIBRARY_QUICK["defects"]):
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
    seeds = seeds_of(_LIBRARY_TABLE["defects"], place, 0, effort.either(_QUICK_SEEDS, _LIBRARY_SEEDS))
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
            f"Audits at alpha {_LIBRARY_ALPHA:g} with different seeds, by values and again with bits=True. Pairs are "
            "declared where the worst pair is known, and otherwise found by a search with as many executions as "
            "runs. No object is known to break its claim by values. Bounds are in the unit of the claim, from the "
            "smallest to the largest. Seconds of an audit include its search."
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

_GUIDED = guided_bench(_LIBRARY_QUICK["defects"][-1])

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
