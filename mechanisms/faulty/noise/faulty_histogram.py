"""A histogram with noise for the wrong adjacency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ....audit.claims.claim import PureDP
from ...noise.histogram import HistogramMechanism
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class HalfNoiseHistogram(Twin):
    """A histogram with noise for an added or removed row, claimed for a replaced row, which changes two counts: 2ε.

    In practice, "each row is in one bin only, so the sensitivity is 1" (Dwork & Roth 2014, Example 3.2) is said without
    naming the adjacency. The bug shows on datasets of equal size, one row of which is in another category.
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
