"""Figures of the pilot outputs: their frequencies on x and y with the event, and the log-likelihood ratio."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, GroupClaim, PureDP
from ...audit.events.events import Intervals, Outcomes, Sketch
from ...audit.events.outputs import outcome_words
from ...audit.results.audit_result import AuditResult
from .figure_style import (
    DASHED,
    EVENT,
    GREY,
    WIDTH,
    in_report_style,
    ink,
    legend_above,
    legible,
    name_rows,
    panel,
    sides,
)
from .light_ticks import light_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

_MOST_SKETCHED = 100_000  # runs, if an older file omits the number


def usable_sketch(result: AuditResult) -> Sketch | None:
    """The result's table of pilot outputs, or None if it is missing or cannot be drawn."""
    drawn = result.sketch
    if drawn is None or not drawn.counts_x or len(drawn.counts_x) != len(drawn.counts_y):
        return None
    if drawn.labels:
        return drawn if len(drawn.labels) == len(drawn.counts_x) else None
    inner = np.array(drawn.edges, dtype=np.float64)
    if len(inner) < 2 or len(inner) + 1 != len(drawn.counts_x) or not np.all(np.abs(inner) < 1e300):
        return None
    return drawn if np.all(np.diff(inner) > 0) else None


@in_report_style
def outputs_figure(result: AuditResult) -> Figure | None:
    """Return a figure of the pilot outputs with the event, and of their log-likelihood ratio; None without a sketch."""
    from matplotlib.figure import Figure

    drawn = usable_sketch(result)
    if drawn is None:
        return None
    if drawn.labels:
        rows = 0.26 * len(drawn.labels)
        figure = Figure(figsize=(WIDTH, rows + 0.8))
        left = 0.25 + 0.075 * max(len(name) for name in _names(drawn))
        width = (WIDTH - left - 0.26) / 2.2
        shares = panel(figure, left=left, bottom=0.48, width=1.2 * width, height=rows)
        ratios = panel(figure, left=left + 1.2 * width + 0.15, bottom=0.48, width=width, height=rows)
    else:
        figure = Figure(figsize=(WIDTH, 3.7))
        shares = panel(figure, left=0.7, bottom=2.0, width=4.6, height=1.4)
        ratios = panel(figure, left=0.7, bottom=0.45, width=4.6, height=1.4)
    draw_shares(shares, result, drawn)
    draw_ratio(ratios, result, drawn)
    (ratios.yaxis if drawn.labels else shares.xaxis).set_visible(False)
    light_ticks(shares)
    light_ticks(ratios)
    legend_above(shares, ratios)
    return figure


def draw_shares(axes: Axes, result: AuditResult, drawn: Sketch) -> None:
    """Draw the frequencies on x and y in the pilot, by bin or outcome, with the event shaded."""
    (x, y), (on_x, on_y) = _frequencies(result, drawn), sides()
    if drawn.labels:
        rows = _rows(axes, result, drawn)
        axes.barh(rows - 0.19, x, 0.36, color=on_x, label="on x")
        axes.barh(rows + 0.19, y, 0.36, color="none", edgecolor=on_y, hatch="/////", linewidth=0.8, label="on y")
        axes.set_xlabel("fraction of runs")
        return
    edges = _shaded_edges(axes, result, drawn)
    axes.stairs(x, edges, color=on_x, label="on x")
    axes.stairs(y, edges, color=on_y, linestyle=DASHED, label="on y")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("fraction of runs")


def draw_ratio(axes: Axes, result: AuditResult, drawn: Sketch) -> None:
    """Draw the natural log ratio of the frequencies with its standard error, arrows for one-sided outputs, and ±ε."""
    ratio, error = _log_ratio(result, drawn)
    seen = np.isfinite(ratio)
    epsilon = claimed_epsilon(result.claim)
    reach = 1.3 * max(epsilon or 0.0, float(np.abs(ratio[seen]).max(initial=0.0)), 0.1)
    bars: dict[str, Any] = {"fmt": ".", "color": ink(), "ecolor": GREY, "elinewidth": 0.8}
    if drawn.labels:
        at = _rows(axes, result, drawn)
        axes.errorbar(ratio[seen], at[seen], xerr=error[seen], **bars)
        axes.set_xlim(-reach, reach)
        axes.set_xlabel("ln(x / y)")
    else:
        edges = _shaded_edges(axes, result, drawn)
        at = (edges[:-1] + edges[1:]) / 2
        axes.errorbar(at[seen], ratio[seen], yerr=error[seen], **bars)
        axes.set_ylim(-reach, reach)
        axes.set_ylabel("ln(x / y)")
    for only, sign, marker in ((ratio == math.inf, 1, "^>"), (ratio == -math.inf, -1, "v<")):
        place = (at[only], np.full(only.sum(), 0.93 * sign * reach))
        x, y = place[::-1] if drawn.labels else place
        axes.plot(x, y, marker[bool(drawn.labels)], color=ink(), linestyle="")
    draw_claimed_epsilon(axes, epsilon, across=not drawn.labels)


def draw_claimed_epsilon(axes: Axes, epsilon: float | None, *, across: bool) -> None:
    """Draw lines at 0 and, for a claim with an epsilon, at ±ε: horizontal if `across`, else vertical."""
    line = axes.axhline if across else axes.axvline
    line(0, color=GREY, linewidth=0.6, zorder=1)
    if epsilon is not None:
        for end, label in ((epsilon, "claimed ±ε"), (-epsilon, None)):
            line(end, color=ink(), linewidth=1.0, linestyle=":", label=label)


def is_pure(claim: Claim | None) -> bool:
    """Whether the claim bounds the ratio of every event by its epsilon."""
    return isinstance(claim.base if isinstance(claim, GroupClaim) else claim, PureDP)


def claimed_epsilon(claim: Claim | None) -> float | None:
    """Epsilon of a pure or (ε, δ) claim at the distance of the pair; None for an (ε, δ) claim for groups."""
    if isinstance(claim, GroupClaim) and isinstance(claim.base, PureDP):
        return claim.distance * claim.base.epsilon
    return claim.epsilon if isinstance(claim, (PureDP, ApproxDP)) else None


def _rows(axes: Axes, result: AuditResult, drawn: Sketch) -> Array:
    """Label a row for each outcome, and shade the outcomes in the event."""
    rows = np.arange(len(drawn.labels), dtype=np.float64)
    inside = np.array([_is_inside(result, label) for label in drawn.labels])
    if inside.any():
        low, high = axes.get_yaxis_transform(), np.full(int(inside.sum()), 1.0)
        axes.barh(rows[inside], high, 1.0, transform=low, label="event", **EVENT)
    name_rows(axes, _names(drawn))
    return rows


def _names(drawn: Sketch) -> list[str]:
    return [legible(label, 24) for label in drawn.labels]


def _shaded_edges(axes: Axes, result: AuditResult, drawn: Sketch) -> Array:
    """Return the bin edges, and shade the event if it consists of intervals."""
    inner = np.array(drawn.edges, dtype=np.float64)
    step = inner[1] - inner[0]
    edges = np.concatenate([[inner[0] - step], inner, [inner[-1] + step]])
    label: str | None = "event"
    for low, high in result.event.intervals if isinstance(result.event, Intervals) else ():
        if high < edges[0] or low > edges[-1]:
            continue
        start, end = max(low, float(edges[0])), min(high, float(edges[-1]))
        if start < end:
            axes.axvspan(start, end, label=label, **EVENT)
        else:
            axes.axvline(start, color="#E0B000", linewidth=1.5, zorder=0, label=label)
        label = None
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel("output (the outermost bins are open-ended)")
    return edges


def _is_inside(result: AuditResult, label: str) -> bool:
    """Whether the outcome with this label lies in the event."""
    event = result.event
    if isinstance(event, Outcomes):
        return (label in {outcome_words(value) for value in event.values}) != event.others
    if isinstance(event, Intervals):
        try:
            value = float({"True": "1", "False": "0"}.get(label, label))
        except ValueError:
            return event.others
        slack = 1e-5 * abs(value)  # a label has 6 digits
        return any(low - slack <= value <= high + slack for low, high in event.intervals)
    return False


def _frequencies(result: AuditResult, drawn: Sketch) -> tuple[Array, Array]:
    """Fractions of the pilot runs on x and y; runs outside all bins count in the total."""
    x, y = (np.array(counts, dtype=np.float64) for counts in (drawn.counts_x, drawn.counts_y))
    runs = drawn.runs or _pilot_runs(result)
    return x / max(runs, x.sum(), 1.0), y / max(runs, y.sum(), 1.0)


def _pilot_runs(result: AuditResult) -> int:
    """Kept pilot runs on each dataset, if the table does not say."""
    return min(result.pilot_runs + result.searched, _MOST_SKETCHED)


def not_drawn(result: AuditResult, drawn: Sketch) -> tuple[float, float]:
    """Fractions of the runs on x and y outside all bins: non-numeric outputs or rare outcomes."""
    runs = drawn.runs or _pilot_runs(result)
    left = [max(runs - sum(counts), 0) / max(runs, 1) for counts in (drawn.counts_x, drawn.counts_y)]
    return left[0], left[1]


def _log_ratio(result: AuditResult, drawn: Sketch) -> tuple[Array, Array]:
    """Natural log ratio of the frequencies, ±∞ for one-sided outputs, and its standard error."""
    x, y = _frequencies(result, drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x) - np.log(y), np.sqrt(1.0 / np.array(drawn.counts_x) + 1.0 / np.array(drawn.counts_y))
