"""Noise that is not fresh for every parameter and step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...noise_samplers import Floats
from ...training.steps import NoiseRule, rounded


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
