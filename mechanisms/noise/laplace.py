"""The Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.claims.pure_approx_gaussian import PureDP
from ..laws.laws import LaplaceLaw
from ..noise_samplers import Floats, laplace_on_grid
from ..parameter_checks import check_scale
from ..queries import Query, identity, real_answer


@dataclass(frozen=True, slots=True)
class LaplaceMechanism:
    """A real answer plus Laplace noise of scale sensitivity/epsilon: epsilon-DP.

    Outputs are rounded to a grid of at most 2⁻²⁰ scales (`noise.grid_step`), the same for every dataset, so their low
    bits say nothing of the answer. Rounding is post-processing: the claim is that of the unrounded mechanism.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive.
    query : callable
        From the dataset to the answer; by default the dataset is the answer.

    Raises
    ------
    ClaimError
        For an epsilon or a sensitivity that is not positive and finite, or whose ratio leaves the range of doubles.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity in private data analysis; Dwork & Roth
    (2014), The algorithmic foundations of differential privacy, Theorem 3.6.

    Examples
    --------
    >>> count = LaplaceMechanism(epsilon=0.5, query=len)
    >>> print(count, count.scale, count.claim)
    Laplace(epsilon=0.5, sensitivity=1) 2.0 0.5-DP
    """

    epsilon: float
    sensitivity: float = 1.0
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the noise has scale sensitivity/epsilon", closed=False)
        check_number("sensitivity", self.sensitivity, 0, math.inf, "the answer's largest change", closed=False)
        check_scale(self.scale)

    def __str__(self) -> str:
        return f"Laplace(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    @property
    def scale(self) -> float:
        """Mean of the noise's size: sensitivity/epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for answers of the stated sensitivity."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> LaplaceLaw:
        """The output's law before the rounding to the grid."""
        return LaplaceLaw(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return laplace_on_grid(real_answer(self.query, dataset), self.scale, size, rng)
