"""Power of the check of noise against wrong scales and shapes, and its false alarms on correct noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.distribution_checks.check_noise import check_noise
from ....audit.distribution_checks.noise_laws import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    GumbelNoise,
    LaplaceNoise,
    NoiseLaw,
)
from ..core.bench_json import Figures, at_least, at_most, columns
from ..core.effort import Bench, Effort, in_batches, one_row_each, seeds_of
from ..core.timing import timed

ALPHA = 0.01
_SCALE, _OFF = 2.0, 0.02
_RUNS, _RIGHT_RUNS = 100_000, 2_000
_REPETITIONS, _RIGHT_REPETITIONS = (20, 100), (100, 2_000)  # quick, full
_LEAST_FOUND, _CERTAIN = 0.9, 1e-4
_BATCH = 20

Draw = Callable[[np.random.Generator, float, int], Any]


def _geometric(rng: np.random.Generator, scale: float, size: int) -> Any:
    success = -math.expm1(-1 / scale)
    return rng.geometric(success, size) - rng.geometric(success, size)


_LAWS: dict[str, tuple[NoiseLaw, Draw]] = {
    "Laplace": (LaplaceNoise(_SCALE), lambda rng, scale, size: rng.laplace(scale=scale, size=size)),
    "Gaussian": (GaussianNoise(_SCALE), lambda rng, scale, size: rng.normal(scale=scale, size=size)),
    "exponential": (ExponentialNoise(_SCALE), lambda rng, scale, size: rng.exponential(scale, size)),
    "Gumbel": (GumbelNoise(_SCALE), lambda rng, scale, size: rng.gumbel(scale=scale, size=size)),
    "geometric": (GeometricNoise(_SCALE), _geometric),
}
# Laws of the same variance (for the exponential law: of the same mean), which the scale alone hardly distinguishes.
_SHAPES: dict[str, tuple[str, Draw]] = {
    "Laplace": ("Gaussian", lambda rng, scale, size: rng.normal(scale=math.sqrt(2) * scale, size=size)),
    "Gaussian": ("Laplace", lambda rng, scale, size: rng.laplace(scale=scale / math.sqrt(2), size=size)),
    "exponential": (
        "half-normal",
        lambda rng, scale, size: np.abs(rng.normal(scale=scale * math.sqrt(math.pi / 2), size=size)),
    ),
    "Gumbel": (
        "Gaussian",
        lambda rng, scale, size: rng.normal(np.euler_gamma * scale, scale * math.pi / math.sqrt(6), size),
    ),
    "geometric": ("rounded Laplace", lambda rng, scale, size: np.rint(rng.laplace(scale=scale, size=size))),
}


@dataclass(frozen=True, slots=True)
class _Case:
    law: str
    fault: str  # empty for correct noise

    @property
    def name(self) -> str:
        return f"{self.law}, {self.fault or 'correct'}"

    def mechanism(self) -> Callable[..., Any]:
        draw, scale = _LAWS[self.law][1], _SCALE
        if self.fault == "2% less":
            scale *= 1 - _OFF
        elif self.fault == "2% more":
            scale *= 1 + _OFF
        elif self.fault:
            draw = _SHAPES[self.law][1]
        return lambda answer, size, rng: answer + draw(rng, scale, size)


_CASES = {
    case.name: case
    for law in _LAWS
    for fault in ("2% less", "2% more", f"{_SHAPES[law][0]} shape", "")
    for case in (_Case(law, fault),)
}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    from scipy.stats import binom  # takes long to import

    case = _CASES[name]
    runs, repetitions = (_RUNS, _REPETITIONS) if case.fault else (_RIGHT_RUNS, _RIGHT_REPETITIONS)
    wanted = effort.either(*repetitions)
    found, seconds = timed(in_batches, _checked, (name, runs), seeds_of(17, place, 0, wanted), _BATCH, effort.jobs)
    refuted = sum(is_refuted for is_refuted, _ in found)
    target = (
        at_least("detection rate", refuted / wanted, _LEAST_FOUND)
        if case.fault
        else at_most("false alarms", refuted, binom.isf(_CERTAIN, wanted, ALPHA))
    )
    return {
        "noise": case.law,
        "wrong": case.fault or "–",
        "runs": runs,
        "repetitions": wanted,
        "refuted": refuted / wanted,
        "scale": sum(by_scale for _, by_scale in found) / wanted,
        "seconds": seconds / wanted,
    }, [target]


def _checked(name: str, runs: int, seeds: range) -> list[tuple[bool, bool]]:
    """Return for each seed whether the check refutes the noise, and whether the scale alone refutes it."""
    case = _CASES[name]
    law, mechanism = _LAWS[case.law][0], case.mechanism()
    found = []
    for seed in seeds:
        result = check_noise(mechanism, 5, noise=law, answer=5, runs=runs, alpha=ALPHA, seed=seed, jobs=1)
        found.append((result.is_refuted, result.points[0].is_outside))
    return found


NOISE = Bench(
    name="calibration",
    title="Power and false alarms of the check of noise",
    method=(
        f"`check_noise` at alpha {ALPHA:g} for noise of scale {_SCALE:g}. Faulty noise has a scale that is 2% off, or "
        "another shape with the same variance (for the exponential law: the same mean). False alarms on correct noise "
        "are limited by the binomial quantile that chance exceeds with probability 1e-4. Refuted by scale: share in "
        "which the interval of the scale alone refutes. Seconds of one check, with several processes at work."
    ),
    columns=columns(
        "noise | fault = wrong | runs :,d | repetitions :,d | refuted share = refuted :.2% | "
        "refuted by scale = scale :.2% | seconds :.3f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _cells),
)
