"""Mean and variance of bounded rows, from a noisy count and noisy sums of powers around the middle of the bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, check_number
from ...audit.errors import ClaimError
from ..noise_samplers import Floats
from .noisy_answers import NoisyAnswers, calibrated


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
    sensitivity: 1, and powers of half the range.

    Parameters
    ----------
    moments : {1, 2}
        1 for the mean, 2 for the variance.
    lower, upper : float
        Bounds, lower < upper.
    epsilon, delta : float
        Laplace noise for delta 0, otherwise Gaussian noise of analytic calibration.
    partitions, per_partition : int
        Releases that one user's rows may enter, and rows in each of them.
    noise_share : float
        Share of the noise that is used. Below 1 the tight claim is broken.

    References
    ----------
    Li, Lyu, Su & Yang (2016), Differential Privacy: From Theory to Practice, Section 2.5.5 (the mean); the classes
    BoundedMean and BoundedVariance of google/differential-privacy (the variance).

    Examples
    --------
    >>> noisy_moments(1, 0.0, 50.0, epsilon=1.0, partitions=2).scales
    (4.0, 100.0)
    """
    if moments not in (1, 2):
        raise ClaimError(f"moments={moments!r} is not 1 (mean) or 2 (variance).", moments=moments)
    check_number("lower", lower, -math.inf, math.inf, "rows are clipped to it", closed=False)
    check_number("upper", upper, lower, math.inf, "above the lower bound", closed=False)
    half = (upper - lower) / 2
    return calibrated(
        _Powers(lower, upper, moments),
        tuple(half**power for power in range(moments + 1)),
        epsilon=epsilon,
        delta=delta,
        partitions=partitions,
        per_partition=per_partition,
        shares=moments + 1,
        noise_share=noise_share,
    )


@dataclass(frozen=True, slots=True)
class BoundedMoments:
    """Mean or variance of bounded rows, computed from noisy sums (`noisy_moments`).

    The noisy count is at least 1. The mean is clipped to the bounds, the variance to [0, (upper − lower)²/4].

    Examples
    --------
    >>> mean = BoundedMoments(noisy_moments(1, 0.0, 1.0, epsilon=100.0), 0.0, 1.0)
    >>> mean.sample([0.0, 0.5, 7.0, 1.0], 2, np.random.default_rng(0)).round(1).tolist()
    [0.6, 0.6]
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
