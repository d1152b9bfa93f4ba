"""False alarms of baselines: comparisons of rewritten code that draws from the same law as the old code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import PureDP
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.procedures.count_again import recount
from ....audit.records.baseline_comparison import compare
from ....audit.records.suite import Entry, Recount, Suite
from ....reports.pytest_plugin.session import compared_with, saved_as
from ..core.bench_json import CERTAIN, Column, Figures, Row, Value, at_most, columns
from ..core.effort import Bench, Effort, Task, counted, seeds_of

_ALPHAS = (0.05, 0.01, 1e-3, 1e-5)
_RUNS = 1_000
_REPETITIONS = 40, 2_000  # quick, full: 20,000 rewrites in all
_BATCH = 50
_NAME = "main"
_STREAMS = ("two streams", "one stream")
# Probabilities of the true answer. A nearly fair coin shows the effect of one stream best: nearly every hit of the old
# code is a miss of the new code.
_OF_TWO, _OF_THREE = 0.55, 0.7

Draw = Callable[[float, int, np.random.Generator], Any]
"""Function from the answer, the number of runs and a generator to an output for each run."""


def _added(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(size=size)


def _subtracted(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer - rng.laplace(size=size)


def _quantile(u: npt.NDArray[np.float64]) -> Any:
    """Return the quantile of the Laplace law."""
    return np.where(u < 0.5, 1.0, -1.0) * np.log(2.0 * np.minimum(u, 1.0 - u) + 2.0**-60)


def _inverse(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + _quantile(rng.random(size))


def _inverse_of_the_rest(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + _quantile(1.0 - rng.random(size))


def _signed(answer: float, size: int, rng: np.random.Generator) -> Any:
    sign, magnitude = rng.random((2, size))
    return answer + np.where(sign < 0.5, -1.0, 1.0) * -np.log1p(-magnitude)


def _signed_from_swapped(answer: float, size: int, rng: np.random.Generator) -> Any:
    magnitude, sign = rng.random((2, size))
    return answer + np.where(sign < 0.5, -1.0, 1.0) * -np.log1p(-magnitude)


def _heads_below(answer: float, size: int, rng: np.random.Generator) -> Any:
    tells = rng.random(size) < _OF_TWO
    return np.where(tells, answer, 1.0 - answer)


def _heads_above(answer: float, size: int, rng: np.random.Generator) -> Any:
    tells = rng.random(size) >= 1.0 - _OF_TWO
    return np.where(tells, answer, 1.0 - answer)


def _of_three(order: tuple[int, int, int], answer: float, size: int, rng: np.random.Generator) -> Any:
    """Return the true outcome of three or another, by the place of a uniform number among the ordered shares."""
    shares = np.array([_OF_THREE, (1.0 - _OF_THREE) / 2, (1.0 - _OF_THREE) / 2])
    place = np.searchsorted(np.cumsum(shares[list(order)])[:2], rng.random(size), side="right")
    return (answer + np.array(order)[place]) % 3.0


def _rounded_down(answer: float, size: int, rng: np.random.Generator) -> Any:
    return np.floor(answer + rng.laplace(size=size) + 0.5)


def _rounded_up(answer: float, size: int, rng: np.random.Generator) -> Any:
    return np.ceil(answer - rng.laplace(size=size) - 0.5)


def _noisy_max(answer: float, size: int, rng: np.random.Generator, *, step: int = 1) -> Any:
    noise = rng.laplace(scale=2.0, size=(3, size))[::step]
    return np.argmax(np.array([[answer], [0.5], [0.5]]) + noise, axis=0).astype(float)


def _cosine(answer: float, size: int, rng: np.random.Generator) -> Any:
    radius, angle = rng.random((2, size))
    return answer + np.sqrt(-2.0 * np.log1p(-radius)) * np.cos(2.0 * np.pi * angle)


def _sine(answer: float, size: int, rng: np.random.Generator) -> Any:
    radius, angle = rng.random((2, size))
    return answer + np.sqrt(-2.0 * np.log1p(-radius)) * np.sin(2.0 * np.pi * angle)


_REWRITES: dict[str, tuple[Draw, Draw]] = {
    "Laplace, noise subtracted": (_added, _subtracted),
    "Laplace, by inverse distribution": (_added, _inverse),
    "Laplace, inverse distribution of 1 - u": (_inverse, _inverse_of_the_rest),
    "Laplace, signed exponential": (_added, _signed),
    "Laplace, draws swapped": (_signed, _signed_from_swapped),
    "Laplace, rounded": (_rounded_down, _rounded_up),
    "Gaussian, sine for cosine": (_cosine, _sine),
    "coin, r >= 1 - p": (_heads_below, _heads_above),
    "three outcomes, permuted": (partial(_of_three, (0, 1, 2)), partial(_of_three, (2, 1, 0))),
    "noisy maximum, order reversed": (_noisy_max, partial(_noisy_max, step=-1)),
}
"""Old and new code of the same law."""


def _p_values(name: str, is_one_stream: bool, seeds: range) -> list[float]:
    """Return for each seed the p-value of the plugin's comparison of new code with a baseline of the old code."""
    old, new = _REWRITES[name]
    result = check(old, 1.0, 0.0, claim=PureDP(1.0), runs=_RUNS, seed=0, bits=False, jobs=1, name=name)

    def again(mechanism: Draw, stream: str, seed: int) -> Recount:
        return recount(mechanism, 1.0, 0.0, result.event, stream=stream, runs=_RUNS, seed=seed, jobs=1)

    found = []
    for seed in seeds:
        before = again(old, saved_as(_NAME), seed)
        if is_one_stream:  # under the name of the other stream; otherwise the comparison gives no p-value
            after = replace(again(new, saved_as(_NAME), seed), stream=compared_with(_NAME))
        else:
            after = again(new, compared_with(_NAME), seed)
        sides = (
            Suite(title="", entries=(Entry(name=name, result=result, recounts=(one,)),)) for one in (before, after)
        )
        (comparison,) = compare(*sides)
        if comparison.p_value is None:
            raise ValueError(f"{name}, seed {seed}: nothing was compared ({comparison.changes}, {comparison.notes})")
        found.append(comparison.p_value)
    return found


def _changes(name: str, is_one_stream: bool, seeds: range) -> Counter[str]:
    """Return the number of comparisons, and of changes found at each alpha."""
    p_values = _p_values(name, is_one_stream, seeds)
    changed = {f"changed at {alpha:g}": sum(p <= alpha for p in p_values) for alpha in _ALPHAS}
    return Counter({"repetitions": len(p_values), **changed})


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_REWRITES):
        for is_one_stream in (False, True):
            if effort.wants(name):
                key = f"{name}, {_STREAMS[is_one_stream]}"
                yield Task(key, partial(_row, effort, key, place, name, is_one_stream))


def _row(effort: Effort, key: str, place: int, name: str, is_one_stream: bool, former: Row | None) -> Iterator[Row]:
    wanted = effort.either(*_REPETITIONS)
    return counted(
        key,
        partial(_changes, name, is_one_stream),
        partial(_cells, name, is_one_stream),
        former,
        names=("repetitions", *(f"changed at {alpha:g}" for alpha in _ALPHAS)),
        seeds=lambda used: seeds_of(18, place, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=effort.jobs,
    )


def _cells(name: str, is_one_stream: bool, counts: Counter[str]) -> Figures:
    done = counts["repetitions"]
    cells: dict[str, Value] = {"rewrite": name, "streams": _STREAMS[is_one_stream], "repetitions": done}
    above = []
    for alpha in _ALPHAS:
        times = counts[f"changed at {alpha:g}"]
        low, high = probability_limits(times, done, alpha=0.05)
        cells[f"changed at {alpha:g}"] = times
        cells[f"share at {alpha:g}"] = f"{times / done:.4f} ({low:.4f} to {high:.4f})"
        above.append(probability_limits(times, done, alpha=CERTAIN)[0] / alpha)
    return cells, [] if is_one_stream else [at_most("largest 99.9% lower limit over alpha", max(above), 1)]


BASELINES = Bench(
    name="baselines",
    title="Baselines of rewritten code",
    method=(
        "Old code is saved as a baseline and compared with new code of the same law, as by `--dp-audit-save` and "
        f"`--dp-audit-compare` with the same seed; {_RUNS:,} runs on each dataset. False-alarm rates over repetitions "
        "with different seeds, with exact 95% intervals. Two streams: the new code has other random numbers than the "
        "baseline, as in the plugin. One stream: both have the same random numbers; the test is then not valid, "
        "`compare` gives no p-value, and there are no targets."
    ),
    columns=(
        *columns("rewritten code = rewrite | random numbers = streams | repetitions :,d"),
        *(Column(f"false-alarm rate at {alpha:g}", f"share at {alpha:g}") for alpha in _ALPHAS),
    ),
    names=tuple(_REWRITES),
    tasks=_tasks,
)
