"""The figures of a report, with what a screen reader says of each and a caption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...audit.printing import percent, rounded_down
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.cell_result import CellCounts
from ...audit.results.statement_result import StatementResult
from ..plain_text import number, prose, symbol, visible
from .cell_figures import draw_profile, draw_ratios, draw_trade_off
from .distance_figure import draw_distances, series_by_distance
from .figure_style import WIDTH, in_report_style, legend_above, panel
from .forest_figure import forest
from .light_ticks import light_ticks
from .look_figure import draw_bound, stopped
from .output_figures import claimed_epsilon, not_drawn, outputs_figure, usable_sketch
from .series_figures import MOST_POINTS, draw_points, draw_series, drawn_points, fraction_outside
from .svg_figure import standalone_svg, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Drawn", "distance_figures", "figures_of", "forest", "outputs_figure", "standalone_svg", "svg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure of a report.

    Attributes
    ----------
    figure : Figure
    label : str
        What it shows in words, with the main numbers: for who cannot see it.
    caption : str
        What stands below it.
    """

    figure: Figure
    label: str
    caption: str


def figures_of(result: AuditResult | StatementResult) -> list[Drawn]:
    """What there is to draw of a result; empty where there is nothing."""
    drawn = _of_statement(result) if isinstance(result, StatementResult) else _of_audit(result)
    return [Drawn(figure=figure, label=prose(label), caption=prose(caption)) for figure, label, caption in drawn]


def distance_figures(suite: Suite) -> list[Drawn]:
    """A figure for each mechanism audited at three distances or more, under one adjacency and claims of one kind."""
    return [_of_distances(entries) for entries in series_by_distance(suite, fewest=3)]


def _of_audit(result: AuditResult) -> list[tuple[Figure, str, str]]:
    found: list[tuple[Figure, str, str]] = []
    figure, name = outputs_figure(result), visible(result.mechanism, 100)
    if figure is not None:
        label = f"Outputs of {name} on x and y, and the log of their ratio: {result.event_in_words}."
        first = "The first outputs" if result.looks else "The pilot's outputs, from which the event was chosen,"
        caption = (
            f"{first} and the log of their ratio with its standard error; an arrow where one side never had them. "
            f"The verdict rests on {'bets on later ones' if result.looks else 'other runs'}.{_left_out(result)}"
        )
        found.append((figure, label, caption))
    if result.looks:
        found.append(_of_looks(result, name))
    if result.cells is not None:
        found += _of_cells(result, result.cells)
    return found


def _left_out(result: AuditResult) -> str:
    """How many outputs the figure does not have."""
    drawn = usable_sketch(result)
    shares = (0.0, 0.0) if drawn is None else not_drawn(result, drawn)
    if max(shares) == 0.0:
        return ""
    what = "Not numbers" if drawn is not None and not drawn.labels else "Other outcomes"
    on_x, on_y = (percent(round(share, 4)) for share in shares)
    return f" {what}, and not drawn: {on_x} of the runs on x, {on_y} on y."


def _of_looks(result: AuditResult, name: str) -> tuple[Figure, str, str]:
    letter, last = symbol(result.claim.strength_name), result.looks[-1]
    label = (
        f"Running lower bound on {letter} of {name}: {number(rounded_down(last.bound))} after {last.runs:,} runs on "
        f"each dataset, claimed {number(result.claim.strength)}; {stopped(result)}."
    )
    caption = (
        f"The lower bound after each batch, valid at all looks together with {percent(1 - result.alpha)} confidence; "
        "it takes the values of a fixed grid."
    )
    return _framed(lambda axes: draw_bound(axes, result), 1.9), label, caption


@in_report_style
def _framed(draw: Callable[[Axes], None], height: float, *, left: float = 0.7, legend_rows: int = 1) -> Figure:
    """A figure of a single panel, `height` inches high, with its legend above."""
    from matplotlib.figure import Figure

    figure, width = Figure(figsize=(WIDTH, height + 0.65 + 0.19 * legend_rows)), WIDTH - left - 0.25
    axes = panel(figure, left=left, bottom=0.5, width=width, height=height)
    draw(axes)
    light_ticks(axes)
    legend_above(axes, ncols=3, start=min(0.7 - left, 0.0) / width)
    return figure


def _of_cells(result: AuditResult, cells: CellCounts) -> list[tuple[Figure, str, str]]:
    confidence = percent(1 - cells.alpha)
    epsilon, name = claimed_epsilon(result.claim), visible(result.mechanism, 100)
    found, band = cells.ratios(), cells.band()
    lower, estimate, upper = (float(delta) for delta in band.profile(0.0))
    together = f"All that is drawn of the cells holds together with {confidence} confidence."
    curves = (
        _curves(result, cells),
        f"Privacy profile and trade-off curve of {name} against the claim {result.claim}: delta at epsilon 0 of x "
        f"against y is {number(estimate)}, from {number(lower)} to {number(upper)}.",
        "Privacy profile, and trade-off curve of x against y. A lower end of a band holds for all events and above the "
        "claim's line contradicts the claim; an upper one holds for unions of the first cells in the order of their "
        f"ratios only. {together}",
    )
    least, largest = float(found.lower.max()), float((-found.upper).max())
    rows = _framed(
        lambda axes: draw_ratios(axes, cells, result.claim), max(0.155 * len(cells.names), 0.5), left=_room(cells.names)
    )
    label = (
        f"Log ratio of each of {len(cells.names)} cells of {name}: at least {number(max(least, 0.0))} in one for x "
        f"against y and {number(max(largest, 0.0))} for y against x"
        + ("." if epsilon is None else f"; claimed {number(epsilon)}.")
    )
    caption = (
        "Log likelihood ratio of x against y of every cell with its interval; an arrow where it has no end. Upper ends "
        f"are for {cells.scope}. {together}"
    )
    return [curves, (rows, label, caption)]


def _room(names: tuple[str, ...]) -> float:
    """Inches for the names of rows."""
    return 0.5 + 0.07 * min(max(len(name.removeprefix("output in ")) for name in names), 30)


@in_report_style
def _curves(result: AuditResult, cells: CellCounts) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.9))
    profile = panel(figure, left=0.72, bottom=0.5, width=1.9, height=1.85)
    trade_off = panel(figure, left=3.35, bottom=0.5, width=1.9, height=1.85)
    draw_profile(profile, cells, result.claim)
    draw_trade_off(trade_off, cells, result.claim)
    light_ticks(profile)
    light_ticks(trade_off)
    legend_above(profile, ncols=2)
    return figure


def _of_statement(result: StatementResult) -> list[tuple[Figure, str, str]]:
    found: list[tuple[Figure, str, str]] = []
    series, quantity = result.series, visible(result.quantity, 100)
    if series is not None:
        label = f"{series.y_name} against {series.x_name}: {fraction_outside(series)}. {result.statement}"
        caption = f"What was measured, beside what is stated. Intervals: {series.intervals}."
        found.append((_framed(lambda axes: draw_series(axes, series), 2.4), label, caption))
    if len(result.points) >= 2:
        shown = drawn_points(result)
        worst = result.worst
        label = (
            f"{len(result.points)} numbers of {quantity}; the worst, {worst.at or quantity}, in {worst.interval}, "
            f"{worst.allowed}."
        )
        which = f"The {MOST_POINTS} that stand out most of {len(result.points):,}. " * (len(shown) < len(result.points))
        caption = (
            f"{which}Each number's interval, beside what is allowed, shaded; an arrow where there is no end. "
            f"{visible(result.method)}; all hold together with {percent(1 - result.alpha)} confidence."
        )
        figure = _framed(lambda axes: draw_points(axes, result), 0.38 * len(shown), left=0.15)
        found.append((figure, label, caption))
    return found


def _of_distances(entries: list[Entry]) -> Drawn:
    results = [entry.result for entry in entries if isinstance(entry.result, AuditResult)]
    first = results[0]
    each = "; ".join(f"{number(rounded_down(r.bound))} at distance {number(r.pair.distance)}" for r in results)
    name = visible(first.mechanism, 100)
    label = f"Lower bounds of {name} by distance: {each}."
    caption = (
        f"{name} at several distances ({visible(first.pair.adjacency, 100)}): what is claimed, and the lower bound "
        "that the counts prove, with the estimate above it."
    )
    figure = _framed(lambda axes: draw_distances(axes, entries), 2.4, legend_rows=2)
    return Drawn(figure=figure, label=prose(label), caption=prose(caption))
