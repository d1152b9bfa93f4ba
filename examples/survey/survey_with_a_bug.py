"""The same after a change for the worse: older people may take part, and nobody thought of the noise."""

from __future__ import annotations

import numpy as np

LARGEST = 100.0


def noisy_total(ages, epsilon, size, rng):
    """The sum of the ages, each clipped: said to be epsilon-DP where a row is added or removed."""
    return np.clip(ages, 0.0, 120.0).sum() + rng.laplace(scale=LARGEST / epsilon, size=size)
