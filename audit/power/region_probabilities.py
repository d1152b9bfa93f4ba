"""Probabilities of regions {X ≥ c(Y)} along a claim's boundary, nearly as the exact test bounds them, but faster.

The test takes the larger p and the smaller q of narrow cells of q, and the least c of blocks of y. Here the points of
the boundary are further apart, except where it bends, and the blocks are wider; the test's own roundings become shifts
of p, q and y. Few numbers of hits are summed one by one, as in the test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..inference.binomial_tails import Array, upper_tail
from ..inference.boundary_test import CELL, REACH, arcsine_angle

_COUNTED = 400  # numbers of hits on y that are summed one by one
_SPACING, _FINE_SPACING = 0.25, 0.06  # standard errors of q between points, for blocks of y and for single y
_BEND, _PARTS = 0.02, 8  # relative change of the slope at which a spacing is divided, and the number of parts
_BLOCK, _BLOCK_OF_X = 0.25, 0.5  # width of a block of y, at most, in standard errors of y and of x
_SUMMED, _NORMAL_FROM = 400.0, 100.0  # variance of x below which all tails are summed, and of hits below which some are


@dataclass(frozen=True, slots=True)
class RegionProbabilities:
    """The laws of the hits at points of the boundary.

    Attributes
    ----------
    angle : ndarray, shape (points,)
        arcsin √q of the points.
    y : ndarray, shape (blocks,)
        Number of hits on y that stands for each block; not always whole.
    """

    angle: Array
    y: Array
    n: int
    p: Array
    p_rest: Array
    columns: npt.NDArray[np.int64]  # blocks that are summed at each point, shape (points, width)
    mass: Array  # their probabilities, shape (points, width)
    before: Array  # probability of all y before the first of them, shape (points,)
    first: Array  # hits on x at which the tables begin, shape (points,)
    table: Array | None  # tails of x, shape (points, hits)

    @classmethod
    def of(cls, claim: Claim, rough: Claim, n: int, m: int, low: float, high: float) -> RegionProbabilities:
        """Prepare the boundary of `claim` between two angles of q; `rough` is nearly the same claim, and cheap."""
        unit = 0.5 / math.sqrt(m)
        half = 0.5 * CELL * unit
        low, high = low + half, max(high - half, low + 3.0 * half)
        angle, starts = _points_and_blocks(rough, n, m, low, high)
        p, p_rest = claim.max_power(*rates(angle + half))
        q, q_rest = rates(angle - half)
        columns = _blocks_near(angle, starts, m)
        ends = np.append(starts[1:] - 1.0, float(m))
        y = np.append(0.5 * (starts + ends)[:-1], starts[-1])
        y -= 0.5 * np.maximum(CELL * np.sqrt(y * (m - y) / m) - 1.0, 0.0)  # the test's blocks count as their first y
        through = np.concatenate([starts[columns[:, :1]] - 1.0, ends[columns]], axis=1)
        below = _tail(m - through, m, q_rest, q)
        below[:, 0] = np.where(through[:, 0] < 0, 0.0, below[:, 0])
        first, table, variance = np.zeros(0), None, n * p * p_rest
        if variance.max() < _SUMMED:
            reach = np.ceil(7.5 * np.sqrt(variance) + 30.0)
            first = np.floor(n * p) - reach
            hits = np.arange(min(2 * reach.max(), n + 1 - first.min()) + 1.0)
            table = upper_tail(first[:, None] + hits, n, p, p_rest)
        return cls(angle, y, n, p, p_rest, columns, np.diff(below, axis=1), below[:, 0], first, table)

    def at(self, critical: Array) -> Array:
        """Return Pr[X ≥ c(Y)] at all points, shape (regions, points), for c of shape (regions, blocks)."""
        return np.stack(
            [self.before + np.einsum("pk,pk->p", self._tails(c[self.columns]), self.mass) for c in critical]
        )

    def _tails(self, critical: Array) -> Array:
        if self.table is None:
            return _tail(critical, self.n, self.p, self.p_rest)
        width = self.table.shape[1]
        at = np.clip(critical - self.first[:, None], 0, width - 1).astype(np.int64)
        at += (np.arange(len(at)) * width)[:, None]
        return self.table.ravel()[at]


def rates(angle: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the probability at an angle on the arcsine scale, and its complement."""
    inside = np.clip(angle, 0.0, math.pi / 2)
    return np.asarray(np.sin(inside) ** 2), np.asarray(np.cos(inside) ** 2)


def _points_and_blocks(claim: Claim, n: int, m: int, low: float, high: float) -> tuple[Array, Array]:
    """Return angles of q and the first y of each block."""
    unit = 0.5 / math.sqrt(m)
    rise = np.diff(arcsine_angle(*claim.max_power(*rates([low, high]))))[0] / (high - low)
    error_x = 1.0 / max(float(rise) * math.sqrt(n / m), 1e-9)  # in standard errors of y
    fewest, most = (m * rates([low - REACH * unit, high + REACH * unit])[0]).tolist()
    if most - fewest > _COUNTED:
        block = min(_BLOCK, max(_BLOCK_OF_X * error_x, CELL)) * unit
        starts = np.floor(m * rates(np.arange(low - REACH * unit, high + REACH * unit, block))[0])
        return _points(claim, low, high, _SPACING * unit), np.unique(starts)
    q, q_rest = rates(0.5 * (low + high))
    is_jagged = error_x * math.sqrt(m * float(q * q_rest)) < 1.0  # x shows every single y
    spacing = min(_FINE_SPACING, max(0.3 * error_x, CELL)) if is_jagged else _FINE_SPACING
    return _even(low, high, spacing * unit), np.arange(math.floor(fewest), math.ceil(most) + 1.0)


def _points(claim: Claim, low: float, high: float, spacing: float) -> Array:
    """Return angles of q that are closer together where the boundary bends, because probabilities peak there."""
    angle = _even(low, high, spacing)
    slope = np.diff(arcsine_angle(*claim.max_power(*rates(angle)))) / np.diff(angle)
    bends = np.abs(np.diff(slope)) > _BEND * np.maximum(1.0, np.abs(slope[1:]))
    is_bent = np.append(bends, False) | np.append(False, bends)
    finer = angle[:-1][is_bent][:, None] + np.diff(angle)[is_bent][:, None] * np.arange(_PARTS) / _PARTS
    return np.unique(np.concatenate([angle, finer.ravel()]))


def _even(low: float, high: float, spacing: float) -> Array:
    return np.linspace(low, high, max(4, math.ceil((high - low) / spacing) + 1))


def _blocks_near(angle: Array, starts: Array, m: int) -> npt.NDArray[np.int64]:
    reach = REACH * 0.5 / math.sqrt(m)
    from_block = np.maximum(np.searchsorted(starts, m * rates(angle - reach)[0], side="right") - 1, 0)
    to_block = np.searchsorted(starts, m * rates(angle + reach)[0], side="right")
    width = int((to_block - from_block).max()) + 1
    return np.minimum(from_block[:, None] + np.arange(width), len(starts) - 1)


def _tail(hits: Array, runs: int, p: Array, p_rest: Array) -> Array:
    """Return Pr[Bin(runs, p) ≥ hits], with a continuity correction where it is the normal bound."""
    correction = 0.5 * (runs * p * p_rest >= _NORMAL_FROM)[:, None]
    return upper_tail(hits + correction, runs, p, p_rest, normal_from=_NORMAL_FROM)
