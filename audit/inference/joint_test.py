"""The exact joint test of a boundary p ≤ B(q) by the hits on x and on y.

X ~ Bin(n, p) and Y ~ Bin(m, q) are independent, and the null is the whole region under the boundary. The p-value and
the bound are those of `boundary_test`, for all sample sizes.

Proofs: docs/proofs/joint-test.md, docs/proofs/berger-boos.md, docs/proofs/cells-and-blocks.md
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..claims.at_distance import claim_at
from ..claims.claim import Claim
from ..errors import OptionError
from .boundary_test import GAMMA, Evidence, allows
from .counts import Counts, check_alpha

LEAST_ALPHA = 10 * GAMMA
"""No test is made at a level as small as this."""


def p_value(counts: Counts, claim: Claim | float, *, alpha: float = 0.05) -> float:
    """Return the exact p-value of the null that `claim` allows Pr[M(x) ∈ S] given Pr[M(y) ∈ S].

    If the null is true, the p-value is at most a with probability at most a, for every a in (0, 1). The test is most
    powerful at the `alpha` that it is tuned to: this level fixes the order in which counts are more extreme than
    others, so p-values tuned to different levels differ. Fix `alpha` before you see the counts.

    Parameters
    ----------
    counts : Counts
        Hits and runs for one event that was chosen without looking at them.
    claim : Claim or float
        A number ε stands for ``PureDP(ε)``.
    alpha : float
        In (0, 1).

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> p_value(Counts(hits_x=60, runs_x=100, hits_y=10, runs_y=100), PureDP(1.0)) < 0.05
    True
    >>> p_value(Counts(hits_x=20, runs_x=100, hits_y=10, runs_y=100), PureDP(1.0))
    1.0
    """
    check_alpha(alpha)
    claim = claim_at(claim, 1)
    return 1.0 if allows(claim, counts) else Evidence.of(counts, claim, alpha).p_value_of_forbidden(claim)


def strength_lower(counts: Counts, claim: Claim | float, *, alpha: float) -> float:
    """Return a lower bound on the true strength: the counts refute every smaller member of the claim's family.

    The bound exceeds the true strength with probability at most alpha. It is in the units of the claim's strength, and
    0 if the smallest member is not refuted.

    Parameters
    ----------
    counts : Counts
        Hits and runs for one event that was chosen without looking at them.
    claim : Claim or float
        Defines the family, such as all (ε, 1e-5) for an `ApproxDP`, and starts the search. A number ε stands for
        ``PureDP(ε)``.
    alpha : float
        In (0, 1), and above 1e-9.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> counts = Counts(hits_x=67_000, runs_x=100_000, hits_y=18_000, runs_y=100_000)
    >>> bound = strength_lower(counts, PureDP(1.0), alpha=0.05)
    >>> 1.29 < bound < 1.314
    True
    """
    claim, alpha = claim_at(claim, 1), check_test_alpha(alpha)
    return Evidence.of(counts, claim, alpha).last_refuted(claim, alpha)


def check_test_alpha(alpha: float, share: float = 1.0) -> float:
    """Return `alpha` as a float of which the exact test can reach this share; else raise an `OptionError`."""
    if check_alpha(alpha) * share <= LEAST_ALPHA:
        part = "" if share == 1.0 else f", which has {share:g} of it, as other tests have the rest"
        raise OptionError(
            f"alpha={alpha:g} is too small for the exact test{part}; use alpha > {LEAST_ALPHA / share:.3g}.",
            alpha=alpha,
        )
    return float(alpha)


def joint_test(counts: Counts, claim: Claim, *, alpha: float) -> tuple[float, float]:
    """Return `p_value` and `strength_lower` at little more than the cost of one of them."""
    evidence = Evidence.of(counts, claim, check_test_alpha(alpha))
    return evidence.p_value(claim), evidence.last_refuted(claim, alpha)


def joint_test_beside(
    counts: Counts, claim: Claim, p_known: float, bound_known: float, *, alpha: float
) -> tuple[float, float]:
    """Return the p-value if it may be below `p_known`, else 1, and the bound if it exceeds `bound_known`, else 0.

    No p-value is below γ. The p-value increases with the strength, so the bound exceeds `bound_known` only if this
    strength is refuted.
    """
    evidence = Evidence.of(counts, claim, check_test_alpha(alpha))
    p = evidence.p_value(claim) if p_known > GAMMA else 1.0
    exceeds = evidence.refutes(claim.with_strength(bound_known), alpha)
    return p, evidence.last_refuted(claim, alpha) if exceeds else 0.0


def strength_estimate(counts: Counts, claim: Claim) -> float:
    """Return the point estimate: the smallest strength that allows the observed frequencies, or `max_strength`."""
    n, m = counts.runs_x, counts.runs_y
    found = claim.strength_of(counts.hits_x / n, counts.hits_y / m, (n - counts.hits_x) / n, (m - counts.hits_y) / m)
    return float(np.clip(found, 0.0, claim.max_strength))


def largest_strength(
    condition: Callable[[float], bool], limit: float, *, tolerance: float = 1e-7, start: float = 1.0
) -> float:
    """Return the largest number below `limit` at which a condition holds that fails above it; 0 if it never holds.

    The number is rounded down, by a relative `tolerance` at most. The search begins at `start`.
    """
    low, high = 0.0, min(start, limit)
    while high < limit and condition(high):
        low, high = high, min(2 * high, limit)
        if low > 1e6:
            return math.inf
    while high - low > tolerance * max(high, 1e-9):
        middle = 0.5 * (low + high)
        if condition(middle):
            low = middle
        else:
            high = middle
    return low
