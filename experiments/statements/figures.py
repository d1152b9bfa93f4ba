"""Figures of experiments R3, D7 and D8: stated values as lines, measured intervals and lower bounds as points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...audit.claims.mironov_propositions import NFoldComposition
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...mechanisms import RandomisedResponseFold, advanced_composition, group_delta
from ...reports.figures.figure_style import BLUE, DASHED, GREEN, GREY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLACK, _PURPLE = "#111111", "#CC79A7"
_WHITE_EDGE: Final[dict[str, Any]] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
EVENTS: Final = {
    **{f"R3-events-response-{n}": (n, BLUE, "o", "randomised response") for n in (1, 10, 100)},
    **{f"R3-events-laplace-{n}": (n, GREEN, "s", "Laplace") for n in (1, 10, 100)},
    **{f"R3-events-adaptive-{n}": (n, _PURPLE, "D", "Laplace, adaptive") for n in (10, 100)},
    "R3-events-four-times": (10, VERMILLION, "X", "randomised response, n = 40"),
}
"""The panel, colour, marker and label of each case of measured events."""


def boundary_figure(entries: Sequence[Entry], *, epsilon: float, folds: Sequence[int]) -> Figure:
    """Draw p against q with the boundary of Proposition 4 and the measured events, one panel for each n.

    The thin line is exact: the best events of n randomised responses, which lose the most of all ε-DP mechanisms.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    panels = dict(zip(folds, figure.subplots(1, len(folds), sharey=True), strict=True))
    q = np.geomspace(1e-4, 1, 400)
    for n, axes in panels.items():
        axes.plot(q, NFoldComposition(epsilon, n).max_power(q)[0], color=_BLACK, linewidth=1.3, label="Proposition 4")
        distributions = [RandomisedResponseFold(epsilon, n).distribution(bit) for bit in (1, 0)]
        sums = [np.cumsum(distribution.probabilities) for distribution in distributions]
        axes.plot(*sums, color=BLUE, linewidth=0.8, label="best events of randomised response, exact")
        axes.plot(q, q, color=GREY, linewidth=1.0, linestyle=":", label="p = q")
    for entry in entries:
        if entry.name in EVENTS and isinstance(entry.result, StatementResult):
            n, colour, marker, label = EVENTS[entry.name]
            _events(panels[n], entry.result, colour, marker, label)
    for n, axes in panels.items():
        axes.set(xscale="log", yscale="log", xlim=(1e-4, 1.2), ylim=(1e-4, 1.2), xlabel=f"q, at ε = {epsilon:g} each")
        axes.set_title(f"n = {n}", fontsize=10)
        axes.spines[["right", "top"]].set_visible(False)
    panels[folds[0]].set_ylabel("p")
    found = [axes.get_legend_handles_labels() for axes in panels.values()]
    labels = {label: handle for each in found for handle, label in zip(*each, strict=True)}
    figure.legend(labels.values(), labels.keys(), frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    return figure


def group_figure(entries: Sequence[Entry], *, epsilon: float, delta: float) -> Figure:
    """Draw epsilon at delta 0, and delta at k·epsilon, against the distance k: claims and lower bounds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    pure, approximate = figure.subplots(1, 2)
    steps = np.arange(1, 9)
    pure.plot(steps, epsilon * steps, color=_BLACK, linewidth=1.2, label="kε")
    _lower_bounds(pure, entries, "D7-laplace", BLUE, "s", "Laplace")
    _lower_bounds(pure, entries, "D7-local-sensitivity", VERMILLION, "X", "sensitivity of one step only")
    pure.set_ylim(0, 1.4 * epsilon * 8)  # room for the legend
    pure.set_ylabel("epsilon")
    sums, products = ([group_delta(epsilon, delta, int(k), form) for k in steps] for form in ("sum", "product"))
    for values, style, colour, label in (
        (sums, "-", _BLACK, r"$\delta\,(e^{k\epsilon}-1)/(e^{\epsilon}-1)$"),
        (products, DASHED, _BLACK, r"$k\,e^{(k-1)\epsilon}\,\delta$"),
        (delta * steps, ":", GREY, "kδ, which is false"),
    ):
        width = 1.0 if colour == GREY else 1.2
        approximate.plot(steps, values, color=colour, linewidth=width, linestyle=style, label=label)
    _lower_bounds(approximate, entries, "D7-tight", BLUE, "s", "a tight mechanism")
    _lower_bounds(approximate, entries, "D7-gaussian", GREEN, "o", "Gaussian noise")
    approximate.set_yscale("log")
    approximate.set_ylim(delta / 3, 30 * products[-1])
    approximate.set_ylabel("delta at kε")
    for axes in (pure, approximate):
        axes.set_xlabel(f"distance k; ε = {epsilon:g}" + (f", δ = {delta:g}" if axes is approximate else ""))
        _finish(axes)
    return figure


def composition_figure(entries: Sequence[Entry], *, epsilon: float, slack: float) -> Figure:
    """Draw the epsilon of k composed mechanisms at a small delta, and of a group of k at delta 0, against k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.0), layout="constrained")
    axes = figure.add_subplot()
    k = np.geomspace(1, 64, 61)
    axes.plot(k, epsilon * k, color=_BLACK, linewidth=1.2, label="kε")
    advanced = [advanced_composition(epsilon, 0.0, int(folds), slack)[0] for folds in range(1, 65)]
    axes.plot(range(1, 65), advanced, color=_BLACK, linewidth=1.0, linestyle=DASHED, label="advanced composition")
    axes.plot(k, epsilon * np.sqrt(k), color=GREY, linewidth=1.0, linestyle=":", label="√k ε")
    _lower_bounds(axes, entries, "D8-distance", VERMILLION, "X", "a group of k (Laplace)")
    _lower_bounds(axes, entries, "D8-composed", BLUE, "s", f"k runs at δ = {slack:g} (randomised response)")
    axes.set_xscale("log", base=2)
    ticks = [1, 2, 4, 8, 16, 32, 64]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_yscale("log")
    axes.set_ylim(epsilon / 2, 640 * epsilon)
    axes.set_xlabel(f"k; ε = {epsilon:g} each")
    axes.set_ylabel("epsilon")
    _finish(axes)
    return figure


def _events(axes: Axes, result: StatementResult, colour: str, marker: str, label: str) -> None:
    """Draw the point (q, p) of every event with both intervals; the result lists q and p of each event in turn."""
    on_y, on_x = result.points[::2], result.points[1::2]
    sides = [np.array([(point.estimate, point.lower, point.upper) for point in points]).T for points in (on_y, on_x)]
    (q, p), (q_bars, p_bars) = (
        [middle for middle, _, _ in sides],
        [np.stack([middle - low, high - middle]) for middle, low, high in sides],
    )
    axes.errorbar(
        q, p, xerr=q_bars, yerr=p_bars, fmt=marker, color=colour, markersize=5, linewidth=0.9, label=label,
        **_WHITE_EDGE,
    )  # fmt: skip


def _lower_bounds(axes: Axes, entries: Sequence[Entry], name: str, colour: str, marker: str, label: str) -> None:
    """Draw the lower bound of each case `name`-k at k, with a line up to its exact value."""
    found = []
    for entry in entries:
        match = re.fullmatch(rf"{name}-(\d+)", entry.name)
        if match and isinstance(entry.result, AuditResult) and entry.result.bound > 0:
            found.append((int(match[1]), entry.result.bound))
            if entry.exact is not None:
                axes.plot([found[-1][0]] * 2, [found[-1][1], entry.exact], color=colour, linewidth=0.8)
    axes.plot(*zip(*found, strict=True), marker, color=colour, markersize=5, label=f"{label}, lower bound",
              **_WHITE_EDGE)  # fmt: skip


def _finish(axes: Axes) -> None:
    axes.spines[["right", "top"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8)
