"""Statistics: false alarms, exact size, tightness, runs to a refutation, coverage, dependence and power."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ....audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ....audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ....audit.events.events import Event
from ....audit.inference.binomial_tails import probability_limits
from ....audit.inference.boundary_test import Counts, p_value
from ....audit.inference.guess_test import Guesses, guess_test
from ....audit.inference.ratio_intervals import maximum_interval
from ....audit.procedures.check import check
from ....audit.procedures.epsilon_lower import epsilon_lower
from ....audit.results.audit_result import FINAL_SHARE, AuditResult
from ....mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism, RandomisedResponse, ScalarLaw
from ...published.noisy_answers import NoisyAnswers
from ..core.bench_json import CERTAIN, Column, Figures, Row, Value, at_least, at_most, columns
from ..core.page import (
    ALPHA,
    Bench,
    Effort,
    Page,
    Task,
    batches,
    counted,
    in_batches,
    once,
    once_beside,
    seeds_of,
    spread,
)
from .dependent_runs import CHECKS, DEPENDENCE
from .known_events import (
    Subject,
    best_pairs,
    expected_bound,
    known_bound,
    known_share,
    oracle_bound,
    probability,
    runs_of_best_bet,
    runs_of_known_events,
    subjects,
)

# Whole audits of known pairs: false alarms and tightness.

_TIGHTNESS_KINDS = ("fixed size", "sequential", "sequential, short")
_NAMES = tuple(subject.name for subject in subjects())

# Of each kind; 300,000 runs allow 50 looks, and 5,000 so many audits that a rate slightly above alpha shows.
_ALARM_RUNS, _QUICK_ALARM_RUNS = (100_000, 300_000, 5_000), (5_000, 500, 200)
_LEAST_SHARE = 0.02  # at 100,000 runs; a test that hardly ever refutes would meet the other target
_NEAR_ALPHA = ("laplace", "geometric", "randomised-response", "gaussian-0.05", "gaussian-0.001")
_TIGHTNESS_QUICK = ("randomised-response",)
_TIGHTNESS_BATCH = 20  # audits in a batch


@cache
def _subjects() -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects()}


def _tightness_audit(subject: Subject, runs: int, seed: int, *, sequential: bool = False) -> AuditResult:
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
    results = [_tightness_audit(_subjects()[name], runs, seed, sequential=sequential) for seed in seeds]
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
        for kind in range(len(_TIGHTNESS_KINDS)):
            if effort.wants(name) and (not effort.is_quick or name in _TIGHTNESS_QUICK):
                key = f"{name}, {_TIGHTNESS_KINDS[kind]}"
                yield Task(key, partial(_alarm_row, effort, key, number, name, kind))


def _alarm_row(effort: Effort, key: str, number: int, name: str, kind: int, former: Row | None) -> Iterator[Row]:
    runs = effort.either(_QUICK_ALARM_RUNS, _ALARM_RUNS)[kind]
    wanted = effort.sequential_audits if _TIGHTNESS_KINDS[kind] == "sequential" else effort.audits
    return counted(
        key,
        partial(_alarms, name, runs, kind > 0),
        partial(_alarm_cells, effort, name, kind, runs),
        former if former is not None and former.cells["runs"] == runs else None,
        names=("audits", "refuted", "unhealthy", "looks"),
        seeds=lambda used: seeds_of(1, number + 20 * kind, used, max(0, wanted - used)),
        batch=_TIGHTNESS_BATCH,
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
        "kind": _TIGHTNESS_KINDS[kind],
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
_TIGHTNESS_KNOWN, _FEW = (
    ("ratio_known", "ratio_shared", "ratio_left"),
    15,
)  # audits that show the alpha and the pilot of all


def _bounds_of(name: str, runs: int, seeds: range) -> list[tuple[float, float, float]]:
    """Return for each seed the bound, that of two limits, and the expected bound of the chosen event."""
    subject = _subjects()[name]
    law_x, law_y = subject.laws()
    found = []
    for seed in seeds:
        result = _tightness_audit(subject, runs, seed)
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


def _tightness_known(effort: Effort, name: str, runs: int, seeds: range) -> dict[str, Value]:
    """Relative gaps of the events that are best by the exact laws, with all that the audits' test and pilot leave."""
    subject = _subjects()[name]
    audits = [_tightness_audit(subject, runs, seed) for seed in seeds[: effort.either(1, _FEW)]]
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
            if effort.wants(name) and (not effort.is_quick or name in _TIGHTNESS_QUICK):
                seeds = seeds_of(3, 10 * number + place, 0, effort.either(1, 50 if runs > _JUDGED_RUNS else 200))
                yield once_beside(
                    f"{name}, {runs}", _tightness, _tightness_known, _TIGHTNESS_KNOWN, effort, name, runs, seeds
                )


TIGHTNESS = Bench(
    name="tightness",
    title="Tightness of the lower bounds",
    method=(
        f"Lower bounds at alpha {ALPHA:g} on pairs where the claim holds with equality, so that the truth is its "
        "strength. Best event: one event in one direction, known from the exact laws, with every run counted and the "
        "expected hits. Chosen event: the event or the two events of the audit's pilot, with the remaining runs, the "
        "expected hits and the alpha of their test, median over audits. Known events: the same for the best event or "
        "the best two, known from the exact laws, on as many runs on x as on y; with every run and all of alpha, "
        "with the alpha and the coins of the audits' test, and with the runs that their pilots left too, so that "
        "what remains is the choice. Audit and two limits: medians of the audit's bound and of the bound by two "
        "Clopper-Pearson limits on the same hits. A gap is the truth less a bound, relative to the gap of the best "
        "event. Medians of bounds from hits include the noise of the hits."
    ),
    columns=columns(
        "mechanism = subject | runs :, | audits | truth :.4f | bound of the best event = oracle :.4f | bound of the "
        "chosen event = chosen :.4f | bound of the audit = bound :.4f | bound by two limits = two_limits :.4f | "
        "relative gap of known events = ratio_known :.3f | with the alpha of the test = ratio_shared :.3f | with the "
        "runs left = ratio_left :.3f | relative gap of the chosen event = ratio_chosen :.3f | relative gap of the "
        "audit = ratio_bound :.3f | relative gap of two limits = ratio_two_limits :.3f"
    ),
    names=_NAMES,
    tasks=_tightness_tasks,
)

# Inference on counts: exact sizes by enumeration, and coverage of the two-sided interval.

Array = npt.NDArray[np.float64]

_RUNS = (5, 20, 100)
_SIZE_ALPHAS = (0.05, 0.01)
_CLAIMS: dict[str, Claim] = {
    "equal": PureDP(0.0),
    "pure": PureDP(1.0),
    "pure-3": PureDP(3.0),
    "approximate": ApproxDP(1.0, 0.05),
    "gaussian": GaussianDP(1.0),
    "renyi": RenyiDP(2.0, 0.3),
    "probability-preservation": ProbabilityPreservation(2.0, 0.3),
    "n-fold": NFoldComposition(0.1, 4),
    "n-fold-1": NFoldComposition(0.02, 1),
}
_QUICK_CLAIMS = ("pure",)


def smallest_refuted(n: int, m: int, claim: Claim, alpha: float) -> Array:
    """Return for each y from 0 to m the fewest hits x out of n that refute the claim, n + 1 where none do.

    Bisection is valid because the p-value does not increase with x.
    """

    def is_refuted(x: int, y: int) -> bool:
        return p_value(Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m), claim, alpha=alpha) <= alpha

    found = np.empty(m + 1)
    for y in range(m + 1):
        low, high = -1, n + 1  # low is not refuted; high is refuted, n + 1 by convention
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_refuted(middle, y) else (middle, high)
        found[y] = high
    return found


def rates_on_the_boundary() -> tuple[Array, Array]:
    """Return q and 1 − q, evenly on the arcsine scale and down to 1e-12 from both ends."""
    angle = np.linspace(0.0, math.pi / 2, 2_001)[1:-1]
    end = np.geomspace(1e-12, 1e-4, 161)
    return np.concatenate([end, np.sin(angle) ** 2, 1 - end]), np.concatenate([1 - end, np.cos(angle) ** 2, end])


def exact_size(critical: Array, n: int, claim: Claim) -> tuple[float, float]:
    """Return the largest probability of {X ≥ critical(Y)} with (p, q) on the claim's boundary, and its q.

    Tails are computed from the smaller of a probability and its complement.
    """
    from scipy.stats import binom  # takes long to import

    m = len(critical) - 1
    q, q_rest = rates_on_the_boundary()
    p, p_rest = claim.max_power(q, q_rest)
    y = np.arange(m + 1)[:, None]
    on_y = np.where(q < 0.5, binom.pmf(y, m, np.minimum(q, 0.5)), binom.pmf(m - y, m, np.minimum(q_rest, 0.5)))
    least = critical[:, None]
    on_x = np.where(
        p < 0.5, binom.sf(least - 1, n, np.minimum(p, 0.5)), binom.cdf(n - least, n, np.minimum(p_rest, 0.5))
    )
    size = (on_x * on_y).sum(axis=0)
    worst = int(np.argmax(size))
    return float(size[worst]), float(q[worst])


def _size_of(name: str, alpha: float, n: int, m: int) -> tuple[float, float]:
    return exact_size(smallest_refuted(n, m, _CLAIMS[name], alpha), n, _CLAIMS[name])


def _sizes(effort: Effort, name: str, alpha: float) -> Figures:
    pairs = list(itertools.product(effort.either(_RUNS[:2], _RUNS), repeat=2))
    found = list(spread(_size_of, [(name, alpha, n, m) for n, m in pairs], effort.jobs))
    largest, where = max(found)
    cells: dict[str, Value] = {
        "claim": str(_CLAIMS[name]),
        "alpha": alpha,
        **{f"{n}x{m}": size for (n, m), (size, _) in zip(pairs, found, strict=True)},
        "largest": largest,
        "where": where,
    }
    return cells, [at_most("largest size", largest, alpha)]


def _size_tasks(effort: Effort) -> Iterator[Task]:
    for alpha, name in itertools.product(effort.either(_SIZE_ALPHAS[:1], _SIZE_ALPHAS), _CLAIMS):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK_CLAIMS):
            yield once(f"{name}, {alpha:g}", _sizes, effort, name, alpha)


SIZES = Bench(
    name="sizes",
    title="Exact size of the joint test",
    method=(
        "Probability that the test refutes a claim that holds with equality, summed over all outcomes and maximised "
        f"over {len(rates_on_the_boundary()[0]):,} values of q, down to 1e-12 from both ends. The size must not exceed "
        "alpha. Columns n × m: runs on x × runs on y."
    ),
    columns=(
        *columns("claim | alpha :g"),
        *(Column(f"{n} × {m}", f"{n}x{m}", ".4f") for n, m in itertools.product(_RUNS, repeat=2)),
        *columns("largest size = largest :.4f | q of the largest size = where :.3g"),
    ),
    names=tuple(_CLAIMS),
    tasks=_size_tasks,
)


_OUTCOMES, _COVERAGE_RUNS = (5, 50), (10_000, 1_000_000)
_LAWS = ("distinct", "tied")


def outcome_laws(kind: str, outcomes: int) -> tuple[Array, Array]:
    """Return the probabilities on x and y: log ratios evenly spread over [−1, 1] before normalisation, or all ±1."""
    if kind == "distinct":
        q = np.full(outcomes, 1.0 / outcomes)
        weights = np.exp(np.linspace(-1.0, 1.0, outcomes))
        return weights / weights.sum(), q
    is_up = np.arange(outcomes) % 2 == 0
    share_p, share_q = (
        math.e / (1 + math.e),
        1 / (1 + math.e),
    )  # of the outcomes likelier on x, in total
    up, down = int(is_up.sum()), int((~is_up).sum())
    return np.where(is_up, share_p / up, (1 - share_p) / down), np.where(is_up, share_q / up, (1 - share_q) / down)


def _intervals_of(kind: str, outcomes: int, runs: int, seeds: range) -> list[tuple[bool, float]]:
    """Return for each seed whether the interval covers the largest absolute log ratio, and its width."""
    p, q = outcome_laws(kind, outcomes)
    truth = float(np.abs(np.log(p) - np.log(q)).max())
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        interval = maximum_interval(rng.multinomial(runs, p), runs, rng.multinomial(runs, q), runs, alpha=ALPHA)
        found.append((interval.lower <= truth <= interval.upper, interval.upper - interval.lower))
    return found


def _coverage(effort: Effort, kind: str, outcomes: int, runs: int, seeds: range) -> Figures:
    found = in_batches(_intervals_of, (kind, outcomes, runs), seeds, 50, effort.jobs)
    covered = sum(holds for holds, _ in found)
    low, high = probability_limits(covered, len(found), alpha=0.05)
    cells: dict[str, Value] = {
        "law": kind,
        "outcomes": outcomes,
        "runs": runs,
        "repetitions": len(found),
        "covered": covered,
        "share": covered / len(found),
        "low": low,
        "high": high,
        "width": statistics.median(width for _, width in found),
    }
    certain = probability_limits(covered, len(found), alpha=CERTAIN)[1]
    return cells, [at_least("99.9% upper limit of the coverage", certain, 1 - ALPHA)]


def _coverage_tasks(effort: Effort) -> Iterator[Task]:
    for number, (kind, outcomes, runs) in enumerate(itertools.product(_LAWS, _OUTCOMES, _COVERAGE_RUNS)):
        if effort.wants(f"{kind}-{outcomes}") and (number == 0 or not effort.is_quick):
            seeds = seeds_of(5, number, 0, effort.either(30, 2_000))
            yield once(f"{kind}, {outcomes}, {runs}", _coverage, effort, kind, outcomes, runs, seeds)


COVERAGE = Bench(
    name="coverage",
    title="Coverage of the two-sided interval for the largest log ratio",
    method=(
        f"Intervals of alpha {ALPHA:g} for the largest absolute log ratio over all outcomes. Distinct log ratios are "
        "evenly spread and have one maximum; tied log ratios are 1 or −1 for every outcome. The limits of the coverage "
        "are exact."
    ),
    columns=columns(
        "log ratios = law | outcomes | runs :, | repetitions :, | coverage = share :.4f | 95% lower limit = low :.4f | "
        "95% upper limit = high :.4f | median width = width :.4g"
    ),
    names=tuple(f"{kind}-{outcomes}" for kind in _LAWS for outcomes in _OUTCOMES),
    tasks=_coverage_tasks,
)

# Runs until audits refute a claim, by how far the truth exceeds it, for several kinds of mechanism.

_CLAIMED = 1.0
_TRUTHS = (2.0, 1.5, 1.1, 1.05, 1.01)
_CAP = 1_000_000
_FIXED_TRUTH, _FIXED_SIZE, _LEAST_FOUND = 1.01, 500_000, 0.95
_FLAT = (0.0,) * 10
_REFUTATION_AUDITS, _REFUTATION_BATCH = 200, 5
_SIMULATED = (3, 400)  # simulated audits, in the quick form and in the full one
_REFUTATION_KNOWN = ("known_found", "known_laws", "known_events")


@dataclass(frozen=True, slots=True)
class Kind:
    """A mechanism whose true epsilon is given, with its pair and claim."""

    name: str

    @property
    def claim(self) -> Claim:
        delta = {"gaussian .05": 0.05, "gaussian .001": 0.001}.get(self.name)
        return PureDP(_CLAIMED) if delta is None else ApproxDP(_CLAIMED, delta)

    @property
    def pair(self) -> tuple[Any, Any]:
        if self.name == "vector of 10":
            return _FLAT, (1.0, *_FLAT[1:])
        return (0, 1) if self.name in ("geometric", "randomised response") else (0.0, 1.0)

    def mechanism(self, truth: float) -> Any:
        match self.name:
            case "laplace":
                return LaplaceMechanism(truth)
            case "gaussian .05":
                return GaussianMechanism(truth, 0.05)
            case "gaussian .001":
                return GaussianMechanism(truth, 0.001)
            case "geometric":
                return GeometricMechanism(truth)
            case "randomised response":
                return RandomisedResponse(truth)
        return NoisyAnswers(PureDP(truth), scale=1.0 / truth)

    def laws(self, truth: float) -> tuple[ScalarLaw, ScalarLaw]:
        """Laws of the part of the output that differs between the datasets."""
        if self.name == "vector of 10":
            return Kind("laplace").laws(truth)
        mechanism, (x, y) = self.mechanism(truth), self.pair
        return mechanism.law(x), mechanism.law(y)


KINDS = ("laplace", "gaussian .05", "gaussian .001", "randomised response", "geometric", "vector of 10")
_AUDIT_KINDS = ("default", "all of alpha")
_MOST_MEDIAN = {
    "default": dict(zip(_TRUTHS, (100.0, 250.0, 5_000.0, 17_500.0, 375_000.0), strict=True)),
    "all of alpha": dict(zip(_TRUTHS, (90.0, 230.0, 4_300.0, 14_500.0, 340_000.0), strict=True)),
}


def _taken(name: str, truth: float, runs: int, kind: str, seeds: range) -> list[float]:
    """Return the runs on each dataset at which each audit refuted the claim; infinite without a refutation."""
    subject = Kind(name)
    results = (
        check(
            subject.mechanism(truth),
            *subject.pair,
            claim=subject.claim,
            runs=runs,
            alpha=ALPHA,
            seed=seed,
            bits=False,
            jobs=1,
            sequential=kind != "fixed",
            seconds=math.inf if kind == "all of alpha" else None,
        )
        for seed in seeds
    )
    return [float(result.runs) if result.is_refuted else math.inf for result in results]


def _quantile(taken: list[float] | npt.NDArray[np.float64], share: float) -> float:
    """The order statistic, so that audits without a refutation can count as infinite."""
    return float(np.quantile(taken, share, method="inverted_cdf"))


def _cells(effort: Effort, name: str, truth: float, kind: str, seeds: range) -> Figures:
    runs = _FIXED_SIZE if kind == "fixed" else _CAP
    taken = in_batches(_taken, (name, truth, runs, kind), seeds, _REFUTATION_BATCH, effort.jobs)
    found = sum(map(math.isfinite, taken)) / len(taken)
    median, most = _quantile(taken, 0.5), _quantile(taken, 0.9)
    targets = []
    if name == "laplace" and not effort.is_quick:
        if kind == "fixed":
            targets = [at_least("refuted share", found, _LEAST_FOUND)]
        else:
            targets = [at_most("median runs", median, _MOST_MEDIAN[kind][truth])]
    return {
        "name": name,
        "truth": truth,
        "kind": kind,
        "audits": len(taken),
        "runs": runs,
        "found": found,
        "median": None if kind == "fixed" else median,
        "most": None if kind == "fixed" else most,
    }, targets


def _refutation_known(effort: Effort, name: str, truth: float, kind: str, seeds: range) -> dict[str, Value]:
    """Figures of simulated audits that know the laws, or the two best events."""
    subject, audits = Kind(name), effort.either(*_SIMULATED)
    pairs, claim = best_pairs(*subject.laws(truth)), subject.claim
    if kind == "fixed":
        pair = known_bound(pairs, claim, _FIXED_SIZE, alpha=ALPHA)[1]
        share = known_share(pair, claim, _FIXED_SIZE, alpha=ALPHA, audits=audits, seed=seeds[0])
        return {"known_found": share, "known_laws": None, "known_events": None}
    final = FINAL_SHARE * ALPHA if kind == "default" else 0.0
    errors = {"alpha": ALPHA - final, "final_alpha": final}
    laws, events = (
        simulated(pairs, claim, _CAP, **errors, audits=audits, seed=seeds[0])
        for simulated in (runs_of_best_bet, runs_of_known_events)
    )
    return {"known_found": None, "known_laws": _quantile(laws, 0.5), "known_events": _quantile(events, 0.5)}


def _refutation_tasks(effort: Effort) -> Iterator[Task]:
    audits = effort.either(3, _REFUTATION_AUDITS)
    for row, name in enumerate(KINDS):
        if not effort.wants(name) or (effort.is_quick and name != "laplace"):
            continue
        for place, truth in enumerate(effort.either(_TRUTHS[:1], _TRUTHS)):
            for number, kind in enumerate(_AUDIT_KINDS):
                seeds = seeds_of(4, row, 10_000 * (2 * place + number), audits)
                yield _row(effort, name, truth, kind, seeds)
        if not effort.is_quick:
            seeds = seeds_of(4, row, 10_000 * 20, audits)
            yield _row(effort, name, _FIXED_TRUTH, "fixed", seeds)


def _row(effort: Effort, name: str, truth: float, kind: str, seeds: range) -> Task:
    return once_beside(
        f"{name}, {truth:g}, {kind}", _cells, _refutation_known, _REFUTATION_KNOWN, effort, name, truth, kind, seeds
    )


REFUTATION = Bench(
    name="refutation",
    title="Runs to a refutation",
    method=(
        f"Mechanisms of the true ε stated, audited against the claim ε = {_CLAIMED:g} (δ as stated) at alpha "
        f"{ALPHA:g}. Default: `check(..., sequential=True)`, which bets with half of alpha and ends with a final test "
        f'after {_CAP:,} runs. All of alpha: `seconds=float("inf")`, without a final test. Fixed: a fixed number of '
        "runs. Runs on each dataset until the refutation include those from which events are learned. Infinite: no "
        f"refutation within the runs. Known events: {_SIMULATED[1]} simulated audits with the same bets, looks and "
        "final test, which know from the first run the two events on which bets win most. Known laws: the same with a "
        "single bet of the best size, on runs of a dataset drawn by coin, and with a look after each hundredth of the "
        "runs. Fixed with known events: a test of all runs of both best events, with all of alpha."
    ),
    columns=columns(
        "mechanism = name | true ε = truth :g | audit = kind | audits | maximum runs = runs :, | "
        "refuted share = found :.3f | median runs = median :,.0f | 90% quantile of runs = most :,.0f | "
        "refuted share, known events = known_found :.3f | median runs, known events = known_events :,.0f | "
        "median runs, known laws = known_laws :,.0f"
    ),
    names=KINDS,
    tasks=_refutation_tasks,
)

# Power of audits at the detectable excess that they state, for every kind of claim.

_POWER = 0.95
_POWER_ALPHAS = (0.05, 1e-5)
_POWER_KINDS = ("fixed size", "sequential")
_STATING, _QUICK_STATING, _POWER_AUDITS, _QUICK_AUDITS = 20, 1, 200, 3
_MORE_AUDITS = 1_000  # in all, where fewer leave it open whether the stated power is reached
_LEAK = 50.0  # far outside standard normal noise
_START = 0.3  # probability below the interval that is likelier


@dataclass(frozen=True, slots=True)
class NormalNoise:
    """Gaussian noise of scale 1/μ, added to the answer."""

    mu: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        return answer + rng.normal(scale=1.0 / self.mu, size=size)


@dataclass(frozen=True, slots=True)
class RareOutcome:
    """Noise that is independent of the answer, with a rare output that is e^ε times likelier for 1 than for 0.

    Its frequency, the mean of both probabilities, is the same for every ε: excesses are stated for an event as frequent
    as the tested one.
    """

    frequency: float
    epsilon: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        chance = 2.0 * self.frequency * expit(self.epsilon if answer else -self.epsilon)
        return np.where(rng.random(size) < chance, _LEAK, rng.normal(size=size))


@dataclass(frozen=True, slots=True)
class LikelierPart(RareOutcome):
    """The same with a part of the noise in place of the rare output: one of five outcomes, or an interval."""

    is_interval: bool = False

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        is_in = RareOutcome.sample(self, answer, size, rng) == _LEAK
        if not self.is_interval:
            return np.where(is_in, 0, rng.integers(1, 5, size))
        inside, outside = _START + self.frequency * rng.random(size), (1.0 - self.frequency) * rng.random(size)
        return ndtri(np.where(is_in, inside, outside + self.frequency * (outside >= _START)))


@dataclass(frozen=True, slots=True)
class ThreeNumbers:
    """The answer with Laplace noise, three times, that together is ε-DP."""

    epsilon: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        return answer / 3.0 + rng.laplace(scale=1.0 / self.epsilon, size=(size, 3))


@dataclass(frozen=True, slots=True)
class _Subject:
    """Claim, mechanisms that attain each strength of its family on the pair 1 and 0, and runs of an audit."""

    name: str
    claim: Claim
    of_strength: Callable[[float], Any]
    runs: int
    is_meant: Callable[[Event], bool] = lambda event: True


def _is_rare_outcome(event: Event) -> bool:
    """Return whether an event separates the rare output from the noise."""
    is_in = event.contains(np.append(np.linspace(-2.05, 1.95, 9), _LEAK))
    return bool(is_in[-1]) != bool(is_in[:-1].any()) and len(set(is_in[:-1].tolist())) == 1


_SUBJECTS = {
    each.name: each
    for each in (
        _Subject("pure, Laplace", PureDP(1.0), LaplaceMechanism, 50_000),
        _Subject("pure, randomised response", PureDP(1.0), RandomisedResponse, 50_000),
        _Subject("delta 1e-3, Gaussian", ApproxDP(1.0, 1e-3), lambda s: GaussianMechanism(s, 1e-3), 50_000),
        _Subject("delta .05, Gaussian", ApproxDP(1.0, 0.05), lambda s: GaussianMechanism(s, 0.05), 50_000),
        _Subject("delta 1e-6, Laplace", ApproxDP(1.0, 1e-6), LaplaceMechanism, 50_000),
        _Subject("mu-GDP, Gaussian", GaussianDP(1.0), NormalNoise, 50_000),
        _Subject("zCDP, Gaussian", ZeroConcentratedDP(0.5), lambda s: NormalNoise(math.sqrt(2.0 * s)), 50_000),
        _Subject("Rényi DP, Gaussian", RenyiDP(4.0, 1.0), lambda s: NormalNoise(math.sqrt(s / 2.0)), 50_000),
        _Subject("pure, rare leak .01", PureDP(1.0), lambda s: RareOutcome(0.01, s), 50_000, _is_rare_outcome),
        _Subject("pure, rare leak .001", PureDP(1.0), lambda s: RareOutcome(0.001, s), 500_000, _is_rare_outcome),
        _Subject("pure, leak .05", PureDP(1.0), lambda s: RareOutcome(0.05, s), 20_000, _is_rare_outcome),
        _Subject("pure, outcome .2", PureDP(1.0), lambda s: LikelierPart(0.2, s), 20_000),
        _Subject("pure, interval .05", PureDP(1.0), lambda s: LikelierPart(0.05, s, is_interval=True), 20_000),
        _Subject("pure, three numbers", PureDP(1.0), ThreeNumbers, 20_000),
    )
}
_POWER_QUICK = ("pure, Laplace",)


def _power_audit(subject: _Subject, excess: float, sequential: bool, alpha: float, seed: int) -> AuditResult:
    return check(
        subject.of_strength(subject.claim.strength + excess),
        1,
        0,
        claim=subject.claim,
        runs=subject.runs,
        alpha=alpha,
        power=_POWER,
        seed=seed,
        bits=False,
        jobs=1,
        sequential=sequential,
    )


def _stated(name: str, sequential: bool, alpha: float, seeds: range) -> list[float]:
    """Return the detectable excesses that audits of the claim, held with equality, state for the intended event."""
    results = [_power_audit(_SUBJECTS[name], 0.0, sequential, alpha, seed) for seed in seeds]
    return [result.resolution for result in results if _SUBJECTS[name].is_meant(result.event)]


def _found(name: str, excess: float, sequential: bool, alpha: float, seeds: range) -> int:
    """Return the number of audits that refute a mechanism with the given excess."""
    return sum(_power_audit(_SUBJECTS[name], excess, sequential, alpha, seed).is_refuted for seed in seeds)


def _count(effort: Effort, case: tuple[str, float, bool, float], seeds: range) -> int:
    return sum(spread(_found, [(*case, batch) for batch in batches(seeds, 5)], effort.jobs))


def _least(audits: int) -> float:
    """The stated power less the standard error of its share of audits."""
    return _POWER - math.sqrt(_POWER * (1.0 - _POWER) / audits)


def _power(effort: Effort, number: int, name: str, sequential: bool, alpha: float) -> Figures:
    stating, audits = effort.either((_QUICK_STATING, _QUICK_AUDITS), (_STATING, _POWER_AUDITS))
    place = 4 * number + 2 * sequential + _POWER_ALPHAS.index(alpha)
    stated = in_batches(_stated, (name, sequential, alpha), seeds_of(6, 2 * place, 0, stating), 5, effort.jobs)
    excess = statistics.median(stated) if stated else math.inf
    found, seeds = 0, seeds_of(6, 2 * place + 1, 0, _MORE_AUDITS)
    if excess < math.inf:
        found = _count(effort, (name, excess, sequential, alpha), seeds[:audits])
        if not effort.is_quick and found / audits < _least(audits):
            found += _count(effort, (name, excess, sequential, alpha), seeds[audits:])
            audits = _MORE_AUDITS
    low, high = probability_limits(found, audits, alpha=0.05)
    certain = probability_limits(found, audits, alpha=CERTAIN)[1]
    targets = [at_least("99.9% upper limit of the power", certain, _POWER)]
    if not effort.is_quick:
        targets.append(at_least("power", found / audits, _least(audits)))
    cells: dict[str, Value] = {
        "subject": name,
        "claim": str(_SUBJECTS[name].claim),
        "kind": _POWER_KINDS[sequential],
        "alpha": alpha,
        "runs": _SUBJECTS[name].runs,
        "stated": excess,
        "stating": len(stated),
        "audits": audits,
        "found": found,
        "share": found / audits,
        "low": low,
        "high": high,
    }
    return cells, targets


def _power_tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_SUBJECTS):
        for sequential in (False, True):
            for alpha in _POWER_ALPHAS:
                if effort.wants(name) and (not effort.is_quick or (name in _POWER_QUICK and alpha == _POWER_ALPHAS[0])):
                    key = f"{name}, {_POWER_KINDS[sequential]}, {alpha:g}"
                    yield once(key, _power, effort, number, name, sequential, alpha)


STATED_POWER = Bench(
    name="power",
    title="Power at the stated detectable excess",
    method=(
        "Audits of mechanisms whose claims hold with equality state the excess that they detect with power "
        f"{_POWER:g}: the median of {_STATING} audits, among those of the intended event. Audits with other seeds then "
        "test mechanisms with this excess; the refuted share must reach the stated power less its standard error. "
        f"Where it does not in {_POWER_AUDITS} audits, the row has {_MORE_AUDITS:,}. A "
        "rare leak is an output of the stated probability, on average over the datasets, at every excess."
    ),
    columns=columns(
        "mechanism = subject | claim | audit = kind | alpha :g | runs :, | detectable excess = stated :.4g | "
        "audits :, | refuted = found :, | power = share :.3f | 95% lower limit = low :.3f | "
        "95% upper limit = high :.3f"
    ),
    names=tuple(_SUBJECTS),
    tasks=_power_tasks,
)

INFERENCE = Page(
    "inference",
    "Benchmarks of the statistics",
    (FALSE_ALARMS, SIZES, TIGHTNESS, REFUTATION, COVERAGE, DEPENDENCE, CHECKS, STATED_POWER),
)
