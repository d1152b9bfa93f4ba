"""Published means whose noise scale depends on the number of rows, or on a noisy count that may be negative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP, check_number
from ...mechanisms import LaplaceLaw, ScalarLaw
from ...mechanisms.laws.divergences import check_rule
from ...mechanisms.noise_samplers import Floats, fill_laplace, pieces
from .noisy_quotients import Quotient, each, on_the_grid, rows_as_numbers

FLOOR: Final = 1e-12
"""Smallest noise scale."""


@dataclass(frozen=True, slots=True)
class ExposedMeanLaw(ScalarLaw):
    """The law of centre + total/U + noise, where U = count + W and W is Laplace noise of scale `scale`.

    The noise is Laplace of scale `scale`/U if U is positive, and absent if U is negative. With a total of 0, the output
    for negative U is the centre.
    """

    total: float
    count: float
    scale: float
    centre: float = 0.0

    def __post_init__(self) -> None:
        check_rule("total", self.total, 0 <= self.total < math.inf, "0 <= total < inf")
        check_rule("scale", self.scale, 0 < self.scale < math.inf, "0 < scale < inf")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each output, without the atom at the centre."""
        with np.errstate(divide="ignore"):
            return np.log(each(lambda z: self._quotient.density(z) + self._exposed_density(z), self._moved(outputs)))

    def log_mass(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-probability of exactly each output."""
        is_atom = (self._moved(outputs) == 0) & (self.total == 0)
        return np.where(is_atom, math.log(self._count_law.cdf(0.0)), -np.inf)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return each(lambda z: self._quotient.cdf(z) + self._exposed(z), self._moved(outputs))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        negative = float(self._count_law.cdf(0.0))
        return each(lambda z: self._quotient.sf(z) + negative - self._exposed(z), self._moved(outputs))

    @property
    def _quotient(self) -> Quotient:
        return Quotient(self.total / self.scale, self.count / self.scale, 0.0)

    @property
    def _count_law(self) -> LaplaceLaw:
        return LaplaceLaw(self.count, self.scale)

    def _moved(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(outputs, dtype=np.float64) - self.centre

    def _exposed(self, z: float) -> float:
        """Return Pr[U < 0, total/U ≤ z]."""
        if z >= 0:
            return float(self._count_law.cdf(0.0))
        return float(self._count_law.cdf(0.0) - self._count_law.cdf(self.total / z)) if self.total > 0 else 0.0

    def _exposed_density(self, z: float) -> float:
        if z >= 0 or self.total == 0:
            return 0.0
        return float(np.exp(self._count_law.log_density(self.total / z))) * self.total / z**2


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

    def law(self, dataset: Any) -> ExposedMeanLaw:
        """Return the law of the output before rounding to the grid, with a floor of 0 instead of 1e-12."""
        rows = rows_as_numbers(dataset)
        total, scale = float(rows.sum()), 2 / self.epsilon
        if self.noisy_divisor:
            return ExposedMeanLaw(total, len(rows), scale)
        return ExposedMeanLaw(0.0, len(rows), scale, centre=total / max(len(rows), 1))

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

    def law(self, dataset: Any) -> LaplaceLaw:
        """Return the law of the output before rounding to the grid."""
        rows = rows_as_numbers(dataset)
        n = max(len(rows), 1)
        return LaplaceLaw(float(rows.sum()) / n, 1 / (self.epsilon * n))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        law, outputs = self.law(dataset), np.empty(size)
        for piece in pieces(size):
            part = outputs[piece]
            fill_laplace(part, rng)
            part *= law.scale
            part += law.location
            on_the_grid(part)
        return outputs
