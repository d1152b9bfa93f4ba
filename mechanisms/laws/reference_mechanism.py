"""Reference mechanisms: their protocol, and base classes for the two usual claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from .divergences import Law


class ReferenceMechanism(Protocol):
    """Mechanism with its claim and the exact law of its output."""

    @property
    def claim(self) -> Claim: ...

    def law(self, dataset: Any) -> Law: ...

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...


@dataclass(frozen=True, slots=True)
class PureMechanism:
    """Base of mechanisms that claim pure DP; the mechanism checks epsilon."""

    epsilon: float

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for the documented neighbours and sensitivity."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class ApproxMechanism:
    """Base of mechanisms that claim approximate DP; the mechanism checks epsilon and delta."""

    epsilon: float
    delta: float

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-DP, for the documented neighbours and sensitivity."""
        return ApproxDP(self.epsilon, self.delta)
