"""How much the outputs on x and on y differ, run by run with the same random numbers.

A few runs that share their noise show what differs between two datasets: where the noise is added, its shift to the
last digit. They cannot say how much privacy is lost, for which events are needed, but which of many pairs to run more
often.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..events.outputs import Outputs, as_vectors, tally, vector_width

_LARGEST = 1e6  # where outputs on one dataset never vary


def coupled_difference(x: Outputs, y: Outputs) -> float:
    """Return how far two samples are apart that share their random numbers run by run; 0 if they do not differ.

    For numbers, the sum over coordinates of the mean shift in units of the spread, less its standard error, and of the
    change of the log spread, less the error of independent runs. For other outputs, and in addition for whole numbers,
    half the triangular discrimination of the outcomes, to which outcomes of one dataset alone contribute most. Where
    the mechanism has randomness of its own, runs do not share it, and the result is as uncertain as that of independent
    runs.

    Parameters
    ----------
    x, y : ndarray
        Outputs on each dataset, equally many, in the order drawn.

    Examples
    --------
    >>> noise = np.random.default_rng(0).laplace(size=20)
    >>> [round(coupled_difference(noise, noise + shift), 2) for shift in (0.0, 0.1, 1.0)]
    [0.0, 0.05, 0.54]

    References
    ----------
    Topsøe (2000), Some inequalities for information divergence and related measures of discrimination.
    """
    vectors = _as_numbers(x, y)
    if vectors is None or not all(np.isfinite(side).all() for side in vectors):
        return _discrimination(x, y)
    apart = _apart(*vectors)
    return apart + (_discrimination(x, y) if x.dtype.kind in "biu" or y.dtype.kind in "biu" else 0.0)


def _as_numbers(x: Outputs, y: Outputs) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Return the outputs as vectors, shape (runs, width); None unless all are numbers, or vectors of one width."""
    if x.dtype.kind in "biuf" and y.dtype.kind in "biuf" and x.ndim == y.ndim == 1:
        return x.astype(np.float64)[:, None], y.astype(np.float64)[:, None]
    width = vector_width(x, y)
    if width is None:
        return None
    return as_vectors(x, width).astype(np.float64), as_vectors(y, width).astype(np.float64)


def _discrimination(x: Outputs, y: Outputs) -> float:
    """Return half the triangular discrimination of the outcomes: at most their total variation distance."""
    on_x, on_y = tally(x)[0], tally(y)[0]
    return sum((on_x[one] - on_y[one]) ** 2 / (on_x[one] + on_y[one]) for one in on_x | on_y) / (2.0 * len(x))


def _apart(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    runs = len(x)
    if runs < 2:
        return 0.0
    spread_x, spread_y = (np.std(side, axis=0, ddof=1) for side in (x, y))
    shift = np.abs(np.mean(y - x, axis=0)) - np.std(y - x, axis=0, ddof=1) / np.sqrt(runs)
    spread = np.sqrt((spread_x**2 + spread_y**2) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(shift > 0.0, np.minimum(shift / spread, _LARGEST), 0.0)
        widened = np.where(spread_x == spread_y, 0.0, np.abs(np.log(spread_y / spread_x)) - np.sqrt(1.0 / (runs - 1)))
    return float(np.sum(moved) + np.sum(np.clip(widened, 0.0, _LARGEST)))
