"""Laplace noise of the wrong scale."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.claim import PureDP
from ...noise.laplace import LaplaceMechanism
from ...queries import Query, identity
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class UnderstatedSensitivityLaplace(Twin):
    """A sum of values in [0, bound] with the sensitivity of a count, 1: ε·bound instead of ε (for bound > 1).

    In practice, code for a count is reused for a sum, or the clipping bound is changed in one place only. The bug shows
    on add/remove neighbours that differ by a row at the bound.
    """

    epsilon: float
    bound: float = 2.0
    query: Query = identity

    def __post_init__(self) -> None:
        LaplaceMechanism(self.epsilon, sensitivity=self.bound)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, sensitivity=1.0, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.bound)


@dataclass(frozen=True, slots=True)
class InvertedScaleLaplace(Twin):
    """A count with Laplace noise of scale ε instead of 1/ε: (1/ε)-DP.

    In practice, the generator's `scale` is taken for the rate, or for the privacy parameter itself. There is too little
    noise for ε < 1 and too much for ε > 1. At ε = 1 the bug is invisible, so it passes a test written there (Ding et
    al. 2018).
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(1.0 / self.epsilon, query=self.query)
