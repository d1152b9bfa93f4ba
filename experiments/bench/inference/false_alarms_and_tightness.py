"""Benchmarks of whole audits where the truth is known: false alarms, tightness, runs to refutation."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import cast

import numpy as np

from ....audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.procedures.epsilon_lower import epsilon_lower
from ....mechanisms import LaplaceMechanism
from ..core.bench_json import CERTAIN, Column, Row, Target, Value
from ..core.effort import ALPHA, Bench, Effort, Task, batches, finished, once, seeds_of, spread
from .known_pairs import Subject, expected_bound, oracle_bound, probability, subjects

_KINDS = ("fixed size", "sequential")
_NAMES = tuple(subject.name for subject in subjects())

_ALARM_RUNS, _QUICK_ALARM_RUNS = (100_000, 300_000), (5_000, 500)  # fixed size, and at most; 300,000 have 50 looks
_LEAST_SHARE = 0.02  # at 100,000 runs; a test that hardly ever speaks would pass the other target
_NEAR_ALPHA = ("laplace", "geometric", "randomised-response", "gaussian-0.05", "gaussian-0.001")
_QUICK = ("laplace", "geometric", "randomised-response")
_BATCH, _WRITTEN_AFTER = 10, 20  # audits that a process does at a time, and batches between writing the row


@cache
def _subjects() -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """What became of audits of claims that hold."""

    audits: int = 0
    refuted: int = 0
    unhealthy: int = 0  # a health check failed
    looks: int = 1  # in the longest

    def plus(self, other: _Tally) -> _Tally:
        return _Tally(
            audits=self.audits + other.audits,
            refuted=self.refuted + other.refuted,
            unhealthy=self.unhealthy + other.unhealthy,
            looks=max(self.looks, other.looks),
        )


def _tally(name: str, runs: int, sequential: bool, seeds: range) -> _Tally:
    """Audits of one subject."""
    subject, done = _subjects()[name], _Tally()
    for seed in seeds:
        result = check(
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
        one = _Tally(
            audits=1, refuted=result.is_refuted, unhealthy=bool(result.findings), looks=max(1, len(result.looks))
        )
        done = done.plus(one)
    return done


def _alarm_tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_NAMES):
        for sequential in (False, True):
            if effort.wants(name) and (not effort.is_quick or name in _QUICK):
                key = f"{name}, {_KINDS[sequential]}"
                yield Task(key, partial(_alarms, effort, key, number, name, sequential))


def _alarms(effort: Effort, key: str, number: int, name: str, sequential: bool, former: Row | None) -> Iterator[Row]:
    """The row of one mechanism, again and again as audits are finished; a former one is added to."""
    runs = effort.either(_QUICK_ALARM_RUNS, _ALARM_RUNS)[sequential]
    started, done = time.perf_counter(), _Tally()
    if former is not None and former.cells["runs"] == runs:
        counted = {cell: former.cells[cell] for cell in ("audits", "refuted", "unhealthy", "looks")}
        done = _Tally(**cast(dict[str, int], counted))
        started -= former.seconds
        yield former
    wanted = effort.sequential_audits if sequential else effort.audits
    seeds = seeds_of(1, 2 * number + sequential, done.audits, max(0, wanted - done.audits))
    calls = [(name, runs, sequential, batch) for batch in batches(seeds, _BATCH)]
    for count, more in enumerate(spread(_tally, calls, effort.jobs), start=1):
        done = done.plus(more)
        if count % _WRITTEN_AFTER == 0 or count == len(calls):
            cells, targets = _alarm_cells(effort, name, sequential, runs, done)
            yield finished(key, cells, targets, time.perf_counter() - started)


def _alarm_cells(
    effort: Effort, name: str, sequential: bool, runs: int, done: _Tally
) -> tuple[dict[str, Value], list[Target]]:
    share = done.refuted / done.audits
    low, high = probability_limits(done.refuted, done.audits, alpha=0.05)
    certain = probability_limits(done.refuted, done.audits, alpha=CERTAIN)[0]
    targets = [Target(what="99.9% lower limit of the share", value=certain, sense="<=", limit=ALPHA)]
    if not sequential and name in _NEAR_ALPHA and not effort.is_quick:
        targets.append(Target(what="share", value=share, sense=">=", limit=_LEAST_SHARE))
    cells: dict[str, Value] = {
        "subject": name,
        "claim": str(_subjects()[name].claim),
        "kind": _KINDS[sequential],
        "runs": runs,
        "looks": done.looks,
        "audits": done.audits,
        "refuted": done.refuted,
        "unhealthy": done.unhealthy,
        "share": share,
        "low": low,
        "high": high,
    }
    return cells, targets


FALSE_ALARMS = Bench(
    name="false-alarms",
    title="False alarms where the claim holds exactly",
    method=(
        f"Audits of alpha {ALPHA:g} each, seeds all different, on pairs where the claim is attained: the share refuted "
        "may not exceed alpha. Interval: exact, 95%. A sequential audit may refute at any of its looks."
    ),
    columns=(
        Column("mechanism", "subject"),
        Column("claim", "claim"),
        Column("audit", "kind"),
        Column("runs", "runs", ","),
        Column("looks", "looks"),
        Column("audits", "audits", ","),
        Column("refuted", "refuted", ","),
        Column("share", "share", ".4f"),
        Column("from", "low", ".4f"),
        Column("to", "high", ".4f"),
    ),
    names=_NAMES,
    tasks=_alarm_tasks,
)


_TIGHT_RUNS, _JUDGED_RUNS, _LARGEST_RATIO = (10_000, 1_000_000, 10_000_000), 1_000_000, 1.10


def _bounds_of(name: str, runs: int, seeds: range) -> list[tuple[float, float, float]]:
    """For each seed (bound, two-limits bound on the same counts, bound at the expected hits of the chosen event)."""
    subject = _subjects()[name]
    law_x, law_y = subject.laws()
    found = []
    for seed in seeds:
        result = check(
            subject.mechanism,
            subject.x,
            subject.y,
            claim=subject.claim,
            runs=runs,
            alpha=ALPHA,
            seed=seed,
            bits=False,
            jobs=1,
        )
        counts, (law_p, law_q) = result.directed_counts, (law_x, law_y) if result.likelier_on == "x" else (law_y, law_x)
        p, q = probability(result.event, law_p), probability(result.event, law_q)
        two_limits = epsilon_lower(
            counts.hits_x,
            counts.runs_x,
            counts.hits_y,
            counts.runs_y,
            alpha=ALPHA,
            delta=subject.claim.delta if isinstance(subject.claim, ApproxDP) else 0.0,
            method="clopper-pearson",
        )
        chosen = expected_bound(result.directed_claim, p, q, counts.runs_x, counts.runs_y, alpha=ALPHA)
        found.append((result.bound, two_limits, chosen))
    return found


def _tightness(effort: Effort, name: str, runs: int, seeds: range) -> tuple[dict[str, Value], list[Target]]:
    subject = _subjects()[name]
    calls = [(name, runs, batch) for batch in batches(seeds, 1 if effort.is_quick else 5)]
    found = [triple for batch in spread(_bounds_of, calls, effort.jobs) for triple in batch]
    bound, two_limits, chosen = (statistics.median(side) for side in zip(*found, strict=True))
    truth, oracle = subject.claim.strength, oracle_bound(subject, runs, alpha=ALPHA)
    ratio = (truth - chosen) / (truth - oracle)
    cells: dict[str, Value] = {
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
    }
    if effort.is_quick or runs != _JUDGED_RUNS:
        return cells, []
    return cells, [Target(what="gap of chosen", value=ratio, sense="<=", limit=_LARGEST_RATIO)]


def _tightness_tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_NAMES):
        for place, runs in enumerate(effort.either(_TIGHT_RUNS[:1], _TIGHT_RUNS)):
            if effort.wants(name) and (not effort.is_quick or name in _QUICK):
                seeds = seeds_of(3, 10 * number + place, 0, effort.either(2, 50 if runs > _JUDGED_RUNS else 200))
                yield once(f"{name}, {runs}", _tightness, effort, name, runs, seeds)


TIGHTNESS = Bench(
    name="tightness",
    title="How much of what the counts could show is shown",
    method=(
        f"Bounds of alpha {ALPHA:g} on the claim's strength, which is the truth on these pairs. Best event: known from "
        "the exact laws, with every run counted and the expected hits. Chosen event: the one that the audit's pilot "
        "chose, with the runs left to count and the expected hits; median over audits, like the bounds from the hits "
        "themselves: the audit's own, and that of two Clopper-Pearson limits on the same hits. Gaps are the truth less "
        "a bound, as multiples of the gap of the best event; the medians of bounds from hits carry the hits' own noise."
    ),
    columns=(
        Column("mechanism", "subject"),
        Column("runs", "runs", ","),
        Column("audits", "audits"),
        Column("truth", "truth", ".4f"),
        Column("best event", "oracle", ".4f"),
        Column("chosen event", "chosen", ".4f"),
        Column("audit", "bound", ".4f"),
        Column("two limits", "two_limits", ".4f"),
        Column("gap of chosen", "ratio_chosen", ".3f"),
        Column("of audit", "ratio_bound", ".3f"),
        Column("of two limits", "ratio_two_limits", ".3f"),
    ),
    names=_NAMES,
    tasks=_tightness_tasks,
)


_CLAIMED = 1.0
_TRUTHS = (2.0, 1.5, 1.1, 1.05, 1.02, 1.01)
_CAP = 5_000_000
_MOST_MEDIAN = {2.0: 300.0, 1.05: 40_000.0}
_FIXED_TRUTH, _FIXED_SIZE, _LEAST_FOUND = 1.01, 1_000_000, 0.9


def _runs_to_refutation(truth: float, cap: int, sequential: bool, seeds: range) -> list[float]:
    """Runs on each dataset at which each audit refuted the claim; infinite where it did not."""
    taken = []
    for seed in seeds:
        result = check(
            LaplaceMechanism(truth),
            0.0,
            1.0,
            claim=PureDP(_CLAIMED),
            runs=cap,
            alpha=ALPHA,
            seed=seed,
            bits=False,
            jobs=1,
            sequential=sequential,
        )
        taken.append(float(result.runs) if result.is_refuted else math.inf)
    return taken


def _refutation(
    effort: Effort, truth: float, cap: int, sequential: bool, seeds: range
) -> tuple[dict[str, Value], list[Target]]:
    calls = [(truth, cap, sequential, batch) for batch in batches(seeds, 2)]
    taken = [runs for batch in spread(_runs_to_refutation, calls, effort.jobs) for runs in batch]
    found = sum(map(math.isfinite, taken)) / len(taken)
    # Order statistics: audits that were not refuted count as infinite.
    median, most = (float(np.quantile(taken, share, method="inverted_cdf")) for share in (0.5, 0.9))
    cells: dict[str, Value] = {
        "truth": truth,
        "kind": _KINDS[sequential],
        "audits": len(taken),
        "cap": cap,
        "found": found,
        "median": median if sequential else None,
        "most": most if sequential else None,
    }
    if not sequential:
        return cells, [Target(what="share refuted", value=found, sense=">=", limit=_LEAST_FOUND)]
    if truth not in _MOST_MEDIAN:
        return cells, []
    return cells, [Target(what="median", value=median, sense="<=", limit=_MOST_MEDIAN[truth])]


def _refutation_tasks(effort: Effort) -> Iterator[Task]:
    for number, truth in enumerate(_TRUTHS):
        if effort.wants(f"{truth:g}") and (not effort.is_quick or truth == _TRUTHS[0]):
            seeds = seeds_of(4, number, 0, effort.either(20, 100 if truth > 1.02 else 30))
            yield once(f"{truth:g}, sequential", _refutation, effort, truth, _CAP, True, seeds)
    if effort.wants("fixed") and not effort.is_quick:
        seeds = seeds_of(4, len(_TRUTHS), 0, 200)
        yield once(f"{_FIXED_TRUTH:g}, fixed size", _refutation, effort, _FIXED_TRUTH, _FIXED_SIZE, False, seeds)


REFUTATION = Bench(
    name="refutation",
    title="Runs to a refutation",
    method=(
        f"Laplace noise of the true epsilon, audited against a claim of {_CLAIMED:g} at alpha {ALPHA:g}; runs on each "
        "dataset until the claim is refuted, those included from which the first event is learned. Infinite: not at "
        "the cap."
    ),
    columns=(
        Column("true epsilon", "truth", "g"),
        Column("audit", "kind"),
        Column("audits", "audits"),
        Column("most runs", "cap", ","),
        Column("refuted", "found", ".3f"),
        Column("median runs", "median", ",.0f"),
        Column("90% of audits within", "most", ",.0f"),
    ),
    names=(*(f"{truth:g}" for truth in _TRUTHS), "fixed"),
    tasks=_refutation_tasks,
)
