"""Law on finitely many real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from ..noise_samplers import Integers
from .divergences import Floats, ScalarLaw, check_rule
from .laws import FiniteLaw


@dataclass(frozen=True, slots=True)
class DiscreteLaw(ScalarLaw):
    """Law on the given values, in ascending order, with natural log-probabilities (−inf for an impossible value).

    It is `FiniteLaw` on values instead of indices. Two laws are comparable even if their values differ.

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> exact_epsilon(DiscreteLaw((1.0, 2.0), (np.log(0.5), np.log(0.5))), DiscreteLaw((1.0,), (0.0,)))
    inf
    """

    values: tuple[float, ...]
    log_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        rule = "finite values in ascending order, one for each log-probability"
        is_ascending = bool(np.all(np.diff(self.values) > 0) and np.all(np.isfinite(self.values)))
        check_rule("values", self.values, is_ascending and len(self.values) == len(self.log_probabilities), rule)
        self._ranks  # noqa: B018  # checks that the probabilities add to 1

    @property
    def _ranks(self) -> FiniteLaw:
        """Law of the value's index."""
        return FiniteLaw(self.log_probabilities)

    @property
    def probabilities(self) -> Floats:
        """Shape (n_values,)."""
        return self._ranks.probabilities

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rank = self._rank(outputs)
        is_value = np.asarray(self.values)[np.maximum(rank, 0)] == np.asarray(outputs, dtype=np.float64)
        return np.where(is_value, self._ranks.log_density(rank), -np.inf)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return self._ranks.cdf(self._rank(outputs))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return self._ranks.sf(self._rank(outputs))

    def _rank(self, outputs: npt.ArrayLike) -> Integers:
        """Return the index of the largest value that is at most each output; −1 below all values."""
        return np.asarray(np.searchsorted(self.values, np.asarray(outputs, dtype=np.float64), side="right") - 1)

    def is_comparable(self, other: Self) -> bool:
        return True

    def delta_from(self, other: Self, epsilon: float) -> float:
        return self._among(other).delta_from(other._among(self), epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return self._among(other).epsilon_from(other._among(self), delta)

    def _among(self, other: Self) -> FiniteLaw:
        """Return this law by index on the union of both sets of values."""
        return FiniteLaw(tuple(self.log_density(sorted({*self.values, *other.values})).tolist()))
