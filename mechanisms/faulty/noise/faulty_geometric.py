"""Geometric noise of the wrong ratio."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.pure_approx_gaussian import PureDP
from ...noise.geometric import GeometricMechanism
from ...queries import Query, identity
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class PerRowGeometric(Twin):
    """A count with noise for one row, for users with up to `rows_per_user` rows: rows_per_user·ε at user level.

    In practice, the unit of privacy is a person while the table has one row per event. The bug shows on neighbours that
    differ by a user with all their rows.
    """

    epsilon: float
    rows_per_user: int = 2
    query: Query = identity

    def __post_init__(self) -> None:
        GeometricMechanism(self.epsilon, sensitivity=self.rows_per_user)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> GeometricMechanism:
        return GeometricMechanism(self.epsilon, query=self.query)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * self.rows_per_user)


@dataclass(frozen=True, slots=True)
class SquaredRatioGeometric(Twin):
    """A count with noise of ratio e^{−2ε} instead of e^{−ε}: 2ε instead of ε.

    In practice, a factor 2 that belongs below ε, as the sensitivity of a replaced row, is written above it. The bug
    shows on every pair of different counts.
    """

    epsilon: float
    query: Query = identity

    @property
    def runs_as(self) -> GeometricMechanism:
        return GeometricMechanism(2 * self.epsilon, query=self.query)
