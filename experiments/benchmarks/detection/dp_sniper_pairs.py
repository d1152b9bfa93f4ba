"""DP-Sniper's suite: bounds at the pairs and events that the search finds, and published and best possible bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ....audit.events.events import Event
from ....audit.inference.guess_test import Guesses, guess_test
from ....audit.procedures.epsilon_lower import epsilon_lower
from ....audit.results.audit_result import AuditResult
from ....audit.search.find_worst_pair import find_worst_pair
from ....audit.search.pairs_for_domain import pairs_of
from ...published.dp_sniper import entries
from ...published.entry import Entry
from ..core.bench_json import Figures, Row, Target, at_least, at_most, columns, timed
from ..core.page import Bench, Effort, one_row_each, seeds_of

# Probabilities of events under known laws, and the best possible event, by change of measure.
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
    """Probabilities of an event: p on the likelier dataset and q on the other."""

    p: float
    q: float

    @classmethod
    def of(cls, on_x: float, on_y: float) -> Probabilities:
        """Return the probabilities in order, with rounding errors removed."""
        p, q = max(on_x, on_y), min(on_x, on_y)
        return cls(min(p, 1.0), q if q > _NEVER else 0.0)

    def expected_bound(self, runs: int, alpha: float) -> float:
        """Return the lower bound on ε at the expected hits of `runs` runs on each dataset."""
        hits = [round(runs * rate) for rate in (self.p, self.q)]
        return epsilon_lower(hits[0], runs, hits[1], runs, alpha=alpha)


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
    """Return the most promising events with a large loss; likelier events are complements of such events."""
    loss = np.sort(loss)[::-1]
    p, q = (weights.cumsum() / runs for weights in (expit(loss), expit(-loss)))
    with np.errstate(invalid="ignore"):  # infinite losses are equal
        ends = np.flatnonzero(np.diff(loss) < -_SAME)  # outputs of equal ratio belong to the same event
    ends = ends[(ends >= _LEAST_RUNS) & (ends < len(loss) - _LEAST_RUNS)]
    ends = ends[p[ends] * (1 - p[ends]) >= q[ends] * (1 - q[ends])]
    if len(ends) == 0:  # both laws are equal
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
    laws = mechanism.law(x), mechanism.law(y)
    rng = np.random.default_rng(seed)
    for dataset in (x, y):
        left = runs
        while left > 0:
            outputs = mechanism.sample(dataset, min(left, _BLOCK), rng)
            left -= len(outputs)
            yield outputs, log_ratio(*(law.log_density(outputs) for law in laws))


def log_ratio(on_x: Array, on_y: Array) -> Array:
    """Return the log-likelihood ratio; infinite where one density is zero."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(on_y), np.inf, np.where(np.isneginf(on_x), -np.inf, on_x - on_y))


ALPHA = 0.1
_EXECUTIONS, _QUICK_EXECUTIONS = 40_000_000, 100_000
_MANY_EXECUTIONS, _MOST_EXECUTIONS = 200_000_000, 600_000_000  # DP-Sniper took 6·10⁸ to 13·10⁸
_NEED_MOST = ("ReportNoisyMax2", "ReportNoisyMax3")  # for which known laws and 2·10⁸ would not suffice
_SEEDS, _QUICK_SEEDS = 5, 1
_SEARCH_SHARE = 8  # one execution in eight is spent on the search for the pair
_EXACT_RUNS, _QUICK_EXACT_RUNS = 2_000_000, 20_000
_PATTERN_RUNS = (20_000, 400_000)  # outputs that rank the oracle's pairs, in two rounds
_PATTERNS_KEPT = 6
_FRESH = 5_000_000  # added to the seed of a search for the outputs that judge it
_GAP, _SHARE = 1.15, 0.8
_PUBLISHED_DIGITS = 4
_ENTRIES = {entry.name: entry for entry in entries()}


@dataclass(frozen=True, slots=True)
class _Trial:
    """One search and audit: the pair, the event, and what they cost and gave."""

    x: Any
    y: Any
    event: str
    chosen: Probabilities
    expected: float
    drawn: float
    executions: int
    seconds: float


def _usual(name: str) -> int:
    return _EXECUTIONS


def _many(name: str) -> int:
    return _MOST_EXECUTIONS if name in _NEED_MOST else _MANY_EXECUTIONS


def _cells(
    executions_of: Callable[[str], int], n_seeds: int, table: int, effort: Effort, place: int, name: str
) -> Figures:
    executions = effort.either(_QUICK_EXECUTIONS, executions_of(name))
    seeds = seeds_of(table, place, 0, effort.either(_QUICK_SEEDS, n_seeds))
    exact_runs = effort.either(_QUICK_EXACT_RUNS, _EXACT_RUNS)
    trials = sorted(
        (_trial(_ENTRIES[name], executions, exact_runs, seed, effort.jobs) for seed in seeds),
        key=lambda trial: trial.expected,
    )
    middle, entry = trials[len(trials) // 2], _ENTRIES[name]
    best = _best_pattern(entry, executions // 2, exact_runs, seeds[-1] + 1, effort)
    oracle = best.expected_bound(executions // 2, ALPHA)
    return {
        "mechanism": name,
        "exact": entry.exact,
        "pair": f"{_short(middle.x)} / {_short(middle.y)}",
        "event": middle.event,
        "p": middle.chosen.p,
        "q": middle.chosen.q,
        "expected": middle.expected,
        "least": trials[0].expected,
        "greatest": trials[-1].expected,
        "drawn": float(np.median([trial.drawn for trial in trials])),
        "published": entry.published,
        "oracle": oracle,
        "executions": middle.executions,
        "seconds": float(np.median([trial.seconds for trial in trials])),
    }, [] if effort.is_quick else [_target(entry, middle.chosen, middle.expected, best, oracle)]


def _trial(entry: Entry, executions: int, exact_runs: int, seed: int, jobs: int) -> _Trial:
    search = executions // _SEARCH_SHARE
    found, seconds = timed(
        find_worst_pair,
        entry.mechanism,
        entry.domain,
        claim=entry.claim,
        adjacency=entry.adjacency,
        runs=(executions - search) // 2,
        search_runs=search,
        alpha=ALPHA,
        seed=seed,
        jobs=jobs,
        bits=False,
    )
    audit = found.audit
    fresh = {"runs": exact_runs, "seed": seed + _FRESH}
    chosen = event_probabilities(entry.mechanism, found.x, found.y, audit.event, **fresh)
    expected = _expected_bound(entry.mechanism, found.x, found.y, audit, fresh)
    n_executions = found.runs + 2 * audit.runs
    return _Trial(found.x, found.y, str(audit.event), chosen, expected, audit.bound, n_executions, seconds)


def _expected_bound(mechanism: Any, x: Any, y: Any, audit: AuditResult, fresh: dict[str, int]) -> float:
    """Return the bound that the audit's test of its event, or of an event in each direction, gives at their rates."""
    alpha = dict(audit.ledger.shares)["event test"]
    pair = (x, y) if audit.likelier_on == "x" else (y, x)
    p, q = event_rates(mechanism, *pair, audit.event, **fresh)[0].tolist()
    if audit.opposite is None:
        counts = audit.directed_counts
        hits = round(p * counts.runs_x), round(q * counts.runs_y)
        return epsilon_lower(hits[0], counts.runs_x, hits[1], counts.runs_y, alpha=alpha)
    other_q, other_p = event_rates(mechanism, *pair, audit.opposite.event, **fresh)[0].tolist()
    runs = audit.opposite.guesses.runs
    right, wrong = (round(0.5 * rate * runs) for rate in (p + other_p, q + other_q))
    return guess_test(Guesses(right=right, wrong=wrong, runs=runs), audit.claim, alpha=alpha)[1]


def _best_pattern(entry: Entry, runs: int, exact_runs: int, seed: int, effort: Effort) -> Probabilities:
    """Return the best event on the best pair: the suite's own, or one of the patterns of the search.

    The pairs are ranked by fewer outputs; the event of the best one is chosen on fresh outputs.
    """
    pairs = [(entry.x, entry.y)]
    if not effort.is_quick:
        source = pairs_of(entry.domain, entry.adjacency, 1.0, seed)
        pairs += [(pattern.x, pattern.y) for pattern in source.patterns()]

    def event_on(pair: tuple[Any, Any], outputs: int) -> Probabilities:
        return best_event(entry.mechanism, *pair, audit_runs=runs, alpha=ALPHA, runs=outputs, seed=seed + outputs)

    for outputs in _PATTERN_RUNS:
        if len(pairs) > 1:
            bounds = [event_on(pair, outputs).expected_bound(runs, ALPHA) for pair in pairs]
            kept = _PATTERNS_KEPT if outputs == _PATTERN_RUNS[0] else 1
            pairs = [pairs[place] for place in np.argsort(bounds)[::-1][:kept]]
    return event_on(pairs[0], exact_runs)


def _target(entry: Entry, chosen: Probabilities, expected: float, best: Probabilities, oracle: float) -> Target:
    """Return the target on the published bound where it is met, otherwise the target on the gap."""
    if math.isinf(entry.exact) and best.q == 0.0:
        share = chosen.p / best.p if chosen.q == 0.0 else 0.0
        return at_least("p over that of the best event with q = 0", share, _SHARE)
    if entry.published is not None and round(expected, _PUBLISHED_DIGITS) >= entry.published:
        return at_least("expected lower bound", round(expected, _PUBLISHED_DIGITS), entry.published)
    return at_most("gap over the oracle's gap", (entry.exact - expected) / (entry.exact - oracle), _GAP)


def _short(dataset: object) -> str:
    """Return the numbers of a dataset, separated by spaces."""
    values = dataset if isinstance(dataset, (list, tuple)) else getattr(dataset, "tolist", lambda: dataset)()
    shown = values if isinstance(values, (list, tuple)) else [values]
    return " ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in shown)


def _reached(rows: Iterable[Row], column: str) -> set[str]:
    """Return the mechanisms whose bound in a column is at or above the published one, in the digits of the latter."""
    return {
        row.key
        for row in rows
        if isinstance(bound := row.cells[column], float)
        and isinstance(published := row.cells["published"], float)
        and round(bound, _PUBLISHED_DIGITS) >= published
    }


def _summary(tables: Mapping[str, Mapping[str, Row]]) -> str:
    rows = tables["dp-sniper"].values()
    seconds = sum(float(str(row.cells["seconds"])) for row in rows)
    measured, oracle = (len(_reached(rows, column)) for column in ("expected", "oracle"))
    return (
        f"At or above the published bound: the expected bound in {measured} of {len(rows)} rows, the oracle bound in "
        f"{oracle}. One search and audit of each row take {seconds / 60:.0f} minutes together."
    )


def _long_summary(tables: Mapping[str, Mapping[str, Row]]) -> str:
    """Return how many mechanisms reach the published bound in either table."""
    both = [row for name in ("dp-sniper", "dp-sniper-long") for row in tables.get(name, {}).values()]
    known = {row.key for row in both}
    return (
        f"At or above the published bound in this table or the one above: the expected bound for "
        f"{len(_reached(both, 'expected'))} of {len(known)} mechanisms, the oracle bound for "
        f"{len(_reached(both, 'oracle'))}."
    )


def _bench(
    name: str,
    title: str,
    how_often: str,
    executions_of: Callable[[str], int],
    n_seeds: int,
    table: int,
    quick: tuple[str, ...],
    summary: Callable[[Mapping[str, Mapping[str, Row]]], str],
) -> Bench:
    return Bench(
        name=name,
        title=title,
        method=(
            f"Lower bounds on ε at confidence .9, {how_often}. Low bits are not tested. The search for the pair of "
            "datasets takes an eighth of the executions; the rest choose and count the event. p and q are the exact "
            "probabilities of the chosen event, by change of measure with the known laws. The expected bound is that "
            "of the audit's test, of this event or of one in each direction, at the exact probabilities, so that no "
            "row depends on one draw. Published bound: the best valid bound of any tool. Oracle bound: the expected "
            "bound of the best event on the best of the suite's pair and all patterns of the search, with every "
            "execution counted. Bounds are compared with published ones in the four digits that these have."
        ),
        columns=columns(
            "mechanism | exact ε = exact :.4g | pair | event | p :.4g | q :.4g | expected bound = expected :.4f | "
            "least = least :.4f | greatest = greatest :.4f | drawn bound = drawn :.4f | "
            "published bound = published :.4f | oracle bound = oracle :.4f | executions :,d | seconds :.0f"
        ),
        names=tuple(_ENTRIES),
        tasks=one_row_each(_ENTRIES, partial(_cells, executions_of, n_seeds, table), quick=quick),
        summary=summary,
    )


SNIPER = _bench(
    "dp-sniper",
    "DP-Sniper's suite",
    f"with at most 4·10⁷ executions for each mechanism: the median of {_SEEDS} seeds with its pair and event, and the "
    "least and the greatest",
    _usual,
    _SEEDS,
    11,
    ("LaplaceMechanism", "ReportNoisyMax3"),
    _summary,
)
SNIPER_LONG = _bench(
    "dp-sniper-long",
    "DP-Sniper's suite with more executions",
    "with at most 2·10⁸ executions for each mechanism, one seed, and 6·10⁸ for "
    f"{', '.join(_NEED_MOST)}; DP-Sniper took 6·10⁸ to 13·10⁸",
    _many,
    1,
    30,
    ("TruncatedGeometricMechanism",),
    _long_summary,
)
