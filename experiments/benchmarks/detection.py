"""Detection of bugs, published suites, leaks and low bits, kept apart because each JSON file has a module."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ... import mechanisms as m
from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import Within
from ...audit.datasets.domains import Answers
from ...audit.events.events import Event
from ...audit.inference.guess_test import Guesses, guess_test
from ...audit.options import FloatingPoint
from ...audit.printing import rounded_down
from ...audit.procedures.check import check
from ...audit.procedures.epsilon_lower import epsilon_lower
from ...audit.results.audit_result import AuditResult
from ...audit.results.verdict import Verdict
from ...audit.search.find_worst_pair import find_worst_pair
from ...audit.search.pairs_for_domain import pairs_of
from ...mechanisms.faulty import NaiveLaplace
from ..catalogue.entries import entries
from ..catalogue.fault import Fault
from ..published import auditorium, dp_sniper, ladder, statdp
from ..published.entry import Entry
from .measure import Effort, Figures, Seeds, Table, Target, at_least, at_most, by_name, spread, timed

# Probabilities of events under known distributions, and the best possible event, by change of measure.
#
# Outputs are drawn on x and on y in equal numbers. Weighted by its density over the mean of the two densities, every
# output estimates probabilities on both datasets with a weight of at most 2. The probability of an event on one
# dataset is therefore estimated from outputs on the other as well, even if the event never occurs on the first.

Array = npt.NDArray[np.float64]

_BLOCK = 100_000
_THRESHOLDS = 400  # thresholds of the likelihood ratio that are compared by a formula
_COMPARED = 8  # thresholds with the best formula values, which are compared exactly
_LEAST_RUNS = 50  # outputs in an event and in its complement; rarer events are left out
_NEVER = 1e-12  # smaller probabilities are rounding errors
_SAME = 1e-9  # nats; losses that differ by less are equal up to rounding


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Probabilities of an event: p on the more likely dataset and q on the other."""

    p: float
    q: float

    @classmethod
    def of(cls, on_x: float, on_y: float) -> Probabilities:
        """Return the probabilities in order, with rounding errors removed."""
        p, q = max(on_x, on_y), min(on_x, on_y)
        return cls(min(p, 1.0), q if q > _NEVER else 0.0)

    def expected_bound(self, runs: int, alpha: float) -> float:
        """Return the lower bound on ε at the expected counts of `runs` runs on each dataset."""
        counts = [round(runs * rate) for rate in (self.p, self.q)]
        return epsilon_lower(counts[0], runs, counts[1], runs, alpha=alpha)


def event_probabilities(mechanism: Any, x: Any, y: Any, event: Event, *, runs: int, seed: int) -> Probabilities:
    """Return the probabilities of an event or its complement, estimated from `runs` outputs on each dataset."""
    found = [Probabilities.of(*side.tolist()) for side in event_rates(mechanism, x, y, event, runs=runs, seed=seed)]
    return max(found, key=lambda one: one.p * (1 - one.p) - one.q * (1 - one.q))


def event_rates(mechanism: Any, x: Any, y: Any, event: Event, *, runs: int, seed: int) -> tuple[Array, Array]:
    """Return the probabilities of an event on x and on y, and those of its complement, each of shape (2,)."""
    inside, outside = np.zeros(2), np.zeros(2)
    for outputs, loss in _outputs(mechanism, x, y, runs, seed):
        weights, hit = np.array([expit(loss), expit(-loss)]), event.contains(outputs)
        inside += weights[:, hit].sum(axis=1)
        outside += weights[:, ~hit].sum(axis=1)
    # Divided by the runs, not by the sum of the weights: the error is zero where the ratio is constant.
    return inside / runs, outside / runs


def best_event(mechanism: Any, x: Any, y: Any, *, audit_runs: int, alpha: float, runs: int, seed: int) -> Probabilities:
    """Return the event {likelihood ratio ≥ t}, for x or for y, with the largest expected bound."""
    loss = np.concatenate([part for _, part in _outputs(mechanism, x, y, runs, seed)])
    found = [option for side in (loss, -loss) for option in _options(side, runs, audit_runs, alpha)]
    return max(found, key=lambda option: option.expected_bound(audit_runs, alpha))


def _options(loss: Array, runs: int, audit_runs: int, alpha: float) -> list[Probabilities]:
    """Return the most promising events with a large loss; more likely events are complements of such events."""
    loss = np.sort(loss)[::-1]
    p, q = (weights.cumsum() / runs for weights in (expit(loss), expit(-loss)))
    with np.errstate(invalid="ignore"):  # infinite losses are equal
        ends = np.flatnonzero(np.diff(loss) < -_SAME)  # outputs of equal ratio belong to the same event
    ends = ends[(ends >= _LEAST_RUNS) & (ends < len(loss) - _LEAST_RUNS)]
    ends = ends[p[ends] * (1 - p[ends]) >= q[ends] * (1 - q[ends])]
    if len(ends) == 0:  # both distributions are equal
        return [Probabilities(0.5, 0.5)]
    wanted = np.geomspace(_LEAST_RUNS, len(loss), _THRESHOLDS)
    ends = ends[np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))]
    # Approximate bound: a normal limit for the log ratio, with half a hit in place of zero.
    spare = 0.5 / audit_runs
    error = np.sqrt((1 - p[ends]) / (p[ends] * audit_runs) + 1 / ((q[ends] + spare) * audit_runs))
    rough = np.log(p[ends] / (q[ends] + spare)) - 1.3 * error
    return [Probabilities.of(float(p[i]), float(q[i])) for i in ends[np.argsort(-rough)[:_COMPARED]]]


def _outputs(mechanism: Any, x: Any, y: Any, runs: int, seed: int) -> Iterator[tuple[Any, Array]]:
    """Yield blocks of outputs with their log-likelihood ratios of x against y, `runs` outputs on each dataset."""
    distributions = mechanism.distribution(x), mechanism.distribution(y)
    rng = np.random.default_rng(seed)
    for dataset in (x, y):
        left = runs
        while left > 0:
            outputs = mechanism.sample(dataset, min(left, _BLOCK), rng)
            left -= len(outputs)
            yield outputs, log_ratio(*(distribution.log_density(outputs) for distribution in distributions))


def log_ratio(on_x: Array, on_y: Array) -> Array:
    """Return the log-likelihood ratio; infinite if one density is zero."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(on_y), np.inf, np.where(np.isneginf(on_x), -np.inf, on_x - on_y))


# DP-Sniper's suite: bounds at the pairs and events that the search finds, and published and best possible bounds.

_SNIPER_ALPHA = 0.1
_SEARCH_SHARE = 8  # one run in eight is spent on the search for the pair
_EXACT_RUNS, _QUICK_EXACT_RUNS = 2_000_000, 20_000
_PATTERN_RUNS, _PATTERNS_KEPT = (20_000, 400_000), 6  # outputs that rank the oracle's pairs, in two rounds
_FRESH = 5_000_000  # added to the seed of a search for the outputs that judge it
_GAP, _SHARE = 1.15, 0.8
_PUBLISHED_DIGITS = 4
_SNIPER = {entry.name: entry for entry in dp_sniper.entries()}


class _Trial(NamedTuple):
    """One search and audit: the expected bound, the event's probabilities, and what they cost."""

    expected: float
    chosen: Probabilities
    executions: int
    seconds: float


def _sniper_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    entry = _SNIPER[name]
    executions, n_seeds = effort.either((10_000, 1), (40_000_000, 5))
    exact_runs = effort.either(_QUICK_EXACT_RUNS, _EXACT_RUNS)
    used = seeds(n_seeds + 1)
    trials = [_trial(entry, executions, exact_runs, seed, effort.jobs) for seed in used[:-1]]
    middle = sorted(trials, key=lambda trial: trial.expected)[len(trials) // 2]
    best = _best_pattern(entry, executions // 2, exact_runs, used[-1], effort)
    oracle = best.expected_bound(executions // 2, _SNIPER_ALPHA)
    return {
        "mechanism": name,
        "exact": entry.exact,
        "p": middle.chosen.p,
        "q": middle.chosen.q,
        "expected": middle.expected,
        "published": entry.published,
        "oracle": oracle,
        "executions": middle.executions,
        "seconds": float(np.median([trial.seconds for trial in trials])),
    }, [] if effort.is_quick else [_target(entry, middle.chosen, middle.expected, best, oracle)]


def _trial(entry: Entry, executions: int, exact_runs: int, seed: int, jobs: int) -> _Trial:
    search = executions // _SEARCH_SHARE
    options: dict[str, Any] = {"claim": entry.claim, "adjacency": entry.adjacency, "alpha": _SNIPER_ALPHA, "seed": seed}
    options |= {"runs": (executions - search) // 2, "search_runs": search, "jobs": jobs, "floating_point": "ignore"}
    found, seconds = timed(find_worst_pair, entry.mechanism, entry.domain, **options)
    audit = found.audit
    fresh = {"runs": exact_runs, "seed": seed + _FRESH}
    chosen = event_probabilities(entry.mechanism, found.x, found.y, audit.event, **fresh)
    expected = _expected_bound(entry.mechanism, found.x, found.y, audit, fresh)
    return _Trial(expected, chosen, found.runs + 2 * audit.runs, seconds)


def _expected_bound(mechanism: Any, x: Any, y: Any, audit: AuditResult, fresh: dict[str, int]) -> float:
    """Return the bound that the audit's test of its event, or of an event in each direction, gives at their rates."""
    alpha = dict(audit.error_budget.shares)["event test"]
    pair = (x, y) if audit.more_likely_on == "x" else (y, x)
    p, q = event_rates(mechanism, *pair, audit.event, **fresh)[0].tolist()
    if audit.opposite is None:
        counts = audit.directed_counts
        seen = round(p * counts.runs_x), round(q * counts.runs_y)
        return epsilon_lower(seen[0], counts.runs_x, seen[1], counts.runs_y, alpha=alpha)
    other_q, other_p = event_rates(mechanism, *pair, audit.opposite.event, **fresh)[0].tolist()
    runs = audit.opposite.guesses.runs
    right, wrong = (round(0.5 * rate * runs) for rate in (p + other_p, q + other_q))
    return guess_test(Guesses(correct=right, incorrect=wrong, runs=runs), audit.claim, alpha=alpha)[1]


def _best_pattern(entry: Entry, runs: int, exact_runs: int, seed: int, effort: Effort) -> Probabilities:
    """Return the best event on the best pair: the suite's, or one of the search's patterns, chosen on fresh outputs."""
    pairs = [(entry.x, entry.y)]
    if not effort.is_quick:
        source = pairs_of(entry.domain, entry.adjacency, 1.0, seed)
        pairs += [(pattern.x, pattern.y) for pattern in source.patterns()]

    def event_on(pair: tuple[Any, Any], outputs: int) -> Probabilities:
        return best_event(
            entry.mechanism, *pair, audit_runs=runs, alpha=_SNIPER_ALPHA, runs=outputs, seed=seed + outputs
        )

    for outputs in _PATTERN_RUNS:
        if len(pairs) > 1:
            bounds = [event_on(pair, outputs).expected_bound(runs, _SNIPER_ALPHA) for pair in pairs]
            kept = _PATTERNS_KEPT if outputs == _PATTERN_RUNS[0] else 1
            pairs = [pairs[place] for place in np.argsort(bounds)[::-1][:kept]]
    return event_on(pairs[0], exact_runs)


def _target(entry: Entry, chosen: Probabilities, expected: float, best: Probabilities, oracle: float) -> Target:
    """Return the target on the published bound if it is met, otherwise the target on the gap."""
    if math.isinf(entry.exact) and best.q == 0.0:
        share = chosen.p / best.p if chosen.q == 0.0 else 0.0
        return at_least("p over that of the best event with q = 0", share, _SHARE)
    if entry.published is not None and round(expected, _PUBLISHED_DIGITS) >= entry.published:
        return at_least("expected lower bound", round(expected, _PUBLISHED_DIGITS), entry.published)
    return at_most("gap over the oracle's gap", (entry.exact - expected) / (entry.exact - oracle), _GAP)


# Detection rate and runs to a refutation for every bug of the catalogue, and false alarms on the correct variants: on
# the pair of the catalogue, and on pairs that the search finds.

CATALOGUE_ALPHA = 1e-6
_PAIR_RUNS, _PAIR_SEEDS = 1_000_000, 20
_SEARCHED_RUNS, _SEARCHED_SEEDS = 200_000, 5
_QUICK_RUNS = 4_000
_FAULTS = {fault.name: fault for fault in entries()}


def _fault_audits(effort: Effort, name: str, which: str, how: str, runs: int, seeds: range) -> list[_FaultAudit]:
    """Return audits of a fault, or of its correct variant if there is one."""
    if getattr(_FAULTS[name], which) is None:
        return []
    return list(spread(_fault_audit, [(name, which, how, runs, seed) for seed in seeds], effort.jobs))


_FaultAudit: TypeAlias = tuple[bool, int, float]
"""Whether the claim is refuted, the runs and the bound."""


def _fault_audit(name: str, which: str, how: str, runs: int, seed: int) -> _FaultAudit:
    fault = _FAULTS[name]
    mechanism: Any = getattr(fault, which)
    options: dict[str, Any] = {"claim": fault.claim, "adjacency": fault.adjacency, "runs": runs, "seed": seed}
    options |= {"alpha": CATALOGUE_ALPHA, "floating_point": fault.floating_point, "jobs": 1}
    if how == "searched":
        result = find_worst_pair(mechanism, fault.domain, **options).audit
    else:
        is_sequential = how == "sequential"
        result = check(mechanism, fault.x, fault.y, distance=fault.distance, sequential=is_sequential, **options)
    return result.is_refuted, result.runs, result.bound


def _caught(fault: Fault, found: list[_FaultAudit], variants: list[_FaultAudit]) -> tuple[dict[str, Any], list[Target]]:
    """Return cells and targets of audits of a fault and of its variant, on the known pair or on searched ones."""
    caught, alarms = (sum(is_refuted for is_refuted, _, _ in side) for side in (found, variants))
    rate = caught / len(found)
    return {
        "fault": fault.name,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "caught": rate,
        "bound": float(np.median([bound for _, _, bound in found])),
        "alarms": alarms if fault.correct is not None else None,
    }, [at_least("detection rate", rate, 1), at_most("false alarms on the correct variant", alarms, 0)]


def _caught_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    fault = _FAULTS[name]
    runs, n_seeds = effort.either((_QUICK_RUNS, 1), (max(_PAIR_RUNS, fault.runs), _PAIR_SEEDS))
    started = time.perf_counter()
    found, early, variants = (
        _fault_audits(effort, name, which, how, runs, seeds(n_seeds))
        for which, how in (("mechanism", "fixed"), ("mechanism", "sequential"), ("correct", "fixed"))
    )
    cells, targets = _caught(fault, found, variants)
    taken = [runs for is_refuted, runs, _ in early if is_refuted]
    return {
        **cells,
        "family": fault.family,
        "cause": fault.cause,
        "seeds": n_seeds,
        "sequential": len(taken) / n_seeds,
        "median": float(np.median(taken)) if taken else None,
        "seconds": time.perf_counter() - started,
    }, [*targets, at_least("sequential detection rate", len(taken) / n_seeds, 1)]


def _searched_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    fault = _FAULTS[name]
    runs, n_seeds = effort.either((_QUICK_RUNS, 1), (max(_SEARCHED_RUNS, fault.runs), _SEARCHED_SEEDS))
    found, seconds = timed(_fault_audits, effort, name, "mechanism", "searched", runs, seeds(n_seeds))
    variants = _fault_audits(effort, name, "correct", "searched", runs, seeds(n_seeds))
    cells, targets = _caught(fault, found, variants)
    return {**cells, "runs": runs, "seconds": seconds / n_seeds}, targets


# Verdicts on StatDP's and DP-Auditorium's suites and on a ladder of excess losses, on pairs found by the search.

_RUNS, _QUICK_SUITE_RUNS = 1_000_000, 10_000
_ALPHA = 1e-5
_FINE, _FINE_RUNS = 0.02, 30_000_000  # runs for excesses below 0.02
_BEST_RUNS = 300_000  # outputs on each dataset from which the best event is computed
_BEST_SHARE = 0.9
_SUITES = {"StatDP": statdp.entries, "DP-Auditorium": auditorium.entries, "ladder": ladder.entries}
_ENTRIES = {entry.name: (suite, entry) for suite, make in _SUITES.items() for entry in make()}


def _suite_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    suite, entry = _ENTRIES[name]
    excess = entry.exact - entry.claim.parameter
    options: dict[str, Any] = {
        "claim": entry.claim,
        "adjacency": entry.adjacency,
        "runs": effort.either(_QUICK_SUITE_RUNS, _FINE_RUNS if 0.0 < excess < _FINE else _RUNS),
        "alpha": _ALPHA,
        "seed": seeds(1)[0],
        "jobs": effort.jobs,
        "floating_point": "ignore",
    }
    found, seconds = timed(find_worst_pair, entry.mechanism, entry.domain, **options)
    is_right = found.verdict is (Verdict.REFUTED if entry.is_broken else Verdict.NOT_REFUTED)
    # A wrong verdict misses the target if the excess exceeds 1.5 times what the audit detects on the pair found, or if
    # an audit of the worst known pair refutes the claim.
    is_promised = (
        is_right
        or not entry.is_broken
        or math.isinf(entry.exact)
        or excess > 1.5 * (found.audit.min_detectable_excess or 0.0)
        or check(entry.mechanism, entry.x, entry.y, **options).is_refuted
    )
    known = None if suite == "ladder" else _best_on_the_known_pair(entry, options["runs"])
    targets = [at_least("correct verdict", is_right, 1)] if is_promised else []
    if known is not None and not effort.is_quick:
        targets.append(at_least("share of the best event", found.audit.bound / known, _BEST_SHARE))
    return {
        "suite": suite,
        "mechanism": entry.name,
        "claim": str(entry.claim),
        "truth": "broken" if entry.is_broken else "holds",
        "exact": entry.exact,
        "verdict": found.verdict.value,
        "bound": found.audit.bound,
        "best": known,
        "event": str(found.audit.event),
        "executions": found.runs + 2 * found.audit.runs,
        "seconds": seconds,
    }, targets


def _best_on_the_known_pair(entry: Entry, runs: int) -> float | None:
    """Return the expected bound of the best event on the worst known pair; None for infinite losses.

    For an infinite loss the bound depends on how rare the event is that never occurs, and on nothing else.
    """
    if math.isinf(entry.exact) or not isinstance(entry.claim, PureDP):
        return None
    best = best_event(entry.mechanism, entry.x, entry.y, audit_runs=runs, alpha=_ALPHA, runs=_BEST_RUNS, seed=1)
    return best.expected_bound(runs, _ALPHA)


# Rare leaks and low bits: verdicts with a warning of low bits, and verdicts that include the low bits.

LEAK_RUNS, _QUICK_LEAK_RUNS, _QUICK_SEARCH = 2_000_000, 50_000, 1_000
_SNAPPED_BOUND = 64.0


@dataclass(frozen=True, slots=True)
class SnappedLaplace:
    """Mironov's snapping mechanism: clamping, signed logarithmic noise, rounding to a power of two, clamping.

    References
    ----------
    Mironov (2012), On significance of the least significant bits for differential privacy, Section 5.2.
    """

    scale: float = 1.0
    bound: float = _SNAPPED_BOUND

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        sign = np.where(rng.random(size) < 0.5, -1.0, 1.0)
        noisy = np.clip(answer, -self.bound, self.bound) + sign * self.scale * np.log(1.0 - rng.random(size))
        step = 2.0 ** np.ceil(np.log2(self.scale))  # smallest power of two that is at least the scale
        return np.clip(np.rint(noisy / step) * step, -self.bound, self.bound)


Expected = Literal["refuted", "warned", "clean"]


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    mechanism: Any
    floating_point: FloatingPoint
    expected: Expected
    claim: float = 1.0
    least: float = 0.0  # required lower bound


_NAIVE = _Case("naive Laplace", NaiveLaplace(1.0), "warn", "warned")


_CLEAN = (
    _Case("gridded Laplace", m.LaplaceMechanism(1.0), "warn", "clean"),
    _Case("geometric", m.GeometricMechanism(1.0), "warn", "clean"),
    _Case("snapped Laplace", SnappedLaplace(), "warn", "clean", claim=2.0),
)


_CASES = {
    case.name: case
    for case in (
        _Case("leak of .002", m.RareLeakLaplace(0.9, 0.002), "warn", "refuted"),
        _NAIVE,
        replace(_NAIVE, name="naive Laplace, with bits", floating_point="test", expected="refuted", least=5.0),
        *_CLEAN,
        *(replace(case, name=f"{case.name}, with bits", floating_point="test") for case in _CLEAN),
    )
}


def _low_bit_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    case = _CASES[name]
    options: dict[str, Any] = {"claim": PureDP(case.claim), "adjacency": Within("linf"), "alpha": _ALPHA}
    options |= {"runs": effort.either(_QUICK_LEAK_RUNS, LEAK_RUNS), "search_runs": effort.either(_QUICK_SEARCH, None)}
    options |= {"seed": seeds(1)[0], "jobs": effort.jobs, "floating_point": case.floating_point}
    found, seconds = timed(find_worst_pair, case.mechanism, Answers(None, 0, 4, integer=True), **options)
    audit, bits = found.audit, found.audit.floating_point_leak
    targets = [at_least(f"verdict {case.expected!r}", _outcome(audit) == case.expected, 1)]
    if case.least:
        targets.append(at_least("lower bound", audit.bound, case.least))
    return {
        "mechanism": case.name,
        "claim": str(audit.claim),
        "pair": f"{found.x} / {found.y}",
        "verdict": audit.verdict.value,
        "bound": audit.bound,
        "event": str(audit.event),
        "warning": "–" if bits is None else f"{bits.event}: at least {rounded_down(bits.bound, 3):g}",
        "seconds": seconds,
    }, targets


def _outcome(audit: AuditResult) -> str:
    if audit.verdict is not Verdict.NOT_REFUTED:
        return audit.verdict.name.lower()
    return "clean" if audit.floating_point_leak is None else "warned"


_LEAKS_QUICK = ("leak of .002", "naive Laplace", "naive Laplace, with bits", "snapped Laplace, with bits")
_SNIPER_QUICK = ("LaplaceMechanism", "ReportNoisyMax3")
_WITH_DOMAIN = by_name(name for name, fault in _FAULTS.items() if fault.domain is not None)

TABLES = (
    Table("dp-sniper", 11, by_name(_SNIPER), _sniper_cells, quick=_SNIPER_QUICK),
    Table("suites", 12, by_name(_ENTRIES), _suite_cells, quick=("noisy_max_v1a",)),
    Table("catalogue", 13, by_name(_FAULTS), _caught_cells, quick=("scale-epsilon",)),
    Table("catalogue-searched", 31, _WITH_DOMAIN, _searched_cells, quick=("scale-epsilon",)),
    Table("leaks", 14, by_name(_CASES), _low_bit_cells, quick=_LEAKS_QUICK),
)
