"""Page on audits of one training run."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2, chi2_contingency, norm

from ....audit.canaries.canary_draws import CanaryDraws, right_from_both_ends
from ....audit.canaries.check_canaries import check_canaries
from ....audit.canaries.plan_canaries import fixed_numbers, plan_tests
from ....audit.claims.claim import ApproxDP, GaussianDP
from ....audit.errors import OptionError
from ....audit.guesses.canary_guesses import CanaryGuesses
from ....audit.guesses.guess_bets import guess_numbers
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.results.audit_result import Verdict
from ....audit.results.canary_result import CanaryResult
from ....mechanisms.adapters.library_calls import imported
from ....mechanisms.faulty.training import TRAINING_FAULTS, MistakenTraining, TrainingFault
from ....mechanisms.noise_samplers import Floats
from ....mechanisms.training.canaries import DiracCanaries, Training, canary_run
from ....mechanisms.training.dp_sgd import DPSGD, WorstCaseTraining, dp_sgd_claim
from ....mechanisms.training.models import Batch, LogisticRegression, breast_cancer_records
from ....mechanisms.training.observers import LastLoss
from ....mechanisms.training.train import PoissonBatches, Recipe
from ...libraries.jax_privacy import CanaryTraining, Fault, jax_privacy_training
from ...libraries.target import is_installed, left_out, release_of
from ..core.bench_json import CERTAIN, Figures, Row, Target, Value, at_least, at_most, columns, timed
from ..core.page import ALPHA, Bench, Effort, Page, Task, counted, in_batches, once, seeds_of
from .known_scores import FALSE_ALARMS, PUBLISHED_ROWS, Remembered, epsilon_of_gaussian, gaussian_scores

# Lower bounds on DP-SGD beside the accountant's epsilon: one run with canaries, and a thousand runs and more.

_EPSILONS, _SGD_DELTA = (1.0, 2.0, 4.0, 8.0), 1e-5
_SGD_RATE, _SGD_STEPS, _LEARNING_RATE = 0.1, 100, 2.0
_SGD_CANARIES, _FEW, _MANY = 10_000, 1_000, 100_000
_SGD_SEEDS, _SGD_TABLE = 5, 43
_SATURATED = 20.0  # factor on fitted weights, so that records that are classified right have hardly any gradient


@cache
def noise_multiplier(epsilon: float) -> float:
    """The noise multiplier of Poisson batches whose claim is (ε, 1e-5), up to 0.1% and on the noisier side."""
    low, high = 0.1, 50.0
    while high > 1.001 * low:
        middle = (low * high) ** 0.5
        claim: Any = dp_sgd_claim(PoissonBatches(_SGD_RATE), middle, _SGD_STEPS, delta=_SGD_DELTA)
        low, high = (low, middle) if claim.epsilon <= epsilon else (middle, high)
    return high


def _training(sigma: float) -> DPSGD:
    records = breast_cancer_records()
    return DPSGD(
        model=LogisticRegression(31),
        sampling=PoissonBatches(_SGD_RATE),
        noise_multiplier=sigma,
        steps=_SGD_STEPS,
        learning_rate=_LEARNING_RATE,
        batch_size=_SGD_RATE * len(records),
        delta=_SGD_DELTA,
    )


def _sgd_one_run(score: Any, epsilon: float, sigma: float, canaries: int, seed: int) -> float:
    run = canary_run(_training(sigma), breast_cancer_records(), DiracCanaries(canaries), score=score, seed=seed)
    claim = ApproxDP(epsilon, _SGD_DELTA)
    return check_canaries(run.scores, run.included, claim=claim, alpha=ALPHA, coins="independent").bound


def _worst_case(seen: Any, epsilon: float, sigma: float, runs: int, seed: int) -> float:
    case = WorstCaseTraining(noise_multiplier=sigma, steps=_SGD_STEPS, rate=_SGD_RATE, seen=seen, delta=_SGD_DELTA)
    claim = ApproxDP(epsilon, _SGD_DELTA)
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
    claim = ApproxDP(epsilon, _SGD_DELTA)
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
    "one run, every step seen": _Setting(_sgd_one_run, "ratio", _SGD_CANARIES, "canaries"),
    "one run, last iterate": _Setting(_sgd_one_run, "sum", _SGD_CANARIES, "canaries"),
    "worst case, every step seen": _Setting(_worst_case, "ratio", _FEW, "runs"),
    "worst case, every step seen, more runs": _Setting(_worst_case, "ratio", _MANY, "runs"),
    "worst case, last iterate": _Setting(_worst_case, "last", _FEW, "runs"),
    "worst case, last iterate, more runs": _Setting(_worst_case, "last", _MANY, "runs"),
    "real data, last loss": _Setting(_real_data, False, _FEW, "runs"),
    "real data, last loss, worst-case initial weights": _Setting(_real_data, True, _FEW, "runs"),
}


def _sgd_cells(effort: Effort, place: int, name: str, epsilon: float) -> Figures:
    setting = _SETTINGS[name]
    sigma = noise_multiplier(epsilon)
    size = effort.either(min(setting.size, 500), setting.size)
    bounds, times = [], []
    for seed in seeds_of(_SGD_TABLE, place, 0, effort.either(1, _SGD_SEEDS)):
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


def _sgd_tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_SETTINGS):
        for number, epsilon in enumerate(effort.either(_EPSILONS[:1], _EPSILONS)):
            if effort.wants(name):
                yield once(f"{name}, {epsilon:g}", _sgd_cells, effort, len(_EPSILONS) * place + number, name, epsilon)


DP_SGD_BOUNDS = Bench(
    name="dp-sgd",
    title="Lower bounds on DP-SGD beside the accountant's epsilon",
    method=(
        f"Poisson batches at rate {_SGD_RATE:g}, {_SGD_STEPS} steps, noise multiplier such that the claim for added "
        f"records is (ε, {_SGD_DELTA:g})-DP. One run: logistic regression on 569 records with {_SGD_CANARIES:,} "
        "canaries of the clipping norm, each along a parameter of its own; scores are the log-likelihood ratio of "
        "all noisy sums, or the change of the weights. Worst case: one record of the clipping norm and no other "
        "gradients; the log-likelihood ratio of all steps, or the last iterate. Real data: the loss of a mislabelled "
        "record after logistic regression on 569 records, from weights of 0, or from weights that classify nearly "
        f"all other records with certainty. Medians and ranges of {_SGD_SEEDS} seeds at confidence {1 - ALPHA:g}; "
        "seconds on one worker, audit included."
    ),
    columns=columns(
        "setting | claimed epsilon = epsilon :g | noise multiplier = sigma :.3f | runs on each dataset = runs :, | "
        "canaries :, | lower bound = bound :.2f | least = low :.2f | largest = high :.2f | seconds :.1f"
    ),
    names=tuple(_SETTINGS),
    tasks=_sgd_tasks,
)

# Mistakes in DP-SGD, caught by repeated runs and, where canaries show them, by one run.

_FALSE_ALARM = 1e-6
_WEIGHTS, _MISTAKE_DRAWS, _BATCHES = (
    20,
    4_000,
    4_000,
)  # weights at which sums are compared; draws of noise; runs of batches
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
    draws = [rule(np.zeros((_MISTAKE_DRAWS, size)), step, rng) for step in range(min(recipe.steps, 4))]
    table: Floats = np.concatenate(draws, axis=1)
    scale, wanted = math.sqrt(float(np.mean(table[:, 0] ** 2))), claimed.noise_multiplier * claimed.clip
    found = []
    if _MISTAKE_DRAWS * scale**2 / wanted**2 < chi2.ppf(_FALSE_ALARM, _MISTAKE_DRAWS):
        found.append(f"noise of standard deviation {scale:.4g}, assumed {wanted:.4g}")
    if table.shape[1] > 1:
        matrix: Floats = np.asarray(np.corrcoef(table, rowvar=False))
        correlations = matrix[np.triu_indices(table.shape[1], 1)]
        largest = float(np.abs(correlations).max())
        # Fisher's transform is normal with variance 1/(n − 3).
        limit = norm.isf(_FALSE_ALARM / (2 * len(correlations))) / math.sqrt(_MISTAKE_DRAWS - 3)
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


_MISTAKE_SEEDS, _QUICK_SEEDS = 20, 1
_QUICK = ("no-clipping", "noise-divided-twice")
_RUNS_ALPHA = 1e-4  # of repeated runs, so that one of the right trainings is refuted in 4% of measurements at most
_TIMES = 4  # runs and canaries, as a multiple of what shows a mistake with one seed
_MISTAKE_TABLE = 42


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
        one = (
            [_mistake_one_run(fault, training, seed) for training in (fault.wrong, fault.right)]
            if fault.canaries
            else []
        )
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


def _mistake_one_run(fault: TrainingFault, training: Training, seed: int) -> CanaryResult:
    canaries: Any = fault.canaries
    run = canary_run(training, fault.no_records, replace(canaries, m=_TIMES * canaries.m), seed=seed)
    return check_canaries(
        run.scores, run.included, claim=run.claim, adjacency=run.adjacency, alpha=ALPHA, coins="independent"
    )


def _mistake_cells(effort: Effort, place: int, name: str) -> Figures:
    fault = next(fault for fault in TRAINING_FAULTS if fault.name == name)
    seeds = seeds_of(_MISTAKE_TABLE, place, 0, effort.either(_QUICK_SEEDS, _MISTAKE_SEEDS))
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


def _mistake_tasks(effort: Effort) -> Iterator[Task]:
    for place, fault in enumerate(TRAINING_FAULTS):
        if effort.wants(fault.name) and (not effort.is_quick or fault.name in _QUICK):
            yield once(fault.name, _mistake_cells, effort, place, fault.name)


TRAINING_MISTAKES = Bench(
    name="training-mistakes",
    title="Mistakes in training",
    method=(
        f"Wrong twins of DP-SGD and the right trainings, {_MISTAKE_SEEDS} seeds each. Repeated runs: `check` on the "
        f"entry's pair at alpha {_RUNS_ALPHA:g}, with as many runs on each dataset as the column says. One run: "
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
    tasks=_mistake_tasks,
)

# JAX Privacy's own auditing beside `check_canaries`: its training, its published test numbers, and false alarms.

_LIBRARY, _JAX_TABLE = "jax-privacy", 44

_TRAININGS: dict[str, Fault] = {"right": "", "half the noise": "half the noise", "clipped mean": "clipped mean"}
_SEEN = {"step scores": "step_scores", "last scores": "last_scores"}
_JAX_SEEDS, _TRAINING_DELTA = 5, 1e-5
_JAX_STEPS, _JAX_RATE, _NOISE = 50, 0.05, 1.0
_TRAINED = 20_000  # canaries

_PUBLISHED = {  # μ: one run, and f-DP in one run
    1.0: (1.133, 2.165),
    2.0: (2.312, 4.722),
    4.0: (4.396, 9.134),
}
_JAX_CANARIES, _JAX_DELTA = 20_000, 1e-6
_JAX_DRAWS, _BATCH = 20, 5

_ALARM_CANARIES, _ALARM_DELTA, _ALARM_BATCH = (1_000, 20_000), 1e-9, 50
_PARTS = ("audits", "library_alarms", "dpaudit_alarms")

_TRAINING, _PUBLISHED_NUMBERS, _RANDOM, _ALARMS = "training", "published numbers", "random scores", "false alarms"
_PLACES = {_TRAINING: 0, _PUBLISHED_NUMBERS: 20, _RANDOM: 30, _ALARMS: 40}  # of the rows, for their seeds


def _auditor(scores: NDArray[Any], included: NDArray[np.bool_]) -> Any:
    return imported("jax_privacy.auditing", _LIBRARY).CanaryScoreAuditor(scores[included], scores[~included])


def _library_bounds(scores: NDArray[Any], included: NDArray[np.bool_], delta: float, seed: int) -> tuple[float, ...]:
    """Bounds on ε by the library, for (ε, δ) and by f-DP: thresholds by default, and by a split of the canaries."""
    auditor, split = _auditor(scores, included), imported("jax_privacy.auditing", _LIBRARY).Split(seed=seed)
    return (
        float(auditor.epsilon_one_run(ALPHA, delta)),
        float(auditor.epsilon_one_run(ALPHA, delta, threshold_strategy=split)),
        float(auditor.epsilon_one_run_fdp(ALPHA, delta)),
        float(auditor.epsilon_one_run_fdp(ALPHA, delta, threshold_strategy=split)),
    )


def _own_bounds(scores: NDArray[Any], included: NDArray[np.bool_], claim: ApproxDP) -> tuple[float, float]:
    """Bounds on ε by `check_canaries`: for any mechanism, and for a Gaussian curve."""
    bounds = [
        check_canaries(scores, included, claim=audited, alpha=ALPHA, coins="independent").bound
        for audited in (claim, GaussianDP(0.1))
    ]
    return bounds[0], epsilon_of_gaussian(bounds[1], claim.delta)


@lru_cache(maxsize=_JAX_SEEDS)
def _trained(fault: Fault, canaries: int, steps: int, seed: int) -> tuple[CanaryTraining, ApproxDP, float]:
    """The training, its claim at δ and its seconds; kept, as both kinds of scores are of the same trainings."""
    options = {"steps": steps, "sampling_rate": _JAX_RATE, "noise_multiplier": _NOISE, "seed": seed}
    run, seconds = timed(jax_privacy_training, canaries=canaries, fault=fault, **options)
    curve = run.claim()
    epsilon = min(e for e, delta in zip(curve.epsilons, curve.deltas, strict=True) if delta <= _TRAINING_DELTA)
    return run, ApproxDP(epsilon, _TRAINING_DELTA), seconds


def _of_training(effort: Effort, place: int, name: str, seen: str) -> Figures:
    canaries, steps = effort.either((500, 5), (_TRAINED, _JAX_STEPS))
    bounds, refuted, times = [], [], []
    for seed in seeds_of(_JAX_TABLE, _PLACES[_TRAINING] + place, 0, effort.either(1, _JAX_SEEDS)):
        run, claim, training = _trained(_TRAININGS[name], canaries, steps, seed)
        scores = getattr(run, _SEEN[seen])
        library, library_seconds = timed(_library_bounds, scores, run.included, claim.delta, seed)
        own, own_seconds = timed(_own_bounds, scores, run.included, claim)
        bounds.append((*library, *own))
        refuted.append([bound > claim.epsilon for bound in (*library[:2], own[0])])
        times.append((training, library_seconds, own_seconds))
    by_bonferroni, by_split, by_dpaudit = np.mean(refuted, axis=0).tolist()
    cells: dict[str, Value] = {
        "setting": f"{name}, {seen}",
        "canaries": canaries,
        "delta": claim.delta,
        "audits": len(bounds),
        "claimed": claim.epsilon,
        **_medians(bounds),
        "library_refuted": by_bonferroni,
        "split_refuted": by_split,
        "dpaudit_refuted": by_dpaudit,
        **dict(zip(("training", "library_seconds", "seconds"), np.median(times, axis=0).tolist(), strict=True)),
        "release": release_of(_LIBRARY),
    }
    if name == "right":
        return cells, [at_most("refuted by dpaudit", by_dpaudit, 0.0)]
    if seen == "step scores" and not effort.is_quick:
        return cells, [at_least("refuted by dpaudit", by_dpaudit, 1.0)]
    return cells, []


def _medians(bounds: list[tuple[float, ...]]) -> dict[str, Value]:
    """The medians of `_library_bounds` and `_own_bounds`, by the names of their cells."""
    names = ("bonferroni", "split", "fdp", "fdp_split", "bound", "curve")
    return dict(zip(names, np.median(np.array(bounds), axis=0).tolist(), strict=True))


def _published(mu: float) -> Figures:
    """The library's test: quantiles on an even grid as scores, half of the canaries in."""
    half = _JAX_CANARIES // 2
    grid = ndtri((np.arange(half) + 0.5) / half)
    included = np.arange(_JAX_CANARIES) < half
    started = time.perf_counter()
    auditor = _auditor(np.concatenate([grid + mu, grid]), included)
    found = float(auditor.epsilon_one_run(ALPHA, _JAX_DELTA)), float(auditor.epsilon_one_run_fdp(ALPHA, _JAX_DELTA))
    cells: dict[str, Value] = {
        "setting": f"published numbers, mu {mu:g}: {', '.join(f'{number:.3f}' for number in _PUBLISHED[mu])}",
        "canaries": _JAX_CANARIES,
        "delta": _JAX_DELTA,
        "audits": 1,
        "truth": epsilon_of_gaussian(mu, _JAX_DELTA),
        "bonferroni": found[0],
        "fdp": found[1],
        "library_seconds": time.perf_counter() - started,
        "release": release_of(_LIBRARY),
    }
    away = max(abs(one - other) for one, other in zip(found, _PUBLISHED[mu], strict=True))
    return cells, [at_most("difference from the published numbers", away, 0.001)]


def _draws(mu: float, canaries: int, seeds: range) -> list[tuple[float, ...]]:
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        scores = gaussian_scores(mu, included, rng)
        library, library_seconds = timed(_library_bounds, scores, included, _JAX_DELTA, seed)
        own, own_seconds = timed(_own_bounds, scores, included, ApproxDP(0.5, _JAX_DELTA))
        found.append((*library, *own, library_seconds, own_seconds))
    return found


def _of_draws(effort: Effort, place: int, mu: float) -> Figures:
    canaries = effort.either(1_000, _JAX_CANARIES)
    seeds = seeds_of(_JAX_TABLE, _PLACES[_RANDOM] + place, 0, effort.either(1, _JAX_DRAWS))
    draws = in_batches(_draws, (mu, canaries), seeds, _BATCH, effort.jobs)
    library_seconds, seconds = np.median(np.array(draws)[:, -2:], axis=0).tolist()
    medians = _medians([draw[:-2] for draw in draws])
    cells: dict[str, Value] = {
        "setting": f"random scores, mu {mu:g}",
        "canaries": canaries,
        "delta": _JAX_DELTA,
        "audits": len(draws),
        "truth": epsilon_of_gaussian(mu, _JAX_DELTA),
        **medians,
        "library_seconds": library_seconds,
        "seconds": seconds,
        "release": release_of(_LIBRARY),
    }
    best = max(float(medians["bonferroni"] or 0.0), float(medians["split"] or 0.0))
    targets = [] if effort.is_quick else [at_least("median bound", float(medians["bound"] or 0.0), best)]
    return cells, targets


def _alarms(canaries: int, seeds: range) -> Counter[str]:
    """Audits of scores that have nothing to do with the coins: bounds above 0, and refuted claims of ε = 0."""
    claim = ApproxDP(0.0, _ALARM_DELTA)
    numbers = tuple(sorted({*guess_numbers(canaries), *fixed_numbers(canaries)}))
    shape = CanaryGuesses(canaries=canaries, numbers=numbers, right=(0,) * len(numbers))
    decide = [Remembered(test, claim) for test in plan_tests("auto", None, claim, shape, ALPHA)]
    found = Counter(dict.fromkeys(_PARTS, 0))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        included = rng.random(canaries) < 0.5
        scores = rng.normal(size=canaries)
        right = np.cumsum(right_from_both_ends(CanaryDraws(scores, included), rng))
        guesses = CanaryGuesses(canaries=canaries, numbers=numbers, right=tuple(right[np.array(numbers) - 1].tolist()))
        found["audits"] += 1
        found["library_alarms"] += _auditor(scores, included).epsilon_one_run(ALPHA, _ALARM_DELTA) > 0.0
        found["dpaudit_alarms"] += any(test(guesses) for test in decide)
    return found


def _of_alarms(canaries: int, counts: Counter[str]) -> Figures:
    audits = counts["audits"]
    cells: dict[str, Value] = {
        "setting": "false alarms, identical laws",
        "canaries": canaries,
        "delta": _ALARM_DELTA,
        "claimed": 0.0,
        "truth": 0.0,
        **{name: counts[name] for name in _PARTS},
        "library_refuted": counts["library_alarms"] / audits,
        "dpaudit_refuted": counts["dpaudit_alarms"] / audits,
        "release": release_of(_LIBRARY),
    }
    certain = probability_limits(counts["dpaudit_alarms"], audits, alpha=CERTAIN)[0]
    return cells, [at_most("99.9% lower limit, dpaudit", certain, ALPHA)]


def _growing(effort: Effort, key: str, place: int, canaries: int, former: Row | None) -> Iterator[Row]:
    yield from counted(
        key,
        partial(_alarms, canaries),
        partial(_of_alarms, canaries),
        former,
        names=_PARTS,
        seeds=lambda used: seeds_of(_JAX_TABLE, _PLACES[_ALARMS] + place, used, max(0, effort.audits - used)),
        batch=_ALARM_BATCH,
        jobs=effort.jobs,
    )


def _training_tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_TRAININGS):
        for seen in _SEEN:
            yield once(f"{name}, {seen}", _of_training, effort, place, name, seen)


def _published_tasks(effort: Effort) -> Iterator[Task]:
    for mu in effort.either((1.0,), _PUBLISHED):
        yield once(f"published numbers, mu {mu:g}", _published, mu)


def _random_tasks(effort: Effort) -> Iterator[Task]:
    for place, mu in enumerate(effort.either((1.0,), _PUBLISHED)):
        yield once(f"random scores, mu {mu:g}", _of_draws, effort, place, mu)


def _alarm_tasks(effort: Effort) -> Iterator[Task]:
    for place, canaries in enumerate(effort.either(_ALARM_CANARIES[:1], _ALARM_CANARIES)):
        key = f"false alarms, {canaries:,} canaries"
        yield Task(key, partial(_growing, effort, key, place, canaries))


_ROWS: dict[str, Callable[[Effort], Iterator[Task]]] = {
    _TRAINING: _training_tasks,
    _PUBLISHED_NUMBERS: _published_tasks,
    _RANDOM: _random_tasks,
    _ALARMS: _alarm_tasks,
}


def _jax_tasks(effort: Effort) -> Iterator[Task]:
    chosen = [name for name in _ROWS if effort.wants(name)]
    if chosen and not is_installed(_LIBRARY):
        if effort.only:
            raise OptionError(f"{_LIBRARY} cannot be imported; install it to measure {', '.join(chosen)}.")
        return
    for name in chosen:
        yield from _ROWS[name](effort)


JAX_PRIVACY_RUNS = Bench(
    name="jax-privacy",
    title="JAX Privacy's auditing and `check_canaries`",
    method=(
        f"Medians of lower bounds on epsilon at confidence {1 - ALPHA:g}, and shares of audits that refute the claim. "
        "The library: `epsilon_one_run` and `epsilon_one_run_fdp`, which is a bound for Gaussian noise only, with "
        "default thresholds (Bonferroni) and with Split. dpaudit: `check_canaries` by default, with a claim for (ε, "
        "δ), and with a claim for a Gaussian curve, whose bound on μ is given as the ε of μ-GDP at δ. Training: "
        "logistic regression on 1,000 rows and canaries included by fair coins, Poisson batches at rate "
        f"{_JAX_RATE:g}, {_JAX_STEPS} steps, noise multiplier {_NOISE:g}, {_JAX_SEEDS} seeds; the number of canaries "
        "and of steps was chosen on simulated scores such that half the noise shows in one run. Step scores are log "
        "likelihood ratios of all noisy gradients, last scores the change of the weights; Gaussian bounds are not "
        "bounds for these subsampled trainings. Published numbers: the library's test, quantiles on an even grid "
        f"with a fixed split. Random scores: N(μ, 1) in and N(0, 1) out, fair coins, {_JAX_DRAWS} draws, the same for "
        "both tools. False alarms: scores independent of the coins; refuted is a bound above 0 or a refuted claim of "
        "ε = 0. --audits sets their number. Seconds are medians on one worker: all four bounds of the library, both "
        "of dpaudit."
    ),
    columns=columns(
        "setting | canaries :, | delta :g | audits :, | claimed epsilon = claimed :.3g | true epsilon = truth :.3f | "
        "library, Bonferroni = bonferroni :.3f | library, Split = split :.3f | dpaudit = bound :.3f | "
        "library, f-DP = fdp :.3f | library, f-DP with Split = fdp_split :.3f | dpaudit, Gaussian curve = curve :.3f | "
        "refuted, Bonferroni = library_refuted :.3g | refuted, Split = split_refuted :.3g | "
        "refuted, dpaudit = dpaudit_refuted :.3g | seconds of training = training :.1f | "
        "of the library = library_seconds :.2f | of dpaudit = seconds :.2f | release"
    ),
    names=tuple(_ROWS),
    tasks=_jax_tasks,
)

CANARIES = Page(
    "canaries",
    "Benchmarks of audits of one training run",
    (FALSE_ALARMS, PUBLISHED_ROWS, JAX_PRIVACY_RUNS, DP_SGD_BOUNDS, TRAINING_MISTAKES),
    left_out=partial(left_out, ("jax-privacy",)),
)
