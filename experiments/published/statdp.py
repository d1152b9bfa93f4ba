"""The eleven mechanisms of StatDP at epsilon 0.7, with their unprocessed outputs.

References
----------
Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, PureDP
from ...audit.datasets.adjacency import Within
from ...audit.datasets.domains import Answers
from ...mechanisms import (
    Distribution,
    NoisyThreshold,
    ReportNoisyMax,
    SparseVector,
)
from ...mechanisms.distributions.divergences import no_closed_form
from ...mechanisms.faulty.noise import LaplaceOfScale
from ...mechanisms.faulty.selection import LargestNoisyCount, largest_noisy
from ...mechanisms.noise_samplers import Floats, fill_exponential, grid_step
from ...mechanisms.queries import candidate_scores, identity
from .entry import Entry, RewrittenDistribution, entry, loss_at


class RunningSumsDistribution(RewrittenDistribution):
    """The distribution of the running sums of independent steps."""

    __slots__ = ()

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (..., n_steps)."""
        return self.inner.log_density(np.diff(np.asarray(outputs, dtype=np.float64), axis=-1, prepend=0.0))


@dataclass(frozen=True, slots=True)
class RunningSums:
    """The running sums of a mechanism's independent outputs."""

    steps: LaplaceOfScale

    @property
    def claim(self) -> Claim:
        return self.steps.claim

    def distribution(self, dataset: Any) -> RunningSumsDistribution:
        return RunningSumsDistribution(self.steps.distribution(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return np.cumsum(self.steps.sample(dataset, size, rng), axis=1)


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
    """The maximum of the answers plus independent exponential noise of mean `scale`, on a grid: no finite epsilon.

    Every output is an upper bound on the largest answer.
    """

    claim: PureDP
    scale: float

    def __str__(self) -> str:
        return f"LargestExponential({self.claim}, scale={self.scale:g})"

    def distribution(self, dataset: Any) -> LargestExponentialDistribution:
        """Return the distribution of the output before rounding to the grid."""
        return LargestExponentialDistribution(tuple(candidate_scores(identity, dataset).tolist()), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        return largest_noisy(fill_exponential, candidate_scores(identity, dataset), self.scale, size, rng)


EPSILON: Final = 0.7
CLAIM: Final = PureDP(EPSILON)
FEW: Final = 5
"""Number of answers of noisy max and the histogram."""
MANY: Final = 10
"""Number of answers of the sparse vector, whose variants stop after one answer above the threshold (N = 1)."""

_ALL_MOVE: Final = Within("linf")
_ONE_MOVES: Final = Within("l1")


def entries() -> list[Entry]:
    """Return the suite; computing `exact` from the distributions takes a second."""
    return [*_noisy_maxima(), *_histograms(), *_sparse_vectors()]


def _noisy_maxima() -> list[Entry]:
    ahead = [1.0] * FEW, [0.0] + [2.0] * (FEW - 1)
    all_up, one_up = ([0.0] * FEW, [1.0] * FEW), ([1.0] + [0.0] * (FEW - 1), [2.0] + [0.0] * (FEW - 1))
    answers, exponential_max = Answers(FEW), ReportNoisyMax(EPSILON, noise="exponential")
    largest, exponential = LargestNoisyCount(2 / EPSILON, CLAIM), LargestExponential(CLAIM, 2 / EPSILON)
    tail, bound = loss_at(0.0, largest, all_up), loss_at(1.5, exponential, one_up)
    by_answer = "release of the maximum, lower tail with a loss of epsilon/2 for each answer"
    below = "release of the maximum, never below the largest answer; event with 1.9% of the runs on x"
    return [
        entry("noisy_max_v1a", ReportNoisyMax(EPSILON), ahead, _ALL_MOVE, answers),
        entry("noisy_max_v2a", exponential_max, ahead, _ALL_MOVE, answers, "tight claim"),
        entry("noisy_max_v1b", largest, all_up, _ALL_MOVE, answers, by_answer, exact=tail),
        entry("noisy_max_v2b", exponential, one_up, _ALL_MOVE, answers, below, exact=bound),
    ]


def _histograms() -> list[Entry]:
    pair, answers = ([1.0] * FEW, [2.0] + [1.0] * (FEW - 1)), Answers(FEW)
    right, inverted = LaplaceOfScale(1 / EPSILON, CLAIM), LaplaceOfScale(EPSILON, CLAIM)
    return [
        entry("histogram", right, pair, _ONE_MOVES, answers, "tight claim; the suite tests the first count only"),
        entry("histogram_eps", inverted, pair, _ONE_MOVES, answers, "noise of scale epsilon instead of 1/epsilon"),
    ]


def _sparse_vectors() -> list[Entry]:
    def compare(threshold: float, query: float, **options: Any) -> NoisyThreshold:
        """Use noise of these scales in units of 1/epsilon."""
        return NoisyThreshold(CLAIM, threshold / EPSILON, query / EPSILON, threshold=1.0, **options)

    half, answers = MANY // 2, Answers(MANY)
    last_above = [1.0] * MANY, [2.0] * (MANY - 1) + [0.0]
    half_up, all_up = ([1.0] * MANY, [0.0] * half + [2.0] * half), ([0.0] * MANY, [1.0] * MANY)
    ordered = [2.0] * half + [0.0] * half, [1.0] * MANY
    values, little = compare(2, 2, cutoff=1, release_value=True), compare(4, 4 / 3, cutoff=1)
    return [
        entry("SVT", SparseVector(EPSILON, 1, threshold=0.5), last_above, _ALL_MOVE, answers),
        entry("iSVT1", compare(2, 0), ordered, _ALL_MOVE, answers,
            "no noise on the answers, order of the answers revealed"),
        entry("iSVT2", compare(2, 2), half_up, _ALL_MOVE, answers, "no cutoff, epsilon for each of many answers"),
        entry("iSVT3", little, last_above, _ALL_MOVE, answers, "too little noise on the answers, 7/4 epsilon"),
        entry("iSVT4", values, all_up, _ALL_MOVE, answers,
            "release of the noisy answer, a bound on the threshold noise"),
    ]  # fmt: skip
