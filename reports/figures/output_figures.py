"""Drawings in axes: outputs, bins, running bounds, scores, numbers of statements, and all audits of a suite."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ...audit.claims.claim import ApproxDP, Claim, GroupClaim, PureDP
from ...audit.events.events import Event, Intervals, Outcomes, Sketch, names_in
from ...audit.events.outputs import outcome_words, output_words
from ...audit.inference.confidence_bands import concave_hull
from ...audit.records.suite import Entry, ExactTable, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.bin_result import BinCounts
from ...audit.results.canary_result import CanaryResult, ScoreSketch
from ...audit.results.statement_result import Point, Series, StatementResult
from ...audit.results.verdict import Verdict
from ..plain_text import LOOKS, detectable, number, severity_text, symbol
from ..plain_text import found as found_words
from . import figure_style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

# Figures of bin counts: likelihood ratios, privacy profile, trade-off curve.

Array = npt.NDArray[np.float64]


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


@style.in_report_style
def outputs_figure(result: AuditResult) -> Figure | None:
    """Return a figure of the pilot outputs with the event, and of their log-likelihood ratio; None without a sketch."""
    from matplotlib.figure import Figure

    drawn = usable_sketch(result)
    if drawn is None:
        return None
    if drawn.labels:
        rows = 0.26 * len(drawn.labels)
        figure = Figure(figsize=(style.WIDTH, rows + 0.8))
        left = 0.25 + 0.075 * max(len(name) for name in _names(drawn))
        width = (style.WIDTH - left - 0.26) / 2.2
        shares = style.panel(figure, left=left, bottom=0.48, width=1.2 * width, height=rows)
        ratios = style.panel(figure, left=left + 1.2 * width + 0.15, bottom=0.48, width=width, height=rows)
    else:
        figure = Figure(figsize=(style.WIDTH, 3.7))
        shares = style.panel(figure, left=0.85, bottom=2.0, width=4.45, height=1.4)
        ratios = style.panel(figure, left=0.85, bottom=0.45, width=4.45, height=1.4)
    draw_shares(shares, result, drawn)
    draw_ratio(ratios, result, drawn)
    (ratios.yaxis if drawn.labels else shares.xaxis).set_visible(False)
    style.legend_above(shares, ratios)
    return figure


def draw_shares(axes: Axes, result: AuditResult, drawn: Sketch) -> None:
    """Draw the frequencies on x and y in the pilot, by bin or outcome, with the event shaded."""
    (x, y), (on_x, on_y) = _frequencies(drawn), style.sides()
    if drawn.labels:
        rows = _rows(axes, result, drawn)
        axes.barh(rows - 0.19, x, 0.36, color=on_x, label="on x")
        axes.barh(rows + 0.19, y, 0.36, color="none", edgecolor=on_y, hatch="/////", linewidth=0.8, label="on y")
        axes.set_xlabel("fraction of runs")
        return
    edges = _shaded_edges(axes, result, drawn)
    axes.stairs(x, edges, color=on_x, label="on x")
    axes.stairs(y, edges, color=on_y, linestyle=style.DASHED, label="on y")
    axes.set(ylim=(0, None), ylabel="fraction of runs")


def draw_ratio(axes: Axes, result: AuditResult, drawn: Sketch) -> None:
    """Draw the natural log ratio of the frequencies with its standard error, arrows for one-sided outputs, and ±ε."""
    ratio, error = _log_ratio(drawn)
    seen = np.isfinite(ratio)
    epsilon = claimed_epsilon(result.claim)
    reach = 1.3 * max(epsilon or 0.0, float(np.abs(ratio[seen]).max(initial=0.0)), 0.1)
    bars: dict[str, Any] = {"fmt": ".", "color": style.ink(), "ecolor": style.GREY, "elinewidth": 0.8}
    if drawn.labels:
        at = _rows(axes, result, drawn)
        axes.errorbar(ratio[seen], at[seen], xerr=error[seen], **bars)
        axes.set(xlim=(-reach, reach), xlabel="ln(x / y)")
    else:
        edges = _shaded_edges(axes, result, drawn)
        at = (edges[:-1] + edges[1:]) / 2
        axes.errorbar(at[seen], ratio[seen], yerr=error[seen], **bars)
        axes.set(ylim=(-reach, reach), ylabel="ln(x / y)")
    for only, sign, marker in ((ratio == math.inf, 1, "^>"), (ratio == -math.inf, -1, "v<")):
        place = (at[only], np.full(only.sum(), 0.93 * sign * reach))
        x, y = place[::-1] if drawn.labels else place
        axes.plot(x, y, marker[bool(drawn.labels)], color=style.ink(), linestyle="")
    draw_claimed_epsilon(axes, epsilon, across=not drawn.labels)


def draw_ratio_and_bound(axes: Axes, result: AuditResult, drawn: Sketch) -> None:
    """Draw the log ratio and, against a pure claim, the lower bound that other runs showed."""
    draw_ratio(axes, result, drawn)
    if isinstance(result.claim, PureDP) and 0.0 < result.bound < math.inf and not result.findings:
        line = axes.axvline if drawn.labels else axes.axhline
        for end, label in ((result.bound, f"shown: {found_words(result)}"), (-result.bound, "")):
            line(end, color=LOOKS[result.verdict].colour, linewidth=1.0, linestyle=style.DASHED, label=label)


def draw_claimed_epsilon(axes: Axes, epsilon: float | None, *, across: bool) -> None:
    """Draw lines at 0 and, for a claim with an epsilon, at ±ε: horizontal if `across`, else vertical."""
    line = axes.axhline if across else axes.axvline
    line(0, color=style.GREY, linewidth=0.6, zorder=1)
    if epsilon is not None:
        for end, label in ((epsilon, "claimed ±ε"), (-epsilon, None)):
            line(end, color=style.ink(), linewidth=1.0, linestyle=":", label=label)


def is_pure(claim: Claim | None) -> bool:
    """Whether the claim bounds the ratio of every event by its epsilon."""
    return isinstance(claim.base if isinstance(claim, GroupClaim) else claim, PureDP)


def claimed_epsilon(claim: Claim | None) -> float | None:
    """Epsilon of a pure or (ε, δ) claim at the distance of the pair; None for an (ε, δ) claim for groups."""
    if isinstance(claim, GroupClaim) and isinstance(claim.base, PureDP):
        return claim.distance * claim.base.epsilon
    return claim.epsilon if isinstance(claim, (PureDP, ApproxDP)) else None


def _rows(axes: Axes, result: AuditResult, drawn: Sketch) -> Array:
    """Label a row for each outcome, and shade the outcomes in the events."""
    rows = np.arange(len(drawn.labels), dtype=np.float64)
    events, label = _events(result)
    inside = np.array([any(_is_inside(event, outcome) for event in events) for outcome in drawn.labels])
    if inside.any():
        low, high = axes.get_yaxis_transform(), np.full(int(inside.sum()), 1.0)
        axes.barh(rows[inside], high, 1.0, transform=low, label=label, **style.EVENT)
    style.name_rows(axes, _names(drawn))
    return rows


def _names(drawn: Sketch) -> list[str]:
    return [style.legible(label, 24) for label in drawn.labels]


def _shaded_edges(axes: Axes, result: AuditResult, drawn: Sketch) -> Array:
    """Return the bin edges, and shade the events that consist of intervals."""
    inner = np.array(drawn.edges, dtype=np.float64)
    step = inner[1] - inner[0]
    edges = np.concatenate([[inner[0] - step], inner, [inner[-1] + step]])
    events, label = _events(result)
    for low, high in chain.from_iterable(event.intervals for event in events if isinstance(event, Intervals)):
        if high < edges[0] or low > edges[-1]:
            continue
        start, end = max(low, float(edges[0])), min(high, float(edges[-1]))
        if start < end:
            axes.axvspan(start, end, label=label, **style.EVENT)
        else:
            axes.axvline(start, color="#E0B000", linewidth=1.5, zorder=0, label=label)
        label = ""
    what = style.legible(output_words(names_in(result.event)), 40)
    axes.set(xlim=(edges[0], edges[-1]), xlabel=f"{what} (the outermost bins are open-ended)")
    return edges


def _events(result: AuditResult) -> tuple[list[Event], str]:
    """The event, or the events of both directions if they were tested together, and their label."""
    if result.opposite is None:
        return [result.event], "event"
    return [result.event, result.opposite.event], "events"


def _is_inside(event: Event, label: str) -> bool:
    """Whether the outcome with this label lies in the event."""
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


def _frequencies(drawn: Sketch) -> tuple[Array, Array]:
    """Fractions of the pilot runs on x and y; runs outside all bins count in the total."""
    x, y = (np.array(counts, dtype=np.float64) for counts in (drawn.counts_x, drawn.counts_y))
    return x / max(drawn.runs, x.sum(), 1.0), y / max(drawn.runs, y.sum(), 1.0)


def not_drawn(drawn: Sketch) -> tuple[float, float]:
    """Fractions of the runs on x and y outside all bins: non-numeric outputs or rare outcomes."""
    x, y = (max(drawn.runs - sum(counts), 0) / max(drawn.runs, 1) for counts in (drawn.counts_x, drawn.counts_y))
    return x, y


def _log_ratio(drawn: Sketch) -> tuple[Array, Array]:
    """Natural log ratio of the frequencies, ±∞ for one-sided outputs, and its standard error."""
    x, y = _frequencies(drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x) - np.log(y), np.sqrt(1.0 / np.array(drawn.counts_x) + 1.0 / np.array(drawn.counts_y))


# Curves of a claim: the boundary of its trade-off curve, and the privacy profile.


_LOG_ODDS = np.linspace(-28.0, 12.0, 161)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedCurve:
    """Concave increasing curve that bounds the power of every test under the claim, by false-positive rate."""

    rate: Array
    power: Array

    @classmethod
    def of(cls, claim: Claim) -> ClaimedCurve:
        """Return the vertices of a polygon just outside the claim's boundary; exact for few straight pieces.

        Between two points of a concave curve, the extended chords on either side meet above the curve.
        """
        rates = expit(_LOG_ODDS)
        powers = claim.max_power(rates, expit(-_LOG_ODDS))[0]
        inner = concave_hull([0.0, *rates], [float(claim.max_power(0.0)[0]), *powers])
        more = _meetings(*inner)[0]  # refine where the boundary bends most
        inner = concave_hull(np.append(inner[0], more), np.append(inner[1], claim.max_power(more)[0]))
        rate, power = (np.concatenate(parts) for parts in zip(inner, _meetings(*inner), strict=True))
        order = np.argsort(rate, kind="stable")
        return cls(rate[order], np.maximum.accumulate(power[order]))

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """Return δ(ε) = sup of p − e^ε q over the curve, the smallest δ at which the claim implies (ε, δ)-DP."""
        factor = np.exp(np.asarray(epsilon, dtype=np.float64))[..., None]
        found: Array = (self.power - factor * self.rate).max(axis=-1)
        return found.clip(0.0, 1.0)


def _meetings(rate: Array, power: Array) -> tuple[Array, Array]:
    """Points where the chords on either side of each inner piece of a concave polygon meet."""
    slope = np.diff(power) / np.diff(rate)
    before, after = slope[:-2], slope[2:]
    left, right, low, high = rate[1:-2], rate[2:-1], power[1:-2], power[2:-1]
    bend = before - after
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = left + (high - low - after * (right - left)) / bend
    meet = np.where(bend > 0, np.clip(meet, left, right), left)
    return meet, np.minimum(low + before * (meet - left), 1.0)


MOST_NAMES = 40
"""Largest number of named rows."""

_LARGEST_EPSILON, _LEAST_DELTA = 30.0, 1e-12
_POINTS = 61  # of a curve
_WAYS: Final = (("lower bound, x against y", "-"), ("lower bound, y against x", style.DASHED))
_BAND = "possible in these bins"


def are_outcomes(bins: BinCounts) -> bool:
    """Whether each bin but the last is a single outcome."""
    return bins.names[-1] == "any other outcome"


def draw_ratios(axes: Axes, bins: BinCounts, claim: Claim | None) -> None:
    """Draw a row for each bin: its log ratio, a simultaneous interval, and ±ε of a claim that has an epsilon.

    An interval beyond ±ε contradicts a pure claim and is marked; it need not contradict a claim with a delta.
    """
    epsilon = claimed_epsilon(claim)
    found = bins.ratios()
    seen = np.array(bins.count_x) + np.array(bins.count_y) > 0  # a bin without counts has no information
    lower, observed, upper = found.lower[seen], found.observed[seen], found.upper[seen]
    reach = max(np.abs(style.window(lower, observed, upper, 0.1, epsilon or 0.1)))
    outside = np.zeros(len(lower), dtype=np.bool_)
    if epsilon is not None and is_pure(claim):
        outside = (lower > epsilon) | (upper < -epsilon)
    rows = np.arange(len(lower), dtype=np.float64)
    labels = ("interval", "interval outside the claim")
    ends = (-reach, reach)
    style.draw_intervals(axes, rows, (lower, observed, upper), ends, outside=outside, sideways=True, labels=labels)
    draw_claimed_epsilon(axes, epsilon, across=False)
    names = [
        style.legible(name.removeprefix("output in "), 30)
        for name, is_seen in zip(bins.names, seen, strict=True)
        if is_seen
    ]
    style.name_rows(axes, names if len(names) <= MOST_NAMES else [""] * len(names))
    axes.set(xlim=ends, xlabel="ln(x / y) of each bin", ylabel="" if are_outcomes(bins) else "output in")


def draw_profile(axes: Axes, bins: BinCounts, claim: Claim | None) -> None:
    """Draw the proven lower bound on δ(ε) in both directions, what else the bins allow, and the curve of the claim."""
    reverse = replace(bins, count_x=bins.count_y[::-1], count_y=bins.count_x[::-1])
    bands = (bins.band(), reverse.band())  # from the same intervals, which hold together
    curves = claimed_curves(claim)
    floor = 0.5 / max(bins.runs_x, bins.runs_y)
    fine = np.linspace(0.0, _LARGEST_EPSILON, 1501)
    claimed = [curve.profile(fine) for curve in curves]
    tails = [float(delta[-1]) for delta in claimed if delta[-1] > _LEAST_DELTA]
    seen = [band.profile(fine)[0] for band in bands] + [delta - delta[-1] for delta in claimed]
    alive = np.max(seen, axis=0) > floor
    crossing = int(alive.sum())  # all curves decrease
    epsilon = np.linspace(0.0, min(1.25 * max(float(fine[min(crossing, 1500)]), 0.1), _LARGEST_EPSILON), _POINTS)
    bottom = min([floor, *(tail / 3 for tail in tails)])
    for band, (label, dash), colour in zip(bands, _WAYS, style.sides(), strict=True):
        _draw_band(axes, epsilon, band.profile(epsilon), colour, dash, label, bottom / 10)
    for curve, dash in zip(curves, ("-", style.DASHED), strict=False):
        # A claim's curve may drop to 0, which needs a finer step.
        at = np.union1d(epsilon, fine[max(crossing - 15, 0) : crossing + 2])
        at = at[at <= epsilon[-1]]
        delta = curve.profile(at).clip(bottom / 10)
        label = "claimed" if dash == "-" else "claimed, y against x"
        axes.plot(at, delta, color=style.ink(), linewidth=1.2, linestyle=dash, label=label)
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlim=(0, epsilon[-1]), ylim=(bottom, 1), xlabel="ε", ylabel="δ(ε)")


def draw_exact(axes: Axes, table: ExactTable) -> None:
    """Draw both ends of δ(ε) of an exact audit, and the (ε, δ) of the claim."""
    epsilon, lower, upper = np.array(table.curve).T
    axes.fill_between(epsilon, lower, upper, color=style.sides()[0], alpha=0.3, linewidth=0, label="not explored")
    for end, label in ((lower, "both ends of δ(ε)"), (upper, None)):
        axes.plot(epsilon, end, color=style.sides()[0], linewidth=1.2, label=label)
    if table.at_claim:
        axes.plot(*zip(*table.at_claim, strict=True), "D", color=style.ink(), markersize=4, label="claimed")
    axes.set(xlim=(0, epsilon[-1]), ylim=(0, None), xlabel="ε", ylabel="δ(ε)")


def draw_trade_off(axes: Axes, bins: BinCounts, claim: Claim | None) -> None:
    """Draw the proven power at each false-positive rate of x against y, what else the bins allow, and the claim's."""
    rate = np.linspace(0.0, 1.0, _POINTS)
    label, dash = _WAYS[0]
    axes.plot([0, 1], [0, 1], color=style.ink(), linewidth=0.6, alpha=0.5)
    _draw_band(axes, rate, bins.band().trade_off(rate), style.sides()[0], dash, label, 0.0)
    for curve in claimed_curves(claim)[:1]:
        axes.plot(curve.rate, curve.power, color=style.ink(), linewidth=1.2, label="claimed")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false-positive rate (on y)", ylabel="power (on x)")


def claimed_curves(claim: Claim | None) -> list[ClaimedCurve]:
    """Curves of the claim for x against y and, if different, for y against x."""
    if claim is None:
        return []
    other = claim.reversed()
    return [ClaimedCurve.of(claim)] + ([] if other == claim else [ClaimedCurve.of(other)])


def _draw_band(
    axes: Axes, at: Array, band: tuple[Array, Array, Array], colour: str, dash: object, label: str, least: float
) -> None:
    # The estimate would lie below a claim that holds exactly, because bins merge outputs of different ratios.
    lower, _, upper = (part.clip(least) for part in band)
    axes.plot(at, np.where(lower > least, lower, math.nan), color=colour, linestyle=dash, label=label)
    label_once = _BAND if dash == "-" else None
    axes.fill_between(at, lower, upper, color=colour, alpha=0.2, linewidth=0, label=label_once)


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
    top = style.window(0.0, bounds, claim.parameter, 0.1, room=0.12)[1]
    axes.step(runs, np.minimum(bounds, top), where="post", color=style.sides()[0], label="running lower bound")
    label = style.legible(f"claimed {number(claim.parameter)}")
    axes.axhline(claim.parameter, color=style.ink(), linewidth=1.0, linestyle=":", label=label)
    axes.plot(
        runs[-1], min(bounds[-1], top), LOOKS[verdict].marker, color=LOOKS[verdict].colour, linestyle="", clip_on=False,
        zorder=3, markersize=8 if verdict is Verdict.REFUTED else 6, label=stopped(result),
    )  # fmt: skip
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(
        xlim=(runs.min() / 1.1, max(runs.max(), 1.1 * runs.min()) * 1.1),
        ylim=(0, top if math.isfinite(top) else 1),
        xlabel="runs on each dataset",
        ylabel=style.legible(symbol(claim.parameter_name) + " per step" * isinstance(claim, GroupClaim)),
    )


# Scores of canaries.


def draw_scores(axes: Axes, result: CanaryResult, sketch: ScoreSketch) -> None:
    """Draw the histograms of scores in and out, with the guessed scores shaded."""
    edges, of = np.array(sketch.edges), "pairs" if result.inclusion == "fixed" else "canaries"
    names = ("first in", "second in") if result.inclusion == "fixed" else ("in", "out")
    for counts, name, colour in zip((sketch.inside, sketch.outside), names, style.sides(), strict=True):
        axes.stairs(counts, edges, color=colour, fill=True, alpha=0.25, linewidth=0)
        axes.stairs(counts, edges, color=colour, label=f"{of} {name}", linewidth=1.2)
    low, high = sketch.edges[0], sketch.edges[-1]
    guesses = result.best_guesses[0]
    label: str | None = f"{guesses:,} guesses"
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "top", "size": "small"}
    said_in, said_out = (f"guessed {name}" for name in names)
    if sketch.said_out is not None:
        axes.axvspan(low, min(max(sketch.said_out, low), high), label=label, **style.EVENT)
        axes.text(low, 0.99, f" {said_out}", ha="left", **place)
        label = None
    if sketch.said_in is not None:
        axes.axvspan(max(min(sketch.said_in, high), low), high, label=label, **style.EVENT)
        axes.text(high, 0.99, f"{said_in} ", ha="right", **place)
    axes.set(xlim=(low, high), ylim=(0, 1.14 * max(*sketch.inside, *sketch.outside, 1)), ylabel=of)
    axes.set_xlabel("score of the first less that of the second" if result.inclusion == "fixed" else "score")


MOST_POINTS = 40
"""Largest number of rows in a figure."""


def draw_series(axes: Axes, series: Series) -> None:
    """Draw estimates with intervals at each place, and the stated curve."""
    columns = (series.x, series.lower, series.estimate, series.upper, series.stated)
    x, lower, estimate, upper, stated = (np.array(column, dtype=np.float64) for column in columns)
    known = np.isfinite(x)
    x, lower, estimate, upper, stated = (column[known] for column in (x, lower, estimate, upper, stated))
    ends = style.window(lower, estimate, upper, stated)
    axes.plot(x, stated.clip(*ends), color=style.ink(), linewidth=1.2, label="stated", zorder=2.5)
    labels = ("interval", "interval that excludes the stated value")
    style.draw_intervals(axes, x, (lower, estimate, upper), ends, outside=are_excluded(series)[known], labels=labels)
    axes.set(xlim=style.window(x, room=0.04), ylim=ends)
    axes.set(xlabel=style.legible(series.x_name, 80), ylabel=style.legible(series.y_name))


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
    """Draw a row for each number: its interval, and the allowed range shaded; name and numbers as text above.

    Without a common allowed range the units may differ, so each row has a separate scale.
    """
    points = drawn_points(result)
    rows = np.arange(0.15, len(points), dtype=np.float64)
    columns = np.array([(p.lower, p.estimate, p.upper, p.low, p.high) for p in points], dtype=np.float64).T
    lower, estimate, upper, low, high = columns
    is_shared = len(set(zip(low.tolist(), high.tolist(), strict=True))) == 1
    if is_shared:
        ends = style.window(lower, estimate, upper, low, high)
        axes.set_xlabel(style.legible(result.quantity, 80))
    else:
        start, end = np.array([style.window(row, room=0.12) for row in columns.T], dtype=np.float64).T
        with np.errstate(over="ignore"):
            columns = (columns - start) / (end - start)
        ends = (0.0, 1.0)
        axes.set(xticks=[], xlabel=f"{style.legible(result.quantity, 60)}; each row has a separate scale")
    lower, estimate, upper, low, high = columns
    _allowed(axes, rows, low, high, ends)
    outside = np.array([point.is_outside for point in points])
    labels = ("interval", "interval outside the allowed range")
    style.draw_intervals(axes, rows, (lower, estimate, upper), ends, outside=outside, sideways=True, labels=labels)
    axes.set(yticks=[], ylim=(len(points) - 0.4, -0.6), xlim=ends)
    axes.spines[["left", "right", "top"]].set_visible(False)
    place = axes.get_yaxis_transform()
    for row, point in enumerate(points):
        text = style.legible(point.at or result.quantity, 28)
        axes.text(0.01, row - 0.28, text, transform=place, va="center", size="small")
        text = style.legible(f"{point.interval}, {point.allowed}", 60)
        axes.text(0.99, row - 0.28, text, transform=place, va="center", ha="right", size="small")


def _allowed(axes: Axes, rows: Array, low: Array, high: Array, ends: tuple[float, float]) -> None:
    """Draw each allowed range as a bar with a line at each finite end."""
    start, end = low.clip(*ends), high.clip(*ends)
    limited = np.isfinite(low) | np.isfinite(high)
    axes.barh(
        rows[limited], (end - start)[limited], 0.4, left=start[limited], color=style.GREY, alpha=0.25, linewidth=0,
        label="allowed range",
    )  # fmt: skip
    x = np.concatenate([low, high])
    y = np.concatenate([rows, rows])
    seen = np.isfinite(x)
    axes.vlines(x[seen], y[seen] - 0.2, y[seen] + 0.2, colors=style.ink(), linewidths=1.2)


def fraction_outside(series: Series) -> str:
    """Such as "2 of 40 intervals exclude the stated value"."""
    n = int(are_excluded(series).sum())
    return f"{n or 'none'} of {len(series.x):,} intervals exclude{'s' * (n == 1)} the stated value"


# Forest plot: a row for each audit of a suite, as fractions of the claims.

Audit = AuditResult | CanaryResult
Rows = list[tuple[Entry, Audit]]

_FARTHEST = 2.0  # times the claim
_NARROW = 54  # characters of a name and its numbers on a phone


@style.in_report_style
def forest(suite: Suite, *, narrow: bool = False, has_legend: bool = True) -> Figure:
    """Return a figure with a row for each audit: bound, estimate and exact value as fractions of the claim.

    Bars run from 0 to the lower bound; a bar beyond the line at 1 refutes the claim. A bar beyond twice the claim ends
    in an arrow, and the text next to it states its factor. For a claim of 0, every positive value lies beyond the
    right edge. `narrow` is the layout for phones, with names above the bars. Statements are omitted.
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
    return [(entry, entry.result) for entry in suite.entries if entry.result.claim is not None]


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
    is_open = np.array([not result.is_refuted for _, result in rows], dtype=bool)  # a refutation shows its bound
    pooled = np.concatenate([bounds, estimates, exacts, found[is_open]])
    limit = min(1.06 * float(pooled[np.isfinite(pooled)].max(initial=1.2)), _FARTHEST)  # right end of the axis
    axes.set(xlim=(0, limit), ylim=(max(len(at), 1) - 0.5, -0.5 - 0.15 * narrow), yticks=[])
    axes.set_xlabel("lower bound as a multiple of the claim (beyond 1: refuted)", labelpad=2)
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.axvline(0, color=style.GREY, linewidth=0.6)
    if narrow:  # the line must not cross the texts
        axes.vlines(np.ones(len(at)), at - 0.25, at + 0.25, colors=style.ink(), linewidths=1.3, zorder=2)
    else:
        axes.axvline(1, color=style.ink(), linewidth=1.3)
    verdicts = [result.verdict for _, result in rows]
    looks = [LOOKS[verdict] for verdict in verdicts]
    known = ~np.isnan(bounds)
    axes.barh(
        at[known], np.minimum(bounds[known], limit), 0.34 if narrow else 0.56, linewidth=0.6,
        color=[look.fill for look, is_known in zip(looks, known, strict=True) if is_known],
        edgecolor=[look.colour for look, is_known in zip(looks, known, strict=True) if is_known],
    )  # fmt: skip
    marked: dict[str, Any] = {"linestyle": "", "clip_on": False, "zorder": 3}
    for values, look in (
        (found, {"marker": "|", "color": style.GREY, "markersize": 11, "markeredgewidth": 1.3}),
        (exacts, {"marker": "*", "color": "white", "markersize": 10, "markeredgecolor": "black"}),
        (estimates, {"marker": "o", "color": style.ink(), "markersize": 3.5, "markeredgecolor": "white"}),
    ):
        inside = values <= limit  # not NaN
        axes.plot(values[inside], at[inside], **{**marked, "markeredgewidth": 0.6, **look})
    far = (bounds > limit) | (exacts > limit) | (estimates > limit)
    for verdict in Verdict:
        own = np.array([each is verdict for each in verdicts], dtype=np.bool_)
        edge: dict[str, Any] = {"color": LOOKS[verdict].colour, "markeredgecolor": "white", "markeredgewidth": 0.6}
        if (far & own).any():
            axes.plot(np.full((far & own).sum(), 1.008 * limit), at[far & own], ">", markersize=8, **marked, **edge)
        if own.any():
            place = (0.015 * limit, at[own] - 0.44) if narrow else (-0.025 * limit, at[own])
            axes.plot(np.full(own.sum(), place[0]), place[1], LOOKS[verdict].marker, markersize=6.5, **marked, **edge)
    for y, (entry, result) in enumerate(rows):
        _write(axes, y, entry, result, narrow)


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
    axes.text(0.04 if narrow else -0.05, at, style.legible(entry.name, longest), ha=left, **place)
    axes.text(1 if narrow else 1.03, at, style.legible(figures, _NARROW - 10 if narrow else 80), ha=right, **place)


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
        Patch(facecolor="#DDDDDD", edgecolor=style.GREY, label="lower bound"),
        *(_key(LOOKS[verdict].marker, LOOKS[verdict].colour, verdict.value, 6) for verdict in Verdict),
        _key("o", style.ink(), "estimate", 3.5),
        _key("*", "white", "exact value", 9, edge="black"),
        _key("|", style.GREY, "claim + minimum detectable excess", 9),
    ]


def _key(marker: str, colour: str, label: str, size: float, edge: str | None = None) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, color=colour, markersize=size, markeredgecolor=edge, label=label)
