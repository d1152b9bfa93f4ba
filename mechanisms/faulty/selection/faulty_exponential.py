"""The exponential mechanism with the wrong factor in the exponent, or with too small a sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.claim import PureDP
from ...queries import Query, identity
from ...selection.exponential import ExponentialMechanism
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class ExponentialMissingFactorTwo(Twin):
    """Pr[r] ∝ exp(ε u/Δ) instead of exp(ε u/(2Δ)) for utilities that are not monotone: 2ε instead of ε.

    In practice, the 2 is left out, or the saving for monotone utilities is taken where a row is replaced (McSherry &
    Talwar 2007). The bug shows only where one utility rises while the others fall. Utilities (0, …, 0) against (1, −1,
    …, −1), K = 50, ε = 1: exact loss 1.880, and .966 with the 2. If one utility moves alone, the loss stays below ε.
    """

    epsilon: float
    sensitivity: float = 1.0
    utilities: Query = identity

    @property
    def runs_as(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.epsilon, self.sensitivity, monotone=True, utilities=self.utilities)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)


@dataclass(frozen=True, slots=True)
class HalfSensitivityExponential(Twin):
    """The exponential mechanism with half of the utilities' sensitivity: 2ε instead of ε.

    In practice, the sensitivity is read off one candidate, or one kind of neighbour, and not taken as the maximum over
    all (`utility_sensitivity`). The bug shows where one utility rises while the others fall by as much. Where utilities
    are monotone, the 2 in the exponent makes up for the half and the claim holds. `monotone` leaves out the 2, and then
    a single utility that rises among many shows the bug.
    """

    epsilon: float
    sensitivity: float = 1.0
    monotone: bool = False
    utilities: Query = identity

    @property
    def runs_as(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.epsilon, self.sensitivity / 2, self.monotone, self.utilities)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)
