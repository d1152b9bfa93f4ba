"""Scores of canaries from mechanisms whose claim is known and attained, some of them as hostile as the claim allows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr
from scipy.stats import binom

from ....audit.canaries.canary_draws import CanaryDraws, right_from_both_ends
from ....audit.canaries.canary_tests import epsilon_from_guesses, has_lines, refutes
from ....audit.canaries.check_canaries import check_canaries
from ....audit.canaries.plan_canaries import METHODS, fixed_numbers, plan_tests
from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ....audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from ....audit.guesses.guess_bets import guess_numbers, largest_refuted
from ....audit.guesses.guess_counts import Ceiling, count_tail
from ....audit.inference.binomial_tails import probability_limits
from ....mechanisms.laws.laws import GaussianLaw
from ..core.bench_json import CERTAIN, Figures, Row, Value, at_least, at_most, columns
from ..core.page import ALPHA, Bench, Effort, Task, counted, in_batches, once, seeds_of

Flags: TypeAlias = npt.NDArray[np.bool_]
Draw: TypeAlias = Callable[[Flags, np.random.Generator], npt.NDArray[Any]]

_EPSILON, _MU = 1.0, 1.0
_DELTA, _COMMON = 1e-3, 0.01


@dataclass(frozen=True, slots=True)
class Known:
    """A mechanism with one score for each canary.

    Attributes
    ----------
    claim : callable
        Returns the claim that holds with equality for so many canaries.
    draw : callable
        ``draw(included, rng)`` returns the scores, shape (canaries,).
    """

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
def _worst_law(canaries: int, delta: float) -> npt.NDArray[np.float64]:
    """The law of right answers that attains theorem 2 at the smallest count with a bound of at most .05."""
    ceiling = Ceiling(_EPSILON, delta)
    count = next(v for v in range(1, canaries + 1) if count_tail(v, canaries, canaries, ceiling) <= 0.05)
    law = binom.pmf(np.arange(canaries + 1), canaries, 1.0 - ceiling.wrong)
    tail = law[count:].sum()
    step = canaries * delta / (count * law[count])  # of h = P/b, at the count
    low = 1.0 - step * tail
    return np.asarray(law * np.where(np.arange(canaries + 1) < count, low, low + step))


def worst_for_counts(included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Answers of which a random set is right, with the number that theorem 2 allows at most as often as allowed."""
    m = len(included)
    law = _worst_law(m, _DELTA / m)
    right = rng.choice(m + 1, p=law / law.sum())
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
    "the worst law for counts": Known(lambda m: ApproxDP(_EPSILON, _DELTA / m), worst_for_counts),
}


def gaussian_scores(mu: float, included: Flags, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Scores N(μ, 1) in and N(0, 1) out."""
    return mu * included + rng.normal(size=len(included))


def epsilon_of_gaussian(mu: float, delta: float) -> float:
    """The ε of μ-GDP at δ."""
    return GaussianLaw(0.0, 1.0).epsilon_from(GaussianLaw(mu, 1.0), delta)


# False alarms of every method where the claim holds with equality, and on hostile mechanisms.

_ALARM_CANARIES = (200, 1_000, 5_000)
_ALARM_BATCH = 250
_ALARM_TABLE = 39
_ALARM_QUICK = ("randomised response", "all revealed with probability delta")


class Remembered:
    """Verdicts of a test by the number that decides them: larger numbers refute if smaller ones do."""

    def __init__(self, test: CanaryTest, claim: Claim) -> None:
        self.test, self.claim = test, claim
        self.kept, self.refuted = -math.inf, math.inf

    def __call__(self, guesses: CanaryGuesses) -> bool:
        if self.test.kind == "betting":
            decisive = largest_refuted(guesses.right, guesses.numbers, self.test.alpha)
        else:
            decisive = float(guesses.right_among(self.test.guesses))
        if not self.kept < decisive < self.refuted:
            return decisive >= self.refuted
        is_refuted = refutes(self.test, self.claim, guesses)
        if is_refuted:
            self.refuted = decisive
        else:
            self.kept = decisive
        return is_refuted


def _refuted(method: str) -> str:
    """Name of the number of refuted claims, beside that of their share."""
    return f"{method}_refuted"


def _methods(claim: Claim) -> list[str]:
    return [method for method in METHODS if method in ("auto", "f-dp") or has_lines(claim)]


def _alarms(name: str, canaries: int, seeds: range) -> Counter[str]:
    known = KNOWN[name]
    claim = known.claim(canaries)
    numbers = tuple(sorted({*guess_numbers(canaries), *fixed_numbers(canaries)}))
    shape = CanaryGuesses(canaries=canaries, numbers=numbers, right=(0,) * len(numbers))
    tests = {method: plan_tests(method, None, claim, shape, ALPHA) for method in _methods(claim)}
    decide = {test: Remembered(test, claim) for planned in tests.values() for test in planned}
    found = Counter({"audits": len(seeds)})
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        right = np.cumsum(right_from_both_ends(CanaryDraws(known.draw(included, rng), included), rng))
        guesses = CanaryGuesses(canaries=canaries, numbers=numbers, right=tuple(right[np.array(numbers) - 1].tolist()))
        for method, planned in tests.items():
            found[_refuted(method)] += any(decide[test](guesses) for test in planned)
    return found


def _alarm_cells(name: str, canaries: int, counts: Counter[str]) -> Figures:
    audits, claim = counts["audits"], KNOWN[name].claim(canaries)
    cells: dict[str, Value] = {"mechanism": name, "claim": str(claim), "canaries": canaries, "audits": audits}
    targets = []
    for method in _methods(claim):
        refuted = counts[_refuted(method)]
        cells[method] = refuted / audits
        certain = probability_limits(refuted, audits, alpha=CERTAIN)[0]
        targets.append(at_most(f"99.9% lower limit, {method}", certain, ALPHA))
    cells.update({_refuted(method): counts[_refuted(method)] for method in METHODS})
    return cells, targets


def _row(effort: Effort, key: str, place: int, name: str, canaries: int, former: Row | None) -> Iterator[Row]:
    wanted = effort.audits
    yield from counted(
        key,
        partial(_alarms, name, canaries),
        partial(_alarm_cells, name, canaries),
        former,
        names=("audits", *map(_refuted, METHODS)),
        seeds=lambda used: seeds_of(_ALARM_TABLE, place, used, max(0, wanted - used)),
        batch=_ALARM_BATCH,
        jobs=effort.jobs,
    )


def _alarm_tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(KNOWN):
        for size, canaries in enumerate(_ALARM_CANARIES):
            if effort.wants(name) and (not effort.is_quick or (name in _ALARM_QUICK and size == 0)):
                key = f"{name}, {canaries:,} canaries"
                number = len(_ALARM_CANARIES) * place + size
                yield Task(key, partial(_row, effort, key, number, name, canaries))


FALSE_ALARMS = Bench(
    name="canary-false-alarms",
    title="False alarms where the claim holds with equality",
    method=(
        f"Audits of one run at alpha {ALPHA:g}, each with new coins; shares refuted, by method. Every canary attains "
        "the claim. Hostile mechanisms reveal canaries with the probability that δ allows, one by one or all at once, "
        "or follow the law of right answers for which the bound of theorem 2 is attained with all canaries guessed. "
        "--audits sets the number of audits, and --resume adds to those that were made."
    ),
    columns=columns(
        "mechanism | claim | canaries :, | audits :, | auto :.4f | betting :.4f | counts :.4f | steinke :.4f | "
        "f-dp :.4f"
    ),
    names=tuple(KNOWN),
    tasks=_alarm_tasks,
)

# Lower bounds beside published ones: bare counts, and scores N(μ, 1) in and N(0, 1) out.

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
_PUBLISHED_CANARIES, _COUNT_DELTA, _SCORE_DELTA = 20_000, 1e-5, 1e-6
_AUDITS, _QUICK_AUDITS, _PUBLISHED_BATCH = 200, 2, 5
_PUBLISHED_TABLE = 40


def _counts(right: int, guesses: int, canaries: int) -> Figures:
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
        included = rng.random(_PUBLISHED_CANARIES) < 0.5
        scores = gaussian_scores(mu, included, rng)
        bound = check_canaries(scores, included, claim=claim, alpha=ALPHA, coins="independent").bound
        found.append(epsilon_of_gaussian(bound, _SCORE_DELTA) if is_curve else bound)
    return found


def _scores(effort: Effort, place: int, mu: float, is_curve: bool) -> Figures:
    seeds = seeds_of(_PUBLISHED_TABLE, place, 0, effort.either(_QUICK_AUDITS, min(effort.audits, _AUDITS)))
    bounds = in_batches(_bounds, (mu, is_curve), seeds, _PUBLISHED_BATCH, effort.jobs)
    published = _SCORES[mu][is_curve]
    low, middle, high = np.quantile(bounds, [0.1, 0.5, 0.9])
    cells: dict[str, Value] = {
        "setting": f"Gaussian scores, mu {mu:g}, claim {'of a Gaussian curve' if is_curve else 'for epsilon at delta'}",
        "canaries": _PUBLISHED_CANARIES,
        "delta": _SCORE_DELTA,
        "audits": len(bounds),
        "published": published,
        "bound": float(middle),
        "low": float(low),
        "high": float(high),
        "truth": epsilon_of_gaussian(mu, _SCORE_DELTA),
    }
    return cells, [at_least("median bound", float(middle), published)]


def _published_tasks(effort: Effort) -> Iterator[Task]:
    if effort.wants("counts"):
        for counts in _COUNTS:
            yield once(", ".join(f"{number:,}" for number in counts), _counts, *counts)
    for place, mu in enumerate(_SCORES):
        for is_curve in (False, True):
            if effort.wants("scores") and (not effort.is_quick or mu == 1.0):
                yield once(f"scores {mu:g} {is_curve}", _scores, effort, 2 * place + is_curve, mu, is_curve)


PUBLISHED_ROWS = Bench(
    name="canary-bounds",
    title="Lower bounds beside published ones",
    method=(
        f"At confidence {1 - ALPHA:g}. Counts: `epsilon_from_guesses`, beside the bound of Steinke, Nasr & Jagielski "
        "(2023). Scores: `check_canaries` by default on fair coins, medians and 10% and 90% quantiles of up to "
        f"{_AUDITS} audits, beside jax-privacy's published test numbers (one run; f-DP in one run), which are for a "
        "fixed split of deterministic scores. Bounds for a Gaussian curve are bounds on μ, given as the ε of μ-GDP at "
        "δ; they hold for Gaussian mechanisms only."
    ),
    columns=columns(
        "setting | canaries :, | delta :g | published :.3f | bound :.3f | 10% = low :.3f | 90% = high :.3f | "
        "bound at delta 0 = pure :.3f | true epsilon = truth :.3f | audits"
    ),
    names=("counts", "scores"),
    tasks=_published_tasks,
)
