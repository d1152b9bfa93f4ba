"""How likely so many right guesses are, at most, under a whole trade-off curve.

Of m canaries G are guessed, G fixed before, and V guesses are right; Q_c = Pr[V ≥ c]. Flipping a canary turns one right
guess into a wrong one. Summed over the canaries, the event {V ≥ c} therefore satisfies A_c ≤ F(B_c) with

    m A_c = c Q_c + Σ_{j>c} Q_j          (canaries guessed right, V ≥ c)
    m B_c = (G − c + 1) Q_{c−1} − Σ_{j≥c} Q_j   (canaries guessed wrong, V ≥ c − 1)

where F is concave. Hence (G − c + 1) Q_{c−1} ≥ m F⁻¹(A_c) + Σ_{j≥c} Q_j, whose right side grows with every Q_j: from
Q_v ≥ τ lower limits of Q_{v−1}, Q_{v−2}, … follow one after the other. If Q_0 must exceed 1, then Pr[V ≥ v] < τ.

Proof: docs/proofs/canaries.md

References
----------
Mahloujifar, Melis & Chaudhuri (2024), Auditing f-differential privacy in one run, Theorem 3.2 and Algorithm 3: the same
recursion.
"""

from __future__ import annotations

from collections.abc import Callable

_STILL = 1e-13  # of the probability so far: steps that add less end the recursion, which then refutes nothing
_ROUNDING = 1e-9


def is_impossible(tail: float, right: int, guesses: int, canaries: int, inverse: Callable[[float], float]) -> bool:
    """Whether Pr[V ≥ right] < `tail` for every mechanism that keeps the curve.

    Parameters
    ----------
    tail : float
        In (0, 1).
    right, guesses, canaries : int
        right <= guesses <= canaries.
    inverse : callable
        F⁻¹: the least rate of wrong guesses for a rate of right ones.
    """
    if right <= 0:
        return False
    above = right * tail / canaries  # A_c
    below = (guesses - right) * tail / canaries  # canaries guessed wrong, V ≥ c
    enough = guesses / canaries * (1.0 + _ROUNDING)
    for count in range(right - 1, -1, -1):
        least = inverse(min(above, 1.0))
        added = least - below
        if added <= _STILL * below:
            return False
        above += count / (guesses - count) * added
        below = least
        if above + below > enough:
            return True
    return False
