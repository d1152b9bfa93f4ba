"""The same step with a bug: it clips the sum and not each gradient."""

import numpy as np


def noisy_gradient(gradients, size, rng):
    total = np.sum(gradients, axis=0)
    return total / max(np.linalg.norm(total), 1.0) + rng.normal(size=(size, len(total)))
