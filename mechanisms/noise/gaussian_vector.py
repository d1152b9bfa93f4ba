"""Gaussian noise on vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...audit.errors import DatasetError
from ..laws.divergences import Law, check_rule
from ..laws.laws import GaussianLaw
from ..laws.reference_mechanism import ApproxMechanism
from ..noise_samplers import Floats, gaussian_on_grid
from ..queries import Query, as_numbers, identity
from .gaussian import analytic_gaussian_scale

Vector: TypeAlias = tuple[float, ...]


def vector_answer(query: Query, dataset: Any) -> Vector:
    """Return the query's answer as a non-empty vector of finite numbers; raise a `DatasetError` if it is not one."""
    answer = query(dataset)
    vector = as_numbers(answer)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a vector of finite numbers; use a query that returns "
            "one for this dataset (GaussianMechanism takes single numbers).",
            answer=answer,
        )
    return tuple(vector.tolist())


@dataclass(frozen=True, slots=True)
class GaussianVectorLaw(Law):
    """Independent normal coordinates with the given means and a common standard deviation `scale`.

    Only the projection onto the line through the two locations distinguishes two such laws. Their divergence is
    therefore that of normal laws whose distance is the Euclidean distance of the locations.
    """

    location: Vector
    scale: float

    def __post_init__(self) -> None:
        check_rule("number of coordinates", len(self.location), len(self.location) > 0, "one or more")
        check_rule("scale", self.scale, 0 < self.scale < math.inf, "0 < scale < inf")

    @property
    def marginals(self) -> tuple[GaussianLaw, ...]:
        """The law of each coordinate."""
        return tuple(GaussianLaw(mean, self.scale) for mean in self.location)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (..., d)."""
        z = (np.asarray(outputs, dtype=np.float64) - self.location) / self.scale
        return np.asarray(-(z**2).sum(axis=-1) / 2 - len(self.location) * math.log(self.scale * math.sqrt(2 * math.pi)))

    def is_comparable(self, other: Self) -> bool:
        return self.scale == other.scale and len(self.location) == len(other.location)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return GaussianLaw(0.0, self.scale).delta_from(GaussianLaw(self._distance(other), self.scale), epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return GaussianLaw(0.0, self.scale).epsilon_from(GaussianLaw(self._distance(other), self.scale), delta)

    def _distance(self, other: Self) -> float:
        return math.dist(self.location, other.location)


@dataclass(frozen=True, slots=True)
class VectorGaussianMechanism(ApproxMechanism):
    """A vector of real answers, each plus independent Gaussian noise: (epsilon, delta)-DP, with the least noise.

    The standard deviation, stored as `scale`, depends on the Euclidean sensitivity but not on the number of
    coordinates. Outputs are rounded to the grid of `GaussianMechanism`, the same for every dataset.

    Parameters
    ----------
    epsilon : float
        In nats, ≥ 0.
    delta : float
        In (0, 1).
    sensitivity : float
        Largest Euclidean distance between answers on neighbouring datasets, positive.
    query : callable
        Maps the dataset to the vector of answers; by default the dataset is that vector.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.

    Examples
    --------
    >>> mechanism = VectorGaussianMechanism(epsilon=1, delta=1e-5)
    >>> print(mechanism, mechanism.sample([1.0, 2.0, 3.0], 5, np.random.default_rng(0)).shape)
    VectorGaussian(epsilon=1, delta=1e-05, sensitivity=1) (5, 3)
    """

    sensitivity: float = 1.0
    query: Query = identity
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", analytic_gaussian_scale(self.epsilon, self.delta, self.sensitivity))

    def __str__(self) -> str:
        return f"VectorGaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, sensitivity={self.sensitivity:g})"

    def law(self, dataset: Any) -> GaussianVectorLaw:
        """The law of the output before rounding to the grid."""
        return GaussianVectorLaw(vector_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, d) for d answers."""
        answer = vector_answer(self.query, dataset)
        return np.stack([gaussian_on_grid(coordinate, self.scale, size, rng) for coordinate in answer], axis=1)
