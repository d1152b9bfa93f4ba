"""The two halves of the exponential mechanism's loss, and the slope of its log-probabilities, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ...audit.records.suite import Entry
from ...audit.results.statement_result import Point, StatementResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _VERMILLION, _GREY, _BLACK = "#0072B2", "#D55E00", "#757575", "#111111"  # Okabe & Ito (2008)
_DASHED: Final = (0, (4, 1.5))
_LOOKS: Final = (("", _BLUE, "s", "with the 2"), ("-missing-2", _VERMILLION, "X", "without it"))


def halves_figure(entries: Sequence[Entry]) -> Figure:
    """Each part of the privacy loss with its interval, with the 2 and without, against ±ε/2."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    names: list[str] = []
    for ending, colour, marker, label in _LOOKS:
        points = _points(entries, f"E1-halves{ending}")
        names = [point.at for point in points] or names
        places = np.arange(len(points)) + (0.12 if ending else -0.12)
        _bars(axes, points, places, colour, marker, label, flat=True)
        for point in points[:1]:
            for place, end in enumerate((point.low, point.high)):
                axes.axvline(end, color=_BLACK, linewidth=1.0, linestyle=_DASHED, zorder=0,
                             label=None if place or ending else "± epsilon/2")  # fmt: skip
    axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_xlabel("part of the privacy loss")
    _finish(axes, "upper right")
    return figure


def slopes_figure(entries: Sequence[Entry], *, epsilon: float, utilities: Sequence[float]) -> Figure:
    """ln(p/p_best) against the utility below the best, with intervals, and the lines of stated and fitted slopes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    distance = np.asarray(utilities) - max(utilities)
    below = distance[distance < 0]
    for factor, style, label in ((0.5, "-", "slope epsilon/2"), (1.0, _DASHED, "slope epsilon")):
        axes.plot(distance, factor * epsilon * distance, color=_BLACK, linewidth=1.0, linestyle=style, label=label)
    for ending, colour, marker, label in _LOOKS:
        points = _points(entries, f"E3-slope{ending}")
        if points and np.isfinite([points[0].lower, points[0].upper]).all():
            fit, pairs = points[0], points[1:]
            axes.fill_between(
                distance, fit.lower * distance, fit.upper * distance, color=colour, alpha=0.25, linewidth=0
            )
            axes.plot(distance, fit.estimate * distance, color=colour, linewidth=1.6, alpha=0.6,
                      label=f"{label}: fitted slope {fit.estimate:.3f}")  # fmt: skip
            _bars(axes, [_scaled(point, step) for point, step in zip(pairs, below, strict=True)], below, colour, marker)
    axes.set_xlabel("utility below the best")
    axes.set_ylabel("ln of the probability over the best's")
    _finish(axes, "upper left")
    return figure


def _points(entries: Sequence[Entry], name: str) -> Sequence[Point]:
    """The points of the case's result; none where it was not run."""
    for entry in entries:
        if entry.name == name and isinstance(entry.result, StatementResult):
            return entry.result.points
    return ()


def _scaled(point: Point, step: float) -> Point:
    """A slope over a negative step, as the difference of log-probabilities."""
    return Point(estimate=step * point.estimate, lower=step * point.upper, upper=step * point.lower)


def _bars(
    axes: Axes,
    points: Sequence[Point],
    places: Sequence[float] | np.ndarray,
    colour: str,
    marker: str,
    label: str | None = None,
    *,
    flat: bool = False,
) -> None:
    """Estimates with their intervals, which lie flat or stand; those without a finite interval are left out."""
    kept = [(at, p) for at, p in zip(places, points, strict=True) if np.isfinite([p.lower, p.estimate, p.upper]).all()]
    if kept:
        at = [place for place, _ in kept]
        middle = [p.estimate for _, p in kept]
        ends = [[p.estimate - p.lower for _, p in kept], [p.upper - p.estimate for _, p in kept]]
        where: dict[str, Any] = {"x": middle, "y": at, "xerr": ends} if flat else {"x": at, "y": middle, "yerr": ends}
        axes.errorbar(**where, fmt=marker, color=colour, markersize=5, markeredgecolor="white", markeredgewidth=0.6,
                      capsize=2, linewidth=1.0, label=label)  # fmt: skip


def _finish(axes: Axes, corner: Literal["upper left", "upper right"]) -> None:
    axes.spines[["right", "top"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8.5, loc=corner)
