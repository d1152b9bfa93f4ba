"""Mistakes in the noise: its scale, and draws that are used twice."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...noise_samplers import Floats
from ...training.batches import FullBatch, PoissonBatches
from ...training.canaries import DiracCanaries
from ...training.dp_sgd import DPSGD
from ...training.models import FixedGradients, LinearRegression
from ...training.observers import LastProjection, WeightedSums
from ...training.steps import GaussianNoise, NoiseRule, rounded
from ...training.train import Recipe
from .clipping_faults import DELTA, NOTHING, POISSON, poisson_loss, seen_with
from .mistaken_training import MistakenTraining, mistaken
from .training_fault import TrainingFault
from .true_losses import scales_epsilon

# Noise that is not fresh for every parameter and step.


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Normal noise of standard deviation `scale` whose draws are the same for all groups of `size` parameters."""

    scale: float
    size: int

    def begun(self) -> NoiseRule:
        return self

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        runs, parameters = total.shape
        noise = rng.standard_normal((runs, self.size))
        return rounded(total + self.scale * np.tile(noise, parameters // self.size), self.scale)


@dataclass(frozen=True, slots=True)
class RepeatedNoise:
    """Normal noise of standard deviation `scale` whose draws are the same in every epoch of `period` steps."""

    scale: float
    period: int

    def begun(self) -> NoiseRule:
        return _Repeating(self.scale, self.period)

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        return self.begun()(total, step, rng)


@dataclass(slots=True)
class _Repeating:
    """The noise of one group of runs, which keeps the draws of the first epoch."""

    scale: float
    period: int
    drawn: list[Floats] = field(default_factory=list)

    def begun(self) -> NoiseRule:
        return _Repeating(self.scale, self.period)

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        if step < self.period:
            self.drawn.append(rng.standard_normal(total.shape))
        return rounded(total + self.scale * self.drawn[step % self.period], self.scale)


def noise_faults() -> tuple[TrainingFault, ...]:
    """All mistakes of this module."""
    return (*_wrong_scales(), *_drawn_once())


def _wrong_scales() -> tuple[TrainingFault, ...]:
    clipped = replace(POISSON, clip=4.0, observer=seen_with(4.0, clip=4.0))
    without_clip = mistaken(clipped, "noise without the clipping norm", noise=GaussianNoise(4.0))
    twice = mistaken(POISSON, "noise divided twice", noise=GaussianNoise(1.0), batch_size=4.0)
    by_size = MistakenTraining(
        claimed=replace(POISSON, observer=LastProjection()),
        recipe=POISSON.recipe,
        label="divided by the size of the data",
        adapt=divided_by_the_data,
    )
    return (
        TrainingFault(
            name="noise-without-the-clipping-norm",
            cause="The noise has the standard deviation σ instead of σ·C, for a clipping norm C = 4",
            source="Constructed. Opacus, issue 11 (2020), asks where the clipping norm enters: the accountant sees σ "
            "only because the code multiplies it by the norm.",
            right=clipped,
            wrong=replace(without_clip, seen=seen_with(1.0, clip=4.0)),
            x=np.array([[4.0]]),
            y=NOTHING,
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=poisson_loss(1.0),
            canaries=DiracCanaries(2000, 4.0),
        ),
        TrainingFault(
            name="noise-divided-twice",
            cause="Noise for a mean of four clipped gradients is added to their sum, which is then divided by four",
            source="Tramèr, Terzis, Steinke, Song, Jagielski & Carlini (2022), Debugging differential privacy: the "
            "sensitivity was wrong by a factor of the batch size in the code of backpropagation clipping.",
            right=POISSON,
            wrong=replace(twice, seen=seen_with(1.0)),
            x=np.array([[1.0]]),
            y=NOTHING,
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=poisson_loss(1.0),
            canaries=DiracCanaries(2000),
        ),
        TrainingFault(
            name="divided-by-the-size-of-the-data",
            cause="The noisy sum is divided by the sampling rate times the number of private records, so the noise in "
            "the weights shows the number",
            source="Opacus, issue 571 (2023): with two or three records more leaks than the accountant says, as the "
            "expected batch size is computed from the size of the dataset.",
            right=replace(POISSON, observer=LastProjection()),
            wrong=by_size,
            x=np.zeros((1, 1)),
            y=np.zeros((2, 1)),
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: scales_epsilon(2.0, POISSON.steps, DELTA),
            runs=20_000,
        ),
    )


def divided_by_the_data(recipe: Recipe, rows: Any) -> Recipe:
    """The recipe with the expected batch size of these records, at rate one half."""
    return replace(recipe, batch_size=len(rows) / 2)


def _drawn_once() -> tuple[TrainingFault, ...]:
    two = DPSGD(
        model=FixedGradients((1, 1)),
        sampling=PoissonBatches(0.5),
        noise_multiplier=4.0,
        steps=2,
        observer=LastProjection((1.0, -1.0)),
        delta=DELTA,
    )
    epochs = DPSGD(
        model=LinearRegression(1),
        sampling=FullBatch(),
        noise_multiplier=4.0,
        steps=2,
        learning_rate=0.1,
        observer=WeightedSums((-1.0, 1.0)),
        delta=DELTA,
    )
    return (
        TrainingFault(
            name="noise-shared-by-groups",
            cause="Groups of parameters of the same shape get the same noise, so it cancels in their difference",
            source="JAX, pull request 3646 (2020): the example of differentially private descent reused one key of the "
            "random numbers for all parameters.",
            right=two,
            wrong=mistaken(two, "one noise for all groups", noise=SharedNoise(4.0, 1)),
            x=np.array([[1.0, 0.0]]),
            y=np.empty((0, 2)),
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: math.inf,
            is_unbounded=True,
        ),
        TrainingFault(
            name="seed-reset-each-epoch",
            cause="The random seed is set again in each epoch, so every epoch has the same noise: differences of "
            "gradients are released without any",
            source="Constructed. diffprivlib, issue 31 (2020): the maintainer warns that one seed for several "
            "mechanisms correlates their noise and breaks differential privacy.",
            right=epochs,
            wrong=mistaken(epochs, "seed reset each epoch", noise=RepeatedNoise(4.0, 1)),
            x=np.array([[1.0, 0.5]]),
            y=np.empty((0, 2)),
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: math.inf,
            is_unbounded=True,
        ),
    )
