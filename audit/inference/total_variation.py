"""An upper limit for the total variation distance of two multinomial distributions.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import OptionError
from .binomial_tails import limits
from .event_test import check_alpha

LARGEST_LEVEL = 0.25
"""Largest level of an upper limit for a sum of indicators with different probabilities."""


def total_variation_upper(
    count_x: Iterable[int], count_y: Iterable[int], *, alpha: float = 0.05, counts_unlisted: bool = False
) -> float:
    """Return an upper limit for the total variation distance over cells, too low with probability at most `alpha`.

    The limit is exact for any number of bins and runs, and needs no correction for the number of sets of cells.
    Jensen's and McDiarmid's inequalities give TV ≤ observed + √(ln(1/alpha)/n), which is 1.39 times as far from the
    observed distance at alpha = .025.

    Parameters
    ----------
    count_x, count_y : iterable of int
        Runs in each cell on x and on y, of the same length and sum.
    alpha : float
        In (0, 1).
    counts_unlisted : bool
        Whether the last cell pools all unlisted outcomes. All its counts on x then belong to S, and the limit is for
        the distance over all events.

    Returns
    -------
    float
        In [0, 1].

    See Also
    --------
    check_equivalence : Comparison of two versions with a margin.
    confidence_band : Limits for the whole privacy profile.

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
    x, y, level = list(count_x), list(count_y), min(check_alpha(alpha), LARGEST_LEVEL)
    runs = sum(x)
    if len(x) != len(y) or runs != sum(y) or runs < 1 or min(x + y) < 0:
        raise OptionError(
            f"{runs:,} runs in {len(x)} bins and {sum(y):,} runs in {len(y)} bins do not match; use counts of the "
            "same number of runs in the same bins on both sides.",
            count_x=x,
            count_y=y,
        )
    others = x.pop() if counts_unlisted else 0
    counts = runs + others + sum(max(a - b, 0) for a, b in zip(x, y, strict=False))
    if counts >= 2 * runs - 1:
        return 1.0
    return min(1.0, 2.0 * float(limits(np.array([float(counts)]), 2.0 * runs, alpha=level)[1][0]) - 1.0)
