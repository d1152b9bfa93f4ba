"""Seconds and memory of every public function of the inference."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import pkgutil
import statistics
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import numpy as np
from scipy.special import ndtr

from ....audit import inference, power
from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ....audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ....audit.claims.privacy_profile import PrivacyProfile, TradeOffCurve
from ....audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ....audit.inference import (
    betting_test,
    binomial_tails,
    boundary_test,
    confidence_bands,
    dispersion,
    divergence_test,
    guess_test,
    multiplicity,
    outcome_test,
    ratio_intervals,
    renyi_lower_bound,
    repeat_counts,
    repeated_order,
    total_variation,
    two_sample_test,
)
from ....audit.inference.binomial_tails import Array
from ....audit.inference.boundary_test import Counts
from ....audit.power import (
    alternatives,
    betting_test_power,
    critical_curve,
    joint_test_power,
)
from ..core.bench_json import Figures, Value, at_most, columns, timed
from ..core.page import ALPHA, Bench, Effort, Task, once

_RUNS, _JUDGED_RUNS = (10_000_000, 10_000_000_000), 10_000_000
_MOST_SECONDS = {"boundary_test.p_value": 0.050, "boundary_test.strength_lower": 0.300}
_REPEATS, _LONG = 9, 2.0  # calls, or fewer if their total exceeds this many seconds
_CELLS = 50
_CLAIM = PureDP(1.0)
_Q = 0.5 * math.exp(-1)  # of the event that attains the claim with p = ½, the best event of Laplace noise
_EPSILONS = np.linspace(0.0, 5.0, 1000)
_RATES = np.linspace(0.0, 1.0, 1001)[1:-1]
_ONE_GDP = GaussianDP(1.0)
_OTHERS: tuple[Claim, ...] = (  # every other kind of boundary
    ApproxDP(1.0, 1e-5),
    ApproxDP(1.0, 1e-5, bound_on="delta"),
    _ONE_GDP,
    PrivacyProfile(tuple(_EPSILONS), tuple(ndtr(0.5 - _EPSILONS) - np.exp(_EPSILONS) * ndtr(-0.5 - _EPSILONS))),
    TradeOffCurve(tuple(_RATES), tuple(_ONE_GDP.max_power(_RATES)[1])),
    RenyiDP(2.0, 0.5),
    ZeroConcentratedDP(0.5),
    ProbabilityPreservation(2.0, 0.3),
    NFoldComposition(0.1, 4),
    PureDP(0.2).group(5),  # computes the boundary of every step
    RenyiDP(2.0, 0.05).group(5),
    ZeroConcentratedDP(0.02).group(5),
)


@dataclass(frozen=True, slots=True)
class Given:
    """Arguments for a number of runs: hits of an event, and counts of fifty outcomes with log ratios in [−1, 1]."""

    runs: int
    counts: Counts
    x: Array
    y: Array

    @classmethod
    def at(cls, runs: int) -> Given:
        weights = np.exp(np.linspace(-1.0, 1.0, _CELLS))
        x = np.floor(runs * weights / weights.sum())
        x[0] += runs - x.sum()
        return cls(runs, _near_boundary(_CLAIM, runs), x, x[::-1].copy())

    @property
    def shares(self) -> tuple[Array, Array]:
        """Probabilities of the outcomes on either dataset."""
        return divergence_test.smoothed(self.x), divergence_test.smoothed(self.y)

    @property
    def near(self) -> Array:
        """Four hundred numbers of hits on y around the expected number."""
        return np.round(self.runs * _Q + np.linspace(-4.0, 4.0, 400) * math.sqrt(self.runs * _Q * (1.0 - _Q)))

    @property
    def sizes(self) -> list[int]:
        """Fifty batches."""
        return [self.runs // 50] * 50

    @property
    def excess(self) -> float:
        """Excess that is detected with a power near .9."""
        return 6.0 / math.sqrt(self.runs)

    @property
    def guesses(self) -> guess_test.Guesses:
        return guess_test.Guesses(right=self.counts.hits_x, wrong=self.counts.hits_y, runs=self.runs)

    @property
    def pairs(self) -> betting_test.JointCounts:
        p, n = 0.5, self.runs
        parts = (p * _Q, p * (1 - _Q), (1 - p) * _Q, (1 - p) * (1 - _Q))
        return betting_test.JointCounts(
            **{name: round(part * n) for name, part in zip(("both", "only_p", "only_q", "neither"), parts, strict=True)}
        )


def _near_boundary(claim: Claim, runs: int) -> Counts:
    """Return counts one or two standard errors above the claim's boundary; below it nothing is computed."""
    hits_x = round(float(claim.max_power(_Q)[0]) * runs + math.sqrt(runs))
    return Counts(hits_x=hits_x, runs_x=runs, hits_y=round(_Q * runs), runs_y=runs)


def _of_another(function: Callable[..., object], claim: Claim, given: Given) -> object:
    return function(_near_boundary(claim, given.runs), claim, alpha=ALPHA)


def _after(given: Given) -> object:
    line = betting_test.supporting_line(_CLAIM, _Q)
    return betting_test.Wealth.start(30).after([[line, line]] * 30, [given.pairs, given.pairs])


_HELPERS = {"log_mean", "allows", "order_z", "is_concave", "is_symmetric", "root_from_below", "table_angles",
            "likely_hits", "rates", "rise", "tabulated", "gain"}  # fmt: skip
"""Functions of a line or of a single use, which other calls time."""


CALLS: dict[str, Callable[[Given], object]] = {
    "binomial_tails.clopper_pearson": lambda g: binomial_tails.clopper_pearson(g.counts.hits_x, g.runs, alpha=ALPHA),
    "binomial_tails.limits": lambda g: binomial_tails.limits(g.x, g.runs, alpha=ALPHA),
    "binomial_tails.probability_limits": lambda g: binomial_tails.probability_limits(
        g.counts.hits_x, g.counts.runs_x, alpha=ALPHA
    ),
    "binomial_tails.row_slices": lambda g: binomial_tails.row_slices(1000, 1000),
    "binomial_tails.upper_tail": lambda g: binomial_tails.upper_tail(
        np.tile(g.near, (200, 1)), g.runs, np.linspace(0.1, 0.3, 200), np.linspace(0.9, 0.7, 200)
    ),
    "boundary_test.p_value": lambda g: boundary_test.p_value(g.counts, _CLAIM, alpha=ALPHA),
    "boundary_test.strength_lower": lambda g: boundary_test.strength_lower(g.counts, _CLAIM, alpha=ALPHA),
    "boundary_test.joint_test": lambda g: boundary_test.joint_test(g.counts, _CLAIM, alpha=ALPHA),
    "boundary_test.joint_test_beside": lambda g: boundary_test.joint_test_beside(
        g.counts, _CLAIM, 1.0, 0.0, alpha=ALPHA
    ),
    "boundary_test.strength_estimate": lambda g: boundary_test.strength_estimate(g.counts, _CLAIM),
    "boundary_test.largest_strength": lambda g: boundary_test.largest_strength(
        lambda strength: strength < 1.0, math.inf
    ),
    "boundary_test.arcsine_angle": lambda g: boundary_test.arcsine_angle(_Q, 1.0 - _Q),
    "boundary_test.order": lambda g: boundary_test.order(g.counts, _CLAIM, 1.645),
    "boundary_test.clears": lambda g: boundary_test.clears(g.counts, _CLAIM, 1.0),
    "boundary_test.critical_hits": lambda g: boundary_test.critical_hits(g.near, g.runs, g.runs, _CLAIM, 1.645),
    "betting_test.supporting_line": lambda g: betting_test.supporting_line(_CLAIM, _Q),
    "betting_test.best_line": lambda g: betting_test.best_line(_CLAIM, 1.2 * math.e * _Q, _Q, g.runs),
    "betting_test.best_lines": lambda g: betting_test.best_lines([_CLAIM] * 30, 1.2 * math.e * _Q, _Q, g.runs),
    "joint_test_power.power_of_test": lambda g: joint_test_power.power_of_test(
        _CLAIM, g.runs, g.runs, _Q, g.excess, alpha=ALPHA
    ),
    "joint_test_power.resolution": lambda g: joint_test_power.resolution(_CLAIM, g.runs, g.runs, _Q, alpha=ALPHA),
    "joint_test_power.runs_needed": lambda g: joint_test_power.runs_needed(
        _CLAIM, _Q, resolution=g.excess, alpha=ALPHA
    ),
    "alternatives.event_of": lambda g: alternatives.event_of(_CLAIM, g.excess, alternatives.AsLikely(0.49, _Q)),
    "alternatives.power_at": lambda g: alternatives.power_at(_CLAIM, g.excess, _Q, _Q),
    "betting_test.drift": lambda g: betting_test.drift(betting_test.best_line(_CLAIM, 0.5, _Q, float(g.runs)), 0.5, _Q),
    "dispersion.dispersion_p_value": lambda g: dispersion.dispersion_p_value(
        [g.runs // 768] * 256, [g.runs // 256] * 256
    ),
    "dispersion.product_p_value": lambda g: dispersion.product_p_value(1e-5, 1e-6),
    "dispersion.pairs_within_p_value": lambda g: dispersion.pairs_within_p_value(3, 300, [g.runs // 256] * 256),
    "repeated_order.log_chance_of_head": lambda g: repeated_order.log_chance_of_head(
        [2] * 128, [g.runs // 256] * 128, g.runs
    ),
    "repeated_order.log_falling_factorial": lambda g: repeated_order.log_falling_factorial(g.runs, 256),
    "repeated_order.log_chance_of_order": lambda g: repeated_order.log_chance_of_order(256, 1.0 / g.runs),
    "repeat_counts.copies_p_value": lambda g: repeat_counts.copies_p_value([0, g.runs, 9, *[0] * 16], g.runs + 18),
    "alternatives.best_q": lambda g: alternatives.best_q(_CLAIM, resolution=g.excess),
    "betting_test.Wealth.after": _after,
    "betting_test_power.found_share": lambda g: betting_test_power.found_share(
        _CLAIM, g.excess, g.sizes, _Q, alpha=ALPHA
    ),
    "betting_test_power.sequential_resolution": lambda g: betting_test_power.sequential_resolution(
        _CLAIM, g.sizes, _Q, alpha=ALPHA, power=0.95
    ),
    "ratio_intervals.ratio_intervals": lambda g: ratio_intervals.ratio_intervals(g.x, g.runs, g.y, g.runs, alpha=ALPHA),
    "ratio_intervals.maximum_interval": lambda g: ratio_intervals.maximum_interval(
        g.x, g.runs, g.y, g.runs, alpha=ALPHA
    ),
    "ratio_intervals.ratio_lower": lambda g: ratio_intervals.ratio_lower(g.x, g.runs, g.y, g.runs, alpha=ALPHA),
    "outcome_test.outcome_test": lambda g: outcome_test.outcome_test(
        g.x.astype(np.int64), g.y.astype(np.int64), g.runs, g.runs, _CLAIM, alpha=ALPHA
    ),
    "divergence_test.divergence_test": lambda g: divergence_test.divergence_test(
        *(g.x.astype(np.int64), g.y.astype(np.int64)),
        *(g.x.astype(np.int64), g.y.astype(np.int64)),
        ZeroConcentratedDP(0.5),
        alpha=ALPHA,
        coins=np.random.default_rng(0),
    ),
    "divergence_test.telling_divergence": lambda g: divergence_test.telling_divergence(
        *g.shares, ZeroConcentratedDP(0.5), g.runs, g.runs
    ),
    "divergence_test.log_gain": lambda g: divergence_test.log_gain(
        divergence_test.telling_divergence(*g.shares, ZeroConcentratedDP(0.5), g.runs, g.runs)[0].payoffs(*g.shares),
        np.linspace(0.1, 1.0, 50),
        np.full((50, 1), 1e-3),
        0.0,
        0.0,
        g.x.astype(np.int64),
        g.y.astype(np.int64),
    ),
    "divergence_test.smoothed": lambda g: divergence_test.smoothed(g.x),
    "outcome_test.most_outcomes": lambda g: outcome_test.most_outcomes(ALPHA),
    "confidence_bands.confidence_band": lambda g: confidence_bands.confidence_band(g.x, g.y, alpha=ALPHA),
    "confidence_bands.Band.profile": lambda g: confidence_bands.confidence_band(g.x, g.y, alpha=ALPHA).profile(
        np.linspace(0, 1, 101)
    ),
    "confidence_bands.Band.trade_off": lambda g: confidence_bands.confidence_band(g.x, g.y, alpha=ALPHA).trade_off(
        np.linspace(0, 1, 101)
    ),
    "confidence_bands.concave_hull": lambda g: confidence_bands.concave_hull(
        np.cumsum(g.x) / g.runs, np.cumsum(g.y) / g.runs
    ),
    "renyi_lower_bound.renyi_lower": lambda g: renyi_lower_bound.renyi_lower(g.x, g.y, 2.0, alpha=ALPHA),
    "renyi_lower_bound.moment_lower": lambda g: renyi_lower_bound.moment_lower(g.x, g.y, 2.0, alpha=ALPHA),
    "total_variation.total_variation_upper": lambda g: total_variation.total_variation_upper(
        g.x.astype(int).tolist(), g.y.astype(int).tolist(), alpha=ALPHA
    ),
    "two_sample_test.hypergeometric_tail": lambda g: two_sample_test.hypergeometric_tail(
        g.runs // 3, g.runs, 2 * (g.runs // 3), 2 * g.runs
    ),
    "two_sample_test.change_p_value": lambda g: two_sample_test.change_p_value(
        g.runs // 3, g.runs, g.runs // 3 + 1, g.runs
    ),
    "binomial_tails.varied_upper_tail": lambda g: binomial_tails.varied_upper_tail(
        np.tile(g.near, (200, 1)),
        np.tile(g.runs - g.near, (200, 1)),
        np.linspace(0.1, 0.3, 200),
        np.linspace(0.9, 0.7, 200),
        np.full(200, True),
    ),
    "guess_test.guess_test": lambda g: guess_test.guess_test(g.guesses, _CLAIM, alpha=ALPHA),
    "guess_test.coins_for": lambda g: guess_test.coins_for(g.runs),
    "guess_test.runs_by_coins": lambda g: guess_test.runs_by_coins(g.runs, np.random.default_rng(1)),
    "guess_test.guesses_by_coins": lambda g: guess_test.guesses_by_coins(
        g.counts, g.counts.swapped(), np.random.default_rng(1)
    ),
    "guess_test.guesses_in_batch": lambda g: guess_test.guesses_in_batch(
        g.counts, g.counts.swapped(), np.random.default_rng(1)
    ),
    "joint_test_power.guess_resolution": lambda g: joint_test_power.guess_resolution(
        _CLAIM, g.guesses, alpha=ALPHA, power=0.95
    ),
    "joint_test_power.equivalent_runs": lambda g: joint_test_power.equivalent_runs(_CLAIM, g.guesses),
    "alternatives.events_of": lambda g: alternatives.events_of(_CLAIM, alternatives.AsLikely(0.49, _Q))(g.excess),
    "critical_curve.critical_curve": lambda g: critical_curve.critical_curve(_CLAIM, g.runs, g.runs, _Q, ALPHA, g.near),
    "boundary_test.hits_needed": lambda g: boundary_test.hits_needed(g.near, g.runs, g.runs, _CLAIM, 1.645),
    "boundary_test.directed": lambda g: boundary_test.directed(_CLAIM, g.counts, "y"),
    "multiplicity.holm": lambda g: multiplicity.holm(np.linspace(0.0, 1.0, 100).tolist()),
    "multiplicity.split_budget": lambda g: multiplicity.split_budget(ALPHA, [str(k) for k in range(100)]),
}


CALLS |= {
    f"{name}, {claim}, {claim.strength_name}": partial(_of_another, function, claim)
    for name, function in (
        ("boundary_test.p_value", boundary_test.p_value),
        ("boundary_test.strength_lower", boundary_test.strength_lower),
    )
    for claim in _OTHERS
}


def untimed() -> list[str]:
    """Return the public functions of the inference without a call here, except helpers and checks of arguments."""
    found = []
    for module, loaded in _modules():
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            is_own = function.__module__ == loaded.__name__ and not name.startswith(("_", "check"))
            if is_own and name not in _HELPERS and f"{module}.{name}" not in CALLS:
                found.append(f"{module}.{name}")
    return sorted(found)


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules of the inference and of its power, with their names."""
    for room in (inference, power):
        for module in pkgutil.iter_modules(room.__path__):
            yield module.name, importlib.import_module(f"{room.__name__}.{module.name}")


def seconds_of(call: Callable[[], object], repeats: int) -> list[float]:
    """Return the seconds of several calls, fewer if they are long, each with empty caches."""
    taken: list[float] = []
    while len(taken) < repeats and (not taken or sum(taken) < _LONG):
        _forget()
        taken.append(timed(call)[1])
    return taken


def _forget() -> None:
    """Empty the caches of the inference."""
    for _, module in _modules():
        for value in vars(module).values():
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()


def peak_of(call: Callable[[], object]) -> float:
    """Return the peak memory of a call in MiB, as reported by the allocators of Python and numpy."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def _timing(effort: Effort, name: str, runs: int) -> Figures:
    call = partial(CALLS[name], Given.at(runs))
    if not effort.is_quick:
        call()
    taken = [1e3 * seconds for seconds in seconds_of(call, effort.either(1, _REPEATS))]
    median = statistics.median(taken)
    cells: dict[str, Value] = {
        "function": name,
        "runs": runs,
        "calls": len(taken),
        "milliseconds": median,
        "least": min(taken),
        "most": max(taken),
        "mebibytes": peak_of(call),
    }
    most = _MOST_SECONDS.get(name.split(", ")[0])
    if effort.is_quick or runs != _JUDGED_RUNS or most is None:
        return cells, []
    return cells, [at_most("median ms", median, 1e3 * most)]


def _timing_tasks(effort: Effort) -> Iterator[Task]:
    for runs, name in itertools.product(effort.either(_RUNS[:1], _RUNS), CALLS):
        if effort.wants(name) and not (effort.is_quick and ", " in name):
            yield once(f"{name}, {runs}", _timing, effort, name, runs)


TIMING = Bench(
    name="timing",
    title="Time and memory of the inference",
    method=(
        f"Every public function, for {_CLAIM} unless another claim is named, with q = {_Q:.3f} and p one or two "
        f"standard errors above the boundary, with {_CELLS} outcomes of log ratios from −1 to 1, or with arrays of "
        "hundreds of counts. Times of several calls in one process, after a first call and with empty caches. A "
        "further call traces the memory."
    ),
    columns=columns(
        "function | runs :, | calls | median ms = milliseconds :.3g | minimum ms = least :.3g | "
        "maximum ms = most :.3g | peak MiB = mebibytes :.2f"
    ),
    names=tuple(CALLS),
    tasks=_timing_tasks,
)
