"""Counts that are forced into a range: by another draw, or by a range that the data decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.errors import DatasetError
from ...laws.discrete_law import DiscreteLaw
from ...noise.geometric import GeometricMechanism
from ...noise_samplers import Floats, draw_indices
from ...parameter_checks import check_count
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class RangedCount:
    """How many of the rows, each 0 or 1, are 1, with geometric noise, forced into 0 … `most`.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    most : int or None
        The end of the range; None for the number of rows.
    is_redrawn : bool
        Whether noise that leads out of the range is drawn again; else the output is the end that it passed.
    """

    epsilon: float
    most: int | None
    is_redrawn: bool

    def __post_init__(self) -> None:
        GeometricMechanism(self.epsilon)  # refuses the same
        if self.most is not None:
            check_count("most", self.most, "rows")

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, as for a count without a range."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> DiscreteLaw:
        """The output's exact law."""
        rows = np.asarray(dataset, dtype=np.float64)
        if not np.isin(rows, (0.0, 1.0)).all():
            raise DatasetError("a row is neither 0 nor 1; use rows that say whether something holds.", rows=len(rows))
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
        return np.asarray(law.values)[draw_indices(law.probabilities, size, rng)]


@dataclass(frozen=True, slots=True)
class RedrawnIntoRange(Twin):
    """A count from 0 to `most` with geometric noise, drawn again while it leads out of that range: up to 2·epsilon.

    In practice "truncated" noise is renormalised, where it ought to be clamped: the chance to be inside depends on the
    count. Shows at an end of the range.
    """

    epsilon: float
    most: int = 4

    @property
    def runs_as(self) -> RangedCount:
        return RangedCount(self.epsilon, self.most, is_redrawn=True)

    @property
    def truth(self) -> PureDP:
        """The largest loss of two counts in the range that differ by 1; below 2·epsilon."""
        normalisers = [sum(math.exp(-self.epsilon * abs(k - n)) for k in range(self.most + 1)) for n in range(2)]
        return PureDP(self.epsilon + math.log(normalisers[1] / normalisers[0]))


@dataclass(frozen=True, slots=True)
class RangeOfTheRows(Twin):
    """A count with geometric noise in the range from 0 to the number of rows: no finite epsilon.

    In practice a result above the number of rows looks wrong, and is clamped to it, or drawn again (`is_redrawn`): a
    post-processing that looks at the data. Shows when a row that does not count is added: one number more is possible.
    """

    epsilon: float
    is_redrawn: bool = False

    @property
    def runs_as(self) -> RangedCount:
        return RangedCount(self.epsilon, None, self.is_redrawn)

    @property
    def truth(self) -> None:
        return None
