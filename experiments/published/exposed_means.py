"""Published means: bounded, as a noisy sum over a noisy count, or with noise scaled by a count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP, check_number
from ...audit.errors import DatasetError
from ...mechanisms import LaplaceDistribution, ScalarDistribution
from ...mechanisms.distributions.distributions import quadrature
from ...mechanisms.noise_samplers import Floats, fill_laplace, pieces

# The distribution of the ratio of a noisy sum to a noisy count, and the output grid of means.


STEP: Final = 2.0**-30
"""Step of the output grid of means, the same for every dataset although the noise scale depends on the dataset."""

_REACH: Final = 45.0
_STANDARD: Final = LaplaceDistribution(0.0, 1.0)


def rows_as_numbers(dataset: Any) -> Floats:
    """Return the rows, shape (n_rows,), or raise a `DatasetError`."""
    try:
        rows = np.asarray(dataset, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(())
    if rows.ndim != 1 or not np.isfinite(rows).all():
        raise DatasetError(f"dataset={dataset!r:.60} is not a list of numbers; use one finite number for each row.")
    return rows


def on_the_grid(values: Floats) -> Floats:
    """Round the values to multiples of `STEP` in place, with an unsigned zero."""
    values /= STEP
    np.round(values, out=values)
    values *= STEP
    values += 0.0
    return values


@dataclass(frozen=True, slots=True)
class Quotient:
    """The distribution of (total + V)/U for U = count + W above `least`, where V and W are Laplace of scale 1."""

    total: float
    count: float
    least: float

    def cdf(self, t: float) -> float:
        return self._expected(lambda u: _STANDARD.cdf(t * u - self.total), t)

    def sf(self, t: float) -> float:
        return self._expected(lambda u: _STANDARD.sf(t * u - self.total), t)

    def density(self, t: float) -> float:
        return self._expected(lambda u: u * np.exp(_STANDARD.log_density(t * u - self.total)), t)

    def _expected(self, function: Callable[[Floats], Floats], t: float) -> float:
        """Return E[function(U); U > least] for a function with a kink where t U is the total.

        Gauss-Legendre quadrature with 24 nodes on pieces between the kinks, short enough for an error of 1e-14.
        """
        last = max(self.least, self.count) + _REACH
        breaks = (self.count, self.total / t if t != 0 else self.count)
        stops = sorted({self.least, *(min(max(stop, self.least), last) for stop in breaks), last})
        u, weights = quadrature(np.array(stops), 8 / (1 + abs(t)))
        return float(function(u) @ (weights * np.exp(_STANDARD.log_density(u - self.count))))


def each(function: Callable[[float], float], outputs: npt.ArrayLike) -> Floats:
    """Apply a function of one number elementwise."""
    values = np.asarray(outputs, dtype=np.float64)
    return np.reshape([function(value) for value in values.ravel().tolist()], values.shape)


# The mean of bounded rows as the ratio of a noisy sum to a noisy count.


@dataclass(frozen=True, slots=True)
class BoundedMeanDistribution(ScalarDistribution):
    """The distribution of centre + half·clip(T/max(1, U), ±1), where T and U have Laplace noise of one scale.

    `total` and `count` are the exact answers; the distribution has atoms at both ends.
    """

    total: float
    count: float
    scale: float
    lower: float
    upper: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each output, or its log-probability at the ends."""

        def density(z: float) -> float:
            if z in (self.lower, self.upper):
                return self._below(-1.0) if z == self.lower else self._above(1.0)
            if not self.lower < z < self.upper:
                return 0.0
            t = self._in_halves(z)
            few = float(np.exp(LaplaceDistribution(self.total, self.scale).log_density(t)))
            return (self._few * few + self._quotient.density(t)) * 2 / (self.upper - self.lower)

        with np.errstate(divide="ignore"):
            return np.log(each(density, outputs))

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return each(lambda z: self._between(z, 0.0, self._below, 1.0), outputs)

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return each(lambda z: self._between(z, 1.0, self._above, 0.0), outputs)

    def _between(self, z: float, before: float, inside: Callable[[float], float], after: float) -> float:
        if z < self.lower:
            return before
        return after if z >= self.upper else inside(self._in_halves(z))

    @property
    def _few(self) -> float:
        """Return Pr[U ≤ 1], the probability that the divisor is 1."""
        return float(LaplaceDistribution(self.count, self.scale).cdf(1.0))

    @property
    def _quotient(self) -> Quotient:
        return Quotient(self.total / self.scale, self.count / self.scale, 1 / self.scale)

    def _in_halves(self, z: float) -> float:
        return (2 * z - self.lower - self.upper) / (self.upper - self.lower)

    def _below(self, t: float) -> float:
        return self._few * float(LaplaceDistribution(self.total, self.scale).cdf(t)) + self._quotient.cdf(t)

    def _above(self, t: float) -> float:
        return self._few * float(LaplaceDistribution(self.total, self.scale).sf(t)) + self._quotient.sf(t)


@dataclass(frozen=True, slots=True)
class BoundedMean:
    """The mean of rows clipped to [lower, upper], a noisy sum over a noisy count: epsilon-DP under add/remove.

    The sum adds the distances from the centre, so that a row changes it by at most half of the range. Half of epsilon
    is for the sum, half for the count. The noisy count is at least 1, and the result is clipped to the bounds.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    lower, upper : float
        Bounds, lower < upper, both multiples of 2⁻³⁰, the grid of the outputs.

    Examples
    --------
    >>> BoundedMean(100.0, 0.0, 1.0).sample([0.0, 0.5, 7.0, 1.0], 2, np.random.default_rng(0)).round(1).tolist()
    [0.6, 0.6]
    """

    epsilon: float
    lower: float = -1.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_number("lower", self.lower, -math.inf, math.inf, "rows are clipped to it", closed=False)
        check_number("upper", self.upper, self.lower, math.inf, "above the lower bound", closed=False)

    def __str__(self) -> str:
        return f"BoundedMean(epsilon={self.epsilon:g}, lower={self.lower:g}, upper={self.upper:g})"

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def distribution(self, dataset: Any) -> BoundedMeanDistribution:
        """Return the distribution of the output before rounding to the grid."""
        total, count = self._totals(dataset)
        return BoundedMeanDistribution(total, count, 2 / self.epsilon, self.lower, self.upper)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        total, count = self._totals(dataset)
        outputs, half = np.empty(size), (self.upper - self.lower) / 2
        for piece in pieces(size):
            counts, part = np.empty(piece.stop - piece.start), outputs[piece]
            fill_laplace(counts, rng)
            counts *= 2 / self.epsilon
            counts += count
            fill_laplace(part, rng)
            part *= 2 / self.epsilon
            part += total
            part /= np.maximum(counts, 1.0)
            part *= half
            part += (self.lower + self.upper) / 2
            on_the_grid(part)
            np.clip(part, self.lower, self.upper, out=part)
        return outputs

    def _totals(self, dataset: Any) -> tuple[float, int]:
        """Return the sum of the distances from the centre, in half ranges, and the number of rows."""
        rows = np.clip(rows_as_numbers(dataset), self.lower, self.upper)
        return float(np.sum((2 * rows - self.lower - self.upper) / (self.upper - self.lower))), len(rows)


FLOOR: Final = 1e-12
"""Smallest noise scale."""


@dataclass(frozen=True, slots=True)
class ExposedMean:
    """A mean whose noise is scaled by a noisy count and vanishes if the count is negative: no finite epsilon.

    Half of epsilon is for the count, the other half for the sum, with noise of scale 2/(epsilon·count) for the noisy
    count. The scale has a floor of 1e-12, which applies if the noisy count is negative. The floor is far below the
    output grid of 2⁻³⁰, so that the output is then the exact quotient.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    noisy_divisor : bool
        Whether the sum is divided by the noisy count or by the exact count (1 for an empty dataset).

    Examples
    --------
    >>> outputs = ExposedMean(1.0).sample([0.0], 100_000, np.random.default_rng(0))
    >>> print(f"{np.mean(outputs == 0):.2f}")
    0.30
    """

    epsilon: float
    noisy_divisor: bool = True

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        rows = rows_as_numbers(dataset)
        total, outputs = float(rows.sum()), np.empty(size)
        for piece in pieces(size):
            counts, part = np.empty(piece.stop - piece.start), outputs[piece]
            fill_laplace(counts, rng)
            counts *= 2 / self.epsilon
            counts += len(rows)
            fill_laplace(part, rng)
            part *= np.maximum(2 / self.epsilon / counts, FLOOR)
            part += total / (counts if self.noisy_divisor else max(len(rows), 1))
            on_the_grid(part)
        return outputs


@dataclass(frozen=True, slots=True)
class MeanOverExactCount:
    """The mean plus Laplace noise of scale 1/(epsilon·n), where n is the exact number of rows (at least 1).

    The scale reveals the number of rows: no finite epsilon.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def distribution(self, dataset: Any) -> LaplaceDistribution:
        """Return the distribution of the output before rounding to the grid."""
        rows = rows_as_numbers(dataset)
        n = max(len(rows), 1)
        return LaplaceDistribution(float(rows.sum()) / n, 1 / (self.epsilon * n))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        distribution, outputs = self.distribution(dataset), np.empty(size)
        for piece in pieces(size):
            part = outputs[piece]
            fill_laplace(part, rng)
            part *= distribution.scale
            part += distribution.location
            on_the_grid(part)
        return outputs
