"""Mistakes in DP-SGD made in the wild, each with its source, a pair that shows it, and its true loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any, Final, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from ...audit.training.check_batches import shuffled_epsilon_at_least
from ..distributions.distributions import GaussianDistribution
from ..noise_samplers import Floats
from ..training.canaries import DiracCanaries
from ..training.dp_sgd import DPSGD, Mixture, dp_sgd_claim, mixture_epsilon
from ..training.models import Batch, Booleans, FixedGradients, GradientBlock, LinearRegression, Model, clipped_to
from ..training.observers import (
    LargestSum,
    LastProjection,
    LogLikelihoodRatio,
    MixtureRatio,
    NumberOfSteps,
    Observer,
    WeightedSums,
)
from ..training.train import (
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
    train,
)
from .flaw import Flaw

# A training that states the claim of another one.


@dataclass(frozen=True, slots=True, kw_only=True)
class MistakenTraining(Flaw):
    """The training that `claimed` makes its claim for, run by another recipe.

    ``adapt(recipe, rows)`` changes the recipe by the private records. What is seen of a run is by default what is seen
    of the right training.
    """

    claimed: DPSGD
    recipe: Recipe
    label: str
    adapt: Callable[[Recipe, Any], Recipe] | None = None
    seen: Observer | None = None

    def __str__(self) -> str:
        return f"DPSGD: {self.label}"

    claim = property(lambda t: t.claimed.claim)
    adjacency = property(lambda t: t.claimed.adjacency, doc="The relation of the claim.")
    clip = property(lambda t: t.claimed.clip, doc="The clipping norm that the claim assumes.")
    noise_multiplier = property(
        lambda t: t.claimed.noise_multiplier, doc="The noise multiplier that the claim assumes."
    )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        recipe = self.recipe if self.adapt is None else self.adapt(self.recipe, dataset)
        return train(recipe, dataset, self.seen or self.claimed.observer, size, rng)


# Entry of the registry of mistakes in training: the mistake, the pair that shows it, its source and its true loss.


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFault:
    """A mistake in DP-SGD, with the right training and a pair of datasets that shows it."""

    name: str
    cause: str
    source: str  # where the mistake was made or is described, and what that source says
    right: DPSGD  # keeps the claim
    wrong: MistakenTraining  # breaks it
    x: Any
    y: Any
    # Returns the smallest ε at the claim's δ on this pair, in nats, for an observer of every noisy sum.
    loss_on_pair: Callable[[], float]
    # Whether `loss_on_pair` is that ε, up to the grid of its computation, or a lower bound on it.
    loss_is: Literal["exact", "at least"] = "exact"
    is_unbounded: bool = False  # whether no finite ε holds over all neighbours
    runs: int = 4_000  # runs on each dataset with which an audit finds the mistake with seed 0
    # Canaries for a run without real records that shows it; None where one run does not.
    canaries: DiracCanaries | None = None
    adjacency = property(lambda t: t.right.adjacency, doc="Relation of the pair and the claim.")
    delta = property(lambda t: float(t.right.claim.delta), doc="δ of the claim.")
    claimed_epsilon = property(lambda t: float(t.right.claim.epsilon), doc="ε of the claim at its δ, in nats.")

    @property
    def pair_epsilon(self) -> float:
        """Smallest ε at the claim's δ on the pair, or a lower bound on it if `loss_is` is "at least"; in nats."""
        return self.loss_on_pair()

    @property
    def true_epsilon(self) -> float:
        """Largest ε known to be needed at the claim's δ: infinite where no finite one holds, else that of the pair."""
        return math.inf if self.is_unbounded else self.pair_epsilon

    @property
    def no_records(self) -> Floats:
        """A dataset without real records, for a run of canaries alone."""
        return np.empty((0, np.shape(self.x)[1]))


# True losses of mistaken trainings on a pair, for an observer of every noisy sum.
#
# All results are the smallest ε at a δ, in nats, over both directions. Those by `dp_accounting` are exact up to its
# grid, which rounds them up.


def fixed_totals_epsilon(recipe: Recipe, x: Any, y: Any, scale: float, delta: float) -> float:
    """ε of a training on full batches whose gradients do not depend on the weights, with noise of this scale; exact."""
    totals = []
    for rows in (x, y):
        features, labels = recipe.model.split(recipe.prepare(rows))
        is_in = np.ones((1, len(features)), dtype=np.bool_)
        blocks = recipe.model.blocks(recipe.first_weights(1), Batch(features, labels, is_in))
        totals.append(recipe.gradient(blocks, is_in)[0])
    mu = math.sqrt(recipe.steps) * float(np.linalg.norm(totals[0] - totals[1])) / scale
    return GaussianDistribution(0.0, 1.0).epsilon_from(GaussianDistribution(mu, 1.0), delta)


def scales_epsilon(ratio: float, n_numbers: int, delta: float) -> float:
    """ε of normal noise on `n_numbers` zeros, with a deviation that is `ratio` > 1 times as large on x as on y; exact.

    The sum of squares is sufficient. The loss grows with it without bound, so the best events against y are tails.
    """

    def delta_at(epsilon: float, sign: float) -> float:
        # e^loss = ratio^−n e^{s (1 − ratio^−2)/2} for the sum of squares s in units of the variance on y
        edge = max(0.0, 2 * (sign * epsilon + n_numbers * math.log(ratio)) / (1 - ratio**-2))
        on_x, on_y = edge / ratio**2, edge
        if sign > 0:
            return float(chi2.sf(on_x, n_numbers) - math.exp(epsilon) * chi2.sf(on_y, n_numbers))
        return float(chi2.cdf(on_y, n_numbers) - math.exp(epsilon) * chi2.cdf(on_x, n_numbers))

    found = 0.0
    for sign in (1.0, -1.0):
        high = 1.0
        while delta_at(high, sign) > delta:
            high *= 2
        if delta_at(0.0, sign) > delta:
            found = max(found, float(brentq(lambda e, s=sign: delta_at(e, s) - delta, 0.0, high)))
    return found


# Mistakes in training: of clipping, of noise and of sampling, each with its source and a pair that shows it.

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


# Noise that is not fresh for every parameter and step.


@dataclass(frozen=True, slots=True)
class SharedNoise(NoiseRule):
    """Normal noise of standard deviation `scale` whose draws are the same for all groups of `size` parameters."""

    scale: float
    size: int

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        runs, parameters = total.shape
        noise = rng.standard_normal((runs, self.size))
        return rounded(total + self.scale * np.tile(noise, parameters // self.size), self.scale)


@dataclass(frozen=True, slots=True)
class RepeatedNoise(NoiseRule):
    """Normal noise of standard deviation `scale` whose draws are the same in every epoch of `period` steps."""

    scale: float
    period: int
    drawn: list[Floats] = field(init=False, repr=False, compare=False, default_factory=list)  # of the first epoch

    def begun(self) -> NoiseRule:
        return RepeatedNoise(self.scale, self.period)

    def __call__(self, total: Floats, step: int, rng: np.random.Generator) -> Floats:
        if step < self.period:
            self.drawn.append(rng.standard_normal(total.shape))
        return rounded(total + self.scale * self.drawn[step % self.period], self.scale)


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
_FEW: Final = 1e-3  # δ that audits of some ten thousand runs can resolve
_RATE, _SIGMA, _STEPS = 0.5, 4.0, 8


def _trained(sampling: Sampling, noise_multiplier: float, steps: int, **others: Any) -> DPSGD:
    """A right training on fixed gradients, whose observer sees the best test for Poisson batches."""
    given: dict[str, Any] = {"model": FixedGradients(), "delta": DELTA, "observer": LastProjection()}
    if isinstance(sampling, PoissonBatches):
        given["observer"] = LogLikelihoodRatio(sampling.rate, noise_multiplier, clip=others.get("clip", 1.0))
    return DPSGD(sampling=sampling, noise_multiplier=noise_multiplier, steps=steps, **given | others)


POISSON: Final = _trained(PoissonBatches(_RATE), _SIGMA, _STEPS)
"""The right training of most entries: eight steps at rate one half, with noise four times the clipping norm."""


def seen_with(noise_multiplier: float, parameters: int = 1, clip: float = 1.0) -> LogLikelihoodRatio:
    """The best test for a Poisson training with the noise that is in fact added, along the diagonal."""
    return LogLikelihoodRatio(_RATE, noise_multiplier, (1.0,) * parameters, clip)


def poisson_loss(noise_multiplier: float) -> Callable[[], float]:
    """The loss of `POISSON` with another noise multiplier, computed when it is called."""
    return _true_loss(PoissonBatches(_RATE), replace(POISSON, noise_multiplier=noise_multiplier))


def _true_loss(sampling: Sampling, right: DPSGD, steps: int | None = None) -> Callable[[], float]:
    """The loss with this sampling and number of steps, computed when it is called."""

    def epsilon() -> float:
        sigma, count = right.noise_multiplier, steps or right.steps
        claim: Any = dp_sgd_claim(sampling, sigma, count, neighbours=right.neighbours, delta=right.delta)
        return float(claim.epsilon)

    return epsilon


def _row(
    name: str,
    label: str,
    right: DPSGD,
    changes: dict[str, Any] | Callable[[Recipe, Any], Recipe],
    seen: Observer | None,
    x: Any,
    y: Any,
    loss: Callable[[], float],
    cause: str,
    source: str,
    **others: Any,
) -> TrainingFault:
    """A mistake: the changes of the right recipe, or the function that adapts it; the pair (None: no records)."""
    recipe, adapt = (right.recipe, changes) if callable(changes) else (replace(right.recipe, **changes), None)
    wrong = MistakenTraining(claimed=right, label=label, recipe=recipe, adapt=adapt, seen=seen)
    x = np.asarray(x, dtype=np.float64)
    y = np.empty((0, x.shape[1])) if y is None else np.asarray(y, dtype=np.float64)
    return TrainingFault(
        name=name, cause=cause, source=source, right=right, wrong=wrong, x=x, y=y, loss_on_pair=loss, **others
    )


def _no_loss_holds() -> float:
    return math.inf


def divided_by_the_data(recipe: Recipe, rows: Any) -> Recipe:
    """The recipe with the expected batch size of these records, at rate one half."""
    return replace(recipe, batch_size=len(rows) / 2)


def batches_of_two(recipe: Recipe, rows: Any) -> Recipe:
    """The recipe for one epoch of shuffled batches of two of these records, without an incomplete last one."""
    sampling = ShuffledBatches(2, len(rows), drop_last=True)
    return replace(recipe, sampling=sampling, steps=sampling.per_epoch)


def _clipping_faults() -> tuple[TrainingFault, ...]:
    micro = _trained(FullBatch(), 4.0, 4, neighbours="replace_special")
    clipped_micro: dict[str, Any] = {"gradient": SumOfClippedMicrobatches(1.0, 2)}
    micro_x, micro_y = np.array([[-2.0], [10.0]]), np.array([[-2.0], [0.0]])
    groups = replace(POISSON, model=FixedGradients((1,) * 16), observer=seen_with(_SIGMA, 16))
    layers = replace(POISSON, model=FixedGradients((1, 1)), observer=LogLikelihoodRatio(_RATE, _SIGMA, (1.0, 0.0)))
    return (
        _row(
            "no-clipping", "no clipping", POISSON, {"gradient": SumOfUnclipped()}, seen_with(1.0, clip=1.0),
            [[4.0]], None, poisson_loss(_SIGMA / 4),
            "The gradients are not clipped, as the clipping norm does not reach the code that clips",
            "Opacus, pull request 664 (2024): the privacy engine did not use max_grad_norm in fast gradient clipping.",
            is_unbounded=True, canaries=DiracCanaries(2000, 4.0),
        ),
        _row(
            "clipped-mean", "mean clipped", POISSON,
            {"gradient": ClippedMean(1.0), "noise": GaussianNoise(_SIGMA / 4)}, seen_with(1.0),
            [[40.0]], None, poisson_loss(_SIGMA / 4),
            "The mean gradient of a batch is clipped once, with the noise for a mean of clipped gradients (a quarter, "
            "for batches of four)",
            "Awesome-Differential-Privacy-and-Meachine-Learning (JeffffffFu), issue 9 (2024): a user asks to clip the "
            "gradient of the batch; the answer is that it does not bound what an example changes. Frameworks' "
            "clip_grad_norm on the averaged gradient does this.",
        ),
        _row(
            "clipped-microbatches", "microbatches clipped", micro, clipped_micro, None, micro_x, micro_y,
            lambda: fixed_totals_epsilon(replace(micro.recipe, **clipped_micro), micro_x, micro_y, 4.0, DELTA),
            "The mean gradient of each microbatch of two examples is clipped, with the noise for one clipped gradient: "
            "an example can turn the mean from −C to C",
            "TensorFlow Privacy, issue 81 (2019): the reporter doubts that microbatches keep the guarantee; the answer "
            "is that their number does not affect it.",
            runs=60_000,
        ),
        _row(
            "clipped-by-group", "each group clipped to the whole norm", groups, {"gradient": ClippedByGroup(1.0)},
            seen_with(1.0, 16, clip=4.0), np.full((1, 16), 5.0), None, poisson_loss(_SIGMA / 4),
            "Each of sixteen groups of parameters is clipped to the norm C, with the noise for a whole gradient of "
            "norm C",
            "Fed-BioMed, issue 1443 (2025), item 4: the clip is not applied as a global norm but per parameter. "
            "Opacus, issue 202 (2021), explains why the noise must then be for the root of the sum of squares.",
            canaries=DiracCanaries(1000, 20.0, spread=16),
        ),
        _row(
            "clipped-by-last-norm", "clipped by the last norm", layers, {"gradient": ClippedByLastNorm(1.0)},
            LogLikelihoodRatio(_RATE, 1.0, (1.0, 0.0), 4.0),
            [[4.0, 0.5]], None, poisson_loss(_SIGMA / float(np.hypot(4.0, 0.5))),
            "The norm that clips is that of the last layer alone, so the others are not bounded",
            "Constructed: a loop over the layers that overwrites the norm instead of adding its square. ADADP "
            "(DPBayes), issue 1 (2019), discusses which norm such a loop computes; its code is right.",
            is_unbounded=True,
        ),
    )  # fmt: skip


_OTHERS, _CLIP, _BATCH_SIGMA, _BATCH_STEPS = 15, 0.2, 5.0, 4


def _in_a_batch() -> Mixture:
    """Noisy sums of a batch with k of the other records, negated: its standardised zeros are all clipped to −C.

    With k ≥ 1 zeros and the record 1 in the batch, the zeros become −1/√k, beyond the clipping norm, and the record √k.
    Without the record, or alone, everything is 0.
    """
    weights = [comb(_OTHERS, k) / 2**_OTHERS / 2 for k in range(_OTHERS + 1)]
    return ((0.5 + weights[0] + weights[1], 0.0), *((weights[k], k - 1.0) for k in range(2, _OTHERS + 1)))


def _normalising_faults() -> tuple[TrainingFault, ...]:
    full = _trained(FullBatch(), 14.0, 4, clip=0.25, neighbours="replace_special")
    by_data: dict[str, Any] = {"prepare": standardised_columns}
    zeros = np.zeros((_OTHERS, 1))
    x, y = np.vstack([zeros, [[1.0]]]), np.vstack([zeros, [[0.0]]])
    batch = _trained(PoissonBatches(0.5), _BATCH_SIGMA, _BATCH_STEPS, clip=_CLIP)
    against = MixtureRatio(_in_a_batch(), ((1.0, 0.0),), _BATCH_SIGMA, (-1.0,), _CLIP)
    return (
        _row(
            "standardised-by-the-data", "features standardised by the data", full, by_data, None, x, y,
            lambda: fixed_totals_epsilon(replace(full.recipe, **by_data), x, y, 14.0 * 0.25, DELTA),
            "The features are standardised by the mean and deviation of the private records, so a record changes the "
            "gradients of all",
            "diffprivlib, issue 20 (2020): bounds and norms that are not given are read from the data, a clear "
            "violation of differential privacy (the library warns of it).",
        ),
        _row(
            "batch-normalisation", "batch normalisation", batch, {"model": BatchNormalised(batch.model)}, against,
            x, zeros,
            lambda: mixture_epsilon(_in_a_batch(), ((1.0, 0.0),), _BATCH_SIGMA, _BATCH_STEPS, DELTA),
            "The features are standardised within the batch, so a record changes the gradients of all in it",
            "PyTorch forum, topic 154208, on Opacus: with batch normalisation an example influences the gradients of "
            "others, so its contribution is not bounded. Opacus refuses the layer.",
        ),
    )  # fmt: skip


def _noise_faults() -> tuple[TrainingFault, ...]:
    clipped = replace(POISSON, clip=4.0, observer=seen_with(4.0, clip=4.0))
    last = replace(POISSON, observer=LastProjection())
    two = _trained(PoissonBatches(0.5), 4.0, 2, model=FixedGradients((1, 1)), observer=LastProjection((1.0, -1.0)))
    epochs = _trained(
        FullBatch(), 4.0, 2, model=LinearRegression(1), learning_rate=0.1, observer=WeightedSums(weights=(-1.0, 1.0))
    )
    return (
        _row(
            "noise-without-the-clipping-norm", "noise without the clipping norm", clipped,
            {"noise": GaussianNoise(4.0)}, seen_with(1.0, clip=4.0), [[4.0]], None, poisson_loss(1.0),
            "The noise has the standard deviation σ instead of σ·C, for a clipping norm C = 4",
            "Constructed. Opacus, issue 11 (2020), asks where the clipping norm enters: the accountant sees σ only "
            "because the code multiplies it by the norm.",
            canaries=DiracCanaries(2000, 4.0),
        ),
        _row(
            "noise-divided-twice", "noise divided twice", POISSON,
            {"noise": GaussianNoise(1.0), "batch_size": 4.0}, seen_with(1.0), [[1.0]], None, poisson_loss(1.0),
            "Noise for a mean of four clipped gradients is added to their sum, which is then divided by four",
            "Tramèr, Terzis, Steinke, Song, Jagielski & Carlini (2022), Debugging differential privacy: the "
            "sensitivity was wrong by a factor of the batch size in the code of backpropagation clipping.",
            canaries=DiracCanaries(2000),
        ),
        _row(
            "divided-by-the-size-of-the-data", "divided by the size of the data", last, divided_by_the_data, None,
            np.zeros((1, 1)), np.zeros((2, 1)), lambda: scales_epsilon(2.0, POISSON.steps, DELTA),
            "The noisy sum is divided by the sampling rate times the number of private records, so the noise in the "
            "weights shows the number",
            "Opacus, issue 571 (2023): with two or three records more leaks than the accountant says, as the expected "
            "batch size is computed from the size of the dataset.",
            runs=20_000,
        ),
        _row(
            "noise-shared-by-groups", "one noise for all groups", two, {"noise": SharedNoise(4.0, 1)}, None,
            [[1.0, 0.0]], None, _no_loss_holds,
            "Groups of parameters of the same shape get the same noise, so it cancels in their difference",
            "JAX, pull request 3646 (2020): the example of differentially private descent reused one key of the random "
            "numbers for all parameters.",
            is_unbounded=True,
        ),
        _row(
            "seed-reset-each-epoch", "seed reset each epoch", epochs, {"noise": RepeatedNoise(4.0, 1)}, None,
            [[1.0, 0.5]], None, _no_loss_holds,
            "The random seed is set again in each epoch, so every epoch has the same noise: differences of gradients "
            "are released without any",
            "Constructed. diffprivlib, issue 31 (2020): the maintainer warns that one seed for several mechanisms "
            "correlates their noise and breaks differential privacy.",
            is_unbounded=True,
        ),
    )  # fmt: skip


_TEN: Final = 10
_OPPOSED: Final = np.vstack([np.full((_TEN - 1, 1), -1.0), [[1.0]]])  # nine gradients of −C, and one of C
_OPPOSED_ZEROED: Final = np.vstack([np.full((_TEN - 1, 1), -1.0), [[0.0]]])


def _sampling_faults() -> tuple[TrainingFault, ...]:
    one_epoch, fixed = (
        _trained(PoissonBatches(1 / _TEN), 1.0, steps, delta=_FEW, neighbours="replace_special") for steps in (_TEN, 4)
    )
    out, drawn = 1 - 1 / _TEN, 1 / _TEN  # another record in the batch gives −C, this one C or nothing
    on_x: Mixture = ((out, -1.0), (drawn, 1.0))
    on_y: Mixture = ((out, -1.0), (drawn, 0.0))
    in_order = BatchesInOrder(1, _TEN)
    tenth, half = _trained(PoissonBatches(0.1), 2.0, 8), _trained(PoissonBatches(0.5), 4.0, 2)
    return (
        _row(
            "shuffled-batches", "shuffled batches", one_epoch, {"sampling": ShuffledBatches(1, _TEN)}, LargestSum(),
            _OPPOSED, _OPPOSED_ZEROED, lambda: shuffled_epsilon_at_least(1.0, _TEN, 1, _FEW),
            "Shuffled batches of one epoch, with the accountant for Poisson batches",
            "Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), How private are DP-SGD implementations?; "
            "Annamalai, Balle, Hayes & De Cristofaro (2024), To shuffle or not to shuffle. JAX Privacy, pull request "
            "272 (2026), adds a warning.",
            loss_is="at least", runs=100_000,
        ),
        _row(
            "batches-in-order", "batches in order", one_epoch, {"sampling": in_order},
            WeightedSums(weights=(1.0,) + (0.0,) * (_TEN - 1)),
            [[1.0]] + [[0.0]] * (_TEN - 1), np.zeros((_TEN, 1)), _true_loss(in_order, one_epoch),
            "Batches in the fixed order of the records, with the accountant for Poisson batches",
            "JAX Privacy, issue 84 (2026): examples load the data sequentially in batches of a fixed size, which "
            "invalidates the guarantee. private-transformers, issue 7 (2021): batches of a fixed size that do not "
            "overlap within an epoch, with the accountant for Poisson sampling. The loss is that of one Gaussian "
            "mechanism an epoch (Chua et al. 2024).",
            runs=10_000,
        ),
        _row(
            "batches-of-fixed-size", "batches of fixed size", fixed, {"sampling": FixedSizeBatches(1, _TEN)},
            MixtureRatio(on_x, on_y, 1.0), _OPPOSED, _OPPOSED_ZEROED, lambda: mixture_epsilon(on_x, on_y, 1.0, 4, _FEW),
            "Batches of a fixed size drawn in each step, with the accountant for Poisson batches: a record in the "
            "batch displaces another",
            "Lebeda, Regehr, Kamath & Steinke (2024), Avoiding pitfalls for privacy accounting of subsampled "
            "mechanisms: ε of about 1 for Poisson batches, above 10 without replacement. Opacus, issue 80 (2020): "
            "constant batch sizes, accounted as Poisson sampling; a maintainer agrees that this is a shortcut.",
            runs=100_000,
        ),
        _row(
            "rate-of-a-part-of-the-batch", "rate of a part of the batch", tenth, {"sampling": PoissonBatches(0.8)},
            LogLikelihoodRatio(0.8, 2.0), [[1.0]], None, _true_loss(PoissonBatches(0.8), tenth),
            "The accountant has the rate of one of the eight parts in which the gradients of a batch are accumulated",
            "JAX Privacy, pull request 287 (2026): the validation of a given noise multiplier left the number of "
            "accumulated parts out of the sampling probability.",
            canaries=DiracCanaries(2000),
        ),
        _row(
            "rate-of-a-larger-dataset", "rate of a larger dataset", tenth, {"sampling": PoissonBatches(0.5)},
            LogLikelihoodRatio(0.5, 2.0), [[1.0]], None, _true_loss(PoissonBatches(0.5), tenth),
            "The rate is the batch size over the number of all records, but batches are from a fifth of them",
            "Constructed. Opacus, issue 813 (2026), reports the rate of another number of records in the other "
            "direction: the accountant overstates the loss.",
            canaries=DiracCanaries(4000),
        ),
        _row(
            "one-epoch-counted", "one epoch of sixteen counted", half, {"steps": 32}, LogLikelihoodRatio(0.5, 4.0),
            [[1.0]], None, _true_loss(PoissonBatches(0.5), half, 32),
            "The accountant counts the steps of one epoch of sixteen",
            "Constructed, in the manner of Opacus, issue 19, and TensorFlow Privacy, issue 103 (2020), where the "
            "number of steps was rounded over all epochs instead of in each, and so was too small.",
            canaries=DiracCanaries(2000),
        ),
        _row(
            "steps-from-the-data", "last batch dropped", half, batches_of_two, NumberOfSteps(),
            np.zeros((4, 1)), np.zeros((3, 1)), _no_loss_holds,
            "The last, incomplete batch is dropped, so the number of steps shows if there is one record more",
            "Handcrafted-DP, issue 2 (2021): the data is split into batches of a fixed size and a smaller last one is "
            "dropped. The loss under added records follows from the number of steps; it is not in that issue.",
            is_unbounded=True,
        ),
    )  # fmt: skip


TRAINING_FAULTS: Final[tuple[TrainingFault, ...]] = (
    *_clipping_faults(), *_normalising_faults(), *_noise_faults(), *_sampling_faults()
)  # fmt: skip
"""Every mistake once, by kind. Their numbers are computed when they are asked for; that needs dp-accounting."""
