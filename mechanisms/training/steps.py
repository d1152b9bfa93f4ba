"""What one step releases: the sum of clipped gradients plus Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...audit.claims.claim import check_number
from ..noise_samplers import Floats, grid_step
from .gradient_blocks import GradientBlock, clipped_to
from .models import Booleans


class GradientRule(Protocol):
    """How the gradients of a batch become one vector."""

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        """The vector of each run, shape (runs, parameters), for members `is_in` of shape (runs, n)."""


class NoiseRule(Protocol):
    """How the vector becomes what is released."""

    def begun(self) -> NoiseRule:
        """The rule for a new group of runs: itself, unless it keeps something from step to step."""

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        """The noisy vector of each run, shape (runs, parameters)."""


@dataclass(frozen=True, slots=True)
class SumOfClipped:
    """The sum of the batch's gradients, each scaled to a Euclidean norm of at most `clip` over all parameters.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Deep learning with differential privacy,
    Algorithm 1.
    """

    clip: float

    def __post_init__(self) -> None:
        check_number("clip", self.clip, 0, math.inf, "the largest norm of a gradient", closed=False)

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        factors = clipped_to(sum_of_norms(blocks), self.clip)
        return sum_of(blocks, is_in * factors)


def sum_of_norms(blocks: tuple[GradientBlock, ...]) -> Floats:
    """Squared norm of each example's whole gradient, shape (runs, n) or (1, n)."""
    return np.asarray(sum(block.squared_norms() for block in blocks))


def sum_of(blocks: tuple[GradientBlock, ...], weights: Floats) -> Floats:
    """Weighted sum of the examples' whole gradients, shape (runs, parameters)."""
    return np.concatenate([block.weighted_sum(weights) for block in blocks], axis=1)


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Independent normal noise of standard deviation `scale` on every parameter, rounded to a grid.

    The grid is that of the other reference mechanisms, the same for every dataset, so low bits show nothing.
    """

    scale: float

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, math.inf, "a standard deviation", closed=False)

    def begun(self) -> NoiseRule:
        return self

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        return rounded(total + self.scale * rng.standard_normal(total.shape), self.scale)


def rounded(values: Floats, scale: float) -> Floats:
    """The values, each rounded to the nearest multiple of the grid step for noise of this scale; works in place."""
    step = grid_step(scale)
    values /= step  # exact: the step is a power of two
    np.rint(values, out=values)
    values *= step
    return values
