"""A histogram with noise for the other kind of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ....audit.claims.pure_approx_gaussian import PureDP
from ...noise.histogram import HistogramMechanism
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class HalfNoiseHistogram(Twin):
    """A histogram said to protect a replaced row, with the noise that is enough for an added or removed one: 2·epsilon.

    In practice "each row is in one bin only, so the sensitivity is 1" is said without saying what neighbours are. Shows
    on datasets of equal size, one row of which is in another category.
    """

    epsilon: float
    k: int
    noise: Literal["laplace", "geometric"] = "laplace"

    @property
    def runs_as(self) -> HistogramMechanism:
        return HistogramMechanism(self.epsilon, self.k, noise=self.noise)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)
