"""One function that draws any result, as `plot` does in pandas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...audit.claims.claim import Claim
from ...audit.errors import OptionError
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.cell_result import CellCounts
from ...audit.results.statement_result import StatementResult
from ..plain_text import visible
from .cell_figures import are_outcomes, draw_profile, draw_ratios, draw_trade_off
from .distance_figure import draw_distances, series_by_distance
from .forest_figure import audits, draw_forest, forest_marks
from .look_figure import draw_bound
from .output_figures import draw_ratio, draw_shares, usable_sketch
from .series_figures import draw_points, draw_series, drawn_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Drawable: TypeAlias = AuditResult | StatementResult | Entry | CellCounts | Suite | Sequence[AuditResult]

_NEEDS = {
    "outputs": "outputs that are single numbers or few different ones, of which the pilot keeps a table",
    "ratio": "outputs that are single numbers or few different ones, of which the pilot keeps a table",
    "ratios": "counts in cells: check(..., cells=32)",
    "profile": "counts in cells: check(..., cells=32)",
    "trade-off": "counts in cells: check(..., cells=32)",
    "bound": "a sequential audit: check(..., sequential=True)",
    "series": "a statement about a curve, such as the result of check_noise or check_slope",
    "points": "a statement about numbers, such as the result of check_noise or check_slope",
    "forest": "audits of claims: Suite(title=..., entries=(Entry(name=..., result=check(...)), ...))",
    "distance": "audits of one mechanism at two distances or more: check(..., distance=2)",
}
"""Every kind of figure, with what it takes."""


def plot(result: Drawable, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draws a result into `ax`, or into the axes of a new figure, and returns the axes.

    The numbers are those of the result. Fonts, sizes and colours follow the settings of matplotlib, but for what says
    how a claim came out: blue for what agrees with it, vermillion and another shape for what does not.

    Parameters
    ----------
    result : AuditResult, StatementResult, Entry, CellCounts, Suite, or sequence of AuditResult
    kind : str, optional
        By default the one that shows most of the result, the first of `kinds_of`:

        - "outputs": shares of the pilot runs on x and on y, the event shaded;
        - "ratio": log of their ratio with standard errors, the claim at ±ε; "ratios" where each outcome was counted;
        - "ratios": log ratio of every cell in intervals that hold together;
        - "profile": δ(ε) in both directions with a band, and what the claim allows;
        - "trade-off": largest power at each false-positive rate with a band, and the claim's boundary;
        - "bound": running bound of a sequential audit, and why it stopped;
        - "series": what was measured along a curve that a statement gives;
        - "points": every number of a statement beside what is allowed;
        - "forest": every audit as a fraction of its claim;
        - "distance": bounds against the distance between the datasets.

        The lower end of a band holds for all events, the upper one for unions of the first cells in their order only.
        All figures of the same cells hold together with probability 1 − alpha of the cells.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    OptionError
        For a kind that this result does not have; the message names those that it has.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dpaudit import PureDP, check
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(size=size)
    >>> result = check(noisy, 0, 1, claim=PureDP(1.0), runs=20_000, cells=8)
    >>> kinds_of(result)
    ('outputs', 'ratio', 'ratios', 'profile', 'trade-off', 'forest')
    >>> axes = plot(result, "profile", ax=Figure().subplots())
    >>> axes.get_ylabel()
    'δ(ε)'
    """
    draw_by_kind = _drawings(result)
    kinds = tuple(draw_by_kind)
    if kind is None and not kinds:
        raise OptionError(f"nothing can be drawn of this {_type(result)}; {_offers(result)}.", kinds=kinds)
    chosen = kinds[0] if kind is None else kind
    if chosen == "ratio" and "ratio" not in kinds and "ratios" in kinds:
        chosen = "ratios"
    if chosen not in draw_by_kind:
        raise OptionError(f"kind={_short(kind)} {_refusal(chosen, kinds, result)}", kind=kind, kinds=kinds)
    if ax is not None and not hasattr(ax, "get_xaxis_transform"):
        raise OptionError(f"ax={_short(ax)} is no axes; pass a single matplotlib Axes, such as axes[0].", ax=ax)
    axes = _new_axes(result, chosen) if ax is None else ax
    draw_by_kind[chosen](axes)
    _explain(axes, chosen)
    return axes


def kinds_of(result: Drawable) -> tuple[str, ...]:
    """The kinds of figure that `plot` can draw of a result, the one that shows most first."""
    return tuple(_drawings(result))


def _drawings(result: Drawable) -> dict[str, Callable[[Axes], None]]:
    """What draws each kind that this result has."""
    if isinstance(result, Entry):
        result = result.result
    if isinstance(result, CellCounts):
        return _of_cells(result, None)
    if isinstance(result, AuditResult):
        return _of_audit(result)
    if isinstance(result, StatementResult):
        return _of_statement(result)
    if isinstance(result, Suite):
        suite, is_suite = result, True
    elif isinstance(result, (list, tuple)) and all(isinstance(each, AuditResult) for each in result):
        suite, is_suite = Suite(title="", entries=tuple(Entry(name=r.mechanism, result=r) for r in result)), False
    else:
        raise OptionError(
            f"a {_type(result)} cannot be drawn; pass an AuditResult, StatementResult, CellCounts, Suite or a list of "
            "AuditResults.",
            type=_type(result),
        )
    found: dict[str, Callable[[Axes], None]] = {}
    if audits(suite):
        found["forest"] = lambda axes: draw_forest(axes, suite, narrow=True)
    groups = series_by_distance(suite, fewest=2)
    if len(groups) == 1:
        found["distance"] = lambda axes: draw_distances(axes, groups[0])
    return found if is_suite else dict(reversed(found.items()))


def _of_audit(result: AuditResult) -> dict[str, Callable[[Axes], None]]:
    found: dict[str, Callable[[Axes], None]] = {}
    sketch = usable_sketch(result)
    if result.looks:
        found["bound"] = lambda axes: draw_bound(axes, result)
    if sketch is not None:
        found["outputs"] = lambda axes: draw_shares(axes, result, sketch)
        if result.cells is None or not are_outcomes(result.cells):
            found["ratio"] = lambda axes: draw_ratio(axes, result, sketch)
    if result.cells is not None:
        found |= _of_cells(result.cells, result.claim)
    found["forest"] = lambda axes: draw_forest(axes, Suite(title="", entries=(_entry(result),)), narrow=True)
    return found


def _of_cells(cells: CellCounts, claim: Claim | None) -> dict[str, Callable[[Axes], None]]:
    return {
        "ratios": lambda axes: draw_ratios(axes, cells, claim),
        "profile": lambda axes: draw_profile(axes, cells, claim),
        "trade-off": lambda axes: draw_trade_off(axes, cells, claim),
    }


def _of_statement(result: StatementResult) -> dict[str, Callable[[Axes], None]]:
    series = result.series
    found: dict[str, Callable[[Axes], None]] = {}
    if series is not None:
        found["series"] = lambda axes: draw_series(axes, series)
    found["points"] = lambda axes: draw_points(axes, result)
    return found


def _entry(result: AuditResult) -> Entry:
    return Entry(name=result.mechanism, result=result)


def _refusal(kind: str, kinds: tuple[str, ...], result: Drawable) -> str:
    has = ", ".join(f'"{each}"' for each in kinds)
    if kind not in _NEEDS:
        return f"is unknown; of this {_type(result)} there are {has}."
    if kind == "distance" and isinstance(result, Suite) and len(series_by_distance(result, fewest=2)) > 1:
        need = "the results of one mechanism in a list, as this suite has several at different distances"
    elif isinstance(result, Suite) and kind not in ("forest", "distance"):
        need = f"one of its results, plot(suite.entries[0], kind={kind!r}), and {_NEEDS[kind]}"
    else:
        need = _NEEDS[kind]
    return f"cannot be drawn of this {_type(result)}, which has {has or 'none'}; it takes {need}."


def _offers(result: Drawable) -> str:
    return f"it takes {_NEEDS['forest' if isinstance(result, Suite) else 'distance']}"


def _type(result: object) -> str:
    return type(result).__name__


def _short(kind: object) -> str:
    return visible(repr(kind), 60)


def _explain(axes: Axes, kind: str) -> None:
    """The legend: where there is most room, and below the axes where rows leave none."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    if not axes.yaxis_inverted():
        axes.legend(loc="best")
        return
    handles = forest_marks() if kind == "forest" else axes.get_legend_handles_labels()[0]
    lines = 3.6 * rcParams["font.size"] / 72  # for the ticks' labels and that of the axis
    below = axes.transAxes + ScaledTranslation(0.0, -lines, axes.figure.dpi_scale_trans)
    axes.legend(
        handles=handles, loc="upper right", bbox_to_anchor=(1.0, 0.0), bbox_transform=below, ncols=4, frameon=False,
        fontsize="small",
    )  # fmt: skip


def _new_axes(result: Drawable, kind: str) -> Axes:
    """The axes of a new figure of pyplot, as high as its rows take."""
    from matplotlib import pyplot

    width, height = pyplot.rcParams["figure.figsize"]
    n_rows = 0
    if kind == "forest":
        n_rows = len(audits(result)) if isinstance(result, Suite) else 1
    elif kind == "points" and isinstance(result, StatementResult):
        n_rows = len(drawn_points(result))
    elif kind == "ratios":
        cells = result.cells if isinstance(result, AuditResult) else result
        n_rows = len(cells.names) if isinstance(cells, CellCounts) else 0
    if n_rows:
        height = 1.4 + (0.25 if kind == "ratios" else 0.46) * n_rows
    axes: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return axes
