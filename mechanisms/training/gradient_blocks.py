"""Gradients of many examples in many runs at once, without an array of runs × examples × parameters.

The gradient of a layer for one example is an outer product of the error that reaches the layer and the layer's input.
Its norm is the product of two norms, and a weighted sum over the examples is one matrix product, so the gradients
themselves are never formed.

References
----------
Goodfellow (2015), Efficient per-example gradient computations (norms from the outer products).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..noise_samplers import Floats


class GradientBlock(Protocol):
    """Gradients of all examples for one group of parameters, in every run."""

    @property
    def size(self) -> int:
        """Number of parameters of the group."""

    def squared_norms(self) -> Floats:
        """Squared Euclidean norm of each example's gradient, shape (runs, n), or (1, n) if equal in all runs."""

    def weighted_sum(self, weights: Floats) -> Floats:
        """Sum over the examples of weight × gradient, shape (runs, size), for weights of shape (runs, n)."""


@dataclass(frozen=True, slots=True)
class OuterProducts:
    """Gradients error ⊗ input of a layer, with the rows of the weight matrix (one per error) one after the other.

    Attributes
    ----------
    errors : ndarray, shape (runs, n, k) or (1, n, k)
        Derivative of an example's loss by the layer's k outputs before the activation.
    inputs : ndarray, shape (n, d), (1, n, d) or (runs, n, d)
        The layer's inputs.
    """

    errors: Floats
    inputs: Floats

    @property
    def size(self) -> int:
        return int(self.errors.shape[-1] * self.inputs.shape[-1])

    def squared_norms(self) -> Floats:
        errors, inputs = (np.einsum("...i,...i->...", part, part) for part in (self.errors, self.inputs))
        return np.atleast_2d(errors * inputs)

    def weighted_sum(self, weights: Floats) -> Floats:
        scaled = weights[:, :, None] * self.errors  # (runs, n, k)
        return np.asarray(np.matmul(scaled.transpose(0, 2, 1), self.inputs)).reshape(len(weights), -1)


def clipped_to(squared_norms: Floats, most: float) -> Floats:
    """Factors min(1, most/norm) that scale vectors of these squared norms to a norm of at most `most`."""
    return most / np.sqrt(np.maximum(squared_norms, most * most))


def all_gradients(blocks: tuple[GradientBlock, ...], n: int) -> Floats:
    """Gradient of each of the n examples, shape (n, runs, parameters), or (n, 1, parameters) if equal in all runs.

    Only for observers of one record, and for tests: it forms every gradient.
    """
    runs = max(len(block.squared_norms()) for block in blocks)
    one_hot = np.eye(n)[:, None, :].repeat(runs, axis=1)
    return np.stack([np.concatenate([b.weighted_sum(weights) for b in blocks], axis=1) for weights in one_hot])
