"""Audits of one training run: false alarms, and bounds on DP-SGD."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr
from scipy.stats import binom

from ...audit.canaries.canary_tests import has_lines, refutes
from ...audit.canaries.check_canaries import CanaryDraws, check_canaries, right_from_both_ends
from ...audit.canaries.plan_canaries import METHODS, fixed_numbers, plan_tests
from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ...audit.guesses.canary_guesses import CanaryGuesses, CanaryTest, GuessLimit, count_tail
from ...audit.guesses.guess_bets import guess_numbers, largest_refuted
from ...audit.procedures.check import check
from ...mechanisms.adapters.library_calls import imported
from ...mechanisms.training.canaries import DiracCanaries, canary_run
from ...mechanisms.training.dp_sgd import DPSGD, WorstCaseTraining, dp_sgd_claim
from ...mechanisms.training.models import LogisticRegression, breast_cancer_records
from ...mechanisms.training.observers import LastLoss
from ...mechanisms.training.train import PoissonBatches
from ..libraries.subjects import release_of
from .measure import (
    ALPHA,
    Effort,
    Figures,
    Seeds,
    Table,
    Value,
    at_most,
    certainly_at_most,
    timed,
)

# Scores of canaries from mechanisms whose claim is known and attained, some of them as hostile as the claim allows.

Flags: TypeAlias = npt.NDArray[np.bool_]
Draw: TypeAlias = Callable[[Flags, np.random.Generator], npt.NDArray[Any]]

_EPSILON, _MU = 1.0, 1.0
_DELTA, _COMMON = 1e-3, 0.01


@dataclass(frozen=True, slots=True)
class Known:
    """A mechanism with one score for each canary, ``draw(included, rng)``, and the claim that is tight for so many."""

    claim: Callable[[int], Claim]
    draw: Draw


def _responses(included: Flags, rng: np.random.Generator, right: float) -> npt.NDArray[Any]:
    return np.where(rng.random(len(included)) < right, included, ~included).astype(np.float64)


def randomised_response(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Answers that are right with odds e^ε: all scores are 0 or 1."""
    return _responses(included, rng, float(expit(_EPSILON)))


def a_tenth_tells(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Randomised response on a random tenth of the canaries, twice as far from ½ as the silent others."""
    answers = 2.0 * randomised_response(included, rng) - 1.0
    return np.where(rng.random(len(included)) < 0.1, 2.0 * answers, rng.uniform(-1.0, 1.0, len(included)))


def laplace(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """The coin with Laplace noise of scale 1/ε."""
    return included + rng.laplace(scale=1.0 / _EPSILON, size=len(included))


def gaussian(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """The coin times μ with standard normal noise."""
    return _MU * included + rng.normal(size=len(included))


def gaussian_response(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Answers that are right with probability Φ(μ/2), which touches the Gaussian curve."""
    return _responses(included, rng, float(ndtr(_MU / 2)))


def revealed_alone(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Each canary is revealed with probability δ, else randomised response: scores −2, −1, 1, 2."""
    answers = 2.0 * randomised_response(included, rng) - 1.0
    return np.where(rng.random(len(included)) < _DELTA, 4.0 * included - 2.0, answers)


def revealed_together(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """All canaries are revealed at once with probability δ, else randomised response."""
    if rng.random() < _COMMON:
        return included.astype(np.float64)
    return randomised_response(included, rng)


@lru_cache(maxsize=16)
def _worst_distribution(canaries: int, delta: float) -> npt.NDArray[np.float64]:
    """The distribution of right answers that attains theorem 2 at the smallest count with a bound of at most .05."""
    limit = GuessLimit(_EPSILON, delta)
    count = next(v for v in range(1, canaries + 1) if count_tail(v, canaries, canaries, limit) <= 0.05)
    distribution = binom.pmf(np.arange(canaries + 1), canaries, 1.0 - limit.incorrect)
    tail = distribution[count:].sum()
    step = canaries * delta / (count * distribution[count])  # of h = P/b, at the count
    low = 1.0 - step * tail
    return np.asarray(distribution * np.where(np.arange(canaries + 1) < count, low, low + step))


def worst_for_counts(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Answers of which a random set is right, with the number that theorem 2 allows at most as often as allowed."""
    m = len(included)
    distribution = _worst_distribution(m, _DELTA / m)
    right = rng.choice(m + 1, p=distribution / distribution.sum())
    is_right = rng.permutation(m) < right
    return np.where(is_right, included, ~included).astype(np.float64)


KNOWN = {
    "randomised response": Known(lambda m: PureDP(_EPSILON), randomised_response),
    "a tenth of the canaries tells": Known(lambda m: PureDP(_EPSILON), a_tenth_tells),
    "Laplace scores": Known(lambda m: PureDP(_EPSILON), laplace),
    "Gaussian scores": Known(lambda m: GaussianDP(_MU), gaussian),
    "response on the Gaussian curve": Known(lambda m: GaussianDP(_MU), gaussian_response),
    "each revealed with probability delta": Known(lambda m: ApproxDP(_EPSILON, _DELTA), revealed_alone),
    "all revealed with probability delta": Known(lambda m: ApproxDP(_EPSILON, _COMMON), revealed_together),
    "the worst distribution for counts": Known(lambda m: ApproxDP(_EPSILON, _DELTA / m), worst_for_counts),
}


# False alarms of every method where the claim holds with equality, and on hostile mechanisms.


class Remembered:
    """Verdicts of a test by the number that decides them: larger numbers refute if smaller ones do."""

    def __init__(self, test: CanaryTest, claim: Claim) -> None:
        self.test, self.claim = test, claim
        self.kept, self.refuted = -math.inf, math.inf

    def __call__(self, guesses: CanaryGuesses) -> bool:
        if self.test.kind == "betting":
            decisive = largest_refuted(guesses.correct, guesses.numbers, self.test.alpha)
        else:
            decisive = float(guesses.correct_among(self.test.guesses))
        if not self.kept < decisive < self.refuted:
            return decisive >= self.refuted
        is_refuted = refutes(self.test, self.claim, guesses)
        if is_refuted:
            self.refuted = decisive
        else:
            self.kept = decisive
        return is_refuted


def _refuted(method: str) -> str:
    """Name of the number of refuted claims, next to that of their share."""
    return f"{method}_refuted"


def _methods(claim: Claim) -> list[str]:
    return [method for method in METHODS if method in ("auto", "f-dp") or has_lines(claim)]


def _guesses(scores: npt.NDArray[Any], included: Flags, numbers: tuple[int, ...], rng: Any) -> CanaryGuesses:
    right = np.cumsum(right_from_both_ends(CanaryDraws(scores, included), rng))
    chosen = tuple(right[np.array(numbers) - 1].tolist())
    return CanaryGuesses(canaries=len(scores), numbers=numbers, correct=chosen)


def _numbers(canaries: int) -> tuple[int, ...]:
    return tuple(sorted({*guess_numbers(canaries), *fixed_numbers(canaries)}))


def _alarms(effort: Effort, name: str, canaries: int, seeds: range) -> Counter[str]:
    claim, numbers = KNOWN[name].claim(canaries), _numbers(canaries)
    shape = CanaryGuesses(canaries=canaries, numbers=numbers, correct=(0,) * len(numbers))
    tests = {method: plan_tests(method, None, claim, shape, ALPHA) for method in _methods(claim)}
    decide = {test: Remembered(test, claim) for planned in tests.values() for test in planned}
    found = Counter({"audits": len(seeds)})
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        guesses = _guesses(KNOWN[name].draw(included, rng), included, numbers, rng)
        for method, planned in tests.items():
            found[_refuted(method)] += any(decide[test](guesses) for test in planned)
    return found


def _alarm_cells(effort: Effort, counts: Counter[str], name: str, canaries: int) -> Figures:
    audits, claim = counts["audits"], KNOWN[name].claim(canaries)
    cells: dict[str, Value] = {"mechanism": name, "claim": str(claim), "canaries": canaries, "audits": audits}
    cells |= {method: counts[_refuted(method)] / audits for method in _methods(claim)}
    cells |= {_refuted(method): counts[_refuted(method)] for method in METHODS}
    return cells, [certainly_at_most(method, counts[_refuted(method)], audits, ALPHA) for method in _methods(claim)]


# False alarms of JAX Privacy's own auditing, beside `check_canaries`, on scores that say nothing.

_LIBRARY = "jax-privacy"
_ALARM_DELTA = 1e-9


def _auditor(scores: npt.NDArray[Any], included: Flags) -> Any:
    return imported("jax_privacy.auditing", _LIBRARY).CanaryScoreAuditor(scores[included], scores[~included])


def _library_alarms(effort: Effort, canaries: int, seeds: range) -> Counter[str]:
    """Audits of scores that have nothing to do with the inclusion: bounds above 0, and refuted claims of ε = 0."""
    claim, numbers = ApproxDP(0.0, _ALARM_DELTA), _numbers(canaries)
    shape = CanaryGuesses(canaries=canaries, numbers=numbers, correct=(0,) * len(numbers))
    decide = [Remembered(test, claim) for test in plan_tests("auto", None, claim, shape, ALPHA)]
    found = Counter(audits=len(seeds), library_alarms=0, dpaudit_alarms=0)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        scores = rng.normal(size=canaries)
        guesses = _guesses(scores, included, numbers, rng)
        found["library_alarms"] += _auditor(scores, included).epsilon_one_run(ALPHA, _ALARM_DELTA) > 0.0
        found["dpaudit_alarms"] += any(test(guesses) for test in decide)
    return found


def _library_alarm_cells(effort: Effort, counts: Counter[str], canaries: int) -> Figures:
    audits = counts["audits"]
    return {
        "setting": "false alarms, identical distributions",
        "canaries": canaries,
        "delta": _ALARM_DELTA,
        "claimed": 0.0,
        "truth": 0.0,
        **dict(counts),
        "library_refuted": counts["library_alarms"] / audits,
        "dpaudit_refuted": counts["dpaudit_alarms"] / audits,
        "release": release_of(_LIBRARY),
    }, [certainly_at_most("false alarms of dpaudit", counts["dpaudit_alarms"], audits, ALPHA)]


# Lower bounds on DP-SGD beside the accountant's epsilon: one run with canaries, and a thousand runs and more.

_EPSILONS, _SGD_DELTA, _SGD_SEEDS = (1.0, 2.0, 4.0, 8.0), 1e-5, 5
_SGD_RATE, _SGD_STEPS, _LEARNING_RATE = 0.1, 100, 2.0
_SGD_CANARIES, _FEW, _MANY = 10_000, 1_000, 100_000
_SATURATED = 20.0  # factor on fitted weights, so that records that are classified right have almost no gradient


@cache
def noise_multiplier(epsilon: float) -> float:
    """The noise multiplier of Poisson batches whose claim is (ε, 1e-5), up to 0.1% and on the noisier side."""
    low, high = 0.1, 50.0
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        claim: Any = dp_sgd_claim(PoissonBatches(_SGD_RATE), middle, _SGD_STEPS, delta=_SGD_DELTA)
        low, high = (low, middle) if claim.epsilon <= epsilon else (middle, high)
    return high


def _training(sigma: float) -> DPSGD:
    records = breast_cancer_records()
    return DPSGD(
        model=LogisticRegression(31),
        sampling=PoissonBatches(_SGD_RATE),
        noise_multiplier=sigma,
        steps=_SGD_STEPS,
        learning_rate=_LEARNING_RATE,
        batch_size=_SGD_RATE * len(records),
        delta=_SGD_DELTA,
    )


def _sgd_one_run(score: Any, epsilon: float, sigma: float, canaries: int, seed: int) -> float:
    run = canary_run(_training(sigma), breast_cancer_records(), DiracCanaries(canaries), score=score, seed=seed)
    claim = ApproxDP(epsilon, _SGD_DELTA)
    return check_canaries(run.scores, run.included, claim=claim, alpha=ALPHA, inclusion="independent").bound


def _worst_case(seen: Any, epsilon: float, sigma: float, runs: int, seed: int) -> float:
    case = WorstCaseTraining(noise_multiplier=sigma, steps=_SGD_STEPS, rate=_SGD_RATE, seen=seen, delta=_SGD_DELTA)
    claim = ApproxDP(epsilon, _SGD_DELTA)
    return check(case.training, case.x, case.y, claim=claim, runs=runs, alpha=ALPHA, seed=seed, jobs=1).bound


def _real_data(is_saturated: bool, epsilon: float, sigma: float, runs: int, seed: int) -> float:
    """Losses of a mislabelled record, at the last weights of trainings with and without it."""
    records = breast_cancer_records()
    target = records[0].copy()
    target[-1] = 1.0 - target[-1]
    training = replace(_training(sigma), observer=LastLoss(tuple(target.tolist())))
    if is_saturated:
        training = replace(training, initial=_saturated_weights())
    with_target = np.concatenate([records[1:], target[None]])
    claim = ApproxDP(epsilon, _SGD_DELTA)
    options: dict[str, Any] = {"claim": claim, "runs": runs, "alpha": ALPHA, "seed": seed, "jobs": 1}
    bound: float = check(training, with_target, records[1:], **options).bound
    return bound


@cache
def _saturated_weights() -> tuple[float, ...]:
    """Weights that classify nearly all records with certainty, so that the mislabelled one has the whole gradient."""
    from sklearn.linear_model import LogisticRegression as Fit

    records = breast_cancer_records()[1:]
    fit = Fit(C=1e3, fit_intercept=False, max_iter=5_000).fit(records[:, :-1], records[:, -1])
    return tuple((_SATURATED * fit.coef_[0]).tolist())


@dataclass(frozen=True, slots=True)
class _Setting:
    bound: Callable[..., float]
    what: Any
    size: int
    counts: str


_SETTINGS = {
    "one run, every step seen": _Setting(_sgd_one_run, "ratio", _SGD_CANARIES, "canaries"),
    "one run, last iterate": _Setting(_sgd_one_run, "sum", _SGD_CANARIES, "canaries"),
    "worst case, every step seen": _Setting(_worst_case, "ratio", _FEW, "runs"),
    "worst case, every step seen, more runs": _Setting(_worst_case, "ratio", _MANY, "runs"),
    "worst case, last iterate": _Setting(_worst_case, "last", _FEW, "runs"),
    "worst case, last iterate, more runs": _Setting(_worst_case, "last", _MANY, "runs"),
    "real data, last loss": _Setting(_real_data, False, _FEW, "runs"),
    "real data, last loss, worst-case initial weights": _Setting(_real_data, True, _FEW, "runs"),
}


def _sgd_cells(effort: Effort, seeds: Seeds, name: str, epsilon: float) -> Figures:
    setting = _SETTINGS[name]
    sigma = noise_multiplier(epsilon)
    size = effort.either(min(setting.size, 500), setting.size)
    bounds, times = [], []
    for seed in seeds(effort.either(1, _SGD_SEEDS)):
        bound, seconds = timed(setting.bound, setting.what, epsilon, sigma, size, seed)
        bounds.append(bound)
        times.append(seconds)
    return {
        "setting": name,
        "epsilon": epsilon,
        "sigma": sigma,
        "runs": 1 if setting.counts == "canaries" else size,
        "canaries": size if setting.counts == "canaries" else None,
        "bound": float(np.median(bounds)),
        "low": min(bounds),
        "high": max(bounds),
        "seconds": float(np.median(times)),
    }, [at_most("median bound", float(np.median(bounds)), epsilon)]


_ALARM_ROWS = {f"{name}, {size:,} canaries": (name, size) for name in KNOWN for size in (200, 1_000, 5_000)}
_JAX_ALARM_ROWS = {f"false alarms, {canaries:,} canaries": (canaries,) for canaries in (1_000, 20_000)}
_SGD_ROWS = {f"{name}, {epsilon:g}": (name, epsilon) for name in _SETTINGS for epsilon in _EPSILONS}

TABLES = (
    Table(
        "canary-false-alarms", 39, _ALARM_ROWS, _alarm_cells, count=_alarms, batch=250,
        counts=("audits", *map(_refuted, METHODS)), quick=("all revealed with probability delta, 200 canaries",),
    ),
    Table(
        "jax-privacy-false-alarms", 45, _JAX_ALARM_ROWS, _library_alarm_cells, count=_library_alarms,
        counts=("audits", "library_alarms", "dpaudit_alarms"), quick=("false alarms, 1,000 canaries",),
        library=lambda canaries: _LIBRARY,
    ),
    Table("dp-sgd", 43, _SGD_ROWS, _sgd_cells, quick=("one run, last iterate, 1",)),
)  # fmt: skip
