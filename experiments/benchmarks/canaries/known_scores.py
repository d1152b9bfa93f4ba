"""Scores of canaries from mechanisms whose claim is known and attained, some of them as hostile as the claim allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr
from scipy.stats import binom

from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ....audit.guesses.guess_ceiling import Ceiling
from ....audit.guesses.guess_counts import count_tail
from ....mechanisms.laws.laws import GaussianLaw

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
    law = binom.pmf(np.arange(canaries + 1), canaries, ceiling.right)
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
