"""Which account's bet the wealth of each account of a sequential audit is placed on.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..inference.supporting_lines import Line

Placed: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

BOTH_ACCOUNT, RARE_ACCOUNT = 2, 3
"""The accounts that bet on both directions at once, and on rare events, the last two of four."""

_LOSING = 1.0  # an event further below its line than this, in standard errors, is not bet on
_DOUBT = 0.5  # standard errors that are added to an event's distance above its line before the largest bet is computed


def place_bets(scores: Floats) -> Placed:
    """Account whose bet each wealth is placed on: its own, unless that loses, and then one that does not; -1 for none.

    What may be needed for rare events is not bet on others.

    Parameters
    ----------
    scores : ndarray, shape (accounts, members)
        Signed squares of the distances of the events' frequencies above the lines, in standard errors.
    """
    is_losing, best = scores.T < -(_LOSING**2), scores[:RARE_ACCOUNT].argmax(axis=0)[:, None]
    other = np.where(np.take_along_axis(is_losing, best, axis=1), -1, best)
    placed: Placed = np.where(is_losing, other, np.arange(len(scores)))
    placed[:, RARE_ACCOUNT:] = np.where(is_losing[:, RARE_ACCOUNT:], -1, RARE_ACCOUNT)
    return placed


def largest_bets(lines: Sequence[Sequence[Line]], seen: Sequence[tuple[float, float, float]]) -> Floats:
    """Largest λ to bet against each line on events of which so much is known, shape (members, accounts).

    Wealth grows fastest with λ = d/v, where d is the mean gain of a pair of runs and v its variance. Larger bets win
    less and lose more; on an event that was chosen by chance, they lose all that a better event would need later. So d
    is taken at the frequencies seen so far, with half a standard error added. The bets on rare events are not limited:
    they are lost soon or not at all.

    Parameters
    ----------
    lines : sequence of sequence of Line
        For each account one for each member.
    seen : sequence of tuple
        For each account the frequencies p and q of its event, and the runs behind them. For both directions at once,
        these are means over twice the runs, and v is half as large.
    """
    most = np.full((len(lines[0]), len(lines)), np.inf)
    for account, (side, (p, q, runs)) in enumerate(zip(lines, seen, strict=True)):
        if account == RARE_ACCOUNT:
            continue
        slope, intercept = (np.array([getattr(line, name) for line in side]) for name in ("slope", "intercept"))
        variance = np.maximum(p * (1.0 - p) + slope**2 * q * (1.0 - q), 1e-300)
        gain = p - slope * q - intercept + _DOUBT * np.sqrt(variance / runs)
        most[:, account] = np.maximum(gain, 0.0) / (variance / 2.0 if account == BOTH_ACCOUNT else variance)
    return most
