"""Audits of one training run: false alarms, bounds and published ones, JAX Privacy, DP-SGD, mistakes in training."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from ...audit.canaries.canary_tests import epsilon_from_guesses, has_lines, refutes
from ...audit.canaries.check_canaries import CanaryDraws, check_canaries, right_from_both_ends
from ...audit.canaries.plan_canaries import METHODS, fixed_numbers, plan_tests
from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ...audit.guesses.canary_guesses import CanaryGuesses, CanaryTest, GuessLimit, count_tail
from ...audit.guesses.guess_bets import guess_numbers, largest_refuted
from ...audit.procedures.check import check
from ...audit.results.canary_result import CanaryResult
from ...mechanisms.adapters.library_calls import imported
from ...mechanisms.distributions.distributions import GaussianDistribution
from ...mechanisms.faulty.training import TRAINING_FAULTS, TrainingFault
from ...mechanisms.training.canaries import DiracCanaries, Training, canary_run
from ...mechanisms.training.dp_sgd import DPSGD, WorstCaseTraining, dp_sgd_claim
from ...mechanisms.training.models import LogisticRegression, breast_cancer_records
from ...mechanisms.training.observers import LastLoss
from ...mechanisms.training.train import PoissonBatches
from ..libraries.subjects import release_of
from .jax_privacy import CanaryTraining, Fault, jax_privacy_training
from .measure import (
    ALPHA,
    Effort,
    Figures,
    Seeds,
    Table,
    Value,
    at_least,
    at_most,
    by_name,
    certainly_at_most,
    in_batches,
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


def gaussian_scores(mu: float, included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Scores N(μ, 1) in and N(0, 1) out."""
    return mu * included + rng.normal(size=len(included))


def epsilon_of_gaussian(mu: float, delta: float) -> float:
    """The ε of μ-GDP at δ."""
    return GaussianDistribution(0.0, 1.0).epsilon_from(GaussianDistribution(mu, 1.0), delta)


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


# Lower bounds and published ones: bare counts, and scores N(μ, 1) in and N(0, 1) out.

_COUNTS = {  # (right, guesses, canaries): the bound of Steinke et al. as published, δ = 1e-5
    (10_000, 10_000, 10_000): 7.834,
    (100_000, 100_000, 100_000): 8.128,
    (700, 1_000, 10_000): 0.729,
    (5_500, 10_000, 10_000): 0.167,
    (100, 100, 100_000): 0.809,
    (950, 1_000, 100_000): 2.495,
}
_SCORES = {  # μ: one run for (ε, δ), and f-DP for a Gaussian curve, from the tests of jax-privacy
    1.0: (1.133, 2.165),
    2.0: (2.312, 4.722),
    4.0: (4.396, 9.134),
}
_SCORED, _COUNT_DELTA, _SCORE_DELTA, _AUDITS = 20_000, 1e-5, 1e-6, 200


def _counts(effort: Effort, seeds: Seeds, right: int, guesses: int, canaries: int) -> Figures:
    published = _COUNTS[right, guesses, canaries]
    bound = epsilon_from_guesses(right, guesses, canaries, delta=_COUNT_DELTA)
    pure = epsilon_from_guesses(right, guesses, canaries)
    cells: dict[str, Value] = {
        "setting": f"{right:,} of {guesses:,} guesses right, of {canaries:,} canaries",
        "canaries": canaries,
        "delta": _COUNT_DELTA,
        "published": published,
        "bound": bound,
        "pure": pure,
    }
    return cells, [at_least("bound", round(bound, 3), published)]


def _bounds(mu: float, is_curve: bool, seeds: range) -> list[float]:
    found = []
    claim = GaussianDP(0.1) if is_curve else ApproxDP(0.5, _SCORE_DELTA)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(_SCORED) < 0.5
        scores = gaussian_scores(mu, included, rng)
        bound = check_canaries(scores, included, claim=claim, alpha=ALPHA, inclusion="independent").bound
        found.append(epsilon_of_gaussian(bound, _SCORE_DELTA) if is_curve else bound)
    return found


def _scores(effort: Effort, seeds: Seeds, mu: float, is_curve: bool) -> Figures:
    bounds = in_batches(_bounds, (mu, is_curve), seeds(effort.either(2, _AUDITS)), 5, effort.jobs)
    published = _SCORES[mu][is_curve]
    low, middle, high = np.quantile(bounds, [0.1, 0.5, 0.9])
    cells: dict[str, Value] = {
        "setting": f"Gaussian scores, mu {mu:g}, claim {'of a Gaussian curve' if is_curve else 'for epsilon at delta'}",
        "canaries": _SCORED,
        "delta": _SCORE_DELTA,
        "audits": len(bounds),
        "published": published,
        "bound": float(middle),
        "low": float(low),
        "high": float(high),
        "truth": epsilon_of_gaussian(mu, _SCORE_DELTA),
    }
    return cells, [at_least("median bound", float(middle), published)]


# JAX Privacy's own auditing beside `check_canaries`: its training, its published test numbers, and false alarms.

_LIBRARY = "jax-privacy"
_TRAININGS: dict[str, Fault] = {"right": "", "half the noise": "half the noise", "clipped mean": "clipped mean"}
_SEEN = {"step scores": "step_scores", "last scores": "last_scores"}
_JAX_SEEDS, _TRAINING_DELTA = 5, 1e-5
# On simulated scores, so many canaries and steps show half the noise in one run.
_TRAINED, _JAX_STEPS, _JAX_RATE, _NOISE = 20_000, 50, 0.05, 1.0
_JAX_DRAWS, _ALARM_DELTA = 20, 1e-9


def _auditor(scores: npt.NDArray[Any], included: Flags) -> Any:
    return imported("jax_privacy.auditing", _LIBRARY).CanaryScoreAuditor(scores[included], scores[~included])


def _library_bounds(scores: npt.NDArray[Any], included: Flags, delta: float, seed: int) -> tuple[float, ...]:
    """Bounds on ε by the library, for (ε, δ) and by f-DP: thresholds by default, and by a split of the canaries."""
    auditor, split = _auditor(scores, included), imported("jax_privacy.auditing", _LIBRARY).Split(seed=seed)
    return (
        float(auditor.epsilon_one_run(ALPHA, delta)),
        float(auditor.epsilon_one_run(ALPHA, delta, threshold_strategy=split)),
        float(auditor.epsilon_one_run_fdp(ALPHA, delta)),
        float(auditor.epsilon_one_run_fdp(ALPHA, delta, threshold_strategy=split)),
    )


def _own_bounds(scores: npt.NDArray[Any], included: Flags, claim: ApproxDP) -> tuple[float, float]:
    """Bounds on ε by `check_canaries`: for any mechanism, and for a Gaussian curve."""
    bounds = [
        check_canaries(scores, included, claim=audited, alpha=ALPHA, inclusion="independent").bound
        for audited in (claim, GaussianDP(0.1))
    ]
    return bounds[0], epsilon_of_gaussian(bounds[1], claim.delta)


@lru_cache(maxsize=_JAX_SEEDS)
def _trained(fault: Fault, canaries: int, steps: int, seed: int) -> tuple[CanaryTraining, ApproxDP, float]:
    """The training, its claim at δ and its seconds; kept, as both kinds of scores are of the same trainings."""
    options = {"steps": steps, "sampling_rate": _JAX_RATE, "noise_multiplier": _NOISE, "seed": seed}
    run, seconds = timed(jax_privacy_training, canaries=canaries, fault=fault, **options)
    curve = run.claim()
    epsilon = min(e for e, delta in zip(curve.epsilons, curve.deltas, strict=True) if delta <= _TRAINING_DELTA)
    return run, ApproxDP(epsilon, _TRAINING_DELTA), seconds


def _of_training(effort: Effort, seeds: Seeds, name: str, seen: str) -> Figures:
    canaries, steps = effort.either((500, 5), (_TRAINED, _JAX_STEPS))
    bounds, refuted, times = [], [], []
    for seed in range(effort.either(1, _JAX_SEEDS)):  # the same trainings for both kinds of scores
        run, claim, training = _trained(_TRAININGS[name], canaries, steps, seed)
        scores = getattr(run, _SEEN[seen])
        library, library_seconds = timed(_library_bounds, scores, run.included, claim.delta, seed)
        own, own_seconds = timed(_own_bounds, scores, run.included, claim)
        bounds.append((*library, *own))
        refuted.append([bound > claim.epsilon for bound in (*library[:2], own[0])])
        times.append((training, library_seconds, own_seconds))
    by_bonferroni, by_split, by_dpaudit = np.mean(refuted, axis=0).tolist()
    cells: dict[str, Value] = {
        "setting": f"{name}, {seen}",
        "canaries": canaries,
        "delta": claim.delta,
        "audits": len(bounds),
        "claimed": claim.epsilon,
        **_medians(bounds),
        "library_refuted": by_bonferroni,
        "split_refuted": by_split,
        "dpaudit_refuted": by_dpaudit,
        **dict(zip(("training", "library_seconds", "seconds"), np.median(times, axis=0).tolist(), strict=True)),
        "release": release_of(_LIBRARY),
    }
    if name == "right":
        return cells, [at_most("refuted by dpaudit", by_dpaudit, 0.0)]
    if seen == "step scores" and not effort.is_quick:
        return cells, [at_least("refuted by dpaudit", by_dpaudit, 1.0)]
    return cells, []


def _medians(bounds: list[tuple[float, ...]]) -> dict[str, Value]:
    """The medians of `_library_bounds` and `_own_bounds`, by the names of their cells."""
    names = ("bonferroni", "split", "fdp", "fdp_split", "bound", "curve")
    return dict(zip(names, np.median(np.array(bounds), axis=0).tolist(), strict=True))


def _of_published(effort: Effort, seeds: Seeds, mu: float) -> Figures:
    """The library's test: quantiles on an even grid as scores, half of the canaries in."""
    half = _SCORED // 2
    grid = ndtri((np.arange(half) + 0.5) / half)
    included = np.arange(_SCORED) < half
    started = time.perf_counter()
    auditor = _auditor(np.concatenate([grid + mu, grid]), included)
    found = float(auditor.epsilon_one_run(ALPHA, _SCORE_DELTA)), float(auditor.epsilon_one_run_fdp(ALPHA, _SCORE_DELTA))
    cells: dict[str, Value] = {
        "setting": f"published numbers, mu {mu:g}: {', '.join(f'{number:.3f}' for number in _SCORES[mu])}",
        "canaries": _SCORED,
        "delta": _SCORE_DELTA,
        "audits": 1,
        "truth": epsilon_of_gaussian(mu, _SCORE_DELTA),
        "bonferroni": found[0],
        "fdp": found[1],
        "library_seconds": time.perf_counter() - started,
        "release": release_of(_LIBRARY),
    }
    away = max(abs(one - other) for one, other in zip(found, _SCORES[mu], strict=True))
    return cells, [at_most("difference from the published numbers", away, 0.001)]


def _draws(mu: float, canaries: int, seeds: range) -> list[tuple[float, ...]]:
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        scores = gaussian_scores(mu, included, rng)
        library, library_seconds = timed(_library_bounds, scores, included, _SCORE_DELTA, seed)
        own, own_seconds = timed(_own_bounds, scores, included, ApproxDP(0.5, _SCORE_DELTA))
        found.append((*library, *own, library_seconds, own_seconds))
    return found


def _of_draws(effort: Effort, seeds: Seeds, mu: float) -> Figures:
    canaries = effort.either(1_000, _SCORED)
    draws = in_batches(_draws, (mu, canaries), seeds(effort.either(1, _JAX_DRAWS)), 5, effort.jobs)
    library_seconds, seconds = np.median(np.array(draws)[:, -2:], axis=0).tolist()
    medians = _medians([draw[:-2] for draw in draws])
    cells: dict[str, Value] = {
        "setting": f"random scores, mu {mu:g}",
        "canaries": canaries,
        "delta": _SCORE_DELTA,
        "audits": len(draws),
        "truth": epsilon_of_gaussian(mu, _SCORE_DELTA),
        **medians,
        "library_seconds": library_seconds,
        "seconds": seconds,
        "release": release_of(_LIBRARY),
    }
    best = max(float(medians["bonferroni"] or 0.0), float(medians["split"] or 0.0))
    targets = [] if effort.is_quick else [at_least("median bound", float(medians["bound"] or 0.0), best)]
    return cells, targets


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
    cells: dict[str, Value] = {
        "setting": name,
        "epsilon": epsilon,
        "sigma": sigma,
        "runs": 1 if setting.counts == "canaries" else size,
        "canaries": size if setting.counts == "canaries" else None,
        "bound": float(np.median(bounds)),
        "low": min(bounds),
        "high": max(bounds),
        "seconds": float(np.median(times)),
    }
    return cells, [at_most("median bound", float(np.median(bounds)), epsilon)]


# Mistakes in DP-SGD, caught by repeated runs and, where canaries show them, by one run.

_MISTAKES = {fault.name: fault for fault in TRAINING_FAULTS}
_MISTAKE_SEEDS = 20
_RUNS_ALPHA = 1e-4  # of repeated runs, so that one of the right trainings is refuted in 4% of measurements at most
_TIMES = 4  # runs and canaries, as a multiple of what shows a mistake with one seed


def _audited(name: str, seeds: range) -> list[tuple[float, ...]]:
    """For each seed: wrong and right training refuted by repeated runs and by one run, bounds of the wrong, seconds."""
    fault = _MISTAKES[name]
    found = []
    for seed in seeds:
        start = time.perf_counter()
        many = [
            check(training, fault.x, fault.y, runs=_TIMES * fault.runs, alpha=_RUNS_ALPHA, seed=seed, jobs=1)
            for training in (fault.wrong, fault.right)
        ]
        half = time.perf_counter()
        trainings = (fault.wrong, fault.right) if fault.canaries else ()
        one = [_mistake_one_run(fault, training, seed) for training in trainings]
        verdicts = [result.is_refuted for result in (*many, *one)]
        bound = one[0].bound if one else 0.0
        found.append((*verdicts[:2], many[0].bound, *(verdicts[2:] or (False, False)), bound, half - start))
    return found


def _mistake_one_run(fault: TrainingFault, training: Training, seed: int) -> CanaryResult:
    canaries: Any = fault.canaries
    run = canary_run(training, fault.no_records, replace(canaries, m=_TIMES * canaries.m), seed=seed)
    return check_canaries(
        run.scores, run.included, claim=run.claim, adjacency=run.adjacency, alpha=ALPHA, inclusion="independent"
    )


def _mistake_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    fault = _MISTAKES[name]
    found = in_batches(_audited, (name,), seeds(effort.either(1, _MISTAKE_SEEDS)), 2, effort.jobs)
    table = np.array(found, dtype=np.float64)
    n, sums, medians = len(table), table.sum(axis=0), np.median(table, axis=0)
    targets = [
        at_least("caught by repeated runs", sums[0], n),
        at_most("right training refuted by repeated runs", sums[1], 0),
    ]
    cells: dict[str, Value] = {
        "mistake": name,
        "claimed": fault.claimed_epsilon,
        "pair": fault.pair_epsilon,
        "truth": fault.true_epsilon,
        "seeds": n,
        "runs": _TIMES * fault.runs,
        "caught": int(sums[0]),
        "right": int(sums[1]),
        "bound": float(medians[2]),
        "seconds": float(medians[6]),
    }
    if fault.canaries is not None:
        cells |= {
            "canaries": _TIMES * fault.canaries.m,
            "one_caught": int(sums[3]),
            "one_right": int(sums[4]),
            "one_bound": float(medians[5]),
        }
        targets += [at_least("caught by one run", sums[3], n), at_most("right training refuted by one run", sums[4], 0)]
    return cells, targets


def _measured(effort: Effort, seeds: Seeds, measure: Callable[..., Figures], *arguments: Any) -> Figures:
    """Figures of a row that names its function."""
    return measure(effort, seeds, *arguments)


_ALARM_ROWS = {f"{name}, {size:,} canaries": (name, size) for name in KNOWN for size in (200, 1_000, 5_000)}
_BOUND_ROWS: dict[str, tuple[Any, ...]] = {
    **{", ".join(f"{number:,}" for number in counts): (_counts, *counts) for counts in _COUNTS},
    **{f"scores {mu:g} {is_curve}": (_scores, mu, is_curve) for mu in _SCORES for is_curve in (False, True)},
}
_JAX_ROWS: dict[str, tuple[Any, ...]] = {
    **{f"{name}, {seen}": (_of_training, name, seen) for name in _TRAININGS for seen in _SEEN},
    **{f"published numbers, mu {mu:g}": (_of_published, mu) for mu in _SCORES},
    **{f"random scores, mu {mu:g}": (_of_draws, mu) for mu in _SCORES},
}
_JAX_ALARM_ROWS = {f"false alarms, {canaries:,} canaries": (canaries,) for canaries in (1_000, 20_000)}
_JAX_QUICK = ("right, step scores", "published numbers, mu 1", "random scores, mu 1")
_SGD_ROWS = {f"{name}, {epsilon:g}": (name, epsilon) for name in _SETTINGS for epsilon in _EPSILONS}

TABLES = (
    Table(
        "canary-false-alarms", 39, _ALARM_ROWS, _alarm_cells, count=_alarms, batch=250,
        counts=("audits", *map(_refuted, METHODS)), quick=("all revealed with probability delta, 200 canaries",),
    ),
    Table("canary-bounds", 40, _BOUND_ROWS, _measured, quick=("10,000, 10,000, 10,000", "scores 1 False")),
    Table("jax-privacy", 44, _JAX_ROWS, _measured, quick=_JAX_QUICK, library=lambda *arguments: _LIBRARY),
    Table(
        "jax-privacy-false-alarms", 45, _JAX_ALARM_ROWS, _library_alarm_cells, count=_library_alarms,
        counts=("audits", "library_alarms", "dpaudit_alarms"), quick=("false alarms, 1,000 canaries",),
        library=lambda canaries: _LIBRARY,
    ),
    Table("dp-sgd", 43, _SGD_ROWS, _sgd_cells, quick=("one run, last iterate, 1",)),
    Table(
        "training-mistakes", 42, by_name(_MISTAKES), _mistake_cells, quick=("no-clipping", "noise-divided-twice"),
    ),
)  # fmt: skip
