"""Style of all figures: colours and shapes with a meaning, the report's settings, safe text."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from ...audit.extras import require
from ..plain_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERMILLION, GREY, BLUE, GREEN = "#D55E00", "#757575", "#0072B2", "#009E73"
"""The colours of data, of Okabe & Ito (2008)."""
EVENT: Final[dict[str, Any]] = {"color": "#F0C000", "alpha": 0.27, "linewidth": 0, "zorder": 0}
DASHED: Final = (0, (4, 1.5))
WIDTH: Final = 5.4
"""Width of a figure in a report, in inches."""

_TEX: Final = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {char: f"\\{char}" for char in "{}$&#_%"}
)

# True inside `in_report_style`, which many figures share because switching all settings takes milliseconds.
_is_in_style: ContextVar[bool] = ContextVar("is_in_style", default=False)

P = ParamSpec("P")
R = TypeVar("R")


def in_report_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw with the report's settings and restore the user's settings."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        require("report", "figures need", "matplotlib")
        import matplotlib.style

        if _is_in_style.get():
            return draw(*args, **kwargs)
        token = _is_in_style.set(True)
        with matplotlib.style.context(["default", _settings()]), warnings.catch_warnings():
            # SVG text stays text, so the reader's browser draws letters that matplotlib's font lacks.
            warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from font")
            try:
                return draw(*args, **kwargs)
            finally:
                _is_in_style.reset(token)

    return drawn


@functools.cache
def _settings() -> dict[str, object]:
    from cycler import cycler

    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "dpaudit",
        "font.size": 9.0,
        "font.sans-serif": ["DejaVu Sans", "Verdana"],  # of equal width
        "axes.linewidth": 0.6,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.prop_cycle": cycler(color=[BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9"]),
        **{f"{axis}tick.labelsize": 8.5 for axis in "xy"},
        **{f"{axis}tick.major.width": 0.6 for axis in "xy"},
        **{f"{axis}tick.major.size": 3.0 for axis in "xy"},
        "lines.linewidth": 1.4,
        "lines.markersize": 4.0,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "legend.handlelength": 1.6,
        "legend.handletextpad": 0.5,
        "legend.columnspacing": 1.2,
        "hatch.linewidth": 0.8,
    }


def ink() -> str:
    """Colour of claims and axes: the text colour of the current style."""
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


def sides() -> tuple[str, str]:
    """Colours of x and y: the first two colours of the style."""
    from matplotlib.colors import to_hex

    return to_hex("C0"), to_hex("C1")


def legible(text: str, limit: int = 40) -> str:
    """Visible text without mathematical markup."""
    import matplotlib

    shown = visible(text, limit)
    return shown.translate(_TEX) if matplotlib.rcParams["text.usetex"] else shown.replace("$", r"\$")


def panel(figure: Figure, *, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    whole_width, whole_height = figure.get_size_inches()
    box = (left / whole_width, bottom / whole_height, width / whole_width, height / whole_height)
    return figure.add_axes(box)


def legend_above(axes: Axes, *others: Axes, ncols: int = 4, start: float = 0.0) -> None:
    """Draw a common legend of all axes above the first axes."""
    found: dict[str, Any] = {}
    for each in (axes, *others):
        for handle, name in zip(*each.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    axes.legend(
        list(found.values()), list(found), loc="lower left", bbox_to_anchor=(start, 1.0), ncols=ncols, borderpad=0,
        borderaxespad=0.3,
    )  # fmt: skip


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label rows 0, 1, … from the top with `names`, which are legible text."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    axes.yaxis.set_major_locator(FixedLocator(range(len(names))))
    axes.yaxis.set_major_formatter(FixedFormatter(list(names)))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)


# Interval marks in figures: a bar and a dot, and an arrow where an interval extends beyond the axis.

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LARGEST = 1e290  # beyond this, the ends of an axis would overflow


def window(*values: npt.ArrayLike, room: float = 0.08) -> tuple[float, float]:
    """Ends of an axis that shows all finite numbers with a margin of `room`."""
    numbers = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in values])
    kept = numbers[np.abs(numbers) < _LARGEST]  # not NaN
    low, high = (float(kept.min()), float(kept.max())) if len(kept) else (0.0, 0.0)
    size = max(abs(low), abs(high))
    if high - low > 1e-9 * size and high - low > 1 / _LARGEST:
        return low - room * (high - low), high + room * (high - low)
    around = 0.1 * size if size > 1 / _LARGEST else 0.1
    return low - around, high + around


def draw_intervals(
    axes: Axes,
    at: Array,
    intervals: tuple[Array, Array, Array],
    ends: tuple[float, float],
    *,
    outside: Mask,
    sideways: bool = False,
    labels: tuple[str, str] = ("", ""),
) -> None:
    """Draw (lower, estimate, upper) at each place, cut at the `ends` of the axis; those `outside` differ in shape.

    `labels` name the intervals inside and outside the stated range in the legend. `sideways` draws along x.
    """
    lower, estimate, upper = intervals
    low, high = ends
    shown = np.where(np.abs(estimate) < _LARGEST, estimate, math.nan)
    for mask, colour, marker, label in ((~outside, BLUE, "o", labels[0]), (outside, VERMILLION, "X", labels[1])):
        if not mask.any():
            continue
        bars = axes.hlines if sideways else axes.vlines
        bars(at[mask], lower[mask].clip(low, high), upper[mask].clip(low, high), colors=colour, linewidths=1.0)
        _points(axes, at[mask], shown[mask], marker, colour, sideways, label)
        for beyond, end, tip in ((upper > high, high, ">^"), (lower < low, low, "<v")):
            there = at[mask & beyond]
            if len(there):
                _points(axes, there, np.full(len(there), end), tip[0 if sideways else 1], colour, sideways)


def _points(axes: Axes, at: Array, value: Array, marker: str, colour: str, sideways: bool, label: str = "") -> None:
    x, y = (value, at) if sideways else (at, value)
    axes.plot(x, y, marker, color=colour, linestyle="", markeredgewidth=0, clip_on=False, zorder=3, label=label or None)
