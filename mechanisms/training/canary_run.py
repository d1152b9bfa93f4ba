"""One training with many canaries, each included or not by a coin of its own: scores and coins for a one-run audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from ...audit.claims.claim import Claim, check_number
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import OptionError
from ..noise_samplers import Floats
from .batches import PoissonBatches
from .canaries import Canaries, joint_blocks
from .models import Batch, Booleans
from .observers import LastWeights, log_ratio
from .train import Recipe, train


class Training(Protocol):
    """A training with a claim, right or wrong: `DPSGD`, or one of its wrong twins."""

    @property
    def recipe(self) -> Recipe:
        """What is run."""

    @property
    def clip(self) -> float:
        """Clipping norm that the claim assumes."""

    @property
    def noise_multiplier(self) -> float:
        """Noise multiplier that the claim assumes."""

    @property
    def claim(self) -> Claim:
        """What is claimed."""

    @property
    def adjacency(self) -> Adjacency:
        """The relation of the claim."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryRun:
    """Scores and coins of one training; the arrays cannot be written to.

    Attributes
    ----------
    scores : ndarray, shape (m,)
        Larger where the canary is more likely to have been included.
    included : ndarray of bool, shape (m,)
        The coins: independent, true with the given probability.
    probability : float
        Of inclusion.
    seed : int
    mean_loss : float
        Mean loss of the real records at the last weights; 0 without records.
    training : DPSGD or a wrong twin
        What was run, with its claim.
    """

    scores: Floats
    included: Booleans
    probability: float
    seed: int
    mean_loss: float
    training: Training

    def __post_init__(self) -> None:
        self.scores.flags.writeable = False
        self.included.flags.writeable = False

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
    canaries: Canaries,
    *,
    probability: float = 0.5,
    score: Literal["sum", "ratio"] = "sum",
    seed: int = 0,
) -> CanaryRun:
    """Train once on real records and a random half of the canaries, and return the scores of all canaries.

    The canaries count as further records: the sampling draws their batches, the gradient rule clips them, and noise is
    added to every parameter. A canary that is not included has gradient 0. Time is O((n + parameters + m) · steps) for
    `DiracCanaries`, memory O(n + parameters + m).

    Parameters
    ----------
    training : DPSGD or a wrong twin
        For a sampling with a fixed number of records, that of the real ones plus m. Its observer is not used.
    rows : array_like, shape (n, columns)
        Real records.
    canaries : DiracCanaries or SphereCanaries
        Give them the norm `training.clip`, or more where clipping is to be tested.
    probability : float
        Of inclusion, in (0, 1).
    score : {"sum", "ratio"}
        "sum" is the sum over the steps of the noisy sum's projection onto the canary's direction, in units of the
        clipping norm. The last weights less the first have the same projection, up to the constant learning rate, so an
        observer of the last weights alone can compute it. "ratio" is the sum of the steps' log-likelihood ratios for
        Poisson batches, the best score of an observer of all steps.
    seed : int
        Fixes coins, batches and noise.

    Returns
    -------
    CanaryRun

    Examples
    --------
    >>> from dpaudit.mechanisms.training.batches import PoissonBatches
    >>> from dpaudit.mechanisms.training.canaries import DiracCanaries
    >>> from dpaudit.mechanisms.training.dp_sgd import DPSGD
    >>> from dpaudit.mechanisms.training.models import LogisticRegression
    >>> from dpaudit.mechanisms.training.records import breast_cancer_records
    >>> training = DPSGD(
    ...     model=LogisticRegression(31), sampling=PoissonBatches(0.5), noise_multiplier=1.0, steps=10, batch_size=285
    ... )
    >>> run = canary_run(training, breast_cancer_records(), DiracCanaries(1000))
    >>> run.scores.shape, bool(run.scores[run.included].mean() > run.scores[~run.included].mean() + 4)
    ((1000,), True)
    """
    check_number("probability", probability, 0, 1, "of a canary's inclusion", closed=False)
    recipe = _recipe(training)
    model, rate = recipe.model, _rate(recipe, score)
    rng = np.random.default_rng(seed)
    included = rng.random(canaries.m) < probability
    features, labels = model.split(recipe.prepare(rows))
    n, p = len(features), model.n_parameters
    counts = np.concatenate([np.ones(n, dtype=np.bool_), included])
    parts: tuple[Any, ...] | None = None
    project, noise = canaries.projector(p), recipe.noise.begun()
    weights, scores = recipe.first_weights(1), np.zeros(canaries.m)
    masks = recipe.sampling.batches(1, n + canaries.m, recipe.steps, rng)
    for step, drawn in enumerate(masks):
        is_in = drawn & counts
        blocks = model.blocks(weights, Batch(features, labels, is_in[:, :n]))
        if parts is None:  # the canaries' gradients are the same in every step
            groups = [*_groups([block.size for block in blocks]), *canaries.groups(p)]
            parts = tuple((group, canaries.block(group, p)) for group in groups)
        total = recipe.gradient(joint_blocks(blocks, n, parts, canaries.m), is_in)
        noisy = noise(total, step, rng)
        seen = project(noisy[0]) / training.clip
        scores += seen if rate is None else log_ratio(seen, rate, training.noise_multiplier)
        weights = weights - recipe.learning_rate / recipe.batch_size * noisy[:, :p]
    loss = float(model.losses(weights, features, labels).mean()) if n else 0.0
    return CanaryRun(
        scores=scores, included=included, probability=probability, seed=seed, mean_loss=loss, training=training
    )


def record_canary_run(
    training: Training, rows: Any, canaries: Any, *, probability: float = 0.5, seed: int = 0
) -> CanaryRun:
    """Train once on real records and a random half of the canary records; the scores are minus the last losses.

    This is the black-box audit: the canaries are records, such as mislabelled ones, and only the losses at the last
    weights are seen. A canary that is not included is left out of the dataset, so the sampling must be one for any
    number of records. Arguments and result are those of `canary_run`, with the canaries as an array of shape
    (m, columns).
    """
    check_number("probability", probability, 0, 1, "of a canary's inclusion", closed=False)
    rng = np.random.default_rng(seed)
    recipe = _recipe(training)
    model, records = recipe.model, np.asarray(rows, dtype=np.float64)
    added = np.asarray(canaries, dtype=np.float64)
    included = rng.random(len(added)) < probability
    weights = train(recipe, np.concatenate([records, added[included]]), LastWeights(), 1, rng)
    scores = -model.losses(weights, *model.split(added))[0]
    loss = float(model.losses(weights, *model.split(records)).mean()) if len(records) else 0.0
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


def _groups(sizes: list[int]) -> list[tuple[int, int]]:
    ends = np.cumsum(sizes).tolist()
    return [(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _rate(recipe: Recipe, score: str) -> float | None:
    """The rate of Poisson batches for the score "ratio", else None."""
    if score == "sum":
        return None
    if score != "ratio" or not isinstance(recipe.sampling, PoissonBatches):
        raise OptionError(
            f'score={score!r} does not fit {type(recipe.sampling).__name__}; use "sum", or "ratio" with '
            "PoissonBatches.",
            score=score,
        )
    return recipe.sampling.rate
