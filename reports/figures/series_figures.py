"""Figures over runs, distances, guesses and stated places: bounds of audits, and numbers of statements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.canaries.canary_tests import has_lines, refuted_strength
from ...audit.claims.claim import Claim, GaussianDP, GroupClaim, PureDP
from ...audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from ...audit.printing import rounded_down
from ...audit.records.suite import Checked, Entry, Suite
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.canary_result import CanaryResult, ScoreSketch
from ...audit.results.statement_result import Point, Series, StatementResult
from ..plain_text import detectable, lower_limit, number, symbol, visible
from .figure_style import BLUE, COLOUR, DASHED, EVENT, GREY, MARKER, draw_intervals, ink, legible, sides, window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

# Running lower bound of a sequential audit.

_WHY: Final = {
    "refuted": "refuted after {} runs",
    "runs": "all {} runs done",
    "time": "time limit after {} runs",
    "request": "stopped on request after {} runs",
}


def stopped(result: AuditResult) -> str:
    """Say when and why the audit stopped."""
    return _WHY.get(result.stopped or "", "last interim analysis after {} runs").format(f"{result.looks[-1].runs:,}")


def draw_bound(axes: Axes, result: AuditResult) -> None:
    """Draw the bound against the runs, the claim, and the point and reason of stopping."""
    claim = result.directed_claim
    runs = np.array([look.runs for look in result.looks], dtype=np.float64)
    bounds = np.array([look.bound for look in result.looks], dtype=np.float64)
    claimed = claim.strength
    top = window(0.0, bounds, claimed, 0.1, room=0.12)[1]
    axes.step(runs, np.minimum(bounds, top), where="post", color=sides()[0], label="running lower bound")
    _draw_claim_and_bound(axes, runs, claimed, (runs[-1], min(bounds[-1], top)), result.verdict, stopped(result))
    axes.set_ylim(0, top if math.isfinite(top) else 1)
    axes.set_xlabel("runs on each dataset")
    axes.set_ylabel(legible(_letter(claim)))


def _draw_claim_and_bound(
    axes: Axes, numbers: Array, claimed: float, bound: tuple[float, float], verdict: Verdict, label: str
) -> None:
    """Draw the claim and a marker for the bound over a logarithmic axis of the numbers."""
    axes.axhline(claimed, color=ink(), linewidth=1.0, linestyle=":", label=legible(f"claimed {number(claimed)}"))
    axes.plot(
        *bound, MARKER[verdict], color=COLOUR[verdict], markersize=8 if verdict is Verdict.REFUTED else 6,
        linestyle="", clip_on=False, zorder=3, label=label,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    first, last = numbers.min(), numbers.max()
    axes.set_xlim(first / 1.1, max(last, 1.1 * first) * 1.1)


def _letter(claim: Claim) -> str:
    return symbol(claim.strength_name) + " per step" * isinstance(claim, GroupClaim)


# Lower bound and smallest detectable excess of an audit against the number of runs. The audit measures one point of
# each curve. The rest is a projection: the distance of the bound from the estimate, and that of the detectable strength
# from the claim, shrink as 1/√runs.

_SPAN: Final = 16.0  # the axis runs from a sixteenth of the runs to sixteen times as many


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
        letter=visible(_letter(claim), 40),
        verdict=result.verdict,
        claimed=claim.strength,
        bound=result.bound,
        estimate=math.nan if isinstance(result, CanaryResult) else result.estimate,
        excess=math.nan if excess is None or result.is_refuted else excess,
    )


def draw_projection(axes: Axes, shown: Projection) -> None:
    """Draw the bound and the claim, and the projections, dashed because a solid line is a bound."""
    runs = shown.runs * np.geomspace(1.0 / _SPAN, _SPAN, 33)
    bounds, detected = (
        np.array([curve(number) for number in runs.tolist()]) for curve in (shown.bound_after, shown.detected_after)
    )
    near = np.array([shown.claimed, shown.bound, shown.estimate])
    farthest = 3.0 * near[near < math.inf].max() or 1.0  # curves count for the axis as far as they stay near
    low, high = window(near, *(curve[curve <= farthest] for curve in (bounds, detected)), room=0.12)
    for curve, colour, label in (
        (bounds, BLUE, "projected bound"),
        (detected, GREY, "claim + projected excess"),
    ):
        is_near = curve <= high  # not NaN
        if is_near.sum() > 1:
            axes.plot(runs[is_near], curve[is_near], color=colour, linestyle=DASHED, label=label)
    bound = (shown.runs, min(shown.bound, high))
    _draw_claim_and_bound(axes, runs, shown.claimed, bound, shown.verdict, "lower bound")
    axes.set_ylim(max(low, 0.0), high)
    axes.set_xlabel(f"{shown.unit if shown.unit == 'canaries' else 'runs on each dataset'} (logarithmic)")
    axes.set_ylabel(legible(shown.letter))


# Bounds and claims of one mechanism against the distance between the datasets.


def series_by_distance(suite: Suite, *, fewest: int) -> list[list[Entry]]:
    """Group audits of one mechanism under one adjacency at `fewest` distances or more.

    Claims of a group are one claim for groups of rows, or claims of one type given as a function of the distance.
    Lambdas are omitted, because their names do not identify them; so are audits with a failed health check.
    """
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in suite.entries:
        result = entry.result
        if isinstance(result, AuditResult) and not result.findings and result.mechanism != "<lambda>":
            claim, code = result.claim, (result.mechanism, result.provenance, result.pair.adjacency)
            is_grouped = isinstance(claim, GroupClaim)
            base = claim.base if isinstance(claim, GroupClaim) else claim
            if is_grouped or result.pair.distance == 1:
                groups.setdefault((*code, "for groups", str(base)), []).append(entry)
            if not is_grouped:  # an audit at distance 1 may belong to either kind
                groups.setdefault((*code, "by distance", type(base), base.strength_name), []).append(entry)
    return [
        group
        for group in groups.values()
        if len({each.result.pair.distance for each in group if isinstance(each.result, AuditResult)}) >= fewest
    ]


def draw_distances(axes: Axes, entries: Sequence[Entry]) -> None:
    """Draw bound, estimate and exact value of each audit over its distance, with the claim's strength as a line.

    Strengths of claims for groups are per step; ε and μ add up, so their totals are drawn.
    """
    results = [entry.result for entry in entries if isinstance(entry.result, AuditResult)]
    at = np.array([result.pair.distance for result in results])
    factors = np.array([_factor(result.claim) for result in results])
    claimed, bounds, estimates, exact = (
        np.array([math.nan if value is None else value for value in values]) * factors
        for values in (
            [result.claim.strength for result in results],
            [result.bound for result in results],
            [result.estimate for result in results],
            [entry.exact for entry in entries],
        )
    )
    top = window(0.0, claimed, bounds, exact, 0.1)[1]
    order = np.argsort(at, kind="stable")
    axes.plot(at[order], claimed[order], color=ink(), linewidth=1.2, label="claimed")
    axes.vlines(at, bounds.clip(0, top), np.fmin(np.fmax(estimates, bounds), top), colors=ink(), linewidths=0.6)
    axes.plot(at, _within(exact, top), "*", color="none", markeredgecolor=ink(), markersize=10, label="exact")
    axes.plot(at, _within(estimates, top), "o", color=ink(), markersize=3, zorder=4, label="estimate")
    for verdict in Verdict:
        own = np.array([result.verdict is verdict for result in results])
        if own.any():
            axes.plot(
                at[own], bounds[own].clip(0, top), MARKER[verdict], color=COLOUR[verdict], clip_on=False, zorder=3,
                linestyle="", markersize=6, markeredgewidth=0, label=f"lower bound, {verdict.value}",
            )  # fmt: skip
    beyond = at[(bounds > top) | (estimates > top) | (exact > top)]
    axes.plot(beyond, np.full(len(beyond), top), "^", color=ink(), clip_on=False, zorder=2)
    axes.set_xlim(0, window(0.0, at)[1])
    axes.set_ylim(0, top)
    axes.set_xlabel("distance k")
    claim = results[0].claim
    is_whole = all(not isinstance(result.claim, GroupClaim) or _factor(result.claim) > 1 for result in results)
    axes.set_ylabel(legible(symbol(claim.strength_name) + ("" if is_whole else " per step")))


def _within(values: Array, top: float) -> Array:
    return np.where(values <= top, values, math.nan)


def _factor(claim: Claim) -> float:
    """Factor from a strength per step to the strength at the whole distance."""
    if isinstance(claim, GroupClaim) and isinstance(claim.base, (PureDP, GaussianDP)):
        return float(claim.distance)
    return 1.0


# Figures of an audit of a training run: scores of canaries, and lower bounds by number of guesses.

_POINTS, _FEWEST = 16, 8  # numbers of guesses of a curve, and the smallest of them


def draw_scores(axes: Axes, result: CanaryResult, sketch: ScoreSketch) -> None:
    """Draw the histograms of scores in and out, with the guessed scores shaded."""
    edges, of = np.array(sketch.edges), "pairs" if result.coins == "fixed" else "canaries"
    names = ("first in", "second in") if result.coins == "fixed" else ("in", "out")
    for counts, name, colour in zip((sketch.inside, sketch.outside), names, sides(), strict=True):
        axes.stairs(counts, edges, color=colour, fill=True, alpha=0.25, linewidth=0)
        axes.stairs(counts, edges, color=colour, label=f"{of} {name}", linewidth=1.2)
    low, high = sketch.edges[0], sketch.edges[-1]
    guesses = result.best_guesses[0]
    label: str | None = f"{guesses:,} guesses"
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "top", "size": "small"}
    said_in, said_out = (f"guessed {name}" for name in names)
    if sketch.said_out is not None:
        axes.axvspan(low, min(max(sketch.said_out, low), high), label=label, **EVENT)
        axes.text(low, 0.99, f" {said_out}", ha="left", **place)
        label = None
    if sketch.said_in is not None:
        axes.axvspan(max(min(sketch.said_in, high), low), high, label=label, **EVENT)
        axes.text(high, 0.99, f"{said_in} ", ha="right", **place)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.14 * max(*sketch.inside, *sketch.outside, 1))
    axes.set_xlabel("score of the first less that of the second" if result.coins == "fixed" else "score")
    axes.set_ylabel(of)


def draw_guess_bounds(axes: Axes, result: CanaryResult) -> None:
    """Draw the bound that each number of guesses gives alone, what it could give at most, and the claim."""
    numbers, bounds, most = (np.array(each, dtype=np.float64) for each in guess_bounds(result))
    claimed, (guesses, _) = result.claim.strength, result.best_guesses
    top = window(0.0, bounds, most, result.bound, claimed, 0.1, room=0.12)[1]
    alone = {"marker": "o", "markersize": 2.5} if len(numbers) > 1 else {"marker": "o", "linestyle": ""}
    axes.plot(numbers, np.minimum(bounds, top), color=sides()[0], label="so many guesses alone", **alone)
    axes.plot(numbers, np.minimum(most, top), color=GREY, linestyle=DASHED, label="if all of them were right")
    bound = (guesses, min(result.bound, top))
    _draw_claim_and_bound(axes, numbers, claimed, bound, result.verdict, "bound of the audit")
    axes.set_ylim(0, top if math.isfinite(top) else 1)
    axes.set_xlabel("guesses, from the farthest score on")
    axes.set_ylabel(legible(symbol(result.claim.strength_name)))


def guess_bounds(result: CanaryResult) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    """Return numbers of guesses, the bound of each number alone at all of alpha, and its bound if all were right.

    For (ε, δ) and profiles by counts, for other claims by the recursion for trade-off curves.
    """
    return _bounds(result.claim, result.guesses, result.alpha, _numbers(result))


def are_quick(result: CanaryResult) -> bool:
    """Whether the bounds are computed in about a second."""
    return has_lines(result.claim)


def _numbers(result: CanaryResult) -> tuple[int, ...]:
    """Numbers of guesses of the curve; of claims whose tests are slow those that the audit tested."""
    known = result.guesses.numbers
    tested = {test.guesses for test in result.tests} | {result.best_guesses[0]}
    if not has_lines(result.claim):
        return tuple(sorted(tested))
    wanted = np.geomspace(min(_FEWEST, known[-1]), known[-1], _POINTS)
    return tuple(sorted({min(known, key=lambda n: abs(math.log(n / each))) for each in wanted.tolist()} | tested))


@lru_cache(maxsize=64)
def _bounds(
    claim: Claim, guesses: CanaryGuesses, alpha: float, numbers: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    kind = "counts" if has_lines(claim) and not isinstance(claim, GaussianDP) else "f-dp"
    perfect = CanaryGuesses(
        canaries=guesses.canaries,
        numbers=guesses.numbers,
        right=guesses.numbers,
        said=guesses.said,
        probability=guesses.probability,
    )
    tests = [CanaryTest(kind, each, alpha) for each in numbers]  # type: ignore[arg-type]
    found = (tuple(refuted_strength(test, claim, each) for test in tests) for each in (guesses, perfect))
    bounds, most = found
    return numbers, bounds, most


MOST_POINTS = 40
"""Largest number of rows in a figure."""


def draw_series(axes: Axes, series: Series) -> None:
    """Draw estimates with intervals at each place, and the stated curve."""
    columns = (series.x, series.lower, series.estimate, series.upper, series.stated)
    x, lower, estimate, upper, stated = (np.array(column, dtype=np.float64) for column in columns)
    known = np.isfinite(x)
    x, lower, estimate, upper, stated = (column[known] for column in (x, lower, estimate, upper, stated))
    ends = window(lower, estimate, upper, stated)
    axes.plot(x, stated.clip(*ends), color=ink(), linewidth=1.2, label="stated", zorder=2.5)
    labels = ("interval", "interval that excludes the stated value")
    draw_intervals(axes, x, (lower, estimate, upper), ends, outside=are_excluded(series)[known], labels=labels)
    axes.set_xlim(window(x, room=0.04))
    axes.set_ylim(ends)
    axes.set_xlabel(legible(series.x_name, 80))
    axes.set_ylabel(legible(series.y_name))


def are_excluded(series: Series) -> npt.NDArray[np.bool_]:
    """Places where the interval excludes the stated value."""
    lower, upper, stated = (np.array(part, dtype=np.float64) for part in (series.lower, series.upper, series.stated))
    return (lower > stated) | (upper < stated)


def drawn_points(result: StatementResult) -> list[Point]:
    """The points that get a row, in order: all, or the `MOST_POINTS` farthest outside their allowed range."""
    places = sorted(
        range(len(result.points)), key=lambda i: (result.points[i].is_outside, result.points[i].excess), reverse=True
    )
    return [result.points[i] for i in sorted(places[:MOST_POINTS])]


def draw_points(axes: Axes, result: StatementResult) -> None:
    """Draw a row for each number: name, interval and stated value as text, the interval, and the allowed range shaded.

    Numbers with the same allowed range share an axis. Otherwise the units may differ, so each row has a separate scale
    that its interval and allowed range just fill.
    """
    points = drawn_points(result)
    rows = np.arange(0.15, len(points), dtype=np.float64)
    columns: list[Array] = [
        np.array([getattr(point, name) for point in points], dtype=np.float64)
        for name in ("lower", "estimate", "upper", "low", "high")
    ]
    lower, estimate, upper, low, high = columns
    is_shared = len(set(zip(low.tolist(), high.tolist(), strict=True))) == 1
    if is_shared:
        ends = window(lower, estimate, upper, low, high)
        axes.set_xlabel(legible(result.quantity, 80))
    else:
        windows = [window([p.lower, p.estimate, p.upper, p.low, p.high], room=0.12) for p in points]
        start = np.array([a for a, _ in windows], dtype=np.float64)
        size = np.array([b - a for a, b in windows], dtype=np.float64)
        with np.errstate(over="ignore"):
            columns = [np.asarray((part - start) / size, dtype=np.float64) for part in columns]
        ends = (0.0, 1.0)
        axes.set_xticks([])
        axes.set_xlabel(f"{legible(result.quantity, 60)}; each row has a separate scale")
    lower, estimate, upper, low, high = columns
    _allowed(axes, rows, low, high, ends)
    outside = np.array([point.is_outside for point in points])
    labels = ("interval", "interval outside the allowed range")
    draw_intervals(axes, rows, (lower, estimate, upper), ends, outside=outside, sideways=True, labels=labels)
    axes.set_yticks([])
    axes.set_ylim(len(points) - 0.4, -0.6)
    axes.set_xlim(ends)
    axes.spines[["left", "right", "top"]].set_visible(False)
    place = axes.get_yaxis_transform()
    for row, point in enumerate(points):
        text = legible(point.at or result.quantity, 28)
        axes.text(0.01, row - 0.28, text, transform=place, va="center", size="small")
        text = legible(f"{point.interval}, {point.allowed}", 60)
        axes.text(0.99, row - 0.28, text, transform=place, va="center", ha="right", size="small")


def _allowed(axes: Axes, rows: Array, low: Array, high: Array, ends: tuple[float, float]) -> None:
    """Draw each allowed range as a bar with a line at each finite end."""
    start, end = low.clip(*ends), high.clip(*ends)
    limited = np.isfinite(low) | np.isfinite(high)
    axes.barh(
        rows[limited], (end - start)[limited], 0.4, left=start[limited], color=GREY, alpha=0.25, linewidth=0,
        label="allowed range",
    )  # fmt: skip
    x = np.concatenate([low, high])
    y = np.concatenate([rows, rows])
    seen = np.isfinite(x)
    axes.vlines(x[seen], y[seen] - 0.2, y[seen] + 0.2, colors=ink(), linewidths=1.2)


def fraction_outside(series: Series) -> str:
    """Such as "2 of 40 intervals exclude the stated value"."""
    n = int(are_excluded(series).sum())
    return f"{n or 'none'} of {len(series.x):,} intervals exclude{'s' * (n == 1)} the stated value"
