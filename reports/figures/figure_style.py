"""Style of all figures: colours and shapes with a meaning, the report's settings, safe text."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from ...audit.extras import require
from ...audit.results.audit_result import Verdict
from ..plain_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008): distinct for readers with any colour vision. The grey is legible on white and on black.
BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#757575"
COLOUR: Final = {Verdict.REFUTED: VERMILLION, Verdict.NOT_REFUTED: BLUE, Verdict.INCONCLUSIVE: GREY}
FILL: Final = {Verdict.REFUTED: "#F2B88F", Verdict.NOT_REFUTED: "#9CCBE8", Verdict.INCONCLUSIVE: "#D0D0D0"}
MARKER: Final = {Verdict.REFUTED: "X", Verdict.NOT_REFUTED: "s", Verdict.INCONCLUSIVE: "D"}
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
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 3.0,
        "ytick.major.size": 3.0,
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
    """Add axes at a place in inches, which saves the layout computation."""
    whole_width, whole_height = figure.get_size_inches()
    box = (left / whole_width, bottom / whole_height, width / whole_width, height / whole_height)
    return figure.add_axes(box, axes_class=_gridless())


@functools.cache
def _gridless() -> type[Axes]:
    """Axes class whose `grid` does nothing: switching a grid off creates ticks, a tenth of the drawing time."""
    from matplotlib.axes import Axes

    class Gridless(Axes):
        def grid(self, *_: object, **__: object) -> None:
            """Do nothing: a report's figures have no grid."""

    return Gridless


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
