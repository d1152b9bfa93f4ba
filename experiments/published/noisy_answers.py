"""Laplace noise on each of several answers, and the largest answer with exponential noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP, check_number
from ...mechanisms import Distribution, LaplaceDistribution, ProductDistribution
from ...mechanisms.distributions.divergences import no_closed_form
from ...mechanisms.faulty.selection import largest_noisy
from ...mechanisms.noise_samplers import Floats, fill_exponential, grid_step, laplace_on_grid
from ...mechanisms.queries import candidate_scores, identity


@dataclass(frozen=True, slots=True)
class RunningSumsDistribution(Distribution):
    """The distribution of the running sums of independent steps, which determine each other."""

    steps: ProductDistribution

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (..., n_steps)."""
        return self.steps.log_density(np.diff(np.asarray(outputs, dtype=np.float64), axis=-1, prepend=0.0))

    def is_comparable(self, other: Self) -> bool:
        return self.steps.is_comparable(other.steps)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return self.steps.delta_from(other.steps, epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return self.steps.epsilon_from(other.steps, delta)


@dataclass(frozen=True, slots=True)
class NoisyAnswers:
    """Every answer plus Laplace noise of one scale, on a grid, with a claim that may be wrong.

    Parameters
    ----------
    claim : PureDP
    scale : float
        Scale of the noise, positive.
    running_sums : bool
        Whether to release the running sums of the noisy answers.

    Examples
    --------
    >>> mechanism = NoisyAnswers(PureDP(0.1), scale=10.0)
    >>> x, y = (mechanism.distribution(answers) for answers in ([0, 1, 1], [1, 1, 1]))
    >>> x.epsilon_from(y, 0.0)
    0.1
    """

    claim: PureDP
    scale: float
    running_sums: bool = False

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, math.inf, "of Laplace noise", closed=False)

    def __str__(self) -> str:
        return f"NoisyAnswers({self.claim}, scale={self.scale:g}{', running sums' * self.running_sums})"

    def distribution(self, dataset: Any) -> ProductDistribution | RunningSumsDistribution:
        """Return the distribution of the output before rounding to the grid."""
        answers = candidate_scores(identity, dataset).tolist()
        steps = ProductDistribution(tuple(LaplaceDistribution(answer, self.scale) for answer in answers))
        return RunningSumsDistribution(steps) if self.running_sums else steps

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size, n_answers)."""
        answers = candidate_scores(identity, dataset).tolist()
        rows = np.stack([laplace_on_grid(answer, self.scale, size, rng) for answer in answers], axis=1)
        if self.running_sums:
            np.cumsum(rows, axis=1, out=rows)
        return rows


# Release of the largest noisy answer, with exponential noise.


@dataclass(frozen=True, slots=True)
class LargestExponentialDistribution(Distribution):
    """The distribution of the maximum of independent exponential variables of one scale, each shifted."""

    locations: tuple[float, ...]
    scale: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each output, which may be half a grid step below the largest location."""
        z, largest = np.asarray(outputs, dtype=np.float64), max(self.locations)
        heights = (np.maximum(z, largest)[..., None] - self.locations) / self.scale
        with np.errstate(divide="ignore"):  # the density is 0 at a largest location that is tied
            log_cdfs = np.log(-np.expm1(-heights))
            others = [np.delete(log_cdfs, place, axis=-1).sum(axis=-1) for place in range(len(self.locations))]
            log_density = np.logaddexp.reduce(np.stack(others, axis=-1) - heights, axis=-1) - math.log(self.scale)
        return np.where(z >= largest - grid_step(self.scale) / 2, log_density, -np.inf)

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return infinity at delta 0 if this distribution starts below the other; others have no known closed form."""
        if delta == 0 and max(self.locations) < max(other.locations):
            return math.inf
        raise no_closed_form(self, other)


@dataclass(frozen=True, slots=True)
class LargestExponential:
    """The maximum of the answers plus independent exponential noise, on a grid: no finite epsilon.

    Every output is an upper bound on the largest answer.

    Parameters
    ----------
    claim : PureDP
    scale : float
        Mean of the noise, positive.
    """

    claim: PureDP
    scale: float

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, math.inf, "the mean of exponential noise", closed=False)

    def __str__(self) -> str:
        return f"LargestExponential({self.claim}, scale={self.scale:g})"

    def distribution(self, dataset: Any) -> LargestExponentialDistribution:
        """Return the distribution of the output before rounding to the grid."""
        return LargestExponentialDistribution(tuple(candidate_scores(identity, dataset).tolist()), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        return largest_noisy(fill_exponential, candidate_scores(identity, dataset), self.scale, size, rng)
