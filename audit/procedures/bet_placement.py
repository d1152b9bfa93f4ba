"""Which account's bet the wealth of each account of a sequential audit is placed on.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Placed: TypeAlias = npt.NDArray[np.int64]

RARE_ACCOUNT = 3
"""The account that bets on rare events, the last of four."""

_LOSING = 1.0  # an event further below its line than this, in standard errors, is not bet on


def place_bets(scores: npt.NDArray[np.float64]) -> Placed:
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
