"""Counts forced into a range, by redrawing or by a range that depends on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.errors import DatasetError
from ...laws.discrete_law import DiscreteLaw
from ...noise.geometric import GeometricMechanism
from ...noise_samplers import Floats, draw_indices
from ...parameter_checks import check_count
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class RangedCount:
    """Number of rows equal to 1, among rows of 0 and 1, with geometric noise and forced into 0 … `most`.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    most : int or None
        End of the range; None for the number of rows.
    is_redrawn : bool
        Whether noise that leads out of the range is drawn again; else the output is clamped to the range.
    """

    epsilon: float
    most: int | None
    is_redrawn: bool

    def __post_init__(self) -> None:
        GeometricMechanism(self.epsilon)  # refuses the epsilon
        if self.most is not None:
            check_count("most", self.most, "rows")

    @property
    def claim(self) -> PureDP:
        """ε-DP, as for a count without a range."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> DiscreteLaw:
        """Exact law of the output."""
        rows = np.asarray(dataset, dtype=np.float64)
        if not np.isin(rows, (0.0, 1.0)).all():
            raise DatasetError("a row is neither 0 nor 1; use rows of 0 and 1.", rows=len(rows))
        most, count = len(rows) if self.most is None else self.most, int(rows.sum())
        if count > most:
            raise DatasetError(f"{count} rows are 1, more than most={most}; use fewer.", count=count, most=most)
        noise = GeometricMechanism(self.epsilon).law(count)
        values = np.arange(most + 1)
        log_mass = noise.log_density(values)
        if self.is_redrawn:
            log_mass = log_mass - np.logaddexp.reduce(log_mass)
        elif most > 0:
            log_mass[0], log_mass[-1] = math.log(noise.cdf(0)), math.log(noise.sf(most - 1))
        else:
            log_mass[:] = 0.0
        return DiscreteLaw(tuple(values.astype(float).tolist()), tuple(log_mass.tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        law = self.law(dataset)
        drawn: Floats = np.asarray(law.values)[draw_indices(law.probabilities, size, rng)]
        return drawn


@dataclass(frozen=True, slots=True)
class RedrawnIntoRange(Twin):
    """A count from 0 to `most` with geometric noise, redrawn instead of clamped while out of that range: up to 2ε.

    In practice, "truncated" noise is renormalised. The probability of being inside the range depends on the count. The
    bug shows at an end of the range.
    """

    epsilon: float
    most: int = 4

    @property
    def runs_as(self) -> RangedCount:
        return RangedCount(self.epsilon, self.most, is_redrawn=True)

    @property
    def truth(self) -> PureDP:
        """Largest loss between two counts in the range that differ by 1; below 2ε."""
        normalisers = [sum(math.exp(-self.epsilon * abs(k - n)) for k in range(self.most + 1)) for n in range(2)]
        return PureDP(self.epsilon + math.log(normalisers[1] / normalisers[0]))


@dataclass(frozen=True, slots=True)
class RangeOfTheRows(Twin):
    """A noisy count clamped to the exact number of rows, a post-processing that looks at the data: no finite ε.

    In practice, a result above the number of rows looks wrong and is clamped to it, or drawn again (`is_redrawn`). The
    bug shows when a row that does not count is added: one more number is possible.
    """

    epsilon: float
    is_redrawn: bool = False

    @property
    def runs_as(self) -> RangedCount:
        return RangedCount(self.epsilon, None, self.is_redrawn)

    truth = None
