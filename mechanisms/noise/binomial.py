"""The binomial mechanism: the number of heads among fair coins as noise on a whole answer."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, check_number
from ...audit.errors import ClaimError
from ..laws.divergences import ScalarLaw, check_rule, exact_delta, table_delta, table_epsilon
from ..noise_samplers import Floats, Integers, pieces
from ..parameter_checks import check_whole_sensitivity
from ..queries import Query, identity, whole_answer

MOST_FLIPS: Final = 2**20
"""Limit on the law's table, which has one entry per number of heads. With more coins, the noise is nearly normal."""


@lru_cache(maxsize=16)
def _log_table(n_flips: int) -> Floats:
    """Return ln Pr[heads = n/2 + k] for k = −n/2 … n/2, shape (n + 1,).

    The table uses the ratios C(n, n/2 + j + 1)/C(n, n/2 + j) = (n/2 − j)/(n/2 + j + 1), so probabilities near the
    middle keep their relative accuracy for any n.
    """
    half = n_flips // 2
    j = np.arange(half, dtype=np.float64)
    arm = np.concatenate([[0.0], np.cumsum(np.log((half - j) / (half + j + 1)))])
    table = np.concatenate([arm[:0:-1], arm])
    table -= math.log(math.fsum(np.exp(table)))
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _upper_tails(n_flips: int) -> Floats:
    """Return Pr[heads − n/2 ≥ k] for k = −n/2 … n/2 + 1, summed from the smallest term; shape (n + 2,)."""
    sums = np.cumsum(np.exp(_log_table(n_flips))[::-1])[::-1]
    tails = np.append(np.minimum(sums, 1.0), 0.0)
    tails[0] = 1.0
    tails.setflags(write=False)
    return tails


@dataclass(frozen=True, slots=True)
class BinomialLaw(ScalarLaw):
    """`location` plus the heads among `n_flips` fair coins minus n/2: Pr[k] = C(n, n/2 + k − location) / 2ⁿ."""

    location: int
    n_flips: int

    def __post_init__(self) -> None:
        is_even = 2 <= self.n_flips <= MOST_FLIPS and self.n_flips % 2 == 0
        check_rule("n_flips", self.n_flips, is_even, f"an even number from 2 to {MOST_FLIPS}")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64) - self.location + self.n_flips // 2
        inside = (k == np.floor(k)) & (k >= 0) & (k <= self.n_flips)
        return np.where(inside, _log_table(self.n_flips)[np.where(inside, k, 0).astype(np.int64)], -np.inf)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(self.location - np.floor(np.asarray(outputs, dtype=np.float64)))  # by symmetry

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(np.floor(np.asarray(outputs, dtype=np.float64)) + 1 - self.location)

    def _at_least(self, k: Floats) -> Floats:
        """Return Pr[output − location ≥ k] for whole or infinite k."""
        row = np.clip(k + self.n_flips // 2, 0, self.n_flips + 1).astype(np.int64)
        return np.asarray(_upper_tails(self.n_flips)[row])

    def is_comparable(self, other: Self) -> bool:
        return self.n_flips == other.n_flips

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return the divergence, including the outputs that only this law allows, whose loss is infinite."""
        return table_delta(*self._aligned(other), epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return table_epsilon(*self._aligned(other), delta)

    def _aligned(self, other: Self) -> tuple[Floats, Floats]:
        """Return both laws' log-probabilities on this law's outcomes; by symmetry, the other is shifted up."""
        table = _log_table(self.n_flips)
        shift = min(abs(self.location - other.location), len(table))
        return table, np.concatenate([table[shift:], np.full(shift, -np.inf)])


@dataclass(frozen=True, slots=True)
class BinomialMechanism:
    """A whole answer plus the heads among fair coins minus half the coins: (epsilon, delta)-DP with the exact delta.

    The noise ends at ±n_flips/2, so some outputs are possible on only one of two neighbours and every epsilon needs a
    delta. The law is log-concave: among answers at most `sensitivity` apart, those at the full distance are the easiest
    to distinguish at every epsilon, and they determine delta.

    Parameters
    ----------
    n_flips : int
        Number of coins: an even number from 2 to 2²⁰. The standard deviation of the noise is √n_flips/2.
    epsilon : float
        Epsilon of the claim, in nats, ≥ 0.
    sensitivity : int
        Largest change of the answer between neighbouring datasets, at least 1.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    Attributes
    ----------
    delta : float
        The smallest delta at this epsilon. It is never 0: if no double can hold it, it is 2.2e-308.

    Raises
    ------
    ClaimError
        If a parameter is outside its range, or there are so few coins that delta rounds to 1.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov & Naor (2006), Our data, ourselves: privacy via distributed noise generation
    (binomial noise).

    Examples
    --------
    >>> mechanism = BinomialMechanism(n_flips=100, epsilon=1, query=len)
    >>> print(mechanism, mechanism.claim)
    Binomial(n_flips=100, epsilon=1, sensitivity=1) (1, 8.00255e-08)-DP
    """

    n_flips: int
    epsilon: float
    sensitivity: int = 1
    query: Query = identity
    delta: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_whole = isinstance(self.n_flips, (int, np.integer))
        if not (is_whole and 2 <= self.n_flips <= MOST_FLIPS and self.n_flips % 2 == 0):
            raise ClaimError(
                f"n_flips={self.n_flips!r} is not allowed; use an even number from 2 to {MOST_FLIPS} (half of it is "
                "subtracted from the heads), or DiscreteGaussianMechanism for more noise.",
                n_flips=self.n_flips,
            )
        check_number("epsilon", self.epsilon, 0, math.inf, "delta is computed for it")
        check_whole_sensitivity(self.sensitivity, "GaussianMechanism")
        at_zero, moved = (BinomialLaw(location, self.n_flips) for location in (0, int(self.sensitivity)))
        delta = exact_delta(at_zero, moved, self.epsilon)
        if delta >= 1.0 - 1e-12:
            raise ClaimError(
                f"n_flips={self.n_flips!r} gives delta 1 at epsilon={self.epsilon:g}, which claims nothing; use more "
                "coins.",
                n_flips=self.n_flips,
                epsilon=self.epsilon,
            )
        object.__setattr__(self, "delta", max(delta, sys.float_info.min))

    def __str__(self) -> str:
        return f"Binomial(n_flips={self.n_flips}, epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-DP, with the smallest delta for this number of coins and this epsilon."""
        return ApproxDP(self.epsilon, self.delta)

    def law(self, dataset: Any) -> BinomialLaw:
        """The exact law of the output."""
        return BinomialLaw(whole_answer(self.query, dataset), self.n_flips)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        offset = whole_answer(self.query, dataset) - self.n_flips // 2
        out = np.empty(size, dtype=np.int64)
        for piece in pieces(size):
            out[piece] = rng.binomial(self.n_flips, 0.5, piece.stop - piece.start)
        out += offset
        return out
