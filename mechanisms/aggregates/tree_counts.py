"""Noisy counts of the nodes of a quantile tree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import check_number
from ..parameter_checks import check_count
from .noisy_answers import NoisyAnswers, calibrated


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Numbers of rows in the nodes below the root, level by level; rows are clipped to the bounds."""

    lower: float
    upper: float
    height: int
    branching: int

    def __call__(self, dataset: Any) -> tuple[float, ...]:
        leaves = self.branching**self.height
        shares = (np.clip(np.asarray(dataset, dtype=np.float64), self.lower, self.upper) - self.lower) / (
            self.upper - self.lower
        )
        places = np.minimum((shares * leaves).astype(np.int64), leaves - 1)
        counts = np.bincount(places, minlength=leaves)
        levels = [counts.reshape(self.branching**level, -1).sum(axis=1) for level in range(1, self.height + 1)]
        return tuple(np.concatenate(levels).astype(np.float64).tolist())


def noisy_tree_counts(
    lower: float,
    upper: float,
    *,
    height: int,
    branching: int,
    epsilon: float,
    delta: float = 0.0,
    partitions: int = 1,
    per_partition: int = 1,
    noise_share: float = 1.0,
) -> NoisyAnswers:
    """Return the noisy counts from which a quantile tree computes all quantiles.

    Each level divides every node of the level above into `branching` equal intervals. A row is counted once on each
    of the `height` levels, so it changes as many counts by 1 at once; all counts have noise of one scale. The other
    parameters are those of `noisy_moments`.

    References
    ----------
    Alabi, Ben-Eliezer & Chaturvedi (2022), Bounded Space Differentially Private Quantiles (trees of counts); the class
    BoundedQuantiles of google/differential-privacy.

    Examples
    --------
    >>> counts = noisy_tree_counts(0.0, 1.0, height=2, branching=5, epsilon=0.5)
    >>> len(counts.scales), set(counts.scales)
    (30, {4.0})
    """
    check_number("lower", lower, -math.inf, math.inf, "rows are clipped to it", closed=False)
    check_number("upper", upper, lower, math.inf, "above the lower bound", closed=False)
    check_count("height", height, "levels")
    check_count("branching", branching, "children of a node", least=2)
    return calibrated(
        _Nodes(lower, upper, height, branching),
        (1.0,) * sum(branching**level for level in range(1, height + 1)),
        epsilon=epsilon,
        delta=delta,
        partitions=partitions,
        per_partition=per_partition,
        shares=1,
        at_once=height,
        noise_share=noise_share,
    )
