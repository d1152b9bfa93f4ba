"""Base of mechanisms that select a candidate by its score."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...audit.claims.claim import check_number
from ..laws.reference_mechanism import PureMechanism


@dataclass(frozen=True, slots=True)
class SelectionMechanism(PureMechanism):
    """Base of mechanisms that select a candidate by scores on a scale of 2Δ/ε, or Δ/ε for monotone scores."""

    sensitivity: float = 1.0
    monotone: bool = False

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        way_out = "a score's largest change; if none ever changes, publish the best candidate"
        check_number("sensitivity", self.sensitivity, 0, math.inf, way_out, closed=False)

    @property
    def scale(self) -> float:
        """2Δ/ε, or Δ/ε for monotone scores: the difference in score that counts as one unit."""
        return (1 if self.monotone else 2) * self.sensitivity / self.epsilon
