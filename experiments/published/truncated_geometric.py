"""Geometric noise on a count from 0 to n, drawn in integer arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import PureDP, check_number
from ...audit.errors import ClaimError, DatasetError
from ...mechanisms import FiniteLaw
from ...mechanisms.noise_samplers import Integers
from ...mechanisms.parameter_checks import check_count
from ...mechanisms.queries import identity, whole_answer


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """A count with two-sided geometric noise of ratio 2ᵏ/(2ᵏ + 1), clipped to [0, n]: ln(1 + 2⁻ᵏ)-DP.

    The suite sets k = ⌈ln(2/epsilon)⌉, although the claim of `epsilon` needs at least log₂(1/(e^epsilon − 1)); the
    claim is therefore wrong at epsilon 0.1, for example. All probabilities are exact multiples of 1/d for an integer d.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    n : int
        Largest count.

    References
    ----------
    Balcer & Vadhan (2018), Differential privacy on finite computers.

    Examples
    --------
    >>> mechanism = TruncatedGeometric(0.1)
    >>> mechanism.denominator
    111537
    >>> round(mechanism.loss, 5)
    0.11778
    """

    epsilon: float
    n: int = 5

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_count("n", self.n, "counts")
        if not self.denominator < 2**63:
            raise ClaimError(
                f"epsilon={self.epsilon!r} and n={self.n} need random integers up to {self.denominator:.3g}; use a "
                "larger epsilon or a smaller n.",
                epsilon=self.epsilon,
                n=self.n,
            )

    def __str__(self) -> str:
        return f"TruncatedGeometric(epsilon={self.epsilon:g}, n={self.n})"

    @property
    def k(self) -> int:
        return max(0, math.ceil(math.log(2 / self.epsilon)))

    @property
    def denominator(self) -> int:
        """The common denominator d of all probabilities."""
        step: int = 2**self.k
        return (2 * step + 1) * int((step + 1) ** (self.n - 1))

    @property
    def loss(self) -> float:
        """The true epsilon, in nats."""
        return math.log1p(2.0**-self.k)

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def distribution(self, count: int) -> list[int]:
        """Return d times Pr[output ≤ z] for z = 0 … n."""
        d, step, base = self.denominator, 2**self.k, 2**self.k + 1
        below = [step ** (count - z) * base ** (self.n - (count - z)) for z in range(count)]
        above = [d - step ** (z - count + 1) * base ** (self.n - 1 - (z - count)) for z in range(count, self.n)]
        return [*below, *above, d]

    def law(self, dataset: Any) -> FiniteLaw:
        """Return the exact law of the output."""
        weights = np.diff(self.distribution(self._count(dataset)), prepend=0)
        return FiniteLaw(tuple((np.log(weights) - math.log(self.denominator)).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """Draw `size` independent outputs in range(n + 1), shape (size,), int64."""
        numbers = rng.integers(1, self.denominator, size, endpoint=True)
        return np.searchsorted(self.distribution(self._count(dataset)), numbers).astype(np.int64, copy=False)

    def _count(self, dataset: Any) -> int:
        count = whole_answer(identity, dataset)
        if not 0 <= count <= self.n:
            raise DatasetError(f"dataset={count} is not a count; use an integer from 0 to n={self.n}.", n=self.n)
        return count
