"""Small excesses amid noise, and rare leaks: the share that audits find, and the runs that it takes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP
from .measure import (
    ALPHA,
    Effort,
    Figures,
    Seeds,
    Table,
    at_least,
    at_most,
    at_most_by_chance,
    check_values,
    in_batches,
)

Array = npt.NDArray[np.float64]

_AUDITS, _BATCH, _QUICK_RUNS = 100, 5, 10_000
_RUNS, _FOUND_SHARE = 100_000, 0.95

# Noise that falls in one place slightly too often: the share of audits that find it, by place and probability.

_ERRORS = 12  # standard errors of all runs
_PLACES = ("value", "interval", "value of a coordinate", "interval of a coordinate")
_STATISTICS = ("interval of a difference", "interval of a norm", "interval of a sum of ten")
_VALUE, _WIDTH = 0.25, 1e-3


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
        width = _WIDTH if self.place.startswith("interval") else 0.0
        noise[is_there] = _VALUE + width * rng.random(np.count_nonzero(is_there))
        if self.place in _PLACES:
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


_ALONE = (
    *((where, 0.0, q) for where in _PLACES for q in (0.3, 0.05)),
    *((where, epsilon, 0.05) for where in _PLACES[:2] for epsilon in (0.1, 1.0)),
    ("interval", 0.0, 0.005),
)
_EXCESS_ROWS = {
    f"{where}, {epsilon:g}, {q:g}, {kind}": (where, epsilon, q, kind)
    for where, epsilon, q, kind in (
        *((*setting, kind) for kind in ("fixed", "sequential") for setting in _ALONE),
        *((where, epsilon, 0.05, "fixed") for where in _STATISTICS for epsilon in (0.0, 1.0)),
        *((where, 0.0, 0.05, "sequential") for where in _STATISTICS),
    )
}


def _crowded(where: str, epsilon: float, q: float, errors: float, runs: int) -> CrowdedNoise:
    """The noise that exceeds the claim by this number of standard errors of `runs` runs."""
    allowed = p = math.exp(epsilon) * q
    for _ in range(50):  # the standard error depends on p
        variance = p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)
        p = allowed + errors * math.sqrt(variance / runs)
    return CrowdedNoise(where, p, q)


def _excess_found(mechanism: Any, epsilon: float, runs: int, is_sequential: bool, seeds: range) -> list[bool]:
    audit = partial(check_values, mechanism, claim=PureDP(epsilon), runs=runs, alpha=ALPHA)
    pairs = [(1, 0) if seed % 2 else (0, 1) for seed in seeds]
    return [
        audit(*pair, seed=seed, sequential=is_sequential).is_refuted for pair, seed in zip(pairs, seeds, strict=True)
    ]


def _excess_cells(effort: Effort, seeds: Seeds, where: str, epsilon: float, q: float, kind: str) -> Figures:
    audits, runs = effort.either(1, _AUDITS), effort.either(_QUICK_RUNS, _RUNS)
    shares = []
    for errors in (0, _ERRORS):
        arguments = (_crowded(where, epsilon, q, errors, runs), epsilon, runs, kind == "sequential")
        found = in_batches(_excess_found, arguments, seeds(audits, 10_000 * errors), _BATCH, effort.jobs)
        shares.append(sum(found) / audits)
    return {
        "place": where,
        "epsilon": epsilon,
        "q": q,
        "kind": kind,
        "correct": shares[0],
        "found": shares[1],
    }, [
        at_least("share found", shares[1], _FOUND_SHARE),
        at_most_by_chance("share of correct mechanisms", shares[0], audits, ALPHA),
    ]


# Noise that reveals the dataset with a small probability: the runs until sequential audits refute, by place.

_LEAK_PLACES = ("beyond", "narrow interval", "one value")
_PROBABILITIES = (0.01, 0.003, 0.001, 1e-4)
_MOST_TIMES = {0.05: 1.3, 1e-5: 1.0}  # multiples of 3·ln(1/alpha)/p
_CAP_TIMES = 12.0  # planned runs, as a multiple of the same
_PLACE, _STEP, _LEAK_WIDTH = 0.3, 0.4, 1e-4  # of the leaks amid the noise, by how much they differ, and of the interval


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


_LEAK_ROWS = {
    f"{place}, {probability:g}, {alpha:g}": (place, probability, alpha)
    for place, probability, alpha in itertools.product(_LEAK_PLACES, _PROBABILITIES, _MOST_TIMES)
}


def _taken(place: str, probability: float, alpha: float, runs: int, seeds: range) -> list[float]:
    audit = partial(check_values, claim=PureDP(1.0), runs=runs, alpha=alpha, sequential=True, detect=1.0)
    audits = (audit(LeakyLaplace(probability, place), 0.0, 1.0, seed=seed) for seed in seeds)
    return [float(result.runs) if result.is_refuted else math.inf for result in audits]


def _leak_cells(effort: Effort, seeds: Seeds, place: str, probability: float, alpha: float) -> Figures:
    unit = 3.0 * math.log(1.0 / alpha) / probability
    arguments = (place, probability, alpha, int(_CAP_TIMES * unit))
    taken = in_batches(_taken, arguments, seeds(effort.either(1, _AUDITS)), _BATCH, effort.jobs)
    median = float(np.quantile(taken, 0.5, method="inverted_cdf"))
    return {
        "place": place,
        "probability": probability,
        "alpha": alpha,
        "median": median,
        "times": median / unit,
    }, [] if effort.is_quick else [at_most("median as a multiple", median / unit, _MOST_TIMES[alpha])]


_EXCESS_QUICK = ("value, 0, 0.05, sequential", "interval of a norm, 0, 0.05, fixed")

TABLES = (
    Table("small-excesses", 48, _EXCESS_ROWS, _excess_cells, quick=_EXCESS_QUICK),
    Table("rare-leaks", 25, _LEAK_ROWS, _leak_cells, quick=("beyond, 0.01, 0.05",)),
)
