"""Lower bounds beside published ones: bare counts, and scores N(μ, 1) in and N(0, 1) out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....audit.canaries.check_canaries import check_canaries
from ....audit.canaries.epsilon_from_guesses import epsilon_from_guesses
from ....audit.claims.claim import ApproxDP, GaussianDP
from ..core.bench_json import Figures, Value, at_least, columns
from ..core.effort import ALPHA, Bench, Effort, Task, in_batches, once, seeds_of
from .known_scores import epsilon_of_gaussian, gaussian_scores

_COUNTS = {  # (right, guesses, canaries): the bound of Steinke et al. as published, δ = 1e-5
    (10_000, 10_000, 10_000): 7.834,
    (100_000, 100_000, 100_000): 8.128,
    (700, 1_000, 10_000): 0.729,
    (5_500, 10_000, 10_000): 0.167,
    (100, 100, 100_000): 0.809,
    (950, 1_000, 100_000): 2.495,
}
_SCORES = {  # μ: one run for (ε, δ), and f-DP for a Gaussian curve, from the tests of jax-privacy
    1.0: (1.133, 2.165),
    2.0: (2.312, 4.722),
    4.0: (4.396, 9.134),
}
_CANARIES, _COUNT_DELTA, _SCORE_DELTA = 20_000, 1e-5, 1e-6
_AUDITS, _QUICK_AUDITS, _BATCH = 200, 2, 5
_TABLE = 40


def _counts(right: int, guesses: int, canaries: int) -> Figures:
    published = _COUNTS[right, guesses, canaries]
    bound = epsilon_from_guesses(right, guesses, canaries, delta=_COUNT_DELTA)
    pure = epsilon_from_guesses(right, guesses, canaries)
    cells: dict[str, Value] = {
        "setting": f"{right:,} of {guesses:,} guesses right, of {canaries:,} canaries",
        "canaries": canaries,
        "delta": _COUNT_DELTA,
        "published": published,
        "bound": bound,
        "pure": pure,
    }
    return cells, [at_least("bound", round(bound, 3), published)]


def _bounds(mu: float, is_curve: bool, seeds: range) -> list[float]:
    found = []
    claim = GaussianDP(0.1) if is_curve else ApproxDP(0.5, _SCORE_DELTA)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(_CANARIES) < 0.5
        scores = gaussian_scores(mu, included, rng)
        bound = check_canaries(scores, included, claim=claim, alpha=ALPHA, coins="independent").bound
        found.append(epsilon_of_gaussian(bound, _SCORE_DELTA) if is_curve else bound)
    return found


def _scores(effort: Effort, place: int, mu: float, is_curve: bool) -> Figures:
    seeds = seeds_of(_TABLE, place, 0, effort.either(_QUICK_AUDITS, min(effort.audits, _AUDITS)))
    bounds = in_batches(_bounds, (mu, is_curve), seeds, _BATCH, effort.jobs)
    published = _SCORES[mu][is_curve]
    low, middle, high = np.quantile(bounds, [0.1, 0.5, 0.9])
    cells: dict[str, Value] = {
        "setting": f"Gaussian scores, mu {mu:g}, claim {'of a Gaussian curve' if is_curve else 'for epsilon at delta'}",
        "canaries": _CANARIES,
        "delta": _SCORE_DELTA,
        "audits": len(bounds),
        "published": published,
        "bound": float(middle),
        "low": float(low),
        "high": float(high),
        "truth": epsilon_of_gaussian(mu, _SCORE_DELTA),
    }
    return cells, [at_least("median bound", float(middle), published)]


def _tasks(effort: Effort) -> Iterator[Task]:
    if effort.wants("counts"):
        for counts in _COUNTS:
            yield once(", ".join(f"{number:,}" for number in counts), _counts, *counts)
    for place, mu in enumerate(_SCORES):
        for is_curve in (False, True):
            if effort.wants("scores") and (not effort.is_quick or mu == 1.0):
                yield once(f"scores {mu:g} {is_curve}", _scores, effort, 2 * place + is_curve, mu, is_curve)


PUBLISHED_ROWS = Bench(
    name="canary-bounds",
    title="Lower bounds beside published ones",
    method=(
        f"At confidence {1 - ALPHA:g}. Counts: `epsilon_from_guesses`, beside the bound of Steinke, Nasr & Jagielski "
        "(2023). Scores: `check_canaries` by default on fair coins, medians and 10% and 90% quantiles of up to "
        f"{_AUDITS} audits, beside jax-privacy's published test numbers (one run; f-DP in one run), which are for a "
        "fixed split of deterministic scores. Bounds for a Gaussian curve are bounds on μ, given as the ε of μ-GDP at "
        "δ; they hold for Gaussian mechanisms only."
    ),
    columns=columns(
        "setting | canaries :, | delta :g | published :.3f | bound :.3f | 10% = low :.3f | 90% = high :.3f | "
        "bound at delta 0 = pure :.3f | true epsilon = truth :.3f | audits"
    ),
    names=("counts", "scores"),
    tasks=_tasks,
)
