"""Figures of cell counts: likelihood ratios, privacy profile, trade-off curve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ...audit.claims.claim import Claim
from ...audit.inference.confidence_bands import concave_hull
from ...audit.results.cell_result import CellCounts
from .figure_style import DASHED, ink, legible, name_rows, sides
from .interval_marks import draw_intervals, window
from .output_figures import claimed_epsilon, draw_claimed_epsilon, is_pure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Curves of a claim: the boundary of its trade-off curve, and the privacy profile.

Array = npt.NDArray[np.float64]

_LOG_ODDS = np.linspace(-28.0, 12.0, 161)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedCurve:
    """Concave increasing curve that bounds the power of every test under the claim, by false-positive rate."""

    rate: Array
    power: Array

    @classmethod
    def of(cls, claim: Claim) -> ClaimedCurve:
        """Return the vertices of a polygon just outside the claim's boundary; exact for few straight pieces.

        Between two points of a concave curve, the extended chords on either side meet above the curve.
        """
        rates = expit(_LOG_ODDS)
        powers = claim.max_power(rates, expit(-_LOG_ODDS))[0]
        inner = concave_hull([0.0, *rates], [float(claim.max_power(0.0)[0]), *powers])
        more = _meetings(*inner)[0]  # refine where the boundary bends most
        inner = concave_hull(np.append(inner[0], more), np.append(inner[1], claim.max_power(more)[0]))
        rate, power = (np.concatenate(parts) for parts in zip(inner, _meetings(*inner), strict=True))
        order = np.argsort(rate, kind="stable")
        return cls(rate[order], np.maximum.accumulate(power[order]))

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """Return δ(ε) = sup of p − e^ε q over the curve, the smallest δ at which the claim implies (ε, δ)-DP."""
        factor = np.exp(np.asarray(epsilon, dtype=np.float64))[..., None]
        found: Array = (self.power - factor * self.rate).max(axis=-1)
        return found.clip(0.0, 1.0)


def _meetings(rate: Array, power: Array) -> tuple[Array, Array]:
    """Points where the chords on either side of each inner piece of a concave polygon meet."""
    slope = np.diff(power) / np.diff(rate)
    before, after = slope[:-2], slope[2:]
    left, right, low, high = rate[1:-2], rate[2:-1], power[1:-2], power[2:-1]
    bend = before - after
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = left + (high - low - after * (right - left)) / bend
    meet = np.where(bend > 0, np.clip(meet, left, right), left)
    return meet, np.minimum(low + before * (meet - left), 1.0)


MOST_NAMES = 40
"""Largest number of named rows."""

_LARGEST_EPSILON, _LEAST_DELTA = 30.0, 1e-12
_POINTS = 61  # of a curve
_WAYS: Final = (("x against y", "-"), ("y against x", DASHED))
_BAND = "band (upper end: these cells only)"


def are_outcomes(cells: CellCounts) -> bool:
    """Whether each cell but the last is a single outcome."""
    return cells.names[-1] == "any other outcome"


def draw_ratios(axes: Axes, cells: CellCounts, claim: Claim | None) -> None:
    """Draw a row for each cell: its log ratio, a simultaneous interval, and ±ε of a claim that has an epsilon.

    An interval beyond ±ε contradicts a pure claim and is marked; it need not contradict a claim with a delta.
    """
    epsilon = claimed_epsilon(claim)
    found = cells.ratios()
    seen = np.array(cells.hits_x) + np.array(cells.hits_y) > 0  # a cell without hits has no information
    lower, observed, upper = found.lower[seen], found.observed[seen], found.upper[seen]
    reach = max(np.abs(window(lower, observed, upper, 0.1, epsilon or 0.1)))
    outside = np.zeros(len(lower), dtype=np.bool_)
    if epsilon is not None and is_pure(claim):
        outside = (lower > epsilon) | (upper < -epsilon)
    rows = np.arange(len(lower), dtype=np.float64)
    labels = ("interval", "interval outside the claim")
    ends = (-reach, reach)
    draw_intervals(axes, rows, (lower, observed, upper), ends, outside=outside, sideways=True, labels=labels)
    draw_claimed_epsilon(axes, epsilon, across=False)
    names = [
        legible(name.removeprefix("output in "), 30) for name, is_seen in zip(cells.names, seen, strict=True) if is_seen
    ]
    name_rows(axes, names if len(names) <= MOST_NAMES else [""] * len(names))
    axes.set_xlim(ends)
    axes.set_xlabel("ln(x / y) of each cell")
    axes.set_ylabel("" if are_outcomes(cells) else "output in")


def draw_profile(axes: Axes, cells: CellCounts, claim: Claim | None) -> None:
    """Draw δ(ε) in both directions with its band, and the curve of the claim."""
    reverse = replace(cells, hits_x=cells.hits_y[::-1], hits_y=cells.hits_x[::-1])
    bands = (cells.band(), reverse.band())  # from the same intervals, which hold together
    curves = claimed_curves(claim)
    floor = 0.5 / max(cells.runs_x, cells.runs_y)
    fine = np.linspace(0.0, _LARGEST_EPSILON, 1501)
    claimed = [curve.profile(fine) for curve in curves]
    tails = [float(delta[-1]) for delta in claimed if delta[-1] > _LEAST_DELTA]
    seen = [band.profile(fine)[0] for band in bands] + [delta - delta[-1] for delta in claimed]
    alive = np.max(seen, axis=0) > floor
    crossing = int(alive.sum())  # all curves decrease
    epsilon = np.linspace(0.0, min(1.25 * max(float(fine[min(crossing, 1500)]), 0.1), _LARGEST_EPSILON), _POINTS)
    bottom = min([floor, *(tail / 3 for tail in tails)])
    for band, (label, style), colour in zip(bands, _WAYS, sides(), strict=True):
        _draw_band(axes, epsilon, band.profile(epsilon), colour, style, label, bottom / 10)
    for curve, style in zip(curves, ("-", DASHED), strict=False):
        # A claim's curve may drop to 0, which needs a finer step.
        at = np.union1d(epsilon, fine[max(crossing - 15, 0) : crossing + 2])
        at = at[at <= epsilon[-1]]
        delta = curve.profile(at).clip(bottom / 10)
        label = "claimed" if style == "-" else "claimed, y against x"
        axes.plot(at, delta, color=ink(), linewidth=1.2, linestyle=style, label=label)
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(0, epsilon[-1])
    axes.set_ylim(bottom, 1)
    axes.set_xlabel("ε")
    axes.set_ylabel("δ(ε)")


def draw_trade_off(axes: Axes, cells: CellCounts, claim: Claim | None) -> None:
    """Draw the largest power at each false-positive rate for x against y, with its band, and the claim's curve."""
    rate = np.linspace(0.0, 1.0, _POINTS)
    label, style = _WAYS[0]
    axes.plot([0, 1], [0, 1], color=ink(), linewidth=0.6, alpha=0.5)
    _draw_band(axes, rate, cells.band().trade_off(rate), sides()[0], style, label, 0.0)
    for curve in claimed_curves(claim)[:1]:
        axes.plot(curve.rate, curve.power, color=ink(), linewidth=1.2, label="claimed")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("false-positive rate (on y)")
    axes.set_ylabel("power (on x)")


def claimed_curves(claim: Claim | None) -> list[ClaimedCurve]:
    """Curves of the claim for x against y and, if different, for y against x."""
    if claim is None:
        return []
    other = claim.reversed()
    return [ClaimedCurve.of(claim)] + ([] if other == claim else [ClaimedCurve.of(other)])


def _draw_band(
    axes: Axes, at: Array, band: tuple[Array, Array, Array], colour: str, style: object, label: str, least: float
) -> None:
    lower, estimate, upper = (part.clip(least) for part in band)
    axes.plot(at, estimate, color=colour, linestyle=style, label=label)
    label_once = _BAND if style == "-" else None
    axes.fill_between(at, lower, upper, color=colour, alpha=0.2, linewidth=0, label=label_once)
