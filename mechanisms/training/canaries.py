"""Canaries, and one training with many of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from ...audit.claims.claim import Claim, check_number
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import OptionError
from ..noise_samplers import Floats
from ..queries import check_count, check_value
from .models import Batch, Booleans, GradientBlock
from .observers import log_ratio
from .train import Recipe

# Canaries: made-up gradients along known directions, and blocks that put them beside the gradients of real records.
#
# The parameters of a canary run are the model's, followed by `spread` groups of m parameters that no real record
# touches, as the rows of an embedding for words that do not occur.
#
# Sources: Nasr et al. (2023), Tight auditing (Dirac canaries); Steinke, Nasr & Jagielski (2023), many at once.


@dataclass(frozen=True, slots=True)
class DiracCanaries:
    """Canary i touches one parameter only, or one in each of `spread` groups; the m × d matrix is never formed.

    Canary i has the (i + 1)th parameter from the end of each group, with an equal part of its `norm` before clipping;
    no real record touches it.
    """

    m: int
    norm: float = 1.0
    spread: int = 1

    def __post_init__(self) -> None:
        check_count("m", self.m, "canaries")
        check_number("norm", self.norm, 0, math.inf, "of a canary's gradient", closed=False)
        check_count("spread", self.spread, "groups")

    def blocks(self, records: tuple[GradientBlock, ...], n: int) -> tuple[GradientBlock, ...]:
        """The blocks of all groups for n real records, followed by the canaries: the model's, then the unused ones."""
        canaries = _CanaryBlock(self.m, n, self.norm / math.sqrt(self.spread))
        return *(_RecordBlock(block, self.m) for block in records), *(canaries,) * self.spread

    def projector(self, n_model: int) -> Callable[[Floats], Floats]:
        """Function from a vector, shape (parameters,), to its projections, shape (m,)."""
        if self.spread == 1:
            return lambda vector: vector[::-1][: self.m]
        root = math.sqrt(self.spread)
        return lambda vector: vector[n_model:].reshape(self.spread, -1)[:, ::-1].sum(axis=0) / root


@dataclass(frozen=True, slots=True)
class _RecordBlock:
    """A group of the model's parameters, in which the gradients of `m` canaries vanish."""

    records: GradientBlock
    m: int

    @property
    def size(self) -> int:
        return self.records.size

    def squared_norms(self) -> Floats:
        return np.pad(self.records.squared_norms(), ((0, 0), (0, self.m)))

    def weighted_sum(self, weights: Floats) -> Floats:
        return self.records.weighted_sum(weights[:, : -self.m])


@dataclass(frozen=True, slots=True)
class _CanaryBlock:
    """A group of unused parameters, in which each canary has one, with this gradient, and `n` records have 0."""

    size: int
    n: int
    part: float

    def squared_norms(self) -> Floats:
        return np.repeat([[0.0, self.part**2]], [self.n, self.size], axis=1)

    def weighted_sum(self, weights: Floats) -> Floats:
        return np.asarray(self.part * weights[:, self.n :][:, ::-1])


# One training with many canaries, each included or not by a coin of its own: scores and inclusion bits for a one-run
# audit.


class Training(Protocol):
    """A training with a claim: `DPSGD`, or one of its buggy variants, whose recipe includes the mistake."""

    @property
    def recipe(self) -> Recipe:
        """Settings of the training, with the mistake if there is one."""

    @property
    def clip(self) -> float:
        """Largest norm of a clipped gradient."""

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise in units of `clip`."""

    @property
    def claim(self) -> Claim:
        """Privacy that the training claims."""

    @property
    def adjacency(self) -> Adjacency:
        """Change of the dataset that the claim is about."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryRun:
    """Scores and inclusion bits of one training.

    A score is larger where the canary is more likely to have been `included`, by an independent inclusion bit of this
    `probability`. `mean_loss` is that of the real records at the last weights; 0 without records.
    """

    scores: Floats
    included: Booleans
    probability: float
    seed: int
    mean_loss: float
    training: Training

    @property
    def claim(self) -> Claim:
        """What the training claims: a guarantee for a change of any one coin."""
        return self.training.claim

    @property
    def adjacency(self) -> Adjacency:
        """The relation of the claim: a coin adds or removes a canary, or replaces it by one of zeros."""
        return self.training.adjacency


def canary_run(
    training: Training,
    rows: Any,
    canaries: DiracCanaries,
    *,
    probability: float = 0.5,
    score: Literal["sum", "ratio"] = "sum",
    seed: int = 0,
) -> CanaryRun:
    """Train once on real records and a random part of the canaries, and return the scores of all canaries.

    The canaries count as further records: the sampling draws their batches, the gradient rule clips them, and noise is
    added to every parameter. A canary that is not included has gradient 0. Time is O((n + parameters + m) · steps),
    memory O(n + parameters + m).

    Parameters
    ----------
    training : DPSGD or a wrong variant
        For a sampling with a fixed number of records, that of the real ones plus m. Its observer is not used.
    rows : array_like, shape (n, columns)
        Real records.
    canaries : DiracCanaries
        Give them the norm `training.clip`, or more where clipping is to be tested.
    probability : float
        Each canary is included with it, independently.
    score : {"sum", "ratio"}
        "sum" is the sum over the steps of the noisy sum's projection onto the canary's direction, in units of the
        clipping norm. The last weights less the first have the same projection, up to the constant learning rate, so an
        observer of the last weights alone can compute it. "ratio" is the sum of the steps' log-likelihood ratios for
        Poisson batches, the best score of an observer of all steps.
    """
    check_number("probability", probability, 0, 1, "of a canary's inclusion", closed=False)
    recipe = _recipe(training)
    model, rate = recipe.model, _rate(recipe, score)
    rng = np.random.default_rng(seed)
    included = rng.random(canaries.m) < probability
    features, labels = model.split(recipe.prepare(rows))
    n, p = len(features), model.n_parameters
    counts = np.concatenate([np.ones(n, dtype=np.bool_), included])
    project, noise = canaries.projector(p), recipe.noise.begun()
    weights, scores = recipe.first_weights(1), np.zeros(canaries.m)
    masks = recipe.sampling.batches(1, n + canaries.m, recipe.steps, rng)
    for step, drawn in enumerate(masks):
        is_in = drawn & counts
        blocks = model.blocks(weights, Batch(features, labels, is_in[:, :n]))
        total = recipe.gradient(canaries.blocks(blocks, n), is_in)
        noisy = noise(total, step, rng)
        seen = project(noisy[0]) / training.clip
        scores += seen if rate is None else log_ratio(seen, rate, training.noise_multiplier)
        weights = weights - recipe.learning_rate / recipe.batch_size * noisy[:, :p]
    loss = float(model.losses(weights, features, labels).mean()) if n else 0.0
    return CanaryRun(
        scores=scores, included=included, probability=probability, seed=seed, mean_loss=loss, training=training
    )


def _recipe(training: Training) -> Recipe:
    """The recipe of a training that runs the same one on all datasets."""
    if getattr(training, "adapt", None) is not None:
        raise OptionError(
            f"{training} changes its recipe by the private records, which one run with canaries does not show; audit "
            "it by repeated runs on its pair of datasets.",
            training=str(training),
        )
    return training.recipe


def _rate(recipe: Recipe, score: str) -> float | None:
    """The rate of Poisson batches for the score "ratio", else None."""
    if score == "sum":
        return None
    rate: float | None = getattr(recipe.sampling, "rate", None)
    why = f'does not fit {type(recipe.sampling).__name__}; use "sum", or "ratio" with PoissonBatches.'
    check_value("score", score, score == "ratio" and rate is not None, why, OptionError)
    return rate
