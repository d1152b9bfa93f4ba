"""Example library: two statistics of a survey, with Laplace noise."""

from __future__ import annotations

import numpy as np

LARGEST = 100.0
"""Ages are clipped to [0, 100], and a missing age counts as 0: a clip alone lets NaN pass."""


def noisy_count(ages, epsilon, size, rng):
    """Number of participants: epsilon-DP for rows added or removed."""
    return len(ages) + rng.laplace(scale=1.0 / epsilon, size=size)


def noisy_total(ages, epsilon, size, rng):
    """Sum of the clipped ages: epsilon-DP for rows added or removed."""
    return np.clip(np.nan_to_num(ages), 0.0, LARGEST).sum() + rng.laplace(scale=LARGEST / epsilon, size=size)
