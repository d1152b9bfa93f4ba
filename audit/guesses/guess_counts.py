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

import numpy as np
from scipy.special import bdtr

from .guess_ceiling import Ceiling


def count_tail(right: int, guesses: int, canaries: int, ceiling: Ceiling) -> float:
    """Largest probability of `right` or more right ones among `guesses`, a number fixed before; attained."""
    if right <= 0:
        return 1.0
    tail = float(bdtr(guesses - right, guesses, ceiling.wrong))
    if ceiling.delta == 0.0:
        return tail
    factor = min(ceiling.wrong, _tail_over_mass(right, guesses, ceiling) * (1.0 - tail) / right)
    return min(1.0, tail + canaries * ceiling.delta * factor)


def _tail_over_mass(right: int, guesses: int, ceiling: Ceiling) -> float:
    """β/b(v) = Σ_k b(v + k)/b(v), which does not underflow as both of them do."""
    at = np.arange(right, guesses, dtype=np.float64)
    logs = np.cumsum(ceiling.log_odds + np.log((guesses - at) / (at + 1.0)))
    return 1.0 + float(np.exp(np.minimum(logs, 600.0)).sum())


def steinke_tail(right: int, guesses: int, canaries: int, ceiling: Ceiling) -> float:
    """The published bound on the same probability; 1 where it is above ½, since it need not hold there."""
    if right <= 0:
        return 1.0
    tail = float(bdtr(guesses - right, guesses, ceiling.wrong))
    fewer = np.arange(1, right + 1)
    between = bdtr(guesses - right + fewer, guesses, ceiling.wrong) - tail
    found = tail + 2.0 * canaries * ceiling.delta * float((between / fewer).max())
    return found if found <= 0.5 else 1.0
