"""Fast ticks for report figures: matplotlib's ticks are five artists each and take half of a small figure's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .figure_style import ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.transforms import Transform

_LENGTH, _GAP, _LINE, _DIGIT = 3.0, 3.0, 11.0, 5.0  # points: tick, gap, line of text, digit


def light_ticks(axes: Axes, *, x: int = 5, y: int = 4, is_above: bool = False) -> None:
    """Replace the axes' ticks by about `x` and `y` ticks, one line and plain texts per axis; call this last.

    `is_above` puts the ticks and the label of the x-axis above the axes.
    """
    for axis, ends, n in ((axes.xaxis, axes.get_xlim(), x), (axes.yaxis, axes.get_ylim(), y)):
        if axis.get_visible():
            _light_axis(axes, axis, ends, n, is_above=is_above and axis is axes.xaxis)
            axis.set_visible(False)


def _light_axis(axes: Axes, axis: Axis, ends: tuple[float, float], n: int, *, is_above: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import AutoLocator
    from matplotlib.transforms import ScaledTranslation

    figure, locator, formatter = axes.figure, axis.get_major_locator(), axis.get_major_formatter()
    if isinstance(locator, AutoLocator):
        locator.set_params(nbins=n)
    places = [float(at) for at in locator.tick_values(min(ends), max(ends)) if min(ends) <= at <= max(ends)]
    names, offset = formatter.format_ticks(places), formatter.get_offset()
    title = axis.get_label_text() + (f"  [{offset}]" if offset else "")
    start, is_x = float(is_above), axis is axes.xaxis
    zeros = [start] * len(places)
    edge = axes.get_xaxis_transform() if is_x else axes.get_yaxis_transform()
    length = min(_LENGTH, float(axis.get_tick_params().get("length", _LENGTH)))
    if length and places:
        at = (places, zeros) if is_x else (zeros, places)
        marker: Literal[0, 2, 3] = (2 if is_above else 3) if is_x else 0  # up, down, to the left
        line = Line2D(*at, linestyle="", color=ink(), marker=marker, markersize=length, markeredgewidth=0.6)
        line.set_transform(edge)
        figure.add_artist(line)

    def write(place: float, text: str, away: float, base: Transform, **style: Any) -> None:
        shift = (0.0, (away if is_above else -away) / 72) if is_x else (-away / 72, 0.0)
        spot = base + ScaledTranslation(*shift, figure.dpi_scale_trans)
        figure.text(*((place, start) if is_x else (0.0, place)), text, transform=spot, **style)

    beside = (
        {"ha": "center", "va": "bottom" if is_above else "top"} if is_x else {"ha": "right", "va": "center_baseline"}
    )
    for place, name in zip(places, names, strict=True):
        write(place, name, length + _GAP, edge, size=8.5, **beside)
    if title:
        across = _LINE * bool(names) if is_x else _DIGIT * max(map(len, names), default=0)
        turned = beside if is_x else {"ha": "center", "va": "bottom", "rotation": 90, "rotation_mode": "anchor"}
        write(0.5, title, length + 2 * _GAP + across, axes.transAxes, **turned)
