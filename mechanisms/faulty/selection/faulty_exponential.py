"""The exponential mechanism with the wrong factor in the exponent, or too small a sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.pure_approx_gaussian import PureDP
from ...queries import Query, identity
from ...selection.exponential import ExponentialMechanism
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class ExponentialMissingFactorTwo(Twin):
    """Pr[r] ∝ exp(ε u/Δ) for utilities that are not monotone: 2·epsilon instead of epsilon.

    In practice the 2 is left out, or the saving for monotone utilities is taken under replace. Hard to see: it shows
    only where one utility rises while the others fall. Utilities (0, …, 0) against (1, −1, …, −1), K = 50, epsilon 1:
    exact loss 1.880, and .966 with the 2; for one candidate that moves alone the loss stays below epsilon.
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
    """The exponential mechanism given half of the utilities' sensitivity: 2·epsilon instead of epsilon.

    In practice the sensitivity is read off one candidate, or one kind of neighbour, and not taken as the maximum over
    all (`utility_sensitivity`). Shows where one utility rises while the others fall by as much. Where utilities are
    monotone the 2 in the exponent makes up for the half, and the claim holds; `monotone` leaves the 2 out, and then a
    single utility that rises among many shows it.
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
