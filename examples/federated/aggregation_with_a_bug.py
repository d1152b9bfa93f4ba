"""The same round with a bug: clients with more examples count more, and the noise is for equal clients."""

import numpy as np

CLIENTS = 8


def new_model(updates, examples, rng):
    is_finite = np.isfinite(updates).all(axis=1)
    updates, examples = updates[is_finite], examples[is_finite]
    clipped = updates / np.maximum(np.linalg.norm(updates, axis=1, keepdims=True), 1.0)
    weights = examples / max(examples.sum(), 1)
    return weights @ clipped + rng.normal(size=updates.shape[1]) / CLIENTS
