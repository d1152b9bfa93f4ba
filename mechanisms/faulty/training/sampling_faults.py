"""Mistakes in accounting for the batches: another sampling, another rate, or fewer steps than were taken.

Dropping the last, incomplete batch of each epoch is a mistake only if the number of records is private: the number of
steps then shows it. For records that are zeroed out, with a public number of records, it is on the safe side: a record
is in at most one batch of an epoch as before, and in none with some probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...training.batches import (
    BatchesInOrder,
    FixedSizeBatches,
    PoissonBatches,
    Sampling,
    ShuffledBatches,
)
from ...training.canaries import DiracCanaries
from ...training.dp_sgd import DPSGD
from ...training.mixture_loss import Mixture, mixture_epsilon
from ...training.models import FixedGradients
from ...training.observers import LargestSum, LogLikelihoodRatio, MixtureRatio, NumberOfSteps, WeightedSums
from ...training.train import Recipe
from .clipping_faults import DELTA
from .mistaken_training import MistakenTraining, mistaken
from .training_fault import TrainingFault
from .true_losses import epsilon_of, shuffled_epsilon_at_least

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
