"""Stochastic gradient descent with noisy sums of gradients, for many runs at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import ClaimError
from ..noise_samplers import Floats
from ..parameter_checks import check_count
from ..queries import Query, identity
from .batches import Sampling
from .models import Batch, Model
from .observers import Observer
from .steps import GradientRule, NoiseRule

_CELLS: Final = 2**20  # doubles per array: 8 MiB, which fits into the cache of a server


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that determines a training but the data and the random numbers.

    Attributes
    ----------
    model : Model
    sampling : Sampling
        How batches are drawn.
    gradient : GradientRule
        How the gradients of a batch become one vector.
    noise : NoiseRule
        How noise is added to it.
    steps : int
    learning_rate : float
    batch_size : float
        What the noisy sum is divided by: the expected batch size, which must not depend on the private records.
    initial : tuple of float
        First weights, one per parameter; () for zeros.
    prepare : callable
        What is done to the records before the training; by default nothing.
    """

    model: Model
    sampling: Sampling
    gradient: GradientRule
    noise: NoiseRule
    steps: int
    learning_rate: float = 1.0
    batch_size: float = 1.0
    initial: tuple[float, ...] = ()
    prepare: Query = identity

    def __post_init__(self) -> None:
        check_count("steps", self.steps, "steps")
        check_number("learning_rate", self.learning_rate, 0, math.inf, "per step", closed=False)
        check_number("batch_size", self.batch_size, 0, math.inf, "what the sum is divided by", closed=False)
        if len(self.initial) not in (0, self.model.n_parameters):
            raise ClaimError(
                f"initial has {len(self.initial)} weights, but the model has {self.model.n_parameters}; use one number "
                "per parameter, or () for zeros.",
                initial=len(self.initial),
            )

    def first_weights(self, runs: int) -> Floats:
        """First weights of the runs, shape (runs, parameters)."""
        start = self.initial or (0.0,) * self.model.n_parameters
        return np.tile(np.array(start, dtype=np.float64), (runs, 1))


def train(recipe: Recipe, rows: Any, observer: Observer, size: int, rng: np.random.Generator) -> Floats:
    """Return what the observer sees of `size` independent trainings on the records, shape (size,) or (size, k).

    Runs are trained together in groups that bound the memory. In a group, each step draws the batches of all its runs
    first, if the sampling draws in this step, then their noise.
    """
    features, labels = recipe.model.split(recipe.prepare(rows))
    cells = max(len(features) * recipe.model.cells, recipe.model.n_parameters, 1)
    group = max(1, min(size, _CELLS // cells))
    parts = [
        _train_group(recipe, features, labels, observer, min(group, size - start), rng)
        for start in range(0, size, group)
    ]
    return np.concatenate(parts)


def _train_group(
    recipe: Recipe, features: Floats, labels: Floats, observer: Observer, runs: int, rng: np.random.Generator
) -> Floats:
    model = recipe.model
    first = weights = recipe.first_weights(runs)
    rate = recipe.learning_rate / recipe.batch_size
    noise, seen = recipe.noise.begun(), []
    masks = recipe.sampling.batches(runs, len(features), recipe.steps, rng)
    for step, is_in in enumerate(masks):
        total = recipe.gradient(model.blocks(weights, Batch(features, labels, is_in)), is_in)
        noisy = noise(total, step, rng)
        kept = observer.at_step(model, weights, noisy)
        if kept is not None:
            seen.append(kept)
        weights = weights - rate * noisy
    return observer.outputs(model, seen, first, weights)
