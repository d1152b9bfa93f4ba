"""How probable it is that two parts of independent runs are alike.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln


def log_chance_of_order(length: int, agreement: float) -> float:
    """Upper bound for ln of the probability of any order of so many independent runs, ties in the order of the runs.

    Parameters
    ----------
    length : int
    agreement : float
        At least the probability of every single output, in [0, 1].

    Examples
    --------
    >>> round(math.exp(-log_chance_of_order(5, 0.0)), 6), math.exp(log_chance_of_order(5, 1.0))
    (120.0, 1.0)
    """
    steps = np.arange(1.0, length)
    return float(np.log1p(agreement * steps).sum() - np.log1p(steps).sum())


def log_chance_of_head(inside: Sequence[int], outside: Sequence[int], others: int) -> float:
    """Logarithm of the probability that a given part of the other runs repeats a part, for runs in random order.

    Exact, given the part and what all other runs hold together.

    Parameters
    ----------
    inside, outside : sequence of int
        For each different output in the part, how often it comes there, and in all other runs.
    others : int
        How many other runs there are, at least as many as in the part.

    Examples
    --------
    >>> round(math.exp(log_chance_of_head([1], [1], 3)), 6)
    0.333333
    """
    times, left = np.asarray(inside, dtype=np.float64), np.asarray(outside, dtype=np.float64)
    if np.any(left < times):
        return -math.inf
    length = float(times.sum())
    ways = float((gammaln(left + 1.0) - gammaln(left - times + 1.0)).sum())
    return ways - float(gammaln(others + 1.0) - gammaln(others - length + 1.0))
