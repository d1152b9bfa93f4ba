"""Mistakes in DP-SGD, caught by repeated runs and, where canaries show them, by one run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, chi2_contingency, norm

from ....audit.canaries.check_canaries import check_canaries
from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ....audit.results.canary_result import CanaryResult
from ....mechanisms.faulty.training import TRAINING_FAULTS, MistakenTraining, TrainingFault
from ....mechanisms.noise_samplers import Floats
from ....mechanisms.training.canaries import Training, canary_run
from ....mechanisms.training.dp_sgd import DPSGD
from ....mechanisms.training.models import Batch
from ....mechanisms.training.train import Recipe
from ..core.bench_json import Figures, Target, Value, at_least, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, in_batches, once, seeds_of

_FALSE_ALARM = 1e-6
_WEIGHTS, _DRAWS, _BATCHES = 20, 4_000, 4_000  # weights at which sums are compared; draws of noise; runs of batches
_FEWEST = 10  # expected counts of a cell of the table of batches


def what_differs(training: Training, claimed: DPSGD, x: Any, y: Any, seed: int) -> list[str]:
    """Return what of a training is not as its claim assumes; empty if nothing is seen.

    Parameters
    ----------
    training : DPSGD or MistakenTraining
    claimed : DPSGD
        The training that the claim is for.
    x, y : array_like
        Neighbours.
    seed : int
    """
    rng = np.random.default_rng(seed)
    on_x, on_y = _recipe(training, x), _recipe(training, y)
    found = []
    if (on_x.steps, on_x.batch_size) != (on_y.steps, on_y.batch_size):
        found.append("steps or divisor depend on the data")
    if on_x.steps > claimed.steps:
        found.append(f"{on_x.steps} steps, counted {claimed.steps}")
    allowed = claimed.clip * (2.0 if claimed.neighbours == "replace_one" else 1.0)
    move = _largest_move(on_x, x, y, rng)
    if move > allowed * (1.0 + 1e-9):
        found.append(f"a sum moves by {move:.4g}, allowed {allowed:.4g}")
    return found + _noise(on_x, claimed, rng) + _batches(on_x, claimed, len(np.atleast_2d(x)), rng)


def _recipe(training: Training, rows: Any) -> Recipe:
    if isinstance(training, MistakenTraining) and training.adapt is not None:
        return training.adapt(training.recipe, rows)
    return training.recipe


def _largest_move(recipe: Recipe, x: Any, y: Any, rng: np.random.Generator) -> float:
    """The largest change of a sum between x and y, all records in the batch, at the first and at random weights."""
    first = recipe.first_weights(_WEIGHTS)
    weights = first + np.concatenate([np.zeros_like(first[:1]), rng.normal(size=first[1:].shape)])
    sums = []
    for rows in (x, y):
        features, labels = recipe.model.split(recipe.prepare(rows))
        everyone = np.ones((_WEIGHTS, len(features)), dtype=np.bool_)
        blocks = recipe.model.blocks(weights, Batch(features, labels, everyone))
        sums.append(np.broadcast_to(recipe.gradient(blocks, everyone), weights.shape))
    return float(np.linalg.norm(sums[0] - sums[1], axis=1).max())


def _noise(recipe: Recipe, claimed: DPSGD, rng: np.random.Generator) -> list[str]:
    """The scale of the noise, and correlations between parameters and between steps."""
    rule, size = recipe.noise.begun(), recipe.model.n_parameters
    draws = [rule(np.zeros((_DRAWS, size)), step, rng) for step in range(min(recipe.steps, 4))]
    table: Floats = np.concatenate(draws, axis=1)
    scale, wanted = math.sqrt(float(np.mean(table[:, 0] ** 2))), claimed.noise_multiplier * claimed.clip
    found = []
    if _DRAWS * scale**2 / wanted**2 < chi2.ppf(_FALSE_ALARM, _DRAWS):
        found.append(f"noise of standard deviation {scale:.4g}, assumed {wanted:.4g}")
    if table.shape[1] > 1:
        matrix: Floats = np.asarray(np.corrcoef(table, rowvar=False))
        correlations = matrix[np.triu_indices(table.shape[1], 1)]
        largest = float(np.abs(correlations).max())
        # Fisher's transform is normal with variance 1/(n − 3).
        limit = norm.isf(_FALSE_ALARM / (2 * len(correlations))) / math.sqrt(_DRAWS - 3)
        if math.atanh(min(largest, 1.0 - 1e-12)) > limit:
            found.append(f"noise correlated between parameters or steps ({largest:.3f})")
    return found


def _batches(recipe: Recipe, claimed: DPSGD, records: int, rng: np.random.Generator) -> list[str]:
    """In how many batches a record is, and the size of the first batch, beside the sampling that the claim is for."""
    steps = min(recipe.steps, claimed.steps)
    counts, sizes = [], []
    for sampling in (recipe.sampling, claimed.sampling):
        masks = list(sampling.batches(_BATCHES, records, steps, rng))
        counts.append(np.asarray(np.sum([mask[:, 0] for mask in masks], axis=0, dtype=np.int64)))
        sizes.append(np.asarray(masks[0].sum(axis=1, dtype=np.int64)))
    found = []
    if _have_different_laws(*counts):
        means = [float(each.mean()) / steps for each in counts]
        found.append(f"a record is in another number of batches (rate {means[0]:.3f}, assumed {means[1]:.3f})")
    if _have_different_laws(*sizes):
        found.append(f"batches of other sizes (variance {sizes[0].var():.3g}, assumed {sizes[1].var():.3g})")
    return found


def _have_different_laws(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> bool:
    """Whether two samples of whole numbers have different laws, by a chi-square test; rare values count together."""
    most = int(max(one.max(), other.max()))
    table = np.array([np.bincount(each, minlength=most + 1) for each in (one, other)])
    is_frequent = table.sum(axis=0) >= 2 * _FEWEST
    cells = np.column_stack([table[:, is_frequent], table[:, ~is_frequent].sum(axis=1)])
    cells = cells[:, cells.sum(axis=0) > 0]
    return cells.shape[1] > 1 and bool(chi2_contingency(cells).pvalue < _FALSE_ALARM)


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
