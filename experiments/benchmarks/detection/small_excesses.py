"""Noise that falls in one place slightly too often: the share of audits that find it, by place and probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ..core.bench_json import Figures, Value, at_least, at_most_by_chance, columns
from ..core.effort import Bench, Effort, in_batches, one_row_each, seeds_of

Array = npt.NDArray[np.float64]

ALPHA = 0.05
_AUDITS, _QUICK_AUDITS, _BATCH = 100, 1, 5
_RUNS, _QUICK_RUNS = 100_000, 20_000
_ERRORS, _SHARE = 12, 0.95
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


@dataclass(frozen=True, slots=True)
class _Case:
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
    *((where, 0.0, q) for where in _PLACES for q in (0.3, 0.05)),
    *((where, epsilon, 0.05) for where in _PLACES[:2] for epsilon in (0.1, 1.0)),
    ("interval", 0.0, 0.005),
)
_CASES = {
    case.name: case
    for case in (
        *(_Case(*setting, is_sequential) for is_sequential in (False, True) for setting in _ALONE),
        *(_Case(where, epsilon, 0.05, False) for where in _STATISTICS for epsilon in (0.0, 1.0)),
        *(_Case(where, 0.0, 0.05, True) for where in _STATISTICS),
    )
}
_QUICK = ("interval, 0, 0.05, fixed", "value, 0, 0.05, sequential", "interval of a norm, 0, 0.05, fixed")


def _found(mechanism: Any, epsilon: float, runs: int, is_sequential: bool, seeds: range) -> list[bool]:
    audit = partial(check, mechanism, claim=PureDP(epsilon), runs=runs, alpha=ALPHA, jobs=1, bits=False)
    pairs = [(1, 0) if seed % 2 else (0, 1) for seed in seeds]
    return [
        audit(*pair, seed=seed, sequential=is_sequential).is_refuted for pair, seed in zip(pairs, seeds, strict=True)
    ]


def _cells(effort: Effort, place: int, name: str) -> Figures:
    case = _CASES[name]
    audits, runs = effort.either(_QUICK_AUDITS, _AUDITS), effort.either(_QUICK_RUNS, _RUNS)
    shares = []
    for errors in (0, _ERRORS):
        arguments = (case.mechanism(errors, runs), case.epsilon, runs, case.is_sequential)
        seeds = seeds_of(48, place, 10_000 * errors, audits)
        shares.append(sum(in_batches(_found, arguments, seeds, _BATCH, effort.jobs)) / audits)
    cells: dict[str, Value] = {
        "place": case.where,
        "epsilon": case.epsilon,
        "q": case.q,
        "kind": "sequential" if case.is_sequential else "fixed",
        "correct": shares[0],
        "found": shares[1],
    }
    return cells, [
        at_least("share found", shares[1], _SHARE),
        at_most_by_chance("share of correct mechanisms", shares[0], audits, ALPHA),
    ]


SMALL_EXCESSES = Bench(
    name="small-excesses",
    title="Small excesses in one place amid noise",
    method=(
        f"Normal noise that takes one value, or falls in an interval of width {_WIDTH:g}, with the probability stated "
        f"on one dataset; on the other one this exceeds the claim ε by 0 (correct) or {_ERRORS} standard errors of all "
        f"{_RUNS:,} runs. The noise is a number, one of two coordinates, their difference or norm, or the sum of ten "
        f"coordinates. Share of {_AUDITS} audits at alpha {ALPHA:g} that refute the claim, by `check(...)` and "
        f"`check(..., sequential=True)`."
    ),
    columns=columns(
        f"place | ε = epsilon :g | probability = q :g | audit = kind | correct :.2f | {_ERRORS} errors = found :.2f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _cells, _QUICK),
)
