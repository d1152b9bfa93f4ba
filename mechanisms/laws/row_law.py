"""Law on finitely many rows of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from .divergences import Floats, Law, check_rule
from .laws import FiniteLaw


@dataclass(frozen=True, slots=True)
class RowLaw(Law):
    """Law on the given rows of whole numbers, in lexicographic order, with natural log-probabilities.

    Examples
    --------
    >>> law = RowLaw(((0, 1), (1, 0)), (np.log(0.25), np.log(0.75)))
    >>> np.exp(law.log_density([[1, 0], [1, 1]])).tolist()
    [0.75, 0.0]
    """

    rows: tuple[tuple[int, ...], ...]
    log_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        rule = "different rows of one length in lexicographic order, one for each log-probability"
        is_sorted = all(a < b and len(a) == len(b) for a, b in zip(self.rows[:-1], self.rows[1:], strict=True))
        check_rule("rows", self.rows[:3], is_sorted and 0 < len(self.rows) == len(self.log_probabilities), rule)
        self._ranks  # noqa: B018  # checks that the probabilities add to 1

    @property
    def _ranks(self) -> FiniteLaw:
        """Law of the row's index."""
        return FiniteLaw(self.log_probabilities)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-probability of each row of `outputs`, shape (..., n_columns)."""
        known, rows = np.array(self.rows), np.asarray(outputs, dtype=np.float64)
        low = known.min(axis=0)
        sizes = np.ptp(known, axis=0) + 1
        weights = np.append(np.cumprod(sizes[::-1])[-2::-1], 1)  # the first column weighs most: codes ascend
        place = np.searchsorted((known - low) @ weights, (rows - low) @ weights)
        place = np.minimum(place, len(known) - 1)
        return np.where((known[place] == rows).all(axis=-1), np.asarray(self.log_probabilities)[place], -np.inf)

    def is_comparable(self, other: Self) -> bool:
        return self.rows == other.rows

    def delta_from(self, other: Self, epsilon: float) -> float:
        return self._ranks.delta_from(other._ranks, epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return self._ranks.epsilon_from(other._ranks, delta)
