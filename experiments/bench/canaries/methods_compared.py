"""Lower bounds by method, number of canaries, kind of score and δ: what the default was chosen by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....audit.canaries.check_canaries import check_canaries
from ....audit.canaries.plan import METHODS
from ....audit.claims.claim import ApproxDP
from ..core.bench_json import Figures, Value, columns
from ..core.effort import ALPHA, Bench, Effort, Task, in_batches, once, seeds_of
from .known_scores import gaussian_scores, laplace_scores

_SCORES = {
    "Gaussian scores, mu 1": (gaussian_scores, 1.0),
    "Gaussian scores, mu 2": (gaussian_scores, 2.0),
    "Gaussian scores, mu 4": (gaussian_scores, 4.0),
    "Laplace scores, epsilon 1": (laplace_scores, 1.0),
    "Laplace scores, epsilon 3": (laplace_scores, 3.0),
}
_CANARIES, _DELTAS = (100, 1_000, 10_000, 100_000), (0.0, 1e-6, 1e-5)
_AUDITS, _BATCH = 15, 3
_CLAIMED = 0.5
_TABLE = 41


def _bounds(name: str, canaries: int, delta: float, seeds: range) -> list[list[float]]:
    draw, strength = _SCORES[name]
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        scores = draw(strength, included, rng)
        claim = ApproxDP(_CLAIMED, delta)
        found.append(
            [
                check_canaries(
                    scores,
                    included,
                    claim=claim,
                    alpha=ALPHA,
                    coins="independent",
                    method=method,  # type: ignore[arg-type]
                ).bound
                for method in METHODS
            ]
        )
    return found


def _cells(effort: Effort, place: int, name: str, canaries: int, delta: float) -> Figures:
    seeds = seeds_of(_TABLE, place, 0, effort.either(1, _AUDITS if canaries < 10**5 else _BATCH))
    bounds = in_batches(_bounds, (name, canaries, delta), seeds, _BATCH, effort.jobs)
    medians = np.median(np.array(bounds), axis=0)
    cells: dict[str, Value] = {"scores": name, "canaries": canaries, "delta": delta, "audits": len(bounds)}
    return {**cells, **dict(zip(METHODS, medians.tolist(), strict=True))}, []


def _tasks(effort: Effort) -> Iterator[Task]:
    place = 0
    for name in _SCORES:
        for canaries in _CANARIES:
            for delta in _DELTAS:
                place += 1
                if effort.wants(name) and (not effort.is_quick or (canaries == _CANARIES[0] and delta == 0.0)):
                    key = f"{name}, {canaries:,}, {delta:g}"
                    yield once(key, _cells, effort, place, name, canaries, delta)


METHODS_COMPARED = Bench(
    name="canary-methods",
    title="Lower bounds on epsilon by method",
    method=(
        f"Medians of {_AUDITS} audits ({_BATCH} with 100,000 canaries) at confidence {1 - ALPHA:g}, each method by its "
        f"defaults and with all of alpha; claim ε = {_CLAIMED:g}. Steinke's bound, counts and the recursion share "
        "alpha at half of all canaries, an eighth and so on."
    ),
    columns=columns(
        "scores | canaries :, | delta :g | auto :.3f | betting :.3f | counts :.3f | steinke :.3f | f-dp :.3f | audits"
    ),
    names=tuple(_SCORES),
    tasks=_tasks,
)
