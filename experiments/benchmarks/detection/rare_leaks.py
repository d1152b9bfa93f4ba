"""Runs until audits find a rare leak, by its probability and by where it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ....audit.results.audit_result import FINAL_SHARE
from ..core.bench_json import Figures, Value, at_least, at_most, columns
from ..core.effort import Bench, Effort, Task, in_batches, once_beside, seeds_of
from ..inference.known_events import KnownPair, runs_of_best_bet

_AUDITS, _QUICK_AUDITS, _BATCH = 100, 2, 5
_PLACES = ("beyond", "narrow interval", "one value")
_PROBABILITIES = (0.01, 0.003, 0.001, 1e-4)
_MOST_TIMES = {0.05: 1.3, 1e-5: 1.0}  # multiples of 3·ln(1/alpha)/p
_CAP_TIMES = 12.0  # planned runs, as a multiple of the same
_SIMULATED = (20, 400)  # simulated audits, in the quick form and in the full one
_NEVER = 1e-12  # probability of an output that never occurs
_PLACE, _STEP, _WIDTH = 0.3, 0.4, 1e-4  # of the leaks amid the noise, by how much they differ, and of the interval
_SHARE_RUNS, _SHARE_PROBABILITY, _SHARE_ALPHA, _LEAST_SHARE = 100_000, 0.003, 1e-5, 0.95


@dataclass(frozen=True, slots=True)
class LeakyLaplace:
    """Laplace noise for ε = 1 that reveals the dataset with this probability, at a place that differs between them."""

    probability: float
    place: str

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        noisy = answer + rng.laplace(size=size)
        match self.place:
            case "beyond":
                leak = 1_000.0 + 10.0 * answer + rng.random(size)
            case "narrow interval":
                leak = _PLACE + _STEP * answer + _WIDTH * rng.random(size)
            case _:
                leak = np.full(size, _PLACE + _STEP * answer)
        return np.where(rng.random(size) < self.probability, leak, noisy)


@dataclass(frozen=True, slots=True)
class _Case:
    place: str
    probability: float
    alpha: float

    @property
    def name(self) -> str:
        return f"{self.place}, {self.probability:g}, {self.alpha:g}"


_CASES = {
    case.name: case
    for case in (
        _Case(place, probability, alpha) for place in _PLACES for probability in _PROBABILITIES for alpha in _MOST_TIMES
    )
}
_QUICK = ("beyond, 0.01, 0.05",)


def _taken(place: str, probability: float, alpha: float, runs: int, sequential: bool, seeds: range) -> list[float]:
    audits = (
        check(
            LeakyLaplace(probability, place),
            0.0,
            1.0,
            claim=PureDP(1.0),
            runs=runs,
            alpha=alpha,
            seed=seed,
            jobs=1,
            bits=False,
            sequential=sequential,
            resolution=1.0,
        )
        for seed in seeds
    )
    return [float(result.runs) if result.is_refuted else math.inf for result in audits]


def _cells(effort: Effort, place: int, name: str) -> Figures:
    case, audits = _CASES[name], effort.either(_QUICK_AUDITS, _AUDITS)
    unit = 3.0 * math.log(1.0 / case.alpha) / case.probability
    leak = (case.place, case.probability, case.alpha)
    seeds = seeds_of(25, place, 0, audits)
    taken = in_batches(_taken, (*leak, int(_CAP_TIMES * unit), True), seeds, _BATCH, effort.jobs)
    median = float(np.quantile(taken, 0.5, method="inverted_cdf"))
    cells: dict[str, Value] = {
        "place": case.place,
        "probability": case.probability,
        "alpha": case.alpha,
        "median": median,
        "times": median / unit,
        "fixed": None,
        "sequential": None,
    }
    targets = [] if effort.is_quick else [at_most("median as a multiple", median / unit, _MOST_TIMES[case.alpha])]
    if (case.probability, case.alpha) == (_SHARE_PROBABILITY, _SHARE_ALPHA):
        for kind, sequential in (("fixed", False), ("sequential", True)):
            seeds = seeds_of(25, place, 100_000 * (1 + sequential), audits)
            found = in_batches(_taken, (*leak, _SHARE_RUNS, sequential), seeds, _BATCH, effort.jobs)
            cells[kind] = sum(map(math.isfinite, found)) / audits
            targets.append(at_least(f"share found, {kind}", float(str(cells[kind])), _LEAST_SHARE))
    return cells, targets


def _known(effort: Effort, place: int, name: str) -> dict[str, Value]:
    """Return the median runs of simulated audits that know both leaks, as a multiple of the same."""
    case = _CASES[name]
    unit = 3.0 * math.log(1.0 / case.alpha) / case.probability
    leak = _with_noise(case)
    pair = KnownPair(leak, leak)
    final = FINAL_SHARE * case.alpha
    taken = runs_of_best_bet(
        [pair],
        PureDP(1.0),
        int(_CAP_TIMES * unit),
        alpha=case.alpha - final,
        final_alpha=final,
        audits=effort.either(*_SIMULATED),
        seed=seeds_of(25, place, 300_000, 1)[0],
    )
    return {"known": float(np.quantile(taken, 0.5, method="inverted_cdf")) / unit}


def _with_noise(case: _Case) -> tuple[float, float]:
    """Return the probabilities of a leak's place on the dataset that leaks there, and on the other.

    The noise, too, falls into an interval: at a distance of 0.3 from the one answer, and of 0.7 from the other.
    """
    if case.place != "narrow interval":
        return case.probability, _NEVER
    near, far = (0.5 * _WIDTH * math.exp(-distance) for distance in (_PLACE, 1.0 - _PLACE))
    noisy = 1.0 - case.probability
    return case.probability + noisy * near, noisy * far


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_CASES):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK):
            yield once_beside(name, _cells, _known, ("known",), effort, place, name)


RARE_LEAKS = Bench(
    name="rare-leaks",
    title="Rare leaks",
    method=(
        "Laplace noise for the claimed ε = 1 that reveals the dataset with probability p: by numbers far beyond the "
        f"noise, in two intervals of length 1e-4, or at two values. Median runs to refutation of {_AUDITS} audits by "
        "`check(..., sequential=True)` with planned runs of 36 ln(1/alpha)/p, and as a multiple of 3 ln(1/alpha)/p. "
        f"Known leak: {_SIMULATED[1]} simulated audits that know both leaks, and how often noise falls there, and "
        "place the best bet on them from the first run. "
        f"For p = {_SHARE_PROBABILITY:g} and alpha {_SHARE_ALPHA:g}: shares found in {_SHARE_RUNS:,} runs by audits of "
        "fixed size and by sequential ones."
    ),
    columns=columns(
        "leak = place | p = probability :g | alpha :g | median runs = median :,.0f | multiple = times :.2f | "
        "multiple, known leak = known :.2f | "
        "found, fixed = fixed :.2f | found, sequential = sequential :.2f"
    ),
    names=tuple(_CASES),
    tasks=_tasks,
)
