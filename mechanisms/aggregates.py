"""Aggregations of rows by the published algorithms of Google's library of differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP, check_number
from .distributions.distributions import (
    FiniteDistribution,
    GaussianDistribution,
    LaplaceDistribution,
    ProductDistribution,
)
from .distributions.divergences import PureMechanism
from .noise.gaussian import analytic_gaussian_scale
from .noise_samplers import Floats, fill_laplace, gaussian_on_grid, laplace_on_grid
from .queries import check_answer, check_count, check_scale, check_value

__all__ = ["NoisyAnswers", "noisy_moments", "BoundedMoments", "noisy_tree_counts", "ApproximateBounds"]


# Several answers on one dataset, each with independent noise of its own scale.

Noise: TypeAlias = Literal["laplace", "gaussian"]
_SAMPLERS = {"laplace": laplace_on_grid, "gaussian": gaussian_on_grid}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyAnswers:
    """Answers of a query, each with Laplace or Gaussian noise of its own scale, shape (n_answers,).

    Aggregations compute their result from such a vector, so the vector shows all that the result may reveal. Outputs
    are on the grids of `LaplaceMechanism` and `GaussianMechanism`.

    `scales` are the scale or standard deviation that the claim needs, for each answer, and `noise_share` is the share
    of them that is used; below 1 it breaks `tight_claim`, the strongest claim that the whole noise keeps: ε-DP for
    Laplace noise, μ-GDP for Gaussian noise.
    """

    query: Callable[[Any], tuple[float, ...]]
    scales: tuple[float, ...]
    noise: Noise
    claim: Claim
    tight_claim: Claim
    noise_share: float = 1.0

    def __post_init__(self) -> None:
        check_noise_share(self.noise_share)
        for scale in self.scales:
            check_scale(scale)

    def __str__(self) -> str:
        return f"{len(self.scales)} answers with {self.noise} noise, claim {self.claim}{share_in_words(self)}"

    def distribution(self, dataset: Any) -> ProductDistribution:
        """Return the distribution of the outputs before rounding to the grids."""
        one = LaplaceDistribution if self.noise == "laplace" else GaussianDistribution
        return ProductDistribution(
            tuple(one(answer, scale) for answer, scale in zip(self._answers(dataset), self._used, strict=True))
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size, n_answers)."""
        draw, outputs = _SAMPLERS[self.noise], np.empty((size, len(self.scales)))
        for column, (answer, scale) in enumerate(zip(self._answers(dataset), self._used, strict=True)):
            outputs[:, column] = draw(answer, scale, size, rng)
        return outputs

    @property
    def _used(self) -> tuple[float, ...]:
        return tuple(scale * self.noise_share for scale in self.scales)

    def _answers(self, dataset: Any) -> tuple[float, ...]:
        answers = self.query(dataset)
        are_answers = len(answers) == len(self.scales) and all(math.isfinite(answer) for answer in answers)
        check_answer(answers, are_answers, f"which is not a vector of {len(self.scales)} finite numbers; return one.")
        return answers


def calibrated(
    query: Callable[[Any], tuple[float, ...]],
    sensitivities: tuple[float, ...],
    epsilon: float,
    delta: float,
    partitions: int,
    per_partition: int,
    noise_share: float,
    *,
    shares: int = 1,
    at_once: int = 1,
) -> NoisyAnswers:
    """Return noisy answers with Laplace noise for delta 0, and otherwise Gaussian noise.

    A user has up to `per_partition` rows in each of up to `partitions` such releases. One row changes `at_once`
    answers of the same noise in each release, by at most their sensitivity. Each answer, or group of answers that a
    row changes at once, has the share 1/`shares` of epsilon and delta.
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats", closed=False)
    check_number("delta", delta, 0, 1, "0 for Laplace noise", closed=True)
    check_count("partitions", partitions, "partitions of a user")
    check_count("per_partition", per_partition, "rows of a user in a partition")
    releases = partitions * at_once
    claim: Claim = PureDP(epsilon) if delta == 0 else ApproxDP(epsilon, delta)
    if delta == 0:
        noise: Noise = "laplace"
        scales = tuple(releases * per_partition * one * shares / epsilon for one in sensitivities)
        tight = claim
    else:
        noise, unit = "gaussian", analytic_gaussian_scale(epsilon / shares, delta / shares)
        scales = tuple(unit * math.sqrt(releases) * per_partition * one for one in sensitivities)
        tight = GaussianDP(math.sqrt(shares) / unit)
    return NoisyAnswers(
        query=query, scales=scales, noise=noise, claim=claim, tight_claim=tight, noise_share=noise_share
    )


def check_noise_share(share: float) -> None:
    """Raise a `ClaimError` unless the share of the noise is in (0, 1]."""
    check_value("noise_share", share, 0.0 < share <= 1.0, "is not a share of the noise; use 0 < noise_share <= 1.")


def share_in_words(mechanism: Any) -> str:
    """Return the share of the noise for a mechanism's name; empty for all of the noise."""
    return "" if mechanism.noise_share == 1 else f", {mechanism.noise_share:.0%} of the noise"


# Mean and variance of bounded rows, from a noisy count and noisy sums of powers around the middle of the bounds.


@dataclass(frozen=True, slots=True)
class _Powers:
    """Number of rows and sums of the first powers of their distances from the middle, each row clipped to bounds."""

    lower: float
    upper: float
    n_powers: int

    def __call__(self, dataset: Any) -> tuple[float, ...]:
        rows = np.clip(np.asarray(dataset, dtype=np.float64), self.lower, self.upper) - (self.lower + self.upper) / 2
        return (float(len(rows)), *(float(np.sum(rows**power)) for power in range(1, self.n_powers + 1)))


def noisy_moments(
    moments: int,
    lower: float,
    upper: float,
    *,
    epsilon: float,
    delta: float = 0.0,
    partitions: int = 1,
    per_partition: int = 1,
    noise_share: float = 1.0,
) -> NoisyAnswers:
    """Return the noisy count and the noisy sums of powers from which `BoundedMoments` computes its result.

    Each of the answers has an equal share of epsilon and delta. A row at a bound changes all of them by their
    sensitivity: 1, and powers of half the range. The noise is Laplace noise for delta 0, otherwise Gaussian noise of
    analytic calibration.

    Source: Li, Lyu, Su & Yang (2016), Differential Privacy: From Theory to Practice, Section 2.5.5 (the mean); the
    classes BoundedMean and BoundedVariance of google/differential-privacy (the variance).

    `moments` is 1 for the mean, 2 for the variance. A user's rows may enter that many `partitions`, or releases, with
    up to `per_partition` rows in each; `noise_share` is that of `NoisyAnswers`.
    """
    check_value("moments", moments, moments in (1, 2), "is not 1 (mean) or 2 (variance); use one of these.")
    check_number("lower", lower, -math.inf, math.inf, "rows are clipped to it", closed=False)
    check_number("upper", upper, lower, math.inf, "above the lower bound", closed=False)
    half, budget = (upper - lower) / 2, (epsilon, delta, partitions, per_partition, noise_share)
    sensitivities = tuple(half**power for power in range(moments + 1))
    return calibrated(_Powers(lower, upper, moments), sensitivities, *budget, shares=moments + 1)


@dataclass(frozen=True, slots=True)
class BoundedMoments:
    """Mean or variance of bounded rows, computed from noisy sums (`noisy_moments`).

    The noisy count is at least 1. The mean is clipped to the bounds, the variance to [0, (upper − lower)²/4].
    """

    parts: NoisyAnswers
    lower: float
    upper: float

    def __str__(self) -> str:
        name = "mean" if len(self.parts.scales) == 2 else "variance"
        return f"{name} of rows in [{self.lower:g}, {self.upper:g}] from {self.parts}"

    @property
    def claim(self) -> Claim:
        """Claim of the noisy sums, of which the output is computed."""
        return self.parts.claim

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        return self.from_parts(self.parts.sample(dataset, size, rng))

    def from_parts(self, parts: npt.ArrayLike) -> Floats:
        """Return the outputs that these noisy sums give, shape (size,)."""
        count, *sums = np.asarray(parts, dtype=np.float64).T
        means = [total / np.maximum(count, 1.0) for total in sums]
        if len(means) == 1:
            return np.asarray(np.clip((self.lower + self.upper) / 2 + means[0], self.lower, self.upper))
        return np.asarray(np.clip(means[1] - means[0] ** 2, 0.0, (self.upper - self.lower) ** 2 / 4))


# Noisy counts of the nodes of a quantile tree.


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Numbers of rows in the nodes below the root, level by level; rows are clipped to the bounds."""

    lower: float
    upper: float
    height: int
    branching: int

    def __call__(self, dataset: Any) -> tuple[float, ...]:
        leaves = self.branching**self.height
        shares = (np.clip(np.asarray(dataset, dtype=np.float64), self.lower, self.upper) - self.lower) / (
            self.upper - self.lower
        )
        places = np.minimum((shares * leaves).astype(np.int64), leaves - 1)
        counts = np.bincount(places, minlength=leaves)
        levels = [counts.reshape(self.branching**level, -1).sum(axis=1) for level in range(1, self.height + 1)]
        return tuple(np.concatenate(levels).astype(np.float64).tolist())


def noisy_tree_counts(
    lower: float,
    upper: float,
    *,
    height: int,
    branching: int,
    epsilon: float,
    delta: float = 0.0,
    partitions: int = 1,
    per_partition: int = 1,
    noise_share: float = 1.0,
) -> NoisyAnswers:
    """Return the noisy counts from which a quantile tree computes all quantiles.

    Each level divides every node of the level above into `branching` equal intervals. A row is counted once on each of
    the `height` levels, so it changes as many counts by 1 at once; all counts have noise of one scale. The other
    parameters are those of `noisy_moments`.

    Source: Alabi, Ben-Eliezer & Chaturvedi (2022), Bounded Space Differentially Private Quantiles (trees of counts);
    the class BoundedQuantiles of google/differential-privacy.
    """
    check_number("lower", lower, -math.inf, math.inf, "rows are clipped to it", closed=False)
    check_number("upper", upper, lower, math.inf, "above the lower bound", closed=False)
    check_count("height", height, "levels")
    check_count("branching", branching, "children of a node", least=2)
    sensitivities = (1.0,) * sum(branching**level for level in range(1, height + 1))
    budget = epsilon, delta, partitions, per_partition, noise_share
    return calibrated(_Nodes(lower, upper, height, branching), sensitivities, *budget, at_once=height)


# Approximate bounds of rows, from a noisy histogram with logarithmic bins.

_FIRST, _MOST, _FACTOR = 1e-9, 1e-6, 2.0
_FAILED: Final = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class ApproximateBounds(PureMechanism):
    """Powers of a base between which nearly all rows lie: epsilon-DP, an output is (lower, upper).

    Rows are counted in bins (0, scale], (scale, scale·base], (scale·base, scale·base²], … and in their mirror images
    for negative rows; larger rows belong to the last bin. Each count has Laplace noise. The output is the outer edges
    of the first and of the last bin whose noisy count reaches a threshold. An empty dataset reaches the threshold with
    probability 10⁻⁹. If no bin reaches it, the probability is doubled, up to 10⁻⁶; after that the output is NaN twice.

    Source: Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020); the class ApproximateBounds of
    google/differential-privacy (thresholds).

    `contributions` is the most rows of a user, and `bins` the number of bins of each sign. A `noise_share` below 1
    breaks the claim, as the thresholds stay.
    """

    contributions: int = 1
    bins: int = 5
    base: float = 2.0
    scale: float = 1.0
    noise_share: float = 1.0

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_count("contributions", self.contributions, "rows of a user")
        check_count("bins", self.bins, "bins of each sign")
        check_number("base", self.base, 1, math.inf, "edges are its powers", closed=False)
        check_number("scale", self.scale, 0, math.inf, "the first edge", closed=False)
        check_noise_share(self.noise_share)

    def __str__(self) -> str:
        return f"ApproximateBounds(epsilon={self.epsilon:g}, contributions={self.contributions}){share_in_words(self)}"

    @property
    def edges(self) -> Floats:
        """Edges of all bins in ascending order, shape (2·bins + 1,)."""
        positive = self.scale * self.base ** np.arange(self.bins)
        return np.concatenate([-positive[::-1], [0.0], positive])

    @property
    def thresholds(self) -> Floats:
        """Noisy counts that a bin has to reach, for the first attempt and for the later ones, descending."""
        failures = _FIRST * _FACTOR ** np.arange(math.floor(math.log(_MOST / _FIRST, _FACTOR)) + 1)
        per_bin = -np.expm1(np.log1p(-failures) / (2 * self.bins))
        return np.asarray(self.contributions / self.epsilon * -np.log(2 * per_bin))

    @property
    def outcomes(self) -> tuple[tuple[float, float], ...]:
        """Possible outputs, in the order of `distribution`; the last one is the failure."""
        edges = self.edges.tolist()
        pairs = [(edges[first], edges[last + 1]) for first, last in self._pairs()]
        return (*pairs, _FAILED)

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """Return the distribution of the index of the output in `outcomes`."""
        counts, distribution = self._counts(dataset), LaplaceDistribution(0.0, self._noise_scale)
        above, found = math.inf, np.zeros(len(self._pairs()))
        for threshold in self.thresholds:
            below = distribution.cdf(threshold - counts)
            under_last = distribution.cdf(above - counts) if above < math.inf else np.ones_like(below)
            inside = under_last - below
            for place, (first, last) in enumerate(self._pairs()):
                ends = inside[first] if first == last else inside[first] * inside[last]
                middle = under_last[first + 1 : last].prod()
                found[place] += ends * middle * below[:first].prod() * below[last + 1 :].prod()
            above = threshold
        failure = distribution.cdf(above - counts).prod()
        with np.errstate(divide="ignore"):
            return FiniteDistribution(tuple(np.log(np.append(found, failure)).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        counts, thresholds, edges = self._counts(dataset), self.thresholds, self.edges
        noisy = np.empty((len(counts), size))
        for row, count in zip(noisy, counts, strict=True):
            fill_laplace(row, rng)
            row *= self._noise_scale
            row += count
        largest = noisy.max(axis=0)
        # The first threshold that the largest count reaches; thresholds descend.
        attempt = (thresholds[:, None] > largest).sum(axis=0)
        is_found = attempt < len(thresholds)
        reached = noisy >= thresholds[np.minimum(attempt, len(thresholds) - 1)]
        outputs = np.full((size, 2), math.nan)
        outputs[is_found, 0] = edges[reached.argmax(axis=0)][is_found]
        outputs[is_found, 1] = edges[len(counts) - reached[::-1].argmax(axis=0)][is_found]
        return outputs

    @property
    def _noise_scale(self) -> float:
        return self.noise_share * self.contributions / self.epsilon

    def _pairs(self) -> list[tuple[int, int]]:
        return [(first, last) for first in range(2 * self.bins) for last in range(first, 2 * self.bins)]

    def _counts(self, dataset: Any) -> Floats:
        """Return the number of rows in each bin, in ascending order of the bins."""
        rows = np.asarray(dataset, dtype=np.float64)
        place = np.minimum(np.searchsorted(self.edges[-self.bins :], np.abs(rows)), self.bins - 1)
        counts = np.bincount(np.where(rows < 0, self.bins - 1 - place, self.bins + place), minlength=2 * self.bins)
        return counts.astype(np.float64)
