"""Test of how often outputs occur among independent runs, which finds copies in any order.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

MOST_COPIES = 16
"""Largest number of copies of one output that is looked for."""

_FEWER = np.array([0.99, *(0.25**power for power in range(1, 10))])[:, None]  # what outputs with one copy less cost
_MORE = np.array([0.99, 0.25, 1 / 16, 1 / 64])[None, :]  # what outputs with one copy more cost


def copies_p_value(numbers: npt.ArrayLike, runs: int) -> tuple[float, int]:
    """Return the p-value of the null that the runs are independent draws from one law, and the number of copies.

    The p-value is at most a with probability at most a, for every law. It is small if many different outputs occur
    exactly k times, but few occur k − 1 or k + 1 times.

    Parameters
    ----------
    numbers : array_like of int
        At place k, how many different outputs occur exactly k times; from 0 to at least `MOST_COPIES` + 1.
    runs : int
        Number of runs, at least 1.

    Examples
    --------
    >>> copies_p_value([0, 0, 50, *[0] * 15], 100)[0] < 1e-14  # each of 50 outputs occurs twice
    True
    >>> copies_p_value([0, 50, 25, 8, 2, *[0] * 13], 132)[0]
    1.0
    """
    found = np.asarray(numbers, dtype=np.float64)
    copies = np.arange(2, MOST_COPIES + 1)
    log_wealth = np.stack([_log_wealth(found[k - 1 : k + 2], k) for k in copies.tolist()])
    log_mean = float(logsumexp(log_wealth)) - math.log(log_wealth.size)
    # A sample of fixed size is a Poisson sample given its size n, which has probability ≥ exp(−1/12n)/√(2πn).
    log_p = 0.5 * math.log(2.0 * math.pi * runs) + 1.0 / (12.0 * runs) - log_mean
    return math.exp(min(log_p, 0.0)), int(copies[np.argmax(log_wealth.max(axis=(1, 2)))])


def gain(copies: int) -> npt.NDArray[Any]:
    """Return by which factors an output that occurs `copies` times multiplies the wealth of each bet."""
    return np.asarray(1.0 + 2.0 * np.sqrt(copies / (copies + 1.0) * _FEWER * _MORE))


def _log_wealth(found: npt.NDArray[np.float64], copies: int) -> npt.NDArray[Any]:
    """Return the logarithm of the wealth of each bet on outputs that occur `copies` times."""
    fewer, same, more = found.tolist()
    return np.asarray(same * np.log(gain(copies)) + fewer * np.log1p(-_FEWER) + more * np.log1p(-_MORE))
