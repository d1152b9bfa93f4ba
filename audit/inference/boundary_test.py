"""The p-value of a boundary p ≤ B(q) for nested regions of counts, and its inversion to a bound.

X counts runs of probability p and Y runs of probability q. There are two laws: hits on x and on y in independent runs,
and right and wrong guesses, of which each run has at most one (`guess_test`). Under both, the probability of a region
{X ≥ c(Y)} with nondecreasing c grows with p and falls with q. So all of this holds for both:

1. *Order.* Counts are ordered by a strength: that of the largest member of the claim's family that the counts clear by
   z standard errors, so that its whole boundary lies below the ellipse around the counts. The counts at least as
   extreme as the observed counts are then {X ≥ c(Y)} with one nondecreasing c. The members of the family are nested,
   and so are these regions, for any approximation in the ellipse. z is the normal quantile of the alpha that the test
   is tuned to; any z fixed in advance is valid, and this z makes the order nearly that of the bound itself.
2. *Maximise.* Over the null the probability of {X ≥ c(Y)} is largest on the boundary p = B(q). The supremum over q runs
   over a Clopper-Pearson interval of level 1 − γ, and γ is added (Berger & Boos 1994, P values maximized over a
   confidence set for the nuisance parameter). Between grid points the test uses the larger p and the smaller q of the
   cell, and the sum over Y groups neighbouring values at their least c: both can only enlarge the p-value.
3. *Invert.* The region does not depend on the member tested, and larger members allow more. The p-value is therefore
   monotone in the strength, and the bound, the least strength that is not refuted, is found by bisection (Buehler
   1957, Confidence intervals for the product of two binomial parameters).

γ does not depend on alpha, and a p-value tuned to one alpha is valid for any other, so p-values can be adjusted for
multiple audits.

Proofs: docs/proofs/joint-test.md, docs/proofs/berger-boos.md, docs/proofs/cells-and-blocks.md, docs/proofs/guesses.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from ..claims.claim import Claim
from .binomial_tails import Array, clopper_pearson, row_slices, upper_tail, varied_upper_tail
from .count_ordering import critical_hits, order
from .counts import Counts

GAMMA = 1e-10
"""Probability spent on the confidence interval for q; no p-value is smaller."""


CELL = 0.03
"""Standard errors in a cell of q or a block of y; they cost the bound about 3% of its distance from the estimate."""

REACH = 7.0
"""Standard errors around a cell within which blocks of y are separate; the probability beyond is 3e-12."""

_GUESSES_NORMAL_FROM = 500.0
"""Variance of right guesses from which the normal bound is used. It lowers the bound by about 1% of its distance from
the estimate at most."""


def allows(claim: Claim, counts: Counts) -> bool:
    """Return whether the observed frequencies lie under the boundary."""
    observed = claim.max_power(counts.hits_y / counts.runs_y, (counts.runs_y - counts.hits_y) / counts.runs_y)[0]
    return counts.hits_x / counts.runs_x <= float(observed) * (1 + 1e-12)


@dataclass(frozen=True, slots=True)
class _Grid:
    """The part of the test that depends on the hits on y alone: cells of q, blocks of y and their probabilities."""

    starts: Array  # first y of each block, shape (blocks,)
    q: Array  # upper edges of the cells, and 1 − q, shape (cells,)
    q_rest: Array
    low: Array  # lower edges, and 1 − q
    low_rest: Array
    columns: np.ndarray[tuple[int, ...], np.dtype[np.int64]]  # separate blocks of each cell, shape (cells, width)
    below: Array  # bounds on Pr[Y ≤ end of block] at the lower edge of each cell, shape (cells, width)
    before: Array  # the same bounds for all y before the first block, shape (cells,)


@lru_cache(maxsize=4)  # the resolution uses the hits that were tested; up to 3 MB each
def _grid(hits_y: int, m: int) -> _Grid:
    (low, low_rest), (high, high_rest) = clopper_pearson(hits_y, m, alpha=GAMMA)
    unit = 0.5 / math.sqrt(m)  # a standard error on the arcsine scale
    first, last = math.atan2(math.sqrt(low), math.sqrt(low_rest)), math.atan2(math.sqrt(high), math.sqrt(high_rest))
    edges = np.linspace(first, last, max(2, math.ceil((last - first) / (CELL * unit)) + 1))
    span = np.arange(first - REACH * unit, last + REACH * unit, CELL * unit)
    starts = np.unique(np.floor(m * np.sin(np.clip(span, 0.0, math.pi / 2)) ** 2))
    nearest = m * np.sin(np.clip(edges[:-1] - REACH * unit, 0.0, math.pi / 2)) ** 2
    furthest = m * np.sin(np.clip(edges[:-1] + REACH * unit, 0.0, math.pi / 2)) ** 2
    from_block = np.maximum(np.searchsorted(starts, nearest, side="right") - 1, 0)
    to_block = np.searchsorted(starts, furthest, side="right")
    width = int((to_block - from_block).max()) + 1
    columns = np.minimum(from_block[:, None] + np.arange(width), len(starts) - 1)
    # Pr[Y ≤ k] is the tail of the misses: Pr[m − Y ≥ m − k].
    q_low, q_low_rest = np.sin(edges[:-1]) ** 2, np.cos(edges[:-1]) ** 2
    q_low[0], q_low_rest[0] = low, low_rest
    ends = np.append(starts[1:] - 1.0, float(m))
    through = np.concatenate([starts[columns[:, :1]] - 1.0, ends[columns]], axis=1)
    below = upper_tail(m - through, m, q_low_rest, q_low)
    below[:, 0] = np.where(through[:, 0] < 0, 0.0, below[:, 0])
    q, q_rest = np.sin(edges[1:]) ** 2, np.cos(edges[1:]) ** 2
    q[-1], q_rest[-1] = high, high_rest
    return _Grid(starts, q, q_rest, q_low, q_low_rest, columns, below[:, 1:], below[:, 0])


@dataclass(frozen=True, slots=True)
class Evidence:
    """The part of the test that does not depend on the member tested."""

    counts: Counts
    are_guesses: bool  # whether the hits are right and wrong guesses, of which each run has at most one
    grid: _Grid | None  # None if the frequencies lie under the smallest boundary: no member is refuted
    critical: Array  # c at the first y of each block, shape (blocks,)
    cleared: float  # the strength that the ellipse clears

    @classmethod
    def of(cls, counts: Counts, claim: Claim, alpha: float, *, are_guesses: bool = False) -> Evidence:
        strength, z = order(counts, claim, order_z(alpha))
        if z == 0.0:
            return cls(counts, are_guesses, None, np.empty(0), strength)
        grid = _grid(counts.hits_y, counts.runs_y)
        critical = critical_hits(grid.starts, counts.runs_x, counts.runs_y, claim.with_strength(strength), z)
        return cls(counts, are_guesses, grid, critical, strength)

    def p_value(self, claim: Claim) -> float:
        """Return the p-value of a member of the family; it is nondecreasing in the strength."""
        return 1.0 if allows(claim, self.counts) else self.p_value_of_forbidden(claim)

    def p_value_of_forbidden(self, claim: Claim) -> float:
        """Return the p-value of a member that does not allow the observed frequencies."""
        return min(1.0, GAMMA + max(self._largest(claim)))

    def refutes(self, claim: Claim, alpha: float) -> bool:
        """Return whether the p-value is at most `alpha`; the first cells in which it is larger decide."""
        return not allows(claim, self.counts) and all(GAMMA + largest <= alpha for largest in self._largest(claim))

    def _largest(self, claim: Claim) -> Iterator[float]:
        """Yield the largest probability of the region in some cells, then in the next."""
        grid = self.grid
        if grid is None:
            yield 1.0
            return
        p, rest = claim.max_power(grid.q, grid.q_rest)
        # Σ_k tail_k Pr[Y in block k], summed by parts so that upper bounds on the tails and on Pr[Y ≤ end] both enlarge
        # the sum; y before the first block gets tail 1, y after the last block the tail of the last block.
        for some in row_slices(*grid.columns.shape):
            tails = self._tails(grid, some, p[some], rest[some])
            steps = tails[:, :-1] - tails[:, 1:]
            steps *= grid.below[some, :-1]
            yield float(((1.0 - tails[:, 0]) * grid.before[some] + steps.sum(axis=1) + tails[:, -1]).max())

    def last_refuted(self, claim: Claim, alpha: float) -> float:
        """Return a refuted strength, at most about .4% of the gap below one that is not refuted; 0 if there is none.

        `alpha` is the one that the test is tuned to.

        Over the gap between bound and estimate, the normal quantile of the p-value rises almost linearly from that of
        alpha to about 0.
        """
        # The strength cleared by the ellipse is off by a few percent of the gap, which half the ellipse measures.
        guess = self.cleared
        halfway = order(self.counts, claim, order_z(alpha) / 2)[0]
        gap = max(2 * (halfway - guess), 1e-9 * (1 + guess))
        target, slope, tolerance = float(ndtri(alpha)), order_z(alpha) / gap, 4e-3 * gap

        def excess(strength: float) -> float:
            """Return the normal quantile of the p-value minus that of alpha; at most 0 if the strength is refuted."""
            return float(ndtri(min(self.p_value(claim.with_strength(strength)), 1 - 1e-12))) - target

        low, low_excess, high, high_excess = 0.0, -math.inf, math.inf, math.inf
        at, reach = guess, 1.0
        while high - low > tolerance and low_excess < -slope * tolerance:
            value = excess(at)
            if value <= 0:
                low, low_excess = at, value
            else:
                high, high_excess = at, value
            # Aim slightly below the root of the line, because the result must be refuted.
            step = max(reach * abs(value) / slope, tolerance)
            if math.isinf(high):
                at, reach = min(low + step - 0.4 * tolerance, 0.5 * (low + claim.max_strength)), 2 * reach
            elif math.isinf(low_excess):
                at, reach = max(high - step - 0.4 * tolerance, 0.5 * high), 2 * reach
            else:  # interpolate, but shrink the bracket by at least a tenth
                share = min(max(low_excess / (low_excess - high_excess), 0.1), 0.9)
                at = max(low + share * (high - low) - 0.4 * tolerance, low + 0.1 * (high - low))
            if low > 1e6:  # larger strengths are not distinguished
                break
        return low

    def _tails(self, grid: _Grid, some: slice, p: Array, rest: Array) -> Array:
        """Return bounds on Pr[X ≥ c | Y] at the first y of each block, for some cells."""
        columns, runs = grid.columns[some], self.counts.runs_x
        critical = self.critical[columns]
        if not self.are_guesses:
            return upper_tail(critical, runs, p, rest)
        # A guess that is not wrong is right with probability p/(1 − q), and p is at most 1 − q.
        low, low_rest = grid.low[some], grid.low_rest[some]
        right, other = np.minimum(p / low_rest, 1.0), np.maximum((rest - low) / low_rest, 0.0)
        is_small = runs * p * rest < _GUESSES_NORMAL_FROM
        return varied_upper_tail(critical, runs - grid.starts[columns], right, other, is_small)


def order_z(alpha: float) -> float:
    """Return the size of the ellipse in the order of a test that is tuned to `alpha`."""
    return max(float(-ndtri(alpha)), 0.5)
