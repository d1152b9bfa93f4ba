"""One step of DP-SGD: 1-GDP for examples added or removed."""

import numpy as np


def noisy_gradient(gradients, rng):
    """Sum of the clipped gradients with noise; `gradients` has a row for each example."""
    gradients = gradients[np.isfinite(gradients).all(axis=1)]  # a norm that is not a number would pass the clip
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients / np.maximum(norms, 1.0)).sum(axis=0) + rng.normal(size=gradients.shape[1])
