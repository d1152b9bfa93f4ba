"""JAX Privacy's own auditing beside `check_canaries`: its training, its published test numbers, and false alarms."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ....audit.canaries.canary_draws import CanaryDraws
from ....audit.canaries.check_canaries import check_canaries
from ....audit.canaries.guess_order import right_from_both_ends
from ....audit.canaries.plan import fixed_numbers, plan_tests
from ....audit.claims.claim import ApproxDP, GaussianDP
from ....audit.errors import OptionError
from ....audit.guesses.canary_guesses import CanaryGuesses
from ....audit.guesses.guess_bets import guess_numbers
from ....audit.inference.binomial_tails import probability_limits
from ....mechanisms.adapters.library_calls import imported
from ...libraries.installed import is_installed, release_of
from ...libraries.jax_privacy import CanaryTraining, Fault, jax_privacy_training
from ..core.bench_json import CERTAIN, Figures, Row, Value, at_least, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, counted, in_batches, once, seeds_of
from ..core.timing import timed
from .false_alarms import Remembered
from .known_scores import epsilon_of_gaussian, gaussian_scores

_LIBRARY, _TABLE = "jax-privacy", 44

_TRAININGS: dict[str, Fault] = {"right": "", "half the noise": "half the noise", "clipped mean": "clipped mean"}
_SEEN = {"step scores": "step_scores", "last scores": "last_scores"}
_SEEDS, _TRAINING_DELTA = 5, 1e-5
_STEPS, _RATE, _NOISE = 50, 0.05, 1.0
_TRAINED = 20_000  # canaries

_PUBLISHED = {  # μ: one run, and f-DP in one run
    1.0: (1.133, 2.165),
    2.0: (2.312, 4.722),
    4.0: (4.396, 9.134),
}
_CANARIES, _DELTA = 20_000, 1e-6
_DRAWS, _BATCH = 20, 5

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


@lru_cache(maxsize=_SEEDS)
def _trained(fault: Fault, canaries: int, steps: int, seed: int) -> tuple[CanaryTraining, ApproxDP, float]:
    """The training, its claim at δ and its seconds; kept, as both kinds of scores are of the same trainings."""
    options = {"steps": steps, "sampling_rate": _RATE, "noise_multiplier": _NOISE, "seed": seed}
    run, seconds = timed(jax_privacy_training, canaries=canaries, fault=fault, **options)
    curve = run.claim()
    epsilon = min(e for e, delta in zip(curve.epsilons, curve.deltas, strict=True) if delta <= _TRAINING_DELTA)
    return run, ApproxDP(epsilon, _TRAINING_DELTA), seconds


def _of_training(effort: Effort, place: int, name: str, seen: str) -> Figures:
    canaries, steps = effort.either((500, 5), (_TRAINED, _STEPS))
    bounds, refuted, times = [], [], []
    for seed in seeds_of(_TABLE, _PLACES[_TRAINING] + place, 0, effort.either(1, _SEEDS)):
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
    half = _CANARIES // 2
    grid = ndtri((np.arange(half) + 0.5) / half)
    included = np.arange(_CANARIES) < half
    started = time.perf_counter()
    auditor = _auditor(np.concatenate([grid + mu, grid]), included)
    found = float(auditor.epsilon_one_run(ALPHA, _DELTA)), float(auditor.epsilon_one_run_fdp(ALPHA, _DELTA))
    cells: dict[str, Value] = {
        "setting": f"published numbers, mu {mu:g}: {', '.join(f'{number:.3f}' for number in _PUBLISHED[mu])}",
        "canaries": _CANARIES,
        "delta": _DELTA,
        "audits": 1,
        "truth": epsilon_of_gaussian(mu, _DELTA),
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
        library, library_seconds = timed(_library_bounds, scores, included, _DELTA, seed)
        own, own_seconds = timed(_own_bounds, scores, included, ApproxDP(0.5, _DELTA))
        found.append((*library, *own, library_seconds, own_seconds))
    return found


def _of_draws(effort: Effort, place: int, mu: float) -> Figures:
    canaries = effort.either(1_000, _CANARIES)
    seeds = seeds_of(_TABLE, _PLACES[_RANDOM] + place, 0, effort.either(1, _DRAWS))
    draws = in_batches(_draws, (mu, canaries), seeds, _BATCH, effort.jobs)
    library_seconds, seconds = np.median(np.array(draws)[:, -2:], axis=0).tolist()
    medians = _medians([draw[:-2] for draw in draws])
    cells: dict[str, Value] = {
        "setting": f"random scores, mu {mu:g}",
        "canaries": canaries,
        "delta": _DELTA,
        "audits": len(draws),
        "truth": epsilon_of_gaussian(mu, _DELTA),
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
        seeds=lambda used: seeds_of(_TABLE, _PLACES[_ALARMS] + place, used, max(0, effort.audits - used)),
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


def _tasks(effort: Effort) -> Iterator[Task]:
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
        "default thresholds (Bonferroni) and with Split. dpaudit: `check_canaries` by default, with a "
        "claim for (ε, δ), and with a claim for a Gaussian curve, whose bound on μ is given as the ε of μ-GDP at δ. "
        f"Training: logistic regression on 1,000 rows and canaries included by fair coins, Poisson batches at rate "
        f"{_RATE:g}, {_STEPS} steps, noise multiplier {_NOISE:g}, {_SEEDS} seeds; the number of canaries and of steps "
        "was chosen on simulated scores such that half the noise shows in one run. Step scores are log likelihood "
        "ratios of all noisy gradients, last scores the change of the weights; Gaussian bounds are not bounds for "
        "these subsampled trainings. Published numbers: the library's test, quantiles on an even grid with a fixed "
        f"split. Random scores: N(μ, 1) in and N(0, 1) out, fair coins, {_DRAWS} draws, the same for both tools. False "
        "alarms: scores independent of the coins; refuted is a bound above 0 or a refuted claim of ε = 0. --audits "
        "sets their number. Seconds are medians on one worker: all four bounds of the library, both of dpaudit."
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
    tasks=_tasks,
)
