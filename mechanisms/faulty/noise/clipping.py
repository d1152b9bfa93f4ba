"""Clipping where it protects nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import check_number
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats
from ..answers import total
from ..flaw import Flaw


@dataclass(frozen=True, slots=True)
class ClippedAfterNoise(Flaw):
    """The sum of the rows with noise for rows in [0, 1], clipped to [0, most], and the rows are not: no finite epsilon.

    In practice the bounds are given to the function that does everything, and it clips last. To clip the output is
    free, and what a row may add is not bounded by it.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    most : float
        The largest output, positive.
    """

    epsilon: float
    most: float

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("most", self.most, 0, np.inf, "the largest output", closed=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return np.clip(LaplaceMechanism(self.epsilon, query=total).sample(dataset, size, rng), 0.0, self.most)
