"""Law of a row whose later entries depend on the first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from .divergences import Floats, Law, ScalarLaw, are_comparable, check_rule
from .laws import FiniteLaw

_FARTHEST = 1024.0  # upper limit of the search for epsilon


@dataclass(frozen=True, slots=True)
class ChainLaw(Law):
    """Rows whose first entry o follows `first` and whose remaining entries, given o, follow ``rest[o]``.

    The divergence is a sum over o: if the first entry loses l(o), the remaining entries may lose ε − l(o).
    """

    first: FiniteLaw
    rest: tuple[Law, ...]

    def __post_init__(self) -> None:
        n_outcomes = len(self.first.log_probabilities)
        check_rule(
            "number of laws", len(self.rest), len(self.rest) == n_outcomes, f"one law for each of {n_outcomes} outcomes"
        )

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (..., k)."""
        rows = np.asarray(outputs, dtype=np.float64)
        density = np.array(self.first.log_density(rows[..., 0]))
        for o, law in enumerate(self.rest):
            after = rows[..., 0] == o
            rest = rows[after][..., 1] if isinstance(law, ScalarLaw) else rows[after][..., 1:]
            density[after] += law.log_density(rest)
        return density

    def is_comparable(self, other: Self) -> bool:
        return self.first.is_comparable(other.first) and all(
            are_comparable(one, two) for one, two in zip(self.rest, other.rest, strict=True)
        )

    def delta_from(self, other: Self, epsilon: float) -> float:
        return math.fsum(math.exp(log_p) * _stick(p, q, epsilon - loss) for log_p, loss, p, q in self._chains(other))

    def epsilon_from(self, other: Self, delta: float) -> float:
        largest = max(loss + p.epsilon_from(q, 0.0) for _, loss, p, q in self._chains(other))
        if delta == 0:
            return max(0.0, largest)
        low, high = 0.0, min(max(largest, 0.0), _FARTHEST)
        if self.delta_from(other, low) <= delta:
            return 0.0
        if self.delta_from(other, high) > delta:
            return math.inf
        while high - low > 1e-13 * max(high, 1.0):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta_from(other, middle) > delta else (low, middle)
        return high

    def _chains(self, other: Self) -> list[tuple[float, float, Law, Law]]:
        """Return, for each possible first entry, its log-probability, its loss, and both laws of the rest."""
        logs = zip(self.first.log_probabilities, other.first.log_probabilities, strict=True)
        rests = zip(self.rest, other.rest, strict=True)
        return [
            (log_p, log_p - log_q, p, q)
            for (log_p, log_q), (p, q) in zip(logs, rests, strict=True)
            if log_p > -math.inf
        ]


def _stick(law: Law, other: Law, epsilon: float) -> float:
    """Return sup_S P(S) − e^ε Q(S) for ε of either sign; for ε < 0, by the complements of the events."""
    if epsilon >= 0:
        return law.delta_from(other, epsilon)
    if epsilon == -math.inf:
        return 1.0
    return -math.expm1(epsilon) + math.exp(epsilon) * other.delta_from(law, -epsilon)
