"""The figures of a result: `plot` draws one of them into axes, `figures_of` draws all for a report, as SVG text."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from xml.etree import ElementTree

from ...audit.claims.claim import Claim
from ...audit.errors import OptionError
from ...audit.exact.exact_result import ExactResult
from ...audit.extras import require
from ...audit.printing import percent
from ...audit.records.suite import Checked, Entry, ExactTable, Suite
from ...audit.results.audit_result import AuditResult, ClaimResult
from ...audit.results.bin_result import BinCounts
from ...audit.results.canary_result import CanaryResult
from ...audit.results.result import Result
from ...audit.results.statement_result import StatementResult
from ..plain_text import LOOKS, found, number, prose, visible
from . import figure_style as style
from . import output_figures as drawings
from .figure_style import WIDTH, in_report_style, legend_above, panel
from .output_figures import audits, draw_forest, forest_marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawable: TypeAlias = (
    AuditResult
    | StatementResult
    | CanaryResult
    | ExactResult
    | Entry
    | BinCounts
    | Suite
    | Sequence[AuditResult | CanaryResult]
)
ByKind: TypeAlias = dict[str, Callable[["Axes"], None]]

_ACROSS: Final = 78  # characters of matplotlib's medium size across a figure of its own width
_SKETCH = "outputs that are single numbers or few outcomes, so that the pilot keeps a table of them"
_BINS = "bin counts: check(..., bins=32)"
KINDS = {
    "outputs": ("Outputs on x and y", _SKETCH),
    "ratio": ("Log ratio of the frequencies on x and y", _SKETCH),
    "ratios": ("Log ratio of every bin", _BINS),
    "profile": ("Privacy profile", _BINS),
    "trade-off": ("Trade-off curve", _BINS),
    "bound": ("Running lower bound", "a sequential audit: check(..., sequential=True)"),
    "series": (
        "Measured and stated values", "a statement about a curve, such as the result of check_noise or check_slope",
    ),
    "points": (
        "Numbers of the statement", "a statement about numbers, such as the result of check_noise or check_slope",
    ),
    "scores": ("Scores of the canaries", "an audit of a training run: check_canaries(...)"),
    "forest": (
        "Lower bounds as multiples of the claims",
        "audits of claims: Suite(title=..., entries=(Entry(name=..., result=check(...)), ...))",
    ),
}  # fmt: skip
"""The kinds of figures: their titles, and the data that each requires."""


def plot(result: Drawable, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a result with its title into `ax`, or with its verdict too into a new figure, and return the axes.

    Fonts, sizes and colours follow matplotlib's settings, except that data consistent with the claim are blue, and
    data that contradict it are vermillion with a different shape.

    Parameters
    ----------
    result : AuditResult, StatementResult, CanaryResult, ExactResult, Entry, BinCounts, Suite, or list of AuditResult
    kind : str, optional
        By default the most informative kind, the first of `kinds_of`:

        - "outputs": frequencies on x and y in the pilot, with the events shaded;
        - "ratio": log ratio of the frequencies with standard errors, the claim at ±ε and the bound that a pure claim is
          compared with; drawn as "ratios" if every outcome was counted;
        - "ratios": log ratio of every bin, with intervals that hold together;
        - "profile": δ(ε) in both directions with bands, and the claim's curve; both ends of an exact audit;
        - "trade-off": largest power at each false-positive rate with a band, and the claim's boundary;
        - "bound": running lower bound of a sequential audit, and why it stopped;
        - "series": measured values along a stated curve;
        - "points": every number of a statement with its allowed range;
        - "scores": histograms of the scores of canaries in and out, with the guessed scores shaded;
        - "forest": every audit as a fraction of its claim.

        Lower bounds hold for the mechanism, upper bounds only for these bins (unions of the first bins in order).
        All figures of the same bins hold together with probability 1 − alpha of the bins.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    OptionError
        For a kind that the result lacks; the message lists the available kinds.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dpaudit import PureDP, check
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(size=size)
    >>> result = check(noisy, 0, 1, claim=PureDP(1.0), runs=20_000, bins=8)
    >>> kinds_of(result)
    ('outputs', 'ratio', 'ratios', 'profile', 'trade-off', 'forest')
    >>> axes = plot(result, "profile", ax=Figure().subplots())
    >>> axes.get_ylabel()
    'δ(ε)'
    """
    draw_by_kind = _drawings(result)
    kinds, kind_of_result = tuple(draw_by_kind), type(result).__name__
    if kind is None and not kinds:
        raise OptionError(f"this {kind_of_result} has no figure; a figure requires {KINDS['forest'][1]}.", kinds=kinds)
    chosen = kinds[0] if kind is None else kind
    if chosen == "ratio" and "ratio" not in kinds and "ratios" in kinds:
        chosen = "ratios"
    if chosen not in draw_by_kind:
        raise OptionError(f"kind={_short(kind)} {_refusal(chosen, kinds, result)}", kind=kind, kinds=kinds)
    if ax is not None and not hasattr(ax, "get_xaxis_transform"):
        raise OptionError(f"ax={_short(ax)} is not a matplotlib Axes; pass a single one, such as axes[0].", ax=ax)
    if ax is None:
        require("report", "figures need", "matplotlib")
    told = _told(result, chosen) if ax is None else []
    axes = _new_axes(result, chosen, len(told)) if ax is None else ax
    draw_by_kind[chosen](axes)
    axes.set_title("\n".join([KINDS[chosen][0], *told]))
    if told:
        axes.title.set_fontsize("medium")
    _explain(axes, chosen)
    return axes


def kinds_of(result: Drawable) -> tuple[str, ...]:
    """Return the kinds of figures that `plot` can draw of a result, the most informative kind first."""
    return tuple(_drawings(result))


def _drawings(result: Drawable) -> ByKind:
    """Drawing functions by kind for this result."""
    if isinstance(result, Entry):
        result = result.result
    found: ByKind = {}
    if isinstance(result, BinCounts):
        return _of_bins(result, None)
    if isinstance(result, ExactResult):
        return {"profile": partial(drawings.draw_exact, table=result.tabulated())}
    if isinstance(result, StatementResult):
        if result.series is not None:
            found["series"] = partial(drawings.draw_series, series=result.series)
        return {**found, "points": partial(drawings.draw_points, result=result)}
    if isinstance(result, AuditResult):
        if result.interim_analyses:
            found["bound"] = partial(drawings.draw_bound, result=result)
        if (sketch := drawings.usable_sketch(result)) is not None:
            found["outputs"] = partial(drawings.draw_shares, result=result, drawn=sketch)
            if result.bins is None or not drawings.are_outcomes(result.bins):
                found["ratio"] = partial(drawings.draw_ratio_and_bound, result=result, drawn=sketch)
        found |= {} if result.bins is None else _of_bins(result.bins, result.claim)
    elif isinstance(result, CanaryResult) and result.sketch is not None:
        found["scores"] = partial(drawings.draw_scores, result=result, sketch=result.sketch)
    if isinstance(result, (AuditResult, CanaryResult)):
        result = [result]
    if isinstance(result, (list, tuple)) and all(isinstance(each, (AuditResult, CanaryResult)) for each in result):
        result = Suite(title="", entries=tuple(Entry(name=each.mechanism, result=each) for each in result))
    if not isinstance(result, Suite):
        raise OptionError(
            f"{type(result).__name__} cannot be drawn; pass an AuditResult, StatementResult, CanaryResult, "
            "ExactResult, BinCounts, Suite or a list of AuditResults.",
            type=type(result).__name__,
        )
    return found | ({"forest": partial(draw_forest, suite=result, narrow=True)} if audits(result) else {})


def _of_bins(bins: BinCounts, claim: Claim | None) -> ByKind:
    draw = {"ratios": drawings.draw_ratios, "profile": drawings.draw_profile, "trade-off": drawings.draw_trade_off}
    return {kind: partial(each, bins=bins, claim=claim) for kind, each in draw.items()}


def _refusal(kind: str, kinds: tuple[str, ...], result: Drawable) -> str:
    has, of_this = ", ".join(f'"{each}"' for each in kinds), f"for this {type(result).__name__}"
    if kind not in KINDS:
        return f"is unknown; use one of {has} {of_this}."
    need = KINDS[kind][1]
    if isinstance(result, Suite) and kind != "forest":
        need = f"one of its results, plot(suite.entries[0], kind={kind!r}), and {need}"
    return f"cannot be drawn {of_this} (available: {has or 'none'}); it requires {need}."


def _short(kind: object) -> str:
    return visible(repr(kind), 60)


def _explain(axes: Axes, kind: str) -> None:
    """Draw the legend inside the axes, or below them if rows fill the axes or texts stand in their corners."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    if kind != "scores" and not axes.yaxis_inverted():
        axes.legend(loc="best")
        return
    handles = forest_marks() if kind == "forest" else axes.get_legend_handles_labels()[0]
    lines = 3.6 * rcParams["font.size"] / 72  # room for tick labels and axis label
    below = axes.transAxes + ScaledTranslation(0.0, -lines, axes.figure.dpi_scale_trans)
    axes.legend(
        handles=handles, loc="upper right", bbox_to_anchor=(1.0, 0.0), bbox_transform=below, ncols=4, frameon=False,
        fontsize="small",
    )  # fmt: skip


def _told(result: Drawable, kind: str) -> list[str]:
    """Lines of the verdict, for the title of a figure that stands alone; the rows of a forest have their own."""
    one = result.result if isinstance(result, Entry) else result
    if kind == "forest" or not isinstance(one, Result):
        return []
    texts = (one.headline, *([one.seen] if isinstance(one, ClaimResult) else []))
    return [line for text in texts for line in wrap(style.legible(text, 300), _ACROSS)]


def _new_axes(result: Drawable, kind: str, told: int) -> Axes:
    """Axes of a new pyplot figure whose height fits the rows, and below a title of `told` more lines."""
    from matplotlib import pyplot

    width, height = pyplot.rcParams["figure.figsize"]
    if kind == "forest":
        height = 1.4 + 0.46 * (len(audits(result)) if isinstance(result, Suite) else 1)
    elif kind == "points" and isinstance(result, StatementResult):
        height = 1.4 + 0.2 * told + 0.46 * len(drawings.drawn_points(result))
    elif kind == "ratios":
        bins = result.bins if isinstance(result, AuditResult) else result
        height = 1.4 + 0.2 * told + 0.25 * len(bins.names) if isinstance(bins, BinCounts) else height
    axes: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


# The figures of a report.


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of a report."""

    figure: Figure
    label: str  # description with the main numbers, for screen readers
    title: str
    caption: str


def figures_of(result: Checked) -> list[Drawn]:
    """Return the figures of a result; may be empty."""
    draw = _drawings(result)
    if isinstance(result, StatementResult):
        return _of_statement(result, draw)
    name = visible(result.mechanism, 100)
    if isinstance(result, AuditResult):
        return _of_audit(result, draw, name)
    if "scores" not in draw:
        return []
    what = "Pairs of canaries by the difference of their scores" if result.inclusion == "fixed" else "Canaries by score"
    caption = f"{what}; shaded: the guesses that carry the bound. Scores beyond the axis are counted in the outer bins."
    label = f"Scores of the canaries of {name}: {result.guesses_in_words}."
    return [_drawn("scores", _framed(draw["scores"], 1.9), label, caption)]


def figure_of_table(table: ExactTable, name: str) -> Drawn:
    """Return the privacy profile of an exact audit of a mechanism."""
    label = f"Both ends of δ(ε) of {name}, from ε = 0 to {number(table.curve[-1][0])}, and what is claimed."
    caption = "Both ends are certain, for ideal coins; what lies between them was not explored."
    return _drawn("profile", _framed(partial(drawings.draw_exact, table=table), 1.9), label, caption)


def _drawn(kind: str, figure: Figure, label: str, caption: str) -> Drawn:
    return Drawn(figure, prose(label), KINDS[kind][0], prose(caption))


def _of_audit(result: AuditResult, draw: ByKind, name: str) -> list[Drawn]:
    drawn: list[Drawn] = []
    figure = drawings.outputs_figure(result)
    if figure is not None:
        label = f"Outputs of {name} on x and y, and the natural log of their ratio: {result.event_in_words}."
        first = "First outputs" if result.interim_analyses else "Pilot outputs, from which the event was chosen,"
        caption = (
            f"{first} and the natural logarithm (ln) of the ratio of their frequencies with its standard error; arrow: "
            "outputs on one dataset only. The verdict rests on "
            f"{'bets on later runs' if result.interim_analyses else 'other runs'}.{_left_out(result)}"
        )
        drawn.append(_drawn("outputs", figure, label, caption))
    if result.interim_analyses:
        label = (
            f"Running lower bound of {name}: {found(result)} after {result.interim_analyses[-1].runs:,} runs on each "
            f"dataset, claimed {number(result.claim.parameter)}; {drawings.stopped(result)}."
        )
        caption = (
            "After each batch, on a fixed grid of values; all bounds hold together with "
            f"{percent(1 - result.alpha)} confidence."
        )
        drawn.append(_drawn("bound", _framed(draw["bound"], 1.9), label, caption))
    if result.bins is not None:
        drawn += _figures_of_bins(result, result.bins, draw, name)
    return drawn


def _left_out(result: AuditResult) -> str:
    """Share of the outputs missing from the figure."""
    if (sketch := drawings.usable_sketch(result)) is None or max(shares := drawings.not_drawn(sketch)) == 0.0:
        return ""
    on_x, on_y = (percent(round(share, 4)) for share in shares)
    return f" Not drawn: {'other' if sketch.labels else 'non-numeric'} outputs ({on_x} of the runs on x, {on_y} on y)."


@in_report_style
def _framed(draw: Callable[[Axes], None], height: float, *, left: float = 0.7) -> Figure:
    """A figure of one panel, `height` inches high, with its legend above."""
    from matplotlib.figure import Figure

    figure, width = Figure(figsize=(WIDTH, height + 0.84)), WIDTH - left - 0.25
    axes = panel(figure, left=left, bottom=0.5, width=width, height=height)
    draw(axes)
    legend_above(axes, ncols=3, start=min(0.7 - left, 0.0) / width)
    return figure


@in_report_style
def _curves(draw: ByKind) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.9))
    for kind, left in (("profile", 0.72), ("trade-off", 3.35)):
        draw[kind](panel(figure, left=left, bottom=0.5, width=1.9, height=1.85))
    legend_above(figure.axes[0], ncols=2)
    return figure


def _figures_of_bins(result: AuditResult, bins: BinCounts, draw: ByKind, name: str) -> list[Drawn]:
    epsilon, found, band = drawings.claimed_epsilon(result.claim), bins.ratios(), bins.band()
    lower, estimate, upper = (float(delta) for delta in band.profile(0.0))
    together = f"All intervals and bands of the bins hold together with {percent(1 - bins.alpha)} confidence."
    curves = _drawn(
        "profile",
        _curves(draw),
        f"Privacy profile and trade-off curve of {name} against the claim {result.claim}: δ at ε = 0 of x against y is "
        f"{number(estimate)}, from {number(lower)} to {number(upper)}.",
        "Beside it the trade-off curve of x against y. Lines: lower bounds, which hold for the mechanism; one "
        "above the claim's line contradicts the claim, and one below it says nothing, as bins show less than outputs. "
        f"Shaded: what else is possible in unions of the first bins, ordered by ratio. {together}",
    )
    least, largest = float(found.lower.max()), float((-found.upper).max())
    room = 0.5 + 0.07 * min(max(len(name.removeprefix("output in ")) for name in bins.names), 30)  # for the names
    height = max(0.155 * len(bins.names), 0.5)
    ratios = _drawn(
        "ratios",
        _framed(draw["ratios"], height, left=room),
        f"Natural log ratio of each of {len(bins.names)} bins of {name}: at least {number(max(least, 0.0))} in one "
        f"bin for x against y and {number(max(largest, 0.0))} for y against x"
        + ("." if epsilon is None else f"; claimed ε = {number(epsilon)}."),
        "Natural logarithm (ln) of the likelihood ratio of x against y in every bin, with its interval; arrow: "
        f"unbounded interval. Upper bounds are for {bins.scope}. {together}",
    )
    return [curves, ratios]


def _of_statement(result: StatementResult, draw: ByKind) -> list[Drawn]:
    drawn: list[Drawn] = []
    series, quantity = result.series, visible(result.quantity, 100)
    if series is not None:
        label = f"{series.y_name} against {series.x_name}: {drawings.fraction_outside(series)}. {result.statement}"
        caption = f"Intervals: {series.intervals}."
        drawn.append(_drawn("series", _framed(draw["series"], 2.4), label, caption))
    if len(result.points) >= 2:
        shown, worst = drawings.drawn_points(result), result.worst
        label = (
            f"{len(result.points)} numbers of {quantity}; the worst, {worst.at or quantity}, in {worst.interval}, "
            f"{worst.allowed}."
        )
        which = f"The {drawings.MOST_POINTS} most extreme of {len(result.points):,} numbers. "
        caption = (
            f"{which * (len(shown) < len(result.points))}Interval of each number, with the allowed range shaded; "
            f"arrow: unbounded interval. {visible(result.method)}; all intervals hold together with "
            f"{percent(1 - result.alpha)} confidence."
        )
        figure = _framed(draw["points"], 0.38 * len(shown), left=0.15)
        drawn.append(_drawn("points", figure, label, caption))
    return drawn


# Figures as short, reproducible SVG text whose ids do not clash within a page.

Element = ElementTree.Element

_SPACED = re.compile(r"\s*([A-Za-z])\s*")
_TOO_FINE = re.compile(r"(\.\d)\d+")  # below a tenth of a point, nothing is visible
_UPRIGHT = re.compile(r"rotate\(-?0 ")
_FONT = re.compile(r"font-family: [^;]+; ?")
_USED = re.compile(r'(?:href="|url\()#([^")]+)')


@in_report_style
def svg(
    figure: Figure,
    *,
    label: str = "Figure",
    title: str = "",
    prefix: str | None = None,
    sheet: dict[str, str] | None = None,
) -> str:
    """Return the figure as an `<svg>` element for an HTML page; equal figures give equal text.

    The label is for screen readers, the title for tooltips. A prefix, by default a hash of the figure, begins every id,
    so that figures on one page do not clash. With the sheet of a page, styles become its classes, whose colours follow
    the theme; without one the figure can be used alone.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    start = prefix if prefix is not None else f"f{hashlib.sha256(text.encode()).hexdigest()[:10]}-"
    root = ElementTree.fromstring(text)
    box = root.attrib["viewBox"]
    family = _FONT.search(text)
    _shorten(root, start, set(_USED.findall(text)), family[0] if family else "")
    shown = visible(label, 2_000)
    root.attrib = {"viewBox": box, "width": "100%", "role": "img", "aria-label": shown}
    heading = Element("title")
    heading.text = visible(title, 200) or shown
    if sheet is not None:
        for defs in [each for each in root if each.tag == "defs" and len(each) and each[0].tag == "style"]:
            root.remove(defs)  # the page has the rule for all drawings
        share_styles(root, sheet)
        root.insert(0, heading)
        return ElementTree.tostring(root, encoding="unicode")
    if family:
        root.attrib["style"] = family[0].rstrip("; ")
    root.insert(0, heading)
    return ElementTree.tostring(root, encoding="unicode")


def _shorten(element: Element[Any], prefix: str, used: set[str], family: str) -> None:
    """Remove XML namespaces, prefix the ids in use, and drop unused ids, attributes and elements."""
    element.tag = element.tag.rpartition("}")[2]
    attributes = {}
    for name, value in element.attrib.items():
        local = name.rpartition("}")[2]
        if local == "id":
            if value not in used:
                continue
            value = prefix + value
        elif local == "href" and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        elif local == "d":
            value = _TOO_FINE.sub(r"\1", _SPACED.sub(r"\1", value))
        elif local in ("x", "y"):
            value = _TOO_FINE.sub(r"\1", value)
        elif local == "transform":
            if _UPRIGHT.match(value):
                continue
        elif local == "style" and family:
            value = value.replace(family, "")
        attributes[local] = value.replace("url(#", f"url(#{prefix}")
    element.attrib = attributes
    if element.tag not in ("text", "tspan", "style"):
        element.text = None
    children = []
    for child in element:
        _shorten(child, prefix, used, family)
        if element.tag != "text":
            child.tail = None
        if child.tag == "g" and not child.attrib:
            children += list(child)
        elif child.tag != "metadata" and (len(child) or child.tag not in ("g", "defs")):
            children.append(child)
    element[:] = children


@in_report_style
def drawings_of(results: Sequence[Checked], sheet: dict[str, str]) -> list[list[tuple[str, str, str]]]:
    """Return titles, captions and drawings of each result, with distinct ids; their styles are added to the `sheet`."""

    def drawing(one: Drawn, prefix: str) -> tuple[str, str, str]:
        return one.title, one.caption, svg(one.figure, label=one.label, title=one.title, prefix=prefix, sheet=sheet)

    return [
        [drawing(one, f"a{index}-{place}-") for place, one in enumerate(figures_of(result))]
        for index, result in enumerate(results, start=1)
    ]


# Drawings on a page: shared CSS classes in place of repeated styles, and colours that follow the theme.

THEMED: Final = {
    "#000000": "--ink", "#ffffff": "--card", "#757575": "--grey", "#0072b2": "--blue", "#d55e00": "--vermillion",
    "#009e73": "--green", "#9ccbe8": "--blue-fill", "#f2b88f": "--vermillion-fill", "#d0d0d0": "--grey-fill",
    "#dddddd": "--grey-fill", "#f0c000": "--event", "#e0b000": "--event", "#cc79a7": "--purple",
    "#e69f00": "--orange", "#56b4e9": "--sky", **{look.colour.lower(): f"--{look.style}" for look in LOOKS.values()},
}  # fmt: skip
"""The page's variable for each colour of a figure; the page defines the variables for light, dark and print."""

_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}\b")


def _themed(colour: re.Match[str]) -> str:
    name = THEMED.get(colour[0].lower())
    return colour[0] if name is None else f"var({name})"


def share_styles(root: ElementTree.Element[Any], sheet: dict[str, str]) -> None:
    """Replace the styles of all elements by classes, and add the classes and their rules to `sheet`.

    Styles that refer to an id of the drawing, such as a hatch, stay with their elements.
    """
    for element in root.iter():
        style = element.attrib.pop("style", None)
        if style is None:
            continue
        style = _COLOUR.sub(_themed, style)
        name = f"s{hashlib.sha256(style.encode()).hexdigest()[:7]}"  # equal in every process that draws figures
        if "url(" in style or sheet.setdefault(name, style) != style:  # two styles of one hash
            element.attrib["style"] = style
        else:
            element.attrib["class"] = name


def rules(sheet: dict[str, str]) -> str:
    """The sheet as CSS."""
    compact = ((name, style.replace(": ", ":").replace("; ", ";")) for name, style in sorted(sheet.items()))
    return "\n".join(f".{name}{{{style}}}" for name, style in compact)
