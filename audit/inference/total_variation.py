"""An upper limit for the total variation distance of two multinomial laws.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import OptionError
from .binomial_tails import limits
from .counts import check_alpha

LARGEST_LEVEL = 0.25
"""Of an upper limit for a sum of unlike indicators."""


def total_variation_upper(
    hits_x: Iterable[int], hits_y: Iterable[int], *, alpha: float, counts_unlisted: bool = False
) -> float:
    """Upper limit for the total variation distance over cells, below the truth with probability at most `alpha`.

    Exact, for any number of cells and runs. The distance is P(A) − Q(A) for one set A of cells, the unknown but fixed
    {i : p_i > q_i}. With n runs on each side, n plus the hits of A on x less those on y is a sum S of 2n independent
    indicators whose mean is 2n(1 + TV)/2. For c ≤ ES − 1 such a sum is ≤ c no more often than Bin(2n, (1 + TV)/2) is
    (Hoeffding), so the Clopper-Pearson limit of S is below (1 + TV)/2 with probability at most alpha. The unknown S is
    at most n + Σ max(x_i − y_i, 0), and the limit grows with it: nothing is paid for the 2^K sets that A may be.

    Hoeffding's c ≤ ES − 1 is no restriction: the limit fails for counts c with Pr[Bin ≤ c] ≤ alpha only, alpha is at
    most 1/4, and Pr[Bin ≤ E Bin] exceeds that if the misses have mean above 1 (Greenberg & Mohri); if not, only counts
    of 2n − 1 or more are left, for which the limit is 1.

    Jensen's and McDiarmid's inequalities give TV ≤ observed + √(ln(1/alpha)/n): 1.39 times as far from the observed
    distance at alpha .025, as the normal quantile 1.96 is to √(2 ln 40).

    Parameters
    ----------
    hits_x, hits_y : sequences of int, of equal length and sum
    alpha : float
        In (0, 1).
    counts_unlisted : bool
        Whether the last cell holds outcomes that are not told apart. All of its hits on x then belong to S, and the
        limit is for the distance over every event.

    References
    ----------
    Levin, Peres & Wilmer (2009), Markov chains and mixing times, Proposition 4.2 and Remark 4.3. Hoeffding (1956), On
    the distribution of the number of successes in independent trials, Theorem 4. Greenberg & Mohri (2014), Tight lower
    bound on the probability of a binomial exceeding its expectation, Theorem 1.

    Examples
    --------
    >>> round(total_variation_upper([5_000, 5_000], [5_000, 5_000], alpha=0.025), 4)
    0.0139
    """
    x, y, level = list(hits_x), list(hits_y), min(check_alpha(alpha), LARGEST_LEVEL)
    runs = sum(x)
    if len(x) != len(y) or runs != sum(y) or runs < 1 or min(x + y) < 0:
        raise OptionError(
            f"{runs:,} runs in {len(x)} cells and {sum(y):,} in {len(y)} do not match; give counts of equally many "
            "runs on both sides in the same cells.",
            hits_x=x,
            hits_y=y,
        )
    others = x.pop() if counts_unlisted else 0
    hits = runs + others + sum(max(a - b, 0) for a, b in zip(x, y, strict=False))
    if hits >= 2 * runs - 1:
        return 1.0
    return min(1.0, 2.0 * float(limits(np.array([float(hits)]), 2.0 * runs, alpha=level)[1][0]) - 1.0)
