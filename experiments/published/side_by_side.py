"""Independent mechanisms on one dataset, each with a row as its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim
from ...mechanisms import Law
from ...mechanisms.composition.sequential_composition import total_budget
from ...mechanisms.laws.divergences import Floats, check_rule
from ...mechanisms.laws.reference_mechanism import ReferenceMechanism


@dataclass(frozen=True, slots=True)
class SideBySideLaw(Law):
    """The joint law of independent rows of the same width, whose coordinates may be dependent."""

    parts: tuple[Law, ...]

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (size, n_parts * width)."""
        blocks = np.split(np.asarray(outputs, dtype=np.float64), len(self.parts), axis=1)
        return np.asarray(sum(law.log_density(block) for law, block in zip(self.parts, blocks, strict=True)))

    def is_comparable(self, other: Self) -> bool:
        return len(self.parts) == len(other.parts) and all(
            type(one) is type(two) and one.is_comparable(two) for one, two in zip(self.parts, other.parts, strict=True)
        )

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the sum of the largest losses, at delta 0 only."""
        check_rule("delta", delta, delta == 0, "delta=0, where the largest losses add up")
        return sum(one.epsilon_from(two, 0.0) for one, two in zip(self.parts, other.parts, strict=True))


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The outputs of several mechanisms, rows of the same width, concatenated to one row.

    Like `SequentialComposition`, for parts with dependent coordinates.

    Parameters
    ----------
    parts : tuple of mechanisms
        The epsilons and deltas of their claims add up.
    """

    parts: tuple[ReferenceMechanism, ...]

    def __str__(self) -> str:
        return f"SideBySide({len(self.parts)} mechanisms, {self.claim})"

    @property
    def claim(self) -> Claim:
        return total_budget(part.claim for part in self.parts)

    def law(self, dataset: Any) -> SideBySideLaw:
        return SideBySideLaw(tuple(part.law(dataset) for part in self.parts))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent rows, shape (size, n_parts * width), float64."""
        rows: Floats = np.concatenate([part.sample(dataset, size, rng) for part in self.parts], axis=1, dtype=float)
        return rows
