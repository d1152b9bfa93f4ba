"""Wrong ways from the gradients of a batch to one vector: clipped too late, in parts, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...noise_samplers import Floats
from ...training.gradient_blocks import GradientBlock, clipped_to
from ...training.models import Batch, Booleans, Model
from ...training.steps import sum_of


@dataclass(frozen=True, slots=True)
class SumOfUnclipped:
    """The sum of the batch's gradients as they are."""

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        return sum_of(blocks, is_in.astype(np.float64))


@dataclass(frozen=True, slots=True)
class ClippedMean:
    """The mean of the batch's gradients, clipped as a whole; 0 for an empty batch."""

    clip: float

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        sizes = np.maximum(is_in.sum(axis=1, keepdims=True), 1)
        mean = sum_of(blocks, is_in / sizes)
        return mean * clipped_to(np.einsum("rp,rp->r", mean, mean), self.clip)[:, None]


@dataclass(frozen=True, slots=True)
class SumOfClippedMicrobatches:
    """The sum over microbatches of `size` consecutive records of their mean gradient, each mean clipped."""

    clip: float
    size: int

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        total, number = np.zeros(1), np.arange(is_in.shape[1]) // self.size
        for each in np.unique(number):
            total = total + ClippedMean(self.clip)(blocks, is_in & (number == each))
        return total


@dataclass(frozen=True, slots=True)
class ClippedByGroup:
    """The sum of the batch's gradients, with each group of parameters clipped to the norm of the whole gradient."""

    clip: float

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        parts = [block.weighted_sum(is_in * clipped_to(block.squared_norms(), self.clip)) for block in blocks]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True)
class ClippedByLastNorm:
    """The sum of the batch's gradients, scaled by the norm of the last group of parameters alone."""

    clip: float

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        return sum_of(blocks, is_in * clipped_to(blocks[-1].squared_norms(), self.clip))


@dataclass(frozen=True, slots=True)
class BatchNormalised:
    """A model whose features are standardised within each batch, without weights of its own.

    The records of a batch share a mean and a deviation, which are taken as constants in their gradients. `epsilon` is
    added to the variance, as frameworks do.
    """

    model: Model
    epsilon: float = 1e-5

    @property
    def n_parameters(self) -> int:
        return self.model.n_parameters

    @property
    def cells(self) -> int:
        return self.model.cells + self.model.n_parameters

    def split(self, rows: Any) -> tuple[Floats, Floats]:
        return self.model.split(rows)

    def blocks(self, weights: Floats, batch: Batch) -> tuple[GradientBlock, ...]:
        members = batch.is_in[:, :, None]
        sizes = np.maximum(members.sum(axis=1, keepdims=True), 1)
        centred = batch.features - (members * batch.features).sum(axis=1, keepdims=True) / sizes
        variance = (members * centred**2).sum(axis=1, keepdims=True) / sizes
        return self.model.blocks(weights, replace(batch, features=centred / np.sqrt(variance + self.epsilon)))

    def losses(self, weights: Floats, features: Floats, labels: Floats) -> Floats:
        return self.model.losses(weights, features, labels)


def standardised_columns(rows: Any) -> Floats:
    """The records with every column less its mean, over its standard deviation; columns of equal numbers become 0."""
    table = np.asarray(rows, dtype=np.float64)
    deviation = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
