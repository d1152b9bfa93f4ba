"""What is seen of a training: the noisy sums along a direction, or the last weights only.

Projections are of the noisy sums before they are divided by the batch size, in units of the clipping norm: a gradient
of this norm along the direction moves them by 1, and the noise has standard deviation `noise_multiplier`.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from ...audit.errors import OptionError
from ..noise_samplers import Floats
from .models import Model


class Observer:
    """What is seen in each step, and what becomes of it at the end: by default nothing, and the total of the steps."""

    __slots__ = ()

    def at_step(self, model: Model, weights: Floats, noisy: Floats) -> Floats | None:
        """What is kept of a step: the weights before it and the noisy sum, both of shape (runs, parameters)."""
        return None

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        """The outputs of the runs, from what was kept, the first weights and the last; shape (runs,) or (runs, k)."""
        return np.asarray(sum(seen, np.zeros(len(last))))


@dataclass(frozen=True, slots=True)
class NoisySums(Observer):
    """White box: each step's noisy sum along a direction of any norm, shape (runs, steps), in units of `clip`."""

    direction: tuple[float, ...] = (1.0,)
    clip: float = 1.0

    def at_step(self, model: Model, weights: Floats, noisy: Floats) -> Floats:
        return along(noisy, self.direction) / self.clip

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        return np.stack(seen, axis=1)


@dataclass(frozen=True, slots=True)
class LogLikelihoodRatio(Observer):
    """White box: the log-likelihood ratio of all noisy sums along a direction, with the record against without it.

    This is the best test of Poisson batches of this rate where all other gradients vanish along the direction. Each
    step adds log(1 − q + q e^{v/σ² − 1/(2σ²)}) with the projection v.
    """

    rate: float
    noise_multiplier: float
    direction: tuple[float, ...] = (1.0,)
    clip: float = 1.0

    def at_step(self, model: Model, weights: Floats, noisy: Floats) -> Floats:
        return log_ratio(along(noisy, self.direction) / self.clip, self.rate, self.noise_multiplier)


@dataclass(frozen=True, slots=True)
class MixtureRatio(Observer):
    """White box: the log-likelihood ratio of all noisy sums along a direction, for steps that are mixtures of normals.

    `on_x` and `on_y` are probability and mean, in clipping norms, of each component on either dataset.
    """

    on_x: tuple[tuple[float, float], ...]
    on_y: tuple[tuple[float, float], ...]
    noise_multiplier: float
    direction: tuple[float, ...] = (1.0,)
    clip: float = 1.0

    def at_step(self, model: Model, weights: Floats, noisy: Floats) -> Floats:
        sums = along(noisy, self.direction) / self.clip
        x, y = (log_mixture(sums, part, self.noise_multiplier) for part in (self.on_x, self.on_y))
        return x - y


@dataclass(frozen=True, slots=True)
class NumberOfSteps(Observer):
    """White box: how many noisy sums there were, shape (runs,)."""

    def at_step(self, model: Model, weights: Floats, noisy: Floats) -> Floats:
        return np.ones(len(noisy))


@dataclass(frozen=True, slots=True)
class WeightedSums(NoisySums):
    """White box: a weighted total of the noisy sums of the steps along a direction, shape (runs,).

    Weights, one per step, of (1, 0, …) show the first step alone, and (−1, 1) the change between two steps, in which
    common noise cancels.
    """

    _: KW_ONLY
    weights: tuple[float, ...]

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        return np.asarray(sum(weight * sums for weight, sums in zip(self.weights, seen, strict=True)))


@dataclass(frozen=True, slots=True)
class LargestSum(NoisySums):
    """White box: the largest noisy sum along a direction, shape (runs,): a test of where in an epoch a record is.

    Source: Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), the events of their lower bound.
    """

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        return np.asarray(np.max(seen, axis=0))


@dataclass(frozen=True, slots=True)
class LastProjection(Observer):
    """The last weights less the first along a direction, shape (runs,): what the last iterate shows."""

    direction: tuple[float, ...] = (1.0,)

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        return along(last - first, self.direction)


@dataclass(frozen=True, slots=True)
class LastLoss(Observer):
    """Black box: the loss of one record at the last weights, shape (runs,)."""

    record: tuple[float, ...]

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        return model.losses(last, *model.split([self.record]))[:, 0]


@dataclass(frozen=True, slots=True)
class LastWeights(Observer):
    """The last weights, shape (runs, parameters)."""

    def outputs(self, model: Model, seen: list[Floats], first: Floats, last: Floats) -> Floats:
        return last


def along(vectors: Floats, direction: tuple[float, ...]) -> Floats:
    """Projection of each row of `vectors`, shape (runs, parameters), onto a direction scaled to norm 1."""
    norm = math.hypot(*direction)
    if len(direction) != vectors.shape[1] or not 0 < norm < math.inf:
        raise OptionError(
            f"a direction of {len(direction)} numbers and norm {norm:g} does not fit {vectors.shape[1]} parameters; "
            "use one finite number per parameter, not all 0.",
            direction=direction,
        )
    return np.asarray(vectors @ (np.asarray(direction) / norm))


def log_ratio(projections: Floats, rate: float, noise_multiplier: float) -> Floats:
    """Log-likelihood ratio of q N(1, σ²) + (1 − q) N(0, σ²) to N(0, σ²) at each projection, in nats."""
    loss = (projections - 0.5) / noise_multiplier**2
    if rate == 1.0:
        return loss
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def log_mixture(values: Floats, components: tuple[tuple[float, float], ...], scale: float) -> Floats:
    """Log-density, up to a constant of `scale`, of a mixture of normals with these (probability, mean)."""
    parts = [math.log(p) - ((values - mean) / scale) ** 2 / 2 for p, mean in components if p > 0]
    return np.asarray(np.logaddexp.reduce(parts, axis=0))
