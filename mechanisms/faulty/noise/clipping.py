"""Clipping of the output instead of the rows."""

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
    """A sum with noise for rows in [0, 1], clipped to [0, most] after the noise while the rows are not: no finite ε.

    In practice, the bounds are given to the function that does everything, and it clips last. Clipping the output is
    free, but it does not bound what a row may add.
    """

    epsilon: float
    most: float

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("most", self.most, 0, np.inf, "the largest output", closed=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return np.clip(LaplaceMechanism(self.epsilon, query=total).sample(dataset, size, rng), 0.0, self.most)
