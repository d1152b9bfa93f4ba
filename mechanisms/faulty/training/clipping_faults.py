"""Mistakes in clipping and in the gradients that are clipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb
from typing import Any, Final

import numpy as np

from ...noise_samplers import Floats
from ...training.batches import FullBatch, PoissonBatches
from ...training.canaries import DiracCanaries
from ...training.dp_sgd import DPSGD
from ...training.gradient_blocks import GradientBlock, clipped_to
from ...training.mixture_loss import Mixture, mixture_epsilon
from ...training.models import Batch, Booleans, FixedGradients, Model
from ...training.observers import LastProjection, LogLikelihoodRatio, MixtureRatio
from ...training.steps import GaussianNoise, sum_of
from .mistaken_training import mistaken
from .training_fault import TrainingFault
from .true_losses import epsilon_of, fixed_totals_epsilon

# Wrong ways from the gradients of a batch to one vector: clipped too late, in parts, or not at all.


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
class BatchNormalised(Model):
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


DELTA: Final = 1e-5
_RATE, _SIGMA, _STEPS = 0.5, 4.0, 8
NOTHING: Final = np.empty((0, 1))
POISSON: Final = DPSGD(
    model=FixedGradients(),
    sampling=PoissonBatches(_RATE),
    noise_multiplier=_SIGMA,
    steps=_STEPS,
    observer=LogLikelihoodRatio(_RATE, _SIGMA),
    delta=DELTA,
)
"""The right training of most entries: eight steps at rate one half, with noise four times the clipping norm."""


def seen_with(noise_multiplier: float, parameters: int = 1, clip: float = 1.0) -> LogLikelihoodRatio:
    """The best test for a Poisson training with the noise that is in fact added, along the diagonal."""
    return LogLikelihoodRatio(_RATE, noise_multiplier, (1.0,) * parameters, clip)


def poisson_loss(noise_multiplier: float) -> Callable[[], float]:
    """The loss of `POISSON` with another noise multiplier, computed when it is called."""
    return lambda: epsilon_of(
        PoissonBatches(_RATE), noise_multiplier, _STEPS, neighbours="add_or_remove_one", delta=DELTA
    )


def clipping_faults() -> tuple[TrainingFault, ...]:
    """All mistakes of this module."""
    return (*_clipped_too_late(), *_clipped_in_parts(), *_normalised())


def _clipped_too_late() -> tuple[TrainingFault, ...]:
    micro = DPSGD(
        model=FixedGradients(),
        sampling=FullBatch(),
        noise_multiplier=4.0,
        steps=4,
        observer=LastProjection(),
        neighbours="replace_special",
        delta=DELTA,
    )
    micro_wrong = mistaken(micro, "microbatches clipped", gradient=SumOfClippedMicrobatches(1.0, 2))
    micro_x, micro_y = np.array([[-2.0], [10.0]]), np.array([[-2.0], [0.0]])
    unclipped = mistaken(POISSON, "no clipping", gradient=SumOfUnclipped())
    mean = mistaken(POISSON, "mean clipped", gradient=ClippedMean(1.0), noise=GaussianNoise(_SIGMA / 4))
    return (
        TrainingFault(
            name="no-clipping",
            cause="The gradients are not clipped, as the clipping norm does not reach the code that clips",
            source="Opacus, pull request 664 (2024): the privacy engine did not use max_grad_norm in fast gradient "
            "clipping.",
            right=POISSON,
            wrong=replace(unclipped, seen=seen_with(1.0, clip=1.0)),
            x=np.array([[4.0]]),
            y=NOTHING,
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=poisson_loss(_SIGMA / 4),
            is_unbounded=True,
            canaries=DiracCanaries(2000, 4.0),
        ),
        TrainingFault(
            name="clipped-mean",
            cause="The mean gradient of a batch is clipped once, with the noise for a mean of clipped gradients (a "
            "quarter, for batches of four)",
            source="Awesome-Differential-Privacy-and-Meachine-Learning (JeffffffFu), issue 9 (2024): a user asks to "
            "clip the gradient of the batch; the answer is that it does not bound what an example changes. Frameworks' "
            "clip_grad_norm on the averaged gradient does this.",
            right=POISSON,
            wrong=replace(mean, seen=seen_with(1.0)),
            x=np.array([[40.0]]),
            y=NOTHING,
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=poisson_loss(_SIGMA / 4),
        ),
        TrainingFault(
            name="clipped-microbatches",
            cause="The mean gradient of each microbatch of two examples is clipped, with the noise for one clipped "
            "gradient: an example can turn the mean from −C to C",
            source="TensorFlow Privacy, issue 81 (2019): the reporter doubts that microbatches keep the guarantee; the "
            "answer is that their number does not affect it.",
            right=micro,
            wrong=micro_wrong,
            x=micro_x,
            y=micro_y,
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: fixed_totals_epsilon(micro_wrong.recipe, micro_x, micro_y, 4.0, DELTA),
            runs=60_000,
        ),
    )


def _clipped_in_parts() -> tuple[TrainingFault, ...]:
    groups = replace(POISSON, model=FixedGradients((1,) * 16), observer=seen_with(_SIGMA, 16))
    by_group = mistaken(groups, "each group clipped to the whole norm", gradient=ClippedByGroup(1.0))
    layers = replace(POISSON, model=FixedGradients((1, 1)), observer=LogLikelihoodRatio(_RATE, _SIGMA, (1.0, 0.0)))
    by_last = mistaken(layers, "clipped by the last norm", gradient=ClippedByLastNorm(1.0))
    return (
        TrainingFault(
            name="clipped-by-group",
            cause="Each of sixteen groups of parameters is clipped to the norm C, with the noise for a whole gradient "
            "of norm C",
            source="Fed-BioMed, issue 1443 (2025), item 4: the clip is not applied as a global norm but per parameter. "
            "Opacus, issue 202 (2021), explains why the noise must then be for the root of the sum of squares.",
            right=groups,
            wrong=replace(by_group, seen=seen_with(1.0, 16, clip=4.0)),
            x=np.full((1, 16), 5.0),
            y=np.empty((0, 16)),
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=poisson_loss(_SIGMA / 4),
            canaries=DiracCanaries(1000, 20.0, spread=16),
        ),
        TrainingFault(
            name="clipped-by-last-norm",
            cause="The norm that clips is that of the last layer alone, so the others are not bounded",
            source="Constructed: a loop over the layers that overwrites the norm instead of adding its square. ADADP "
            "(DPBayes), issue 1 (2019), discusses which norm such a loop computes; its code is right.",
            right=layers,
            wrong=replace(by_last, seen=LogLikelihoodRatio(_RATE, 1.0, (1.0, 0.0), 4.0)),
            x=np.array([[4.0, 0.5]]),
            y=np.empty((0, 2)),
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=_last_norm_loss,
            is_unbounded=True,
        ),
    )


def _last_norm_loss() -> float:
    return poisson_loss(_SIGMA / float(np.hypot(4.0, 0.5)))()


_OTHERS, _CLIP, _BATCH_SIGMA, _BATCH_STEPS = 15, 0.2, 5.0, 4


def _in_a_batch() -> Mixture:
    """Noisy sums of a batch with k of the other records, negated: its standardised zeros are all clipped to −C.

    With k ≥ 1 zeros and the record 1 in the batch, the zeros become −1/√k, beyond the clipping norm, and the record √k.
    Without the record, or alone, everything is 0.
    """
    weights = [comb(_OTHERS, k) / 2**_OTHERS / 2 for k in range(_OTHERS + 1)]
    return ((0.5 + weights[0] + weights[1], 0.0), *((weights[k], k - 1.0) for k in range(2, _OTHERS + 1)))


def _normalised() -> tuple[TrainingFault, ...]:
    full = DPSGD(
        model=FixedGradients(),
        sampling=FullBatch(),
        noise_multiplier=14.0,
        steps=4,
        clip=0.25,
        observer=LastProjection(),
        neighbours="replace_special",
        delta=DELTA,
    )
    by_data = mistaken(full, "features standardised by the data", prepare=standardised_columns)
    zeros = np.zeros((_OTHERS, 1))
    x, y = np.vstack([zeros, [[1.0]]]), np.vstack([zeros, [[0.0]]])
    batch = DPSGD(
        model=FixedGradients(),
        sampling=PoissonBatches(0.5),
        noise_multiplier=_BATCH_SIGMA,
        steps=_BATCH_STEPS,
        clip=_CLIP,
        observer=LogLikelihoodRatio(0.5, _BATCH_SIGMA, clip=_CLIP),
        delta=DELTA,
    )
    in_batch = mistaken(batch, "batch normalisation", model=BatchNormalised(batch.model))
    against = MixtureRatio(_in_a_batch(), ((1.0, 0.0),), _BATCH_SIGMA, (-1.0,), _CLIP)
    return (
        TrainingFault(
            name="standardised-by-the-data",
            cause="The features are standardised by the mean and deviation of the private records, so a record changes "
            "the gradients of all",
            source="diffprivlib, issue 20 (2020): bounds and norms that are not given are read from the data, a clear "
            "violation of differential privacy (the library warns of it).",
            right=full,
            wrong=by_data,
            x=x,
            y=y,
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: fixed_totals_epsilon(by_data.recipe, x, y, 14.0 * 0.25, DELTA),
        ),
        TrainingFault(
            name="batch-normalisation",
            cause="The features are standardised within the batch, so a record changes the gradients of all in it",
            source="PyTorch forum, topic 154208, on Opacus: with batch normalisation an example influences the "
            "gradients of others, so its contribution is not bounded. Opacus refuses the layer.",
            right=batch,
            wrong=replace(in_batch, seen=against),
            x=x,
            y=zeros,
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: mixture_epsilon(_in_a_batch(), ((1.0, 0.0),), _BATCH_SIGMA, _BATCH_STEPS, DELTA),
        ),
    )
