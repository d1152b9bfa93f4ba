"""The check of noise measured: scales 2% off, wrong shapes, and no alarm where the noise is right."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from ....audit.distribution_checks.check_noise import check_noise
from ....audit.distribution_checks.noise_laws import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    GumbelNoise,
    LaplaceNoise,
    NoiseLaw,
)
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, batches, once, seeds_of, spread

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
# Others of the same variance (of the same mean for the exponential), so that the scale alone hardly tells.
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
    wrong: str  # what is wrong; empty where nothing is

    @property
    def name(self) -> str:
        return f"{self.law}, {self.wrong or 'right'}"

    def mechanism(self) -> Callable[..., Any]:
        draw, scale = _LAWS[self.law][1], _SCALE
        if self.wrong == "2% less":
            scale *= 1 - _OFF
        elif self.wrong == "2% more":
            scale *= 1 + _OFF
        elif self.wrong:
            draw = _SHAPES[self.law][1]
        return lambda answer, size, rng: answer + draw(rng, scale, size)


def _cases() -> list[_Case]:
    return [_Case(law, wrong) for law in _LAWS for wrong in ("2% less", "2% more", f"{_SHAPES[law][0]} shape", "")]


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, case in enumerate(_cases()):
        if effort.wants(case.name):
            yield once(case.name, _cells, place, case, effort)


def _cells(place: int, case: _Case, effort: Effort) -> tuple[dict[str, Value], list[Target]]:
    runs, repetitions = (_RUNS, _REPETITIONS) if case.wrong else (_RIGHT_RUNS, _RIGHT_REPETITIONS)
    wanted = effort.either(*repetitions)
    started = time.perf_counter()
    calls = [(place, runs, seeds) for seeds in batches(seeds_of(17, place, 0, wanted), _BATCH)]
    found = [one for batch in spread(_checked, calls, effort.jobs) for one in batch]
    refuted = sum(is_refuted for is_refuted, _ in found)
    cells: dict[str, Value] = {
        "noise": case.law,
        "wrong": case.wrong or "–",
        "runs": runs,
        "repetitions": wanted,
        "refuted": refuted / wanted,
        "scale": sum(by_scale for _, by_scale in found) / wanted,
        "seconds": (time.perf_counter() - started) / wanted,
    }
    if case.wrong:
        return cells, [Target(what="share found", value=refuted / wanted, sense=">=", limit=_LEAST_FOUND)]
    most = float(binom.isf(_CERTAIN, wanted, ALPHA))
    return cells, [Target(what="alarms", value=float(refuted), sense="<=", limit=most)]


def _checked(place: int, runs: int, seeds: range) -> list[tuple[bool, bool]]:
    """Whether the noise is refuted, and whether by its scale, with each of the seeds."""
    case = _cases()[place]
    law, mechanism = _LAWS[case.law][0], case.mechanism()
    found = []
    for seed in seeds:
        result = check_noise(mechanism, 5, noise=law, answer=5, runs=runs, alpha=ALPHA, seed=seed, jobs=1)
        found.append((result.is_refuted, result.points[0].is_outside))
    return found


NOISE = Bench(
    name="calibration",
    title="The check of noise",
    method=(
        f"`check_noise` at alpha {ALPHA:g}, noise of scale {_SCALE:g}: scales 2% off and shapes of the same variance "
        "(of the same mean for the exponential law), and noise that is as claimed, whose alarms are held to the "
        "quantile of their binomial law that chance exceeds with probability 1e-4. By its scale: share in which the "
        "interval of the scale alone refutes. Seconds: of one check, processes side by side."
    ),
    columns=(
        Column("noise", "noise"),
        Column("what is wrong", "wrong"),
        Column("runs", "runs", ",d"),
        Column("repetitions", "repetitions", ",d"),
        Column("refuted", "refuted", ".2%"),
        Column("by its scale", "scale", ".2%"),
        Column("seconds", "seconds", ".3f"),
    ),
    names=tuple(case.name for case in _cases()),
    tasks=_tasks,
)
