"""Running lower bound of a sequential audit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from ...audit.claims.claim import GroupClaim
from ...audit.results.audit_result import AuditResult, Verdict
from ..plain_text import number, symbol
from .figure_style import COLOUR, MARKER, ink, legible, sides
from .interval_marks import window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    bounds = np.minimum(bounds, top)
    axes.step(runs, bounds, where="post", color=sides()[0], label="running lower bound")
    axes.axhline(claimed, color=ink(), linewidth=1.0, linestyle=":", label=legible(f"claimed {number(claimed)}"))
    verdict = result.verdict
    size = 8 if verdict is Verdict.REFUTED else 6
    axes.plot(
        runs[-1:], bounds[-1:], MARKER[verdict], color=COLOUR[verdict], markersize=size, linestyle="",
        clip_on=False, zorder=3, label=stopped(result),
    )  # fmt: skip
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    first, last = runs.min(), runs.max()
    axes.set_xlim(first / 1.1, max(last, 1.1 * first) * 1.1)
    axes.set_ylim(0, top if math.isfinite(top) else 1)
    axes.set_xlabel("runs on each dataset")
    each = " per step" if isinstance(claim, GroupClaim) else ""
    axes.set_ylabel(legible(f"{symbol(claim.strength_name)}{each}"))
