"""Forest plot: a row for each audit of a suite, as fractions of the claims."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ...audit.results.verdict import Verdict
from ..plain_text import COLOUR, detectable, number, severity_text
from ..plain_text import found as found_words
from .figure_style import FILL, GREY, MARKER, in_report_style, ink, legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

Array = npt.NDArray[np.float64]
Audit = AuditResult | CanaryResult
Rows = list[tuple[Entry, Audit]]

_FARTHEST = 2.0  # times the claim
_NARROW = 54  # characters of a name and its numbers on a phone


@in_report_style
def forest(suite: Suite, *, narrow: bool = False, has_legend: bool = True) -> Figure:
    """Return a figure with a row for each audit: bound, estimate and exact value as fractions of the claim.

    Bars run from 0 to the lower bound; a bar beyond the line at 1 refutes the claim. A bar beyond twice the claim is
    cut, with a gap, and the text next to it states its factor. For a claim of 0, every positive value lies beyond the
    right edge. `narrow` is the layout for phones, with names above the bars. Legend and axis are above the rows, where
    the first screen of a report shows them. Statements are omitted.
    """
    from matplotlib.figure import Figure

    width, left, right, below = (4.3, 0.15, 0.2, 0.1) if narrow else (10.0, 2.95, 3.55, 0.08)
    row, above = (0.46, 1.4) if narrow else (0.25, 0.72)
    rows = max(len(audits(suite)), 1) * row
    height = rows + below + (above if has_legend else 0.5)
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, (width - left - right) / width, rows / height))
    draw_forest(axes, suite, narrow=narrow)
    axes.spines["bottom"].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    if has_legend:
        figure.legend(
            handles=forest_marks(), loc="upper center", ncols=2 if narrow else 7, columnspacing=1.2, handletextpad=0.4,
            handlelength=1.4, borderaxespad=0.2,
        )  # fmt: skip
    return figure


def audits(suite: Suite) -> Rows:
    """Entries of a suite that audit a claim, with their results."""
    return [(entry, entry.result) for entry in suite.entries if not isinstance(entry.result, StatementResult)]


def draw_forest(axes: Axes, suite: Suite, *, narrow: bool = False) -> None:
    """Draw the rows, with names left and numbers right of the axes."""
    rows = audits(suite)
    at = np.arange(len(rows), dtype=np.float64) + 0.14 * narrow
    claimed, excesses = [one.claim.parameter for _, one in rows], [detectable(one) for _, one in rows]
    bounds, estimates, exacts, found = (
        np.array([_fraction(value, claim) for value, claim in zip(values, claimed, strict=True)])
        for values in (
            [None if result.findings else result.bound for _, result in rows],
            [None if isinstance(one, CanaryResult) or one.findings else one.estimate for _, one in rows],
            [entry.exact for entry, _ in rows],
            [None if found is None else claim + found for claim, found in zip(claimed, excesses, strict=True)],
        )
    )
    pooled = np.concatenate([bounds, estimates, exacts, found])
    limit = min(1.06 * float(pooled[np.isfinite(pooled)].max(initial=1.2)), _FARTHEST)  # right end of the axis
    axes.set(xlim=(0, limit), ylim=(max(len(at), 1) - 0.5, -0.5 - 0.15 * narrow), yticks=[])
    axes.set_xlabel("lower bound as a multiple of the claim (beyond 1: refuted)", labelpad=2)
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.axvline(0, color=GREY, linewidth=0.6)
    if narrow:  # the line must not cross the texts
        axes.vlines(np.ones(len(at)), at - 0.25, at + 0.25, colors=ink(), linewidths=1.3, zorder=2)
    else:
        axes.axvline(1, color=ink(), linewidth=1.3)
    verdicts = [result.verdict for _, result in rows]
    known = ~np.isnan(bounds)
    axes.barh(
        at[known], np.minimum(bounds[known], limit), 0.34 if narrow else 0.56, linewidth=0.6,
        color=[FILL[verdict] for verdict, is_known in zip(verdicts, known, strict=True) if is_known],
        edgecolor=[COLOUR[verdict] for verdict, is_known in zip(verdicts, known, strict=True) if is_known],
    )  # fmt: skip
    _cut(axes, at[known & (bounds > limit)], limit, 0.17 if narrow else 0.28)
    marked: dict[str, Any] = {"linestyle": "", "clip_on": False, "zorder": 3}
    for values, look in (
        (found, {"marker": "|", "color": GREY, "markersize": 11, "markeredgewidth": 1.3}),
        (exacts, {"marker": "*", "color": "white", "markersize": 10, "markeredgecolor": "black"}),
        (estimates, {"marker": "o", "color": ink(), "markersize": 3.5, "markeredgecolor": "white"}),
    ):
        inside = values <= limit  # not NaN
        axes.plot(values[inside], at[inside], **{**marked, "markeredgewidth": 0.6, **look})
    far = (bounds > limit) | (exacts > limit) | (estimates > limit)
    for verdict in Verdict:
        own = np.array([each is verdict for each in verdicts], dtype=np.bool_)
        edge: dict[str, Any] = {"color": COLOUR[verdict], "markeredgecolor": "white", "markeredgewidth": 0.6}
        if (far & own).any():
            axes.plot(np.full((far & own).sum(), 1.008 * limit), at[far & own], ">", markersize=8, **marked, **edge)
        if own.any():
            place = (0.015 * limit, at[own] - 0.44) if narrow else (-0.025 * limit, at[own])
            axes.plot(np.full(own.sum(), place[0]), place[1], MARKER[verdict], markersize=6.5, **marked, **edge)
    for y, (entry, result) in enumerate(rows):
        _write(axes, y, entry, result, narrow)


def _cut(axes: Axes, rows: Array, limit: float, half: float) -> None:
    """Draw a slanted gap near the right end of the bars that are longer than the axis."""
    for start in (0.925, 0.95):
        low, high = np.full(len(rows), start * limit), np.full(len(rows), (start + 0.012) * limit)
        x, y = (np.column_stack(ends) for ends in ((low, high), (rows + 1.15 * half, rows - 1.15 * half)))
        for xs, ys in zip(x, y, strict=True):
            axes.plot(xs, ys, color="white", linewidth=2.2, zorder=2.5)


def _write(axes: Axes, y: int, entry: Entry, result: Audit, narrow: bool) -> None:
    """Write a name and numbers beside a row, or above it."""
    figures = found_words(result)
    if result.findings:
        figures = "no bound" if narrow else "no bound, failed health check"
    figures += f", claimed {number(result.claim.parameter)}"
    if factor := severity_text(result):
        figures += f" ({factor})"
    if entry.exact is not None and not narrow:
        figures += f", exact {number(entry.exact)}"
    longest = max(_NARROW - len(figures), 10) if narrow else 40
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center"}
    at, (left, right) = y - 0.3 * narrow, ("left", "right") if narrow else ("right", "left")
    axes.text(0.04 if narrow else -0.05, at, legible(entry.name, longest), ha=left, **place)
    axes.text(1 if narrow else 1.03, at, legible(figures, _NARROW - 10 if narrow else 80), ha=right, **place)


def _fraction(value: float | None, claimed: float) -> float:
    """`value` as a fraction of the claim: infinite above a claim of 0, NaN for a missing value."""
    if value is None or math.isnan(value):
        return math.nan
    if claimed > 0:
        with np.errstate(over="ignore"):
            return float(np.float64(value) / claimed)
    return math.inf if value > 0 else 0.0


def forest_marks() -> list[Patch | Line2D]:
    """Handles of the legend."""
    from matplotlib.patches import Patch

    return [
        Patch(facecolor="#DDDDDD", edgecolor=GREY, label="lower bound"),
        *(_key(MARKER[verdict], COLOUR[verdict], verdict.value, 6) for verdict in Verdict),
        _key("o", ink(), "estimate", 3.5),
        _key("*", "white", "exact value", 9, edge="black"),
        _key("|", GREY, "claim + minimum detectable excess", 9),
    ]


def _key(marker: str, colour: str, label: str, size: float, edge: str | None = None) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, color=colour, markersize=size, markeredgecolor=edge, label=label)
