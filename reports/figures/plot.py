"""Function `plot`, which draws any result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...audit.claims.claim import Claim
from ...audit.errors import OptionError
from ...audit.extras import require
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.cell_result import CellCounts
from ...audit.results.statement_result import StatementResult
from ..plain_text import visible
from .forest_figure import audits, draw_forest, forest_marks
from .output_figures import (
    are_outcomes,
    draw_profile,
    draw_ratio,
    draw_ratios,
    draw_shares,
    draw_trade_off,
    usable_sketch,
)
from .series_figures import (
    draw_bound,
    draw_points,
    draw_scores,
    draw_series,
    drawn_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Drawable: TypeAlias = (
    AuditResult | StatementResult | CanaryResult | Entry | CellCounts | Suite | Sequence[AuditResult | CanaryResult]
)

_SKETCH = "outputs that are single numbers or few outcomes, so that the pilot keeps a table of them"
_CELLS = "cell counts: check(..., cells=32)"
_NEEDS = {
    "outputs": _SKETCH,
    "ratio": _SKETCH,
    "ratios": _CELLS,
    "profile": _CELLS,
    "trade-off": _CELLS,
    "bound": "a sequential audit: check(..., sequential=True)",
    "series": "a statement about a curve, such as the result of check_noise or check_slope",
    "points": "a statement about numbers, such as the result of check_noise or check_slope",
    "scores": "an audit of a training run: check_canaries(...)",
    "forest": "audits of claims: Suite(title=..., entries=(Entry(name=..., result=check(...)), ...))",
}
"""The kinds of figures and the data that each requires."""


def plot(result: Drawable, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a result into `ax` or a new figure, and return the axes.

    Fonts, sizes and colours follow matplotlib's settings, except that data consistent with the claim are blue, and
    data that contradict it are vermillion with a different shape.

    Parameters
    ----------
    result : AuditResult, StatementResult, CanaryResult, Entry, CellCounts, Suite, or sequence of AuditResult
    kind : str, optional
        By default the most informative kind, the first of `kinds_of`:

        - "outputs": frequencies on x and y in the pilot, with the event shaded;
        - "ratio": log ratio of the frequencies with standard errors, and the claim at ±ε; drawn as "ratios" if every
          outcome was counted;
        - "ratios": log ratio of every cell, with intervals that hold together;
        - "profile": δ(ε) in both directions with bands, and the claim's curve;
        - "trade-off": largest power at each false-positive rate with a band, and the claim's boundary;
        - "bound": running lower bound of a sequential audit, and why it stopped;
        - "series": measured values along a stated curve;
        - "points": every number of a statement with its allowed range;
        - "scores": histograms of the scores of canaries in and out, with the guessed scores shaded;
        - "forest": every audit as a fraction of its claim.

        Lower bounds hold for the mechanism, upper bounds only for these cells (unions of the first cells in order).
        All figures of the same cells hold together with probability 1 − alpha of the cells.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    OptionError
        For a kind that the result lacks; the message lists the available kinds.

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
        raise OptionError(f"this {_type(result)} has no figure; a figure requires {_NEEDS['forest']}.", kinds=kinds)
    chosen = kinds[0] if kind is None else kind
    if chosen == "ratio" and "ratio" not in kinds and "ratios" in kinds:
        chosen = "ratios"
    if chosen not in draw_by_kind:
        raise OptionError(f"kind={_short(kind)} {_refusal(chosen, kinds, result)}", kind=kind, kinds=kinds)
    if ax is not None and not hasattr(ax, "get_xaxis_transform"):
        raise OptionError(f"ax={_short(ax)} is not a matplotlib Axes; pass a single one, such as axes[0].", ax=ax)
    axes = _new_axes(result, chosen) if ax is None else ax
    draw_by_kind[chosen](axes)
    _explain(axes, chosen)
    return axes


def kinds_of(result: Drawable) -> tuple[str, ...]:
    """Return the kinds of figures that `plot` can draw of a result, the most informative kind first."""
    return tuple(_drawings(result))


def _drawings(result: Drawable) -> dict[str, Callable[[Axes], None]]:
    """Drawing functions by kind for this result."""
    if isinstance(result, Entry):
        result = result.result
    found: dict[str, Callable[[Axes], None]] = {}
    if isinstance(result, CellCounts):
        return _of_cells(result, None)
    if isinstance(result, AuditResult):
        return _of_audit(result)
    if isinstance(result, CanaryResult):
        return _of_canaries(result)
    if isinstance(result, StatementResult):
        if (series := result.series) is not None:
            found["series"] = lambda axes: draw_series(axes, series)
        return {**found, "points": lambda axes: draw_points(axes, result)}
    if isinstance(result, Suite):
        suite = result
    elif isinstance(result, (list, tuple)) and all(isinstance(each, (AuditResult, CanaryResult)) for each in result):
        suite = _suite_of(result)
    else:
        raise OptionError(
            f"a {_type(result)} cannot be drawn; pass an AuditResult, StatementResult, CanaryResult, CellCounts, Suite "
            "or a list of AuditResults.",
            type=_type(result),
        )
    if audits(suite):
        found["forest"] = lambda axes: draw_forest(axes, suite, narrow=True)
    return found


def _of_audit(result: AuditResult) -> dict[str, Callable[[Axes], None]]:
    found: dict[str, Callable[[Axes], None]] = {}
    sketch = usable_sketch(result)
    if result.interim_analyses:
        found["bound"] = lambda axes: draw_bound(axes, result)
    if sketch is not None:
        found["outputs"] = lambda axes: draw_shares(axes, result, sketch)
        if result.cells is None or not are_outcomes(result.cells):
            found["ratio"] = lambda axes: draw_ratio(axes, result, sketch)
    if result.cells is not None:
        found |= _of_cells(result.cells, result.claim)
    found["forest"] = lambda axes: draw_forest(axes, _suite_of([result]), narrow=True)
    return found


def _of_canaries(result: CanaryResult) -> dict[str, Callable[[Axes], None]]:
    found: dict[str, Callable[[Axes], None]] = {}
    if (sketch := result.sketch) is not None:
        found["scores"] = lambda axes: draw_scores(axes, result, sketch)
    found["forest"] = lambda axes: draw_forest(axes, _suite_of([result]), narrow=True)
    return found


def _of_cells(cells: CellCounts, claim: Claim | None) -> dict[str, Callable[[Axes], None]]:
    return {
        "ratios": lambda axes: draw_ratios(axes, cells, claim),
        "profile": lambda axes: draw_profile(axes, cells, claim),
        "trade-off": lambda axes: draw_trade_off(axes, cells, claim),
    }


def _suite_of(results: Sequence[AuditResult | CanaryResult]) -> Suite:
    return Suite(title="", entries=tuple(Entry(name=result.mechanism, result=result) for result in results))


def _refusal(kind: str, kinds: tuple[str, ...], result: Drawable) -> str:
    has = ", ".join(f'"{each}"' for each in kinds)
    if kind not in _NEEDS:
        return f"is unknown; use one of {has} for this {_type(result)}."
    need = _NEEDS[kind]
    if isinstance(result, Suite) and kind != "forest":
        need = f"one of its results, plot(suite.entries[0], kind={kind!r}), and {need}"
    return f"cannot be drawn for this {_type(result)} (available: {has or 'none'}); it requires {need}."


def _type(result: object) -> str:
    return type(result).__name__


def _short(kind: object) -> str:
    return visible(repr(kind), 60)


def _explain(axes: Axes, kind: str) -> None:
    """Draw the legend inside the axes, or below them if rows fill the axes."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    if not axes.yaxis_inverted():
        axes.legend(loc="best")
        return
    handles = forest_marks() if kind == "forest" else axes.get_legend_handles_labels()[0]
    lines = 3.6 * rcParams["font.size"] / 72  # room for tick labels and axis label
    below = axes.transAxes + ScaledTranslation(0.0, -lines, axes.figure.dpi_scale_trans)
    axes.legend(
        handles=handles, loc="upper right", bbox_to_anchor=(1.0, 0.0), bbox_transform=below, ncols=4, frameon=False,
        fontsize="small",
    )  # fmt: skip


def _new_axes(result: Drawable, kind: str) -> Axes:
    """Axes of a new pyplot figure whose height fits the rows."""
    require("report", "figures need", "matplotlib")
    from matplotlib import pyplot

    width, height = pyplot.rcParams["figure.figsize"]
    if kind == "forest":
        height = 1.4 + 0.46 * (len(audits(result)) if isinstance(result, Suite) else 1)
    elif kind == "points" and isinstance(result, StatementResult):
        height = 1.4 + 0.46 * len(drawn_points(result))
    elif kind == "ratios":
        cells = result.cells if isinstance(result, AuditResult) else result
        height = 1.4 + 0.25 * len(cells.names) if isinstance(cells, CellCounts) else height
    axes: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return axes
