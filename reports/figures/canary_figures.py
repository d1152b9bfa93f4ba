"""Figures of an audit of a training run: scores of canaries, and lower bounds by number of guesses."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...audit.canaries.canary_tests import has_lines, refuted_strength
from ...audit.claims.claim import Claim, GaussianDP
from ...audit.guesses.canary_guesses import CanaryGuesses, CanaryTest
from ...audit.results.audit_result import Verdict
from ...audit.results.canary_result import CanaryResult, ScoreSketch
from ..plain_text import number, symbol
from .figure_style import COLOUR, DASHED, EVENT, GREY, MARKER, ink, legible, sides
from .interval_marks import window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    letter = legible(symbol(result.claim.strength_name))
    alone = {"marker": "o", "markersize": 2.5} if len(numbers) > 1 else {"marker": "o", "linestyle": ""}
    axes.plot(numbers, np.minimum(bounds, top), color=sides()[0], label="so many guesses alone", **alone)
    axes.plot(numbers, np.minimum(most, top), color=GREY, linestyle=DASHED, label="if all of them were right")
    axes.axhline(claimed, color=ink(), linewidth=1.0, linestyle=":", label=legible(f"claimed {number(claimed)}"))
    axes.plot(
        [guesses], [min(result.bound, top)], MARKER[result.verdict], color=COLOUR[result.verdict],
        markersize=8 if result.verdict is Verdict.REFUTED else 6, linestyle="", clip_on=False, zorder=3,
        label="bound of the audit",
    )  # fmt: skip
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(numbers.min() / 1.1, max(numbers.max(), 1.1 * numbers.min()) * 1.1)
    axes.set_ylim(0, top if math.isfinite(top) else 1)
    axes.set_xlabel("guesses, from the farthest score on")
    axes.set_ylabel(letter)


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
