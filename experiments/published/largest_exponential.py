"""Release of the largest noisy answer, with exponential noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP, check_number
from ...mechanisms import Law
from ...mechanisms.faulty.selection import largest_noisy
from ...mechanisms.laws.divergences import no_closed_form
from ...mechanisms.noise_samplers import Floats, fill_exponential, grid_step
from ...mechanisms.queries import candidate_scores, identity


@dataclass(frozen=True, slots=True)
class LargestExponentialLaw(Law):
    """The law of the maximum of independent exponential variables of one scale, each shifted by its location."""

    locations: tuple[float, ...]
    scale: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each output, which may be half a grid step below the largest location."""
        z, largest = np.asarray(outputs, dtype=np.float64), max(self.locations)
        heights = (np.maximum(z, largest)[..., None] - self.locations) / self.scale
        with np.errstate(divide="ignore"):  # the density is 0 at a largest location that is tied
            log_cdfs = np.log(-np.expm1(-heights))
            others = [np.delete(log_cdfs, place, axis=-1).sum(axis=-1) for place in range(len(self.locations))]
            log_density = np.logaddexp.reduce(np.stack(others, axis=-1) - heights, axis=-1) - math.log(self.scale)
        return np.where(z >= largest - grid_step(self.scale) / 2, log_density, -np.inf)

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return infinity at delta 0 if this law starts below the other; other cases have no known closed form."""
        if delta == 0 and max(self.locations) < max(other.locations):
            return math.inf
        raise no_closed_form(self, other)


@dataclass(frozen=True, slots=True)
class LargestExponential:
    """The maximum of the answers plus independent exponential noise, on a grid: no finite epsilon.

    Every output is an upper bound on the largest answer.

    Parameters
    ----------
    claim : PureDP
    scale : float
        Mean of the noise, positive.
    """

    claim: PureDP
    scale: float

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, math.inf, "the mean of exponential noise", closed=False)

    def __str__(self) -> str:
        return f"LargestExponential({self.claim}, scale={self.scale:g})"

    def law(self, dataset: Any) -> LargestExponentialLaw:
        """Return the law of the output before rounding to the grid."""
        return LargestExponentialLaw(tuple(candidate_scores(identity, dataset).tolist()), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent outputs, shape (size,)."""
        return largest_noisy(fill_exponential, candidate_scores(identity, dataset), self.scale, size, rng)
