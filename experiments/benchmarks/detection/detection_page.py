"""Detection of violations: published suites, the catalogue of bugs, leaks and low bits,
single wrong outcomes, small excesses, hidden losses, local protocols and synthetic tables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.datasets.adjacency import Local, Within
from ....audit.datasets.domains import Answers, Values
from ....audit.datasets.tables import CategoricalColumn, NumericColumn, Tables
from ....audit.options import Bits
from ....audit.printing import rounded_down
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult, Verdict
from ....audit.search.find_worst_pair import find_worst_pair
from ....mechanisms import (
    GeometricMechanism,
    HadamardResponse,
    LaplaceMechanism,
    LocalHashing,
    MemoisedBits,
    MemoisedResponse,
    RandomisedResponse,
    RareLeakLaplace,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
)
from ....mechanisms.faulty import NaiveLaplace
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ...catalogue.local_faults import oracle_faults, response_faults
from ...catalogue.synthetic_faults import synthetic_faults
from ...published import auditorium, ladder, ldp_auditor, statdp
from ...published.entry import Entry, entry
from ..core.bench_json import Figures, at_least, at_most, columns, timed
from ..core.page import Bench, Effort, Page, Task, once, one_row_each, seeds_of, spread
from .dp_sniper_pairs import SNIPER, SNIPER_LONG, best_event
from .hidden_losses import HIDDEN
from .rare_leaks import OUTCOMES, RARE_LEAKS, SMALL_EXCESSES

# Detection rate and runs to a refutation for every bug of the catalogue, and false alarms on the correct twins.

CAUGHT_ALPHA = 1e-6
_CAUGHT_SEEDS, _CAUGHT_QUICK_SEEDS = 20, 1
_CAUGHT_RUNS = 1_000_000
_QUICK_EVERY = 200  # the quick form audits every two-hundredth fault
_CAUGHT_QUICK_RUNS = 50_000


def _caught_tasks(effort: Effort) -> Iterator[Task]:
    wanted = [(place, fault) for place, fault in enumerate(entries()) if effort.wants(fault.name)]
    if effort.is_quick:
        wanted = [(place, fault) for place, fault in wanted if fault.runs <= _CAUGHT_QUICK_RUNS][::_QUICK_EVERY]
    for place, fault in wanted:
        yield once(fault.name, _caught_cells, place, fault, effort)


def _caught_cells(place: int, fault: Fault, effort: Effort) -> Figures:
    runs, n_seeds = effort.either((fault.runs, _CAUGHT_QUICK_SEEDS), (max(_CAUGHT_RUNS, fault.runs), _CAUGHT_SEEDS))
    seeds = seeds_of(13, place, 0, n_seeds)
    started = time.perf_counter()

    def audited(which: str, *, sequential: bool) -> list[tuple[Verdict, int, float]]:
        return list(spread(_caught_audit, [(place, which, runs, sequential, seed) for seed in seeds], effort.jobs))

    found, early = audited("mechanism", sequential=False), audited("mechanism", sequential=True)
    twins = [] if fault.correct is None else audited("correct", sequential=False)
    caught, alarms = (sum(verdict is Verdict.REFUTED for verdict, _, _ in side) for side in (found, twins))
    taken = [runs for verdict, runs, _ in early if verdict is Verdict.REFUTED]
    return {
        "fault": fault.name,
        "family": fault.family,
        "cause": fault.cause,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "seeds": n_seeds,
        "caught": caught / n_seeds,
        "bound": float(np.median([bound for _, _, bound in found])),
        "sequential": len(taken) / n_seeds,
        "median": float(np.median(taken)) if taken else None,
        "alarms": alarms if fault.correct is not None else None,
        "seconds": time.perf_counter() - started,
    }, [
        at_least("detection rate", caught / n_seeds, 1),
        at_least("sequential detection rate", len(taken) / n_seeds, 1),
        at_most("false alarms on the correct twin", alarms, 0),
    ]


def _caught_audit(place: int, which: str, runs: int, sequential: bool, seed: int) -> tuple[Verdict, int, float]:
    """Return the verdict, the runs and the bound of one audit of a fault or of its correct twin."""
    fault = entries()[place]
    mechanism: Any = getattr(fault, which)
    result = check(
        mechanism,
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        distance=fault.distance,
        runs=runs,
        alpha=CAUGHT_ALPHA,
        seed=seed,
        sequential=sequential,
        bits=fault.bits,
        jobs=1,
    )
    return result.verdict, result.runs, result.bound


CATALOGUE = Bench(
    name="catalogue",
    title="Catalogue of bugs",
    method=(
        f"Audits with {_CAUGHT_SEEDS} seeds at alpha {CAUGHT_ALPHA:g}, with 10⁶ runs on each dataset of the pair or "
        "more where the entry needs more. Sequential audits have the same number of runs at most; their median is "
        "over the refuted audits. The correct twin is audited as often, at fixed size."
    ),
    columns=columns(
        "fault | family | cause | claim | exact strength = exact :.4g | detection rate = caught :.0% | "
        "median lower bound = bound :.4g | sequential detection rate = sequential :.0% | "
        "median runs to refutation = median :,.0f | false alarms on the correct twin = alarms | seconds :.0f"
    ),
    names=tuple(fault.name for fault in entries()),
    tasks=_caught_tasks,
)

# Bugs of the catalogue on pairs that the search finds, and false alarms on their correct twins.

SEARCHED_ALPHA = 1e-6
_SEARCHED_SEEDS, _SEARCHED_QUICK_SEEDS = 5, 1
_SEARCHED_RUNS, _SEARCHED_QUICK_RUNS = 200_000, 20_000
_SEARCHED_QUICK = ("scale-epsilon",)


def _searchable() -> list[tuple[int, Fault]]:
    return [(place, fault) for place, fault in enumerate(entries()) if fault.domain is not None]


def _searched_tasks(effort: Effort) -> Iterator[Task]:
    for place, fault in _searchable():
        if effort.wants(fault.name) and (not effort.is_quick or fault.name in _SEARCHED_QUICK):
            yield once(fault.name, _searched_cells, place, fault, effort)


def _searched_cells(place: int, fault: Fault, effort: Effort) -> Figures:
    runs, n_seeds = effort.either(
        (_SEARCHED_QUICK_RUNS, _SEARCHED_QUICK_SEEDS), (max(_SEARCHED_RUNS, fault.runs), _SEARCHED_SEEDS)
    )
    seeds = seeds_of(31, place, 0, n_seeds)

    def searched(which: str) -> list[tuple[bool, float]]:
        return list(spread(_search, [(place, which, runs, seed) for seed in seeds], effort.jobs))

    found, seconds = timed(searched, "mechanism")
    twins = [] if fault.correct is None else searched("correct")
    caught, alarms = (sum(is_refuted for is_refuted, _ in side) for side in (found, twins))
    return {
        "fault": fault.name,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "runs": runs,
        "caught": caught / n_seeds,
        "bound": float(np.median([bound for _, bound in found])),
        "alarms": alarms if fault.correct is not None else None,
        "seconds": seconds / n_seeds,
    }, [
        at_least("detection rate", caught / n_seeds, 1),
        at_most("false alarms on the correct twin", alarms, 0),
    ]


def _search(place: int, which: str, runs: int, seed: int) -> tuple[bool, float]:
    """Return whether the audit of the found pair refutes the claim, and its bound."""
    fault = entries()[place]
    mechanism: Any = getattr(fault, which)
    found = find_worst_pair(
        mechanism,
        fault.domain,
        claim=fault.claim,
        adjacency=fault.adjacency,
        runs=runs,
        alpha=SEARCHED_ALPHA,
        seed=seed,
        bits=fault.bits,
        jobs=1,
    )
    return found.verdict is Verdict.REFUTED, found.audit.bound


SEARCHED = Bench(
    name="catalogue-searched",
    title="Catalogue of bugs, pairs searched",
    method=(
        f"Searches and audits with {_SEARCHED_SEEDS} seeds at alpha {SEARCHED_ALPHA:g}, for the entries whose "
        "catalogue states where datasets may lie, with 2·10⁵ runs on each dataset of the found pair or more where "
        "the entry needs more, and the search's default number of runs. Exact strength: on the pair of the "
        "catalogue. Searches of the correct twins as often. Seconds of one search and audit of the bug."
    ),
    columns=columns(
        "fault | claim | exact strength = exact :.4g | runs on each dataset = runs :,d | detection rate = caught :.0% "
        "| median lower bound = bound :.4g | false alarms on the correct twin = alarms | seconds :.1f"
    ),
    names=tuple(fault.name for _, fault in _searchable()),
    tasks=_searched_tasks,
)

# Verdicts on StatDP's and DP-Auditorium's suites and on a ladder of excess losses, on pairs found by the search.

SUITE_ALPHA = 1e-5
_SUITE_RUNS, _SUITE_QUICK_RUNS = 1_000_000, 50_000
_FINE, _FINE_RUNS = 0.02, 30_000_000  # runs for excesses below 0.02
_EXACT_RUNS = 300_000  # outputs on each dataset from which the best event is computed
_SUITE_SHARE = 0.9
_SUITES = {"StatDP": statdp.entries, "DP-Auditorium": auditorium.entries, "ladder": ladder.entries}
_ENTRIES = {entry.name: (suite, entry) for suite, make in _SUITES.items() for entry in make()}


def _suite_cells(effort: Effort, place: int, name: str) -> Figures:
    suite, entry = _ENTRIES[name]
    excess = entry.exact - entry.claim.strength
    options: dict[str, Any] = {
        "claim": entry.claim,
        "adjacency": entry.adjacency,
        "runs": effort.either(_SUITE_QUICK_RUNS, _FINE_RUNS if 0.0 < excess < _FINE else _SUITE_RUNS),
        "alpha": SUITE_ALPHA,
        "seed": seeds_of(12, place, 0, 1)[0],
        "jobs": effort.jobs,
        "bits": False,
    }
    found, seconds = timed(find_worst_pair, entry.mechanism, entry.domain, **options)
    is_right = found.verdict is (Verdict.REFUTED if entry.is_broken else Verdict.NOT_REFUTED)
    # A wrong verdict misses the target if the excess exceeds 1.5 times what the audit detects on the pair found, or if
    # an audit of the worst known pair refutes the claim.
    is_promised = (
        is_right
        or not entry.is_broken
        or math.isinf(entry.exact)
        or excess > 1.5 * found.audit.resolution
        or check(entry.mechanism, entry.x, entry.y, **options).is_refuted
    )
    known = None if suite == "ladder" else _best_on_the_known_pair(entry, options["runs"])
    targets = [at_least("correct verdict", is_right, 1)] if is_promised else []
    if known is not None and not effort.is_quick:
        targets.append(at_least("share of the best event", found.audit.bound / known, _SUITE_SHARE))
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

    Of an infinite loss the bound depends on how rare the event is that never occurs, and on nothing else.
    """
    if math.isinf(entry.exact) or not isinstance(entry.claim, PureDP):
        return None
    best = best_event(entry.mechanism, entry.x, entry.y, audit_runs=runs, alpha=SUITE_ALPHA, runs=_EXACT_RUNS, seed=1)
    return best.expected_bound(runs, SUITE_ALPHA)


SUITES = Bench(
    name="suites",
    title="StatDP's and DP-Auditorium's suites and a ladder of excess losses",
    method=(
        "The search finds the pair and the audit chooses the event, at alpha 1e-5 with 10⁶ runs on each dataset, or "
        "3·10⁷ where the excess is below .02. Exact loss: the loss on the worst known pair. The verdict must be "
        "correct unless the excess is below 1.5 times the detectable excess of the audit and an audit of the worst "
        "known pair with as many runs misses it too. Best event: the bound that one event in one direction, known from "
        "the exact laws, gives on the worst known pair (not of the ladder); the bound should be .9 of it."
    ),
    columns=columns(
        "suite | mechanism | claim | truth of the claim = truth | exact loss = exact :.4g | verdict | "
        "lower bound = bound :.4g | best event = best :.4g | event | executions :,d | seconds :.1f"
    ),
    names=tuple(_ENTRIES),
    tasks=one_row_each(_ENTRIES, _suite_cells, quick=("noisy_max_v1a",)),
)

# Rare leaks and low bits: verdicts with a warning of low bits, and verdicts that include the low bits.

LOW_BIT_ALPHA = 1e-5
RUNS, _LOW_BIT_QUICK_RUNS = 2_000_000, 300_000
_QUICK_SEARCH = 4_000
_SNAPPED_BOUND = 64.0
_LOW_BIT_QUICK = (
    "leak of .002",
    "naive Laplace",
    "naive Laplace, with bits",
    "geometric",
    "snapped Laplace, with bits",
)


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
    bits: Bits
    expected: Expected
    claim: float = 1.0
    least: float = 0.0  # required lower bound


_NAIVE = _Case("naive Laplace", NaiveLaplace(1.0), "warn", "warned")
_CLEAN = (
    _Case("gridded Laplace", LaplaceMechanism(1.0), "warn", "clean"),
    _Case("geometric", GeometricMechanism(1.0), "warn", "clean"),
    _Case("snapped Laplace", SnappedLaplace(), "warn", "clean", claim=2.0),
)
_CASES = {
    case.name: case
    for case in (
        _Case("leak of .002", RareLeakLaplace(0.9, 0.002), "warn", "refuted"),
        _NAIVE,
        replace(_NAIVE, name="naive Laplace, with bits", bits=True, expected="refuted", least=5.0),
        *_CLEAN,
        *(replace(case, name=f"{case.name}, with bits", bits=True) for case in _CLEAN),
    )
}


def _low_bit_cells(effort: Effort, place: int, name: str) -> Figures:
    case = _CASES[name]
    found, seconds = timed(
        find_worst_pair,
        case.mechanism,
        Answers(None, 0, 4, integer=True),
        claim=PureDP(case.claim),
        adjacency=Within("linf"),
        runs=effort.either(_LOW_BIT_QUICK_RUNS, RUNS),
        search_runs=effort.either(_QUICK_SEARCH, None),
        alpha=LOW_BIT_ALPHA,
        seed=seeds_of(14, place, 0, 1)[0],
        jobs=effort.jobs,
        bits=case.bits,
    )
    audit, bits = found.audit, found.audit.low_bits
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
    return "clean" if audit.low_bits is None else "warned"


LEAKS = Bench(
    name="leaks",
    title="Rare leaks and low bits",
    method=(
        "The search finds a pair of whole numbers from 0 to 4 at distance 1; 2·10⁶ runs on each dataset, alpha 1e-5. "
        "The leak returns 1000 + x with probability .002 and otherwise Laplace noise for ε = .9. Snapped Laplace noise "
        "is audited against ε = 2, since its rounding uses part of the budget."
    ),
    columns=columns(
        "mechanism | claim | pair | verdict | lower bound on ε = bound :.4g | event | warning of low bits = warning | "
        "seconds :.1f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _low_bit_cells, quick=_LOW_BIT_QUICK),
)

# Lower bounds for local differential privacy: frequency oracles, repeated reports, faulty twins, LDP-Auditor.

LOCAL_ALPHA = 1e-5
_LOCAL_RUNS, _LOCAL_QUICK_RUNS = 1_000_000, 20_000
_LOCAL_QUICK = ("HadamardResponse(epsilon=1, k=10)", "true-bit-set-twice", "OLH")
_LOCAL_SHARE = 0.9
_EXACT = 300_000  # outputs on each value from which the best event is computed
_ORACLES: tuple[Any, ...] = (
    RandomisedResponse(1.0, 10),
    UnaryEncoding(1.0, 10),
    UnaryEncoding(1.0, 10, is_optimised=True),
    ThresholdedHistogram(1.0, 10),
    LocalHashing(1.0, 10, g=2),
    LocalHashing(1.0, 10),
    SubsetSelection(1.0, 10),
    HadamardResponse(1.0, 10),
    *(MemoisedBits(2.0, 1.0, 4, reports) for reports in (1, 3, 10)),
    *(MemoisedBits(2.0, 1.0, 4, reports, is_optimised=True) for reports in (1, 3, 10)),
    *(MemoisedResponse(2.0, 1.0, 4, reports) for reports in (1, 3, 10)),
)
_ROWS: dict[str, tuple[str, Entry | Fault]] = {
    **{str(one): ("oracle", entry(str(one), one, (0, 1), Local(), Values(tuple(range(one.k))))) for one in _ORACLES},
    **{fault.name: ("faulty twin", fault) for fault in (*response_faults(), *oracle_faults())},
    **{one.name: (f"LDP-Auditor, k={ldp_auditor.N_VALUES}", one) for one in ldp_auditor.entries()},
}


def _local_cells(effort: Effort, place: int, name: str) -> Figures:
    kind, subject = _ROWS[name]
    exact = math.nan if subject.exact is None else subject.exact
    result, seconds = timed(
        check,
        subject.mechanism,
        subject.x,
        subject.y,
        claim=subject.claim,
        adjacency=subject.adjacency,
        runs=effort.either(_LOCAL_QUICK_RUNS, _LOCAL_RUNS),
        alpha=LOCAL_ALPHA,
        seed=seeds_of(36, place, 0, 1)[0],
        jobs=effort.jobs,
    )
    is_broken = exact > subject.claim.strength * (1 + 1e-9)
    is_right = result.verdict is (Verdict.REFUTED if is_broken else Verdict.NOT_REFUTED)
    targets = [at_least("correct verdict", is_right, 1), at_most("lower bound", result.bound, exact)]
    best = None
    if math.isfinite(exact) and not effort.is_quick:
        event = best_event(
            subject.mechanism, subject.x, subject.y, audit_runs=_LOCAL_RUNS, alpha=LOCAL_ALPHA, runs=_EXACT, seed=1
        )
        best = event.expected_bound(_LOCAL_RUNS, LOCAL_ALPHA)
        targets.append(at_least("share of the best event", result.bound / best, _LOCAL_SHARE))
    attack = ldp_auditor.attack(subject.mechanism) if kind.startswith("LDP-Auditor") else None
    return {
        "protocol": name,
        "kind": kind,
        "claim": str(subject.claim),
        "exact": exact,
        "bound": result.bound,
        "best": best,
        "verdict": result.verdict.value,
        "event": result.event_in_words,
        "attack": None if attack is None else attack.loss,
        "published": None if attack is None else attack.bound(),
        "seconds": seconds,
    }, targets


LOCAL = Bench(
    name="local",
    title="Local differential privacy",
    method=(
        f"Audits of the worst pair at alpha {LOCAL_ALPHA:g} with 10⁶ runs on each value, one seed. Exact ε: from the "
        "laws. Best event: the bound that one event in one direction, known from the laws, gives with as many runs; "
        "the bound should be .9 of it. The twins are those of the catalogue. LDP-Auditor's protocols are at ε = 1: "
        "its attack guesses the value from the report, and shows at most the limit; its bound is at the expected "
        "counts of the attack with 10⁶ runs at its alpha, 0.01. Its published bounds were not found as numbers, so "
        "they are not quoted."
    ),
    columns=columns(
        "protocol | kind | claim | exact ε = exact :.4g | lower bound = bound :.4g | best event = best :.4g | "
        "verdict | event | limit of LDP-Auditor's attack = attack :.4g | bound of LDP-Auditor = published :.4g | "
        "seconds :.1f"
    ),
    names=tuple(_ROWS),
    tasks=one_row_each(_ROWS, _local_cells, quick=_LOCAL_QUICK),
)

# Generators of synthetic tables: twins caught on their pair and by a search over tables, and the right generators.

SYNTHETIC_ALPHA = 1e-6
_AUDITS, _QUICK_AUDITS = 20, 1
_SYNTHETIC_RUNS, _SEARCH = 20_000, 20_000
_SYNTHETIC_SHARE = 0.95
_SYNTHETIC_QUICK = ("rows-of-the-data",)
_FAULTS = {fault.name: fault for fault in synthetic_faults()}
_BITS = CategoricalColumn((0, 1))
_NUMBERS = Tables({"column 0": NumericColumn(0.0, 50.0)}, form="tuples")


def domain_of(fault: Fault) -> Tables:
    """The tables of a search, with values outside the declared ones."""
    if fault.name == "range-of-a-column-learned":
        return _NUMBERS
    width = len(getattr(fault.mechanism, "categories", (2,)) if fault.name != "shares-of-present-rows" else (2,))
    return Tables({f"column {place}": _BITS for place in range(width)}, form="tuples")


def _synthetic_cells(effort: Effort, place: int, name: str) -> Figures:
    fault, audits = _FAULTS[name], effort.either(_QUICK_AUDITS, _AUDITS)
    seeds = seeds_of(47, place, 0, audits + 1)
    runs = effort.either(2_000, max(fault.runs, _SYNTHETIC_RUNS))

    def audited(which: str) -> list[AuditResult]:
        return list(spread(_synthetic_audit, [(name, which, runs, seed) for seed in seeds[:audits]], effort.jobs))

    found, right = audited("mechanism"), audited("correct")
    searched = {which: _searched(effort, fault, which, seeds[audits]) for which in ("mechanism", "correct")}
    caught, alarms = (sum(result.is_refuted for result in side) for side in (found, right))
    alarms += searched["correct"].is_refuted
    return {
        "fault": name,
        "cause": fault.cause,
        "claim": str(fault.claim),
        "exact": fault.exact,
        "caught": caught / audits,
        "bound": float(np.median([result.bound for result in found])),
        "event": found[0].event_in_words,
        "searched": searched["mechanism"].bound,
        "alarms": alarms,
    }, [
        at_least("detection rate", caught / audits, _SYNTHETIC_SHARE),
        at_least("found by the search", searched["mechanism"].is_refuted, 1),
        at_most("false alarms on the right generator", alarms, 0),
    ]


def _synthetic_audit(name: str, which: str, runs: int, seed: int) -> AuditResult:
    fault = _FAULTS[name]
    mechanism: Any = getattr(fault, which)
    return check(
        mechanism,
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        runs=runs,
        alpha=SYNTHETIC_ALPHA,
        seed=seed,
        bits=False,
        jobs=1,
    )


def _searched(effort: Effort, fault: Fault, which: str, seed: int) -> AuditResult:
    return find_worst_pair(
        getattr(fault, which),
        domain_of(fault),
        claim=fault.claim,
        adjacency=fault.adjacency,
        runs=effort.either(2_000, max(fault.runs, _SYNTHETIC_RUNS)),
        search_runs=effort.either(2_000, _SEARCH),
        alpha=SYNTHETIC_ALPHA,
        seed=seed,
        bits=False,
        jobs=1,
    ).audit


SYNTHETIC = Bench(
    name="synthetic",
    title="Generators of synthetic tables",
    method=(
        f"Faulty generators and the right ones. Share of {_AUDITS} audits of the catalogue's pair at alpha "
        f"{SYNTHETIC_ALPHA:g}, with {_SYNTHETIC_RUNS:,} runs on each dataset or as many as the entry needs, that "
        f"refute the claim; 95% should. One search over tables with values outside the declared ones ({_SEARCH:,} "
        "executions), followed by an audit, should find each twin. No right generator should be refuted, on the "
        "pairs and by the search."
    ),
    columns=columns(
        "twin = fault | cause | claim | exact ε = exact :.4g | caught :.0% | median lower bound = bound :.4g | "
        "event of one audit = event | lower bound by a search = searched :.4g | "
        "false alarms on the right generator = alarms"
    ),
    names=tuple(_FAULTS),
    tasks=one_row_each(_FAULTS, _synthetic_cells, quick=_SYNTHETIC_QUICK),
)

DETECTION = Page(
    "detection",
    "Benchmarks of detection",
    (
        SNIPER,
        SNIPER_LONG,
        SUITES,
        CATALOGUE,
        SEARCHED,
        LEAKS,
        RARE_LEAKS,
        OUTCOMES,
        SMALL_EXCESSES,
        HIDDEN,
        LOCAL,
        SYNTHETIC,
    ),
)
