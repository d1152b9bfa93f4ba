"""Audits of one mechanism at several distances: what leaks against what the claim allows at each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, GroupClaim
from ...audit.claims.pure_approx_gaussian import GaussianDP, PureDP
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult, Verdict
from ..plain_text import symbol
from .figure_style import COLOUR, MARKER, ink, legible
from .interval_marks import window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]


def series_by_distance(suite: Suite, *, fewest: int) -> list[list[Entry]]:
    """Audits of one mechanism under one adjacency, at `fewest` distances or more.

    Their claims are one claim for groups, or are of one kind, where they are a function of the distance; functions
    without a name are told apart by nothing, and left out. So are audits whose runs are not independent.
    """
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in suite.entries:
        result = entry.result
        if isinstance(result, AuditResult) and not result.findings and result.mechanism != "<lambda>":
            base = _per_step(result.claim)
            code = (result.mechanism, result.provenance, result.pair.adjacency)
            is_grouped = isinstance(result.claim, GroupClaim)
            if is_grouped or result.pair.distance == 1:
                groups.setdefault((*code, "for groups", str(base)), []).append(entry)
            if not is_grouped:  # at distance 1 it may be of either sort
                groups.setdefault((*code, "by distance", type(base), base.strength_name), []).append(entry)
    return [group for group in groups.values() if len({_distance(entry) for entry in group}) >= fewest]


def draw_distances(axes: Axes, entries: Sequence[Entry]) -> None:
    """Bound, estimate and exact value of each audit over its distance, with the line of the claim's strength.

    A claim for groups has a strength per step; of ε and μ, which add up, the whole is drawn.
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


def _distance(entry: Entry) -> float:
    assert isinstance(entry.result, AuditResult)
    return entry.result.pair.distance


def _per_step(claim: Claim) -> Claim:
    return claim.base if isinstance(claim, GroupClaim) else claim


def _factor(claim: Claim) -> float:
    """What a strength per step is multiplied by to be that of the whole distance."""
    adds_up = isinstance(claim, GroupClaim) and isinstance(claim.base, (PureDP, GaussianDP))
    return float(claim.distance) if adds_up and isinstance(claim, GroupClaim) else 1.0
