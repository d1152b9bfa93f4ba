"""Whole audits of known pairs: false alarms and tightness."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial

from ....audit.claims.claim import ApproxDP
from ....audit.inference.binomial_tails import probability_limits
from ....audit.inference.guess_test import Guesses, guess_test
from ....audit.procedures.check import check
from ....audit.procedures.epsilon_lower import epsilon_lower
from ....audit.results.audit_result import AuditResult
from ....mechanisms import ScalarLaw
from ..core.bench_json import CERTAIN, Figures, Row, Value, at_least, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, counted, in_batches, once_beside, seeds_of
from .known_events import best_pairs, known_bound
from .known_pairs import Subject, expected_bound, oracle_bound, probability, subjects

_KINDS = ("fixed size", "sequential", "sequential, short")
_NAMES = tuple(subject.name for subject in subjects())

# Of each kind; 300,000 runs allow 50 looks, and 5,000 so many audits that a rate slightly above alpha shows.
_ALARM_RUNS, _QUICK_ALARM_RUNS = (100_000, 300_000, 5_000), (5_000, 500, 200)
_LEAST_SHARE = 0.02  # at 100,000 runs; a test that hardly ever refutes would meet the other target
_NEAR_ALPHA = ("laplace", "geometric", "randomised-response", "gaussian-0.05", "gaussian-0.001")
_QUICK = ("randomised-response",)
_BATCH = 20  # audits in a batch


@cache
def _subjects() -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects()}


def _audit(subject: Subject, runs: int, seed: int, *, sequential: bool = False) -> AuditResult:
    return check(
        subject.mechanism,
        subject.x,
        subject.y,
        claim=subject.claim,
        runs=runs,
        alpha=ALPHA,
        seed=seed,
        bits=False,
        jobs=1,
        sequential=sequential,
    )


def _alarms(name: str, runs: int, sequential: bool, seeds: range) -> Counter[str]:
    """Return the counts of audits, refutations and failed health checks, and the looks of the longest audit."""
    results = [_audit(_subjects()[name], runs, seed, sequential=sequential) for seed in seeds]
    return Counter(
        audits=len(results),
        refuted=sum(result.is_refuted for result in results),
        unhealthy=sum(bool(result.findings) for result in results),
        looks=max(max(1, len(result.looks)) for result in results),
    )


def _with_most_looks(one: Counter[str], other: Counter[str]) -> Counter[str]:
    both = one + other
    both["looks"] = max(one["looks"], other["looks"])
    return both


def _alarm_tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_NAMES):
        for kind in range(len(_KINDS)):
            if effort.wants(name) and (not effort.is_quick or name in _QUICK):
                key = f"{name}, {_KINDS[kind]}"
                yield Task(key, partial(_alarm_row, effort, key, number, name, kind))


def _alarm_row(effort: Effort, key: str, number: int, name: str, kind: int, former: Row | None) -> Iterator[Row]:
    runs = effort.either(_QUICK_ALARM_RUNS, _ALARM_RUNS)[kind]
    wanted = effort.sequential_audits if _KINDS[kind] == "sequential" else effort.audits
    return counted(
        key,
        partial(_alarms, name, runs, kind > 0),
        partial(_alarm_cells, effort, name, kind, runs),
        former if former is not None and former.cells["runs"] == runs else None,
        names=("audits", "refuted", "unhealthy", "looks"),
        seeds=lambda used: seeds_of(1, number + 20 * kind, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=effort.jobs,
        add=_with_most_looks,
    )


def _alarm_cells(effort: Effort, name: str, kind: int, runs: int, counts: Counter[str]) -> Figures:
    refuted, audits = counts["refuted"], counts["audits"]
    low, high = probability_limits(refuted, audits, alpha=0.05)
    certain = probability_limits(refuted, audits, alpha=CERTAIN)[0]
    targets = [at_most("99.9% lower limit of the false-alarm rate", certain, ALPHA)]
    if kind == 0 and name in _NEAR_ALPHA and not effort.is_quick:
        targets.append(at_least("false-alarm rate", refuted / audits, _LEAST_SHARE))
    cells: dict[str, Value] = {
        "subject": name,
        "claim": str(_subjects()[name].claim),
        "kind": _KINDS[kind],
        "runs": runs,
        "looks": counts["looks"],
        "audits": audits,
        "refuted": refuted,
        "unhealthy": counts["unhealthy"],
        "share": refuted / audits,
        "low": low,
        "high": high,
    }
    return cells, targets


FALSE_ALARMS = Bench(
    name="false-alarms",
    title="False alarms where the claim holds with equality",
    method=(
        f"Audits at alpha {ALPHA:g} with different seeds, on pairs that attain the claim; the refuted share must not "
        "exceed alpha. The limits of the share are exact. A sequential audit can refute at each of its looks."
    ),
    columns=columns(
        "mechanism = subject | claim | audit = kind | runs :, | looks | audits :, | refuted :, | "
        "false-alarm rate = share :.4f | 95% lower limit = low :.4f | 95% upper limit = high :.4f"
    ),
    names=_NAMES,
    tasks=_alarm_tasks,
)


_TIGHT_RUNS, _JUDGED_RUNS = (10_000, 1_000_000, 10_000_000), 1_000_000
# Relative to the best single event in one direction: both directions together beat it where both show the loss.
_LARGEST_RATIO = {
    "laplace": 0.86,
    "geometric": 0.90,
    "randomised-response": 0.90,
    "gaussian-0.05": 0.78,
    "gaussian-0.001": 0.78,
}
_LARGEST_RATIO_ELSEWHERE = 1.05
_KNOWN, _FEW = ("ratio_known", "ratio_shared", "ratio_left"), 15  # audits that show the alpha and the pilot of all


def _bounds_of(name: str, runs: int, seeds: range) -> list[tuple[float, float, float]]:
    """Return for each seed the bound, that of two limits, and the expected bound of the chosen event."""
    subject = _subjects()[name]
    law_x, law_y = subject.laws()
    found = []
    for seed in seeds:
        result = _audit(subject, runs, seed)
        counts, (law_p, law_q) = result.directed_counts, (law_x, law_y) if result.likelier_on == "x" else (law_y, law_x)
        two_limits = epsilon_lower(
            counts.hits_x,
            counts.runs_x,
            counts.hits_y,
            counts.runs_y,
            alpha=ALPHA,
            delta=subject.claim.delta if isinstance(subject.claim, ApproxDP) else 0.0,
            method="clopper-pearson",
        )
        found.append((result.bound, two_limits, _expected(result, law_p, law_q)))
    return found


def _expected(result: AuditResult, law_p: ScalarLaw, law_q: ScalarLaw) -> float:
    """Return the bound at the expected counts of the chosen event, or of both events."""
    alpha = dict(result.ledger.shares)["event test"]
    p, q = probability(result.event, law_p), probability(result.event, law_q)
    if result.opposite is None:
        counts = result.directed_counts  # an event that hardly occurs on one dataset has more runs there
        return expected_bound(result.directed_claim, p, q, counts.runs_x, counts.runs_y, alpha=alpha)
    p, q = p + probability(result.opposite.event, law_q), q + probability(result.opposite.event, law_p)
    runs = result.opposite.guesses.runs
    guesses = Guesses(right=round(0.5 * p * runs), wrong=round(0.5 * q * runs), runs=runs)
    return guess_test(guesses, result.claim, alpha=alpha)[1]


def _tightness(effort: Effort, name: str, runs: int, seeds: range) -> Figures:
    subject = _subjects()[name]
    found = in_batches(_bounds_of, (name, runs), seeds, 1 if effort.is_quick else 5, effort.jobs)
    bound, two_limits, chosen = (statistics.median(side) for side in zip(*found, strict=True))
    truth, oracle = subject.claim.strength, oracle_bound(subject, runs, alpha=ALPHA)
    ratio = (truth - chosen) / (truth - oracle)
    is_judged, limit = not effort.is_quick and runs == _JUDGED_RUNS, _LARGEST_RATIO.get(name, _LARGEST_RATIO_ELSEWHERE)
    return {
        "subject": name,
        "runs": runs,
        "audits": len(seeds),
        "truth": truth,
        "oracle": oracle,
        "chosen": chosen,
        "bound": bound,
        "two_limits": two_limits,
        "ratio_chosen": ratio,
        "ratio_bound": (truth - bound) / (truth - oracle),
        "ratio_two_limits": (truth - two_limits) / (truth - oracle),
    }, [at_most("relative gap of the chosen event", ratio, limit)] if is_judged else []


def _known(effort: Effort, name: str, runs: int, seeds: range) -> dict[str, Value]:
    """Relative gaps of the events that are best by the exact laws, with all that the audits' test and pilot leave."""
    subject = _subjects()[name]
    audits = [_audit(subject, runs, seed) for seed in seeds[: effort.either(1, _FEW)]]
    alpha = statistics.median_low([dict(audit.ledger.shares)["event test"] for audit in audits])
    left = runs - statistics.median_low([audit.pilot_runs for audit in audits])
    truth, oracle = subject.claim.strength, oracle_bound(subject, runs, alpha=ALPHA)
    bounds = {
        "known": _known_bound(subject, runs, ALPHA, is_whole=True),
        "shared": _known_bound(subject, runs, alpha, is_whole=False),
        "left": _known_bound(subject, left, alpha, is_whole=False),
    }
    return {f"ratio_{cell}": (truth - bound) / (truth - oracle) for cell, bound in bounds.items()}


def _known_bound(subject: Subject, runs: int, alpha: float, *, is_whole: bool) -> float:
    """Return the bound of the best event, or of the best two where that is larger, by their exact laws."""
    pairs = best_pairs(*subject.laws())
    both = known_bound(pairs, subject.claim, runs, alpha=alpha, is_whole=is_whole)[0]
    return max(oracle_bound(subject, runs, alpha=alpha), both)


def _tightness_tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_NAMES):
        for place, runs in enumerate(effort.either(_TIGHT_RUNS[:1], _TIGHT_RUNS)):
            if effort.wants(name) and (not effort.is_quick or name in _QUICK):
                seeds = seeds_of(3, 10 * number + place, 0, effort.either(1, 50 if runs > _JUDGED_RUNS else 200))
                yield once_beside(f"{name}, {runs}", _tightness, _known, _KNOWN, effort, name, runs, seeds)


TIGHTNESS = Bench(
    name="tightness",
    title="Tightness of the lower bounds",
    method=(
        f"Lower bounds at alpha {ALPHA:g} on pairs where the claim holds with equality, so that the truth is its "
        "strength. Best event: one event in one direction, known from the exact laws, with every run counted and the "
        "expected hits. Chosen event: the event or the two events of the audit's pilot, with the remaining runs, the "
        "expected hits and the alpha of their test, median over audits. Known events: the same for the best event or "
        "the best two, known from the exact laws, on as many runs on x as on y; with every run and all of alpha, with "
        "the alpha and the coins of the audits' test, and with the runs that their pilots left too, so that what "
        "remains is the choice. Audit and "
        "two limits: medians of the audit's bound and of the bound by two Clopper-Pearson limits on the same hits. A "
        "gap is the truth less a bound, relative to the gap of the best event. Medians of bounds from hits include the "
        "noise of the hits."
    ),
    columns=columns(
        "mechanism = subject | runs :, | audits | truth :.4f | bound of the best event = oracle :.4f | "
        "bound of the chosen event = chosen :.4f | bound of the audit = bound :.4f | "
        "bound by two limits = two_limits :.4f | relative gap of known events = ratio_known :.3f | "
        "with the alpha of the test = ratio_shared :.3f | with the runs left = ratio_left :.3f | "
        "relative gap of the chosen event = ratio_chosen :.3f | "
        "relative gap of the audit = ratio_bound :.3f | relative gap of two limits = ratio_two_limits :.3f"
    ),
    names=_NAMES,
    tasks=_tightness_tasks,
)
