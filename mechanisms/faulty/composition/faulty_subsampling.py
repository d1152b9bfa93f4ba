"""Amplification by subsampling claimed without the sampling for which it is proved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ....audit.claims.claim import PureDP, check_number
from ...noise_samplers import Floats, grid_step, round_to_grid, standard_laplace
from ..flaw import Flaw, check_choice

Sampling = Literal["poisson", "none", "first", "fixed", "replacement"]


@dataclass(frozen=True, slots=True)
class SampledTotal(Flaw):
    """The sum of a sample of rows in [−1, 1] plus Laplace noise of scale 1/ε, claimed to be ln(1 + rate(e^ε − 1))-DP.

    The claim holds under add/remove if each row is in the sample with probability `rate`, independently ("poisson").
    It need not hold for any other sampling:

    none
        All rows are used, and the loss is ε.
    first
        The first ⌊rate·n⌋ rows are used, and the loss is ε for a row among them.
    fixed
        A random sample of ⌊rate·n⌋ rows is used. An added row displaces another, and the sum moves by 2.
    replacement
        ⌊rate·n⌋ draws with replacement are used, so that a row may occur more than once.

    Parameters
    ----------
    epsilon : float
        ε without sampling, in nats, positive.
    rate : float
        In (0, 1).
    sampling : {"poisson", "none", "first", "fixed", "replacement"}

    References
    ----------
    Balle, Barthe & Gaboardi (2018), Privacy amplification by subsampling: tight analyses via couplings and divergences.
    """

    epsilon: float
    rate: float
    sampling: Sampling = "poisson"

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_number("rate", self.rate, 0, 1, "the share of rows that are used", closed=False)
        check_choice("sampling", self.sampling, get_args(Sampling))

    @property
    def claim(self) -> PureDP:
        return PureDP(math.log1p(self.rate * math.expm1(self.epsilon)))

    @property
    def truth(self) -> PureDP | None:
        """None for "replacement" and "first", where the loss grows with the number of rows.

        For "first" it does because neighbours may be in another order.
        """
        match self.sampling:
            case "poisson":
                return self.claim
            case "none":
                return PureDP(self.epsilon)
            case "fixed":  # coupled samples of x and y differ in at most one row
                return PureDP(2 * self.epsilon)
            case _:
                return None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        rows = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0)
        scale = 1.0 / self.epsilon
        step = grid_step(scale)
        noise = scale * standard_laplace(size, rng) + np.round(self._totals(rows, size, rng) / step) * step
        return round_to_grid(noise, scale)

    def _totals(self, rows: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Sums of independent samples, shape (size,)."""
        n, batch = len(rows), math.floor(self.rate * len(rows))
        totals = np.zeros(size)
        match self.sampling:
            case "none":
                totals += rows.sum()
            case "first":
                totals += rows[:batch].sum()
            case "poisson":
                for row in rows:
                    totals += row * (rng.random(size) < self.rate)
            case "fixed":
                left = np.full(size, float(batch))  # still to be drawn from the remaining rows
                for j, row in enumerate(rows):
                    is_taken = rng.random(size) * (n - j) < left
                    totals += row * is_taken
                    left -= is_taken
            case _:
                if n > 0:
                    totals += rng.multinomial(batch, np.full(n, 1 / n), size) @ rows
        return totals
