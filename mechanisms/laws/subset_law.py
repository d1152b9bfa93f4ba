"""Law of a random subset that prefers one value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from .divergences import Floats, Law
from .laws import FiniteLaw


@dataclass(frozen=True, slots=True)
class SubsetLaw(Law):
    """Law of the k membership bits of a random subset of `size` values.

    All subsets with `value` are equally likely, and so are those without; one with it is e^log_odds times as likely as
    one without.
    """

    value: int
    k: int
    size: int
    log_odds: float

    @property
    def log_shares(self) -> tuple[float, float]:
        """Log-probabilities that the value is not in the subset, and that it is."""
        lacking, having = math.log(self.k - self.size), math.log(self.size) + self.log_odds
        total = float(np.logaddexp(lacking, having))
        return lacking - total, having - total

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-probability of each row of `outputs`, shape (..., k)."""
        bits = np.asarray(outputs, dtype=np.float64)
        is_subset = ((bits == 0) | (bits == 1)).all(axis=-1) & (bits.sum(axis=-1) == self.size)
        lacking, having = self.log_shares
        lacking -= math.log(math.comb(self.k - 1, self.size))
        having -= math.log(math.comb(self.k - 1, self.size - 1))
        return np.where(is_subset, np.where(bits[..., self.value] == 1, having, lacking), -np.inf)

    def is_comparable(self, other: Self) -> bool:
        return (self.k, self.size) == (other.k, other.size)

    def delta_from(self, other: Self, epsilon: float) -> float:
        one, two = self._classes(other)
        return one.delta_from(two, epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        one, two = self._classes(other)
        return one.epsilon_from(two, delta)

    def _classes(self, other: Self) -> tuple[FiniteLaw, FiniteLaw]:
        """Return the laws of (value in the subset, other's value in it); both laws are constant on these classes."""
        if self.value == other.value:
            return FiniteLaw(self.log_shares), FiniteLaw(other.log_shares)
        joint = [law._joint() for law in (self, other)]
        return FiniteLaw(joint[0]), FiniteLaw((joint[1][0], joint[1][2], joint[1][1], joint[1][3]))

    def _joint(self) -> tuple[float, ...]:
        """Return log-probabilities of (neither, another value only, this value only, both)."""
        lacking, having = self.log_shares
        shares = (
            (self.k - 1 - self.size, self.size),
            (self.k - self.size, self.size - 1),
        )  # of another value, out and in
        with np.errstate(divide="ignore"):  # a class may be empty
            logs = np.log(shares) - math.log(self.k - 1)
        return tuple((np.array([lacking, having])[:, None] + logs).ravel().tolist())
