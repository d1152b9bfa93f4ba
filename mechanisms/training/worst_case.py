"""The worst case of DP-SGD: one record whose gradient has the clipping norm along a known direction, and nothing else.

The released sums are then the subsampled Gaussian mechanism itself, composed over the steps, so an observer of all of
them sees exactly what the claim for Poisson or full batches allows. The last iterate shows their total only: a binomial
mixture of normal laws, which is less unless there is one step or the batches are full.

References
----------
Nasr, Songi, Thakurta, Papernot & Carlini (2021), Adversary instantiation: lower bounds for differentially private
machine learning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import binom

from ...audit.errors import OptionError
from ..noise_samplers import Floats
from .batches import FullBatch, PoissonBatches
from .dp_sgd import DPSGD
from .mixture_loss import mixture_epsilon
from .models import FixedGradients
from .observers import LastProjection, LogLikelihoodRatio, NoisySums, Observer

Seen = Literal["ratio", "sums", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCaseTraining:
    """A training on one record of norm `clip`, the empty dataset beside it, and the exact loss of what is seen.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm, positive.
    steps : int
    rate : float
        Probability that the record is in a batch, in (0, 1]; 1 for full batches.
    clip : float
    seen : {"ratio", "sums", "last"}
        The log-likelihood ratio of all noisy sums, shape (runs,); the sums, shape (runs, steps); or the last iterate
        less the first, shape (runs,).
    delta : float
        δ of the claim and of `seen_epsilon`, in (0, 1).

    Examples
    --------
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
        if self.seen not in ("ratio", "sums", "last"):
            raise OptionError(f"seen={self.seen!r} is unknown; use ratio, sums or last.", seen=self.seen)
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
