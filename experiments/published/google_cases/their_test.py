"""The statistical test of google/differential-privacy, on outputs of a known distribution: which noise passes?

A vote compares histograms of outputs on the two datasets. It takes the differences between the frequencies on one
dataset and e^ε times those on the other, and adds the positive ones; the sum must be below δ + tolerance, in both
directions. The sampling error of the frequencies makes the sum positive even if the claim holds; the tolerance leaves
room for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from ....mechanisms import GaussianDistribution, LaplaceDistribution, analytic_gaussian_scale
from .case import VOTES, Case, Row

_RANGE: Final = {"laplace": 25.0, "gaussian": 8.0}
"""Scales beyond the exact answers in which cells are formed; the outputs beyond are part of the last cells."""
_STEPS: Final = 9
_SHORTEST: Final = 0.1
"""Share of the noise at which the search begins; a case that lets this much pass has it as its limit."""


def passes(case: Case, share: float, *, seed: int) -> bool:
    """Return whether the majority of nine votes accepts a count or sum with this share of the noise."""
    p, q = (_cells(case, rows, share) for rows in case.pair())
    rng, limit, ratio = np.random.default_rng(seed), case.tested_delta + case.tolerance, math.exp(case.epsilon)
    accepted = rejected = 0
    while 2 * max(accepted, rejected) < VOTES:
        x, y = (rng.multinomial(case.samples, cells) / case.samples for cells in (p, q))
        found = max(float(np.maximum(x - ratio * y, 0.0).sum()), float(np.maximum(y - ratio * x, 0.0).sum()))
        accepted, rejected = accepted + (found < limit), rejected + (found >= limit)
    return accepted > rejected


def least_noise_that_passes(case: Case, *, seed: int) -> float:
    """Return the least share of the noise of a count or sum that the test accepts, by bisection to .002."""
    low, high = _SHORTEST, 1.0
    if passes(case, low, seed=seed):
        return low
    for step in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(case, middle, seed=seed + 1 + step) else (middle, high)
    return high


def _cells(case: Case, rows: list[Row], share: float) -> npt.NDArray[np.float64]:
    """Return the probabilities of the test's cells: multiples of the granularity, to which outputs are rounded.

    Counts are taken from the count of the first dataset, which doubles hold exactly.
    """
    is_count = case.file == "count"
    base = sum(case.rows) if is_count else 0.0
    answers = [_clipped(case, values) - base for values in (case.rows, [value for _, value in rows])]
    change = 1.0 if is_count else max(abs(case.lower), abs(case.upper))
    distribution: LaplaceDistribution | GaussianDistribution
    if case.noise == "laplace":
        distribution = LaplaceDistribution(answers[1], share * case.partitions * change / case.epsilon)
    else:
        unit = analytic_gaussian_scale(case.epsilon, case.delta)
        distribution = GaussianDistribution(answers[1], share * unit * math.sqrt(case.partitions) * change)
    width = case.granularity
    added = sum(case.extra) if is_count else change * len(case.extra)
    reach = math.ceil((_RANGE[case.noise] * distribution.scale + added) / width)
    edges = (round(answers[0] / width) + np.arange(-reach, reach) + 0.5) * width
    cells = np.maximum(np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]])), 0.0)
    return np.asarray(cells / cells.sum())


def _clipped(case: Case, values: Iterable[float]) -> float:
    return float(sum(values) if case.file == "count" else sum(min(max(one, case.lower), case.upper) for one in values))
