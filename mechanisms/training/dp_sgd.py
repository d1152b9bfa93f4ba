"""DP-SGD as a mechanism: many independent trainings, and what an observer sees of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim, check_number
from ...audit.datasets.adjacency import AddRemove, Adjacency, Replace
from ..noise_samplers import Floats
from .batches import Sampling
from .dp_sgd_claims import Neighbours, dp_sgd_claim
from .models import Model
from .observers import NoisySums, Observer
from .steps import GaussianNoise, SumOfClipped
from .train import Recipe, train


@dataclass(frozen=True, slots=True, kw_only=True)
class DPSGD:
    """Stochastic gradient descent on clipped gradients of single examples with Gaussian noise on their sum.

    A step adds normal noise of standard deviation `noise_multiplier` × `clip` to the sum of the batch's clipped
    gradients, divides by `batch_size`, and moves the weights by `learning_rate` against the result. A dataset is an
    array of records, shape (n, columns), with the label in the last column if the model has one.

    Parameters
    ----------
    model : Model
        Such as ``LogisticRegression(31)``; `FixedGradients` for the worst case.
    sampling : Sampling
        How batches are drawn, such as ``PoissonBatches(0.01)``.
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm, positive.
    steps : int
    clip : float
        Clipping norm of a gradient, Euclidean, over all parameters.
    learning_rate : float
    batch_size : float
        What the noisy sum is divided by: the expected batch size, a constant that does not depend on the dataset.
    initial : tuple of float
        First weights; () for zeros.
    observer : Observer
        What is seen of a run, and so the output. Its `clip` is the unit of what it shows.
    neighbours : {"add_or_remove_one", "replace_one", "replace_special"}
        Relation of the claim; in "replace_special" a record is replaced by one of zeros.
    delta : float or None
        δ of the claim; None claims the whole privacy curve.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Deep learning with differential privacy,
    Algorithm 1. `dp_sgd_claims` gives the source of each claim.

    Examples
    --------
    >>> from dpaudit.mechanisms.training.batches import PoissonBatches
    >>> from dpaudit.mechanisms.training.models import FixedGradients
    >>> mechanism = DPSGD(model=FixedGradients(), sampling=PoissonBatches(0.5), noise_multiplier=1.0, steps=4)
    >>> mechanism.sample([[1.0]], 3, np.random.default_rng(0)).shape
    (3, 4)
    """

    model: Model
    sampling: Sampling
    noise_multiplier: float
    steps: int
    clip: float = 1.0
    learning_rate: float = 1.0
    batch_size: float = 1.0
    initial: tuple[float, ...] = ()
    observer: Observer = NoisySums()  # noqa: RUF009  # frozen
    neighbours: Neighbours = "add_or_remove_one"
    delta: float | None = 1e-5

    def __post_init__(self) -> None:
        check_number("noise_multiplier", self.noise_multiplier, 0, math.inf, "noise over clipping norm", closed=False)
        self.recipe  # noqa: B018  # refuses the other parameters

    def __str__(self) -> str:
        model, sampling = type(self.model).__name__, type(self.sampling).__name__
        return f"DPSGD({model}, {sampling}, σ={self.noise_multiplier:g}, {self.steps} steps)"

    @property
    def recipe(self) -> Recipe:
        """The training itself."""
        return Recipe(
            model=self.model,
            sampling=self.sampling,
            gradient=SumOfClipped(self.clip),
            noise=GaussianNoise(self.noise_multiplier * self.clip),
            steps=self.steps,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            initial=self.initial,
        )

    @property
    def claim(self) -> Claim:
        """The guarantee by `dp_sgd_claim`, for an observer of every noisy sum."""
        return dp_sgd_claim(
            self.sampling, self.noise_multiplier, self.steps, neighbours=self.neighbours, delta=self.delta
        )

    @property
    def adjacency(self) -> Adjacency:
        """The relation of the claim."""
        return AddRemove() if self.neighbours == "add_or_remove_one" else Replace()

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """What the observer sees of `size` independent trainings, shape (size,) or (size, k)."""
        return train(self.recipe, dataset, self.observer, size, rng)
