"""A small library of its own: two statistics of a survey, with the noise of the Laplace mechanism."""

from __future__ import annotations

import numpy as np

LARGEST = 100.0
"""Answers are clipped to [0, 100]."""


def noisy_count(ages, epsilon, size, rng):
    """How many took part: epsilon-DP where a row is added or removed."""
    return len(ages) + rng.laplace(scale=1.0 / epsilon, size=size)


def noisy_total(ages, epsilon, size, rng):
    """The sum of the ages, each clipped: epsilon-DP where a row is added or removed."""
    return np.clip(ages, 0.0, LARGEST).sum() + rng.laplace(scale=LARGEST / epsilon, size=size)
