"""The boundary of Proposition 4 with measured probabilities of events, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...audit.claims.mironov_propositions import NFoldComposition
from ...audit.records.suite import Entry
from ...audit.results.statement_result import StatementResult
from ...mechanisms import RandomisedResponseFold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _VERMILLION, _GREEN, _PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"  # Okabe & Ito (2008)
_GREY, _BLACK = "#757575", "#111111"
_SEEN: Final = {  # where each measured case belongs, and how it is shown
    "R3-events-response-1": (1, _BLUE, "o", "randomised response"),
    "R3-events-response-10": (10, _BLUE, "o", "randomised response"),
    "R3-events-response-100": (100, _BLUE, "o", "randomised response"),
    "R3-events-laplace-1": (1, _GREEN, "s", "Laplace"),
    "R3-events-laplace-10": (10, _GREEN, "s", "Laplace"),
    "R3-events-laplace-100": (100, _GREEN, "s", "Laplace"),
    "R3-events-adaptive-10": (10, _PURPLE, "D", "Laplace, adaptive"),
    "R3-events-adaptive-100": (100, _PURPLE, "D", "Laplace, adaptive"),
    "R3-events-four-times": (10, _VERMILLION, "X", "randomised response, n = 40"),
}


def boundary_figure(entries: Sequence[Entry], *, epsilon: float, folds: Sequence[int]) -> Figure:
    """p against q on logarithmic axes for n = 1, 10 and 100: the boundary as a line, measured events with intervals.

    The thin line is exact: the best events of n randomised responses, which lose most of all epsilon-DP mechanisms.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    panels = dict(zip(folds, figure.subplots(1, len(folds), sharey=True), strict=True))
    q = np.geomspace(1e-4, 1, 400)
    for n, axes in panels.items():
        axes.plot(q, NFoldComposition(epsilon, n).max_power(q)[0], color=_BLACK, linewidth=1.3, label="Proposition 4")
        laws = [RandomisedResponseFold(epsilon, n).law(bit) for bit in (1, 0)]
        sums = [np.cumsum(law.probabilities) for law in laws]
        axes.plot(*sums, color=_BLUE, linewidth=0.8, label="best events of randomised response, exact")
        axes.plot(q, q, color=_GREY, linewidth=1.0, linestyle=":", label="p = q")
    for entry in entries:
        if entry.name in _SEEN and isinstance(entry.result, StatementResult):
            n, colour, marker, label = _SEEN[entry.name]
            _events(panels[n], entry.result, colour, marker, label)
    for n, axes in panels.items():
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(1e-4, 1.2)
        axes.set_ylim(1e-4, 1.2)
        axes.set_title(f"n = {n}", fontsize=10)
        axes.set_xlabel(f"q, at ε = {epsilon:g} each")
        axes.spines[["right", "top"]].set_visible(False)
    panels[folds[0]].set_ylabel("p")
    labels = {
        label: handle
        for axes in panels.values()
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(labels.values(), labels.keys(), frameon=False, fontsize=8, loc="outside lower center", ncols=4)
    return figure


def _events(axes: Axes, result: StatementResult, colour: str, marker: str, label: str) -> None:
    """Of every event the point (q, p) with both intervals; the numbers come in this order."""
    on_y, on_x = result.points[::2], result.points[1::2]
    sides = [np.array([(point.estimate, point.lower, point.upper) for point in points]).T for points in (on_y, on_x)]
    (q, p), (q_bars, p_bars) = (
        [middle for middle, _, _ in sides],
        [np.stack([middle - low, high - middle]) for middle, low, high in sides],
    )
    axes.errorbar(
        q, p, xerr=q_bars, yerr=p_bars, fmt=marker, color=colour, markersize=5, markeredgecolor="white",
        markeredgewidth=0.5, linewidth=0.9, label=label,
    )  # fmt: skip
