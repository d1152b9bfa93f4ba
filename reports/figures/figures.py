"""The figures of a report, each with a caption and a label for screen readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...audit.printing import percent
from ...audit.records.suite import Checked
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.cell_result import CellCounts
from ...audit.results.statement_result import StatementResult
from ..plain_text import lower_limit, number, prose, symbol, visible
from .figure_style import WIDTH, in_report_style, legend_above, panel
from .output_figures import (
    claimed_epsilon,
    draw_profile,
    draw_ratios,
    draw_trade_off,
    not_drawn,
    outputs_figure,
    usable_sketch,
)
from .series_figures import (
    MOST_POINTS,
    draw_bound,
    draw_points,
    draw_scores,
    draw_series,
    drawn_points,
    fraction_outside,
    stopped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of a report."""

    figure: Figure
    label: str  # description with the main numbers, for screen readers
    caption: str


def figures_of(result: Checked) -> list[Drawn]:
    """Return the figures of a result; may be empty."""
    if isinstance(result, CanaryResult):
        return _of_canaries(result)
    return _of_statement(result) if isinstance(result, StatementResult) else _of_audit(result)


def _drawn(figure: Figure, label: str, caption: str) -> Drawn:
    return Drawn(figure, prose(label), prose(caption))


def _of_audit(result: AuditResult) -> list[Drawn]:
    drawn: list[Drawn] = []
    figure, name = outputs_figure(result), visible(result.mechanism, 100)
    if figure is not None:
        label = f"Outputs of {name} on x and y, and the natural log of their ratio: {result.event_in_words}."
        first = "First outputs" if result.interim_analyses else "Pilot outputs, from which the event was chosen,"
        caption = (
            f"{first} and the natural logarithm (ln) of the ratio of their frequencies with its standard error; arrow: "
            "outputs on one dataset only. The verdict rests on "
            f"{'bets on later runs' if result.interim_analyses else 'other runs'}.{_left_out(result)}"
        )
        drawn.append(_drawn(figure, label, caption))
    if result.interim_analyses:
        drawn.append(_of_interim_analyses(result, name))
    if result.cells is not None:
        drawn += _of_cells(result, result.cells, name)
    return drawn


def _left_out(result: AuditResult) -> str:
    """Share of the outputs missing from the figure."""
    sketch = usable_sketch(result)
    shares = (0.0, 0.0) if sketch is None else not_drawn(result, sketch)
    if sketch is None or max(shares) == 0.0:
        return ""
    on_x, on_y = (percent(round(share, 4)) for share in shares)
    return f" Not drawn: {'other' if sketch.labels else 'non-numeric'} outputs ({on_x} of the runs on x, {on_y} on y)."


def _of_interim_analyses(result: AuditResult, name: str) -> Drawn:
    letter, last = symbol(result.claim.parameter_name), result.interim_analyses[-1]
    label = (
        f"Running lower bound on {letter} of {name}: {lower_limit(last.bound, result.claim.parameter)} after "
        f"{last.runs:,} runs on each dataset, claimed {number(result.claim.parameter)}; {stopped(result)}."
    )
    caption = (
        "Lower bound after each batch, on a fixed grid of values; all bounds hold together with "
        f"{percent(1 - result.alpha)} confidence."
    )
    return _drawn(_framed(lambda axes: draw_bound(axes, result), 1.9), label, caption)


@in_report_style
def _framed(draw: Callable[[Axes], None], height: float, *, left: float = 0.7) -> Figure:
    """A figure of one panel, `height` inches high, with its legend above."""
    from matplotlib.figure import Figure

    figure, width = Figure(figsize=(WIDTH, height + 0.84)), WIDTH - left - 0.25
    axes = panel(figure, left=left, bottom=0.5, width=width, height=height)
    draw(axes)
    legend_above(axes, ncols=3, start=min(0.7 - left, 0.0) / width)
    return figure


def _of_cells(result: AuditResult, cells: CellCounts, name: str) -> list[Drawn]:
    epsilon, found, band = claimed_epsilon(result.claim), cells.ratios(), cells.band()
    lower, estimate, upper = (float(delta) for delta in band.profile(0.0))
    together = f"All intervals and bands of the cells hold together with {percent(1 - cells.alpha)} confidence."
    curves = _drawn(
        _curves(result, cells),
        f"Privacy profile and trade-off curve of {name} against the claim {result.claim}: δ at ε = 0 of x against y is "
        f"{number(estimate)}, from {number(lower)} to {number(upper)}.",
        "Privacy profile, and trade-off curve of x against y. Lower bounds hold for the mechanism, upper bounds only "
        "for these cells (unions of the first cells, ordered by ratio). A lower bound above the claim's line "
        f"contradicts the claim. {together}",
    )
    least, largest = float(found.lower.max()), float((-found.upper).max())
    room = 0.5 + 0.07 * min(max(len(name.removeprefix("output in ")) for name in cells.names), 30)  # for the names
    height = max(0.155 * len(cells.names), 0.5)
    ratios = _drawn(
        _framed(lambda axes: draw_ratios(axes, cells, result.claim), height, left=room),
        f"Natural log ratio of each of {len(cells.names)} cells of {name}: at least {number(max(least, 0.0))} in one "
        f"cell for x against y and {number(max(largest, 0.0))} for y against x"
        + ("." if epsilon is None else f"; claimed ε = {number(epsilon)}."),
        "Natural logarithm (ln) of the likelihood ratio of x against y in every cell, with its interval; arrow: "
        f"unbounded interval. Upper bounds are for {cells.scope}. {together}",
    )
    return [curves, ratios]


@in_report_style
def _curves(result: AuditResult, cells: CellCounts) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.9))
    profile = panel(figure, left=0.72, bottom=0.5, width=1.9, height=1.85)
    trade_off = panel(figure, left=3.35, bottom=0.5, width=1.9, height=1.85)
    draw_profile(profile, cells, result.claim)
    draw_trade_off(trade_off, cells, result.claim)
    legend_above(profile, ncols=2)
    return figure


def _of_statement(result: StatementResult) -> list[Drawn]:
    drawn: list[Drawn] = []
    series, quantity = result.series, visible(result.quantity, 100)
    if series is not None:
        label = f"{series.y_name} against {series.x_name}: {fraction_outside(series)}. {result.statement}"
        caption = f"Measured and stated values. Intervals: {series.intervals}."
        drawn.append(_drawn(_framed(lambda axes: draw_series(axes, series), 2.4), label, caption))
    if len(result.points) >= 2:
        shown, worst = drawn_points(result), result.worst
        label = (
            f"{len(result.points)} numbers of {quantity}; the worst, {worst.at or quantity}, in {worst.interval}, "
            f"{worst.allowed}."
        )
        which = f"The {MOST_POINTS} most extreme of {len(result.points):,} numbers. "
        caption = (
            f"{which * (len(shown) < len(result.points))}Interval of each number, with the allowed range shaded; "
            f"arrow: unbounded interval. {visible(result.method)}; all intervals hold together with "
            f"{percent(1 - result.alpha)} confidence."
        )
        figure = _framed(lambda axes: draw_points(axes, result), 0.38 * len(shown), left=0.15)
        drawn.append(_drawn(figure, label, caption))
    return drawn


def _of_canaries(result: CanaryResult) -> list[Drawn]:
    drawn: list[Drawn] = []
    name, sketch = visible(result.mechanism, 100), result.sketch
    if sketch is not None:
        what = "Pairs of canaries by the difference of their scores" if result.coins == "fixed" else "Canaries by score"
        caption = (
            f"{what}; shaded: the guesses that carry the bound. Scores beyond the axis are counted in the outer bins."
        )
        figure = _framed(lambda axes: draw_scores(axes, result, sketch), 1.9)
        drawn.append(_drawn(figure, f"Scores of the canaries of {name}: {result.guesses_in_words}.", caption))
    return drawn
