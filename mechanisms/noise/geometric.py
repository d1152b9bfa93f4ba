"""The geometric mechanism, also called the discrete Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import ClaimError
from ..laws.laws import GeometricLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Integers, two_sided_geometric
from ..parameter_checks import check_whole_sensitivity
from ..queries import Query, identity, whole_answer


@dataclass(frozen=True, slots=True)
class GeometricMechanism(PureMechanism):
    """A whole answer plus two-sided geometric noise of ratio e^{−epsilon/sensitivity}: epsilon-DP, on the integers.

    Parameters
    ----------
    epsilon : float
        In nats, from 2⁻³⁰ to 700 times `sensitivity`.
    sensitivity : int
        Largest change of the answer between neighbouring datasets, at least 1.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2009), Universally utility-maximizing privacy mechanisms (the e^−ε-geometric
    mechanism).

    Examples
    --------
    >>> print(GeometricMechanism(epsilon=1, query=len))
    Geometric(epsilon=1, sensitivity=1)
    """

    sensitivity: int = 1
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the noise has ratio e^(-epsilon/sensitivity)", closed=False)
        check_whole_sensitivity(self.sensitivity, "LaplaceMechanism")
        if self.epsilon * 2.0**30 < self.sensitivity:
            raise ClaimError(
                f"epsilon={self.epsilon!r} is too small for exact integers drawn from doubles; use epsilon >= "
                f"sensitivity / 2**30 = {self.sensitivity / 2**30:.3g}.",
                epsilon=self.epsilon,
            )
        if self.epsilon > 700 * self.sensitivity:
            raise ClaimError(
                f"epsilon={self.epsilon!r} leaves so little noise that doubles cannot represent it; use epsilon <= "
                "700 * sensitivity.",
                epsilon=self.epsilon,
            )

    def __str__(self) -> str:
        return f"Geometric(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    def law(self, dataset: Any) -> GeometricLaw:
        """The exact law of the output."""
        return GeometricLaw(whole_answer(self.query, dataset), math.exp(-self.epsilon / self.sensitivity))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        outputs = two_sided_geometric(self.sensitivity / self.epsilon, size, rng)
        outputs += whole_answer(self.query, dataset)
        return outputs
