"""Lower bounds before and after, for a comparison of two records of the same audits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry
from ...audit.results.audit_result import Verdict
from ...audit.results.statement_result import StatementResult
from ..plain_text import found, severity
from .figure_style import COLOUR, GREY, MARKER, in_report_style, ink, legible
from .light_ticks import light_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 60
_FARTHEST = 2.0  # times the claim, as in the forest


def compared_bounds(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with a bound before or after, changed ones first; at most `MOST_ROWS`."""
    known = [one for one in comparisons if not (math.isnan(_bound(one.before)) and math.isnan(_bound(one.after)))]
    return sorted(known, key=lambda one: (not one.has_changed, one.not_compared is None))[:MOST_ROWS]


@in_report_style
def before_after_figure(comparisons: Sequence[Comparison], *, narrow: bool = False) -> Figure:
    """Return a figure with a row for each comparison: hollow marker before, filled marker after, line between."""
    from matplotlib.figure import Figure

    n = max(len(comparisons), 1)
    width, row = (4.3, 0.46) if narrow else (10.0, 0.27)
    left, right, above, below = (0.15, 0.2, 0.95, 0.1) if narrow else (2.95, 3.55, 0.72, 0.08)
    height = n * row + above + below
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, (width - left - right) / width, n * row / height))
    _draw(axes, comparisons, narrow)
    axes.spines["bottom"].set_visible(False)
    axes.spines["top"].set_visible(True)
    light_ticks(axes, is_above=True)
    figure.legend(handles=_keys(), loc="upper center", ncols=3, borderaxespad=0.2)
    return figure


def _draw(axes: Axes, comparisons: Sequence[Comparison], narrow: bool) -> None:
    rows = np.arange(len(comparisons)) + 0.14 * narrow
    before, after = (
        np.array([_bound(entry) for entry in entries])
        for entries in ([one.before for one in comparisons], [one.after for one in comparisons])
    )
    pooled = np.concatenate([before, after])
    limit = min(max(1.06 * float(pooled[np.isfinite(pooled)].max(initial=0.0)), 1.2), _FARTHEST)
    axes.set_xlim(0, limit)
    axes.set_ylim(max(len(comparisons), 1) - 0.5, -0.5 - 0.15 * narrow)
    axes.set_yticks([])
    axes.spines[["left", "right"]].set_visible(False)
    axes.axvline(0, color=GREY, linewidth=0.6)
    if narrow:  # the line must not cross the texts
        axes.vlines(np.ones(len(rows)), rows - 0.25, rows + 0.25, colors=ink(), linewidths=1.3, zorder=2)
    else:
        axes.axvline(1, color=ink(), linewidth=1.3)
    axes.set_xlabel("lower bound as a multiple of the claim (beyond 1: refuted)")
    both = ~np.isnan(before) & ~np.isnan(after)
    axes.hlines(rows[both], before[both].clip(0, limit), after[both].clip(0, limit), colors=GREY, linewidths=1.0)
    look: dict[str, Any] = {"linestyle": "", "clip_on": False, "zorder": 3, "markersize": 7}
    for values, entries, is_filled in (
        (before, [one.before for one in comparisons], False),
        (after, [one.after for one in comparisons], True),
    ):
        for verdict in Verdict:
            own = np.array([entry is not None and entry.result.verdict is verdict for entry in entries], dtype=np.bool_)
            own &= ~np.isnan(values)
            colour = COLOUR[verdict] if is_filled else "white"
            axes.plot(
                values[own].clip(0, limit), rows[own], MARKER[verdict], color=colour, markeredgecolor=COLOUR[verdict],
                markeredgewidth=1.2, **look,
            )  # fmt: skip
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
    for y, one in enumerate(comparisons):
        texts = " → ".join("missing" if each is None else found(each.result) for each in (one.before, one.after))
        texts += ", changed" if one.has_changed else ", not compared" if one.not_compared and not narrow else ""
        if narrow:
            axes.text(0.04, y - 0.3, legible(one.name, 20), **place)
            axes.text(1, y - 0.3, legible(texts, 60), ha="right", **place)
        else:
            axes.text(-0.05, y, legible(one.name), ha="right", **place)
            axes.text(1.03, y, legible(texts, 80), **place)


def _bound(entry: Entry | None) -> float:
    """The lower bound as a multiple of the claim; NaN where there is none."""
    if entry is None or isinstance(entry.result, StatementResult):
        return math.nan
    if entry.result.findings:
        return math.nan
    return severity(entry.result)


def _keys() -> list[Any]:
    from matplotlib.lines import Line2D

    shared: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": GREY}
    return [
        Line2D([], [], color="white", label="before", **shared),
        Line2D([], [], color=GREY, label="after", **shared),
    ]
