"""How probable it is that two parts of independent runs are alike.

Proof: docs/proofs/dependence.md
"""

from __future__ import annotations

import numpy as np


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


def log_chance_of_head(length: int, most: int, runs: int) -> float:
    """Upper bound for ln of the probability that two given parts of so many runs are alike, for runs in random order.

    Parameters
    ----------
    length : int
        Of each part.
    most : int
        How often the most frequent output came in all runs.
    runs : int
        At least twice the length.

    Examples
    --------
    >>> round(math.exp(log_chance_of_head(1, 2, 4)), 6)
    0.333333
    """
    left = runs - length - np.arange(length)
    return float(np.minimum(np.log(max(most - 1.0, 1e-300)) - np.log(left), 0.0).sum())
