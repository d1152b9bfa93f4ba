"""Which account's bet the wealth of each account of a sequential audit is placed on: wealth follows the leader.

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
# Lead, in squared standard errors, from which the bet of another account is taken over, and the bet on rare events.
_AHEAD, _FAR_AHEAD = 1.0, 4.0


def place_bets(scores: npt.NDArray[np.float64]) -> Placed:
    """Account whose bet each wealth is placed on: its own, or one that is clearly ahead; -1 if even that loses.

    What may be needed for rare events is not bet on others.

    Parameters
    ----------
    scores : ndarray, shape (accounts, members)
        Signed squares of the distances of the events' frequencies above the lines, in standard errors.
    """
    n_accounts = len(scores)
    lead = np.full((n_accounts, n_accounts), _AHEAD)  # of one account that another follows, shape (follower, leader)
    lead[:, RARE_ACCOUNT:] = _FAR_AHEAD
    lead[RARE_ACCOUNT:] = np.inf
    np.fill_diagonal(lead, 0.0)
    placed: Placed = (scores - lead[:, :, None]).argmax(axis=1).T  # shape (members, accounts)
    is_losing = np.take_along_axis(scores.T, placed, axis=1) < -(_LOSING**2)
    return np.where(is_losing, -1, placed)
