"""The Gaussian mechanism in the local model: one person's value, clipped to a domain, plus Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import ClaimError, DatasetError
from ..laws.laws import GaussianLaw
from ..laws.reference_mechanism import ApproxMechanism
from ..noise.gaussian import GaussianMechanism
from ..noise.gaussian_vector import GaussianVectorLaw, Vector, VectorGaussianMechanism, vector_answer
from ..noise_samplers import Floats
from ..parameter_checks import check_count
from ..queries import identity, real_answer


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers from `low` to `high`; calling it clips a number to the interval.

    Examples
    --------
    >>> Interval(0, 10)(12.5)
    10.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:  # NaN fails
            raise ClaimError(
                f"low={self.low!r} and high={self.high!r} bound no interval; use finite numbers with low < high.",
                low=self.low,
                high=self.high,
            )

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"

    def __call__(self, value: Any) -> float:
        return min(max(real_answer(identity, value), float(self.low)), float(self.high))

    @property
    def diameter(self) -> float:
        """Largest distance between two members: the sensitivity if any two values are neighbours."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Ball:
    """The vectors of Euclidean norm at most `radius`; calling it scales a longer vector down to the ball.

    Vectors of another length are rejected, because the length of the output would reveal that of the input.

    Examples
    --------
    >>> Ball(1.0, n_coords=2)([3.0, 4.0])
    (0.6, 0.8)
    """

    radius: float
    n_coords: int

    def __post_init__(self) -> None:
        check_number("radius", self.radius, 0, math.inf, "longer vectors are scaled down to it", closed=False)
        check_count("n_coords", self.n_coords, "coordinates")

    def __str__(self) -> str:
        return f"norm <= {self.radius:g} in {self.n_coords}-d"

    def __call__(self, value: Any) -> Vector:
        vector = vector_answer(identity, value)
        if len(vector) != self.n_coords:
            raise DatasetError(
                f"the vector has {len(vector)} coordinates, the domain {self.n_coords}; give every person's vector "
                "the same length, because the noise does not hide it.",
                n_coords=self.n_coords,
            )
        largest = max(map(abs, vector))
        if largest > self.radius:  # clip to a cube around the ball first, so that the norm cannot overflow
            vector = tuple(coordinate / largest * self.radius for coordinate in vector)
        norm = math.hypot(*vector)
        return vector if norm <= self.radius else tuple(coordinate / norm * self.radius for coordinate in vector)

    @property
    def diameter(self) -> float:
        """Largest distance between two members: the sensitivity if any two values are neighbours."""
        return 2 * self.radius


Domain: TypeAlias = Interval | Ball


@dataclass(frozen=True, slots=True)
class LocalGaussianMechanism(ApproxMechanism):
    """One person's number or vector, clipped to a domain, plus Gaussian noise: (epsilon, delta)-DP for any two values.

    In the local model any two values are neighbours. The sensitivity is the diameter of the domain, and the clipping
    guarantees it.

    Parameters
    ----------
    epsilon : float
        In nats, ≥ 0.
    delta : float
        In (0, 1).
    domain : Interval or Ball
        Domain of numbers or of vectors; must not depend on the value.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8, for the noise;
    Kasiviswanathan, Lee, Nissim, Raskhodnikova & Smith (2011), What can we learn privately?, for the local model.

    Examples
    --------
    >>> mechanism = LocalGaussianMechanism(epsilon=1, delta=1e-5, domain=Interval(0, 10))
    >>> print(mechanism, mechanism.law(12.5).location)
    LocalGaussian(epsilon=1, delta=1e-05, domain=[0, 10]) 10.0
    """

    domain: Domain
    runs_as: GaussianMechanism | VectorGaussianMechanism = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Interval | Ball):
            raise ClaimError(
                f"domain={self.domain!r} is not a domain; use Interval(low, high) for numbers, or Ball(radius, "
                "n_coords) for vectors.",
                domain=self.domain,
            )
        kind = GaussianMechanism if isinstance(self.domain, Interval) else VectorGaussianMechanism
        found = kind(self.epsilon, self.delta, self.domain.diameter, query=self.domain)
        object.__setattr__(self, "runs_as", found)

    def __str__(self) -> str:
        return f"LocalGaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, domain={self.domain})"

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        return self.runs_as.scale

    def law(self, dataset: Any) -> GaussianLaw | GaussianVectorLaw:
        """The law of the output before rounding to the grid."""
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,) for numbers and (size, d) for vectors."""
        return self.runs_as.sample(dataset, size, rng)
