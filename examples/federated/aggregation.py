"""One round of federated averaging: 1-GDP for clients added or removed."""

import numpy as np

CLIENTS = 8  # that are asked; fewer may reply


def new_model(updates, examples, rng):
    """Mean of the clipped updates with noise; `updates` has a row for each client, which count equally."""
    updates = updates[np.isfinite(updates).all(axis=1)]  # a norm that is not a number would pass the clip
    norms = np.linalg.norm(updates, axis=1, keepdims=True)
    clipped = updates / np.maximum(norms, 1.0)  # an update of zeros stays
    return (clipped.sum(axis=0) + rng.normal(size=updates.shape[1])) / CLIENTS
