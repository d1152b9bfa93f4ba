"""A Laplace mechanism that rarely publishes the answer itself, to test whether an audit of a pure claim finds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import check_number
from ..laws.divergences import Floats, ScalarLaw, check_rule
from ..laws.laws import LaplaceLaw
from ..laws.reference_mechanism import ApproxMechanism
from ..noise_samplers import pieces
from ..queries import Query, identity, real_answer
from .laplace import LaplaceMechanism

OFFSET: Final = 1000.0
"""Added to an answer that leaks: far outside the noise for scales below about fifty."""


@dataclass(frozen=True, slots=True)
class LeakyLaplaceLaw(ScalarLaw):
    """Mixture of the Laplace law `noise` and, with this `probability`, the single point `leak`."""

    noise: LaplaceLaw
    leak: float
    probability: float

    def __post_init__(self) -> None:
        check_rule("probability", self.probability, 0 < self.probability < 1, "0 < probability < 1")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-probability at the point `leak`, the log-density elsewhere."""
        is_leak = np.asarray(outputs, dtype=np.float64) == self.leak
        return np.where(
            is_leak, math.log(self.probability), math.log1p(-self.probability) + self.noise.log_density(outputs)
        )

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        is_passed = np.asarray(outputs, dtype=np.float64) >= self.leak
        return (1 - self.probability) * self.noise.cdf(outputs) + self.probability * is_passed

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        is_ahead = np.asarray(outputs, dtype=np.float64) < self.leak
        return (1 - self.probability) * self.noise.sf(outputs) + self.probability * is_ahead

    def is_comparable(self, other: Self) -> bool:
        return self.noise.is_comparable(other.noise) and self.probability == other.probability

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return the divergence of the noise, plus the probability of the leak unless both laws leak the same point."""
        leaked = 0.0 if self.leak == other.leak else self.probability
        return (1 - self.probability) * self.noise.delta_from(other.noise, epsilon) + leaked

    def epsilon_from(self, other: Self, delta: float) -> float:
        left = delta if self.leak == other.leak else delta - self.probability
        if left < 0:
            return math.inf
        return (
            self.noise.epsilon_from(other.noise, left / (1 - self.probability)) if left < 1 - self.probability else 0.0
        )


@dataclass(frozen=True, slots=True)
class RareLeakLaplace(ApproxMechanism):
    """A real answer plus Laplace noise, or with probability delta the answer plus 1000: (epsilon, delta)-DP.

    A pure guarantee covers every event, however rare, so this mechanism has none.

    Parameters
    ----------
    epsilon : float
        In nats, positive; the noise has scale sensitivity/epsilon.
    delta : float
        Probability of the leak, in (0, 1).
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> mechanism = RareLeakLaplace(epsilon=0.5, delta=1e-3)
    >>> exact_epsilon(mechanism.law(0), mechanism.law(1), delta=1e-3), exact_epsilon(mechanism.law(0), mechanism.law(1))
    (0.5, inf)
    """

    sensitivity: float = 1.0
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 1, "the answer leaks with this probability", closed=False)
        self._noisy  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        return f"RareLeakLaplace(epsilon={self.epsilon:g}, delta={self.delta:g}, sensitivity={self.sensitivity:g})"

    def law(self, dataset: Any) -> LeakyLaplaceLaw:
        """The law of the output before the noise is rounded to the grid."""
        return LeakyLaplaceLaw(self._noisy.law(dataset), OFFSET + real_answer(self.query, dataset), self.delta)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        out, leak = self._noisy.sample(dataset, size, rng), OFFSET + real_answer(self.query, dataset)
        for piece in pieces(size):
            out[piece][rng.random(piece.stop - piece.start) < self.delta] = leak
        return out

    @property
    def _noisy(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, self.sensitivity, self.query)
