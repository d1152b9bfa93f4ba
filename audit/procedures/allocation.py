"""How many of the main runs are made on each dataset.

The test of one event compares p̂ with B(q̂). The variance of the difference is a²/n_p + b²/n_q, with the standard
deviations a of a hit on the likelier dataset and b of a hit on the other, times the slope of the boundary. For a given
number of runs it is least if they are divided as a to b (Neyman 1934, On the two different aspects of the
representative method). An event on the boundary with slope exp(ε) that is rare on both datasets has b/a = exp(ε/2).

The pilot decides, and its runs are not tested, so any division is valid.
"""

from __future__ import annotations

import math

import numpy as np

from ..claims.claim import Claim
from ..distinguishers.choice import Choice, directed_shares

_LEAST_SAVED = 0.02  # share of the runs that the division has to save
_LARGEST_RATIO = 4.0  # of the runs on the two datasets, so that no other event is tested on far fewer runs
_STEPS = 401  # of the other dataset's probability


def divided(choice: Choice, claim: Claim, main: int) -> tuple[int, int]:
    """Main runs on x and on y, together 2·`main`; equal if both directions are tested or little can be saved.

    Parameters
    ----------
    choice : Choice
        The event to be tested.
    claim : Claim
        The claim on Pr[M(x) ∈ S] given Pr[M(y) ∈ S].
    main : int
        Mean number of main runs on a dataset.
    """
    p = directed_shares(choice)[0]
    if choice.opposite is not None or choice.shows_nothing or not 0.0 < p < 1.0:
        return main, main
    ours, theirs = _deviations(claim if choice.likelier_on == "x" else claim.reversed(), p)
    if not 0.0 < ours + theirs < math.inf:
        return main, main
    saved = 1.0 - (ours + theirs) ** 2 / (2.0 * (ours**2 + theirs**2))
    if saved < _LEAST_SAVED:
        return main, main
    least = 1.0 / (1.0 + _LARGEST_RATIO)
    likelier = round(2 * main * min(max(ours / (ours + theirs), least), 1.0 - least))
    return (likelier, 2 * main - likelier) if choice.likelier_on == "x" else (2 * main - likelier, likelier)


def _deviations(claim: Claim, p: float) -> tuple[float, float]:
    """Standard deviations of a hit on the likelier dataset, and on the other times the slope, where p = B(q)."""
    q = np.geomspace(1e-12, 1.0, _STEPS)
    boundary, _ = claim.max_power(q, 1.0 - q)
    place = int(np.searchsorted(boundary, p))
    if not 0 < place < _STEPS:  # allowed whatever q is
        return 0.0, 0.0
    slope = (boundary[place] - boundary[place - 1]) / (q[place] - q[place - 1])
    middle = 0.5 * (q[place] + q[place - 1])
    return math.sqrt(p * (1.0 - p)), float(slope) * math.sqrt(middle * (1.0 - middle))
