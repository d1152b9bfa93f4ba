"""One step of DP-SGD: 1-GDP for examples added or removed."""

import numpy as np


def noisy_gradient(gradients, size, rng):
    """Sum of the clipped gradients with noise, for `size` runs; `gradients` has a row for each example."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    clipped = gradients / np.maximum(norms, 1.0)
    return clipped.sum(axis=0) + rng.normal(size=(size, clipped.shape[1]))
