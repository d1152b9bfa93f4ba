"""DP-SGD with its claim, and the pairs of datasets on which a training is worst."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.stats import binom

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, check_number
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.datasets.adjacency import AddRemove, Adjacency, Replace, ZeroOut
from ...audit.errors import ClaimError
from ...audit.training.check_batches import Assumption, accountant_of
from ..adapters.library_calls import imported
from ..distributions.distributions import GaussianDistribution
from ..noise_samplers import Floats
from ..queries import check_choice, check_count
from .models import FixedGradients, Model
from .observers import LastProjection, LogLikelihoodRatio, NoisySums, Observer, log_mixture
from .train import (
    BallsInBins,
    BatchesInOrder,
    FixedSizeBatches,
    FullBatch,
    GaussianNoise,
    PoissonBatches,
    Recipe,
    Sampling,
    ShuffledBatches,
    SumOfClipped,
    train,
)

# The guarantee of DP-SGD for each way of drawing batches, for noise of standard deviation `noise_multiplier` × clipping
# norm on the sum, and an observer of all noisy sums; the last iterate is computed from them (Abadi et al. 2016).

Neighbours: TypeAlias = Literal["add_or_remove_one", "replace_one", "replace_special"]
"""Relations by their names in `dp_accounting`; in "replace_special" a record is replaced by one of zeros."""


def dp_sgd_claim(
    sampling: Sampling,
    noise_multiplier: float,
    steps: int,
    *,
    neighbours: Neighbours = "add_or_remove_one",
    delta: float | None = 1e-5,
) -> Claim:
    """Return the guarantee of DP-SGD: (ε, delta)-DP, or for `delta` None the whole curve.

    The curve is a `GaussianDP` where that is exact, else a `PrivacyProfile`. `noise_multiplier` is the noise's standard
    deviation on the sum over the clipping norm. Poisson and fixed-size batches need dp-accounting. Where no bound for
    the sampling and these neighbours is known here, a `ClaimError` is raised.

    >>> print(dp_sgd_claim(FullBatch(), 4.0, 16, delta=None))
    1-GDP
    """
    sigma = check_number("noise_multiplier", noise_multiplier, 0, math.inf, "noise over clipping norm", closed=False)
    check_count("steps", steps, "steps")
    check_choice("neighbours", neighbours, get_args(Neighbours))
    if delta is not None:
        check_number("delta", delta, 0, 1, "None claims the whole curve", closed=False)
    return _claim(sampling, sigma, steps, neighbours, delta)  # type: ignore[arg-type]  # samplings are frozen


@lru_cache(maxsize=1 << 8)
def _claim(sampling: Sampling, sigma: float, steps: int, neighbours: Neighbours, delta: float | None) -> Claim:
    """The claim for checked parameters, kept, as an accountant takes a second."""
    moved = 2.0 if neighbours == "replace_one" else 1.0  # change of a sum of clipped gradients, in clipping norms
    match sampling:
        # Exact up to the accountant's grid, which errs on the safe side; a record of zeros counts as none.
        case PoissonBatches(rate):
            assumed = Assumption(sampling="poisson", n=1, q=rate, batch_size=None)
            return _accounted(assumed, sigma, steps, neighbours, delta)
        case FullBatch():
            return _gaussian(moved * math.sqrt(steps) / sigma, delta)
        # Valid, not exact: the guarantee for Poisson batches does not hold for them (Lebeda et al. 2024).
        case FixedSizeBatches(batch, n_rows) if neighbours != "add_or_remove_one":
            assumed = Assumption(sampling="fixed", n=n_rows, q=batch / n_rows, batch_size=batch)
            return _accounted(assumed, sigma, steps, neighbours, delta)
        # Each record is in at most one batch of an epoch, so an epoch costs one Gaussian mechanism (Dong, Roth & Su
        # 2022, Corollary 3.3). This is exact for fixed batches. For random ones it is an upper bound: with the random
        # partition in common the two output distributions are mixtures of such pairs, and the hockey-stick divergence
        # is jointly convex. The loss has no closed form, and the bound for Poisson batches does not hold for shuffling
        # (Chua et al. 2024). Only for balls in bins (Chua et al. 2025) an added record moves no other one.
        case BallsInBins():
            return _gaussian(moved * math.sqrt(-(-steps // sampling.per_epoch)) / sigma, delta)
        case ShuffledBatches() | BatchesInOrder() if neighbours != "add_or_remove_one":
            return _gaussian(moved * math.sqrt(-(-steps // sampling.per_epoch)) / sigma, delta)
    raise ClaimError(
        f"no bound is known here for {sampling} and neighbours={neighbours!r}; use replace_special or replace_one for "
        "batches of a fixed size, where an added record moves others.",
        sampling=sampling,
        neighbours=neighbours,
    )


def _accounted(assumed: Assumption, sigma: float, steps: int, neighbours: Neighbours, delta: float | None) -> Claim:
    accountant = accountant_of(assumed, sigma, steps, neighbours=neighbours)
    if delta is None:
        return PrivacyProfile.from_pld(SimpleNamespace(get_delta_for_epsilon=accountant.get_delta))
    return ApproxDP(float(accountant.get_epsilon(delta)), delta)


def _gaussian(mu: float, delta: float | None) -> Claim:
    if delta is None:
        return GaussianDP(mu)
    return ApproxDP(GaussianDistribution(0.0, 1.0).epsilon_from(GaussianDistribution(mu, 1.0), delta), delta)


# Exact loss between two mixtures of normal distributions of one scale, composed over independent steps.

Mixture: TypeAlias = tuple[tuple[float, float], ...]
"""Probability and mean of each component of a mixture of normal distributions of one scale."""


@lru_cache(maxsize=1 << 6)
def mixture_epsilon(on_x: Mixture, on_y: Mixture, scale: float, steps: int, delta: float) -> float:
    """ε of `steps` independent pairs of mixtures of normal distributions, from below: within about 1e-3, and rounding.

    Outputs are counted in cells of 1/400 of the scale, which can only lose information, and losses are rounded down to
    multiples of 1e-4.
    """
    pld = imported("dp_accounting.pld.privacy_loss_distribution", "accounting")
    means = [mean for _, mean in (*on_x, *on_y)]
    z = np.arange(min(means) - 9 * scale, max(means) + 9 * scale, scale / 400)
    log_x, log_y = (log_mixture(z, part, scale) for part in (on_x, on_y))
    log_x, log_y = (part - np.logaddexp.reduce(part) for part in (log_x, log_y))
    cells = range(len(z))
    tables = [dict(zip(cells, part.tolist(), strict=True)) for part in (log_x, log_y)]
    found = []
    for lower, upper in (tables, tables[::-1]):
        losses = pld.from_two_probability_mass_functions(upper, lower, pessimistic_estimate=False)
        found.append(float(losses.self_compose(steps).get_epsilon_for_delta(delta)))
    return max(found)


# DP-SGD as a mechanism: many independent trainings, and what an observer sees of each.


@dataclass(frozen=True, slots=True, kw_only=True)
class DPSGD:
    """Stochastic gradient descent on clipped gradients of single examples with Gaussian noise on their sum.

    A step adds normal noise of standard deviation `noise_multiplier` × `clip` to the sum of the batch's clipped
    gradients, divides by `batch_size`, and moves the weights by `learning_rate` against the result. A dataset is an
    array of records, shape (n, columns), with the label in the last column if the model has one.

    Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Algorithm 1.

    Parameters
    ----------
    model : Model
        Such as ``LogisticRegression(31)``; `FixedGradients` for the worst case.
    batch_size : float
        What the noisy sum is divided by: the expected batch size, a constant that does not depend on the dataset.
    initial : tuple of float
        First weights; () for zeros.
    observer : Observer
        What is seen of a run, and so the output. Its `clip` is the unit of what it shows.
    neighbours, delta
        Relation and δ of the claim, as for `dp_sgd_claim`.

    Examples
    --------
    >>> from dpaudit.mechanisms.training.train import PoissonBatches
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
        return {"add_or_remove_one": AddRemove(), "replace_one": Replace(), "replace_special": ZeroOut()}[
            self.neighbours
        ]

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """What the observer sees of `size` independent trainings, shape (size,) or (size, k)."""
        return train(self.recipe, dataset, self.observer, size, rng)


# The worst case of DP-SGD: one record whose gradient has the clipping norm along a known direction, and nothing else.
#
# The released sums are then the subsampled Gaussian mechanism itself, composed over the steps, so an observer of all of
# them sees exactly what the claim for Poisson or full batches allows. The last iterate shows their total only: a
# binomial mixture of normal distributions, which is less unless there is one step or the batches are full.
# Source: Nasr, Songi, Thakurta, Papernot & Carlini (2021).

Seen = Literal["ratio", "sums", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCaseTraining:
    """A training on one record of norm `clip`, the empty dataset beside it, and the exact loss of what is seen.

    The record is in a batch with probability `rate`; 1 for full batches. What is `seen` is the log-likelihood "ratio"
    of all noisy sums, shape (runs,); the "sums", shape (runs, steps); or the "last" iterate less the first, shape
    (runs,). `delta` is that of the claim and of `seen_epsilon`.

    >>> case = WorstCaseTraining(noise_multiplier=2.0, steps=4, rate=1.0, seen="last")
    >>> case.seen_epsilon == case.training.claim.epsilon
    True
    """

    noise_multiplier: float
    steps: int
    rate: float = 1.0
    clip: float = 1.0
    seen: Seen = "ratio"
    delta: float = 1e-5

    def __post_init__(self) -> None:
        check_choice("seen", self.seen, get_args(Seen))
        self.training  # noqa: B018  # refuses the other parameters

    @property
    def training(self) -> DPSGD:
        """The mechanism, for datasets with and without the record (add-remove)."""
        observers: dict[str, Observer] = {
            "ratio": LogLikelihoodRatio(self.rate, self.noise_multiplier, clip=self.clip),
            "sums": NoisySums(clip=self.clip),
            "last": LastProjection(),
        }
        return DPSGD(
            model=FixedGradients(),
            sampling=FullBatch() if self.rate == 1 else PoissonBatches(self.rate),
            noise_multiplier=self.noise_multiplier,
            steps=self.steps,
            clip=self.clip,
            observer=observers[self.seen],
            delta=self.delta,
        )

    @property
    def x(self) -> Floats:
        """The dataset with the record, shape (1, 1)."""
        return np.array([[self.clip]])

    @property
    def y(self) -> Floats:
        """The dataset without it, shape (0, 1)."""
        return np.empty((0, 1))

    @property
    def seen_epsilon(self) -> float:
        """Smallest ε at `delta` for what is seen, in nats: exact, up to the grids of the accountant."""
        if self.seen == "last" and self.rate < 1 and self.steps > 1:
            uses = range(self.steps + 1)
            weights = np.asarray(binom.pmf(uses, self.steps, self.rate)).tolist()
            mixture = tuple((float(p), float(k)) for p, k in zip(weights, uses, strict=True))
            scale = self.noise_multiplier * math.sqrt(self.steps)
            return mixture_epsilon(mixture, ((1.0, 0.0),), scale, 1, self.delta)
        claim: Any = self.training.claim
        return float(claim.epsilon)
