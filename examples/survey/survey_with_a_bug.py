"""The same library with a bug: ages are clipped to 120, but the noise is still calibrated for 100."""

from __future__ import annotations

import numpy as np

LARGEST = 100.0


def noisy_total(ages, epsilon, size, rng):
    """Sum of the clipped ages: claimed to be epsilon-DP for rows added or removed."""
    return np.clip(np.nan_to_num(ages), 0.0, 120.0).sum() + rng.laplace(scale=LARGEST / epsilon, size=size)
