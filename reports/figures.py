"""The figures of a report, drawn with matplotlib's object interface and written as SVG to stand inside a page."""

from __future__ import annotations

import functools
import hashlib
import io
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from ..audit.claims import ApproxDP, PureDP
from ..audit.events import Intervals, Outcomes
from ..audit.outputs import outcome_words
from ..audit.records import Entry, Suite
from ..audit.sketches import Sketch
from ..audit.verdicts import AuditResult, Verdict
from .terminal import number, symbol, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Okabe & Ito (2008): told apart by readers with any colour vision.
_BLUE, _VERMILLION, _GREY, _BLACK = "#0072B2", "#D55E00", "#757575", "#111111"
_COLOUR = {Verdict.REFUTED: _VERMILLION, Verdict.NOT_REFUTED: _BLUE, Verdict.INCONCLUSIVE: _GREY}
_FILL = {Verdict.REFUTED: "#F2B88F", Verdict.NOT_REFUTED: "#9CCBE8", Verdict.INCONCLUSIVE: "#D0D0D0"}
_MARKER = {Verdict.REFUTED: "X", Verdict.NOT_REFUTED: "s", Verdict.INCONCLUSIVE: "D"}
_FARTHEST = 2.0  # times the claim; a bug that leaks 11 times its claim must not flatten the other rows

Array = npt.NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")


def _in_default_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Draws with matplotlib's own settings, whatever the user's are, and leaves the user's as they were."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib
        import matplotlib.style

        settings = {"svg.fonttype": "none", "svg.hashsalt": "dpaudit", "font.size": 9.0, "axes.linewidth": 0.6}
        with matplotlib.style.context(["default", settings]), warnings.catch_warnings():
            # The text stays text, so a letter that matplotlib's font lacks is drawn by the reader's browser.
            warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from font")
            return draw(*args, **kwargs)

    return drawn


@_in_default_style
def forest(suite: Suite, *, narrow: bool = False) -> Figure:
    """One row for each audit: bound, estimate and exact value as fractions of the claim, which is the line at 1.

    The bar from 0 to the lower bound is what the counts prove to leak; one that passes the line refutes the claim.
    A claim of 0 has no fractions: whatever is above 0 lies off the right edge. `narrow` is for a phone, with the
    names above the bars instead of beside them. Other statements are left out.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows = [(entry, entry.result) for entry in suite.entries if isinstance(entry.result, AuditResult)]
    n = max(len(rows), 1)
    width, row = (4.3, 0.46) if narrow else (10.0, 0.29)
    left, right, above, below = (0.15, 0.2, 0.1, 1.3) if narrow else (3.05, 2.75, 0.15, 0.78)
    height = n * row + above + below
    figure = Figure(figsize=(width, height))
    box = (left / width, below / height, (width - left - right) / width, n * row / height)
    axes = figure.add_axes(box)
    limit = _limit(rows)
    axes.set_xlim(0, limit)
    axes.set_ylim(n - 0.5, -0.5 - 0.15 * narrow)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.axvline(0, color=_GREY, linewidth=0.6)
    axes.axvline(1, color=_BLACK, linewidth=1.3)
    axes.set_xlabel("fraction of the claim; a bar past the line at 1 refutes it", labelpad=2)
    for position, (entry, result) in enumerate(rows):
        _forest_row(axes, position, entry, result, limit, narrow)
    marks: list[Patch | Line2D] = [Patch(facecolor="#DDDDDD", edgecolor=_GREY, label="0 to the lower bound")]
    for verdict in Verdict:
        marks.append(_key(_MARKER[verdict], _COLOUR[verdict], verdict.value, 6))
    marks.append(_key("o", _BLACK, "estimate", 3.5))
    marks.append(_key("*", "white", "exact", 9, edge=_BLACK))
    marks.append(_key("|", _GREY, "excess findable", 9))
    figure.legend(
        handles=marks, loc="lower center", ncols=2 if narrow else 7, frameon=False, fontsize=8.5, columnspacing=1.2,
        handletextpad=0.4, handlelength=1.4,
    )  # fmt: skip
    return figure


def _limit(rows: list[tuple[Entry, AuditResult]]) -> float:
    """Right end of the axis, in claims."""
    values = [1.2]
    for entry, result in rows:
        for value in (result.bound, result.estimate, entry.exact, result.claim.strength + result.resolution):
            fraction = _fraction(value, result.claim.strength)
            if math.isfinite(fraction):
                values.append(fraction)
    return min(1.06 * max(values), _FARTHEST)


def _fraction(value: float | None, claimed: float) -> float:
    """`value` as a fraction of the claim: infinite for anything above a claim of 0, NaN where there is no value."""
    if value is None or math.isnan(value):
        return math.nan
    if claimed > 0:
        with np.errstate(over="ignore"):
            return float(np.float64(value) / claimed)
    return math.inf if value > 0 else 0.0


def _forest_row(axes: Axes, y: int, entry: Entry, result: AuditResult, limit: float, narrow: bool) -> None:
    verdict, claimed = result.verdict, result.claim.strength
    at = y + 0.14 * narrow
    height = 0.34 if narrow else 0.56
    bound = _fraction(result.bound, claimed)
    if not math.isnan(bound):
        axes.barh(at, min(bound, limit), height, color=_FILL[verdict], edgecolor=_COLOUR[verdict], linewidth=0.6)
    if verdict is not Verdict.REFUTED:
        found = _fraction(claimed + result.resolution, claimed)
        if found <= limit:
            _mark(axes, found, at, "|", _GREY, 11)
    for value, marker, colour, size in (
        (bound, "", "", 0.0),
        (_fraction(entry.exact, claimed), "*", "white", 10.0),
        (_fraction(result.estimate, claimed), "o", _BLACK, 3.5),
    ):
        if value > limit:  # not NaN
            _mark(axes, 1.008 * limit, at, ">", _COLOUR[verdict], 8.0)
        elif marker and value <= limit:
            _mark(axes, value, at, marker, colour, size)
    letter = symbol(result.claim.strength_name)
    figures = f"{letter} ≥ {number(result.bound)}, claimed {number(claimed)}"
    if entry.exact is not None and not narrow:
        figures += f", exact {number(entry.exact)}"
    place = axes.get_yaxis_transform()
    if narrow:
        _mark(axes, 0.015 * limit, y - 0.3, _MARKER[verdict], _COLOUR[verdict], 6.5)
        axes.text(0.04, y - 0.3, visible(entry.name, 26), transform=place, va="center", fontsize=9.5, parse_math=False)
        axes.text(1, y - 0.3, figures, transform=place, va="center", ha="right", fontsize=9, parse_math=False)
    else:
        _mark(axes, -0.025 * limit, y, _MARKER[verdict], _COLOUR[verdict], 6.5)
        axes.text(-0.05, y, visible(entry.name, 40), transform=place, va="center", ha="right", parse_math=False)
        axes.text(1.03, y, figures, transform=place, va="center", fontsize=8.5, parse_math=False)


def _mark(axes: Axes, x: float, y: float, marker: str, colour: str, size: float) -> None:
    edge = _BLACK if colour == "white" else colour if marker == "|" else "white"
    line = 1.3 if marker == "|" else 0.6
    axes.plot(
        [x], [y], marker, color=colour, markersize=size, markeredgecolor=edge, markeredgewidth=line,
        clip_on=False, zorder=3,
    )  # fmt: skip


def _key(marker: str, colour: str, label: str, size: float, edge: str | None = None) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, color=colour, markersize=size, markeredgecolor=edge, label=label)


@_in_default_style
def outputs_figure(result: AuditResult) -> Figure | None:
    """The pilot outputs on x and y with the event shaded, and their log-likelihood ratio; None without a sketch."""
    drawn = result.sketch
    if drawn is None or not drawn.counts_x or len(drawn.counts_x) != len(drawn.counts_y):
        return None
    if drawn.labels:
        return _outcome_bars(result, drawn) if len(drawn.labels) == len(drawn.counts_x) else None
    inner = np.array(drawn.edges, dtype=np.float64)
    if len(inner) < 2 or len(inner) + 1 != len(drawn.counts_x) or not np.all(np.abs(inner) < 1e300):
        return None
    if not np.all(np.diff(inner) > 0):
        return None
    return _histograms(result, drawn, inner)


def _histograms(result: AuditResult, drawn: Sketch, inner: Array) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 3.7))
    shape = {"left": 0.13, "right": 0.98, "bottom": 0.12, "top": 0.91, "hspace": 0.12}
    top, bottom = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [1.25, 1], **shape})
    step = inner[1] - inner[0]
    epsilon = _epsilon(result)
    edges = np.concatenate([[inner[0] - step], inner, [inner[-1] + step]])
    _shade(top, bottom, result, edges)
    x, y = _frequencies(result, drawn)
    top.stairs(x, edges, color=_BLUE, linewidth=1.4, label="on x")
    top.stairs(y, edges, color=_VERMILLION, linewidth=1.4, linestyle=(0, (4, 1.5)), label="on y")
    top.set_ylim(bottom=0)
    top.set_ylabel("share of runs")
    top.set_xlim(edges[0], edges[-1])
    _legend(top, epsilon)
    centres = (edges[:-1] + edges[1:]) / 2
    ratio, error, reach = _log_ratio(result, drawn)
    seen = np.isfinite(ratio)
    bottom.errorbar(
        centres[seen], ratio[seen], error[seen], fmt=".", color=_BLACK, ecolor=_GREY, elinewidth=0.8, markersize=4
    )
    for sign, marker in ((1, "^"), (-1, "v")):
        only = ratio == sign * math.inf
        bottom.plot(centres[only], np.full(only.sum(), sign * 0.93 * reach), marker, color=_BLACK, markersize=4)
    bottom.axhline(0, color=_GREY, linewidth=0.6)
    if epsilon is not None:
        for sign in (1, -1):
            bottom.axhline(sign * epsilon, color=_BLACK, linewidth=1, linestyle=":")
    bottom.set_ylim(-reach, reach)
    bottom.set_ylabel("log(x / y)")
    bottom.set_xlabel("output (the outermost bins hold all beyond)")
    return figure


def _outcome_bars(result: AuditResult, drawn: Sketch) -> Figure:
    from matplotlib.figure import Figure

    n, epsilon = len(drawn.labels), _epsilon(result)
    labels = [visible(label, 24) for label in drawn.labels]
    width, height = 5.4, 0.26 * n + 0.9
    left = 0.25 + 0.075 * min(max(map(len, labels)), 32)
    figure = Figure(figsize=(width, height))
    shape = {"left": left / width, "right": 0.98, "bottom": 0.48 / height, "top": 1 - 0.32 / height, "wspace": 0.08}
    shares, ratios = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [1.2, 1], **shape})
    rows = np.arange(n)
    inside = [_is_inside(result, label) for label in drawn.labels]
    for axes in (shares, ratios):
        for row in rows[np.array(inside)]:
            axes.axhspan(row - 0.5, row + 0.5, color="#FFF1B8", linewidth=0, zorder=0)
    x, y = _frequencies(result, drawn)
    shares.barh(rows - 0.19, x, 0.36, color=_BLUE, label="on x")
    shares.barh(rows + 0.19, y, 0.36, color="white", edgecolor=_VERMILLION, hatch="/////", linewidth=0.8, label="on y")
    shares.set_yticks(rows, labels)
    for tick in shares.get_yticklabels():
        tick.set_parse_math(False)
    shares.set_ylim(n - 0.5, -0.5)
    shares.set_xlabel("share of runs")
    shares.locator_params(axis="x", nbins=4)
    shares.tick_params(axis="y", length=0)
    _legend(shares, epsilon, shaded=any(inside))
    ratio, error, reach = _log_ratio(result, drawn)
    seen = np.isfinite(ratio)
    ratios.errorbar(
        ratio[seen], rows[seen], xerr=error[seen], fmt=".", color=_BLACK, ecolor=_GREY, elinewidth=0.8, markersize=5
    )
    for sign, marker in ((1, ">"), (-1, "<")):
        only = ratio == sign * math.inf
        ratios.plot(np.full(only.sum(), sign * 0.93 * reach), rows[only], marker, color=_BLACK, markersize=5)
    ratios.axvline(0, color=_GREY, linewidth=0.6)
    if epsilon is not None:
        for sign in (1, -1):
            ratios.axvline(sign * epsilon, color=_BLACK, linewidth=1, linestyle=":")
    ratios.set_xlim(-reach, reach)
    ratios.tick_params(axis="y", length=0)
    ratios.set_xlabel("log(x / y)")
    return figure


def _shade(top: Axes, bottom: Axes, result: AuditResult, edges: Array) -> None:
    """The event behind both panels, where it is a set of intervals."""
    if not isinstance(result.event, Intervals):
        return
    label = "event"
    for low, high in result.event.intervals:
        if high < edges[0] or low > edges[-1]:
            continue
        start, end = max(low, float(edges[0])), min(high, float(edges[-1]))
        for axes in (top, bottom):
            if start < end:
                axes.axvspan(start, end, color="#FFF1B8", linewidth=0, zorder=0, label=label if axes is top else None)
            else:
                axes.axvline(start, color="#E0B000", linewidth=1.5, zorder=0, label=label if axes is top else None)
        label = ""


def _legend(axes: Axes, epsilon: float | None, shaded: bool = False) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, names = axes.get_legend_handles_labels()
    if shaded:
        handles, names = [*handles, Patch(color="#FFF1B8")], [*names, "event"]
    if epsilon is not None:
        handles, names = [*handles, Line2D([], [], color=_BLACK, linewidth=1, linestyle=":")], [*names, "claimed ±ε"]
    kept = [(handle, name) for handle, name in zip(handles, names, strict=True) if name]
    axes.legend(
        [handle for handle, _ in kept], [name for _, name in kept], loc="lower left", bbox_to_anchor=(0, 1.0),
        ncols=4, frameon=False, borderpad=0, borderaxespad=0.3, fontsize=8.5, handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip


def _is_inside(result: AuditResult, label: str) -> bool:
    """Whether an outcome, known by its label, lies in the event."""
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
    """Shares of the pilot runs; what fell into no bin counts as a run."""
    x, y = (np.array(counts, dtype=np.float64) for counts in (drawn.counts_x, drawn.counts_y))
    return x / max(result.pilot_runs, x.sum(), 1.0), y / max(result.pilot_runs, y.sum(), 1.0)


def _log_ratio(result: AuditResult, drawn: Sketch) -> tuple[Array, Array, float]:
    """Log ratio of the shares, ±∞ where only one side was seen; its standard error; and how far the axis reaches."""
    x, y = _frequencies(result, drawn)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(x) - np.log(y)
        error = np.sqrt(1.0 / np.array(drawn.counts_x) + 1.0 / np.array(drawn.counts_y))
    seen = ratio[np.isfinite(ratio)]
    epsilon = _epsilon(result) or 0.0
    return ratio, error, 1.3 * max(epsilon, float(np.abs(seen).max(initial=0.0)), 0.1)


def _epsilon(result: AuditResult) -> float | None:
    return result.claim.epsilon if isinstance(result.claim, (PureDP, ApproxDP)) else None


@_in_default_style
def svg(figure: Figure, *, label: str = "Figure", prefix: str | None = None) -> str:
    """The figure as an `<svg>` element to stand inside an HTML page, the same text every time.

    Parameters
    ----------
    figure : Figure
    label : str
        What a screen reader says.
    prefix : str, optional
        Begins every id, so that figures on one page do not clash; by default made from the figure itself.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    start = prefix if prefix is not None else f"f{hashlib.sha256(text.encode()).hexdigest()[:10]}-"
    root = ElementTree.fromstring(text)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "width": "100%",
        "role": "img",
        "aria-label": visible(label, 2_000),
    }
    for parent in root.iter():
        for child in [child for child in parent if child.tag.endswith("}metadata")]:
            parent.remove(child)
    for element in root.iter():
        _localise(element, start)
    title = ElementTree.Element("title")
    title.text = visible(label, 2_000)
    root.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode")


def _localise(element: ElementTree.Element[Any], prefix: str) -> None:
    """Plain names, which is what SVG inside HTML has, and ids that begin with the prefix."""
    element.tag = element.tag.rpartition("}")[2]
    attributes = {}
    for name, value in element.attrib.items():
        local = name.rpartition("}")[2]
        if local == "id":
            value = prefix + value
        elif local == "href" and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        attributes[local] = value.replace("url(#", f"url(#{prefix}")
    element.attrib = attributes
