"""Group privacy and composition as figures: bounds as lines, measured lower bounds as points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult
from ...mechanisms import advanced_composition, group_delta
from ...mechanisms.composition.group_privacy import Form

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _VERMILLION, _GREEN, _GREY, _BLACK = "#0072B2", "#D55E00", "#009E73", "#757575", "#111111"  # Okabe & Ito (2008)
_DASHED: Final = (0, (4, 1.5))
_FORMS: Final[tuple[Form, Form]] = ("sum", "product")


def group_figure(entries: Sequence[Entry], *, epsilon: float, delta: float) -> Figure:
    """Epsilon at delta 0, and delta at k·epsilon, against the distance k: what is claimed and what leaks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    pure, approximate = figure.subplots(1, 2)
    steps = np.arange(1, 9)
    pure.plot(steps, epsilon * steps, color=_BLACK, linewidth=1.2, label="kε")
    _points(pure, entries, "D7-laplace", _BLUE, "s", "Laplace")
    _points(pure, entries, "D7-local-sensitivity", _VERMILLION, "X", "sensitivity of one step only")
    pure.set_ylim(0, 1.4 * epsilon * 8)  # room for the legend
    pure.set_ylabel("epsilon")
    sums, products = ([group_delta(epsilon, delta, int(k), form) for k in steps] for form in _FORMS)
    approximate.plot(steps, sums, color=_BLACK, linewidth=1.2, label=r"$\delta\,(e^{k\epsilon}-1)/(e^{\epsilon}-1)$")
    approximate.plot(
        steps, products, color=_BLACK, linewidth=1.2, linestyle=_DASHED, label=r"$k\,e^{(k-1)\epsilon}\,\delta$"
    )
    approximate.plot(steps, delta * steps, color=_GREY, linewidth=1.0, linestyle=":", label="kδ, which is false")
    _points(approximate, entries, "D7-tight", _BLUE, "s", "a tight mechanism")
    _points(approximate, entries, "D7-gaussian", _GREEN, "o", "normal noise")
    approximate.set_yscale("log")
    approximate.set_ylim(delta / 3, 30 * products[-1])
    approximate.set_ylabel("delta at kε")
    for axes in (pure, approximate):
        axes.set_xlabel(f"distance k; ε = {epsilon:g}" + (f", δ = {delta:g}" if axes is approximate else ""))
        _finish(axes)
    return figure


def composition_figure(entries: Sequence[Entry], *, epsilon: float, slack: float) -> Figure:
    """Epsilon of k mechanisms together at a small delta, and of a group of k without one, against k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 4.0), layout="constrained")
    axes = figure.add_subplot()
    k = np.geomspace(1, 64, 61)
    axes.plot(k, epsilon * k, color=_BLACK, linewidth=1.2, label="kε")
    advanced = [advanced_composition(epsilon, 0.0, int(folds), slack)[0] for folds in range(1, 65)]
    axes.plot(range(1, 65), advanced, color=_BLACK, linewidth=1.0, linestyle=_DASHED, label="advanced composition")
    axes.plot(k, epsilon * np.sqrt(k), color=_GREY, linewidth=1.0, linestyle=":", label="√k ε")
    _points(axes, entries, "D8-distance", _VERMILLION, "X", "a group of k (Laplace)")
    _points(axes, entries, "D8-composed", _BLUE, "s", f"k runs at δ = {slack:g} (randomised response)")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axes.set_yscale("log")
    axes.set_ylim(epsilon / 2, 640 * epsilon)
    axes.set_xlabel(f"k; ε = {epsilon:g} each")
    axes.set_ylabel("epsilon")
    _finish(axes)
    return figure


def _points(axes: Axes, entries: Sequence[Entry], name: str, colour: str, marker: str, label: str) -> None:
    """The lower bound of each case called `name` and a number, at that number, under its exact value."""
    found = []
    for entry in entries:
        match = re.fullmatch(rf"{name}-(\d+)", entry.name)
        if match and isinstance(entry.result, AuditResult):
            found.append((int(match[1]), entry.result.bound, entry.exact))
    for k, bound, exact in found:
        if exact is not None and bound > 0:
            axes.plot([k, k], [bound, exact], color=colour, linewidth=0.8)
    seen = [(k, bound) for k, bound, _ in found if bound > 0]
    axes.plot(*zip(*seen, strict=True), marker, color=colour, markersize=5, markeredgecolor="white",
              markeredgewidth=0.6, label=f"{label}, lower bound")  # fmt: skip


def _finish(axes: Axes) -> None:
    axes.spines[["right", "top"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
