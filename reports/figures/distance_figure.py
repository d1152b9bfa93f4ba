"""Bounds and claims of one mechanism against the distance between the datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, GaussianDP, GroupClaim, PureDP
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult, Verdict
from ..plain_text import symbol
from .figure_style import COLOUR, MARKER, ink, legible
from .interval_marks import window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]


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
