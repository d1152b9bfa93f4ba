"""The same step with a bug: it clips the sum and not each gradient."""

import numpy as np


def noisy_gradient(gradients, rng):
    total = gradients[np.isfinite(gradients).all(axis=1)].sum(axis=0)
    return total / max(np.linalg.norm(total), 1.0) + rng.normal(size=len(total))
