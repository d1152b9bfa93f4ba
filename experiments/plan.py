"""The table of ``dpaudit plan``: what an audit of a claim takes, and what it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..audit.batches import late_batches
from ..audit.claims import Claim
from ..audit.inference.planning import best_q, resolution, runs_needed
from ..audit.inference.sequential import sequential_resolution
from ..audit.options import check_runs
from ..audit.pilot import pilot_runs, with_pilot

if TYPE_CHECKING:
    from rich.table import Table

_SHARES = (0.5, 0.1, 0.05, 0.02, 0.01)  # of the claim, where no resolution is asked for


def plan_table(
    claim: Claim, resolutions: list[float], runs: list[int], *, power: float, alpha: float, q: float | None
) -> Table:
    """Rows for each excess and each number of runs; without any, for shares of the claim's strength."""
    from rich.table import Table
    from rich.text import Text

    if not resolutions and not runs:
        room = claim.max_strength - claim.strength
        resolutions = [min(share * (claim.strength or 1.0), share * room) for share in _SHARES]
    rows = [_row_for(claim, excess, power, alpha, q) for excess in resolutions]
    rows += [_row_of(claim, check_runs(number), power, alpha, q) for number in runs]
    event = "the best event there can be" if q is None else f"an event of probability {q:g}"
    shown = Table(
        f"excess of\n{claim.strength_name}",
        "runs on each\ndataset",
        "of them for\nthe choice",
        "excess found when\nstopping early",
        "probability\nof the event",
        title=Text(f"{claim}, alpha {alpha:g}, power {power:g}, {event}"),
        title_justify="left",
    )
    for column in shown.columns:
        column.justify = "right"
    for excess, number, pilot, early, rate in rows:
        shown.add_row(f"{excess:.4g}", f"{number:,}", f"{pilot:,}", f"{early:.3g}", f"{rate:.3g}")
    return shown


Row = tuple[float, int, int, float, float]


def _row_for(claim: Claim, excess: float, power: float, alpha: float, q: float | None) -> Row:
    """The runs that an excess takes."""
    rate = best_q(claim, resolution=excess) if q is None else q
    number = with_pilot(runs_needed(claim, rate, resolution=excess, power=power, alpha=alpha))
    return excess, number, pilot_runs(number), _early(claim, number, excess, power, alpha, q), rate


def _row_of(claim: Claim, number: int, power: float, alpha: float, q: float | None) -> Row:
    """The excess that a number of runs finds."""
    main = number - pilot_runs(number)
    room = claim.max_strength - claim.strength
    found = 1e-2 * min(claim.strength or 1.0, room)
    for _ in range(1 if q is not None else 3):  # the best event depends on the excess, and the excess on the event
        rate = best_q(claim, resolution=min(found, 0.99 * room)) if q is None else q
        found = resolution(claim, main, main, rate, alpha=alpha, power=power)
    return found, number, pilot_runs(number), _early(claim, number, found, power, alpha, q), rate


def _early(claim: Claim, number: int, excess: float, power: float, alpha: float, q: float | None) -> float:
    """What an audit that may stop early finds: up to twice as much, so its best event is another.

    That of too small an excess lies beyond the corner of what is found, where little is to be seen.
    """
    room = claim.max_strength - claim.strength
    rate = best_q(claim, resolution=min(2.0 * excess, 0.99 * room)) if q is None else q
    return sequential_resolution(claim, late_batches(number), rate, alpha=alpha, power=power)
