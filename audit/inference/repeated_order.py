"""Probabilities that one part of independent runs repeats another part.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln


def log_falling_factorial(n: npt.ArrayLike, k: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return ln n(n − 1)⋯(n − k + 1)."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    return np.asarray(gammaln(n + 1.0) - gammaln(n - k + 1.0))


def log_chance_of_order(length: int, agreement: float) -> float:
    """Return an upper bound on ln of the probability of any order of `length` independent runs; ties keep the order.

    Parameters
    ----------
    length : int
    agreement : float
        In [0, 1], at least the probability of every single output.

    Examples
    --------
    >>> round(math.exp(-log_chance_of_order(5, 0.0)), 6), math.exp(log_chance_of_order(5, 1.0))
    (120.0, 1.0)
    """
    steps = np.arange(1.0, length)
    return float(np.log1p(agreement * steps).sum() - np.log1p(steps).sum())


def log_chance_of_head(inside: Sequence[int], outside: Sequence[int], others: int) -> float:
    """Return ln of the probability that a given part of the other runs repeats a part, for runs in random order.

    The probability is exact given the part and the pooled outputs of all other runs.

    Parameters
    ----------
    inside, outside : sequence of int
        Number of times that each different output of the part occurs in the part, and in all other runs.
    others : int
        Number of other runs, at least that of the part.

    Examples
    --------
    >>> round(math.exp(log_chance_of_head([1], [1], 3)), 6)
    0.333333
    """
    times, left = np.asarray(inside, dtype=np.float64), np.asarray(outside, dtype=np.float64)
    if np.any(left < times):
        return -math.inf
    length = float(times.sum())
    return float(log_falling_factorial(left, times).sum()) - float(log_falling_factorial(others, length))
