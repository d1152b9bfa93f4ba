"""Mistakes in training: of clipping, of noise and of sampling, each with its source and a pair that shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any, Final

import numpy as np

from ...noise_samplers import Floats
from ...training.canaries import DiracCanaries
from ...training.dp_sgd import DPSGD, Mixture, mixture_epsilon
from ...training.models import Batch, Booleans, FixedGradients, GradientBlock, LinearRegression, Model, clipped_to
from ...training.observers import (
    LargestSum,
    LastProjection,
    LogLikelihoodRatio,
    MixtureRatio,
    NumberOfSteps,
    WeightedSums,
)
from ...training.train import (
    BatchesInOrder,
    FixedSizeBatches,
    FullBatch,
    GaussianNoise,
    NoiseRule,
    PoissonBatches,
    Recipe,
    Sampling,
    ShuffledBatches,
    rounded,
    sum_of,
)
from .mistaken_training import MistakenTraining, mistaken
from .training_fault import TrainingFault
from .true_losses import epsilon_of, fixed_totals_epsilon, scales_epsilon, shuffled_epsilon_at_least

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


_TEN: Final = 10
_OPPOSED: Final = np.vstack([np.full((_TEN - 1, 1), -1.0), [[1.0]]])  # nine gradients of −C, and one of C
_OPPOSED_ZEROED: Final = np.vstack([np.full((_TEN - 1, 1), -1.0), [[0.0]]])
_FEW: Final = 1e-3  # δ that audits of some ten thousand runs can resolve


def sampling_faults() -> tuple[TrainingFault, ...]:
    """All mistakes of this module."""
    return (*_other_samplings(), *_other_counts())


def _claimed_poisson(rate: float, noise_multiplier: float, steps: int, delta: float = _FEW, **others: Any) -> DPSGD:
    given: dict[str, Any] = {"observer": LogLikelihoodRatio(rate, noise_multiplier), **others}
    return DPSGD(
        model=FixedGradients(),
        sampling=PoissonBatches(rate),
        noise_multiplier=noise_multiplier,
        steps=steps,
        delta=delta,
        **given,
    )


def _true_loss(sampling: Sampling, right: DPSGD, steps: int | None = None) -> Callable[[], float]:
    """The loss with this sampling and number of steps, computed when it is called."""
    return lambda: epsilon_of(
        sampling, right.noise_multiplier, steps or right.steps, neighbours=right.neighbours, delta=right.delta or 0.0
    )


def _other_samplings() -> tuple[TrainingFault, ...]:
    one_epoch = _claimed_poisson(1 / _TEN, 1.0, _TEN, neighbours="replace_special")
    shuffled = mistaken(one_epoch, "shuffled batches", sampling=ShuffledBatches(1, _TEN))
    in_order, fixed_order = BatchesInOrder(1, _TEN), mistaken(one_epoch, "batches in order")
    fixed_order = replace(fixed_order, recipe=replace(fixed_order.recipe, sampling=in_order))
    fixed = _claimed_poisson(1 / _TEN, 1.0, 4, neighbours="replace_special")
    out, drawn = 1 - 1 / _TEN, 1 / _TEN  # another record in the batch gives −C, this one C or nothing
    on_x: Mixture = ((out, -1.0), (drawn, 1.0))
    on_y: Mixture = ((out, -1.0), (drawn, 0.0))
    fixed_size = mistaken(fixed, "batches of fixed size", sampling=FixedSizeBatches(1, _TEN))
    return (
        TrainingFault(
            name="shuffled-batches",
            cause="Shuffled batches of one epoch, with the accountant for Poisson batches",
            source="Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), How private are DP-SGD "
            "implementations?; Annamalai, Balle, Hayes & De Cristofaro (2024), To shuffle or not to shuffle. JAX "
            "Privacy, pull request 272 (2026), adds a warning.",
            right=one_epoch,
            wrong=replace(shuffled, seen=LargestSum()),
            x=_OPPOSED,
            y=_OPPOSED_ZEROED,
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: shuffled_epsilon_at_least(1.0, _TEN, _FEW),
            loss_is="at least",
            runs=100_000,
        ),
        TrainingFault(
            name="batches-in-order",
            cause="Batches in the fixed order of the records, with the accountant for Poisson batches",
            source="JAX Privacy, issue 84 (2026): examples load the data sequentially in batches of a fixed size, "
            "which invalidates the guarantee. private-transformers, issue 7 (2021): batches of a fixed size that do "
            "not overlap within an epoch, with the accountant for Poisson sampling. The loss is that of one Gaussian "
            "mechanism an epoch (Chua et al. 2024).",
            right=one_epoch,
            wrong=replace(fixed_order, seen=WeightedSums((1.0,) + (0.0,) * (_TEN - 1))),
            x=np.array([[1.0]] + [[0.0]] * (_TEN - 1)),
            y=np.zeros((_TEN, 1)),
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=_true_loss(in_order, one_epoch),
            runs=10_000,
        ),
        TrainingFault(
            name="batches-of-fixed-size",
            cause="Batches of a fixed size drawn in each step, with the accountant for Poisson batches: a record in "
            "the batch displaces another",
            source="Lebeda, Regehr, Kamath & Steinke (2024), Avoiding pitfalls for privacy accounting of subsampled "
            "mechanisms: ε of about 1 for Poisson batches, above 10 without replacement. Opacus, issue 80 (2020): "
            "constant batch sizes, accounted as Poisson sampling; a maintainer agrees that this is a shortcut.",
            right=fixed,
            wrong=replace(fixed_size, seen=MixtureRatio(on_x, on_y, 1.0)),
            x=_OPPOSED,
            y=_OPPOSED_ZEROED,
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: mixture_epsilon(on_x, on_y, 1.0, 4, _FEW),
            runs=100_000,
        ),
    )


def _other_counts() -> tuple[TrainingFault, ...]:
    rate = _claimed_poisson(0.1, 2.0, 8, DELTA)
    rate_wrong = mistaken(rate, "rate of a part of the batch", sampling=PoissonBatches(0.8))
    other = _claimed_poisson(0.1, 2.0, 8, DELTA)
    other_wrong = mistaken(other, "rate of a larger dataset", sampling=PoissonBatches(0.5))
    counted = _claimed_poisson(0.5, 4.0, 2, DELTA)
    counted_wrong = mistaken(counted, "one epoch of sixteen counted", steps=32)
    dropped = _claimed_poisson(0.5, 4.0, 2, DELTA)
    by_number = MistakenTraining(
        claimed=dropped,
        recipe=dropped.recipe,
        label="last batch dropped",
        adapt=batches_of_two,
        seen=NumberOfSteps(),
    )
    return (
        TrainingFault(
            name="rate-of-a-part-of-the-batch",
            cause="The accountant has the rate of one of the eight parts in which the gradients of a batch are "
            "accumulated",
            source="JAX Privacy, pull request 287 (2026): the validation of a given noise multiplier left the number "
            "of accumulated parts out of the sampling probability.",
            right=rate,
            wrong=replace(rate_wrong, seen=LogLikelihoodRatio(0.8, 2.0)),
            x=np.array([[1.0]]),
            y=np.empty((0, 1)),
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=_true_loss(PoissonBatches(0.8), rate),
            canaries=DiracCanaries(2000),
        ),
        TrainingFault(
            name="rate-of-a-larger-dataset",
            cause="The rate is the batch size over the number of all records, but batches are from a fifth of them",
            source="Constructed. Opacus, issue 813 (2026), reports the rate of another number of records in the other "
            "direction: the accountant overstates the loss.",
            right=other,
            wrong=replace(other_wrong, seen=LogLikelihoodRatio(0.5, 2.0)),
            x=np.array([[1.0]]),
            y=np.empty((0, 1)),
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=_true_loss(PoissonBatches(0.5), other),
            canaries=DiracCanaries(4000),
        ),
        TrainingFault(
            name="one-epoch-counted",
            cause="The accountant counts the steps of one epoch of sixteen",
            source="Constructed, in the manner of Opacus, issue 19, and TensorFlow Privacy, issue 103 (2020), where "
            "the number of steps was rounded over all epochs instead of in each, and so was too small.",
            right=counted,
            wrong=replace(counted_wrong, seen=LogLikelihoodRatio(0.5, 4.0)),
            x=np.array([[1.0]]),
            y=np.empty((0, 1)),
            exposed_by=("one run", "repeated runs", "step by step"),
            loss_on_pair=_true_loss(PoissonBatches(0.5), counted, 32),
            canaries=DiracCanaries(2000),
        ),
        TrainingFault(
            name="steps-from-the-data",
            cause="The last, incomplete batch is dropped, so the number of steps shows if there is one record more",
            source="Handcrafted-DP, issue 2 (2021): the data is split into batches of a fixed size and a smaller last "
            "one is dropped. The loss under added records follows from the number of steps; it is not in that issue.",
            right=dropped,
            wrong=by_number,
            x=np.zeros((4, 1)),
            y=np.zeros((3, 1)),
            exposed_by=("repeated runs", "step by step"),
            loss_on_pair=lambda: math.inf,
            is_unbounded=True,
        ),
    )


def batches_of_two(recipe: Recipe, rows: Any) -> Recipe:
    """The recipe for one epoch of shuffled batches of two of these records, without an incomplete last one."""
    sampling = ShuffledBatches(2, len(rows), drop_last=True)
    return replace(recipe, sampling=sampling, steps=sampling.per_epoch)


TRAINING_FAULTS: Final[tuple[TrainingFault, ...]] = (*clipping_faults(), *noise_faults(), *sampling_faults())
"""Every mistake once, by kind. Their numbers are computed when they are asked for; that needs dp-accounting."""
