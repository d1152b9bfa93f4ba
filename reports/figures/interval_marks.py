"""Interval marks in figures: a bar and a dot, and an arrow where an interval extends beyond the axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .figure_style import BLUE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LARGEST = 1e290  # beyond this, the ends of an axis would overflow


def window(*values: npt.ArrayLike, room: float = 0.08) -> tuple[float, float]:
    """Ends of an axis that shows all finite numbers with a margin of `room`."""
    numbers = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in values])
    kept = numbers[np.abs(numbers) < _LARGEST]  # not NaN
    low, high = (float(kept.min()), float(kept.max())) if len(kept) else (0.0, 0.0)
    size = max(abs(low), abs(high))
    if high - low > 1e-9 * size and high - low > 1 / _LARGEST:
        return low - room * (high - low), high + room * (high - low)
    around = 0.1 * size if size > 1 / _LARGEST else 0.1
    return low - around, high + around


def draw_intervals(
    axes: Axes,
    at: Array,
    intervals: tuple[Array, Array, Array],
    ends: tuple[float, float],
    *,
    outside: Mask,
    sideways: bool = False,
    labels: tuple[str, str] = ("", ""),
) -> None:
    """Draw (lower, estimate, upper) at each place, cut at the `ends` of the axis; those `outside` differ in shape.

    `labels` name the intervals inside and outside the stated range in the legend. `sideways` draws along x.
    """
    lower, estimate, upper = intervals
    low, high = ends
    shown = np.where(np.abs(estimate) < _LARGEST, estimate, math.nan)
    for mask, colour, marker, label in ((~outside, BLUE, "o", labels[0]), (outside, VERMILLION, "X", labels[1])):
        if not mask.any():
            continue
        bars = axes.hlines if sideways else axes.vlines
        bars(at[mask], lower[mask].clip(low, high), upper[mask].clip(low, high), colors=colour, linewidths=1.0)
        _points(axes, at[mask], shown[mask], marker, colour, sideways, label)
        for beyond, end, tip in ((upper > high, high, ">^"), (lower < low, low, "<v")):
            there = at[mask & beyond]
            if len(there):
                _points(axes, there, np.full(len(there), end), tip[0 if sideways else 1], colour, sideways)


def _points(axes: Axes, at: Array, value: Array, marker: str, colour: str, sideways: bool, label: str = "") -> None:
    x, y = (value, at) if sideways else (at, value)
    axes.plot(x, y, marker, color=colour, linestyle="", markeredgewidth=0, clip_on=False, zorder=3, label=label or None)
