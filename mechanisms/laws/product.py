"""Law of independent coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from ...audit.errors import OptionError
from .divergences import Floats, Law, ScalarLaw, are_comparable, check_rule


@dataclass(frozen=True, slots=True)
class ProductLaw(Law):
    """Law of vectors with independent coordinates, with one law per coordinate.

    The divergence of two product laws is known if they differ in at most one coordinate. At delta 0 it is always known,
    because the largest losses of independent coordinates add up.
    """

    marginals: tuple[ScalarLaw, ...]

    def __post_init__(self) -> None:
        check_rule("number of marginals", len(self.marginals), len(self.marginals) > 0, "one law or more")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (..., k)."""
        rows = np.asarray(outputs, dtype=np.float64)
        return np.asarray(sum(law.log_density(rows[..., j]) for j, law in enumerate(self.marginals)))

    def is_comparable(self, other: Self) -> bool:
        return len(self.marginals) == len(other.marginals) and all(
            are_comparable(one, two) for one, two in self._pairs(other)
        )

    def delta_from(self, other: Self, epsilon: float) -> float:
        differing = self._differing(other)
        if len(differing) == 1:
            return differing[0][0].delta_from(differing[0][1], epsilon)
        if epsilon >= self._largest_loss(other):
            return 0.0
        raise self._too_many_places(other)

    def epsilon_from(self, other: Self, delta: float) -> float:
        differing = self._differing(other)
        if len(differing) == 1:
            return differing[0][0].epsilon_from(differing[0][1], delta)
        if delta == 0 or not differing:
            return self._largest_loss(other)
        raise self._too_many_places(other)

    def _too_many_places(self, other: Self) -> OptionError:
        return OptionError(
            f"two product laws that differ in {len(self._differing(other))} coordinates have no closed form for their "
            "divergence at delta > 0; ask for epsilon at delta 0, or use laws that differ in one coordinate.",
            law_x=self,
            law_y=other,
        )

    def _pairs(self, other: Self) -> list[tuple[ScalarLaw, ScalarLaw]]:
        return list(zip(self.marginals, other.marginals, strict=True))

    def _differing(self, other: Self) -> list[tuple[ScalarLaw, ScalarLaw]]:
        return [(one, two) for one, two in self._pairs(other) if one != two]

    def _largest_loss(self, other: Self) -> float:
        return math.fsum(one.epsilon_from(two, 0.0) for one, two in self._differing(other))
