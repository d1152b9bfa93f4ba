"""Thousands of short trainings at once: batches, noisy steps, and recipes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import ClaimError, DatasetError
from ..noise_samplers import Floats, Integers, grid_step
from ..queries import Query, check_count, identity
from .models import Batch, Booleans, GradientBlock, Model, clipped_to
from .observers import Observer

# How records are drawn into batches: Poisson, full batch, fixed size, shuffled, fixed order, balls in bins.
#
# A sampling yields, step by step, which records each run uses: a mask of shape (runs, n). Each record's membership is
# drawn as for a training on n records, with the random numbers of `rng` in the order of the steps.


class Sampling(Protocol):
    """A rule that draws the batches."""

    __slots__ = ()

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        """The masks of the steps, each of shape (runs, n)."""


@dataclass(frozen=True, slots=True)
class PoissonBatches(Sampling):
    """Every record is in every batch with probability `rate`, independently."""

    rate: float

    def __post_init__(self) -> None:
        check_number("rate", self.rate, 0, math.nextafter(1.0, 2.0), "a probability of at most 1", closed=False)

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        for _ in range(steps):
            yield rng.random((runs, n)) < self.rate


@dataclass(frozen=True, slots=True)
class FullBatch(Sampling):
    """Every batch is the whole dataset."""

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        everything = np.ones((runs, n), dtype=np.bool_)
        for _ in range(steps):
            yield everything


@dataclass(frozen=True, slots=True)
class _OfRows(Sampling):
    """Batches of `batch` records for a dataset of `n_rows` records."""

    batch: int
    n_rows: int

    def __post_init__(self) -> None:
        check_count("batch", self.batch, "records in a batch")
        check_count("n_rows", self.n_rows, "records", self.batch)


@dataclass(frozen=True, slots=True)
class FixedSizeBatches(_OfRows):
    """Every batch is a uniformly random set of `batch` of the `n_rows` records, drawn anew in each step."""

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        check_rows(n, self.n_rows)
        for _ in range(steps):
            yield _ranks(rng.random((runs, n))) < self.batch


class _InEpochs(Sampling):
    """Each record is in one batch of an epoch of `per_epoch` steps, or in none."""

    __slots__ = ()
    per_epoch: int

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        for step in range(steps):
            number = step % self.per_epoch
            if number == 0:
                batch_of = self._drawn(runs, n, rng)
            yield batch_of == number

    @abstractmethod
    def _drawn(self, runs: int, n: int, rng: np.random.Generator) -> Integers:
        """The number of each record's batch in a new epoch, shape (runs, n)."""


@dataclass(frozen=True, slots=True)
class ShuffledBatches(_InEpochs, _OfRows):
    """In each epoch the records are shuffled and cut into batches; with `drop_last`, a smaller last one is left out."""

    drop_last: bool = False
    per_epoch = property(
        lambda s: s.n_rows // s.batch if s.drop_last else -(-s.n_rows // s.batch), doc="Number of batches in an epoch."
    )

    def _drawn(self, runs: int, n: int, rng: np.random.Generator) -> Integers:
        check_rows(n, self.n_rows)
        return _ranks(rng.random((runs, n))) // self.batch


@dataclass(frozen=True, slots=True)
class BatchesInOrder(_InEpochs, _OfRows):
    """The `n_rows` records are cut into batches of `batch` records in their order, the same in every epoch."""

    per_epoch = property(lambda s: -(-s.n_rows // s.batch), doc="Number of batches in an epoch.")

    def _drawn(self, runs: int, n: int, rng: np.random.Generator) -> Integers:
        check_rows(n, self.n_rows)
        return np.tile(np.arange(n) // self.batch, (runs, 1))


@dataclass(frozen=True, slots=True)
class BallsInBins(_InEpochs):
    """In each epoch every record falls into one of `bins` batches, uniformly and independently of the others.

    Source: Chua, Ghazi, Harrison, Kamath, Kumar, Leeman, Manurangsi, Sinha & Zhang (2025).
    """

    bins: int
    per_epoch = property(lambda s: s.bins, doc="Number of batches in an epoch.")

    def __post_init__(self) -> None:
        check_count("bins", self.bins, "batches in an epoch")

    def _drawn(self, runs: int, n: int, rng: np.random.Generator) -> Integers:
        return rng.integers(0, self.bins, (runs, n))


def check_rows(n: int, n_rows: int) -> None:
    """Raise a `DatasetError` unless the dataset has the number of records for which the sampling is defined."""
    if n != n_rows:
        raise DatasetError(
            f"the dataset has {n} records, but the sampling is for {n_rows}; use datasets of one size, where a removed "
            "record is one of zeros.",
            n=n,
            n_rows=n_rows,
        )


def _ranks(keys: Floats) -> Integers:
    """Position of each key in the order of its row: a uniformly random permutation for independent keys."""
    return np.argsort(np.argsort(keys, axis=1), axis=1)


# What one step releases: the sum of clipped gradients plus Gaussian noise.


class GradientRule(Protocol):
    """How the gradients of a batch become one vector."""

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        """The vector of each run, shape (runs, parameters), for members `is_in` of shape (runs, n)."""


class NoiseRule(Protocol):
    """How the vector becomes what is released."""

    __slots__ = ()

    def begun(self) -> NoiseRule:
        """The rule for a new group of runs: itself, unless it keeps something from step to step."""
        return self

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        """The noisy vector of each run, shape (runs, parameters)."""


@dataclass(frozen=True, slots=True)
class SumOfClipped:
    """The sum of the batch's gradients, each scaled to a Euclidean norm of at most `clip` over all parameters.

    Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Algorithm 1.
    """

    clip: float

    def __post_init__(self) -> None:
        check_number("clip", self.clip, 0, math.inf, "the largest norm of a gradient", closed=False)

    def __call__(self, blocks: tuple[GradientBlock, ...], is_in: Booleans) -> Floats:
        squared_norms = np.asarray(sum(block.squared_norms() for block in blocks))
        return sum_of(blocks, is_in * clipped_to(squared_norms, self.clip))


def sum_of(blocks: tuple[GradientBlock, ...], weights: Floats) -> Floats:
    """Weighted sum of the examples' whole gradients, shape (runs, parameters)."""
    return np.concatenate([block.weighted_sum(weights) for block in blocks], axis=1)


@dataclass(frozen=True, slots=True)
class GaussianNoise(NoiseRule):
    """Independent normal noise of standard deviation `scale` on every parameter, rounded to the grid of
    `LaplaceMechanism`.
    """

    scale: float

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, math.inf, "a standard deviation", closed=False)

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        return rounded(total + self.scale * rng.standard_normal(total.shape), self.scale)


def rounded(values: Floats, scale: float) -> Floats:
    """The values, each rounded to the nearest multiple of the grid step for noise of this scale; works in place."""
    step = grid_step(scale)
    values /= step  # exact: the step is a power of two
    np.rint(values, out=values)
    values *= step
    return values


# Stochastic gradient descent with noisy sums of gradients, for many runs at once.

_CELLS: Final = 2**20  # doubles per array: 8 MiB, which fits into the cache of a server


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that determines a training but the data and the random numbers.

    The gradient rule makes one vector of the gradients of a batch, and the noise rule adds noise to it; the result is
    divided by `batch_size`, the expected one, which must not depend on the private records. `initial` are the first
    weights, () for zeros; `prepare` is what is done to the records before the training.
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
