"""Figures of statements: measured and stated curves, or a row for each number with its allowed range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...audit.results.statement_result import Point, Series, StatementResult
from .figure_style import GREY, ink, legible
from .interval_marks import draw_intervals, window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

MOST_POINTS = 40
"""Largest number of rows in a figure."""


def draw_series(axes: Axes, series: Series) -> None:
    """Draw estimates with intervals at each place, and the stated curve."""
    columns = (series.x, series.lower, series.estimate, series.upper, series.stated)
    x, lower, estimate, upper, stated = (np.array(column, dtype=np.float64) for column in columns)
    known = np.isfinite(x)
    x, lower, estimate, upper, stated = (column[known] for column in (x, lower, estimate, upper, stated))
    ends = window(lower, estimate, upper, stated)
    axes.plot(x, stated.clip(*ends), color=ink(), linewidth=1.2, label="stated", zorder=2.5)
    labels = ("interval", "interval that excludes the stated value")
    draw_intervals(axes, x, (lower, estimate, upper), ends, outside=are_excluded(series)[known], labels=labels)
    axes.set_xlim(window(x, room=0.04))
    axes.set_ylim(ends)
    axes.set_xlabel(legible(series.x_name, 80))
    axes.set_ylabel(legible(series.y_name))


def are_excluded(series: Series) -> npt.NDArray[np.bool_]:
    """Places where the interval excludes the stated value."""
    lower, upper, stated = (np.array(part, dtype=np.float64) for part in (series.lower, series.upper, series.stated))
    return (lower > stated) | (upper < stated)


def drawn_points(result: StatementResult) -> list[Point]:
    """The points that get a row, in order: all, or the `MOST_POINTS` farthest outside their allowed range."""
    places = sorted(
        range(len(result.points)), key=lambda i: (result.points[i].is_outside, result.points[i].excess), reverse=True
    )
    return [result.points[i] for i in sorted(places[:MOST_POINTS])]


def draw_points(axes: Axes, result: StatementResult) -> None:
    """Draw a row for each number: name, interval and stated value as text, the interval, and the allowed range shaded.

    Numbers with the same allowed range share an axis. Otherwise the units may differ, so each row has a separate scale
    that its interval and allowed range just fill.
    """
    points = drawn_points(result)
    rows = np.arange(0.15, len(points), dtype=np.float64)
    columns: list[Array] = [
        np.array([getattr(point, name) for point in points], dtype=np.float64)
        for name in ("lower", "estimate", "upper", "low", "high")
    ]
    lower, estimate, upper, low, high = columns
    is_shared = len(set(zip(low.tolist(), high.tolist(), strict=True))) == 1
    if is_shared:
        ends = window(lower, estimate, upper, low, high)
        axes.set_xlabel(legible(result.quantity, 80))
    else:
        windows = [window([p.lower, p.estimate, p.upper, p.low, p.high], room=0.12) for p in points]
        start = np.array([a for a, _ in windows], dtype=np.float64)
        size = np.array([b - a for a, b in windows], dtype=np.float64)
        with np.errstate(over="ignore"):
            columns = [np.asarray((part - start) / size, dtype=np.float64) for part in columns]
        ends = (0.0, 1.0)
        axes.set_xticks([])
        axes.set_xlabel(f"{legible(result.quantity, 60)}; each row has a separate scale")
    lower, estimate, upper, low, high = columns
    _allowed(axes, rows, low, high, ends)
    outside = np.array([point.is_outside for point in points])
    labels = ("interval", "interval outside the allowed range")
    draw_intervals(axes, rows, (lower, estimate, upper), ends, outside=outside, sideways=True, labels=labels)
    axes.set_yticks([])
    axes.set_ylim(len(points) - 0.4, -0.6)
    axes.set_xlim(ends)
    axes.spines[["left", "right", "top"]].set_visible(False)
    place = axes.get_yaxis_transform()
    for row, point in enumerate(points):
        text = legible(point.at or result.quantity, 28)
        axes.text(0.01, row - 0.28, text, transform=place, va="center", size="small")
        text = legible(f"{point.interval}, {point.allowed}", 60)
        axes.text(0.99, row - 0.28, text, transform=place, va="center", ha="right", size="small")


def _allowed(axes: Axes, rows: Array, low: Array, high: Array, ends: tuple[float, float]) -> None:
    """Draw each allowed range as a bar with a line at each finite end."""
    start, end = low.clip(*ends), high.clip(*ends)
    limited = np.isfinite(low) | np.isfinite(high)
    axes.barh(
        rows[limited], (end - start)[limited], 0.4, left=start[limited], color=GREY, alpha=0.25, linewidth=0,
        label="allowed range",
    )  # fmt: skip
    x = np.concatenate([low, high])
    y = np.concatenate([rows, rows])
    seen = np.isfinite(x)
    axes.vlines(x[seen], y[seen] - 0.2, y[seen] + 0.2, colors=ink(), linewidths=1.2)


def fraction_outside(series: Series) -> str:
    """Such as "2 of 40 intervals exclude the stated value"."""
    n = int(are_excluded(series).sum())
    return f"{n or 'none'} of {len(series.x):,} intervals exclude{'s' * (n == 1)} the stated value"
