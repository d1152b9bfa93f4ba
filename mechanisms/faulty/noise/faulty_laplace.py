"""Laplace noise of the wrong scale."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.pure_approx_gaussian import PureDP
from ...noise.laplace import LaplaceMechanism
from ...queries import Query, identity
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class UnderstatedSensitivityLaplace(Twin):
    """A sum of values in [0, bound] whose sensitivity is taken as 1: epsilon·bound instead of epsilon (for bound > 1).

    In practice code written for a count is reused for a sum, or the clipping bound is changed in one place only.
    Shows on add/remove neighbours that differ by a row at the bound.
    """

    epsilon: float
    bound: float = 2.0
    query: Query = identity

    def __post_init__(self) -> None:
        LaplaceMechanism(self.epsilon, sensitivity=self.bound)  # what it should be: refuses what that refuses

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, sensitivity=1.0, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.bound)


@dataclass(frozen=True, slots=True)
class InvertedScaleLaplace(Twin):
    """A count with noise of scale epsilon instead of 1/epsilon: 1/epsilon-DP.

    In practice the generator's `scale` is taken for the rate, or for the privacy parameter itself. Under-noised for
    epsilon < 1; at epsilon = 1 the bug is invisible, which is how it passes a test written there; over-noised above.
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(1.0 / self.epsilon, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(1.0 / self.epsilon)
