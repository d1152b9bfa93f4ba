"""Lower bound and smallest detectable excess of an audit against the number of runs.

The audit measures one point of each curve. The rest is a projection: the distance of the bound from the estimate, and
that of the detectable strength from the claim, shrink as 1/√runs. The drawing is written without matplotlib, because a
long report has one for each audit.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Final

from ...audit.claims.claim import GroupClaim
from ...audit.printing import rounded_down
from ...audit.records.suite import Checked
from ...audit.results.audit_result import Verdict
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ..plain_text import detectable, lower_limit, number, symbol, visible
from .figure_style import BLUE, COLOUR, style_class, themed

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 389.0, 170.0, 50.0, 371.0, 24.0, 132.0
_SPAN: Final = 16.0  # the axis runs from a sixteenth of the runs to sixteen times as many
_STEPS: Final = 32
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What an audit would state after other numbers of runs."""

    runs: int  # of the audit, or canaries
    unit: str  # "runs" or "canaries"
    letter: str  # of the claim's strength
    verdict: Verdict
    claimed: float
    bound: float
    estimate: float  # NaN or infinite where the curve is not drawn
    excess: float  # the same

    def bound_after(self, runs: float) -> float:
        """Projected lower bound if the observed frequencies stay the same; NaN without a positive bound and estimate.

        A bound of 0 is cut off there, so its distance from the estimate is unknown.
        """
        if not 0.0 < self.bound <= self.estimate < math.inf:
            return math.nan
        return max(self.estimate - (self.estimate - self.bound) * math.sqrt(self.runs / runs), 0.0)

    def detected_after(self, runs: float) -> float:
        """Projected smallest strength that is detected; NaN if none is stated."""
        return self.claimed + self.excess * math.sqrt(self.runs / runs) if self.excess < math.inf else math.nan

    @property
    def label(self) -> str:
        """The figure for screen readers."""
        later, letter = 4 * self.runs, self.letter
        text = f"Lower bound on {letter} by number of {self.unit}: {lower_limit(self.bound, self.claimed)} after "
        text += f"{self.runs:,}, claimed {number(self.claimed)}"
        if not math.isnan(bound := self.bound_after(later)):
            text += f"; projected after {later:,}: {number(rounded_down(bound))}"
        if not math.isnan(detected := self.detected_after(later)):
            text += f"; smallest detectable {letter} {number(self.claimed + self.excess)}, projected after {later:,}: "
            text += number(detected)
        return f"{text}."

    @property
    def caption(self) -> str:
        """Text below the figure."""
        marker = f"Marker: the lower bound of this audit after {self.runs:,} {self.unit}."
        curves = []
        if not math.isnan(self.bound_after(self.runs)):
            curves.append("the lower bound if the observed frequencies stay the same")
        if not math.isnan(self.detected_after(self.runs)):
            curves.append("the claim plus the smallest detectable excess")
        if not curves:
            return f"{marker} No curve, because the bound is 0 or the estimate is infinite or unknown."
        return (
            f"{marker} Dashed, projected as 1/√{self.unit} to other numbers: {' and '.join(curves)}. "
            "Projections are not bounds, because the frequencies have sampling error."
        )


def projection_of(result: Checked) -> Projection | None:
    """The numbers of the figure; None for a statement, and after a failed health check, which leaves no bound."""
    if isinstance(result, StatementResult) or result.findings:
        return None
    is_training = isinstance(result, CanaryResult)
    claim = result.directed_claim
    excess = detectable(result)
    return Projection(
        runs=result.canaries if isinstance(result, CanaryResult) else result.runs,
        unit="canaries" if is_training else "runs",
        letter=visible(symbol(claim.strength_name), 20) + " per step" * isinstance(claim, GroupClaim),
        verdict=result.verdict,
        claimed=claim.strength,
        bound=result.bound,
        estimate=math.nan if isinstance(result, CanaryResult) else result.estimate,
        excess=math.nan if excess is None or result.is_refuted else excess,
    )


def runs_svg(shown: Projection, *, sheet: dict[str, str] | None = None) -> str:
    """Return the figure as an `<svg>` element, with its styles in `sheet` if there is one."""
    low, high = _ends(shown)

    def place(runs: float, value: float) -> Point:
        along = math.log(_SPAN * runs / shown.runs) / (2.0 * math.log(_SPAN))
        return _LEFT + (_RIGHT - _LEFT) * along, _BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low)

    def curve(after: list[Point]) -> str:
        points = [place(runs, value) for runs, value in after if low <= value <= high]  # not NaN
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if len(points) > 1 else ""

    grid = [shown.runs * _SPAN ** (2.0 * step / _STEPS - 1.0) for step in range(_STEPS + 1)]
    bounds = curve([(runs, shown.bound_after(runs)) for runs in grid])
    detected = curve([(runs, shown.detected_after(runs)) for runs in grid])
    pen = _Pen(sheet)
    x, y = place(shown.runs, shown.bound)
    _, claim = place(shown.runs, shown.claimed)
    colour = COLOUR[shown.verdict]
    parts = [
        pen.path(f"M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}", "fill: none; stroke: #000000; stroke-width: 0.6"),
        pen.path(
            f"M{_LEFT} {claim:.1f}H{_RIGHT}", "fill: none; stroke: #000000; stroke-width: 1; stroke-dasharray: 1,1.65"
        ),
        *([pen.path(bounds, _PROJECTED)] if bounds else []),
        *([pen.path(detected, _DASHED)] if detected else []),
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"{pen.attribute(f"fill: {colour}; stroke: #ffffff")}/>',
    ]
    for value in _ticks(low, high):
        _, at = place(shown.runs, value)
        parts.append(pen.text(_LEFT - 5, at + 3, number(value), "end"))
    for runs in (shown.runs / 10, shown.runs, shown.runs * 10):
        at, _ = place(runs, low)
        parts.append(pen.path(f"M{at:.1f} {_BOTTOM}v3", "fill: none; stroke: #000000; stroke-width: 0.6"))
        parts.append(pen.text(at, _BOTTOM + 14, f"{runs:,.0f}", "middle"))
    axis = "canaries" if shown.unit == "canaries" else "runs on each dataset"
    parts.append(pen.text((_LEFT + _RIGHT) / 2, _BOTTOM + 30, f"{axis} (logarithmic)", "middle"))
    parts.append(pen.text(0.0, 12.0, html.escape(shown.letter), "start"))
    parts += _legend(pen, colour, bool(bounds), bool(detected))
    style = "" if sheet is not None else ' style="font-family: sans-serif"'
    opening = (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="100%" role="img" aria-label="{html.escape(shown.label)}"'
    )
    return f"{opening}{style}>{''.join(parts)}</svg>"


_DASHED: Final = "fill: none; stroke: #757575; stroke-width: 1.4; stroke-dasharray: 5,2"
_PROJECTED: Final = f"fill: none; stroke: {BLUE}; stroke-width: 1.4; stroke-dasharray: 5,2"  # a solid line is a bound


class _Pen:
    """Writes elements with classes of a sheet, or with their own style."""

    def __init__(self, sheet: dict[str, str] | None) -> None:
        self._sheet = sheet

    def attribute(self, style: str) -> str:
        if self._sheet is None:
            return f' style="{style}"'
        style = themed(style)
        self._sheet[style_class(style)] = style
        return f' class="{style_class(style)}"'

    def path(self, d: str, style: str) -> str:
        return f'<path d="{d}"{self.attribute(style)}/>'

    def text(self, x: float, y: float, text: str, anchor: str) -> str:
        style = self.attribute(f"font-size: 8.5px; text-anchor: {anchor}")
        return f'<text x="{x:.1f}" y="{y:.1f}"{style}>{text}</text>'


def _legend(pen: _Pen, colour: str, has_bounds: bool, has_detected: bool) -> list[str]:
    keys = [
        *([(_PROJECTED, "projected bound", 74.0)] if has_bounds else []),
        ("fill: none; stroke: #000000; stroke-width: 1; stroke-dasharray: 1,1.65", "claim", 28.0),
        *([(_DASHED, "claim + projected excess", 0.0)] if has_detected else []),
    ]
    parts = [
        f'<circle cx="{_LEFT - 10.0:g}" cy="9" r="3.5"{pen.attribute(f"fill: {colour}; stroke: #ffffff")}/>',
        pen.text(_LEFT - 2.0, 12.0, "lower bound", "start"),
    ]
    at = _LEFT + 58.0
    for style, name, width in keys:
        parts += [pen.path(f"M{at:g} 9h14", style), pen.text(at + 18, 12.0, name, "start")]
        at += width + 18
    return parts


def _ends(shown: Projection) -> tuple[float, float]:
    """Ends of the vertical axis: claim and bound, and the curves as far as they stay near these."""
    near = [shown.claimed, shown.bound, *([shown.estimate] if shown.estimate < math.inf else [])]
    farthest = 3.0 * max(near) or 1.0
    curves = [
        value
        for runs in (shown.runs / _SPAN, shown.runs * _SPAN)
        for value in (shown.bound_after(runs), shown.detected_after(runs))
        if value <= farthest  # not NaN
    ]
    low, high = min(*near, *curves), max(*near, *curves)
    room = max(0.12 * (high - low) or 0.1 * high, 1e-290)
    return max(low - room, 0.0), high + room


def _ticks(low: float, high: float) -> list[float]:
    """Two to six round numbers between the ends."""
    size = high - low
    if not max(1e-12 * high, 1e-280) < size < 1e300:
        return [low, high]
    step: float = 10.0 ** math.floor(math.log10(size / 2.0))
    step *= next((factor for factor in (1.0, 2.0, 5.0) if factor * step * 5 >= size), 10.0)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
