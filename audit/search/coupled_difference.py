"""How much the outputs on x and on y differ, run by run with the same random numbers.

A few runs that share their noise show what differs between two datasets: where the noise is added, its shift to the
last digit. They cannot say how much privacy is lost, for which events are needed, but which of many pairs to run more
often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.outputs import (
    Outputs,
    as_numbers,
    as_vectors,
    is_real,
    merge,
    outcome_key,
    outcome_list,
    row_keys,
    vector_width,
)

Floats = npt.NDArray[np.float64]

_LARGEST = 1e6  # where outputs on one dataset never vary
_ERRORS = 2.0  # standard errors of a shift, or of the change of a log spread, that count as no difference


def coupled_difference(x: Outputs, y: Outputs) -> float:
    """Return how far two samples are apart that share their random numbers run by run; 0 if they do not differ.

    For numbers, the sum over coordinates of the mean shift in units of the spread, and of the change of the log spread,
    each less two standard errors: that of the shift is 0 for added noise, and that of the spread is the one of
    independent runs. For other outputs, and in addition for whole numbers and numbers that are not finite, half the
    triangular discrimination of the outcomes beyond the part that chance explains. Outputs that differ in every run,
    but have the same distribution, are hardly apart.

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
    if (numbers := _as_numbers(x, y)) is None:
        return _discrimination(x, y)
    finite_x, finite_y = (np.isfinite(side) for side in numbers)
    both = finite_x.all(axis=1) & finite_y.all(axis=1)
    apart = _apart(numbers[0][both], numbers[1][both])
    if not both.all():  # which numbers are infinite or NaN
        apart += _discrimination(np.where(finite_x, 0.0, numbers[0]), np.where(finite_y, 0.0, numbers[1]))
    return apart + (_discrimination(x, y) if x.dtype.kind in "biu" or y.dtype.kind in "biu" else 0.0)


def _as_numbers(x: Outputs, y: Outputs) -> tuple[Floats, Floats] | None:
    """Return the outputs as vectors, shape (runs, width); None unless all are numbers, or vectors of one width."""
    sides = (x, y)
    if all(side.ndim == 1 and (side.dtype != object or all(map(is_real, side))) for side in sides):
        if all(side.dtype.kind in "biufO" for side in sides):
            with np.errstate(over="ignore"):
                return as_numbers(x).astype(np.float64)[:, None], as_numbers(y).astype(np.float64)[:, None]
        return None
    width = vector_width(x, y)
    if width is None:
        return None
    return as_vectors(x, width).astype(np.float64), as_vectors(y, width).astype(np.float64)


def _discrimination(x: Outputs, y: Outputs) -> float:
    """Return half the triangular discrimination of the outcomes, less its mean if x and y had the same distribution.

    An outcome with a hits on x and b on y contributes (a − b)²/(a + b). Of equal distributions (a − b)² has as its mean
    the number of runs in which the outcome occurs on one dataset only.
    """
    on_x, on_y = np.split(_outcome_numbers(np.concatenate(merge([x], [y]))), 2)
    most, differ = max(on_x.max(), on_y.max()) + 1, on_x != on_y
    hits_x, hits_y = (np.bincount(side, minlength=most) for side in (on_x, on_y))
    alone = np.bincount(on_x[differ], minlength=most) + np.bincount(on_y[differ], minlength=most)
    found = float(np.sum(((hits_x - hits_y) ** 2 - alone) / (hits_x + hits_y)))
    return max(found, 0.0) / (2.0 * len(on_x))


def _outcome_numbers(outputs: Outputs) -> npt.NDArray[np.int64]:
    """Return numbers from 0 that are equal for equal outputs, shape (runs,)."""
    if outputs.dtype != object:
        return np.unique(row_keys(outputs.reshape(len(outputs), -1)), return_inverse=True)[1]
    numbers: dict[Any, int] = {}
    found = (numbers.setdefault(outcome_key(one), len(numbers)) for one in outcome_list(outputs))
    return np.fromiter(found, dtype=np.int64, count=len(outputs))


def _apart(x: Floats, y: Floats) -> float:
    runs = len(x)
    if runs < 2 or x.shape[1] == 0:
        return 0.0
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(y).max(axis=0))
    x, y = (side / np.where(largest > 0.0, largest, 1.0) for side in (x, y))  # huge numbers have no squares
    shifts = y - x
    shift = np.abs(np.mean(shifts, axis=0)) - _ERRORS * np.std(shifts, axis=0, ddof=1) / np.sqrt(runs)
    spread_x, spread_y = (np.std(side, axis=0, ddof=1) for side in (x, y))
    spread = np.sqrt((spread_x**2 + spread_y**2) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        moved = np.where(shift > 0.0, np.minimum(shift / spread, _LARGEST), 0.0)
        change = np.abs(np.log(spread_y / spread_x)) - _ERRORS / np.sqrt(runs - 1)
        widened = np.where(spread_x == spread_y, 0.0, np.clip(change, 0.0, _LARGEST))
    return float(np.sum(moved) + np.sum(widened))
