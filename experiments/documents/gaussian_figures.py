"""How far miscalibrated normal noise is from the calibrated one, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...audit.records.suite import Entry
from ...audit.results.statement_result import StatementResult
from ...mechanisms.faulty import MisprintedNewtonGaussian, OneForEpsilonGaussian, VarianceAsScaleGaussian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DELTA: Final = 1e-5
_BLUE, _VERMILLION, _GREEN, _GREY, _BLACK = "#0072B2", "#D55E00", "#009E73", "#757575", "#111111"  # Okabe & Ito (2008)
_SEEN: Final = {  # where each measured case belongs
    "G3-scale-one-for-epsilon-at-0.5": (0.5, _VERMILLION),
    "G3-scale-one-for-epsilon-at-1": (1.0, _VERMILLION),
    "G3-scale-one-for-epsilon-at-1.1": (1.1, _VERMILLION),
    "G3-scale-one-for-epsilon-at-2": (2.0, _VERMILLION),
    "G3-scale-one-for-epsilon-at-4": (4.0, _VERMILLION),
    "G3-scale-newton": (1.0, _GREEN),
    "G3-scale-variance-over": (1.0, _BLUE),
    "G3-scale-at-0.5": (0.5, _BLACK),
    "G3-scale-at-1.1": (1.1, _BLACK),
    "G3-scale-at-2": (2.0, _BLACK),
}


def scales_figure(entries: Sequence[Entry]) -> Figure:
    """Standard deviation over the calibrated one against epsilon, exact as lines and measured as points, at delta 1e-5.

    Below the line at 1 the claim is broken; above it noise is wasted.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    epsilons = np.concatenate([np.geomspace(0.1, 1.1, 40), np.geomspace(1.15, 10, 24)])
    for kind, colour, label in (
        (OneForEpsilonGaussian, _VERMILLION, "√(χ² + 1) for √(χ² + ε)"),
        (MisprintedNewtonGaussian, _GREEN, "misprinted derivative"),
        (VarianceAsScaleGaussian, _BLUE, "variance for standard deviation"),
    ):
        twins = [kind(float(epsilon), _DELTA) for epsilon in epsilons]
        axes.plot(epsilons, [twin.scale / twin.right_scale for twin in twins], color=colour, linewidth=1.3, label=label)
    axes.axhline(1, color=_BLACK, linewidth=1.0, label="calibrated")
    for entry in entries:
        if entry.name in _SEEN and isinstance(entry.result, StatementResult):
            epsilon, colour = _SEEN[entry.name]
            point = entry.result.points[0]
            middle, low, high = (value / point.low for value in (point.estimate, point.lower, point.upper))
            axes.errorbar(
                [epsilon], [middle], yerr=[[middle - low], [high - middle]], fmt="o", color=colour, markersize=4.5,
                markeredgecolor="white", markeredgewidth=0.6, capsize=2,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("epsilon claimed, at delta 1e-5 and sensitivity 1")
    axes.set_ylabel("standard deviation / calibrated")
    axes.set_ylim(0.4, 40)
    for text, place in (("more noise than needed", 0.97), ("less noise than claimed", 0.03)):
        axes.text(0.99, place, text, transform=axes.transAxes, ha="right", va="top" if place > 0.5 else "bottom",
                  fontsize=8.5, color=_GREY)  # fmt: skip
    axes.spines[["right", "top"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5)
    return figure
