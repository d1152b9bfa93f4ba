"""Runs until audits find a rare leak, by its probability and by where it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ....audit.results.audit_result import FINAL_SHARE
from ....mechanisms.faulty import MisprintedTableGeometric
from ..core.bench_json import Figures, Value, at_least, at_most, at_most_by_chance, columns
from ..core.page import Bench, Effort, Task, in_batches, once_beside, one_row_each, seeds_of
from ..inference.known_events import KnownPair, runs_of_best_bet

# Noise that falls in one place slightly too often: the share of audits that find it, by place and probability.

Array = npt.NDArray[np.float64]

# Integer samplers with one wrong outcome: the share of audits that find it, by how far the outcome is off.

ALPHA = 0.05
_EXCESS_AUDITS, _EXCESS_QUICK_AUDITS, _EXCESS_BATCH = 100, 1, 5
_RUNS, _EXCESS_QUICK_RUNS = 100_000, 20_000
_EXCESS_ERRORS, _EXCESS_SHARE = 12, 0.95
_EXCESS_PLACES = ("value", "interval", "value of a coordinate", "interval of a coordinate")
_STATISTICS = ("interval of a difference", "interval of a norm", "interval of a sum of ten")
_VALUE, _EXCESS_WIDTH = 0.25, 1e-3


@dataclass(frozen=True, slots=True)
class CrowdedNoise:
    """Normal noise that takes one value, or falls in a narrow interval, with a probability that depends on the dataset.

    `size` numbers fall in that place, or the second coordinates, differences or norms of pairs, or the sums of vectors
    of ten: with probability `p` on dataset 1, and `q` on others.
    """

    place: str
    p: float
    q: float

    def __call__(self, data: int, size: int, rng: np.random.Generator) -> Array:
        noise = rng.normal(size=size)
        is_there = rng.random(size) < (self.p if data == 1 else self.q)
        width = _EXCESS_WIDTH if self.place.startswith("interval") else 0.0
        noise[is_there] = _VALUE + width * rng.random(np.count_nonzero(is_there))
        if self.place in _EXCESS_PLACES:
            return np.stack([rng.normal(size=size), noise], axis=1) if self.place.endswith("coordinate") else noise
        vectors = rng.normal(size=(size, 10 if self.place.endswith("ten") else 2))
        vectors[is_there] = self._moved(vectors[is_there], noise[is_there])
        return vectors

    def _moved(self, vectors: Array, to: Array) -> Array:
        """Vectors whose difference, norm or sum has these values; only the norm changes more than one coordinate."""
        if self.place.endswith("norm"):
            return np.asarray(vectors * (to / np.linalg.norm(vectors, axis=1))[:, None])
        others = vectors[:, 1:].sum(axis=1)
        first = to + others if self.place.endswith("difference") else to - others
        return np.concatenate([first[:, None], vectors[:, 1:]], axis=1)


@dataclass(frozen=True, slots=True)
class _ExcessCase:
    where: str
    epsilon: float
    q: float
    is_sequential: bool

    @property
    def name(self) -> str:
        return f"{self.where}, {self.epsilon:g}, {self.q:g}, {'sequential' if self.is_sequential else 'fixed'}"

    def mechanism(self, errors: float, runs: int) -> CrowdedNoise:
        """The noise that exceeds the claim by this number of standard errors of `runs` runs."""
        allowed = p = math.exp(self.epsilon) * self.q
        for _ in range(50):  # the standard error depends on p
            variance = p * (1 - p) + math.exp(2 * self.epsilon) * self.q * (1 - self.q)
            p = allowed + errors * math.sqrt(variance / runs)
        return CrowdedNoise(self.where, p, self.q)


_ALONE = (
    *((where, 0.0, q) for where in _EXCESS_PLACES for q in (0.3, 0.05)),
    *((where, epsilon, 0.05) for where in _EXCESS_PLACES[:2] for epsilon in (0.1, 1.0)),
    ("interval", 0.0, 0.005),
)
_EXCESS_CASES = {
    case.name: case
    for case in (
        *(_ExcessCase(*setting, is_sequential) for is_sequential in (False, True) for setting in _ALONE),
        *(_ExcessCase(where, epsilon, 0.05, False) for where in _STATISTICS for epsilon in (0.0, 1.0)),
        *(_ExcessCase(where, 0.0, 0.05, True) for where in _STATISTICS),
    )
}
_EXCESS_QUICK = ("interval, 0, 0.05, fixed", "value, 0, 0.05, sequential", "interval of a norm, 0, 0.05, fixed")


def _excess_found(mechanism: Any, epsilon: float, runs: int, is_sequential: bool, seeds: range) -> list[bool]:
    audit = partial(check, mechanism, claim=PureDP(epsilon), runs=runs, alpha=ALPHA, jobs=1, bits=False)
    pairs = [(1, 0) if seed % 2 else (0, 1) for seed in seeds]
    return [
        audit(*pair, seed=seed, sequential=is_sequential).is_refuted for pair, seed in zip(pairs, seeds, strict=True)
    ]


def _excess_cells(effort: Effort, place: int, name: str) -> Figures:
    case = _EXCESS_CASES[name]
    audits, runs = effort.either(_EXCESS_QUICK_AUDITS, _EXCESS_AUDITS), effort.either(_EXCESS_QUICK_RUNS, _RUNS)
    shares = []
    for errors in (0, _EXCESS_ERRORS):
        arguments = (case.mechanism(errors, runs), case.epsilon, runs, case.is_sequential)
        seeds = seeds_of(48, place, 10_000 * errors, audits)
        shares.append(sum(in_batches(_excess_found, arguments, seeds, _EXCESS_BATCH, effort.jobs)) / audits)
    cells: dict[str, Value] = {
        "place": case.where,
        "epsilon": case.epsilon,
        "q": case.q,
        "kind": "sequential" if case.is_sequential else "fixed",
        "correct": shares[0],
        "found": shares[1],
    }
    return cells, [
        at_least("share found", shares[1], _EXCESS_SHARE),
        at_most_by_chance("share of correct mechanisms", shares[0], audits, ALPHA),
    ]


SMALL_EXCESSES = Bench(
    name="small-excesses",
    title="Small excesses in one place amid noise",
    method=(
        f"Normal noise that takes one value, or falls in an interval of width {_EXCESS_WIDTH:g}, with the probability "
        f"stated on one dataset; on the other one this exceeds the claim ε by 0 (correct) or {_EXCESS_ERRORS} "
        f"standard errors of all {_RUNS:,} runs. The noise is a number, one of two coordinates, their difference or "
        f"norm, or the sum of ten coordinates. Share of {_EXCESS_AUDITS} audits at alpha {ALPHA:g} that refute the "
        "claim, by `check(...)` and `check(..., sequential=True)`."
    ),
    columns=columns(
        f"place | ε = epsilon :g | probability = q :g | audit = kind | correct :.2f | {_EXCESS_ERRORS} errors = found "
        ":.2f"
    ),
    names=tuple(_EXCESS_CASES),
    tasks=one_row_each(_EXCESS_CASES, _excess_cells, _EXCESS_QUICK),
)

_OUTCOME_AUDITS, _OUTCOME_QUICK_AUDITS, _OUTCOME_BATCH = 100, 1, 5
_OUTCOME_QUICK_RUNS = 20_000
_OUTCOME_ERRORS = (0, 5, 10, 20)  # standard errors of the whole audit; 0 is the right sampler
_FOUND_FROM, _OUTCOME_SHARE = 10, 0.95


@dataclass(frozen=True, slots=True)
class _OutcomeCase:
    epsilon: float
    place: int
    runs: int
    is_sequential: bool

    @property
    def name(self) -> str:
        kind = "sequential" if self.is_sequential else "fixed"
        return f"{self.epsilon:g}, {self.place:+d}, {self.runs:,}, {kind}"

    def mechanism(self, errors: float) -> MisprintedTableGeometric:
        """The sampler whose wrong outcome is this number of standard errors of the log ratio above the claim."""
        ratio = math.exp(-self.epsilon)
        q = (1 - ratio) / (1 + ratio) * ratio ** (abs(self.place) + 1)
        log_factor = 0.0
        for _ in range(50):  # the standard error depends on the factor
            p = q * math.exp(self.epsilon + log_factor)
            log_factor = errors * math.sqrt((1 / p + 1 / q) / self.runs)
        return MisprintedTableGeometric(self.epsilon, math.exp(log_factor), self.place)


_OUTCOME_CASES = {
    case.name: case
    for case in (
        _OutcomeCase(epsilon, place, runs, is_sequential)
        for runs in (100_000, 1_000_000)
        for is_sequential in (False, True)
        for epsilon, place in ((0.1, 0), (0.1, 7), (0.35, -3), (1.0, 0), (1.0, 4))
    )
}
_OUTCOME_QUICK = ("0.35, -3, 100,000, fixed", "1, +4, 100,000, sequential")


def _outcome_found(mechanism: Any, runs: int, is_sequential: bool, seeds: range) -> list[bool]:
    audit = partial(check, mechanism, 1, 0, claim=PureDP(mechanism.epsilon), runs=runs, alpha=ALPHA, jobs=1, bits=False)
    return [audit(seed=seed, sequential=is_sequential, resolution=1.0).is_refuted for seed in seeds]


def _outcome_cells(effort: Effort, place: int, name: str) -> Figures:
    case, audits = _OUTCOME_CASES[name], effort.either(_OUTCOME_QUICK_AUDITS, _OUTCOME_AUDITS)
    if effort.is_quick:
        case = replace(case, runs=_OUTCOME_QUICK_RUNS)
    cells: dict[str, Value] = {"name": case.name}
    targets = []
    for errors in _OUTCOME_ERRORS:
        seeds = seeds_of(24, place, 10_000 * errors, audits)
        arguments = (case.mechanism(errors), case.runs, case.is_sequential)
        share = sum(in_batches(_outcome_found, arguments, seeds, _OUTCOME_BATCH, effort.jobs)) / audits
        cells[f"at_{errors}"] = share
        if errors >= _FOUND_FROM:
            targets.append(at_least(f"share at {errors}", share, _OUTCOME_SHARE))
    targets.append(at_most_by_chance("share of correct samplers", float(str(cells["at_0"])), audits, ALPHA))
    return cells, targets


OUTCOMES = Bench(
    name="outcomes",
    title="Integer samplers with one wrong outcome",
    method=(
        f"Geometric noise with the claim ε, whose table has one weight too large, at the noise stated: its log ratio "
        f"exceeds ε by 0 (the correct sampler), 5, 10 or 20 standard errors of all runs of the audit. Share of "
        f"{_OUTCOME_AUDITS} audits at alpha {ALPHA:g} that refute the claim, by `check(...)` and `check(..., "
        "sequential=True)`."
    ),
    columns=columns(
        "ε, noise, runs, audit = name | correct = at_0 :.2f | 5 errors = at_5 :.2f | 10 errors = at_10 :.2f | "
        "20 errors = at_20 :.2f"
    ),
    names=tuple(_OUTCOME_CASES),
    tasks=one_row_each(_OUTCOME_CASES, _outcome_cells, _OUTCOME_QUICK),
)

_LEAK_AUDITS, _LEAK_QUICK_AUDITS, _LEAK_BATCH = 100, 2, 5
_LEAK_PLACES = ("beyond", "narrow interval", "one value")
_PROBABILITIES = (0.01, 0.003, 0.001, 1e-4)
_MOST_TIMES = {0.05: 1.3, 1e-5: 1.0}  # multiples of 3·ln(1/alpha)/p
_CAP_TIMES = 12.0  # planned runs, as a multiple of the same
_SIMULATED = (20, 400)  # simulated audits, in the quick form and in the full one
_NEVER = 1e-12  # probability of an output that never occurs
_PLACE, _STEP, _LEAK_WIDTH = 0.3, 0.4, 1e-4  # of the leaks amid the noise, by how much they differ, and of the interval
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
                leak = _PLACE + _STEP * answer + _LEAK_WIDTH * rng.random(size)
            case _:
                leak = np.full(size, _PLACE + _STEP * answer)
        return np.where(rng.random(size) < self.probability, leak, noisy)


@dataclass(frozen=True, slots=True)
class _LeakCase:
    place: str
    probability: float
    alpha: float

    @property
    def name(self) -> str:
        return f"{self.place}, {self.probability:g}, {self.alpha:g}"


_LEAK_CASES = {
    case.name: case
    for case in (
        _LeakCase(place, probability, alpha)
        for place in _LEAK_PLACES
        for probability in _PROBABILITIES
        for alpha in _MOST_TIMES
    )
}
_LEAK_QUICK = ("beyond, 0.01, 0.05",)


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


def _leak_cells(effort: Effort, place: int, name: str) -> Figures:
    case, audits = _LEAK_CASES[name], effort.either(_LEAK_QUICK_AUDITS, _LEAK_AUDITS)
    unit = 3.0 * math.log(1.0 / case.alpha) / case.probability
    leak = (case.place, case.probability, case.alpha)
    seeds = seeds_of(25, place, 0, audits)
    taken = in_batches(_taken, (*leak, int(_CAP_TIMES * unit), True), seeds, _LEAK_BATCH, effort.jobs)
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
            found = in_batches(_taken, (*leak, _SHARE_RUNS, sequential), seeds, _LEAK_BATCH, effort.jobs)
            cells[kind] = sum(map(math.isfinite, found)) / audits
            targets.append(at_least(f"share found, {kind}", float(str(cells[kind])), _LEAST_SHARE))
    return cells, targets


def _known(effort: Effort, place: int, name: str) -> dict[str, Value]:
    """Return the median runs of simulated audits that know both leaks, as a multiple of the same."""
    case = _LEAK_CASES[name]
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


def _with_noise(case: _LeakCase) -> tuple[float, float]:
    """Return the probabilities of a leak's place on the dataset that leaks there, and on the other.

    The noise, too, falls into an interval: at a distance of 0.3 from the one answer, and of 0.7 from the other.
    """
    if case.place != "narrow interval":
        return case.probability, _NEVER
    near, far = (0.5 * _LEAK_WIDTH * math.exp(-distance) for distance in (_PLACE, 1.0 - _PLACE))
    noisy = 1.0 - case.probability
    return case.probability + noisy * near, noisy * far


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_LEAK_CASES):
        if effort.wants(name) and (not effort.is_quick or name in _LEAK_QUICK):
            yield once_beside(name, _leak_cells, _known, ("known",), effort, place, name)


RARE_LEAKS = Bench(
    name="rare-leaks",
    title="Rare leaks",
    method=(
        "Laplace noise for the claimed ε = 1 that reveals the dataset with probability p: by numbers far beyond the "
        f"noise, in two intervals of length 1e-4, or at two values. Median runs to refutation of {_LEAK_AUDITS} "
        "audits by `check(..., sequential=True)` with planned runs of 36 ln(1/alpha)/p, and as a multiple of 3 "
        f"ln(1/alpha)/p. Known leak: {_SIMULATED[1]} simulated audits that know both leaks, and how often noise falls "
        f"there, and place the best bet on them from the first run. For p = {_SHARE_PROBABILITY:g} and alpha "
        f"{_SHARE_ALPHA:g}: shares found in {_SHARE_RUNS:,} runs by audits of fixed size and by sequential ones."
    ),
    columns=columns(
        "leak = place | p = probability :g | alpha :g | median runs = median :,.0f | multiple = times :.2f | "
        "multiple, known leak = known :.2f | found, fixed = fixed :.2f | found, sequential = sequential :.2f"
    ),
    names=tuple(_LEAK_CASES),
    tasks=_tasks,
)
