"""The mean of bounded rows as the ratio of a noisy sum to a noisy count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP, check_number
from ...mechanisms import LaplaceLaw, ScalarLaw
from ...mechanisms.noise_samplers import Floats, fill_laplace, pieces
from .noisy_quotients import Quotient, each, on_the_grid, rows_as_numbers


@dataclass(frozen=True, slots=True)
class BoundedMeanLaw(ScalarLaw):
    """The law of centre + half·clip(T/max(1, U), ±1), where T and U have Laplace noise of one scale.

    `total` and `count` are the exact answers; the law has atoms at both ends.
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
            few = float(np.exp(LaplaceLaw(self.total, self.scale).log_density(t)))
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
        return float(LaplaceLaw(self.count, self.scale).cdf(1.0))

    @property
    def _quotient(self) -> Quotient:
        return Quotient(self.total / self.scale, self.count / self.scale, 1 / self.scale)

    def _in_halves(self, z: float) -> float:
        return (2 * z - self.lower - self.upper) / (self.upper - self.lower)

    def _below(self, t: float) -> float:
        return self._few * float(LaplaceLaw(self.total, self.scale).cdf(t)) + self._quotient.cdf(t)

    def _above(self, t: float) -> float:
        return self._few * float(LaplaceLaw(self.total, self.scale).sf(t)) + self._quotient.sf(t)


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

    def law(self, dataset: Any) -> BoundedMeanLaw:
        """Return the law of the output before rounding to the grid."""
        total, count = self._totals(dataset)
        return BoundedMeanLaw(total, count, 2 / self.epsilon, self.lower, self.upper)

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
