"""Lower bounds on DP-SGD beside the accountant's epsilon: one run with canaries, and a thousand runs and more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ....audit.canaries.check_canaries import check_canaries
from ....audit.claims.claim import ApproxDP
from ....audit.procedures.check import check
from ....mechanisms.training.canaries import DiracCanaries, canary_run
from ....mechanisms.training.dp_sgd import DPSGD, WorstCaseTraining, dp_sgd_claim
from ....mechanisms.training.models import LogisticRegression, breast_cancer_records
from ....mechanisms.training.observers import LastLoss
from ....mechanisms.training.train import PoissonBatches
from ..core.bench_json import Figures, Value, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, once, seeds_of
from ..core.timing import timed

_EPSILONS, _DELTA = (1.0, 2.0, 4.0, 8.0), 1e-5
_RATE, _STEPS, _LEARNING_RATE = 0.1, 100, 2.0
_CANARIES, _FEW, _MANY = 10_000, 1_000, 100_000
_SEEDS, _TABLE = 5, 43
_SATURATED = 20.0  # factor on fitted weights, so that records that are classified right have hardly any gradient


@cache
def noise_multiplier(epsilon: float) -> float:
    """The noise multiplier of Poisson batches whose claim is (ε, 1e-5), up to 0.1% and on the noisier side."""
    low, high = 0.1, 50.0
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        claim: Any = dp_sgd_claim(PoissonBatches(_RATE), middle, _STEPS, delta=_DELTA)
        low, high = (low, middle) if claim.epsilon <= epsilon else (middle, high)
    return high


def _training(sigma: float) -> DPSGD:
    records = breast_cancer_records()
    return DPSGD(
        model=LogisticRegression(31),
        sampling=PoissonBatches(_RATE),
        noise_multiplier=sigma,
        steps=_STEPS,
        learning_rate=_LEARNING_RATE,
        batch_size=_RATE * len(records),
        delta=_DELTA,
    )


def _one_run(score: Any, epsilon: float, sigma: float, canaries: int, seed: int) -> float:
    run = canary_run(_training(sigma), breast_cancer_records(), DiracCanaries(canaries), score=score, seed=seed)
    claim = ApproxDP(epsilon, _DELTA)
    return check_canaries(run.scores, run.included, claim=claim, alpha=ALPHA, coins="independent").bound


def _worst_case(seen: Any, epsilon: float, sigma: float, runs: int, seed: int) -> float:
    case = WorstCaseTraining(noise_multiplier=sigma, steps=_STEPS, rate=_RATE, seen=seen, delta=_DELTA)
    claim = ApproxDP(epsilon, _DELTA)
    return check(case.training, case.x, case.y, claim=claim, runs=runs, alpha=ALPHA, seed=seed, jobs=1).bound


def _real_data(is_saturated: bool, epsilon: float, sigma: float, runs: int, seed: int) -> float:
    """Losses of a mislabelled record, at the last weights of trainings with and without it."""
    records = breast_cancer_records()
    target = records[0].copy()
    target[-1] = 1.0 - target[-1]
    training = replace(_training(sigma), observer=LastLoss(tuple(target.tolist())))
    if is_saturated:
        training = replace(training, initial=_saturated_weights())
    with_target = np.concatenate([records[1:], target[None]])
    claim = ApproxDP(epsilon, _DELTA)
    options: dict[str, Any] = {"claim": claim, "runs": runs, "alpha": ALPHA, "seed": seed, "jobs": 1}
    return check(training, with_target, records[1:], **options).bound


@cache
def _saturated_weights() -> tuple[float, ...]:
    """Weights that classify nearly all records with certainty, so that the mislabelled one has the whole gradient."""
    from sklearn.linear_model import LogisticRegression as Fit

    records = breast_cancer_records()[1:]
    fit = Fit(C=1e3, fit_intercept=False, max_iter=5_000).fit(records[:, :-1], records[:, -1])
    return tuple((_SATURATED * fit.coef_[0]).tolist())


@dataclass(frozen=True, slots=True)
class _Setting:
    bound: Callable[..., float]
    what: Any
    size: int
    counts: str


_SETTINGS = {
    "one run, every step seen": _Setting(_one_run, "ratio", _CANARIES, "canaries"),
    "one run, last iterate": _Setting(_one_run, "sum", _CANARIES, "canaries"),
    "worst case, every step seen": _Setting(_worst_case, "ratio", _FEW, "runs"),
    "worst case, every step seen, more runs": _Setting(_worst_case, "ratio", _MANY, "runs"),
    "worst case, last iterate": _Setting(_worst_case, "last", _FEW, "runs"),
    "worst case, last iterate, more runs": _Setting(_worst_case, "last", _MANY, "runs"),
    "real data, last loss": _Setting(_real_data, False, _FEW, "runs"),
    "real data, last loss, worst-case initial weights": _Setting(_real_data, True, _FEW, "runs"),
}


def _cells(effort: Effort, place: int, name: str, epsilon: float) -> Figures:
    setting = _SETTINGS[name]
    sigma = noise_multiplier(epsilon)
    size = effort.either(min(setting.size, 500), setting.size)
    bounds, times = [], []
    for seed in seeds_of(_TABLE, place, 0, effort.either(1, _SEEDS)):
        bound, seconds = timed(setting.bound, setting.what, epsilon, sigma, size, seed)
        bounds.append(bound)
        times.append(seconds)
    cells: dict[str, Value] = {
        "setting": name,
        "epsilon": epsilon,
        "sigma": sigma,
        "runs": 1 if setting.counts == "canaries" else size,
        "canaries": size if setting.counts == "canaries" else None,
        "bound": float(np.median(bounds)),
        "low": min(bounds),
        "high": max(bounds),
        "seconds": float(np.median(times)),
    }
    return cells, [at_most("median bound", float(np.median(bounds)), epsilon)]


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_SETTINGS):
        for number, epsilon in enumerate(effort.either(_EPSILONS[:1], _EPSILONS)):
            if effort.wants(name):
                yield once(f"{name}, {epsilon:g}", _cells, effort, len(_EPSILONS) * place + number, name, epsilon)


DP_SGD_BOUNDS = Bench(
    name="dp-sgd",
    title="Lower bounds on DP-SGD beside the accountant's epsilon",
    method=(
        f"Poisson batches at rate {_RATE:g}, {_STEPS} steps, noise multiplier such that the claim for added records is "
        f"(ε, {_DELTA:g})-DP. One run: logistic regression on 569 records with {_CANARIES:,} canaries of the clipping "
        "norm, each along a parameter of its own; scores are the log-likelihood ratio of all noisy sums, or the change "
        "of the weights. Worst case: one record of the clipping norm and no other gradients; the log-likelihood ratio "
        "of all steps, or the last iterate. Real data: the loss of a mislabelled record after logistic regression on "
        "569 records, from weights of 0, or from weights that classify nearly all other records with certainty. "
        f"Medians and ranges of {_SEEDS} seeds at confidence {1 - ALPHA:g}; seconds on one worker, audit included."
    ),
    columns=columns(
        "setting | claimed epsilon = epsilon :g | noise multiplier = sigma :.3f | runs on each dataset = runs :, | "
        "canaries :, | lower bound = bound :.2f | least = low :.2f | largest = high :.2f | seconds :.1f"
    ),
    names=tuple(_SETTINGS),
    tasks=_tasks,
)
