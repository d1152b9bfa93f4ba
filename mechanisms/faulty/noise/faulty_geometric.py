"""Geometric noise of the wrong ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP, check_number
from ...noise.geometric import GeometricMechanism
from ...noise_samplers import Integers
from ...queries import Query, identity, whole_answer
from ..flaw import Flaw
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


@dataclass(frozen=True, slots=True)
class MisprintedTableGeometric(Flaw):
    """Geometric noise from a table with one weight too large, by a factor f: ε + ln f instead of ε.

    In practice, a table of cumulative probabilities is copied by hand, or an index is off by one at a single place.
    Only one outcome gives it away.
    """

    epsilon: float
    factor: float = 1.1
    place: int = 2
    query: Query = identity

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("factor", self.factor, 1, math.inf, "1 is the right table")
        check_number("place", self.place, -self._reach, self._reach + 1, "the table holds the noise")

    def __str__(self) -> str:
        return f"MisprintedTableGeometric(epsilon={self.epsilon:g}, factor={self.factor:g}, place={self.place})"

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon + math.log(self.factor))

    @property
    def _reach(self) -> int:
        """Largest noise in the table; larger noise has probability below 2e-16."""
        return math.ceil(36.0 / self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        noise = np.arange(-self._reach, self._reach + 1)
        weights = np.exp(-self.epsilon * np.abs(noise)) * np.where(noise == self.place, self.factor, 1.0)
        table = np.cumsum(weights)
        drawn = np.searchsorted(table, rng.random(size) * table[-1], side="right")
        outputs: Integers = np.minimum(drawn, len(noise) - 1) - self._reach + whole_answer(self.query, dataset)
        return outputs
