"""The Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import check_number
from ..laws.laws import LaplaceLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Floats, laplace_on_grid
from ..parameter_checks import check_scale
from ..queries import Query, identity, real_answer


@dataclass(frozen=True, slots=True)
class LaplaceMechanism(PureMechanism):
    """A real answer plus Laplace noise of scale sensitivity/epsilon: epsilon-DP.

    Outputs are rounded to a grid with a step of at most 2⁻²⁰ scales (`noise.grid_step`), the same for every dataset, so
    their low bits reveal nothing about the answer. Rounding is post-processing: the claim is that of the unrounded
    mechanism.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive. The ratio of sensitivity and epsilon must
        be within the range of doubles.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

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
        """Mean absolute noise: sensitivity/epsilon."""
        return self.sensitivity / self.epsilon

    def law(self, dataset: Any) -> LaplaceLaw:
        """The law of the output before rounding to the grid."""
        return LaplaceLaw(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return laplace_on_grid(real_answer(self.query, dataset), self.scale, size, rng)
