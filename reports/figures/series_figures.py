"""The running bound of a sequential audit, the scores of canaries, and the numbers of a statement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import GroupClaim
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.canary_result import CanaryResult, ScoreSketch
from ...audit.results.statement_result import Point, Series, StatementResult
from ..plain_text import number, symbol
from .figure_style import COLOUR, EVENT, GREY, MARKER, draw_intervals, ink, legible, sides, window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

# Running lower bound of a sequential audit.

_WHY: Final = {
    "refuted": "refuted after {} runs",
    "runs": "all {} runs done",
    "time": "time limit after {} runs",
    "request": "stopped on request after {} runs",
}


def stopped(result: AuditResult) -> str:
    """Say when and why the audit stopped."""
    return _WHY.get(result.stopped or "", "last interim analysis after {} runs").format(
        f"{result.interim_analyses[-1].runs:,}"
    )


def draw_bound(axes: Axes, result: AuditResult) -> None:
    """Draw the bound against the runs, the claim, and the point and reason of stopping."""
    claim, verdict = result.directed_claim, result.verdict
    runs = np.array([look.runs for look in result.interim_analyses], dtype=np.float64)
    bounds = np.array([look.bound for look in result.interim_analyses], dtype=np.float64)
    top = window(0.0, bounds, claim.parameter, 0.1, room=0.12)[1]
    axes.step(runs, np.minimum(bounds, top), where="post", color=sides()[0], label="running lower bound")
    label = legible(f"claimed {number(claim.parameter)}")
    axes.axhline(claim.parameter, color=ink(), linewidth=1.0, linestyle=":", label=label)
    axes.plot(
        runs[-1], min(bounds[-1], top), MARKER[verdict], color=COLOUR[verdict], linestyle="", clip_on=False, zorder=3,
        markersize=8 if verdict is Verdict.REFUTED else 6, label=stopped(result),
    )  # fmt: skip
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(runs.min() / 1.1, max(runs.max(), 1.1 * runs.min()) * 1.1)
    axes.set_ylim(0, top if math.isfinite(top) else 1)
    axes.set_xlabel("runs on each dataset")
    axes.set_ylabel(legible(symbol(claim.parameter_name) + " per step" * isinstance(claim, GroupClaim)))


# Scores of canaries.


def draw_scores(axes: Axes, result: CanaryResult, sketch: ScoreSketch) -> None:
    """Draw the histograms of scores in and out, with the guessed scores shaded."""
    edges, of = np.array(sketch.edges), "pairs" if result.coins == "fixed" else "canaries"
    names = ("first in", "second in") if result.coins == "fixed" else ("in", "out")
    for counts, name, colour in zip((sketch.inside, sketch.outside), names, sides(), strict=True):
        axes.stairs(counts, edges, color=colour, fill=True, alpha=0.25, linewidth=0)
        axes.stairs(counts, edges, color=colour, label=f"{of} {name}", linewidth=1.2)
    low, high = sketch.edges[0], sketch.edges[-1]
    guesses = result.best_guesses[0]
    label: str | None = f"{guesses:,} guesses"
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "top", "size": "small"}
    said_in, said_out = (f"guessed {name}" for name in names)
    if sketch.said_out is not None:
        axes.axvspan(low, min(max(sketch.said_out, low), high), label=label, **EVENT)
        axes.text(low, 0.99, f" {said_out}", ha="left", **place)
        label = None
    if sketch.said_in is not None:
        axes.axvspan(max(min(sketch.said_in, high), low), high, label=label, **EVENT)
        axes.text(high, 0.99, f"{said_in} ", ha="right", **place)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.14 * max(*sketch.inside, *sketch.outside, 1))
    axes.set_xlabel("score of the first less that of the second" if result.coins == "fixed" else "score")
    axes.set_ylabel(of)


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
