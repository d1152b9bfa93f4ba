"""Mistakes in DP-SGD, caught by repeated runs and, where canaries show them, by one run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ....audit.canaries.check_canaries import check_canaries
from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ....audit.results.canary_result import CanaryResult
from ....mechanisms.faulty.training.registry import TRAINING_FAULTS
from ....mechanisms.faulty.training.training_fault import TrainingFault
from ....mechanisms.training.canary_run import Training, canary_run
from ..core.bench_json import Figures, Target, Value, at_least, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, in_batches, once, seeds_of
from .step_by_step import what_differs

_SEEDS, _QUICK_SEEDS = 20, 1
_QUICK = ("no-clipping", "noise-divided-twice")
_RUNS_ALPHA = 1e-4  # of repeated runs, so that one of the right trainings is refuted in 4% of measurements at most
_TIMES = 4  # runs and canaries, as a multiple of what shows a mistake with one seed
_TABLE = 42


def _audited(name: str, seeds: range) -> list[tuple[float, ...]]:
    """Of each seed: wrong and right training refuted by repeated runs and by one run, bounds, seconds, and parts."""
    fault = next(fault for fault in TRAINING_FAULTS if fault.name == name)
    found = []
    for seed in seeds:
        start = time.perf_counter()
        many = [
            check(training, fault.x, fault.y, runs=_TIMES * fault.runs, alpha=_RUNS_ALPHA, seed=seed, jobs=1)
            for training in (fault.wrong, fault.right)
        ]
        half = time.perf_counter()
        one = [_one_run(fault, training, seed) for training in (fault.wrong, fault.right)] if fault.canaries else []
        verdicts = [result.verdict is Verdict.REFUTED for result in (*many, *one)]
        found.append(
            (
                *verdicts[:2],
                many[0].bound,
                *(verdicts[2:] or (False, False)),
                one[0].bound if one else 0.0,
                half - start,
                bool(what_differs(fault.wrong, fault.right, fault.x, fault.y, seed)),
                bool(what_differs(fault.right, fault.right, fault.x, fault.y, seed)),
            )
        )
    return found


def _one_run(fault: TrainingFault, training: Training, seed: int) -> CanaryResult:
    canaries: Any = fault.canaries
    run = canary_run(training, fault.no_records, replace(canaries, m=_TIMES * canaries.m), seed=seed)
    return check_canaries(
        run.scores, run.included, claim=run.claim, adjacency=run.adjacency, alpha=ALPHA, coins="independent"
    )


def _cells(effort: Effort, place: int, name: str) -> Figures:
    fault = next(fault for fault in TRAINING_FAULTS if fault.name == name)
    seeds = seeds_of(_TABLE, place, 0, effort.either(_QUICK_SEEDS, _SEEDS))
    table = np.array(in_batches(_audited, (name,), seeds, 2, effort.jobs), dtype=np.float64)
    n, sums, medians = len(table), table.sum(axis=0), np.median(table, axis=0)
    targets: list[Target] = [
        at_least("caught by repeated runs", sums[0], n),
        at_most("right training refuted by repeated runs", sums[1], 0),
        at_least("seen step by step", sums[7], n),
        at_most("right training, something seen", sums[8], 0),
    ]
    cells: dict[str, Value] = {
        "mistake": name,
        "claimed": fault.claimed_epsilon,
        "pair": fault.pair_epsilon,
        "truth": fault.true_epsilon,
        "seeds": n,
        "runs": _TIMES * fault.runs,
        "caught": int(sums[0]),
        "right": int(sums[1]),
        "bound": float(medians[2]),
        "seconds": float(medians[6]),
        "steps": int(sums[7]),
        "right_steps": int(sums[8]),
    }
    if fault.canaries is not None:
        cells |= {
            "canaries": _TIMES * fault.canaries.m,
            "one_caught": int(sums[3]),
            "one_right": int(sums[4]),
            "one_bound": float(medians[5]),
        }
        targets += [at_least("caught by one run", sums[3], n), at_most("right training refuted by one run", sums[4], 0)]
    return cells, targets


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, fault in enumerate(TRAINING_FAULTS):
        if effort.wants(fault.name) and (not effort.is_quick or fault.name in _QUICK):
            yield once(fault.name, _cells, effort, place, fault.name)


TRAINING_MISTAKES = Bench(
    name="training-mistakes",
    title="Mistakes in training",
    method=(
        f"Wrong twins of DP-SGD and the right trainings, {_SEEDS} seeds each. Repeated runs: `check` on the entry's "
        f"pair at alpha {_RUNS_ALPHA:g}, with as many runs on each dataset as the column says. One run: "
        f"`check_canaries` on the canaries' projections at alpha {ALPHA:g}, for mistakes that canaries show; δ times "
        "the number of canaries allows no much smaller alpha. Epsilon at the claim's δ of 1e-5: claimed, on the pair "
        "(computed, or a lower bound), and over all pairs. Bounds are medians of the wrong trainings. Step by step: "
        "the move of a sum, the noise, the batches and the number of steps, each beside what the claim assumes."
    ),
    columns=columns(
        "mistake | claimed epsilon = claimed :.3g | epsilon on the pair = pair :.3g | "
        "true epsilon = truth :.3g | seeds | runs :, | caught | right refuted = right | lower bound = bound :.3g | "
        "seconds of both = seconds :.1f | canaries :, | one run, caught = one_caught | "
        "one run, right refuted = one_right | one run, lower bound = one_bound :.3g | seen step by step = steps | "
        "right, something seen = right_steps"
    ),
    names=tuple(fault.name for fault in TRAINING_FAULTS),
    tasks=_tasks,
)
