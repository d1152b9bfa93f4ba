"""The geometric mechanism, or discrete Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.errors import ClaimError
from ..laws.laws import GeometricLaw
from ..noise_samplers import Integers, two_sided_geometric
from ..queries import Query, identity, whole_answer


@dataclass(frozen=True, slots=True)
class GeometricMechanism:
    """A whole answer plus two-sided geometric noise of ratio e^{−epsilon/sensitivity}: epsilon-DP, on the integers.

    Parameters
    ----------
    epsilon : float
        In nats, positive, at least 2⁻³⁰ `sensitivity`.
    sensitivity : int
        Largest change of the answer between neighbouring datasets, at least 1.
    query : callable
        From the dataset to the answer; by default the dataset is the answer.

    Raises
    ------
    ClaimError
        For an epsilon or a sensitivity outside these ranges.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan (2009), Universally utility-maximizing privacy mechanisms (the
    e^−ε-geometric mechanism).

    Examples
    --------
    >>> print(GeometricMechanism(epsilon=1, query=len))
    Geometric(epsilon=1, sensitivity=1)
    """

    epsilon: float
    sensitivity: int = 1
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the noise has ratio e^(-epsilon/sensitivity)", closed=False)
        check_number("sensitivity", self.sensitivity, 0, math.inf, "the answer's largest change", closed=False)
        if self.sensitivity != int(self.sensitivity):
            raise ClaimError(
                f"sensitivity={self.sensitivity!r} is not a whole number; use 1, 2, … or LaplaceMechanism.",
                sensitivity=self.sensitivity,
            )
        if self.epsilon * 2.0**30 < self.sensitivity:
            raise ClaimError(
                f"epsilon={self.epsilon!r} is too small for exact integers drawn from doubles; use epsilon >= "
                f"sensitivity / 2**30 = {self.sensitivity / 2**30:.3g}.",
                epsilon=self.epsilon,
            )
        if self.epsilon > 700 * self.sensitivity:
            raise ClaimError(
                f"epsilon={self.epsilon!r} leaves no noise that a double can tell from none; use epsilon <= 700 * "
                "sensitivity.",
                epsilon=self.epsilon,
            )

    def __str__(self) -> str:
        return f"Geometric(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for whole answers of the stated sensitivity."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> GeometricLaw:
        """The output's exact law."""
        return GeometricLaw(whole_answer(self.query, dataset), math.exp(-self.epsilon / self.sensitivity))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        outputs = two_sided_geometric(self.sensitivity / self.epsilon, size, rng)
        outputs += whole_answer(self.query, dataset)
        return outputs
