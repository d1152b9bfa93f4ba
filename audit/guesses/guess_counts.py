"""How likely so many right guesses are, at most, if the number of guesses was fixed before.

Of m canaries G are guessed, and V guesses are right. Without slips V is at most binomial with probability σ. With them

    Pr[V ≥ v] ≤ β + m δ β (1 − β)/(v b(v)),   β = Pr[Bin(G, σ) ≥ v], b(v) = Pr[Bin(G, σ) = v],

and this is attained. The factor of δ is at most m (1 − σ).

Proof: docs/proofs/canaries.md

References
----------
Steinke, Nasr & Jagielski (2023), Privacy auditing with one (1) training run, Theorem 5.2, bound the same probability by
β + 2 m δ max_i Pr[v > Bin(G, σ) ≥ v − i]/i.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr

from .guess_ceiling import Ceiling

_AT_ONCE, _NEGLIGIBLE = 64, 1e-17  # terms of a sum at once, and what may be left out of it, relative
_FARTHEST = 700.0  # log-odds that doubles can hold


def right_tail(right: int, guesses: int, ceiling: Ceiling) -> float:
    """β = Pr[Bin(G, σ) ≥ v]: the probability of `right` or more right ones without slips."""
    return float(bdtr(guesses - right, guesses, ceiling.wrong)) if right > 0 else 1.0


def count_tail(right: int, guesses: int, canaries: int, ceiling: Ceiling) -> float:
    """Largest probability of `right` or more right ones among `guesses`, a number fixed before; attained."""
    tail = right_tail(right, guesses, ceiling)
    if ceiling.delta == 0.0 or tail == 1.0:
        return tail
    most = ceiling.wrong * right / (1.0 - tail)
    factor = min(ceiling.wrong, _tail_over_mass(right, guesses, ceiling, most) * (1.0 - tail) / right)
    return min(1.0, tail + canaries * ceiling.delta * factor)


def _tail_over_mass(right: int, guesses: int, ceiling: Ceiling, most: float) -> float:
    """β/b(v) = Σ_k b(v + k)/b(v), which does not underflow as both of them do; or a part of it above `most`."""
    total, last, start, size = 1.0, 1.0, right, _AT_ONCE
    odds = math.exp(min(ceiling.log_odds, _FARTHEST))
    while start < guesses and total <= most:
        at = np.arange(start, min(start + size, guesses), dtype=np.float64)
        ratios = (guesses - at) / (at + 1.0) * odds
        with np.errstate(over="ignore"):
            terms = last * np.cumprod(ratios)
        total, last = total + float(terms.sum()), float(terms[-1])
        if ratios[-1] < 1.0 and last * ratios[-1] / (1.0 - ratios[-1]) < _NEGLIGIBLE * total:
            break
        start, size = start + len(at), 2 * size
    return total


def steinke_tail(right: int, guesses: int, canaries: int, ceiling: Ceiling) -> float:
    """The published bound on the same probability; 1 where it is above ½, since it need not hold there."""
    tail = right_tail(right, guesses, ceiling)
    if ceiling.delta == 0.0 or right <= 0:
        return tail if tail <= 0.5 else 1.0
    fewer = np.arange(1, right + 1)
    between = bdtr(guesses - right + fewer, guesses, ceiling.wrong) - tail
    found = tail + 2.0 * canaries * ceiling.delta * float((between / fewer).max())
    return found if found <= 0.5 else 1.0
