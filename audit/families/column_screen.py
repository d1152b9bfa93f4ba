"""A cheap look at columns: how far their distribution functions on x and on y are apart.

Families that take long to learn are tried only where the look promises something.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_CUTS = 15
_RUNS, _NUMBERS = 20_000, 4_000_000  # most runs on each dataset, and most numbers in all columns together
_FOR_CUTS = 2_000


def screened(x: Array, y: Array) -> Array:
    """Distance between the distribution functions of each column at 15 quantiles, in standard errors.

    Parameters
    ----------
    x, y : ndarray, shape (columns, runs)
        Columns of the outputs on each dataset, of which the first runs are used. NaN counts as the largest number.

    Returns
    -------
    ndarray, shape (columns,)
        √(runs/2) times the largest distance: the statistic of Kolmogorov and Smirnov, above 2.2 with probability 1e-4
        for equal laws.
    """
    runs = max(min(x.shape[1], y.shape[1], _RUNS, _NUMBERS // max(len(x), 1)), 1)
    found = np.zeros(len(x))
    levels = np.linspace(0.0, 1.0, _CUTS + 2)[1:-1]
    for place, (on_x, on_y) in enumerate(zip(x[:, :runs], y[:, :runs], strict=True)):
        pooled = np.sort(np.concatenate([on_x[:_FOR_CUTS], on_y[:_FOR_CUTS]]))
        cuts = np.unique(pooled[(levels * (len(pooled) - 1)).astype(np.int64)])
        shares = [_shares(cuts, side) for side in (on_x, on_y)]
        found[place] = math.sqrt(runs / 2) * float(np.abs(shares[0] - shares[1]).max())
    return found


def most_different(x: Array, y: Array, most: int) -> list[int]:
    """The columns, in order, or the `most` that differ most between the datasets, if there are more.

    By the distance between distribution functions, and the difference of means in all runs.

    Parameters
    ----------
    x, y : ndarray, shape (columns, runs)
    """
    if len(x) <= most or min(x.shape[1], y.shape[1]) < 2:
        return list(range(min(len(x), most)))
    with np.errstate(all="ignore"):  # infinite and missing numbers
        error = np.sqrt(x.var(axis=1) / x.shape[1] + y.var(axis=1) / y.shape[1])
        apart = np.abs(x.mean(axis=1) - y.mean(axis=1)) / error
    found = np.maximum(screened(x, y), np.where(np.isfinite(apart), apart, 0.0))
    return sorted(np.argsort(-found, kind="stable")[:most].tolist())


def _shares(cuts: Array, values: Array) -> Array:
    """Share of the values up to each cut, and below it, shape (2·cuts,)."""
    up_to = np.bincount(np.searchsorted(cuts, values, side="left"), minlength=len(cuts) + 1).cumsum()[:-1]
    below = np.bincount(np.searchsorted(cuts, values, side="right"), minlength=len(cuts) + 1).cumsum()[:-1]
    return np.concatenate([up_to, below]) / len(values)
